"""Methods of Tensor that exchange its content, and Paddle's methods that few programs call."""

from __future__ import annotations

from oar import _functions, _random
from oar._C import Tensor, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def get_tensor(self: Tensor) -> Any:
    """The content, as programs for older versions of Paddle handle it: ``set`` replaces it, ``np.array`` reads it.

    Returns:
        an object that shares its content with the tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0])
        >>> x.get_tensor().set(np.zeros([3], 'float32'), oar.CPUPlace())
        >>> x.tolist()
        [0.0, 0.0, 0.0]
    """
    from oar.static.scope import TensorContent

    return TensorContent(self)


def set_tensor(self: Tensor, value: Tensor, place: Any = None) -> None:
    """Takes over content, shape and dtype of another tensor, without its gradient.

    Args:
        value: the other tensor, with which it shares its memory if that is on the same device.
        place: the device of the content; None is that of the other tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([3])
        >>> x.set_tensor(oar.to_tensor([1, 2]), oar.CPUPlace())
        >>> x.tolist()
        [1, 2]
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"[set_tensor] value must be a Tensor, not {type(value).__name__}; set_value takes arrays and lists.")
    self._become(value.detach() if place is None else value.detach().to(place))


def reconstruct_from_(self: Tensor, other: Tensor) -> None:
    """Becomes another tensor: its content, shape, dtype and place in the graph. The name stays.

    Args:
        other: the other tensor, with which it shares its memory.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0], stop_gradient=False)
        >>> x.reconstruct_from_(oar.to_tensor([2, 3]))
        >>> x.tolist(), x.stop_gradient
        ([2, 3], True)
    """
    if not isinstance(other, Tensor):
        raise TypeError(f"[reconstruct_from_] other must be a Tensor, not {type(other).__name__}.")
    self._become(other)
    self.stop_gradient = other.stop_gradient


def stft(self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
         center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
         name: str | None = None) -> Tensor:
    """The short-time Fourier transform. The arguments are those of ``oar.signal.stft``.

    Returns:
        a complex tensor [..., n_fft // 2 + 1 or n_fft, pieces].

    Examples:
        >>> import oar
        >>> oar.randn([8, 4800]).stft(512).shape
        [8, 257, 38]
    """
    from oar.signal import stft

    return stft(self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, name)


def istft(self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
          center: bool = True, normalized: bool = False, onesided: bool = True, length: int | None = None,
          return_complex: bool = False, name: str | None = None) -> Tensor:
    """The inverse of ``stft``. The arguments are those of ``oar.signal.istft``.

    Returns:
        a tensor [..., length].

    Examples:
        >>> import oar
        >>> x = oar.randn([2, 4096])
        >>> bool(oar.allclose(x.stft(512).istft(512), x, atol=1e-5))
        True
    """
    from oar.signal import istft

    return istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex, name)


def create_parameter(shape: Any, dtype: Any, name: str | None = None, attr: Any = None, is_bias: bool = False,
                     default_initializer: Any = None) -> Any:
    """A new parameter; it does not depend on a tensor. The arguments are those of ``oar.create_parameter``.

    Returns:
        a Parameter.

    Examples:
        >>> import oar
        >>> oar.Tensor.create_parameter([2, 3], 'float32').shape
        [2, 3]
    """
    from oar.framework import create_parameter

    return create_parameter(shape, dtype, name, attr, is_bias, default_initializer)


def multiplex(inputs: Any, index: Tensor, name: str | None = None) -> Tensor:
    """Each row from one of several tensors. The arguments are those of ``oar.multiplex``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> a, b = oar.to_tensor([[1], [2]]), oar.to_tensor([[3], [4]])
        >>> oar.Tensor.multiplex([a, b], oar.to_tensor([[1], [0]], 'int32')).tolist()
        [[3], [2]]
    """
    return ops.multiplex(inputs, index)


def _kind(self: Tensor) -> Any:
    from oar.framework.core import VarDesc

    if self.is_selected_rows():
        return VarDesc.VarType.SELECTED_ROWS
    return None if self.is_sparse() else VarDesc.VarType.DENSE_TENSOR


def _of_strings(name: str, argument: str, use: str) -> Any:
    def method(self: Tensor, *args: Any) -> Any:
        raise TypeError(f"[{name}] a tensor holds numbers. {use}")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""An error: a tensor holds numbers. {use}

    Args:
        args: {argument}.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.ones([1]).{name}()
        ... except TypeError as error:
        ...     print("a tensor holds numbers" in str(error))
        ...
        True
    """
    return method


# Paddle's inner methods, by which programs that move parameters around handle memory and gradients ----------


def _copy_to(self: Tensor, place: Any, blocking: bool = True) -> Tensor:
    """A copy on a device, without gradient."""
    made = self.detach().to(place)
    return made.clone() if made._device == self._device else made


def _md5sum(self: Tensor) -> str:
    """The MD5 sum of the elements, in hexadecimal digits."""
    import hashlib

    return hashlib.md5(self.numpy().tobytes(), usedforsecurity=False).hexdigest()


def _slice(self: Tensor, begin_idx: int, end_idx: int) -> Tensor:
    """A view of rows from the first to before the second index."""
    return self[begin_idx:end_idx]


def _share_buffer_to(self: Tensor, dst: Tensor) -> None:
    """Another tensor keeps its sizes and from now on shows the first elements of this one."""
    if self.size < dst.size:
        raise ValueError(f"[_share_buffer_to] {list(self.shape)} has {self.size} elements; {list(dst.shape)} needs {dst.size}.")
    shape = list(dst.shape)
    dst._become(self.detach().flatten()[: dst.size].reshape(shape))


def _is_shared_buffer_with(self: Tensor, other: Tensor) -> bool:
    """Whether both begin at the same place in memory."""
    return self.data_ptr() == other.data_ptr()


def _clear(self: Tensor) -> None:
    """Frees the memory: the tensor has no elements afterwards."""
    self._become(ops.full([0], 0, self.dtype))


def _copy_gradient_from(self: Tensor, other: Tensor) -> None:
    """The gradient becomes a copy of the values of another tensor."""
    self.grad = other.detach().clone()


def _set_grad_ivar(self: Tensor, value: Tensor) -> None:
    """Sets the gradient of a parameter."""
    from oar.framework.parameter import EagerParamBase

    if not isinstance(self, EagerParamBase):
        raise TypeError("[_set_grad_ivar] only parameters have a gradient that is set so; assign to x.grad.")
    self.grad = value


_INNER_METHODS: dict[str, Any] = {
    "_clear": _clear, "_clear_data": _clear, "_copy_gradient_from": _copy_gradient_from, "_copy_to": _copy_to,
    "_grad_ivar": lambda self: self.grad, "_grad_name": lambda self: "" if self.grad is None else self.grad.name, "_grad_value": lambda self: self.grad,
    "_inplace_version": lambda self: self.inplace_version, "_is_shared_underline_tensor_with": _is_shared_buffer_with,
    "_offset": lambda self: self.offset, "_place_str": property(lambda self: str(self.place)), "_is_shared_buffer_with": _is_shared_buffer_with, "_md5sum": _md5sum,
    "_numel": lambda self: self.size, "_set_grad_ivar": _set_grad_ivar, "_share_buffer_to": _share_buffer_to,
    "_share_underline_tensor_to": _share_buffer_to, "_slice": _slice,
}  # fmt: skip


_METHODS: dict[str, Any] = {
    "create_parameter": staticmethod(create_parameter), "create_tensor": staticmethod(_functions.create_tensor),
    "get_map_tensor": _of_strings("get_map_tensor", "nothing", "Keep a vocabulary in a dict."),
    "get_tensor": get_tensor, "istft": istft, "multiplex": multiplex, "reconstruct_from_": reconstruct_from_,
    "set_string_list": _of_strings("set_string_list", "the strings", "Keep strings in a list."), "set_tensor": set_tensor,
    "set_vocab": _of_strings("set_vocab", "the vocabulary", "Keep a vocabulary in a dict."), "stft": stft,
    "top_p_sampling": _random.top_p_sampling,
    "type": property(_kind, doc="The kind of tensor, as in ``oar.base.core.VarDesc.VarType``; None if it is sparse."),
}  # fmt: skip
for _name, _method in (_METHODS | _INNER_METHODS).items():
    setattr(Tensor, _name, _method)
