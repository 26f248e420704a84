"""Bad files of every format: `oar run`, `inspect` and `convert` end with status 2 and say which file it is and what is wrong."""

import io
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import zipfile

import numpy as np
import onnx_files as onnx
import pytest
import tensorflow_files as tf
import tflite_files as tflite
from command_models import COMMAND, write_inputs, write_models
from test_docs_importing import classifier_of_torch, classifier_of_torchscript, write_models_of_tensorflow
from test_interop_caffe import layer, weights
from test_interop_gguf import gguf
from test_interop_keras import MODELS as KERAS_MODELS

import oar

HUGE = 2**63 - 1

# The file that is damaged, by the kind that `oar inspect` calls it; and whether it is a model.
FORMATS = {"net.oar": True, "pair.pdmodel": True, "net.onnx": True, "pir.json": True, "legacy.pdmodel": True, "net.tflite": True, "frozen.pb": True,
           "web_model/model.json": True, "net.pt2": True, "script.pt": True, "net.keras": True, "net.h5": True, "deploy.prototxt": True,
           "batch.npz": False, "batch.npy": False, "w.safetensors": False, "w.gguf": False, "w.pdparams": False}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    net = write_models(folder)
    write_inputs(folder)
    oar.inference.paddle.save(net, folder / "legacy", [oar.static.InputSpec(["batch", 3, 32, 32], "float32", "image")], legacy=True)
    write_models_of_tensorflow(folder)
    (folder / "net.pt2").write_bytes(classifier_of_torch())
    (folder / "script.pt").write_bytes(classifier_of_torchscript())
    for source, name in (("sequence_3.keras", "net.keras"), ("sequence_2.h5", "net.h5")):
        (folder / name).write_bytes(KERAS_MODELS.read(source))
    (folder / "net.tflite").write_bytes(tflite.model([(0, [0, 1], [2], {0: 1})], [tflite.tensor("x", (2, 3)), np.ones(3, "float32"), tflite.tensor("y", (2, 3))],
                                                     [0], [2]))
    text = "input: 'data' input_dim: [1, 3, 4, 4]" + layer("Pooling", "pooling_param { pool: AVE global_pooling: true }", ["data"], ["prob"])
    (folder / "deploy.prototxt").write_text(text)
    (folder / "deploy.caffemodel").write_bytes(weights({"l": [np.zeros(1)]}))
    oar.save({"w": oar.ones([2, 3])}, str(folder / "w.safetensors"))
    oar.save({"w": oar.ones([2, 3])}, str(folder / "w.pdparams"))
    (folder / "w.gguf").write_bytes(gguf([], [("w", (1, 32), 8, bytes(34))]))
    return folder


def called(*words, cwd, gigabytes=4):
    """The command, in a process that may not have more memory than this: a file that claims more must not get it."""
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))

    return subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=120, preexec_fn=limited,
                          env={**os.environ, "OAR_PYTHON": sys.executable})


def refused(path, cwd, parts=(), commands=("run", "inspect", "convert")):
    """All commands refuse it, and name the file."""
    for command in commands:
        more = {"run": ["--random"], "convert": ["made.onnx"], "inspect": []}[command]
        done = called(command, path, *more, cwd=cwd)
        told = done.stderr
        assert done.returncode == 2, (command, path, done.returncode, done.stdout[-300:], told[-300:])
        assert told.startswith("oar: ") and "Traceback" not in told and "internal" not in told.lower(), (command, told)
        assert os.path.basename(str(path)).split(".")[0] in told, (command, told)
        for part in parts:
            assert part in told, (command, part, told)
        assert not os.path.exists(os.path.join(cwd, "made.onnx"))


@pytest.fixture
def folder(good, tmp_path):
    shutil.copytree(good, tmp_path / "models")
    return tmp_path / "models"


def test_the_good_files_are_read(good, tmp_path):
    for path, is_model in FORMATS.items():
        done = called("inspect", path, cwd=good)
        assert done.returncode == 0, (path, done.stderr)
        if is_model:
            shape = ["--shape", "x=2,3,4,4"] if path in ("net.pt2", "script.pt") else []
            shape = ["--shape", "x=2,3,224,224"] if path == "net.pt2" else shape
            done = called("run", path, "--random", *shape, cwd=good)
            assert done.returncode == 0, (path, done.stderr)


@pytest.mark.parametrize("path", FORMATS)
def test_a_file_that_is_not_there(path, tmp_path):
    refused(path, tmp_path, ["there is no file"])


@pytest.mark.parametrize("path", FORMATS)
def test_a_folder_instead_of_a_file(path, tmp_path):
    (tmp_path / path).mkdir(parents=True)
    refused(path, tmp_path, ["folder"])


@pytest.mark.parametrize("path", FORMATS)
def test_an_empty_file(folder, path):
    (folder / path).write_bytes(b"")
    refused(path, folder)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("path", FORMATS)
def test_a_truncated_file(folder, path, part):
    content = (folder / path).read_bytes()
    (folder / path).write_bytes(content[: int(len(content) * part)])
    if part > 0.5 and path in ("deploy.prototxt", "w.gguf"):
        return  # the text may end between two fields, and the last bytes of the other are filling
    refused(path, folder)


@pytest.mark.parametrize("path", FORMATS)
def test_a_file_of_another_kind_says_which(folder, path):
    shutil.copy(folder / "photo.png", folder / path)
    refused(path, folder, ["a PNG image"], ["run", "inspect"])


@pytest.mark.parametrize("name, content, parts", [
    ("net.oar", lambda old: old[:8] + struct.pack("<H", 2) + old[10:], ["version 2.0", "reads version 1"]),
    ("batch.npy", lambda old: old[:6] + b"\x09\0" + old[8:], ["batch.npy"]),
    ("w.gguf", lambda old: old[:4] + struct.pack("<I", 99) + old[8:], ["version 99"]),
    ("pair.pdmodel", lambda old: old.replace(b'"version": 1', b'"version": 7', 1), ["version 7"]),
    ("net.onnx", lambda old: onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.port("x", [2])], ["y"]) + onnx.field(8, onnx.field(2, 999)), ["999"]),
    ("net.onnx", lambda old: onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.port("x", [2])], ["y"]) + onnx.field(1, 999), ["999"]),
    ("pir.json", lambda old: old.replace(b'"version":1', b'"version":99', 1), ["version 99"]),
])
def test_a_newer_version(folder, name, content, parts):
    (folder / name).write_bytes(content((folder / name).read_bytes()))
    refused(name, folder, parts, ["run" if FORMATS[name] else "inspect"])


def onnx_with(sizes, data=b"\0" * 16):
    stored = b"".join(onnx.field(1, s) for s in sizes) + onnx.field(2, 1) + onnx.field(8, "w") + onnx.field(9, data)
    graph = onnx.field(1, onnx.node("Add", ["x", "w"], ["y"])) + onnx.field(5, stored) + onnx.field(11, onnx.port("x", [2])) + onnx.field(12, onnx.port("y"))
    return onnx.field(1, 8) + onnx.field(7, graph) + onnx.field(8, onnx.field(2, 17))


def safetensors_with(sizes):
    header = json.dumps({"w": {"dtype": "F32", "shape": sizes, "data_offsets": [0, 16]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(16)


def npy_with(sizes):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({', '.join(map(str, sizes))},), }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(16)


def npz_with(sizes):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", npy_with(sizes))
    return made.getvalue()


def tflite_with(sizes):
    tensor = tflite.tensor("x", (2, 3))
    tensor[0] = np.int32(sizes)
    return tflite.model([(0, [0, 0], [1], {0: 1})], [tensor, tflite.tensor("y", (2, 3))], [0], [1])


def tensorflow_with(sizes):
    shape = b"".join(tf.field(2, tf.field(1, size)) for size in sizes)
    value = tf.field(8, tf.field(1, 1) + tf.field(2, shape) + tf.field(5, b"\0" * 4))
    const = tf.field(1, "w") + tf.field(2, "Const") + tf.field(5, tf.field(1, "value") + tf.field(2, value)) + tf.field(
        5, tf.field(1, "dtype") + tf.field(2, tf.field(6, 1)))
    return tf.graph([tf.placeholder("x", 2), const, tf.node("y", "AddV2", "x", "w")])


SIZES = {"huge": [HUGE], "a product beyond 64 bits": [2**32, 2**32, 2], "negative": [-2, 2]}
HOLDERS = {"net.onnx": onnx_with, "w.safetensors": safetensors_with, "batch.npy": npy_with, "batch.npz": npz_with, "frozen.pb": tensorflow_with,
           "net.tflite": tflite_with}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("path", HOLDERS)
def test_sizes_that_no_file_has(folder, path, sizes):
    if path == "net.tflite" and sizes != "negative":
        pytest.skip("its sizes have 32 bits")
    (folder / path).write_bytes(HOLDERS[path](SIZES[sizes]))
    refused(path, folder, commands=["run" if FORMATS[path] else "inspect"])


@pytest.mark.parametrize("shape", [[HUGE, 2], [-1, 4], [2**40, 2**40]])
def test_sizes_that_no_weight_of_an_oar_file_has(folder, shape):
    """Also if its checksums are right."""
    from oar import _C

    content = (folder / "net.oar").read_bytes()
    size = struct.unpack_from("<Q", content, 16)[0]
    header = json.loads(content[64 : 64 + size])
    header["tensors"]["conv2d_0.b_0" if "conv2d_0.b_0" in header["tensors"] else min(header["tensors"])]["shape"] = shape
    plain = json.dumps(header).encode().ljust(4096 - 64)
    preamble = content[:16] + struct.pack("<QQI", len(plain), 4096 + len(content) - -(-(64 + size) // 4096) * 4096, _C.crc32c(plain)) + bytes(24)
    made = preamble + struct.pack("<I", _C.crc32c(preamble)) + plain + content[-(-(64 + size) // 4096) * 4096 :]
    (folder / "net.oar").write_bytes(made)
    refused("net.oar", folder)


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "sub/../../secret", ""])
def test_data_outside_of_the_folder(folder, location):
    (folder.parent / "secret").write_bytes(bytes(8))
    stored = onnx.field(1, 2) + onnx.field(2, 1) + onnx.field(8, "w") + onnx.field(13, onnx.field(1, "location") + onnx.field(2, location)) + onnx.field(14, 1)
    graph = onnx.field(1, onnx.node("Add", ["x", "w"], ["y"])) + onnx.field(5, stored) + onnx.field(11, onnx.port("x", [2])) + onnx.field(12, onnx.port("y"))
    (folder / "net.onnx").write_bytes(onnx.field(1, 8) + onnx.field(7, graph) + onnx.field(8, onnx.field(2, 17)))
    refused("net.onnx", folder)


def test_weights_of_a_web_model_outside_of_its_folder(folder):
    path = folder / "web_model" / "model.json"
    model = json.loads(path.read_text())
    model["weightsManifest"][0]["paths"] = ["../../secret"]
    path.write_text(json.dumps(model))
    (folder.parent / "secret").write_bytes(bytes(4096))
    refused("web_model/model.json", folder, ["secret"])


@pytest.mark.parametrize("name, content", {
    "net.onnx": onnx.model([onnx.node("Add", ["x", "b"], ["a"]), onnx.node("Relu", ["a"], ["b"])], [onnx.port("x", [2])], ["b"]),
    "frozen.pb": tf.graph([tf.placeholder("x", 2), tf.node("a", "AddV2", "x", "b"), tf.node("b", "Relu", "a")]),
    "net.tflite": tflite.model([(0, [0, 2], [1], {0: 0}), (0, [1, 0], [2], {0: 0})], [tflite.tensor(n, (2, 3)) for n in "xab"], [0], [2]),
}.items())
def test_a_graph_that_reads_its_own_results(folder, name, content):
    (folder / name).write_bytes(content)
    refused(name, folder, commands=["run"])


@pytest.mark.parametrize("name", ["batch.npz", "net.pt2", "script.pt", "net.keras"])
def test_an_archive_that_would_fill_the_memory(folder, name):
    """Entries that claim, or have, far more bytes than the file."""
    with zipfile.ZipFile(folder / name) as archive:
        first = archive.namelist()[0]
        others = {n: archive.read(n) for n in archive.namelist()[1:]}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(first, bytes(64 << 20))
        for n, content in others.items():
            archive.writestr(n, content)
    (folder / name).write_bytes(made.getvalue())
    command = ["run", name, "--random"] if FORMATS[name] else ["inspect", name]
    assert called(*command, cwd=folder).returncode in (0, 2)  # an entry that nobody reads does no harm
    lying = bytearray(made.getvalue())
    at = lying.rfind(b"PK\1\2" + lying[lying.index(b"PK\1\2") + 4 : lying.index(b"PK\1\2") + 6])
    struct.pack_into("<I", lying, at + 24, 0xFFFFFFF0)
    (folder / name).write_bytes(bytes(lying))
    refused(name, folder, commands=["run" if FORMATS[name] else "inspect"])


@pytest.mark.parametrize("path", [p for p, is_model in FORMATS.items() if is_model])
@pytest.mark.parametrize("wrong", ["name", "dtype", "rank", "size"])
def test_inputs_that_do_not_fit(good, tmp_path, path, wrong):
    described = json.loads(called("inspect", path, "--json", cwd=good).stdout)["inputs"][0]
    shape = described["shape"]
    if wrong != "name" and shape is None or wrong == "size" and all(isinstance(s, str) for s in shape):
        pytest.skip("the file does not say")
    sizes = [2 if isinstance(s, str) else s for s in shape or [2, 3, 4, 4]]
    if wrong == "rank":
        sizes = [*sizes, 1]
    if wrong == "size":
        at = max(i for i, s in enumerate(shape) if not isinstance(s, str))
        sizes[at] += 1
    array = np.zeros(sizes, "int16" if wrong == "dtype" else described["dtype"] or "float32")
    np.save(tmp_path / "given.npy", array)
    name = "other" if wrong == "name" else described["name"]
    done = called("run", path, "--input", f"{name}={tmp_path / 'given.npy'}", cwd=good)
    assert done.returncode == 2 and done.stderr.startswith("oar: "), (done.returncode, done.stdout, done.stderr)
    assert described["name"] in done.stderr and ("given.npy" in done.stderr or wrong == "name"), done.stderr
