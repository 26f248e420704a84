"""``python -m oar.distributed.launch script.py arguments ...``"""

from oar.distributed.launch.main import launch

launch()
