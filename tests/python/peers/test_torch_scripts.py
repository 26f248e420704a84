"""TorchScript archives against PyTorch. OAR_TORCH is a Python with torch and torchvision; without it nothing is compared.

OAR_TORCH_MODELS=all takes every network of torchvision that is listed here; otherwise a few small ones. OAR_FOREIGN_MODELS is a folder with files of
packages: silero_vad.jit of silero-vad, model.pt and bbox_model.pt of deepbet."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oar

SIDE = Path(__file__).with_name("torch_scripts.py")
FEW = ["flow", "decides", "keeps", "writes", "buffer", "resizes", "lstm", "gru", "encoder", "losses", "resnet18", "mobilenet_v3_small", "squeezenet1_1"]
ALL = [
    *FEW, "alexnet", "vgg11_bn", "resnet50", "resnext50_32x4d", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "efficientnet_v2_s",
    "convnext_tiny", "densenet121", "shufflenet_v2_x1_0", "mnasnet0_5", "regnet_y_400mf", "swin_t", "swin_v2_t", "vit_b_16", "googlenet",
    "inception_v3", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50",
]


def compare(name, tmp_path):
    python = os.environ.get("OAR_TORCH")
    if not python:
        pytest.skip("OAR_TORCH is not set")
    done = subprocess.run([python, "-W", "ignore", str(SIDE), name, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    results = pickle.loads((tmp_path / "results.pkl").read_bytes())
    assert results, done.stdout
    worst = 0.0
    for kind, calls in results.items():
        path = tmp_path / f"{kind}.pt"
        assert oar.interop.guess(path)[:2] == ("torchscript", "model")
        model = oar.interop.load_torch(path)
        for number, (args, kwargs, wanted) in enumerate(calls):
            got = model(*args, **kwargs)
            assert len(got) == len(wanted) == len(model.outputs), (kind, model.outputs)
            for ours, theirs, output in zip(got, wanted, model.outputs, strict=True):
                ours = ours.numpy()
                if theirs.shape or theirs.dtype != "float64":  # numbers are tensors of float32 here
                    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), (kind, number, output)
                if not theirs.size:
                    continue
                difference = np.abs(ours.astype("float64") - theirs.astype("float64")).max() / max(np.abs(theirs.astype("float64")).max(), 1e-6)
                assert difference <= 1e-5, (kind, number, output, difference)
                worst = max(worst, difference)
    print(f"{name}: {' and '.join(results)}, difference {worst:.2g}", done.stdout.strip(), file=sys.stderr)


@pytest.mark.parametrize("name", ALL if os.environ.get("OAR_TORCH_MODELS") == "all" else FEW)
def test_script(name, tmp_path):
    compare(name, tmp_path)


@pytest.mark.parametrize("name", ["trained_mobilenet_v2", "trained_pnet", "trained_rnet", "trained_onet"])
def test_networks_of_packages(name, tmp_path):
    if not os.environ.get("OAR_FOREIGN_MODELS"):
        pytest.skip("OAR_FOREIGN_MODELS is not set")
    compare(name, tmp_path)


@pytest.mark.parametrize("file", ["silero_vad.jit", "deepbet/**/model.pt", "deepbet/**/bbox_model.pt"])
def test_archives_of_packages(file, tmp_path):
    folder = os.environ.get("OAR_FOREIGN_MODELS")
    found = sorted(Path(folder).rglob(file)) if folder else []
    if not found:
        pytest.skip(f"{file} is not in OAR_FOREIGN_MODELS")
    for path in found:
        compare(str(path), tmp_path)
