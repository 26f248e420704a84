"""Weights computed from other parameters before each call: ``weight_norm`` and ``spectral_norm``."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.framework.parameter import Parameter
from oar.nn import functional as F
from oar.nn.layer.common import Linear
from oar.nn.layer.layers import Layer

__all__ = ["remove_weight_norm", "spectral_norm", "weight_norm"]


def _as_matrix(weight: Tensor, dim: int) -> Tensor:
    """One row for each index along ``dim``."""
    front = oar.transpose(weight, [dim, *(i for i in range(weight.ndim) if i != dim)])
    return oar.reshape(front, [weight.shape[dim], -1])


class _Hook:
    """Sets the weight before each call of the layer."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def on(cls, layer: Layer, name: str) -> tuple[int, Any] | None:
        for key, hook in layer._forward_pre_hooks.items():
            if isinstance(hook, cls) and hook.name == name:
                return key, hook
        return None

    def attach(self, layer: Layer, kind: str) -> Parameter:
        """Take the parameter out of the layer and call this hook from now on."""
        if self.on(layer, self.name):
            raise RuntimeError(f"Cannot register two {kind} hooks on the same parameter {self.name}")
        weight = layer._parameters.pop(self.name)
        layer.register_forward_pre_hook(self)  # type: ignore[arg-type]
        return weight


class _WeightNorm(_Hook):
    def __init__(self, name: str, dim: int) -> None:
        super().__init__(name)
        self.dim = dim  # -1: one norm for all

    def norm(self, weight: Tensor) -> Tensor:
        if self.dim == -1:
            return oar.sqrt(oar.sum(oar.square(weight)) + 1e-12)
        return oar.sqrt(oar.sum(oar.square(_as_matrix(weight, self.dim)), axis=1) + 1e-12)

    def weight(self, layer: Layer) -> Tensor:
        length, direction = getattr(layer, f"{self.name}_g"), getattr(layer, f"{self.name}_v")
        factor = length / self.norm(direction)
        if self.dim != -1:
            shape = [1] * direction.ndim
            shape[self.dim] = -1
            factor = oar.reshape(factor, shape)
        return direction * factor

    def __call__(self, layer: Layer, inputs: object) -> None:
        setattr(layer, self.name, self.weight(layer))


def _copied(layer: Layer, name: str, value: Tensor) -> Parameter:
    made = layer.create_parameter(value.shape, dtype=value.dtype)
    made.set_value(value.detach())
    layer.add_parameter(name, made)
    return made


def weight_norm(layer: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Make a weight of its length and its direction: ``weight = g * v / |v|``.

    Args:
        layer: the layer; it gets parameters ``{name}_g`` and ``{name}_v`` in the weight's place.
        name: the weight's name.
        dim: the axis along which each slice has its own length; None or -1 for one length in all.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.utils.weight_norm(nn.Linear(2, 3))
        >>> [name for name, _ in net.named_parameters()]
        ['bias', 'weight_v', 'weight_g']
    """
    rank = getattr(layer, name).ndim
    dim = -1 if dim is None else dim
    if not -rank <= dim < rank:
        raise ValueError(f"dim is {dim}; it must be between {-rank} and {rank - 1}, the axes of {name}.")
    hook = _WeightNorm(name, dim if dim == -1 else dim % rank)
    weight = hook.attach(layer, "weight_norm")
    _copied(layer, f"{name}_v", weight)
    _copied(layer, f"{name}_g", hook.norm(weight))
    setattr(layer, name, hook.weight(layer))
    return layer


def remove_weight_norm(layer: Layer, name: str = "weight") -> Layer:
    """Make a plain parameter of the weight again, with its present value.

    Args:
        layer: the layer.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.utils.weight_norm(nn.Linear(2, 3))
        >>> net = nn.utils.remove_weight_norm(net)
        >>> sorted(name for name, _ in net.named_parameters())
        ['bias', 'weight']
    """
    found = _WeightNorm.on(layer, name)
    if found is None:
        raise ValueError(f"weight_norm of '{name}' not found in {layer}")
    key, hook = found
    weight = hook.weight(layer)
    del layer._forward_pre_hooks[key]
    for part in (name, f"{name}_g", f"{name}_v"):
        delattr(layer, part)
    _copied(layer, name, weight)
    return layer


class _SpectralNorm(_Hook):
    def __init__(self, name: str, steps: int, dim: int, eps: float) -> None:
        super().__init__(name)
        if steps <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={steps}")
        self.steps, self.dim, self.eps = steps, dim, eps

    def unit(self, x: Tensor) -> Tensor:
        return F.normalize(x, axis=0, epsilon=self.eps)

    def __call__(self, layer: Layer, inputs: object) -> None:
        weight = getattr(layer, f"{self.name}_orig")
        u, v = getattr(layer, f"{self.name}_u"), getattr(layer, f"{self.name}_v")
        matrix = _as_matrix(weight, self.dim)
        if layer.training:
            with oar.no_grad():
                for _ in range(self.steps):
                    v.set_value(self.unit(oar.matmul(matrix, u, transpose_x=True)))
                    u.set_value(self.unit(oar.matmul(matrix, v)))
        largest = oar.sum(u.clone() * oar.matmul(matrix, v.clone()))
        setattr(layer, self.name, weight / largest)


def spectral_norm(
    layer: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Divide a weight by its largest singular value, which power iterations follow during training.

    Args:
        layer: the layer; it gets the parameter ``{name}_orig`` in the weight's place.
        name: the weight's name.
        n_power_iterations: iterations in each training call.
        eps: keeps divisions from zero.
        dim: the axis of outputs; by default 1 for ``Linear`` and transposed convolutions, else 0.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.utils.spectral_norm(nn.Linear(2, 3))
        >>> net(oar.ones([1, 2])).shape
        [1, 3]
    """
    if dim is None:
        dim = 1 if isinstance(layer, Linear) or type(layer).__name__.endswith("Transpose") else 0
    hook = _SpectralNorm(name, n_power_iterations, dim, eps)
    weight = hook.attach(layer, "spectral_norm")
    layer.add_parameter(f"{name}_orig", weight)
    matrix = _as_matrix(weight.detach(), dim)
    for end, size in (("u", matrix.shape[0]), ("v", matrix.shape[1])):
        layer.register_buffer(f"{name}_{end}", hook.unit(oar.randn([size], dtype=weight.dtype)))
    setattr(layer, name, weight * 1.0)
    return layer
