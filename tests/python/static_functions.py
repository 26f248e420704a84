"""What the tests of ``to_static`` share."""

import numpy as np
import pytest

import oar
from oar.jit import capture_counts


@pytest.fixture(autouse=True)
def switched_on():
    yield
    oar.jit.enable_to_static(True)
    oar.jit.set_verbosity(0)


def captures(function):
    return capture_counts(function)["captures"]


def numbers(*shape, grad=False):
    t = oar.to_tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"))
    t.stop_gradient = not grad
    return t


def same(a, b):
    np.testing.assert_array_equal(a.numpy(), b.numpy())


def close(a, b, rtol=1e-5):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=1e-6)
