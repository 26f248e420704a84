"""Normalisation layers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar.framework.param_attr import ParamAttr
from oar.framework.parameter import Parameter
from oar.nn import functional as F
from oar.nn.initializer import Constant
from oar.nn._axes import Axes, for_axes
from oar.nn.layer.layers import Layer

__all__ = [
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "BatchNorm3D",
    "GroupNorm",
    "InstanceNorm1D",
    "InstanceNorm2D",
    "InstanceNorm3D",
    "LayerNorm",
    "RMSNorm",
    "SyncBatchNorm",
]


def _either(texts: Iterable[str]) -> str:
    """"a, b or c"."""
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last


class LayerNorm(Layer):
    """Normalises each sample over its last axes.

    Args:
        normalized_shape: the shape of those axes.
        epsilon: added to the variance.
        weight_attr: attributes of the scale; False for none.
        bias_attr: attributes of the shift; False for none.
        elementwise_affine: False for neither scale nor shift.
        bias: False for no shift.
        device: the device of the parameters; None is the current one.
        dtype: the dtype of the parameters; None is the default one.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.LayerNorm(3)(oar.to_tensor([[1.0, 2.0, 3.0]]))
        Tensor(shape=[1, 3], dtype=float32, place=Place(cpu), stop_gradient=False,
               [[-1.22473562,  0.        ,  1.22473562]])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
        *,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype=dtype or oar.get_default_dtype())
        weight_attr = weight_attr if elementwise_affine else False
        bias_attr = bias_attr if elementwise_affine and bias else False
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._normalized_shape = shape
        self._epsilon = epsilon
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        size = [math.prod(shape)]
        self.weight = self.create_parameter(size, weight_attr, dtype, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(size, bias_attr, dtype, is_bias=True)
        if device is not None:
            self.to(device)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self._normalized_shape, self.weight, self.bias, self._epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class RMSNorm(Layer):
    """Divides each sample by the root of its mean square over the last axes, then scales.

    Args:
        normalized_shape: the shape of those axes.
        epsilon: added to the mean square.
        weight_attr: attributes of the scale; False for none.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.RMSNorm(3)(oar.to_tensor([[1.0, 2.0, 2.0]]))
        Tensor(shape=[1, 3], dtype=float32, place=Place(cpu), stop_gradient=False,
               [[0.57734931, 1.15469861, 1.15469861]])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._normalized_shape = shape
        self._epsilon = epsilon
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=Constant(1.0))

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self._normalized_shape, self.weight, self._epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class _BatchNormBase(Layer):
    """Scale, shift and running statistics of a batch normalisation."""

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        default = oar.get_default_dtype()
        self._dtype = "float32" if default == "float16" else default
        self._num_features = num_features
        self._momentum = momentum
        self._epsilon = epsilon
        self._use_global_stats = use_global_stats
        self._name = name
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self._data_format = self._check_data_format(data_format) or data_format
        statistics = (f"{name}_mean", f"{name}_variance") if name else (None, None)
        self._make_parameters(num_features, weight_attr, bias_attr, statistics)

    def _make_parameters(
        self, size: int, weight_attr: Any, bias_attr: Any, names: tuple[str | None, str | None]
    ) -> None:
        dtype = self._dtype
        self.weight = self.create_parameter([size], weight_attr, dtype, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([size], bias_attr, dtype, is_bias=True)
        mean = ParamAttr(name=names[0], initializer=Constant(0.0), trainable=False)
        variance = ParamAttr(name=names[1], initializer=Constant(1.0), trainable=False)
        self._mean = self.create_parameter([size], mean, dtype)
        self._variance = self.create_parameter([size], variance, dtype)

    # Subclasses override these two, in programs of users as here.
    def _check_data_format(self, input: str) -> str | None:
        """The format of an image with the channels at the same place; raises for one that the layer does not take."""

    def _check_input_dim(self, input: Tensor) -> None:
        """Raises for an input with a number of axes that the layer does not take."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, self.training, self._momentum,
            self._epsilon, self._data_format, self._use_global_stats,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
        if self._data_format != "NCHW":
            text += f", data_format={self._data_format}"
        return text + (f", name={self._name}" if self._name is not None else "")


def _batch_norm(axes: Axes) -> type[_BatchNormBase]:
    named = [*(["NC"] if axes.count == 1 else []), axes.first, axes.last]  # the formats that messages name
    ranks = (2, 3) if axes.count == 1 else (axes.count + 2,)

    class BatchNormNd(_BatchNormBase):
        """Batch normalisation of {inputs}, channels last with format ``'{last}'``.

        Over one axis, inputs may be ``[N, C]`` too.

        Args:
            num_features: the number of channels.
            momentum: how much of the old running statistics is kept at each step.
            epsilon: added to the variance.
            weight_attr: attributes of the scale; False for none.
            bias_attr: attributes of the shift; False for none.
            data_format: {formats}.
            use_global_stats: True: use the running statistics while training too; None or False: not.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> y = nn.BatchNorm{n}D(3)(oar.rand([4, 3, {sizes:5}]))
            >>> y.shape
            [4, 3, {sizes:5}]
            >>> bool(y.mean().abs() < 1e-5)
            True
        """

        def __init__(
            self,
            num_features: int,
            momentum: float = 0.9,
            epsilon: float = 1e-05,
            weight_attr: Any = None,
            bias_attr: Any = None,
            data_format: str = axes.first,
            use_global_stats: bool | None = None,
            name: str | None = None,
        ) -> None:
            super().__init__(
                num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name
            )

        def _check_data_format(self, input: str) -> str:
            if input in ("NCHW", "NHWC"):
                return input
            if input not in named:
                raise ValueError(
                    f"{type(self).__name__} expects data_format {_either(map(repr, named))}, but got '{input}'."
                )
            return "NHWC" if input == axes.last else "NCHW"

        def _check_input_dim(self, input: Tensor) -> None:
            if input.ndim not in ranks:
                raise ValueError(
                    f"{type(self).__name__} expects a {_either(f'{rank}-D' for rank in ranks)} input, but got "
                    f"{input.ndim}-D {list(input.shape)}."
                )

    return BatchNormNd


BatchNorm1D, BatchNorm2D, BatchNorm3D = for_axes("BatchNorm{n}D", _batch_norm)


class BatchNorm(_BatchNormBase):
    """Batch normalisation of inputs of any rank, with an optional activation after it.

    Args:
        num_channels: the number of channels.
        act: the name of an activation, or None.
        is_test: whether to use the running statistics.
        momentum: how much of the running statistics is kept in each step.
        epsilon: a small number that avoids division by zero.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        dtype: the dtype of the result; None takes the default, or that of the input.
        data_layout: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.
        in_place: accepted for compatibility.
        moving_mean_name: the name of the running mean, or None.
        moving_variance_name: the name of the running variance, or None.
        do_model_average_for_mean_and_var: accepted for compatibility.
        use_global_stats: whether to use the running statistics in training too.
        trainable_statistics: whether to use the statistics of the batch even when not training.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.BatchNorm(3, act='relu')(oar.ones([2, 3, 4, 4])).shape
        [2, 3, 4, 4]
    """

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        Layer.__init__(self)
        self._dtype = "float32" if dtype == "float16" else dtype
        self._num_features = num_channels
        self._momentum = momentum
        self._epsilon = epsilon
        self._use_global_stats = use_global_stats
        self._name = None
        self._param_attr, self._bias_attr = param_attr, bias_attr
        self._data_format = data_layout
        self._act = act
        self._trainable_statistics = trainable_statistics
        self._make_parameters(num_channels, param_attr, bias_attr, (moving_mean_name, moving_variance_name))
        self.training = not is_test

    def forward(self, input: Tensor) -> Tensor:
        # Here use_global_stats=False, the default, does not request the batch's statistics, unlike in F.batch_norm.
        of_batch = (self.training or self._trainable_statistics) and not self._use_global_stats
        result = F.batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, of_batch, self._momentum, self._epsilon,
            self._data_format,
        )  # fmt: skip
        return result if self._act is None else getattr(F, self._act)(result)


class SyncBatchNorm(_BatchNormBase):
    """Batch normalisation over the batches of all processes, which may have different sizes; with one process, that of its batch.

    The arguments are those of ``BatchNorm1D``, for inputs of any rank.

    Args:
        num_features: the number of channels.
        momentum: how much of the running statistics is kept in each step.
        epsilon: a small number that avoids division by zero.
        weight_attr: a ``ParamAttr`` or an initialiser for the weight; False leaves it out.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.SyncBatchNorm(3)(oar.ones([2, 3, 4, 4])).shape
        [2, 3, 4, 4]
    """

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, None, name)

    def _check_data_format(self, input: str) -> str:
        if input in ("NC", "NCL", "NCHW", "NCDHW"):
            return "NCHW"
        if input in ("NLC", "NHWC", "NDHWC"):
            return "NHWC"
        raise ValueError(f"SyncBatchNorm expects channels second or last, as in 'NCHW', but got '{input}'.")

    def forward(self, x: Tensor) -> Tensor:
        from oar.distributed.environment import get_world_size, is_initialized

        if not self.training or self._use_global_stats or not is_initialized() or get_world_size() == 1:
            return super().forward(x)
        return self._normalised_together(x)

    def _normalised_together(self, x: Tensor) -> Tensor:
        """Normalises by the statistics of the batches of all processes. Their gradients go through the sums."""
        channel = 1 if self._data_format == "NCHW" else x.ndim - 1
        axes = [axis for axis in range(x.ndim) if axis != channel]
        shape = [x.shape[channel] if axis == channel else 1 for axis in range(x.ndim)]
        wide = x.astype("float32") if x.dtype in (oar.float16, oar.bfloat16) else x
        own_count = oar.full([1], x.numel().item() // x.shape[channel], wide.dtype)
        sums = _sum_over_processes(oar.concat([oar.sum(wide, axis=axes), own_count]))
        count = sums[-1].detach()
        mean = (sums[:-1] / count).reshape(shape)
        centred = wide - mean
        variance = (_sum_over_processes(oar.sum(centred * centred, axis=axes)) / count).reshape(shape)
        with oar.no_grad():
            for kept, new in ((self._mean, mean), (self._variance, variance)):
                kept.copy_(kept * self._momentum + new.reshape(kept.shape).astype(kept.dtype) * (1 - self._momentum))
        out = centred * oar.rsqrt(variance + self._epsilon)
        if self.weight is not None:
            out = out * self.weight.reshape(shape)
        if self.bias is not None:
            out = out + self.bias.reshape(shape)
        return out.astype(x.dtype)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """``layer`` with each BatchNorm1D, 2D and 3D in it replaced by a synchronous one that has its parameters."""
        result = layer
        if isinstance(layer, _BatchNormBase) and not isinstance(layer, (BatchNorm, SyncBatchNorm)):
            weight, bias = (False if parameter is None else None for parameter in (layer.weight, layer.bias))
            result = cls(
                layer._num_features, layer._momentum, layer._epsilon, weight, bias, layer._data_format, layer._name
            )
            result._use_global_stats = layer._use_global_stats
            result.training = layer.training
            for key in ("weight", "bias", "_mean", "_variance"):
                setattr(result, key, getattr(layer, key))
        for key, child in layer.named_children():
            result.add_sublayer(key, cls.convert_sync_batchnorm(child))
        return result


def _sum_over_processes(x: Tensor) -> Tensor:
    from oar.distributed.environment import get_world_size

    return oar._C.ops.all_reduce(x, "sum", 0, get_world_size())


class GroupNorm(Layer):
    """Normalises each sample over groups of neighbouring channels.

    Args:
        num_groups: the number of groups; it divides the number of channels.
        num_channels: the number of channels.
        epsilon: added to the variance.
        weight_attr: attributes of the scale; False for none.
        bias_attr: attributes of the shift; False for none.
        data_format: the order of the axes, with the channels second or last.
        affine: False for neither scale nor shift.
        device: the device of the parameters; None is the current one.
        dtype: the dtype of the parameters; None is the default one.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.GroupNorm(2, 4)(oar.ones([1, 4, 3, 3])).shape
        [1, 4, 3, 3]
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
        *,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype=dtype or oar.get_default_dtype())
        weight_attr, bias_attr = (weight_attr, bias_attr) if affine else (False, False)
        self._num_groups = num_groups
        self._num_channels = num_channels
        self._epsilon = epsilon
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self._data_format = data_format
        self.weight = self.create_parameter([num_channels], weight_attr, dtype, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_channels], bias_attr, dtype, is_bias=True)
        if device is not None:
            self.to(device)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format)

    def extra_repr(self) -> str:
        return f"num_groups={self._num_groups}, num_channels={self._num_channels}, epsilon={self._epsilon}"


class _InstanceNormBase(Layer):
    """What the layers below share, for programs that ask for their kind."""


def _instance_norm(axes: Axes) -> type[Layer]:
    ranks = (2, 3) if axes.count == 1 else (axes.count + 2,)

    class InstanceNorm(_InstanceNormBase):
        """Normalises each channel of each sample of {inputs}.

        Args:
            num_features: the number of channels.
            epsilon: added to the variance.
            momentum: accepted as in Paddle; the layer keeps no running statistics.
            weight_attr: attributes of the scale; False, together with ``bias_attr``, for none.
            bias_attr: attributes of the shift; False, together with ``weight_attr``, for none.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.InstanceNorm{n}D(3)(oar.ones([2, 3, {sizes:4}])).shape
            [2, 3, {sizes:4}]
        """

        scale: Parameter | None
        bias: Parameter | None

        def __init__(
            self,
            num_features: int,
            epsilon: float = 1e-05,
            momentum: float = 0.9,
            weight_attr: Any = None,
            bias_attr: Any = None,
            data_format: str = axes.first,
            name: str | None = None,
        ) -> None:
            super().__init__()
            if (weight_attr is False) != (bias_attr is False):
                raise AssertionError("weight_attr and bias_attr are False together or not at all.")
            self._num_features = num_features
            self._epsilon = epsilon
            self._momentum = momentum
            self._weight_attr, self._bias_attr = weight_attr, bias_attr
            self._data_format = data_format
            self.scale = self.create_parameter([num_features], weight_attr, default_initializer=Constant(1.0))
            self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)

        def _check_input_dim(self, input: Tensor) -> None:
            """Raises for an input with a number of axes that the layer does not take."""
            if input.ndim not in ranks:
                raise ValueError(
                    f"{type(self).__name__} expects a {_either(f'{rank}-D' for rank in ranks)} input, but got "
                    f"{input.ndim}-D {list(input.shape)}."
                )

        def forward(self, input: Tensor) -> Tensor:
            self._check_input_dim(input)
            return F.instance_norm(
                input, weight=self.scale, bias=self.bias, momentum=self._momentum, eps=self._epsilon,
                data_format=self._data_format,
            )  # fmt: skip

        def extra_repr(self) -> str:
            return f"num_features={self._num_features}, epsilon={self._epsilon}"

    return InstanceNorm


InstanceNorm1D, InstanceNorm2D, InstanceNorm3D = for_axes("InstanceNorm{n}D", _instance_norm)
