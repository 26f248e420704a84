"""Runs models in ONNX Runtime: for each `name.onnx` in a folder with `name.npz` it writes `name.out.npz`, or `name.error`."""

import sys
from pathlib import Path

import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.log_severity_level = 4
for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        given = np.load(path.with_suffix(".npz"))
        results = session.run(None, {port.name: given[port.name] for port in session.get_inputs()})
        np.savez(path.with_suffix(".out.npz"), **{str(i): np.asarray(result) for i, result in enumerate(results)})
    except Exception as error:  # the test tells
        path.with_suffix(".error").write_text(" ".join(str(error).split()))
