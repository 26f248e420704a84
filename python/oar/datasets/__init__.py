"""Small datasets that come with the package, for examples and tests."""

from oar.datasets.digits import Digits

__all__ = ["Digits"]
