"""Runs a model in the framework that its format belongs to. A program of its own: two frameworks in one process can disturb each other.

``python _peer.py FORMAT MODEL INPUTS.npz OUTPUTS.npz NAME ...``. Inputs are called ``0``, ``1``, ... in the order of the model, and NAME
are their names in it; outputs are called by their places, too. Ends with status 3 if the framework is not installed.
"""

import importlib
import os
import sys

import numpy as np


def run_onnx(module, path, names, arrays):
    session = module.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays)))


def run_tflite(module, path, names, arrays):
    interpreter = module.Interpreter(model_path=path)
    ports = interpreter.get_input_details()
    for port, array in zip(ports, arrays):
        interpreter.resize_tensor_input(port["index"], array.shape)
    interpreter.allocate_tensors()
    for port, array in zip(ports, arrays):
        interpreter.set_tensor(port["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(port["index"]) for port in interpreter.get_output_details()]


def run_paddle(module, path, names, arrays):
    config = module.Config(path, os.path.splitext(path)[0] + ".pdiparams")
    config.disable_glog_info()
    predictor = module.create_predictor(config)
    for name, array in zip(names, arrays):
        predictor.get_input_handle(name).copy_from_cpu(np.ascontiguousarray(array))
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


PEERS = {
    "onnx": (("onnxruntime",), run_onnx),
    "tflite": (("ai_edge_litert.interpreter", "tflite_runtime.interpreter", "tensorflow.lite.python.interpreter"), run_tflite),
    "paddle": (("paddle.inference",), run_paddle),
    "paddle-pir": (("paddle.inference",), run_paddle),
}


def main(format_, path, inputs, outputs, *names):
    modules, run = PEERS[format_]
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        given = np.load(inputs)
        made = run(module, path, names, [given[str(i)] for i in range(len(names))])
        np.savez(outputs, **{str(i): np.asarray(array) for i, array in enumerate(made)})
        return 0
    return 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
