"""What the names of PyTorch become, by family. ``rules`` describes the rows."""

from __future__ import annotations

import functools

from oar.tools.from_torch.rules import Table, read
from oar.tools.from_torch.tables import functions, layers, methods, training

__all__ = ["MODULES"]

# Modules of PyTorch, and where their names are in Oar.
MODULES = {
    "torch": "oar",
    "torch.nn": "oar.nn",
    "torch.nn.functional": "oar.nn.functional",
    "torch.nn.init": "oar.nn.init",
    "torch.nn.utils": "oar.nn.utils",
    "torch.nn.utils.parametrizations": "oar.nn.utils",
    "torch.nn.utils.clip_grad": "oar.nn.utils",
    "torch.nn.parameter": "oar.nn",
    "torch.nn.modules": "oar.nn",
    "torch.optim": "oar.optimizer",
    "torch.optim.lr_scheduler": "oar.optimizer.lr",
    "torch.utils": "oar.utils",
    "torch.utils.data": "oar.io",
    "torch.utils.tensorboard": "oar.board",
    "torch.autograd": "oar.autograd",
    "torch.amp": "oar.amp",
    "torch.cuda": "oar.cuda",
    "torch.cuda.amp": "oar.amp",
    "torch.linalg": "oar.linalg",
    "torch.fft": "oar.fft",
    "torch.func": "oar.func",
    "torch.distributions": "oar.distribution",
    "torchvision": "oar.vision",
    "torchvision.datasets": "oar.vision.datasets",
    "torchvision.transforms": "oar.vision.transforms",
    "torchvision.models": "oar.vision.models",
    "tensorboardX": "oar.board",
}

_FAMILIES = {
    "torch": functions.TORCH,
    "torch.nn.functional": functions.FUNCTIONAL,
    "torch.linalg": functions.LINALG,
    "torch.fft": functions.FFT,
    "torch.cuda": functions.CUDA,
    "torch.func": functions.FUNC,
    "torch.autograd": functions.AUTOGRAD,
    "torch.nn.init": functions.INIT,
    "torch.nn": layers.LAYERS,
    "torch.optim": training.OPTIMIZERS,
    "torch.optim.lr_scheduler": training.SCHEDULES,
    "torch.amp": training.AMP,
    "torch.cuda.amp": training.CUDA_AMP,
    "torch.utils.data": training.DATA,
    "torch.distributions": training.DISTRIBUTIONS,
    "torch.utils.tensorboard": training.BOARD,
    "tensorboardX": training.BOARD,
    "torchvision.datasets": training.VISION_DATASETS,
    "torchvision.transforms": training.VISION_TRANSFORMS,
    "torchvision.models": training.VISION_MODELS,
}
_OTHER_HOMES = {"torch.nn.parameter": "torch.nn", "torch.nn.modules": "torch.nn", "torch.nn.utils.clip_grad": "torch.nn.utils",
                "torch.utils.data.dataset": "torch.utils.data", "torch.utils.data.dataloader": "torch.utils.data",
                "torch.utils.data.sampler": "torch.utils.data", "torch.autograd.function": "torch.autograd",
                "torch.autograd.variable": "torch.autograd"}


def usual_path(path: str) -> str:
    """The path under which the tables have a name.

    Args:
        path: a path of PyTorch.
    """
    home, _, name = path.rpartition(".")
    return f"{_OTHER_HOMES[home]}.{name}" if home in _OTHER_HOMES else path


@functools.lru_cache(maxsize=None)
def table() -> Table:
    """The rows of all names that are reached by a path."""
    made = Table()
    for home, rows in _FAMILIES.items():
        read(rows, home, MODULES[home], made)
    return made


@functools.lru_cache(maxsize=None)
def method_table(kind: str) -> Table:
    """The rows of the methods of a kind of object.

    Args:
        kind: ``certain``, ``tensor``, ``optimizer``, ``schedule``, ``module`` or ``scaler``.
    """
    made = Table()
    read(getattr(methods, kind.upper()), kind, "", made)
    return made
