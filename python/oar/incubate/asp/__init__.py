"""Weights with at least n zeros among each m neighbours, which some GPUs multiply faster; and training that keeps them."""

from oar.incubate.asp.prune import add_supported_layer, prune_model, reset_excluded_layers, set_excluded_layers
from oar.incubate.asp.train import decorate
from oar.incubate.asp.masks import calculate_density

__all__ = [
    "add_supported_layer",
    "calculate_density",
    "decorate",
    "prune_model",
    "reset_excluded_layers",
    "set_excluded_layers",
]
