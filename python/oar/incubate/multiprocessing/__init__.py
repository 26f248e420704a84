"""Python's ``multiprocessing``, whose queues and pipes carry tensors, too."""

from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as __all__

from oar.incubate.multiprocessing.reductions import init_reductions

init_reductions()
