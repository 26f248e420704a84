"""ONNX models whose results decide on shapes and loops. Where no program can be made of them, they run node after node."""

import os
import signal
import threading

import numpy as np
import pytest
from onnx_files import field, graph, model, node, port

import oar

X = port("x", ["n"])


def body_of(nodes, inputs, outputs):
    return b"".join(field(11, port(name, shape, dtype)) for name, shape, dtype in inputs) + graph(nodes, outputs)


def loaded(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    return oar.onnx.load(str(tmp_path / "model.onnx"))


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def test_a_shape_that_depends_on_content(tmp_path):
    nodes = [node("Greater", ["x", "zero"], ["mask"]), node("NonZero", ["mask"], ["places"]), node("Transpose", ["places"], ["rows"]),
             node("GatherND", ["x", "rows"], ["kept"]), node("Shape", ["kept"], ["shape"]), node("ConstantOfShape", ["shape"], ["zeros"]),
             node("Sub", ["zeros", "kept"], ["y"])]
    m = loaded(tmp_path, model(nodes, [X], ["y"], {"zero": np.float32(0)}))
    for count in (100, 300):
        x = random(count)
        np.testing.assert_array_equal(m(x)[0].numpy(), -x[x > 0])


def test_a_slice_whose_start_is_computed(tmp_path):
    nodes = [node("ArgMax", ["x"], ["first"], axis=0, keepdims=1), node("Slice", ["x", "first", "end"], ["y"])]
    m = loaded(tmp_path, model(nodes, [X], ["y"], {"end": np.int64([1000])}))
    x = random(100)
    np.testing.assert_array_equal(m(x)[0].numpy(), x[x.argmax():])
    with pytest.raises(NotImplementedError, match="runs step by step.*Slice"):
        m.program(x)


def counted_loop(stacks):
    """Adds 1, x.size + 1 times more than the largest place: what is stacked depends on that number."""
    inside = body_of([node("Add", ["carried", "one"], ["next"]), node("Identity", ["next"], ["row"]), node("Identity", ["goes"], ["on"])],
                     [("i", [], "int64"), ("goes", [], "bool"), ("carried", ["n"], "float32")], ["on", "next", "row"][: 3 if stacks else 2])
    nodes = [node("ArgMax", ["x"], ["count"], axis=0, keepdims=0), node("Loop", ["count", "", "x"], ["last", "rows"][: 2 if stacks else 1], body=inside)]
    return model(nodes, [X], ["last", "rows"][: 2 if stacks else 1], {"one": np.float32(1)})


@pytest.mark.parametrize("stacks", [True, False])
def test_a_loop_whose_count_is_computed(tmp_path, stacks):
    x = random(100)
    x[37] = 9
    m = loaded(tmp_path, counted_loop(stacks))
    got = [t.numpy() for t in m(x)]
    np.testing.assert_allclose(got[0], x + 37, rtol=1e-5, atol=1e-5)
    if stacks:
        np.testing.assert_allclose(got[1], x + np.arange(1, 38)[:, None], rtol=1e-5, atol=1e-5)


def test_a_scan_after_a_computed_shape(tmp_path):
    body = body_of([node("Add", ["total", "row"], ["next"]), node("Identity", ["next"], ["out"])],
                   [("total", [], "float32"), ("row", [], "float32")], ["next", "out"])
    nodes = [node("Greater", ["x", "zero"], ["mask"]), node("Compress", ["x", "mask"], ["kept"], axis=0),
             node("Scan", ["start", "kept"], ["sum", "sums"], body=body, num_scan_inputs=1)]
    m = loaded(tmp_path, model(nodes, [X], ["sum", "sums"], {"zero": np.float32(0), "start": np.float32(0)}))
    x = random(100)
    last, sums = (t.numpy() for t in m(x))
    np.testing.assert_allclose(sums, np.cumsum(x[x > 0]), rtol=1e-4)
    np.testing.assert_allclose(last, x[x > 0].sum(), rtol=1e-4)


def test_mistakes_are_errors_there_too(tmp_path):
    nodes = [node("ArgMax", ["x"], ["first"], axis=0, keepdims=1), node("Slice", ["x", "first", "end"], ["part"]),
             node("Reshape", ["part", "wrong"], ["y"])]
    m = loaded(tmp_path, model(nodes, [X], ["y"], {"end": np.int64([1000]), "wrong": np.int64([7, 11, 13])}))
    with pytest.raises(Exception, match="the node Reshape.*21 elements"):
        m(random(100))
    with pytest.raises((TypeError, ValueError), match="'x'"):
        m(np.zeros(100, "int64"))


def test_other_inputs_keep_their_values(tmp_path):
    """The runs of a model leave no trace in what they were given, or in each other."""
    nodes = [node("Greater", ["x", "zero"], ["mask"]), node("Compress", ["x", "mask"], ["y"], axis=0)]
    m = loaded(tmp_path, model(nodes, [X], ["y"], {"zero": np.float32(0)}))
    x = oar.to_tensor(random(100), stop_gradient=False)
    name = x.name
    first = m(x)[0].numpy()
    assert x.name == name and len(m(-x)[0].numpy()) == 100 - len(first)
    np.testing.assert_array_equal(m(x)[0].numpy(), first)


def test_a_loop_without_an_end_is_interrupted(tmp_path):
    inside = body_of([node("Identity", ["goes"], ["on"]), node("Identity", ["carried"], ["next"]), node("ReduceSum", ["next"], ["row"])],
                     [("i", [], "int64"), ("goes", [], "bool"), ("carried", ["n"], "float32")], ["on", "next", "row"])
    nodes = [node("ArgMax", ["x"], ["place"], axis=0, keepdims=0), node("GreaterOrEqual", ["place", "zero"], ["yes"]),
             node("Loop", ["", "yes", "x"], ["last", "rows"], body=inside)]
    m = loaded(tmp_path, model(nodes, [X], ["last", "rows"], {"zero": np.int64(0)}))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            m(random(100))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
