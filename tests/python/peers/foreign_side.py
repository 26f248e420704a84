"""What other frameworks compute: runs in their environment. `foreign_side.py KIND IN.npz OUT.npz FILES...`; inputs are x0, x1, ..."""

import sys

import numpy as np


def caffe(inputs, prototxt, weights):
    import cv2

    net = cv2.dnn.readNetFromCaffe(prototxt, weights)
    net.setInput(inputs[0])
    return [net.forward()]


def tflite(inputs, path):
    from ai_edge_litert.interpreter import Interpreter

    net = Interpreter(path)
    for detail, array in zip(net.get_input_details(), inputs):
        net.resize_tensor_input(detail["index"], array.shape)
    net.allocate_tensors()
    for detail, array in zip(net.get_input_details(), inputs):
        net.set_tensor(detail["index"], array)
    net.invoke()
    return [net.get_tensor(detail["index"]) for detail in net.get_output_details()]


def torch(inputs, path):
    import torch

    def flat(value, name):
        if isinstance(value, torch.Tensor):
            value = value.detach()
            yield name, (value.float() if value.dtype == torch.bfloat16 else value).numpy()
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from flat(item, f"{name}/{key}")
        elif isinstance(value, (list, tuple)):
            for key, item in enumerate(value):
                yield from flat(item, f"{name}/{key}")

    return dict(flat(torch.load(path, map_location="cpu", weights_only=True), ""))


def gguf(inputs, path):
    from gguf import GGUFReader, dequantize

    return {t.name: dequantize(t.data, t.tensor_type).reshape(t.shape[::-1]) for t in GGUFReader(path).tensors}


def tensorflow(inputs, path, *names):
    import tensorflow as tf

    half = len(names) // 2
    graph_def = tf.compat.v1.GraphDef()
    with open(path, "rb") as file:
        graph_def.ParseFromString(file.read())
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.import_graph_def(graph_def, name="")
        feeds = {name if ":" in name else f"{name}:0": array for name, array in zip(names[:half], inputs)}
        return session.run([name if ":" in name else f"{name}:0" for name in names[half:]], feeds)


def main():
    kind, given, out, *files = sys.argv[1:]
    arrays = np.load(given)
    results = globals()[kind]([arrays[f"x{i}"] for i in range(len(arrays.files))], *files)
    np.savez(out, **(results if isinstance(results, dict) else {f"y{i}": array for i, array in enumerate(results)}))


main()
