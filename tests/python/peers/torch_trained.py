"""Modules of PyTorch with the weights of packages, in the folder OAR_FOREIGN_MODELS (`real_models.py`)."""

import os
import sys
from pathlib import Path

import torch


def _mobilenet(folder):
    from torchvision import models

    path, = folder.rglob("mobilenet_v2-b0353104.pth")
    net = models.mobilenet_v2(weights=None)
    net.load_state_dict(torch.load(path, weights_only=True))
    return net, lambda n: [torch.rand(n, 3, 224, 224) * 4 - 2]


def _faces(name, size):
    def make(folder):
        sys.path.insert(0, str(folder / "facenet-pytorch" / "facenet_pytorch"))
        from models import mtcnn

        return getattr(mtcnn, name)(), lambda n: [torch.rand(n, 3, size, size) * 2 - 1]

    return make


TRAINED = {"trained_mobilenet_v2": _mobilenet, "trained_pnet": _faces("PNet", 48), "trained_rnet": _faces("RNet", 24), "trained_onet": _faces("ONet", 48)}


def trained(name):
    """The network, and inputs for a batch of n."""
    return TRAINED[name](Path(os.environ["OAR_FOREIGN_MODELS"]))
