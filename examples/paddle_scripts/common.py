"""What the scripts share: arguments, the same initial weights for every run, and the report."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable

import numpy as np
import paddle


def arguments(description: str | None, steps: int = 20) -> argparse.Namespace:
    """Read ``--steps``, ``--dtype`` and ``--weights``, and set the default dtype and all seeds."""
    parser = argparse.ArgumentParser(description=(description or "").strip().splitlines()[0])
    parser.add_argument("--steps", type=int, default=steps, help=f"updates of the parameters (default {steps})")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32", help="dtype of the parameters")
    parser.add_argument("--weights", default="", help="initial weights (.pdparams): read if the file exists, else written")
    args = parser.parse_args()
    paddle.set_default_dtype(args.dtype)
    paddle.seed(0)
    np.random.seed(0)
    return args


def same_start(path: str, **layers: paddle.nn.Layer) -> None:
    """Give the layers the weights in the file. If there is no file, write the weights that they have."""
    if not path:
        return
    if not os.path.exists(path):
        paddle.save({name: layer.state_dict() for name, layer in layers.items()}, path)
        return
    stored = paddle.load(path)
    for name, layer in layers.items():
        missing, unexpected = layer.set_state_dict(stored[name])
        assert not missing and not unexpected, f"{path} does not fit {name}: {missing} {unexpected}"


def report(losses: Iterable[float], **measures: float) -> None:
    """Print the losses of all steps, and other results, as one line of JSON."""
    results = {"losses": [float(loss) for loss in losses]}
    results.update({name: float(value) for name, value in measures.items()})
    print(json.dumps(results))
