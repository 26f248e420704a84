"""Layers of everyday use: Linear, Bilinear, Embedding, Dropout, Flatten, Unflatten, Identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework.parameter import Parameter, dtype_name
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["Bilinear", "Dropout", "Embedding", "Flatten", "Identity", "Linear", "Unflatten"]


def _name_suffix(name: str | None) -> str:
    return f", name={name}" if name else ""


class Identity(Layer):
    """Returns its input. Takes any arguments and ignores them.

    Args:
        args: vectors, or one list of them.
        kwargs: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Identity()(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Layer):
    """``x @ weight + bias`` with a weight of shape ``[in_features, out_features]``.

    Args:
        in_features: size of the last axis of the input.
        out_features: size of the last axis of the result.
        weight_attr: attributes of the weight.
        bias_attr: attributes of the bias; False for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.Linear(3, 2)
        >>> layer.weight.shape, layer.bias.shape
        ([3, 2], [2])
        >>> layer(oar.ones([5, 3])).shape
        [5, 2]
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._dtype = oar.get_default_dtype()
        self._weight_attr = weight_attr
        self._bias_attr = bias_attr
        self.weight = self.create_parameter([in_features, out_features], weight_attr, self._dtype)
        self.bias = self.create_parameter([out_features], bias_attr, self._dtype, is_bias=True)
        self.name = name

    def forward(self, input: Tensor) -> Tensor:
        return ops.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        rows, columns = self.weight.shape
        dtype = dtype_name(self._dtype)
        return f"in_features={rows}, out_features={columns}, dtype={dtype}{_name_suffix(self.name)}"


class Embedding(Layer):
    """Looks rows of a table up by integer ids.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: length of a row.
        padding_idx: id whose row is zero and gets no gradient.
        max_norm: rows longer than this are shortened when looked up.
        norm_type: the norm in which ``max_norm`` is measured.
        sparse: the gradient holds only the rows that were used.
        weight_attr: attributes of the table.
        scale_grad_by_freq: True is not supported: the gradient of a row is not divided by how often it was used.
        _weight: the table's first values.
        _freeze: whether the table is not trained.
        device: the device of the table; None is the current one.
        dtype: its dtype; None is the default one.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.Embedding(10, 4)
        >>> layer(oar.to_tensor([[1, 2, 3]])).shape
        [1, 3, 4]
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        sparse: bool = False,
        weight_attr: Any = None,
        name: str | None = None,
        *,
        scale_grad_by_freq: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if scale_grad_by_freq:
            raise NotImplementedError("[Embedding] scale_grad_by_freq=True is not supported; divide the gradient in a hook.")
        for what, size in (("num_embeddings", num_embeddings), ("embedding_dim", embedding_dim)):
            if size <= 0:
                raise ValueError(f"{what} must be greater than 0, but received {size}.")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx must be within [-{num_embeddings}, {num_embeddings}), but is {padding_idx}.")
        self._num_embeddings = num_embeddings
        self._embedding_dim = embedding_dim
        self._size = [num_embeddings, embedding_dim]
        self._padding_idx = self.padding_idx = padding_idx
        self._max_norm = max_norm
        self._norm_type = norm_type
        self._sparse = sparse
        self._name = name
        self._weight_attr = weight_attr
        self._dtype = oar.get_default_dtype() if dtype is None else dtype_name(dtype)
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr, self._dtype)
        setattr(self.weight, "gradient_of_rows", sparse)
        if _weight is not None:
            if list(_weight.shape) != self._size:
                raise ValueError(f"[Embedding] _weight has the shape {list(_weight.shape)}; the table's is {self._size}.")
            self.weight.set_value(_weight.astype(self._dtype))
        if device is not None:
            self.to(device)
        if _freeze:
            self.weight.stop_gradient = True
        if padding_idx is not None:
            with oar.no_grad():
                self.weight[padding_idx % num_embeddings] = 0.0

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x, self.weight, self._padding_idx, self._max_norm, self._norm_type, self._sparse)

    def extra_repr(self) -> str:
        text = f"{self._num_embeddings}, {self._embedding_dim}"
        if self._padding_idx is not None:
            text += f", padding_idx={self._padding_idx}"
        return f"{text}, sparse={self._sparse}{_name_suffix(self._name)}"


class Dropout(Layer):
    """Sets elements to zero with probability ``p`` while training.

    Args:
        p: the probability.
        axis: axes along which elements are dropped together; None for one by one.
        mode: ``'upscale_in_train'`` scales what is kept while training, ``'downscale_in_infer'`` scales
            everything when evaluating.
        inplace: whether to write the result into the input.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.Dropout(0.5)
        >>> _ = layer.eval()
        >>> layer(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 2.])
    """

    def __init__(
        self,
        p: float = 0.5,
        axis: int | Sequence[int] | None = None,
        mode: str = "upscale_in_train",
        name: str | None = None,
        *,
        inplace: bool = False,
    ) -> None:
        super().__init__()
        in_place_of_axis = isinstance(axis, bool)  # as in PyTorch: Dropout(0.5, True)
        self.p = p
        self.axis = None if in_place_of_axis else axis
        self.mode = mode
        self.name = name
        self.inplace = bool(axis) if in_place_of_axis else inplace

    def forward(self, input: Tensor) -> Tensor:
        dropped = F.dropout(input, self.p, self.axis, self.training, self.mode)
        return ops.copy_into(input, dropped) if self.inplace else dropped

    def extra_repr(self) -> str:
        return f"p={self.p}, axis={self.axis}, mode={self.mode}{_name_suffix(self.name)}"


class Flatten(Layer):
    """Joins the axes from ``start_axis`` to ``stop_axis`` into one.

    Args:
        start_axis: the first axis to join.
        stop_axis: the last axis to join, included.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Flatten()(oar.zeros([2, 3, 4])).shape
        [2, 12]
    """

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis = start_axis
        self.stop_axis = stop_axis

    def forward(self, input: Tensor) -> Tensor:
        return oar.flatten(input, self.start_axis, self.stop_axis)


class Unflatten(Layer):
    """Splits one axis into several: the opposite of ``Flatten``.

    Args:
        axis: the axis to work along; a negative one counts from the end.
        shape: the sizes that the axis is split into.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Unflatten(1, [3, 4])(oar.zeros([2, 12])).shape
        [2, 3, 4]
    """

    def __init__(self, axis: int, shape: Sequence[int], name: str | None = None) -> None:
        super().__init__()
        self.axis = axis
        self.shape = shape
        self.name = name

    def forward(self, input: Tensor) -> Tensor:
        return oar.unflatten(input, self.axis, self.shape)

    def extra_repr(self) -> str:
        return f"axis={self.axis}, shape={self.shape}{_name_suffix(self.name)}"


class Bilinear(Layer):
    """A bilinear form of two inputs for each output feature, and a shift.

    Args:
        in1_features: the size of the first input's rows.
        in2_features: the size of the second input's rows.
        out_features: the size of the result's rows.
        weight_attr: attributes of the weight ``[out, in1, in2]``.
        bias_attr: attributes of the shift ``[1, out]``; False for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Bilinear(3, 4, 5)(oar.ones([2, 3]), oar.ones([2, 4])).shape
        [2, 5]
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._sizes = (in1_features, in2_features, out_features)
        self._name = name
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        in1, in2, out = self._sizes
        return f"in1_features={in1}, in2_features={in2}, out_features={out}" + _name_suffix(self._name)
