"""Results of 16 MiB and more, which kernels write past the caches: by other instructions than smaller ones, so that
the small samples of the registry's tests never reach them. Every instruction set is tried, each in a process of its
own, since the choice is made once.

`python test_large_results.py FILE` computes; the tests read the file.
"""

import functools
import os
import subprocess
import sys

import numpy as np
import pytest

ROWS, WIDTH = 4500, 1001  # 17.2 MiB; a width that leaves rows at any place of a line
IMAGES = (9, 8, 250, 251)  # 17.2 MiB


def matrix(seed=0, shape=(ROWS, WIDTH)):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def per_channel(v):
    return v.reshape(1, -1, 1, 1)


def normalised(x, axes):
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def group_norm(x, groups):
    grouped = x.reshape(x.shape[0], groups, -1)
    return normalised(grouped, (2,)).reshape(x.shape)


def slope(x, grad, axes):
    """The gradient of a norm over axes."""
    hat = normalised(x, axes)
    inverse = 1 / np.sqrt(x.astype(np.float64).var(axes, keepdims=True) + 1e-5)
    mean = (hat * grad).mean(axes, keepdims=True)
    return inverse * (grad - grad.mean(axes, keepdims=True) - hat * mean)


PLACES = np.random.default_rng(3).integers(0, ROWS, ROWS)
WEIGHT, BIAS = matrix(4, WIDTH), matrix(5, WIDTH)
SCALE, SHIFT, MEAN = matrix(6, 8), matrix(7, 8), matrix(8, 8)
VARIANCE = np.random.default_rng(9).uniform(0.5, 2, 8).astype(np.float32)

# name: what NumPy computes from the inputs of `compute`
EXPECTED = {
    "layer_norm": lambda: normalised(matrix(), (1,)) * WEIGHT + BIAS,
    "layer_norm_plain": lambda: normalised(matrix(), (1,)),
    "layer_norm_grad": lambda: slope(matrix(), matrix(1), (1,)),
    "layer_norm_64": lambda: normalised(matrix(), (1,)),
    "group_norm": lambda: group_norm(matrix(0, IMAGES), 4) * per_channel(SCALE) + per_channel(SHIFT),
    "instance_norm": lambda: normalised(matrix(0, IMAGES), (2, 3)),
    "batch_norm_train": lambda: normalised(matrix(0, IMAGES), (0, 2, 3)) * per_channel(SCALE) + per_channel(SHIFT),
    "batch_norm_grad": lambda: slope(matrix(0, IMAGES), matrix(1, IMAGES), (0, 2, 3)),
    "batch_norm_eval": lambda: (matrix(0, IMAGES) - per_channel(MEAN)) / np.sqrt(per_channel(VARIANCE) + 1e-5),
    "add_transposed": lambda: matrix() + matrix(1, (WIDTH, ROWS)).T,
    "subtract_into_transposed": lambda: (matrix().T - matrix(1, (WIDTH, ROWS))).T,
    "roll": lambda: np.roll(matrix(), 7, 1),
    "concat": lambda: np.concatenate([matrix(), matrix(1)], 1),
    "rows": lambda: matrix()[PLACES],
    "outer": lambda: np.outer(matrix(0, ROWS), matrix(1, WIDTH)),
}


def sampled(x):
    """Every 13th element: all places of a row and of a cache line occur."""
    return x.ravel()[::13].copy()


@functools.cache
def expected(name):
    return sampled(EXPECTED[name]())


def compute(path):
    import oar
    import oar.nn.functional as F

    tensor = oar.to_tensor

    def gradient(f, x, grad):
        x = tensor(x)
        x.stop_gradient = False
        f(x).backward(tensor(grad))
        return x.grad

    x, images = tensor(matrix()), tensor(matrix(0, IMAGES))
    scale, shift = tensor(SCALE), tensor(SHIFT)

    def trained(v, **more):
        return F.batch_norm(v, oar.zeros([8]), oar.ones([8]), training=True, **more)

    turned = tensor(matrix()).t()
    turned.subtract_(tensor(matrix(1, (WIDTH, ROWS))))
    results = {
        "layer_norm": F.layer_norm(x, [WIDTH], tensor(WEIGHT), tensor(BIAS)),
        "layer_norm_plain": F.layer_norm(x, [WIDTH]),
        "layer_norm_grad": gradient(lambda v: F.layer_norm(v, [WIDTH]), matrix(), matrix(1)),
        "layer_norm_64": F.layer_norm(x.astype("float64"), [WIDTH]),
        "group_norm": F.group_norm(images, 4, weight=scale, bias=shift),
        "instance_norm": F.instance_norm(images),
        "batch_norm_train": trained(images, weight=scale, bias=shift),
        "batch_norm_grad": gradient(trained, matrix(0, IMAGES), matrix(1, IMAGES)),
        "batch_norm_eval": F.batch_norm(images, tensor(MEAN), tensor(VARIANCE), training=False),
        "add_transposed": x + tensor(matrix(1, (WIDTH, ROWS))).t(),
        "subtract_into_transposed": turned.t(),
        "roll": oar.roll(x, 7, 1),
        "concat": oar.concat([x, tensor(matrix(1))], 1),
        "rows": oar.index_select(x, tensor(PLACES), 0),
        "outer": oar.outer(tensor(matrix(0, ROWS)), tensor(matrix(1, WIDTH))),
    }
    for name, made in results.items():
        assert made.numpy().nbytes >= 16 << 20, name
    np.savez(path, **{name: sampled(made.numpy()) for name, made in results.items()})


@pytest.fixture(scope="module", params=["avx2", "auto"])
def results(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "results.npz"
    subprocess.run([sys.executable, __file__, str(path)], check=True, env=dict(os.environ, OAR_CPU_ISA=request.param))
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("name", EXPECTED)
def test_against_numpy(results, name):
    np.testing.assert_allclose(results[name], expected(name), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    compute(sys.argv[1])
