"""Which worker this is, under Paddle's inner path."""

from oar.io._worker import get_worker_info

__all__ = ["get_worker_info"]
