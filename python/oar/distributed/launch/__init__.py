"""The command ``python -m oar.distributed.launch script.py``, and the function behind it."""

from oar.distributed.launch.main import launch

__all__ = ["launch"]
