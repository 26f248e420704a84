"""How a tensor gets into another process: as a copy of its elements, with what ``backward`` needs to know."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from oar._C import Tensor
from oar.framework.io import array_to_tensor, tensor_to_array
from oar.framework.parameter import EagerParamBase

__all__ = ["init_reductions"]


def _rebuilt(array: np.ndarray, dtype: str, stop_gradient: bool) -> Tensor:
    tensor = array_to_tensor(array, dtype)
    tensor.stop_gradient = stop_gradient
    return tensor


def _rebuilt_parameter(array: np.ndarray, dtype: str, trainable: bool, name: str) -> Tensor:
    parameter = EagerParamBase(shape=list(array.shape), dtype=dtype, name=name, trainable=trainable)
    parameter.set_value(array_to_tensor(array, dtype))
    return parameter


def _reduced(tensor: Tensor) -> tuple[Any, ...]:
    if not tensor.stop_gradient and not tensor.is_leaf:
        raise RuntimeError("[multiprocessing] a tensor that was computed with gradients cannot go to another process; "
                           "send tensor.detach().")
    array, dtype = tensor_to_array(tensor), str(tensor.dtype).rpartition(".")[2]
    if isinstance(tensor, EagerParamBase):
        return _rebuilt_parameter, (array, dtype, not tensor.stop_gradient, tensor.name)
    return _rebuilt, (array, dtype, tensor.stop_gradient)


def init_reductions() -> None:
    """From now on queues, pipes and arguments of processes take tensors and parameters."""
    ForkingPickler.register(Tensor, _reduced)
    ForkingPickler.register(EagerParamBase, _reduced)
