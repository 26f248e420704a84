"""Ops of users in C++: compiled, loaded, and then equal to built-in ones."""

import os
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import oar
from oar.static import InputSpec
from oar.utils import cpp_extension
from oar.utils.cpp_extension.build import CachedBuild, compile_command, compile_library, compiler
from oar.utils.cpp_extension.load import load_library

SOURCE = Path(__file__).parent / "data" / "extension" / "ops.cpp"


def _has_compiler() -> bool:
    try:
        return bool(compiler())
    except RuntimeError:
        return False


pytestmark = pytest.mark.skipif(not _has_compiler(), reason="there is no C++ compiler")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("extensions")


def _load(folder):
    return cpp_extension.load("ext_ops", [str(SOURCE)], extra_cxx_cflags=["-O0"], build_directory=str(folder))


@pytest.fixture(scope="module")
def ops(folder):
    # Two at once: one compiles, the other one waits and finds the result.
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: _load(folder), range(2))
    assert first.__all__ == second.__all__
    return first


def leaf(values, dtype="float32"):
    return oar.to_tensor(values, dtype=dtype, stop_gradient=False)


def test_the_module_has_the_ops_and_only_those(ops):
    assert ops.__all__ == ["ext_soft_square", "ext_cube", "ext_tanh", "ext_affine", "ext_pile", "ext_clamp",
                           "ext_smaller", "ext_wrong"]


def test_a_record_with_a_kernel(ops):
    x = np.array([[0.5, -2.0, 3.0], [1.0, 0.0, -1.0]], "float32")
    np.testing.assert_allclose(ops.ext_soft_square(oar.to_tensor(x)).numpy(), x * x / (1 + x * x), rtol=1e-6)
    turned = oar.to_tensor(x).t()
    np.testing.assert_allclose(ops.ext_soft_square(turned).numpy(), (x * x / (1 + x * x)).T, rtol=1e-6)
    other = oar.to_tensor(x, dtype="float64")  # not for the kernel: the decomposition runs
    np.testing.assert_allclose(ops.ext_soft_square(other).numpy(), x.astype("float64") ** 2 / (1 + x.astype("float64") ** 2))


def test_orders_of_records(ops):
    x = leaf([1.0, -2.0, 0.5])
    (slope,) = oar.grad(ops.ext_soft_square(x).sum(), x, create_graph=True)
    v = x.numpy()
    np.testing.assert_allclose(slope.numpy(), 2 * v / (1 + v * v) ** 2, rtol=1e-6)
    (curvature,) = oar.grad(slope.sum(), x)
    np.testing.assert_allclose(curvature.numpy(), (2 - 6 * v * v) / (1 + v * v) ** 3, rtol=1e-5, atol=1e-6)
    value, expected = ops.ext_cube(x, scale=2.0), [6 * v * v, 12 * v, 12 + 0 * v]
    for rule in expected:
        (value,) = oar.grad(value.sum(), x, create_graph=True)
        np.testing.assert_allclose(value.numpy(), rule, rtol=1e-6)


def test_a_gradient_of_the_gradient_by_kernels(ops):
    x = leaf([0.3, -1.2, 2.0], "float64")
    v = np.tanh(x.numpy())
    out = ops.ext_tanh(x)
    np.testing.assert_allclose(out.numpy(), v)
    (slope,) = oar.grad(out.sum(), x, create_graph=True)
    np.testing.assert_allclose(slope.numpy(), 1 - v * v)
    (curvature,) = oar.grad((slope * slope).sum(), x, create_graph=False)
    np.testing.assert_allclose(curvature.numpy(), 2 * (1 - v * v) * -2 * v * (1 - v * v))


def test_the_end_of_the_derivatives_is_an_error(ops):
    x = leaf([0.3, -1.2], "float64")
    (slope,) = oar.grad(ops.ext_tanh(x).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="last derivative"):
        oar.grad(slope.sum(), x, create_graph=True)


def test_attributes_and_optional_inputs(ops):
    x, shift = np.array([1.0, 2.0], "float32"), np.array([10.0, 20.0], "float32")
    got = ops.ext_affine(oar.to_tensor(x), oar.to_tensor(shift), 3.0, [2, 3], "plain", True)
    np.testing.assert_allclose(got.numpy(), 2 * (3 * x + shift + x ** 2 + x ** 3))
    got = ops.ext_affine(oar.to_tensor(x), None, scale=3.0, powers=[], mode="plain", twice=False)
    np.testing.assert_allclose(got.numpy(), 3 * x)
    with pytest.raises(ValueError, match=r"\[ext_affine\] mode is 'other'; only 'plain' is known, with 0 powers"):
        ops.ext_affine(oar.to_tensor(x), None, 3.0, [], "other", False)
    with pytest.raises(TypeError, match="ext_affine"):
        ops.ext_affine(oar.to_tensor(x), None, "three", [], "plain", False)
    assert ops.ext_affine(leaf(x), None, 3.0, [], "plain", False).stop_gradient  # it has no gradient


def test_lists(ops):
    a, b = leaf([[1.0, 2.0]]), leaf([[3.0, 4.0]])
    out = ops.ext_pile([a, b], 2)
    np.testing.assert_array_equal(out.numpy(), [[[1, 2]], [[3, 4]], [[1, 2]], [[3, 4]]])
    (out * oar.to_tensor(np.arange(8, dtype="float32").reshape(4, 1, 2))).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [[4, 6]])
    np.testing.assert_array_equal(b.grad.numpy(), [[8, 10]])


def test_in_place(ops):
    x = oar.to_tensor([-1.0, 0.5, 2.0])
    out = ops.ext_clamp(x, 0.0)
    np.testing.assert_array_equal(x.numpy(), [0, 0.5, 2])
    np.testing.assert_array_equal(out.numpy(), [0, 0.5, 2])
    w = leaf([-1.0, 0.5, 2.0])
    y = w * 2
    ops.ext_clamp(y, 0.0)
    (y * y).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [0, 4, 16])
    with pytest.raises(ValueError, match="a leaf"):
        ops.ext_clamp(w, 0.0)


def test_captured(ops):
    def step(x):
        return ops.ext_tanh(x) + ops.ext_soft_square(x)

    program = oar.jit.capture(step, [InputSpec(["rows", 3])])
    assert "ext_tanh" in str(program) and "ext_soft_square" in str(program)
    for rows in (1, 4):
        x = oar.randn([rows, 3])
        np.testing.assert_allclose(program(x).numpy(), step(x).numpy(), rtol=1e-6)

    net = oar.nn.Linear(3, 3)
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())

    def train(x):
        loss = (ops.ext_tanh(net(x)) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    start = {k: v.clone() for k, v in net.state_dict().items()}
    x = oar.randn([5, 3])
    eager = [train(x).item() for _ in range(3)]
    net.set_state_dict(start)
    static = oar.jit.to_static(train)
    np.testing.assert_allclose([static(x).item() for _ in range(3)], eager, rtol=1e-5)


def test_open_sizes_pass_through_inference(ops):
    program = oar.jit.capture(lambda a, b: ops.ext_pile([a, b], 2), [InputSpec(["n", 2]), InputSpec(["n", 2])])
    for n in (1, 3):
        a, b = oar.randn([n, 2]), oar.randn([n, 2])
        np.testing.assert_array_equal(program(a, b).numpy(), ops.ext_pile([a, b], 2).numpy())


def test_without_inference_a_capture_says_what_is_missing(ops):
    x, y = oar.to_tensor([3.0]), oar.to_tensor([2.0])
    assert ops.ext_smaller(x, y).tolist() == [2.0]
    with pytest.raises(NotImplementedError, match="SetInferShapeFn"):
        oar.jit.capture(ops.ext_smaller, [InputSpec([1]), InputSpec([1])])


def test_vmap(ops):
    x = oar.to_tensor(np.linspace(-1, 1, 6, dtype="float32").reshape(3, 2))
    np.testing.assert_allclose(oar.func.vmap(ops.ext_tanh)(x).numpy(), np.tanh(x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(oar.func.vmap(ops.ext_soft_square)(x).numpy(), ops.ext_soft_square(x).numpy())
    per_row = oar.func.vmap(oar.func.grad(lambda r: ops.ext_tanh(r).sum()))(x)
    np.testing.assert_allclose(per_row.numpy(), 1 - np.tanh(x.numpy()) ** 2, rtol=1e-5)


def test_wrong_kernels_are_errors(ops):
    with pytest.raises(ValueError, match=r"\[ext_wrong\] the kernel function returned float32\[3\].*inference says"):
        ops.ext_wrong(oar.to_tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"\[ext_pile\].*a type other than float64"):
        ops.ext_pile([oar.to_tensor([1.0], dtype="float64")], 1)
    with pytest.raises(ValueError, match="no case for elements of type int32"):
        ops.ext_tanh(oar.to_tensor([1], dtype="int32"))


def test_cached_by_content(ops, folder):
    built = set(os.listdir(folder / "ext_ops"))
    again = _load(folder)
    assert set(os.listdir(folder / "ext_ops")) == built
    np.testing.assert_allclose(again.ext_cube(oar.to_tensor([2.0])).numpy(), [8.0])


@pytest.mark.parametrize("name", ["plain", "with a space, é and #"])
def test_a_header_of_any_source_counts(tmp_path, name):
    tmp_path = tmp_path / name
    tmp_path.mkdir()
    (tmp_path / "one.h").write_text("// first")
    sources = []
    for name in ("one", "two"):
        sources.append(str(tmp_path / f"{name}.cpp"))
        Path(sources[-1]).write_text(f'#include "one.h"\nint {name}() {{ return 1; }}\n' if name == "one" else "int two;\n")
    build = CachedBuild(tmp_path, "plain", lambda output: compile_command(sources, output))
    first = build.library()
    assert build.library() == first
    (tmp_path / "one.h").write_text("// second")
    assert build.library() != first


def _small(body: str) -> str:
    return '#include "oar/extension/extension.h"\n' + textwrap.dedent(body)


def test_errors_of_compiler_and_caller(folder, tmp_path):
    source = tmp_path / "bad.cpp"
    source.write_text("int broken( { return undeclared; }\n")
    with pytest.raises(RuntimeError, match=r"does not compile(.|\n)*bad.cpp:1"):
        cpp_extension.load("ext_bad", [str(source)], build_directory=str(folder))
    with pytest.raises(FileNotFoundError, match="nowhere.cpp"):
        cpp_extension.load("ext_bad", ["nowhere.cpp"])
    with pytest.raises(NotImplementedError, match="CUDA"):
        cpp_extension.load("ext_bad", ["kernel.cu"])
    with pytest.raises(ValueError, match="identifier"):
        cpp_extension.load("no name", [str(source)])
    with pytest.raises(TypeError, match="list of files"):
        cpp_extension.load("ext_bad", str(source))
    with pytest.raises(NotImplementedError, match="no CUDA"):
        cpp_extension.CUDAExtension(sources=["a.cu"])


# One library, loaded from several files: a variable tells each load what is wrong this time.
BAD_RECORDS = """
    #include <cstdlib>
    #include <string>
    #include "paddle/extension.h"

    static bool wrong(const char* what) { return std::string(std::getenv("OAR_TEST_EXTENSION")) == what; }

    std::vector<paddle::Tensor> F(const paddle::Tensor& x, int n) { return {x}; }
    static auto* signature = wrong("signature") ? new auto(paddle::OpMetaInfoBuilder("ext_bad_signature", 0)
        .Inputs({"X"}).Outputs({"Out"}).Attrs({"n: float"}).SetKernelFn(PD_KERNEL(F))) : nullptr;

    static oar::OpDef first() {
      return {.schema = "ext_first(Tensor x) -> Tensor", .decompose = [](const oar::Args& a) -> oar::Made {
                return a[0].as_tensor(); }};
    }
    static oar::OpDef second() {
      oar::OpDef def = first();
      def.schema = wrong("taken") ? "relu(Tensor x) -> Tensor" : wrong("schema") ? "this is no schema"
                                                               : "ext_second(Tensor x) -> Tensor";
      if (wrong("empty")) def.decompose = {};
      return def;
    }
    OAR_EXTENSION_OP(first);
    OAR_EXTENSION_OP(second);
"""


def test_bad_records(folder, tmp_path, monkeypatch):
    source, library = tmp_path / "bad.cpp", tmp_path / "bad.so"
    source.write_text(_small(BAD_RECORDS))
    compile_library(compile_command([str(source)], str(library), cflags=["-O0"]))
    for case, message in [
        ("signature", r"\[ext_bad_signature\] the kernel function takes \(Tensor, int\), but Inputs and Attrs say "
                      r"\(Tensor, float\)"),
        ("taken", r"\[relu\] an op of this name is registered already"),
        ("schema", "this is no schema"),
        ("empty", "neither a kernel nor a decomposition"),
    ]:
        monkeypatch.setenv("OAR_TEST_EXTENSION", case)
        copy = shutil.copy(library, tmp_path / f"{case}.so")
        with pytest.raises(ValueError, match=message):
            load_library(str(copy), case)
        assert "ext_first" not in dir(oar._C.ops)  # all or none


def test_setup(tmp_path):
    pytest.importorskip("setuptools")
    (tmp_path / "twice.cpp").write_text(_small("""
        static oar::OpDef twice() {
          return {.schema = "ext_twice(Tensor x) -> Tensor", .decompose = [](const oar::Args& a) -> oar::Made {
                    return oar::get_op("add").name() == "add" ? a[0].as_tensor() : oar::Tensor(); }};
        }
        OAR_EXTENSION_OP(twice);
    """))
    (tmp_path / "setup.py").write_text(textwrap.dedent("""
        from oar.utils.cpp_extension import CppExtension, setup
        setup(name="ext_package", ext_modules=CppExtension(sources=["twice.cpp"],
                                                           extra_compile_args={"cxx": ["-O0"]}))
    """))
    done = subprocess.run([sys.executable, "setup.py", "-q", "build", "--build-base", "out"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = tmp_path.glob("out/lib*")
    code = "import oar, ext_package; print(ext_package.ext_twice(oar.to_tensor([4.0])).tolist())"
    done = subprocess.run([sys.executable, "-c", code], cwd=built, capture_output=True, text=True)
    assert done.stdout.strip() == "[4.0]", done.stderr
