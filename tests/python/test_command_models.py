"""`oar run`, `bench`, `inspect`, `convert`, `completion` on models of every format."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from command_models import run, write_inputs, write_integer_model, write_models
from test_interop_caffe import layer, weights
from test_docs_importing import classifier_of_torch, classifier_of_torchscript, write_models_of_tensorflow

import oar


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    net = write_models(made)
    batch, pixels = write_inputs(made)
    return made, net, batch, pixels


FORMATS = {"net.oar": "oar", "pair": "oar-program", "net.onnx": "onnx", "pir": "paddle-pir", "pir.json": "paddle-pir"}


@pytest.mark.parametrize("path", FORMATS)
def test_run_gives_the_numbers_of_the_network(models, path, tmp_path):
    folder, net, batch, _ = models
    report = json.loads(run("run", path, "--input", "batch.npy", "--output", tmp_path / "out.npz", "--json", cwd=folder))
    assert report["format"] == FORMATS[path]
    (output,) = report["outputs"]
    expected = net(oar.to_tensor(batch)).numpy()
    assert output["shape"] == [2, 6] and output["dtype"] == "float32" and output["not_finite"] == 0
    np.testing.assert_allclose(np.reshape(output["values"], [2, 6]), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose([output["min"], output["mean"], output["max"]], [expected.min(), expected.mean(), expected.max()], rtol=1e-4)
    assert [[score["index"] for score in row] for row in output["top"]] == np.argsort(-expected, axis=1)[:, :5].tolist()
    (written,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_allclose(written, expected, rtol=1e-4, atol=1e-6)


def test_run_takes_inputs_of_every_kind(models, tmp_path):
    folder, net, batch, pixels = models
    expected = net(oar.to_tensor(batch)).numpy()
    (tmp_path / "rows.json").write_text(json.dumps(batch.tolist()))
    (tmp_path / "named.json").write_text(json.dumps({"image": batch.tolist()}))
    np.save(tmp_path / "wide.npy", batch.astype("float64"))
    for words in (["image=batch.npz"], ["batch.npz"], [tmp_path / "rows.json"], [tmp_path / "named.json"], ["image=batch.npy", "--threads", "1"],
                  [tmp_path / "wide.npy", "--cast"]):
        out = tmp_path / "made"
        run("run", "net.oar", "--input", *words, "--output", out, cwd=folder)
        np.testing.assert_allclose(np.load(out / "output_0.npy"), expected, rtol=1e-5, atol=1e-6)
    mean, std = np.float32([0.4, 0.5, 0.6]), np.float32([0.2, 0.3, 0.4])
    for words, image in (([], pixels / 255.0), (["--bgr"], pixels[..., ::-1] / 255.0), (["--scale", "1"], pixels * 1.0)):
        run("run", "net.oar", "--input", "photo.png", "--mean", "0.4,0.5,0.6", "--std", "0.2,0.3,0.4", *words, "--output", tmp_path / "i.npy",
            cwd=folder)
        plain = net(oar.to_tensor(((image - mean) / std).astype("float32").transpose(2, 0, 1)[None])).numpy()
        np.testing.assert_allclose(np.load(tmp_path / "i.npy"), plain, rtol=1e-4, atol=1e-4)
    run("run", "net.oar", "--input", "photo.png", "--input", "photo.png", "--output", tmp_path / "two.npy", cwd=folder)
    two = np.load(tmp_path / "two.npy")
    assert two.shape == (2, 6) and (two[0] == two[1]).all()


def test_run_shows_scores_by_their_labels(models):
    folder, net, _, pixels = models
    shown = run("run", "net.onnx", "--input", "photo.png", "--labels", "labels.txt", cwd=folder)
    best = int(net(oar.to_tensor((pixels / 255).astype("float32").transpose(2, 0, 1)[None])).argmax())
    assert f"output_0: largest class {best} " in shown and "float32[1, 6]" in shown and "\033" not in shown


def test_random_inputs(models, tmp_path):
    folder = models[0]
    one, same, other = (run("run", "net.oar", "--random", *words, cwd=folder) for words in ([], ["--seed", "0"], ["--seed", "1"]))
    assert one == same != other and "float32[1, 6]" in one
    assert "float32[5, 6]" in run("run", "net.onnx", "--random", "--shape", "image=5,3,32,32", cwd=folder)
    write_integer_model(tmp_path)
    assert "float32[7, 3]" in run("run", "embed.onnx", "--random", "--shape", "7", cwd=tmp_path)


def test_run_says_when_nothing_is_finite(tmp_path):
    oar.jit.save(lambda x: x * float("nan"), str(tmp_path / "nan.oar"), input_spec=[oar.static.InputSpec([2], "float32", "x")])
    assert "2 of 2 are NaN or infinite" in run("run", "nan.oar", "--random", cwd=tmp_path, status=1)


def test_caffe_is_two_files(tmp_path):
    net = "input: 'data' input_dim: [1, 3, 4, 4]" + layer("Pooling", "pooling_param { pool: AVE global_pooling: true }", ["data"], ["prob"])
    (tmp_path / "deploy.prototxt").write_text(net)
    assert "--weights" in run("run", "deploy.prototxt", "--random", cwd=tmp_path, status=2)
    (tmp_path / "other.caffemodel").write_bytes(weights({"l": [np.zeros(1)]}))
    plain = run("run", "deploy.prototxt", "--random", cwd=tmp_path)
    assert "prob" in plain and "float32[1, 3, 1, 1]" in plain
    assert plain == run("run", "other.caffemodel", "--random", cwd=tmp_path)
    assert plain == run("run", ".", "--random", cwd=tmp_path)
    assert "4096" not in run("convert", "deploy.prototxt", "c.oar", "--compare", cwd=tmp_path)
    assert oar.interop.load(tmp_path / "c.oar").shapes == {"data": [1, 3, 4, 4]}


@pytest.mark.parametrize("words, parts", [
    (["run", "no.onnx"], ["no.onnx", "no.onnx.oar"]),
    (["run", "net.onnx"], ["image: float32[batch, 3, 32, 32]", "--input image=FILE", "--random"]),
    (["run", "batch.npz"], ["batch.npz", "an .npz file, not a model", "oar inspect"]),
    (["run", "net.onnx", "--input", "x=batch.npy"], ["'x'", "image: float32[batch, 3, 32, 32]"]),
    (["run", "net.onnx", "--input", "none.npy"], ["none.npy"]),
    (["run", "net.onnx", "--input", "labels.txt"], ["labels.txt", "JPEG"]),
    (["run", "net.onnx", "--input", "wide.npy"], ["wide.npy", "float64[2, 3, 32, 32]", "float32", "--cast"]),
    (["run", "net.onnx", "--input", "flat.npy"], ["flat.npy", "float32[3, 32, 32]", "float32[batch, 3, 32, 32]"]),
    (["run", "net.onnx", "--input", "photo.png", "--size", "16"], ["photo.png", "float32[1, 3, 16, 16]", "--size"]),
    (["run", "net.onnx", "--input", "photo.png", "--layout", "hcw"], ["hcw", "chw"]),
    (["run", "net.onnx", "--random", "--shape", "image=1,x"], ["'1,x'", "--shape x=1,3,224,224"]),
    (["run", "net.onnx", "--random", "--shape", "image=9223372036854775807,3,32,32"], ["9223372036854775807"]),
    (["run", "net.onnx", "--random", "--shape", "image=4294967296,4294967296,4,1"], ["4294967296", "bytes"]),
    (["run", "net.onnx", "--random", "--threads", "-1"], ["--threads", "-1", "1024"]),
    (["bench", "net.onnx", "--threads", "0"], ["--threads", "0", "1024"]),
    (["run", "net.onnx", "--random", "--output", "made.csv"], ["made.csv", ".npz"]),
    (["run", "net.oar", "--method", "back", "--random"], ["net.oar", "'back'", "forward"]),
    (["run", "net.oar", "--random", "--inptu", "x"], ["--inptu", "did you mean '--input'?"]),
    (["run", "damaged.onnx", "--random"], ["damaged.onnx"]),
    (["bench", "net.oar", "--repeat", "0"], ["--repeat"]),
    (["convert", "net.onnx", "net.tflite"], ["net.tflite", ".onnx"]),
    (["convert", "batch.npz", "net.onnx"], ["batch.npz", ".safetensors"]),
    (["convert", "net.onnx", "./net.onnx"], ["same file"]),
    (["convert", "net.onnx", "x.oar", "--input-shape", "image=1,4,32,32"], ["image", "[1, 4, 32, 32]"]),
    (["inspect", "pir.pdiparams"], ["pir.pdiparams", "pir"]),
    (["completion", "tcsh"], ["tcsh", "bash"]),
])
def test_mistakes_are_explained(models, words, parts, tmp_path):
    for file in models[0].iterdir():
        shutil.copy(file, tmp_path)
    np.save(tmp_path / "wide.npy", models[2].astype("float64"))
    np.save(tmp_path / "flat.npy", models[2][0])
    (tmp_path / "damaged.onnx").write_bytes((tmp_path / "net.onnx").read_bytes()[:-200])
    message = run(*words, cwd=tmp_path, status=2)
    for part in ["oar: ", *parts]:
        assert part in message, message


def test_bench(models):
    folder = models[0]
    report = json.loads(run("bench", "net.oar", "--batch", 3, "--warmup", 1, "--repeat", 4, "--threads", 1, "--profile", "--json", cwd=folder))
    assert report["batch"] == 3 and report["repeat"] == 4 and report["threads"] == 1
    assert 0 < report["min_ms"] <= report["median_ms"] <= report["p90_ms"] and report["min_ms"] <= report["mean_ms"]
    assert report["per_second"] == pytest.approx(3000 / report["median_ms"], rel=1e-6)
    assert report["peak_bytes"] >= report["resident_bytes"] > 1 << 20
    ops = {row["op"]: row for row in report["ops"]}
    assert ops["conv"]["calls"] == 1 and 0 < ops["conv"]["milliseconds"]
    shown = run("bench", "net.onnx", "--repeat", 2, "--profile", cwd=folder)
    for part in ("median", "90 of 100", "throughput", "memory", "conv", "float32[1, 3, 32, 32]"):
        assert part in shown


def test_inspect(models):
    folder = models[0]
    for path, kind in FORMATS.items():
        report = json.loads(run("inspect", path, "--json", cwd=folder))
        assert report["format"] == kind
        (image,) = report["inputs"]
        assert image["name"] == "image" and image["dtype"] == "float32" and image["shape"][1:] == [3, 32, 32] and isinstance(image["shape"][0], str)
    described = json.loads(run("inspect", "net.oar", "--json", cwd=folder))
    assert described["methods"] == ["forward"] and described["metadata"] == {"licence": "MIT"} and described["tensors"] >= 4
    shown = run("inspect", "net.oar", cwd=folder)
    assert "image: float32[batch, 3, 32, 32]" in shown and "licence: MIT" in shown
    listed = json.loads(run("inspect", "batch.npz", "--json", cwd=folder))
    assert listed["tensors"] == [{"name": "image", "dtype": "float32", "shape": [2, 3, 32, 32], "bytes": 24576}]


def test_convert_and_compare(models, tmp_path):
    folder, net, batch, _ = models
    expected = net(oar.to_tensor(batch)).numpy()
    for source in ("net.oar", "pair", "net.onnx", "pir"):
        for target in ("made.oar", "made.onnx"):
            report = json.loads(run("convert", source, tmp_path / target, "--compare", "--json", cwd=folder))
            assert report["format"] == FORMATS[source] and report["calls"] > 2
            assert all(row["relative"] < 1e-5 for row in report["differences"]) and report["differences"]
            model = oar.interop.load(tmp_path / target)
            assert isinstance(model.shapes["image"][0], str), "the batch stays open"
            np.testing.assert_allclose(model(batch)[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    run("convert", "net.onnx", tmp_path / "made.json", "--compare", cwd=folder)
    np.testing.assert_allclose(oar.interop.load(tmp_path / "made")(batch)[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    loaded = oar.jit.load(str(tmp_path / "made.oar"))
    np.testing.assert_allclose(loaded(oar.to_tensor(batch)).numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("source", ["net.oar", "pair", "net.onnx", "pir"])
def test_convert_without_python(models, source, tmp_path):
    """From the command alone; what needs Python says so, or leaves it out."""
    folder, net, batch, _ = models
    without = {"OAR_PYTHON": "/nonexistent/python"}
    for target in ("made.onnx", "made.json", "made.pdmodel", "w.safetensors", "w.npz", "w.pdparams"):
        report = json.loads(run("convert", source, tmp_path / target, "--compare", "--json", cwd=folder, **without))
        assert report["tensors"] >= 4 and report["bytes"] == sum(p.stat().st_size for p in tmp_path.iterdir())
        if target.startswith("made"):
            assert report["differences"][0]["relative"] < 1e-5 and "which does not have the package" in report["notes"][-1]
            np.testing.assert_allclose(oar.interop.load(tmp_path / target)(batch)[0].numpy(), net(oar.to_tensor(batch)).numpy(), rtol=1e-4, atol=1e-5)
        for file in tmp_path.iterdir():
            file.unlink()
    assert "Python" in run("convert", source, tmp_path / "made.oar", cwd=folder, status=2, **without)


def test_channels_of_an_oar_file_come_first_elsewhere(tmp_path):
    """Convolutions wide enough for channels last; other formats have them first, with no transposition."""
    oar.seed(3)
    net = oar.nn.Sequential(oar.nn.Conv2D(3, 16, 3, padding=1), oar.nn.ReLU(), oar.nn.MaxPool2D(2), oar.nn.Conv2D(16, 32, 3, stride=2), oar.nn.Hardswish(),
                            oar.nn.Conv2DTranspose(32, 16, 2, stride=2), oar.nn.AdaptiveAvgPool2D(1), oar.nn.Flatten(), oar.nn.Linear(16, 4))
    net.eval()
    oar.jit.save(net, str(tmp_path / "net.oar"), input_spec=[oar.static.InputSpec(["batch", 3, 20, 20], "float32", "image")])
    x = np.random.default_rng(1).standard_normal((2, 3, 20, 20)).astype("float32")
    for target in ("made.onnx", "made.json", "made.pdmodel"):
        run("convert", "net.oar", target, cwd=tmp_path)
        model = oar.interop.load(tmp_path / target)
        np.testing.assert_allclose(model(x)[0].numpy(), net(oar.to_tensor(x)).numpy(), rtol=1e-4, atol=1e-5)
        text = (tmp_path / target).read_bytes()
        assert b"NHWC" not in text and not any(op in text for op in (b'"\tTranspose', b"transpose2", b"1.transpose"))


def test_compare_finds_differences(models, tmp_path):
    folder = models[0]
    message = run("convert", "net.oar", tmp_path / "m.onnx", "--compare", "--tolerance", "-1", cwd=folder, status=1)
    assert "before and after" in message and "is more than --tolerance -1" in message
    # Another model under the name of the target: the comparison alone.
    from oar.interop.compare import compare, difference_of

    other = oar.nn.Sequential(oar.nn.Flatten(), oar.nn.Linear(3072, 6))
    oar.jit.save(other, str(tmp_path / "o.oar"), input_spec=[oar.static.InputSpec(["batch", 3, 32, 32], "float32", "image")])
    rows, _ = compare(oar.interop.load(folder / "net.oar"), oar.interop.load(tmp_path / "o.oar"), [oar.to_tensor(models[2])])
    assert rows[0].relative > 0.01
    nan = np.float32([1, np.nan, np.inf])
    assert difference_of("y", "a", nan, nan).difference == 0
    assert difference_of("y", "a", nan, np.float32([1, 2, np.inf])).difference == float("inf")
    assert difference_of("y", "a", np.zeros([2]), np.zeros([3])).relative == float("inf")


def test_convert_weights(models, tmp_path):
    folder, net, *_ = models
    run("convert", "net.oar", tmp_path / "w.safetensors", cwd=folder)
    run("convert", "w.safetensors", "w.npz", cwd=tmp_path)
    run("convert", "w.npz", "w.pdparams", cwd=tmp_path)
    arrays, state = np.load(tmp_path / "w.npz"), oar.load(str(tmp_path / "w.pdparams"))
    assert len(arrays.files) == 4
    for tensor in net.parameters():
        np.testing.assert_array_equal(arrays[tensor.name], tensor.numpy())
        np.testing.assert_array_equal(state[tensor.name].numpy(), tensor.numpy())
    oar.save({"a": {"b": oar.ones([2], dtype="bfloat16")}}, str(tmp_path / "n.pdparams"))
    run("convert", "n.pdparams", "n.npz", cwd=tmp_path)
    assert np.load(tmp_path / "n.npz")["a.b"].tolist() == [1, 1]


def test_a_failed_conversion_leaves_the_old_file(models, tmp_path):
    (tmp_path / "old.json").write_text("old")
    oar.jit.save(lambda x: oar.cumprod(x, 0), str(tmp_path / "c.oar"), input_spec=[oar.static.InputSpec([2], "float32", "x")])
    run("convert", "c.oar", "old.json", cwd=tmp_path, status=2)
    assert (tmp_path / "old.json").read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == ["c.oar", "old.json"]


def test_guess(models, tmp_path):
    folder = models[0]
    for path, kind in FORMATS.items():
        assert oar.interop.guess(folder / path)[:2] == (kind, "model")
    assert oar.interop.guess(folder / "batch.npz")[:2] == ("npz", "tensors")
    assert oar.interop.guess(folder / "batch.npy")[:2] == ("npy", "tensors")
    assert oar.interop.guess(folder / "photo.png")[:2] == ("png", "other")
    for name, content in {"empty": b"", "zeros": bytes(100), "text": b"hello", "short": b"PK\3\4", "pb": b"\x0a\xff\xff\xff\xff\x0f"}.items():
        (tmp_path / name).write_bytes(content)
        assert oar.interop.guess(tmp_path / name)[:2] == ("unknown", "other"), name
    with pytest.raises(Exception, match="several models"):
        oar.interop.load(folder)
    with pytest.raises(Exception, match="no model that Oar reads"):
        oar.interop.load(tmp_path)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, tmp_path):
    script = run("completion", shell, cwd=tmp_path)
    for word in ("run", "bench", "convert", "train", "inspect", "doctor"):
        assert word in script
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", "script"], cwd=tmp_path, check=True)
    if shell == "bash":
        ask = "source ./script; COMP_WORDS=(oar {0}); COMP_CWORD={1}; _oar; echo ${{COMPREPLY[@]}}"
        for words, place, expected in (("be", 1, "bench"), ("run --thr", 2, "--threads"), ("convert --comp", 2, "--compare")):
            done = subprocess.run(["bash", "-c", ask.format(words, place)], cwd=tmp_path, capture_output=True, text=True, check=True)
            assert done.stdout.split() == [expected], done


def test_every_command_has_help(tmp_path):
    names = [line.split()[0] for line in run("--help", cwd=tmp_path).split("Subcommands:")[1].splitlines() if line.startswith("  ")]
    for name in ("run", "bench", "convert", "train", "completion"):
        assert name in names
        text = run(name, "--help", cwd=tmp_path)
        assert f"oar {name}" in text and len(text.splitlines()) > 6


def test_models_saved_with_an_open_batch_take_one_sample(models):
    """Also where they run as saved: in the predictor and in C++."""
    folder, net, batch, _ = models
    predictor = oar.inference.create_predictor(oar.inference.Config(str(folder / "net.oar")))
    made, = predictor.run([oar.to_tensor(batch[:1])])
    np.testing.assert_allclose(made.numpy(), net(oar.to_tensor(batch[:1])).numpy(), rtol=1e-5, atol=1e-6)


def test_models_of_tensorflow_and_torch(tmp_path):
    write_models_of_tensorflow(tmp_path)
    (tmp_path / "saved_model" / "fingerprint.pb").write_bytes(b"\x08\x01\x10\x02")  # TensorFlow writes one beside the model
    (tmp_path / "net.pt2").write_bytes(classifier_of_torch())
    (tmp_path / "script.pt").write_bytes(classifier_of_torchscript())
    for path, kind in [("frozen.pb", "tensorflow"), ("saved_model", "tensorflow"), ("saved_model/saved_model.pb", "tensorflow"),
                       ("web_model/model.json", "tensorflow"), ("net.pt2", "torch-export"), ("net", "torch-export"), ("script.pt", "torchscript"), ("script", "torchscript")]:  # fmt: skip
        assert oar.interop.guess(tmp_path / path)[:2] == (kind, "model"), path
        model = oar.interop.load(tmp_path / path)
        sizes = model.shapes[model.inputs[0]]
        shape = [2, 3, 4, 4] if sizes is None else [2 if isinstance(size, str) else size for size in sizes]
        assert len(model(oar.ones(shape))) == len(model.outputs) > 0


def test_command_on_torchscript(tmp_path):
    (tmp_path / "net.pt").write_bytes(classifier_of_torchscript())
    shown = run("inspect", "net.pt", cwd=tmp_path)
    assert "a TorchScript archive" in shown and "x: any dtype[any shape]" in shown
    assert "float32[2, 10]" in run("run", "net.pt", "--random", "--shape", "x=2,3,4,4", cwd=tmp_path)
    assert "largest difference 0," in run("convert", "net.pt", "net.oar", "--input-shape", "x=2,3,4,4", "--compare", cwd=tmp_path)
