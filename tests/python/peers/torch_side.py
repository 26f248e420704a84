"""PyTorch's part of peers/worker.py."""

from __future__ import annotations

import torch

import torch_words

torch.set_num_threads(1)
VERSION = torch.__version__
WORDS = {name: value for name, value in vars(torch_words).items() if not name.startswith("_")}


def dtype(name: str) -> torch.dtype:
    return getattr(torch, name)


def tensor(array, name: str) -> torch.Tensor:
    found = torch.from_numpy(array)
    return found.view(torch.bfloat16) if name == "bfloat16" else found


def leaf(t: torch.Tensor) -> torch.Tensor:
    return t.requires_grad_()


def is_tensor(value) -> bool:
    return isinstance(value, torch.Tensor)


def is_recorded(value) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def numbers(t: torch.Tensor) -> tuple:
    name = str(t.dtype).removeprefix("torch.")
    t = t.detach().resolve_conj().resolve_neg()
    return (t.view(torch.uint16) if name == "bfloat16" else t).numpy(force=True), name


def gradients(pairs: list, leaves: list) -> list:
    if not pairs:
        return [torch.zeros_like(x) for x in leaves]
    found = torch.autograd.grad([out for out, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]


def lacks(error: Exception) -> bool:
    """Whether PyTorch says that it has no such case, or no such derivative."""
    phrases = ("not implemented", "not supported", "modified by an inplace operation", "Autograd not support dtype",
               "is not differentiable when")
    return isinstance(error, NotImplementedError) or any(phrase in str(error) for phrase in phrases)
