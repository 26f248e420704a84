"""Descriptions of a program's inputs."""

from oar.static.input_spec import InputSpec

__all__ = ["InputSpec"]
