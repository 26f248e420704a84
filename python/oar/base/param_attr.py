"""``ParamAttr`` under its other path."""

from oar.framework import ParamAttr

__all__ = ["ParamAttr"]
