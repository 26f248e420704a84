"""Flags, threads, random state, the default dtype and how tensors are printed."""

from __future__ import annotations

import builtins
import functools
import sys

from oar import _C
from oar._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def seed(seed: int) -> Generator:
    """Resets the random stream; the same seed gives the same numbers, whatever the number of threads.

    Args:
        seed: the seed, an integer.

    Examples:
        >>> import oar
        >>> _ = oar.seed(7)
        >>> first = oar.rand([2])
        >>> _ = oar.seed(7)
        >>> bool((oar.rand([2]) == first).all())
        True
    """
    if isinstance(seed, str):
        raise TypeError(f"[seed] the seed should be an int, not {seed!r}.")
    _C.seed(int(seed))
    return Generator()


class Generator:
    """The random stream of a device: all objects of this class stand for the one stream.

    Args:
        device: the device, ``'cpu'``; None is the current one.

    Examples:
        >>> import oar
        >>> generator = oar.Generator()
        >>> _ = generator.manual_seed(7)
        >>> generator.initial_seed()
        7
    """

    def __init__(self, device: Any = None) -> None:
        self.device = "cpu" if device is None else device

    def get_state(self) -> Tensor:
        """The place in the stream."""
        return get_rng_state()[0]

    def set_state(self, state: Tensor) -> None:
        """Goes back to a place that ``get_state`` gave."""
        set_rng_state([state])

    def manual_seed(self, value: int) -> Generator:
        """Starts the stream anew."""
        return seed(value)

    def initial_seed(self) -> int:
        """The seed that the stream started with."""
        return _C.rng_state()[0]

    def seed(self) -> int:
        """Starts the stream anew with a seed that the operating system draws, and returns it."""
        import os

        drawn = int.from_bytes(os.urandom(4), "little")
        _C.seed(drawn)
        return drawn


manual_seed = seed


def get_rng_state(device: str | None = None) -> list[Tensor]:
    """The position in the random stream, to be passed to ``set_rng_state``.

    Args:
        device: the device, for example ``'cpu'``.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> state = oar.get_rng_state()
        >>> first = oar.rand([2])
        >>> oar.set_rng_state(state)
        >>> bool((oar.rand([2]) == first).all())
        True
    """
    start, offset = _C.rng_state()
    words = [(value >> shift) & 0xFFFFFFFF for value in (start, offset) for shift in (0, 32)]
    return [_C.make_tensor(words, "int64")]


def set_rng_state(state_list, device: str | None = None) -> None:
    """Goes back to a place that ``get_rng_state`` gave.

    Args:
        state_list: what ``get_rng_state`` returned.
        device: the device, for example ``'cpu'``.

    Examples:
        >>> import oar
        >>> state = oar.get_rng_state()
        >>> first = oar.rand([2])
        >>> oar.set_rng_state(state)
        >>> bool((oar.rand([2]) == first).all())
        True
    """
    state = state_list[0] if isinstance(state_list, (list, tuple)) else state_list
    words = state.tolist()
    if len(words) != 4:
        raise ValueError(f"a random state has 4 numbers, not {len(words)}; pass the result of get_rng_state().")
    _C.set_rng_state(words[0] | words[1] << 32, words[2] | words[3] << 32)


def get_cuda_rng_state() -> list:
    """An empty list: this build has no GPU.

    Returns:
        a list.

    Examples:
        >>> import oar
        >>> oar.get_cuda_rng_state()
        []
    """
    return []


def get_default_dtype() -> str:
    """The dtype of floating literals.

    Returns:
        a string.

    Examples:
        >>> import oar
        >>> oar.get_default_dtype()
        'float32'
    """
    return _C.get_default_dtype()


def set_default_dtype(d) -> None:
    """Sets the dtype of floating literals: float16, bfloat16, float32 or float64.

    Args:
        d: the dtype.

    Examples:
        >>> import oar
        >>> oar.set_default_dtype('float64')
        >>> oar.to_tensor(1.5).dtype
        oar.float64
        >>> oar.set_default_dtype('float32')
    """
    _C.set_default_dtype(d)


def get_num_threads() -> int:
    """How many threads an op may use.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.get_num_threads() >= 1
        True
    """
    return _C.get_num_threads()


def set_num_threads(n: int) -> None:
    """Sets how many threads an op may use.

    Args:
        n: the number of threads.

    Examples:
        >>> import oar
        >>> before = oar.get_num_threads()
        >>> oar.set_num_threads(1)
        >>> oar.get_num_threads()
        1
        >>> oar.set_num_threads(before)
    """
    _C.set_num_threads(n)


def _flag_name(name: str) -> str:
    return name[6:] if name.startswith("FLAGS_") else name


@functools.cache
def _kept_flags() -> dict[str, Any]:
    """Flags of Paddle that say how its own engines and GPUs are to work, with their defaults there. They are kept for programs
    that set and read them; nothing here depends on them."""
    import ast
    import os

    with open(os.path.join(os.path.dirname(__file__), "framework", "paddle_flags.txt"), encoding="utf-8") as file:
        rows = [line.partition(" ") for line in file.read().splitlines()]
    return {name: ast.literal_eval(default) for name, _, default in rows}


def set_flags(flags: dict) -> None:
    """Sets flags by name, with or without ``FLAGS_`` in front. ``oar flags`` lists them.

    Args:
        flags: a dict of values by flag name.

    Examples:
        >>> import oar
        >>> oar.set_flags({'check_nan_inf': True})
        >>> oar.get_flags('check_nan_inf')
        {'check_nan_inf': True}
        >>> oar.set_flags({'check_nan_inf': False})
    """
    if not isinstance(flags, dict):
        raise TypeError(f"set_flags takes a dict, not {type(flags).__name__}.")
    known = [row[0] for row in _C.list_flags()]
    for name, value in flags.items():
        plain = _flag_name(name)
        if plain in known:
            _C.set_flag(plain, value)
            if plain == "check_nan_inf" and "oar.nn._path" in sys.modules:
                sys.modules["oar.nn._path"].follow_flags()
        elif plain in _kept_flags():
            _kept_flags()[plain] = value
            if plain == "cudnn_deterministic":  # what a script wants that sets it
                _C.set_flag("deterministic", bool(value))
        else:
            raise ValueError(f"there is no flag {name!r}. The flags are {', '.join(known)}.")
    if not _WATCHED_FLAGS.isdisjoint(map(_flag_name, flags)):
        from oar.amp import _watch

        _watch.refresh()


# Flags that have calls counted or checked.
_WATCHED_FLAGS = frozenset({"check_nan_inf", "check_nan_inf_level", "low_precision_op_list"})


def get_flags(flags) -> dict:
    """The values of flags: one name or a list of them.

    Args:
        flags: a flag name, or a list of them.

    Returns:
        a dict.

    Examples:
        >>> import oar
        >>> oar.get_flags(['check_nan_inf'])
        {'check_nan_inf': False}
    """
    names = [flags] if isinstance(flags, str) else list(flags)
    known = [row[0] for row in _C.list_flags()]
    values = {}
    for name in names:
        plain = _flag_name(name)
        if plain not in known and plain not in _kept_flags():
            raise ValueError(f"there is no flag {name!r}. The flags are {', '.join(known)}.")
        values[name] = _C.get_flag(plain) if plain in known else _kept_flags()[plain]
    return values


def disable_signal_handler() -> None:
    """Lets signals such as SIGSEGV end the process without the report of Oar's crash handler. What handled them before
    ``import oar`` handles them again.

    Examples:
        >>> import subprocess, sys
        >>> code = 'import oar, signal, os; oar.disable_signal_handler(); os.kill(os.getpid(), signal.SIGSEGV)'
        >>> subprocess.run([sys.executable, '-c', code], capture_output=True).stderr
        b''
    """
    _C.remove_crash_handler()


def in_dynamic_mode() -> builtins.bool:
    """Whether calls run at once, rather than being written down in a program.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.in_dynamic_mode()
        True
    """
    return not _C.static_active()


print_options = {"precision": 8, "threshold": 1000, "edgeitems": 3, "sci_mode": None, "linewidth": 80}


def set_printoptions(precision=None, threshold=None, edgeitems=None, sci_mode=None, linewidth=None) -> None:
    """How tensors are shown.

    Args:
        precision: the number of decimals.
        threshold: the number of elements above which only the ends are shown.
        edgeitems: how many elements to show at the ends of a long axis.
        sci_mode: whether to write numbers with exponents.
        linewidth: the width of a line.

    Examples:
        >>> import oar
        >>> oar.set_printoptions(precision=3)
        >>> oar.to_tensor([1 / 3])
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.333])
        >>> oar.set_printoptions(precision=8)
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "sci_mode": sci_mode,
             "linewidth": linewidth}
    print_options.update({k: v for k, v in given.items() if v is not None})
