"""Model files and calls with sizes larger than any memory: an error that names the sizes, in every mode."""

import json

import numpy as np
import pytest

import oar
from oar import static

BILLIONS = 2**31


def model(text):
    header = {"format": "oar program", "version": 1, "feed": ["x"], "fetch": ["1"], "names": {"x": "x"}}
    return (json.dumps(header) + "\n" + text).encode()


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (f"as_strided_grad(%x, shape=[{2**62}], stride=[1], offset=0)", f"float32[{2**62}]"),
        (f"full(shape=[{2**31}, {2**31}], fill_value=1.0, dtype=float32)", f"float32[{2**31}, {2**31}]"),
        ("relu_grad(%x, %y)", "float32[4]"),
        ("add(%x, %y)", "float32[4]"),
    ],
)
def test_a_model_file_cannot_reach_memory(tmp_path, call, result):
    data = model(f"program main(%x: float32[4], %y: float32[400]) -> (%1: {result}) {{\n  %1 = {call} : {result}\n}}\n")
    assert len(data) < 500
    with pytest.raises(ValueError, match="not well formed"):
        static.deserialize_program(data)
    (tmp_path / "bad.pdmodel").write_bytes(data)
    with pytest.raises(ValueError, match="not well formed"):
        static.load_inference_model(str(tmp_path / "bad"), static.Executor())


@pytest.mark.parametrize(
    "line",
    [
        b'{"format": "oar program", "version": 1, "feed": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"format": "oar program"}',
        b'{"format": "oar program", "version": 1}',
        b'{"format": "oar program", "version": 1, "feed": 5, "fetch": [], "names": {}}',
        b'{"format": "oar program", "version": 1, "feed": [], "fetch": [[1]], "names": {}}',
        b'{"format": "oar program", "version": 1, "feed": [], "fetch": [], "names": {"x": 1}}',
        b'["oar program"]',
        b"null",
        b"\xff",
    ],
)
def test_a_first_line_that_is_none_is_refused(line):
    with pytest.raises(ValueError, match="not a program of Oar|has version|first line"):
        static.deserialize_program(line + b"\nprogram main() -> () {\n}\n")


HUGE = {
    "rand": lambda x: oar.rand([BILLIONS, BILLIONS]) + x,
    "zeros": lambda x: oar.zeros([BILLIONS, BILLIONS]) + x,
    "diagflat": lambda x: oar.diagflat(x, 2**40),
    "diag_embed": lambda x: oar.diag_embed(x, 2**40),
    "tile": lambda x: oar.tile(x, [BILLIONS, BILLIONS]),
    "pad": lambda x: oar.nn.functional.pad(x, [0, 2**62]),
    "eye": lambda x: oar.eye(BILLIONS, BILLIONS) + x.sum(),
}


@pytest.mark.parametrize("name", HUGE)
def test_sizes_are_refused_in_every_mode(name):
    call, x = HUGE[name], oar.ones([3])
    errors = (ValueError, MemoryError)
    for run in (call, oar.jit.to_static(call), lambda t: oar.jit.capture(call, [t])(t)):
        with pytest.raises(errors):
            run(x)
    with pytest.raises(errors):
        oar.func.vmap(call)(oar.ones([2, 3]))
    with pytest.raises(errors):
        oar.func.jvp(call, [x], [x])


def test_the_error_tells_shape_and_bytes():
    told = r"\[rand\] a tensor of shape \[2147483648, 2147483648\] .* about 1.8e\+19 bytes"
    with pytest.raises(ValueError, match=told):
        oar.jit.capture(lambda x: oar.rand([BILLIONS, BILLIONS]) + x, [oar.ones([1])])


GRADIENTS = {
    "relu_grad": lambda f, x, bad: f(x, bad),
    "channel_affine_grad": lambda f, x, bad: f(x, oar.ones([3]), bad, 1),
    "batch_norm_train_grad": lambda f, x, bad: f(x, None, *[oar.ones([3])] * 2, bad, *[oar.ones([3])] * 2, 1e-5, 1),
    "layer_norm_rows_grad": lambda f, x, bad: f(x, None, *[oar.ones([2])] * 2, bad, *[oar.ones([2])] * 2, 1),
    "softmax_grad": lambda f, x, bad: f(x, bad),
    "embedding_grad": lambda f, x, bad: f(oar.zeros([2], dtype="int64"), bad, 2**40),
    "clip_grad": lambda f, x, bad: f(x, bad, 0.0, 1.0),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives_check_direct_calls_in_every_mode(name):
    function, x, bad = getattr(oar._C.ops, name), oar.ones([2, 3]), oar.ones([7, 1, 5])
    def call(x, bad):
        return GRADIENTS[name](function, x, bad)

    errors = (ValueError, TypeError, MemoryError)
    with pytest.raises(errors):
        call(x, bad)
    with pytest.raises(errors):
        oar.jit.capture(call, [x, bad])(x, bad)
    with pytest.raises(errors):
        oar.func.vmap(call)(oar.ones([2, 2, 3]), oar.ones([2, 7, 1, 5]))
    with pytest.raises(errors):
        oar.func.jvp(call, [x, bad], [x, bad])


def test_a_broadcast_view_may_be_larger_than_memory():
    wide = oar.jit.capture(lambda x: oar.broadcast_to(x, [BILLIONS, 2**20, 3])[0, 0], [oar.ones([3])])
    np.testing.assert_array_equal(wide(oar.ones([3])).numpy(), np.ones(3))
