"""Models of Keras: their files against what Keras computed, and files that are wrong."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import oar

MODELS = zipfile.ZipFile(Path(__file__).parent / "data" / "keras_models.zip")  # `make_keras_models.py` made it
NAMES = sorted(name for name in MODELS.namelist() if not name.endswith(".npz"))


def expected(name):
    with MODELS.open(name.rsplit(".", 1)[0] + ".npz") as file:
        arrays = dict(np.load(file))
    return [[arrays[f"{kind}{i}"] for i in range(sum(key[0] == kind for key in arrays))] for kind in "xy"]


def load(name, folder):
    return oar.interop.load(MODELS.extract(name, folder))


@pytest.mark.parametrize("name", NAMES)
def test_files_of_keras(name, tmp_path):
    inputs, outputs = expected(name)
    model = load(name, tmp_path)
    assert model.format == "keras"
    made = model(*inputs)
    assert len(made) == len(outputs) == len(model.outputs)
    for output, ours, theirs in zip(model.outputs, made, outputs):
        assert ours.numpy().shape == theirs.shape, output
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=2e-5, atol=2e-6, err_msg=output)


def test_there_are_files_of_every_kind():
    ends = {name[-len("2.keras"):] if name.endswith("keras") else name[-len("2.h5"):] for name in NAMES}
    assert ends == {"2.keras", "3.keras", "2.h5", "3.h5"} and len(NAMES) > 30


def test_a_program_keeps_the_names_of_layers_and_open_batches(tmp_path):
    model = load("sequence_3.keras", tmp_path)
    assert model.shapes[model.inputs[0]][1:] == [8, 8, 3]
    inputs, outputs = expected("sequence_3.keras")
    program = model.program(*inputs)
    names = {name for name, *_ in program.states()}
    assert {"conv2d_kernel", "batch_normalization_gamma", "dense_bias"} <= names
    once, = model(inputs[0][:1])
    np.testing.assert_allclose(once.numpy(), outputs[0][:1], rtol=2e-5, atol=2e-6)


def test_models_are_converted(tmp_path):
    source = MODELS.extract("sequence_2.h5", tmp_path)
    inputs, outputs = expected("sequence_2.h5")
    oar.interop.convert(source, str(tmp_path / "net.oar"))
    made, = oar.interop.load(str(tmp_path / "net.oar"))(*inputs)
    np.testing.assert_allclose(made.numpy(), outputs[0], rtol=2e-5, atol=2e-6)


def test_dictionaries_name_inputs_and_outputs(tmp_path):
    model = load("nested_3.keras", tmp_path)
    assert model.inputs == ["a", "b"] and model.outputs == ["inner", "many", "sum"]


def test_weights_alone_are_loaded(tmp_path):
    path = MODELS.extract("sequence_2.h5", tmp_path)
    weights = oar.load(path)
    kernels = [tensor.shape for name, tensor in weights.items() if name.endswith("/kernel")]
    assert sorted(kernels) == [[3, 3, 3, 4], [36, 5]]
    assert all(isinstance(array, np.ndarray) for array in oar.load(path, return_numpy=True).values())


def test_weights_of_an_archive_are_a_file_of_tensors(tmp_path):
    with zipfile.ZipFile(MODELS.extract("sequence_3.keras", tmp_path)) as archive:
        archive.extract("model.weights.h5", tmp_path)
    path = str(tmp_path / "model.weights.h5")
    assert oar.interop.guess(path)[:2] == ("hdf5", "tensors")
    assert "layers/dense/vars/0" in oar.load(path)
    with pytest.raises(NotImplementedError, match="no architecture"):
        oar.interop.load_keras(path)


# ---- TensorFlow.js -------------------------------------------------------------------------------


def web_model(folder, layers, weights, *, packed=None):
    """A sequence of layers; weights are arrays by name, or bytes of their quantised form."""
    manifest = [{"name": name, "shape": list(array.shape), "dtype": "float32"} | (packed or {}).get(name, {}) for name, array in weights.items()]
    (folder / "weights.bin").write_bytes(b"".join(array.tobytes() for array in weights.values()))
    topology = {"keras_version": "2.9.0", "model_config": {"class_name": "Sequential", "config": {"name": "s", "layers": layers}}}
    file = {"format": "layers-model", "modelTopology": topology, "weightsManifest": [{"paths": ["weights.bin"], "weights": manifest}]}
    (folder / "model.json").write_text(json.dumps(file))
    return str(folder / "model.json")


def dense(name, **config):
    return {"class_name": "Dense", "config": {"name": name, "units": 3, "activation": "linear", "use_bias": True, **config}}


def test_layers_of_tensorflow_js(tmp_path):
    chance = np.random.default_rng(0)
    kernel, bias = chance.standard_normal((4, 3)).astype("float32"), chance.standard_normal(3).astype("float32")
    # Weights are found by name, in whatever order they stand.
    path = web_model(tmp_path, [dense("d", batch_input_shape=[None, 4], activation="relu")], {"d/bias": bias, "d/kernel": kernel})
    x = chance.standard_normal((2, 4)).astype("float32")
    for load_model in (oar.interop.load, oar.interop.load_tensorflow, oar.interop.load_keras):
        y, = load_model(path)(x)
        np.testing.assert_allclose(y.numpy(), np.maximum(x @ kernel + bias, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stored", ["uint8", "uint16", "float16"])
def test_quantised_weights_of_layers(stored, tmp_path):
    chance = np.random.default_rng(1)
    kernel = chance.integers(0, 200, (4, 3)).astype(stored)
    how = {"dtype": stored} | ({} if stored == "float16" else {"scale": 0.01, "min": -0.7})
    real = kernel.astype("float32") * (1 if stored == "float16" else 0.01) - (0 if stored == "float16" else 0.7)
    path = web_model(tmp_path, [dense("d", batch_input_shape=[None, 4], use_bias=False)], {"d/kernel": kernel}, packed={"d/kernel": {"quantization": how}})
    x = chance.standard_normal((2, 4)).astype("float32")
    np.testing.assert_allclose(oar.interop.load(path)(x)[0].numpy(), x @ real, rtol=1e-4, atol=1e-4)


def test_weights_outside_of_the_folder_are_refused(tmp_path):
    path = web_model(tmp_path, [dense("d", batch_input_shape=[None, 4], use_bias=False)], {"d/kernel": np.zeros((4, 3), "float32")})
    text = Path(path).read_text().replace("weights.bin", "../weights.bin")
    Path(path).write_text(text)
    with pytest.raises(ValueError, match="outside of its folder"):
        oar.interop.load(path)


# ---- files that are wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("layers, weights, message", [
    ([{"class_name": "Lambda", "config": {"name": "l", "batch_input_shape": [None, 2], "function": "4wEAAAA="}}], {}, "layers that Oar cannot import yet: Lambda"),
    ([dense("d", batch_input_shape=[None, 4])], {}, "no weight 'kernel'"),
    ([dense("d", batch_input_shape=[None, 4], activation="wobble", use_bias=False)], {"d/kernel": np.zeros((4, 3), "float32")}, "activation 'wobble'"),
    ([dense("d", batch_input_shape=[None, 4]), dense("d")], {}, "two layers 'd'"),
    ([{"class_name": "ZeroPadding2D", "config": {"name": "z", "batch_input_shape": [None, 4], "padding": 1}}], {}, "input has 2 axes"),
    ([{"class_name": "Reshape", "config": {"name": "r", "batch_input_shape": [None, 4], "target_shape": [-1, -1]}}], {}, "several of its sizes"),
])
def test_models_that_cannot_run(layers, weights, message, tmp_path):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        model = oar.interop.load_keras(web_model(tmp_path, layers, weights))
        model(np.zeros([2, 4], "float32"))


def test_a_subclassed_model_says_what_to_do(tmp_path):
    path = web_model(tmp_path, [], {})
    file = json.loads(Path(path).read_text())
    file["modelTopology"]["model_config"] = {"class_name": "MyModel", "config": {"units": 3}}
    Path(path).write_text(json.dumps(file))
    with pytest.raises(NotImplementedError, match="class of its own"):
        oar.interop.load_keras(path)


@pytest.mark.parametrize("name", ["sequence_2.h5", "sequence_3.keras"])
def test_damaged_files_are_errors(name, tmp_path):
    content = MODELS.read(name)
    inputs, _ = expected(name)
    chance = np.random.default_rng(2)
    path = tmp_path / name
    wrong = [content[:size] for size in (0, 8, 40, 700, len(content) // 2, len(content) - 1)]
    for _ in range(150):
        bytes_ = bytearray(content)
        for place in chance.integers(0, len(bytes_), 3):
            bytes_[place] = chance.integers(0, 256)
        wrong.append(bytes(bytes_))
    failed = 0
    for bytes_ in wrong:
        path.write_bytes(bytes_)
        try:
            oar.interop.load_keras(path)(*inputs)
        except (ValueError, NotImplementedError, MemoryError, IndexError, FileNotFoundError):
            failed += 1
    assert failed >= 6
