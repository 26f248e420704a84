"""Helpers for parameters and their gradients."""

from oar.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_
from oar.nn.utils.reparametrize import remove_weight_norm, spectral_norm, weight_norm
from oar.nn.utils.transform_parameters import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "remove_weight_norm",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
