"""Fused programs from Python: values, open sizes, whole training steps, threads, the trace, and what turns fusion off."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import oar
from oar import nn
from oar.static import InputSpec

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))

import fusion_fuzz

F = nn.functional


@pytest.fixture
def fused():
    before = oar.get_flags(["FLAGS_fusion", "FLAGS_fusion_runs"])
    oar.set_flags({"FLAGS_fusion": True, "FLAGS_fusion_runs": 0})
    yield
    oar.set_flags(before)


def expect_close(got, wanted, tol=1e-5):
    np.testing.assert_allclose(got.astype("float64").numpy(), wanted.astype("float64").numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_random_programs(first):
    wrong = [fusion_fuzz.check(seed, 40) for seed in range(first, first + 40)]
    assert not [w for w in wrong if w]


# Programs that were once wrong: a value that only later loops read, calls behind views, several reductions of 16-bit floats.
@pytest.mark.parametrize("seed", [45, 61, 151, 245, 272, 330, 353])
def test_programs_that_were_wrong(seed):
    assert fusion_fuzz.check(seed, 60, any_axes=False) is None


def test_open_sizes(fused):
    program = oar.jit.capture(lambda x, b: F.gelu(x + b) * 2.0, [InputSpec(["rows", 24]), InputSpec([24])])
    b = oar.randn([24])
    for rows in (1, 5, 64, 0):
        x = oar.randn([rows, 24])
        expect_close(program(x, b), F.gelu(x + b) * 2.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_a_training_step_learns_the_same(dtype, fused):
    def losses():
        oar.seed(3)
        net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).astype(dtype)
        optimizer = oar.optimizer.AdamW(0.01, parameters=net.parameters())

        @oar.jit.to_static
        def step(x, y):
            loss = F.mse_loss(F.softmax(net(x) * 0.5, -1), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        x, y = oar.randn([6, 8]).astype(dtype), oar.rand([6, 4]).astype(dtype)
        return [float(step(x, y)) for _ in range(6)]

    together = losses()
    oar.set_flags({"FLAGS_fusion": False})
    apart = losses()
    np.testing.assert_allclose(together, apart, rtol={"float32": 1e-4, "float64": 1e-9}.get(dtype, 3e-2))


def test_static_programs_and_predictors(fused, tmp_path):
    net = nn.Sequential(nn.Linear(6, 12), nn.Silu(), nn.LayerNorm(12))
    net.eval()
    x = oar.randn([3, 6])
    wanted = net(x)
    path = str(tmp_path / "net")
    oar.jit.save(oar.jit.to_static(net, input_spec=[InputSpec([None, 6])]), path)
    expect_close(oar.jit.load(path)(x), wanted)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.softmax(oar.sin(x) * 3.0, -1) + oar.tanh(x),
        lambda x: oar.sum(oar.tanh(x) * x, 0),
        lambda x: oar.mean(oar.exp(x) - x),
        lambda x: oar.sum(F.layer_norm(x, [x.shape[-1]]) * x, 0),
    ],
)
def test_results_do_not_depend_on_threads(function, fused):
    program = oar.jit.capture(function, [InputSpec([900, 701])])
    x, threads = oar.randn([900, 701]), oar.get_num_threads()
    bits = []
    for count in (1, 2, 3):
        oar.set_num_threads(count)
        bits.append(program(x).numpy().tobytes())
    oar.set_num_threads(threads)
    assert len(set(bits)) == 1


@pytest.mark.parametrize("axes", [[0], [1], [0, 1], [0, 2], [0, 2, 3], [0, 1, 2, 3], [2], [1, 2]])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int32"])
def test_sums_along_any_axes(axes, dtype, fused):
    """Against NumPy in float64, with the elements themselves as a second result."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(18, 17, 19, 33)) if dtype != "int32" else rng.integers(-99, 99, (18, 17, 19, 33))
    x = oar.to_tensor(data).astype(dtype)

    def function(x):
        doubled = x + x
        if dtype == "int32":
            return doubled, oar.sum(doubled, axes)
        return doubled, oar.sum(doubled, axes), oar.mean(doubled, axes, keepdim=True), oar.max(doubled, axes)

    got = oar.jit.capture(function, [InputSpec([18, 17, 19, 33], dtype)])(x)
    twice = 2 * (x.astype("float64").numpy() if dtype != "int32" else x.numpy().astype("int64"))
    wanted = (twice, twice.sum(tuple(axes)), twice.mean(tuple(axes), keepdims=True), twice.max(tuple(axes)))
    for a, b in zip(got, wanted):
        a = a.astype("float64").numpy()
        scale = np.sqrt(twice.size) if b is wanted[1] else 1.0
        np.testing.assert_allclose(
            a, b, rtol={"bfloat16": 5e-3}.get(dtype, 1e-6), atol=scale * {"bfloat16": 4e-3}.get(dtype, 1e-6)
        )


def test_totals_of_wide_rows(fused):
    x, threads = oar.randn([70, 2500]), oar.get_num_threads()
    program = oar.jit.capture(lambda x: (x * 2.0, oar.sum(x * 2.0, 0), oar.max(x * 2.0, 0)), [InputSpec([70, 2500])])
    bits = set()
    for count in (1, 2):
        oar.set_num_threads(count)
        doubled, total, most = program(x)
        bits.add(total.numpy().tobytes())
    oar.set_num_threads(threads)
    exact = 2 * x.numpy().astype("float64")
    np.testing.assert_allclose(doubled.numpy(), exact, rtol=1e-6)
    np.testing.assert_allclose(total.numpy(), exact.sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(most.numpy(), exact.max(0), rtol=1e-6)
    assert len(bits) == 1


def test_long_sums_keep_their_last_digits(fused):
    """A million numbers of one sign: adding one after the other in float32 would be off by far more."""
    x = oar.rand([1 << 12, 1 << 9])
    got = oar.jit.capture(
        lambda x: (oar.sum(x * 0.5 + 1.0), oar.sum(x * 0.5 + 1.0, 0)), [InputSpec([1 << 12, 1 << 9])]
    )(x)
    exact = x.numpy().astype("float64") * 0.5 + 1.0
    np.testing.assert_allclose(float(got[0]), exact.sum(), rtol=3e-7)
    np.testing.assert_allclose(got[1].numpy(), exact.sum(0), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_error_function_has_the_same_bits_wherever_a_row_ends(dtype, fused):
    """16 at a time, 8 at a time, and one by one."""
    function = lambda x: oar.erf(x) * 2.0 + x
    x = oar.linspace(-5.0, 5.0, 77).astype(dtype)
    whole = oar.jit.capture(function, [InputSpec([77], dtype)])(x).astype("float32").numpy()
    for length in range(1, 40):
        part = oar.jit.capture(function, [InputSpec([length], dtype)])(x[:length])
        np.testing.assert_array_equal(part.astype("float32").numpy(), whole[:length])
    exact = [math.erf(v) * 2 + v for v in x.astype("float64").tolist()]
    np.testing.assert_allclose(whole, exact, rtol=1e-6 if dtype == "float32" else 2e-2, atol=1e-6)
    odd = oar.to_tensor(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], "float32"))
    got = oar.jit.capture(lambda x: oar.erf(x) * 2.0, [InputSpec([5])])(odd).numpy()
    np.testing.assert_allclose(got, [np.nan, 2, -2, -0.0, 0.0], rtol=1e-6)
    assert np.signbit(got[3]) and not np.signbit(got[4])


def test_whole_powers_are_products(fused):
    x = oar.to_tensor(np.array([-2.0, -0.0, 3.0, np.inf, -np.inf, np.nan], "float32"))
    function = lambda x: tuple(oar.pow(x, n) + 0.0 * x for n in (1.0, 2.0, 3.0, 2, 3))
    for got, wanted in zip(oar.jit.capture(function, [InputSpec([6])])(x), function(x)):
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


def test_operands_across_rows_are_left_alone(fused):
    """A transposed matrix would be read cache line by cache line."""
    x = oar.randn([96, 80])
    expect_close(oar.jit.capture(lambda x: x.t() * 2.0 + 1.0, [InputSpec([96, 80])])(x), x.t() * 2.0 + 1.0)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_numbers_in_totals(special, fused):
    data = np.ones((40, 24), "float32")
    data[7, 3] = special
    function = lambda x: (oar.sum(x * 2.0, 0), oar.max(x * 2.0, 0), oar.min(x * 2.0, 0), oar.mean(x * 2.0, 0))
    x = oar.to_tensor(data)
    for got, wanted in zip(oar.jit.capture(function, [InputSpec([40, 24])])(x), function(x)):
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


SCRIPT = """
import oar
from oar.static import InputSpec
program = oar.jit.capture(lambda x: oar.tanh(x) * x, [InputSpec([4, 4])])
print(float(program(oar.ones([4, 4])).sum()))
"""


def run(**env):
    env = {**os.environ, "OAR_FUSION_RUNS": "0", **env}
    made = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True)
    return float(made.stdout), made.stderr


def test_the_trace_and_the_flags():
    value, said = run(OAR_TRACE="fusion", OAR_FUSION="1")
    if "cannot be loaded" in said:
        pytest.skip("no code generator here")
    assert "tanh, multiply: one loop over [4, 4]" in said
    for off in ({"OAR_FUSION": "0"}, {"OAR_FUSION": "1", "OAR_PASSES_OFF": "fuse"}):
        same, said = run(OAR_TRACE="fusion", **off)
        assert "one loop" not in said
        assert abs(same - value) < 1e-5


def test_kernels_are_kept_on_disk_between_processes(tmp_path):
    """Compiled, loaded, compiled again after damage, and never a failure where nothing can be kept."""
    kept = {"OAR_TRACE": "fusion", "OAR_FUSION": "1", "OAR_CACHE_DIR": str(tmp_path)}
    value, said = run(**kept)
    if "cannot be loaded" in said:
        pytest.skip("no code generator here")
    assert "fusion: compiled" in said
    (entry,) = (tmp_path / "kernels").iterdir()
    again, said = run(**kept)
    assert again == value and "fusion: loaded" in said
    whole = entry.read_bytes()
    entry.write_bytes(whole[:200] + bytes([whole[200] ^ 8]) + whole[201:])
    again, said = run(**kept)
    assert again == value and "fusion: compiled" in said
    assert entry.read_bytes() == whole  # it was replaced
    again, said = run(**{**kept, "OAR_CACHE_DIR": "/proc/none"})
    assert again == value and "fusion: compiled" in said


def test_two_processes_share_the_disk(tmp_path):
    env = {**os.environ, "OAR_FUSION": "1", "OAR_FUSION_RUNS": "0", "OAR_CACHE_DIR": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    values = {process.communicate()[0] for process in both}
    assert len(values) == 1 and all(process.returncode == 0 for process in both)


SIZES_SCRIPT = """
import oar
from oar.static import InputSpec
for size in (8, 1024):
    program = oar.jit.capture(lambda x: oar.tanh(x) * x + x, [InputSpec([size, size])])
    program(oar.ones([size, size]))
    print("liboar_codegen" in open("/proc/self/maps").read())
"""


def test_only_what_pays_is_compiled(tmp_path):
    """The code generator is not even loaded for small tensors."""
    env = {**os.environ, "OAR_FUSION": "1", "OAR_TRACE": "fusion", "OAR_CACHE_DIR": str(tmp_path)}
    env.pop("OAR_FUSION_RUNS", None)
    made = subprocess.run([sys.executable, "-c", SIZES_SCRIPT], env=env, capture_output=True, text=True, check=True)
    if "cannot be loaded" in made.stderr:
        pytest.skip("no code generator here")
    assert made.stdout.split() == ["False", "True"]
    assert "stay apart: one loop saves" in made.stderr and "one loop over [1024, 1024]" in made.stderr


INTERRUPTED_SCRIPT = """
import oar
from oar.static import InputSpec
def program(k):
    return oar.jit.capture(lambda x: oar.tanh(x) * float(k) + x, [InputSpec([4, 4])])
program(1)(oar.ones([4, 4]))
try:
    print("ready", flush=True)
    for k in range(2, 3000):
        program(k)(oar.ones([4, 4]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(float(program(-1)(oar.ones([4, 4])).sum()))
"""


def test_an_interrupt_during_compilation_leaves_a_usable_process():
    env = {**os.environ, "OAR_FUSION": "1", "OAR_FUSION_RUNS": "0", "OAR_KERNEL_CACHE_MB": "0"}
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED_SCRIPT], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    interrupted, value = process.communicate(timeout=60)[0].split()
    assert interrupted == "interrupted" and process.returncode == 0
    assert float(value) == pytest.approx(16 * (1 - np.tanh(1.0)), rel=1e-5)


SHORT_OF_MEMORY_SCRIPT = """
import os, resource, sys
import oar
from oar.static import InputSpec
def program(k):
    return oar.jit.capture(lambda x: oar.tanh(x) * float(k) + x, [InputSpec([4, 4])])
x = oar.ones([4, 4])
if sys.argv[1] == "compile":
    program(1)(x)
second = program(2)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGESIZE") + (256 << 10), resource.RLIM_INFINITY))
made = second(x)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(float(made.sum()), float(program(3)(x).sum()))
"""


@pytest.mark.parametrize("moment", ["load", "compile"])
def test_a_compiler_without_memory_is_no_failure(moment):
    env = {**os.environ, "OAR_FUSION": "1", "OAR_FUSION_RUNS": "0", "OAR_KERNEL_CACHE_MB": "0"}
    made = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY_SCRIPT, moment], env=env, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    second, third = map(float, made.stdout.split())
    assert second == pytest.approx(16 * (2 * np.tanh(1.0) + 1), rel=1e-5)
    assert third == pytest.approx(16 * (3 * np.tanh(1.0) + 1), rel=1e-5)


def test_operands_that_no_kernel_can_read_run_call_by_call(fused):
    """Sums over two axes that do not follow one another in memory."""

    def function(x):
        turned = oar.transpose(x, [0, 2, 1])
        return turned * oar.mean(turned * turned, [1, 2], keepdim=True)

    x = oar.randn([4, 6, 10])
    expect_close(oar.jit.capture(function, [InputSpec([4, 6, 10])])(x), function(x))


def test_constants_of_a_size_are_numbers(fused):
    program = oar.jit.capture(lambda x: (x * 2.0 + 1.0) * oar.full([8, 8], 0.5), [InputSpec([8, 8])])
    x = oar.randn([8, 8])
    expect_close(program(x), x + 0.5)


@pytest.mark.parametrize("shape", [[], [1], [0], [3, 0, 2], [2, 1, 3, 1, 2, 1, 2, 2]])
def test_shapes_at_the_edges(shape, fused):
    program = oar.jit.capture(lambda x: oar.tanh(x) * 3.0 + oar.exp(-x), [InputSpec(shape)])
    x = oar.randn(shape)
    expect_close(program(x), oar.tanh(x) * 3.0 + oar.exp(-x))


def test_large_angles_are_exact(fused):
    program = oar.jit.capture(lambda x: oar.sin(x) + oar.cos(x) * 2.0, [InputSpec([5])])
    x = oar.to_tensor(np.array([1e30, -3e8, 600000.5, 1.0, np.inf], "float32"))
    with np.errstate(invalid="ignore"):
        wanted = np.sin(x.numpy().astype("float64")) + np.cos(x.numpy().astype("float64")) * 2
    np.testing.assert_allclose(program(x).numpy(), wanted, rtol=1e-5, atol=1e-6)
