"""Writes files with ``save``, or reads those of another process with ``load``. Runs in Oar and in Paddle alike.

    python paddle_files.py paddle make FOLDER     # then
    python paddle_files.py oar check FOLDER

What is in the files is described in ``content.npz``, as arrays; where training went on after saving, so are the parameters.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import pathlib
import sys
from collections import OrderedDict

import numpy as np

lib = importlib.import_module(sys.argv[1])
FOLDER = pathlib.Path(sys.argv[3])
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
EIGHT_BITS = "float8_e4m3fn float8_e5m2".split()
OPTIMIZERS = "SGD Momentum Adam AdamW Adamax Adagrad Adadelta RMSProp Lamb NAdam RAdam Rprop ASGD".split()


def numbers(tensor):
    name = str(tensor.dtype).rpartition(".")[2]
    wide = name == "bfloat16" or name.startswith("float8")
    return np.array((tensor.astype("float32") if wide else tensor).numpy())


def rate():
    cosine = lib.optimizer.lr.CosineAnnealingDecay(0.05, 10)
    return lib.optimizer.lr.LinearWarmup(cosine, 2, 0.01, 0.05)


@contextlib.contextmanager
def network(kind):
    """A network and its optimizer, whose parameters and states have the same names each time."""
    with lib.utils.unique_name.guard():
        lib.seed(3)
        net = lib.nn.Sequential(lib.nn.BatchNorm1D(3), lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 2))
        # With its usual beta2, RAdam's first steps are the difference of two nearly equal numbers.
        extra = {"ASGD": {"batch_num": 3}, "RAdam": {"beta2": 0.9}}.get(kind, {})
        # Paddle's Rprop takes no scheduler.
        optimizer = getattr(lib.optimizer, kind)(learning_rate=0.01 if kind == "Rprop" else rate(), parameters=net.parameters(), **extra)
        yield net, optimizer


def train(net, optimizer, steps):
    x = lib.to_tensor(np.linspace(-1, 1, 15, dtype="float32").reshape(5, 3))
    for _ in range(steps):
        ((net(x) - 1.0) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()
        if not isinstance(optimizer._learning_rate, float):
            optimizer._learning_rate.step()


def single():
    values = {f"{dtype}": lib.to_tensor(np.array([[0.0, 1.0, 3.0]])).astype(dtype) for dtype in DTYPES}
    return {**values, "scalar": lib.to_tensor(2.5), "empty": lib.zeros([0, 3])}


def nested():
    return {"tensors": [lib.full([2], 1.5), (7, lib.zeros([2, 1])), "text", None], "array": np.arange(4), "number": 3, "flag": True,
            "ordered": OrderedDict(b=lib.ones([1]), a=2.5), "deep": {"er": {"bits": lib.full([3], 1.25).astype("bfloat16")}}}


def masters():
    return {"w_moment1_0": lib.full([3, 2], 0.25), "master_weights": {"w": lib.full([3, 2], 1.0625)}, "LR_Scheduler": {"last_epoch": 4}}


def make():
    content = {}
    for name, tensor in single().items():
        content[f"single.{name}"] = numbers(tensor)
        lib.save(tensor, str(FOLDER / f"{name}.pickle"))
        lib.save(tensor, str(FOLDER / f"{name}.binary"), use_binary_format=True)
    for name in EIGHT_BITS:
        tensor = lib.to_tensor(np.array([0.0, 1.0, 3.0])).astype(name)
        content[f"binary.{name}"] = numbers(tensor)
        lib.save(tensor, str(FOLDER / f"{name}.binary"), use_binary_format=True)
    for protocol in (2, 3, 4):
        lib.save(nested(), str(FOLDER / f"nested{protocol}"), protocol=protocol)
        lib.save({name: t for name, t in single().items()}, str(FOLDER / f"states{protocol}"), protocol=protocol)
    lib.save(masters(), str(FOLDER / "masters.pdopt"))
    buffer = io.BytesIO()
    lib.save({"a": lib.ones([2])}, buffer)
    (FOLDER / "buffer").write_bytes(buffer.getvalue())
    for kind in OPTIMIZERS:
        with network(kind) as (net, optimizer):
            train(net, optimizer, 3)
            lib.save(net.state_dict(), str(FOLDER / f"{kind}.pdparams"))
            lib.save(optimizer.state_dict(), str(FOLDER / f"{kind}.pdopt"))
            lib.save({"net": net.state_dict(), "opt": optimizer.state_dict(), "epoch": 3}, str(FOLDER / f"{kind}.both"))
            train(net, optimizer, 3)
            content.update({f"{kind}.{name}": numbers(value) for name, value in net.state_dict().items()})
    static(content)
    np.savez(FOLDER / "content.npz", **content)


def static(content):
    """The states of a program."""
    lib.enable_static()
    main, startup = lib.static.Program(), lib.static.Program()
    with lib.static.program_guard(main, startup), lib.utils.unique_name.guard():
        loss = lib.static.nn.fc(lib.static.data("x", [None, 3]), 2).mean()
        lib.optimizer.Adam(0.1).minimize(loss)
    executor = lib.static.Executor()
    executor.run(startup)
    executor.run(main, feed={"x": np.ones([2, 3], "float32")}, fetch_list=[loss])
    lib.static.save(main, str(FOLDER / "program"))
    lib.save(main.state_dict("param"), str(FOLDER / "static.pdparams"))
    lib.save({"states": main.state_dict("param"), "n": 1}, str(FOLDER / "static.nested"))
    for name, value in main.state_dict("param").items():
        content[f"static.{name}"] = np.array(value)
    lib.disable_static()


def same(found, wanted, what, rtol=0.0):
    found = np.asarray(found)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, (what, found.shape, found.dtype, wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol, err_msg=what)


def check_nested(value):
    first, (seven, zeros), text, none = value["tensors"]
    assert first.tolist() == [1.5, 1.5] and seven == 7 and list(zeros.shape) == [2, 1] and (text, none) == ("text", None)
    assert isinstance(value["array"], np.ndarray) and value["array"].tolist() == [0, 1, 2, 3]
    assert value["number"] == 3 and value["flag"] is True
    assert isinstance(value["ordered"], OrderedDict) and list(value["ordered"]) == ["b", "a"] and value["ordered"]["b"].tolist() == [1.0]
    bits = value["deep"]["er"]["bits"]
    assert str(bits.dtype).endswith("bfloat16") and numbers(bits).tolist() == [1.25] * 3


def check():
    content = np.load(FOLDER / "content.npz")
    for key in content.files:
        kind, name = key.split(".", 1)
        # Paddle cannot read its own binary files of float8.
        if kind == "single" or (kind == "binary" and lib.__name__ == "oar"):
            for end in ("pickle", "binary")[kind == "binary" :]:
                same(numbers(lib.load(str(FOLDER / f"{name}.{end}"))), content[key], f"{name}.{end}")
    for protocol in (2, 3, 4):
        check_nested(lib.load(str(FOLDER / f"nested{protocol}")))
        for name, tensor in lib.load(str(FOLDER / f"states{protocol}")).items():
            same(numbers(tensor), content[f"single.{name}"], name)
    held = lib.load(str(FOLDER / "masters.pdopt"))
    assert isinstance(held["master_weights"]["w"], lib.Tensor) and numbers(held["master_weights"]["w"]).max() == 1.0625
    assert held["LR_Scheduler"] == {"last_epoch": 4}
    assert lib.load(io.BytesIO((FOLDER / "buffer").read_bytes()))["a"].tolist() == [1.0, 1.0]
    for kind in OPTIMIZERS:
        for from_one_file in (False, True):
            check_training(kind, from_one_file, content)
    check_static(content)


def check_training(kind, from_one_file, content):
    """Goes on where the other library stopped."""
    with network(kind) as (net, optimizer):
        both = lib.load(str(FOLDER / f"{kind}.both"))
        net.set_state_dict(both["net"] if from_one_file else lib.load(str(FOLDER / f"{kind}.pdparams")))
        optimizer.set_state_dict(both["opt"] if from_one_file else lib.load(str(FOLDER / f"{kind}.pdopt")))
        train(net, optimizer, 3)
        for name, value in net.state_dict().items():
            same(numbers(value), content[f"{kind}.{name}"], f"{kind} {name}", rtol=2e-4)


def check_static(content):
    nested_states = lib.load(str(FOLDER / "static.nested"))["states"]
    loaded = lib.load(str(FOLDER / "static.pdparams"))
    states = lib.static.load_program_state(str(FOLDER / "program"))
    names = [key.split(".", 1)[1] for key in content.files if key.startswith("static.")]
    assert names and sorted(loaded) == sorted(names) == sorted(nested_states)
    for name in names:
        for found in (loaded, states, nested_states):
            same(np.asarray(found[name]), content[f"static.{name}"], name)


{"make": make, "check": check}[sys.argv[2]]()
print("done")
