"""What must work wherever the wheel is installed: import, compute, differentiate, report an error."""

import pathlib
import sys

import numpy as np

import oar

x = oar.to_tensor(np.arange(6, dtype="float32").reshape(2, 3), stop_gradient=False)
y = oar.matmul(x, oar.transpose(x, [1, 0])).sum()
assert float(y) == 83.0, float(y)
y.backward()
np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy().sum(0, keepdims=True).repeat(2, 0))

# Large enough to be shared out over threads.
big = oar.ones([1 << 20], dtype="float32")
assert float((big + big).sum()) == 2.0 * (1 << 20)

try:
    oar.matmul(x, x)
except (ValueError, RuntimeError) as error:
    assert "matmul" in str(error), error
else:
    raise AssertionError("matmul of shapes [2, 3] and [2, 3] was not refused")

folder = pathlib.Path(oar.__file__).parent
for name in ("py.typed", "__init__.pyi", "_C.pyi", "_ops.pyi", "_methods.pyi", "nn/functional/__init__.pyi"):
    assert (folder / name).is_file(), f"{name} is not in the wheel"
assert ">>> oar.abs(" in oar.abs.__doc__, "the wheel lacks the examples of docstrings"

print("oar", oar.__version__, "works with Python", sys.version.split()[0])
