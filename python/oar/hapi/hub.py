"""``oar.hub`` under its second path."""

from oar.hub import help, list, load, load_state_dict_from_url

__all__ = ["help", "list", "load", "load_state_dict_from_url"]
