"""Flags, threads, random state, devices and small questions about tensors."""

from __future__ import annotations

import builtins
import types

from oar import _C
from oar._C import Tensor, ops

version = types.SimpleNamespace(full_version=_C.version, show=lambda: print("full_version:", _C.version))


class CPUPlace:
    """The CPU.

    Examples:
        >>> import oar
        >>> oar.CPUPlace()
        Place(cpu)
        >>> oar.to_tensor([1.0], place=oar.CPUPlace()).place
        Place(cpu)
    """

    def __repr__(self) -> str:
        return "Place(cpu)"

    def __eq__(self, other) -> builtins.bool:
        return isinstance(other, CPUPlace)

    def __hash__(self) -> int:
        return hash("cpu")

    def is_cpu_place(self) -> builtins.bool:
        """True."""
        return True

    def is_gpu_place(self) -> builtins.bool:
        """False."""
        return False

    def _equals(self, other) -> builtins.bool:
        return self == other


class CUDAPlace:
    """A device that this build does not have.

    Args:
        args: vectors, or one list of them.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.CUDAPlace(0)
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        RuntimeError
    """

    def __init__(self, *args):
        raise RuntimeError(f"there is no {type(self).__name__} here; devices other than the CPU come as plug-ins. "
                           "Use CPUPlace(), or ask is_compiled_with_cuda() first.")


class CUDAPinnedPlace(CUDAPlace):
    """Memory that this build does not have.

    Examples:
        >>> import oar
        >>> issubclass(oar.CUDAPinnedPlace, oar.CUDAPlace)
        True
    """


class DevicePlace:
    """A device that a plug-in brought."""

    def __init__(self, device: str):
        self.device = device

    def __repr__(self) -> str:
        return f"Place({self.device})"

    def __eq__(self, other) -> builtins.bool:
        return isinstance(other, DevicePlace) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def is_cpu_place(self) -> builtins.bool:
        return False


def place_of(device: str):
    return CPUPlace() if device == "cpu" else DevicePlace(device)


def seed(seed: int) -> Generator:
    """Starts the random stream anew; the same seed gives the same numbers, whatever the threads.

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
    """The process's random stream."""

    def get_state(self) -> Tensor:
        return get_rng_state()[0]

    def set_state(self, state: Tensor) -> None:
        set_rng_state([state])

    def manual_seed(self, value: int) -> Generator:
        return seed(value)

    def initial_seed(self) -> int:
        return _C.rng_state()[0]


def get_rng_state(device: str | None = None) -> list[Tensor]:
    """The place in the random stream, to be handed back to ``set_rng_state``.

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
        raise ValueError(f"a random state has 4 numbers, not {len(words)}; pass what get_rng_state() gave.")
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


# Flags of Paddle that say how its own engines are to work, with their defaults there. They are kept for programs that
# set and read them; nothing here depends on them.
_kept_flags = {
    "allocator_strategy": "auto_growth",
    "cudnn_deterministic": False,
    "deny_cinn_ops": "",
    "eager_delete_tensor_gb": 0.0,
    "enable_auto_recompute": False,
    "enable_cse_in_dy2st": False,
    "enable_pir_api": True,
    "enable_pir_in_executor": True,
    "new_einsum": True,
    "pir_apply_inplace_pass": True,
    "prim_all": False,
    "prim_enable_dynamic": False,
    "print_ir": False,
    "sort_sum_gradient": False,
    "use_autotune": False,
    "use_cinn": False,
    "use_mkldnn": False,
    "use_stride_kernel": True,
}


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
        elif plain in _kept_flags:
            _kept_flags[plain] = value
        else:
            raise ValueError(f"there is no flag {name!r}. The flags are {', '.join(known)}.")


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
    return {name: _kept_flags[_flag_name(name)] if _flag_name(name) in _kept_flags else _C.get_flag(_flag_name(name))
            for name in names}


def set_device(device: str):
    """Chooses the device of new tensors: ``'cpu'``, or one that a plug-in brought.

    Args:
        device: the device, for example ``'cpu'``.

    Examples:
        >>> import oar
        >>> oar.set_device('cpu')
        Place(cpu)
    """
    name = device if isinstance(device, str) else "cpu" if device.is_cpu_place() else device.device
    _C.set_device(name)
    return place_of(_C.get_device())


def get_device() -> str:
    """The device of new tensors.

    Returns:
        a string.

    Examples:
        >>> import oar
        >>> oar.get_device()
        'cpu'
    """
    return _C.get_device()


def is_compiled_with_cuda() -> builtins.bool:
    """False: devices other than the CPU come as plug-ins.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_compiled_with_cuda()
        False
    """
    return False


def is_compiled_with_rocm() -> builtins.bool:
    """False: devices other than the CPU come as plug-ins.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_compiled_with_rocm()
        False
    """
    return False


def is_compiled_with_xpu() -> builtins.bool:
    """False: devices other than the CPU come as plug-ins.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_compiled_with_xpu()
        False
    """
    return False


def is_compiled_with_cinn() -> builtins.bool:
    """False: the compiler is Oar's own.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_compiled_with_cinn()
        False
    """
    return False


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


def is_tensor(x) -> builtins.bool:
    """Whether x is a tensor.

    Args:
        x: the input.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_tensor(oar.to_tensor([1.0])), oar.is_tensor([1.0])
        (True, False)
    """
    return isinstance(x, Tensor)


def _dtype_name(question: str, x: Tensor) -> str:
    if not isinstance(x, Tensor):
        raise TypeError(f"[{question}] x must be a tensor, not {type(x).__name__}.")
    return x.dtype.name


def is_complex(x: Tensor) -> builtins.bool:
    """Whether the elements are complex numbers.

    Args:
        x: the input.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_complex(oar.to_tensor([1 + 2j])), oar.is_complex(oar.to_tensor([1.0]))
        (True, False)
    """
    return "complex" in _dtype_name("is_complex", x)


def is_floating_point(x: Tensor) -> builtins.bool:
    """Whether the elements are floats.

    Args:
        x: the input.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_floating_point(oar.to_tensor([1.0])), oar.is_floating_point(oar.to_tensor([1]))
        (True, False)
    """
    return "float" in _dtype_name("is_floating_point", x)


def is_integer(x: Tensor) -> builtins.bool:
    """Whether the elements are integers.

    Args:
        x: the input.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.is_integer(oar.to_tensor([1])), oar.is_integer(oar.to_tensor([1.0]))
        (True, False)
    """
    return "int" in _dtype_name("is_integer", x)


def rank(input: Tensor) -> Tensor:
    """The number of axes, as a 0-d tensor.

    Args:
        input: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.rank(oar.zeros([2, 3])).item()
        2
    """
    return _C.make_tensor(input.ndim, "int32")


def shape(input: Tensor) -> Tensor:
    """The sizes, as a tensor.

    Args:
        input: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.shape(oar.zeros([2, 3]))
        Tensor(shape=[2], dtype=int32, place=Place(cpu), stop_gradient=True,
               [2, 3])
    """
    return sizes_tensor(list(input.shape), "int32")


def numel(x: Tensor, name: str | None = None) -> Tensor:
    """The number of elements, as a 0-d tensor.

    Args:
        x: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.numel(oar.zeros([2, 3])).item()
        6
    """
    return sizes_tensor(x.size, "int64")


def sizes_tensor(sizes, dtype: str) -> Tensor:
    """A size, or a list of them, as a tensor. A size that is open is known when the program runs."""
    if isinstance(sizes, list) and builtins.any(not isinstance(size, int) for size in sizes):
        return ops.concat([ops.reshape(sizes_tensor(size, dtype), [1]) for size in sizes], 0)
    if not isinstance(sizes, (list, int)):
        return ops.product_of([sizes], dtype)
    made = _C.make_tensor(sizes, dtype)
    return made if in_dynamic_mode() else ops.assign(made)


def check_shape(shape) -> None:
    """Raises unless shape is a list of sizes: integers that are not negative, or integer tensors.

    Args:
        shape: what to check.

    Examples:
        >>> import oar
        >>> oar.check_shape([2, 3])
    """
    sizes = [shape] if isinstance(shape, Tensor) else list(shape)
    for size in sizes:
        if isinstance(size, Tensor):
            if size.dtype.name not in ("int32", "int64"):
                raise TypeError(f"a shape is a tensor of dtype int32 or int64, not {size.dtype.name}.")
        elif size < 0:
            raise ValueError(f"the sizes of a shape must not be negative, as in {sizes}.")
        elif not isinstance(size, int):
            raise TypeError(f"the sizes of a shape must be integers, not {type(size).__name__} as in {sizes}.")


def finfo(dtype):
    """Limits of a float type, as NumPy gives them.

    Args:
        dtype: the dtype.

    Examples:
        >>> import oar
        >>> oar.finfo(oar.float16).max
        np.float16(6.55e+04)
    """
    import ml_dtypes
    import numpy
    name = _C.dtype(dtype).name
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return ml_dtypes.finfo(name)
    return numpy.finfo(name)


def iinfo(dtype):
    """Limits of an integer type, as NumPy gives them.

    Args:
        dtype: the dtype.

    Examples:
        >>> import oar
        >>> oar.iinfo('int8').max
        127
    """
    import numpy
    return numpy.iinfo(_C.dtype(dtype).name)


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
