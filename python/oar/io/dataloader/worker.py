"""Which worker this is, under Paddle's inner path."""

from oar.io._worker_info import get_worker_info

__all__ = ["get_worker_info"]
