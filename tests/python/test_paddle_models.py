"""Inference models that PaddlePaddle wrote, in both of its formats; data/paddle/make_models.py made them."""

from __future__ import annotations

import json
import pathlib
import shutil

import numpy as np
import pytest

import oar
from paddle_written_cases import CASES, case, results

FOLDER = pathlib.Path(__file__).parent / "data" / "paddle"
MODELS = [f"{name}_{kind}" for name in ("network", "loop", "branch") for kind in ("pir", "legacy")]
END = {"pir": ".json", "legacy": ".pdmodel"}


def cases(name: str):
    for sign in "+-":
        with np.load(FOLDER / f"{name}{sign}.npz") as stored:
            yield stored["x"], [stored[f"r{i}"] for i in range(len(stored.files) - 1)]


def close(mine, expected):
    assert len(mine) == len(expected)
    for a, b in zip(mine, expected):
        a = a.numpy() if isinstance(a, oar.Tensor) else a
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_plain(name):
    model = oar.inference.paddle.load(FOLDER / name)
    assert model.inputs == ["x"]
    for x, expected in cases(name):
        close(model(x), expected)
        close(model({"x": oar.to_tensor(x)}), expected)


@pytest.mark.parametrize("name", MODELS)
def test_layer(name):
    layer = oar.jit.load(str(FOLDER / name))
    layer.eval()
    assert isinstance(layer, oar.jit.TranslatedLayer) and layer.state_dict()
    for x, expected in cases(name):
        results = layer(oar.to_tensor(x))
        close(results if isinstance(results, list) else [results], expected)


@pytest.mark.parametrize("name", MODELS)
def test_static(name):
    oar.enable_static()
    try:
        executor = oar.static.Executor()
        program, feeds, fetches = oar.static.load_inference_model(str(FOLDER / name), executor)
        for x, expected in cases(name):
            close(executor.run(program, feed={feeds[0]: x}, fetch_list=fetches), expected)
    finally:
        oar.disable_static()


@pytest.mark.parametrize("name", MODELS)
def test_predictor(name):
    files = [str(FOLDER / (name + end)) for end in (END[name.split("_")[1]], ".pdiparams")]
    predictor = oar.inference.create_predictor(oar.inference.Config(*files))
    for x, expected in cases(name):
        predictor.get_input_handle("x").copy_from_cpu(x)
        predictor.run()
        close([predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()], expected)


@pytest.mark.parametrize("kind", ["pir", "legacy"])
def test_other_sizes(kind):
    """Open sizes: rows of a batch do not depend on each other, whatever the height."""
    model = oar.inference.paddle.load(FOLDER / f"network_{kind}")
    x = np.random.default_rng(1).normal(size=(3, 2, 8, 6)).astype("float32")
    whole = model(x)[0].numpy()
    assert whole.shape == (3, 5)
    np.testing.assert_allclose(model(x[1:2])[0].numpy(), whole[1:2], rtol=1e-5)


def test_unknown_ops_are_listed(tmp_path):
    text = (FOLDER / "loop_pir.json").read_text().replace('"1.tanh"', '"1.strange"').replace('"1.matmul"', '"1.odd_"')
    (tmp_path / "net.json").write_text(text)
    shutil.copy(FOLDER / "loop_pir.pdiparams", tmp_path / "net.pdiparams")
    with pytest.raises(Exception, match=r"cannot import yet: pd_op.odd_, pd_op.strange"):
        oar.inference.paddle.load(tmp_path / "net")(np.zeros([1, 3], "float32"))


def test_mistakes(tmp_path):
    program, weights = ((FOLDER / f"branch_pir{end}").read_bytes() for end in (".json", ".pdiparams"))
    make = oar.inference.paddle.Model
    with pytest.raises(ValueError, match="ends too early"):
        make(program, weights[:-1])
    with pytest.raises(ValueError, match="1 bytes more"):
        make(program, weights + b"x")
    with pytest.raises(ValueError, match="no program of Paddle"):
        make(b"text", weights)
    newer = json.loads(program)
    newer["base_code"]["version"] = 99
    with pytest.raises(Exception, match="version 99"):
        make(json.dumps(newer).encode(), weights)
    model = make(program, weights)
    with pytest.raises(ValueError, match="dtype int64, but the model takes float32"):
        model(np.zeros([1, 3], "int64"))
    with pytest.raises(ValueError, match=r"takes the shape \[-1, 3\]"):
        model(np.zeros([1, 4], "float32"))
    with pytest.raises(ValueError, match="'y' is missing or not one of them"):
        model({"y": np.zeros([1, 3], "float32"), "x": np.zeros([1, 3], "float32")})
    with pytest.raises(FileNotFoundError, match="no program of Paddle"):
        oar.inference.paddle.load(tmp_path / "nothing")


def test_own_files_stay_own(tmp_path):
    path = str(tmp_path / "net")
    oar.jit.save(oar.nn.Linear(3, 2), path, input_spec=[oar.static.InputSpec([None, 3])])
    assert list(oar.jit.load(path)(oar.ones([1, 3])).shape) == [1, 2]
    with pytest.raises(FileNotFoundError):
        oar.inference.paddle.load(path)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_written_files_are_read_again(name, legacy, tmp_path):
    function, spec, x = case(name)
    oar.inference.paddle.save(function, tmp_path / "net", spec, legacy=legacy)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["net.pdmodel" if legacy else "net.json", "net.pdiparams"])
    model = oar.inference.paddle.load(tmp_path / "net")
    assert model.inputs == ["x"] and model.signature[0][2][0] == "x_0"
    close(model(x), results(function, x))
    if name not in ("assignments", "selections"):  # which look at the second row
        close(model(x[:1]), results(function, x[:1]))


@pytest.mark.parametrize("end", [".json", ".pdmodel"])
def test_convolutions_of_saved_models_are_written(end, tmp_path):
    """Oar's own files may have the channels of images last."""
    net = oar.nn.Sequential(oar.nn.Conv2D(2, 8, 3, padding=1), oar.nn.BatchNorm2D(8), oar.nn.ReLU(), oar.nn.Conv2D(8, 8, 3), oar.nn.MaxPool2D(2),
                            oar.nn.AdaptiveAvgPool2D(1), oar.nn.Flatten(), oar.nn.Linear(8, 3))
    net.eval()
    oar.jit.save(net, str(tmp_path / "net.oar"), input_spec=[oar.static.InputSpec([None, 2, 12, 12], "float32", "image")])
    done = oar.interop.convert(tmp_path / "net.oar", tmp_path / f"made{end}")
    assert done.bytes == sum((tmp_path / name).stat().st_size for name in (f"made{end}", "made.pdiparams"))
    x = oar.randn([5, 2, 12, 12])
    close(oar.inference.paddle.load(tmp_path / "made")(x), [net(x).numpy()])


def test_ops_that_cannot_be_written_are_listed(tmp_path):
    spec = [oar.static.InputSpec([3, 3], "float32", "x")]
    for legacy in (False, True):
        with pytest.raises(NotImplementedError, match="ops that Paddle has no counterpart for: .*det"):
            oar.inference.paddle.save(lambda x: oar.linalg.det(x) + oar.lgamma(x).sum(), tmp_path / "net", spec, legacy=legacy)
    assert not list(tmp_path.iterdir())
    net = oar.nn.BatchNorm1D(3)
    with pytest.raises(NotImplementedError, match="which a model of Paddle cannot"):
        oar.inference.paddle.save(net, tmp_path / "net", spec)
