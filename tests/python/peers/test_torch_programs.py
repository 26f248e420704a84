"""Programs of torch.export against PyTorch. OAR_TORCH is a Python with torch and torchvision; without it nothing is compared.

OAR_TORCH_MODELS=all takes every network of torchvision that is listed here; otherwise a few small ones. OAR_FOREIGN_MODELS is a folder with the weights
of packages (`make test-models`)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oar

SIDE = Path(__file__).with_name("torch_programs.py")
FEW = ["lstm", "gru", "encoder", "bert", "losses", "writes", "resnet18", "mobilenet_v3_small", "squeezenet1_1"]
ALL = [
    *FEW, "alexnet", "vgg11_bn", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "densenet121",
    "shufflenet_v2_x1_0", "mnasnet0_5", "regnet_y_400mf", "swin_t", "swin_v2_t", "vit_b_16", "googlenet", "inception_v3",
    "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50",
]


TRAINED = ["trained_mobilenet_v2", "trained_pnet", "trained_rnet", "trained_onet"]


@pytest.mark.parametrize("name", [*(ALL if os.environ.get("OAR_TORCH_MODELS") == "all" else FEW), *TRAINED])
def test_exported(name, tmp_path):
    if name in TRAINED and not os.environ.get("OAR_FOREIGN_MODELS"):
        pytest.skip("OAR_FOREIGN_MODELS is not set")
    python = os.environ.get("OAR_TORCH")
    if not python:
        pytest.skip("OAR_TORCH is not set")
    done = subprocess.run([python, str(SIDE), name, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    results = dict(np.load(tmp_path / "results.npz"))

    def numbered(kind):
        return [results[f"{kind}_{i}"] for i in range(sum(key.startswith(f"{kind}_") for key in results))]

    worst = 0.0
    for file, batches in [("program", [2]), ("decomposed", [2]), ("open", [2, 3])]:
        path = tmp_path / f"{file}.pt2"
        if not path.exists():
            continue
        model = oar.interop.load_torch(path)
        for batch in batches:
            wanted = numbered(f"y{batch}")
            got = model(*numbered(f"x{batch}"))
            assert len(got) == len(wanted)
            for ours, theirs, output in zip(got, wanted, model.outputs, strict=True):
                ours = ours.numpy()
                assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), (file, output)
                difference = np.abs(ours.astype("float64") - theirs).max() / max(np.abs(theirs).max(), 1e-6)
                assert difference <= 1e-5, (file, batch, output, difference)
                worst = max(worst, difference)
    print(f"{name}: {'with' if (tmp_path / 'open.pt2').exists() else 'without'} an open batch, difference {worst:.2g}", file=sys.stderr)
