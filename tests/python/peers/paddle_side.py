"""PaddlePaddle's part of peers/worker.py."""

from __future__ import annotations

import os

os.environ.setdefault("FLAGS_call_stack_level", "0")  # one line per error
os.environ.setdefault("GLOG_minloglevel", "3")

import paddle  # noqa: E402

import paddle_words  # noqa: E402

paddle.set_device("cpu")
paddle.disable_signal_handler()  # it allocates memory, and waits for ever after a crash inside malloc
VERSION = paddle.__version__
WORDS = {name: value for name, value in vars(paddle_words).items() if not name.startswith("_")}


def dtype(name: str):
    return getattr(paddle, name)


def tensor(array, name: str) -> paddle.Tensor:
    """An array of any dtype; bfloat16 comes as its bits."""
    return paddle.to_tensor(array, dtype=name if name == "bfloat16" else None)


def leaf(t: paddle.Tensor) -> paddle.Tensor:
    t.stop_gradient = False
    return t


def is_tensor(value) -> bool:
    return isinstance(value, paddle.Tensor)


def is_recorded(value) -> bool:
    return is_tensor(value) and not value.stop_gradient


def numbers(t: paddle.Tensor) -> tuple:
    return t.detach().numpy(), str(t.dtype).removeprefix("paddle.")


def gradients(pairs: list, leaves: list) -> list:
    if pairs:
        paddle.autograd.backward([out for out, _ in pairs], [c for _, c in pairs])
    return [paddle.zeros_like(x) if x.grad is None else x.grad for x in leaves]


def lacks(error: Exception) -> bool:
    """Whether PaddlePaddle says that it has no such case, or no such derivative."""
    phrases = ("is not registered", "is not registered.", "is not implemented", "not supported", "NotImplementedError",
               "has no grad", "does not have")
    return isinstance(error, NotImplementedError) or any(phrase in str(error) for phrase in phrases)
