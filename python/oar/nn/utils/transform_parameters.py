"""Parameters as one long vector, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable

import oar
from oar._C import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor], name: str | None = None) -> Tensor:
    """All elements of the parameters, one after the other, in one vector.

    Args:
        parameters: the parameters.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.utils.parameters_to_vector(nn.Linear(2, 3).parameters()).shape
        [9]
    """
    pieces = [parameter.reshape([-1]) for parameter in parameters]
    if not pieces:
        raise ValueError("parameters_to_vector needs one parameter at least.")
    vector = oar.concat(pieces, axis=0)
    vector.stop_gradient = False
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor], name: str | None = None) -> None:
    """Copy consecutive pieces of ``vec`` into the parameters.

    Args:
        vec: the vector.
        parameters: the parameters.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> nn.utils.vector_to_parameters(oar.to_tensor([1.0, 2.0, 3.0]), net.parameters())
        >>> net.weight.tolist(), net.bias.tolist()
        ([[1.0], [2.0]], [3.0])
    """
    parameters = list(parameters)
    wanted = sum(math.prod(parameter.shape) for parameter in parameters)
    if math.prod(vec.shape) != wanted:
        raise ValueError(
            f"The vector holds {math.prod(vec.shape)} elements, but the parameters hold {wanted}."
        )
    position = 0
    with oar.no_grad():
        flat = vec.detach()
        for parameter in parameters:
            size = math.prod(parameter.shape)
            piece = flat[position : position + size]
            parameter.set_value(piece.reshape(list(parameter.shape)))
            position += size
