"""Files of datasets, under Paddle's older path."""

from oar.dataset import common

__all__ = ["common"]
