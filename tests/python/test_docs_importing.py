"""The code of the page on models of other frameworks runs."""

import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pt2_files as pt2
import tensorflow_files as tf
import torchscript_files as ts
from test_docs import fences, run
from test_interop_caffe import layer, weights
from test_interop_gguf import gguf, text
from test_interop_tensorflow import W, write_web_model
from test_torch_files import DATA


def write_models_of_tensorflow(folder):
    graph = tf.graph([tf.placeholder("image", 2, 4), tf.const("axis", np.int32(1)), tf.node("block/conv", "Relu", "image"),
                      tf.node("split", "Split", "axis", "block/conv", num_split=2), tf.node("y", "AddV2", "split", "split:1")])
    (folder / "frozen.pb").write_bytes(graph)
    signature = ({"image": ("image:0", (2, 4))}, {"y": "y:0"})
    tf.write_saved_model(folder / "saved_model", tf.saved_model(graph, {"serving_default": signature, "other_signature": signature}))
    (folder / "web_model").mkdir()
    write_web_model(folder / "web_model", W.tobytes(), {})


def classifier_of_torch():
    nodes = [pt2.node("mean.dim", {"self": pt2.Ref("x"), "dim": [2, 3]}, "means"),
             pt2.node("linear.default", {"input": pt2.Ref("means"), "weight": pt2.Ref("w_fc.weight")}, "y")]
    return pt2.archive(nodes, {"x": ([-1, 3, 224, 224], "float32")}, [pt2.Ref("y")], {"fc.weight": np.ones((10, 3), "float32")})


def classifier_of_torchscript():
    code = ts.forward("fc = self.fc\nweight = fc.weight\nreturn torch.linear(torch.mean(x, [2, 3]), weight)", fields="fc : __torch__.Linear")
    code += 'class Linear(Module):\n  __parameters__ = ["weight", ]\n  __buffers__ = []\n  weight : Tensor\n'
    return ts.archive(code, {"fc": ts.Object("__torch__.Linear", weight=np.ones((10, 3), "float32"))})


def test_python_of_the_page_on_importing(tmp_path):
    net = "input: 'data' input_dim: [1, 3, 224, 224]" + layer("Pooling", "pooling_param { pool: AVE global_pooling: true }", ["data"], ["prob"])
    (tmp_path / "deploy.prototxt").write_text(net)
    (tmp_path / "net.caffemodel").write_bytes(weights({"l": [np.zeros(1)]}))
    for name in ("mobilenet_v2.pth", "checkpoint.pt"):
        shutil.copy(DATA / "torch_zip.pt", tmp_path / name)
    (tmp_path / "model.gguf").write_bytes(gguf([("general.architecture", 8, text("llama"))], [("token_embd.weight", (1, 32), 8, bytes(34))]))
    write_models_of_tensorflow(tmp_path)
    (tmp_path / "net.pt2").write_bytes(classifier_of_torch())
    (tmp_path / "net.pt").write_bytes(classifier_of_torchscript())
    with zipfile.ZipFile(Path(__file__).parent / "data" / "keras_models.zip") as keras:
        (tmp_path / "net.keras").write_bytes(keras.read("sequence_3.keras"))
        (tmp_path / "net.h5").write_bytes(keras.read("sequence_2.h5"))
    (tmp_path / "page.py").write_text("\n".join(fences("docs/importing.md", "python")))
    printed = run(sys.executable, "page.py", cwd=tmp_path)
    assert "['data'] {'data': [1, 3, 224, 224]} ['prob']" in printed
    assert "mean(" in printed
    assert "llama Q8_0" in printed
