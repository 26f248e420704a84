"""First values by the names of PyTorch's ``nn.init``. Each function writes a tensor and returns it."""

from __future__ import annotations

from oar._C import Tensor
from oar._creation import eye
from oar._grad_mode import no_grad
from oar.nn import initializer
from oar.nn.initializer import calculate_gain

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_",
    "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip


@no_grad()
def _filled(tensor: Tensor, first: initializer.Initializer) -> Tensor:
    first(tensor)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Sets every element.

    Args:
        tensor: the tensor.
        val: the value.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> oar.nn.init.constant_(oar.zeros([2]), 3.0).tolist()
        [3.0, 3.0]
    """
    return _filled(tensor, initializer.Constant(val))


def zeros_(tensor: Tensor) -> Tensor:
    """Sets every element to 0.

    Args:
        tensor: the tensor.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> oar.nn.init.zeros_(oar.ones([2])).tolist()
        [0.0, 0.0]
    """
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Sets every element to 1.

    Args:
        tensor: the tensor.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> oar.nn.init.ones_(oar.zeros([2])).tolist()
        [1.0, 1.0]
    """
    return constant_(tensor, 1.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Sets a matrix to ones on the diagonal and zeros elsewhere.

    Args:
        tensor: the matrix.

    Returns:
        the matrix.

    Examples:
        >>> import oar
        >>> oar.nn.init.eye_(oar.zeros([2, 2])).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim != 2:
        raise ValueError(f"[eye_] the tensor of shape {list(tensor.shape)} must be a matrix.")
    tensor.copy_(eye(tensor.shape[0], tensor.shape[1], tensor.dtype))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Lets the weight of a convolution pass its input through.

    Args:
        tensor: the weight, of three to five axes.
        groups: the groups of the convolution.

    Returns:
        the weight.

    Examples:
        >>> import oar
        >>> oar.nn.init.dirac_(oar.zeros([1, 1, 3])).tolist()
        [[[0.0, 1.0, 0.0]]]
    """
    return _filled(tensor, initializer.Dirac(groups))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Draws normal numbers.

    Args:
        tensor: the tensor.
        mean: their mean.
        std: their standard deviation.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> oar.nn.init.normal_(oar.zeros([2]), mean=1.0, std=0.0).tolist()
        [1.0, 1.0]
    """
    return _filled(tensor, initializer.Normal(mean, std))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Draws numbers spread evenly between two.

    Args:
        tensor: the tensor.
        a: the lower end.
        b: the upper end.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> bool((oar.nn.init.uniform_(oar.zeros([9]), 2.0, 3.0) >= 2.0).all())
        True
    """
    return _filled(tensor, initializer.Uniform(a, b))


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Draws normal numbers between two bounds.

    Args:
        tensor: the tensor.
        mean: the mean.
        std: the standard deviation.
        a: the lower bound.
        b: the upper bound.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> bool((oar.nn.init.trunc_normal_(oar.zeros([9])).abs() <= 2.0).all())
        True
    """
    return _filled(tensor, initializer.TruncatedNormal(mean, std, a, b))


def orthogonal_(tensor: Tensor, gain: float = 1) -> Tensor:
    """Draws a matrix with orthogonal rows or columns.

    Args:
        tensor: the tensor, of two axes or more.
        gain: a factor.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> oar.nn.init.orthogonal_(oar.zeros([2, 2])).shape
        [2, 2]
    """
    return _filled(tensor, initializer.Orthogonal(gain))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, fan_in: float | None = None, fan_out: float | None = None) -> Tensor:
    """Draws evenly spread numbers whose variance suits both directions of a layer (Glorot).

    Args:
        tensor: the weight.
        gain: a factor.
        fan_in: the number of inputs; None reads the shape.
        fan_out: the number of outputs; None reads the shape.

    Returns:
        the weight.

    Examples:
        >>> import oar
        >>> oar.nn.init.xavier_uniform_(oar.zeros([2, 3])).shape
        [2, 3]
    """
    return _filled(tensor, initializer.XavierUniform(fan_in, fan_out, gain=gain))


def xavier_normal_(tensor: Tensor, gain: float = 1.0, fan_in: float | None = None, fan_out: float | None = None) -> Tensor:
    """Draws normal numbers whose variance suits both directions of a layer (Glorot).

    Args:
        tensor: the weight.
        gain: a factor.
        fan_in: the number of inputs; None reads the shape.
        fan_out: the number of outputs; None reads the shape.

    Returns:
        the weight.

    Examples:
        >>> import oar
        >>> oar.nn.init.xavier_normal_(oar.zeros([2, 3])).shape
        [2, 3]
    """
    return _filled(tensor, initializer.XavierNormal(fan_in, fan_out, gain=gain))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Draws evenly spread numbers for layers before a rectifier (He).

    Args:
        tensor: the weight.
        a: the slope of the rectifier below 0.
        mode: ``'fan_in'`` or ``'fan_out'``: the direction whose variance is kept.
        nonlinearity: the name of the rectifier.

    Returns:
        the weight.

    Examples:
        >>> import oar
        >>> oar.nn.init.kaiming_uniform_(oar.zeros([2, 3])).shape
        [2, 3]
    """
    return _filled(tensor, initializer.KaimingUniform(None, a, nonlinearity, mode))


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Draws normal numbers for layers before a rectifier (He).

    Args:
        tensor: the weight.
        a: the slope of the rectifier below 0.
        mode: ``'fan_in'`` or ``'fan_out'``: the direction whose variance is kept.
        nonlinearity: the name of the rectifier.

    Returns:
        the weight.

    Examples:
        >>> import oar
        >>> oar.nn.init.kaiming_normal_(oar.zeros([2, 3])).shape
        [2, 3]
    """
    return _filled(tensor, initializer.KaimingNormal(None, a, nonlinearity, mode))
