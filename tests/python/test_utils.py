"""Helpers of programs, and methods that write diagonals."""

import numpy as np
import pytest

import oar
from oar import utils


def test_try_import():
    assert utils.try_import("json").loads("1") == 1
    with pytest.raises(ImportError, match="pip install no_such"):
        utils.try_import("no_such.module")
    with pytest.raises(ImportError, match="^no luck$"):
        utils.try_import("no_such", "no luck")


def test_deprecated():
    def old(x):
        """Doubles."""
        return 2 * x

    text = "old is deprecated since 2.0; use new instead. Reason: slow"
    marked = utils.deprecated("new", "2.0", "slow", level=1)(old)
    with pytest.warns(DeprecationWarning, match=text):
        assert marked(3) == 6
    assert text in marked.__doc__ and "Doubles." in marked.__doc__
    with pytest.raises(RuntimeError, match="is deprecated"):
        utils.deprecated(level=2)(old)(3)
    assert utils.deprecated()(old) is old


def test_require_version():
    utils.require_version("0.0.1")
    utils.require_version("0.0.1", "99.9")
    with pytest.raises(RuntimeError, match="99.0.0 or newer is needed"):
        utils.require_version("99.0.0")
    with pytest.raises(RuntimeError, match="from 0.0.0 to 0.0.0.1"):
        utils.require_version("0.0.0", "0.0.0.1")
    with pytest.raises(TypeError, match="min_version must be a string"):
        utils.require_version(1)
    with pytest.raises(ValueError, match="must look like"):
        utils.require_version("1.x")


@pytest.mark.parametrize("shape, offset, wrap", [((3, 3), 0, False), ((7, 3), 0, False), ((7, 3), 0, True),
                                                 ((3, 5), 1, False), ((3, 5), -1, False), ((3, 3), 9, True),
                                                 ((2, 2, 2), 0, False)])
def test_fill_diagonal(shape, offset, wrap):
    wanted = np.full(shape, 2.0, "float32")
    if offset == 0:
        np.fill_diagonal(wanted, 5, wrap)
    else:
        wanted = np.where(np.eye(*shape, offset) > 0, np.float32(5), wanted)
    x = oar.full(list(shape), 2.0)
    assert x.fill_diagonal_(5, offset, wrap) is x
    np.testing.assert_array_equal(x.numpy(), wanted)
    leaf = oar.full(list(shape), 2.0)
    leaf.stop_gradient = False
    (leaf * 1).fill_diagonal_(5, offset, wrap).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), wanted == 2)


def test_fill_diagonal_tensor():
    x, y = oar.zeros([2, 3, 4]), oar.arange(6, dtype="float32").reshape([3, 2])
    wanted = np.zeros([2, 3, 4], "float32")
    for i in range(2):
        wanted[i, :, i + 1] = y.numpy()[:, i]
    np.testing.assert_array_equal(x.fill_diagonal_tensor(y, 1, 0, 2).numpy(), wanted)
    assert x.sum().item() == 0
    assert x.fill_diagonal_tensor_(y, 1, 0, 2) is x
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_fill_diagonal_errors():
    with pytest.raises(ValueError, match="at least two axes"):
        oar.zeros([3]).fill_diagonal_(1)
    with pytest.raises(ValueError, match="all sizes must be equal"):
        oar.zeros([2, 2, 3]).fill_diagonal_(1)
