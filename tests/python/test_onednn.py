"""Products and convolutions large enough for oneDNN: values against NumPy, and what a cache of plans could
spoil. In a build without oneDNN the same tests run on our own kernels."""

import os
import threading

import numpy as np
import pytest

import oar

FULL = os.environ.get("OAR_TEST_MODE") == "full"


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def tensor(array, dtype="float32"):
    return oar.to_tensor(array.astype("float32")).astype(dtype)


def close(result, expected, dtype="float32", depth=1):
    # Both sides round; the error of a sum grows with the root of its length.
    eps = {"float32": 6e-8, "bfloat16": 4e-3, "float16": 5e-4}[dtype]
    scale = np.abs(expected).max() + 1e-30
    got = result.astype("float32").numpy()
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= eps * (4 + depth**0.5) * scale


def rounded(array, dtype):
    return tensor(array, dtype).astype("float32").numpy().astype("float64")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_products_of_random_shapes(rng, dtype):
    for _ in range(60):
        m, n, k = (int(v) for v in rng.integers(2, 160, 3))
        if rng.random() < 0.3:
            k *= 40
        batch_x, batch_y = [((), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), ()), ((2, 1), (1, 3))][rng.integers(5)]
        tx, ty = bool(rng.integers(2)), bool(rng.integers(2))
        x = rng.standard_normal(batch_x + ((k, m) if tx else (m, k)))
        y = rng.standard_normal(batch_y + ((n, k) if ty else (k, n)))
        x, y = rounded(x, dtype), rounded(y, dtype)
        expected = np.matmul(np.swapaxes(x, -1, -2) if tx else x, np.swapaxes(y, -1, -2) if ty else y)
        close(oar.matmul(tensor(x, dtype), tensor(y, dtype), tx, ty), expected, dtype, k)


# More columns than a part has, a long sum, and dense columns; with as many parts as threads and more.
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("m, k, n", [(20, 200, 8000), (33, 6000, 300), (300, 1100, 1555)])
def test_products_with_a_large_right_factor(rng, m, k, n, threads):
    before = oar.get_num_threads()
    oar.set_num_threads(threads)
    try:
        x, y, bias, more = (rng.standard_normal(shape) for shape in ((m, k), (k, n), (n,), (m, n)))
        expected = x @ y
        for turn_x in (False, True):
            for turn_y in (False, True):
                a, b = tensor(x.T if turn_x else x), tensor(y.T if turn_y else y)
                close(oar.matmul(a, b, turn_x, turn_y), expected, depth=k)
        close(oar.nn.functional.linear(tensor(x), tensor(y), tensor(bias)), expected + bias, depth=k)
        fused = oar.jit.to_static(lambda x, y, b, r: oar.nn.functional.relu(oar.matmul(x, y) + b + r))
        wanted = np.maximum(expected + bias + more, 0)
        close(fused(tensor(x), tensor(y), tensor(bias), tensor(more)), wanted, depth=k)
    finally:
        oar.set_num_threads(before)


def test_products_with_vectors(rng):
    matrix, column, row = rng.standard_normal((301, 1233)), rng.standard_normal((301, 2)), rng.standard_normal((2, 1233))
    m, c, r = tensor(matrix), tensor(column), tensor(row)
    close(oar.matmul(m, r[1]), matrix @ row[1], depth=1233)
    close(oar.matmul(c[:, 1], m), column[:, 1] @ matrix, depth=301)
    close(oar.matmul(m, c[:, :1], True), matrix.T @ column[:, :1], depth=301)
    close(oar.matmul(r[:1], m, False, True), row[:1] @ matrix.T, depth=1233)
    close(oar.matmul(m[:, ::3], r[0, ::3]), matrix[:, ::3] @ row[0, ::3], depth=411)
    close(oar.matmul(c[:, 1:], r[:1]), column[:, 1:] @ row[:1])
    close(oar.nn.functional.linear(c[:, 0], m, r[1]), column[:, 0] @ matrix + row[1], depth=301)


def test_products_of_views(rng):
    x, y = rng.standard_normal((6, 70, 2, 130)), rng.standard_normal((6, 90, 2, 130))
    # Heads in the middle, as attention has them: the leading size of a row is larger than the row.
    a, b = tensor(x).transpose([0, 2, 1, 3]), tensor(y).transpose([0, 2, 3, 1])
    close(oar.matmul(a, b), np.einsum("bqhd,bkhd->bhqk", x, y), depth=130)
    a, b = tensor(x)[:, ::2, 0, ::2], tensor(y)[:, :, 1, 65:].transpose([0, 2, 1])
    close(oar.matmul(a, b), x[:, ::2, 0, ::2] @ y[:, :, 1, 65:].transpose(0, 2, 1), depth=65)


@pytest.mark.parametrize("shape", [(300,), (9, 300), (4, 50, 300)])
def test_linear_and_its_gradients(rng, shape):
    x, w, b = rng.standard_normal(shape), rng.standard_normal((300, 150)), rng.standard_normal(150)
    tensors = [tensor(v) for v in (x, w, b)]
    for t in tensors:
        t.stop_gradient = False
    out = oar.nn.functional.linear(*tensors)
    close(out, x @ w + b, depth=300)
    seed = rng.standard_normal(out.shape)
    (out * tensor(seed)).sum().backward()
    rows, seeds = x.reshape(-1, 300), seed.reshape(-1, 150)
    close(tensors[0].grad, seed @ w.T, depth=150)
    close(tensors[1].grad, rows.T @ seeds, depth=len(rows))
    close(tensors[2].grad, seeds.sum(0), depth=len(rows))


def draw_convolution(rng):
    rank = int(rng.integers(1, 4))
    groups = int(rng.choice([1, 1, 2, 4, 8]))
    depth = 1 if rng.random() < 0.2 else int(rng.integers(4, 20))
    out = groups * int(rng.choice([1, 5, 16]))
    size = {1: (90, 300), 2: (12, 30), 3: (7, 12)}[rank]
    kernel = [int(v) for v in rng.integers(1, 4, rank)]
    return dict(
        x=rng.standard_normal((int(rng.integers(1, 4)), groups * depth, *rng.integers(*size, rank))),
        weight=rng.standard_normal((out, depth, *kernel)),
        bias=rng.standard_normal(out) if rng.random() < 0.5 else None,
        stride=[int(v) for v in rng.integers(1, 3, rank)],
        padding=[int(v) for v in rng.integers(0, 3, 2 * rank)],
        dilation=[int(v) for v in rng.integers(1, 3, rank)],
        groups=groups,
        channels_last=bool(rng.random() < 0.4),
    )


def results_of_convolution(case, dtype, seed):
    """The convolution and its gradients; a seed of None means those of the sum."""
    x, weight = tensor(case["x"], dtype), tensor(case["weight"], dtype)
    if case["channels_last"]:
        x = x.transpose([0, *range(2, x.ndim), 1]).clone()
    bias = None if case["bias"] is None else tensor(case["bias"], dtype)
    wanted = [x, weight] if bias is None else [x, weight, bias]
    for t in wanted:
        t.stop_gradient = False
    out = oar._C.ops.conv(x, weight, bias, case["stride"], case["padding"], case["dilation"], case["groups"],
                          case["channels_last"])
    if seed is None:
        grads = oar.grad([out.sum()], wanted)
    else:
        grads = oar.grad([out], wanted, [tensor(seed.standard_normal(out.shape), dtype)])
    return [out, *grads]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_convolutions_of_random_shapes_against_our_own(rng, dtype):
    for number in range(60):
        case = draw_convolution(rng)
        seed = number if number % 3 else None
        found = results_of_convolution(case, dtype, seed and np.random.default_rng(seed))
        oar.set_flags({"onednn": False})
        try:
            expected = results_of_convolution(case, dtype, seed and np.random.default_rng(seed))
        finally:
            oar.set_flags({"onednn": True})
        for a, b in zip(found, expected):
            close(a, b.astype("float32").numpy(), dtype, depth=case["x"].size)


def test_convolution_of_views(rng):
    x, weight = rng.standard_normal((2, 40, 20, 24)), rng.standard_normal((24, 3, 3, 16))
    a, w = tensor(x)[:, ::2][:, :16, 2:, 1:21], tensor(weight).transpose([0, 3, 1, 2])
    args = (None, [1, 1], [1, 1, 1, 1], [1, 1], 1)
    found = oar._C.ops.conv(a, w, *args)
    close(found, oar._C.ops.conv(a.clone(), w.clone(), *args).numpy(), depth=144)


def test_a_weight_written_in_place_is_seen(rng):
    x, w = rng.standard_normal((200, 180)), rng.standard_normal((180, 190))
    a, b = tensor(x), tensor(w)
    for step in range(4):
        close(oar.nn.functional.linear(a, b), x @ w, depth=180)
        close(oar.matmul(b, a, True, True), (x @ w).T, depth=180)
        b[3 * step, :] = float(step)
        w[3 * step, :] = step
    # Another tensor in the same memory, as the allocator gives it out again.
    for _ in range(20):
        w = rng.standard_normal((180, 190))
        b = tensor(w)
        close(oar.nn.functional.linear(a, b), x @ w, depth=180)
        del b


def test_a_kernel_written_in_place_is_seen(rng):
    x, w = tensor(rng.standard_normal((2, 16, 20, 20))), tensor(rng.standard_normal((16, 16, 3, 3)))
    args = (None, [1, 1], [1, 1, 1, 1], [1, 1], 1)
    before = oar._C.ops.conv(x, w, *args)
    w *= 2
    close(oar._C.ops.conv(x, w, *args), 2 * before.numpy())


def test_results_are_the_same_bits_for_a_number_of_threads(rng):
    """Pieces of another size may be summed by another kernel of oneDNN, depending on the processor."""
    threads = oar.get_num_threads()
    x, y = tensor(rng.standard_normal((300, 700))), tensor(rng.standard_normal((700, 260)))
    try:
        for count in (1, 2, 3):
            oar.set_num_threads(count)
            first, second = oar.matmul(x, y), oar.matmul(x, y)
            assert (first.numpy() == second.numpy()).all()
            close(first, x.numpy() @ y.numpy(), depth=700)
    finally:
        oar.set_num_threads(threads)


def test_threads_at_the_same_time(rng):
    pairs = [(rng.standard_normal((150 + 7 * i, 160)), rng.standard_normal((160, 170))) for i in range(4)]
    wrong = []

    def work(seed):
        order = np.random.default_rng(seed).integers(0, 4, 40)
        for i in order:
            x, y = pairs[i]
            try:
                close(oar.matmul(tensor(x), tensor(y)), x @ y, depth=160)
            except AssertionError as error:
                wrong.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_a_forked_child_computes(rng):
    x = rng.standard_normal((200, 200))
    a = tensor(x)
    close(oar.matmul(a, a), x @ x, depth=200)
    child = os.fork()
    if child == 0:
        try:
            close(oar.matmul(a, a), x @ x, depth=200)
            close(oar.matmul(a[:150], a), x[:150] @ x, depth=200)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_plans_of_many_shapes_do_not_pile_up(rng):
    count = 10_000 if FULL else 300

    def multiply(times):
        for _ in range(times):
            m, k, n = (int(v) for v in rng.integers(100, 160, 3))
            oar.matmul(oar.ones([m, k]), oar.ones([k, n]))

    multiply(600)  # the cache is full
    before = resident_bytes()
    multiply(count)
    assert resident_bytes() - before < 48 << 20
