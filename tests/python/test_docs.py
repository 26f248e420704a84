"""The pages stay true: their examples run, their links lead somewhere, their figures are not invented."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_files
import pytest

import oar

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(oar._C.__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "src").rglob("README.md")), *sorted((ROOT / "examples").rglob("README.md")),
         *sorted((ROOT / "benchmarks").glob("*.md"))]  # fmt: skip
needs_build = pytest.mark.skipif(
    not (BUILD / "OarConfig.cmake").exists() or shutil.which("g++") is None, reason="needs the build tree and g++"
)


def fences(page: str, language: str) -> list[str]:
    """The code blocks of a page that are marked with a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def run(*command, cwd: Path, **environment: str) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)  # fmt: skip
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def compile_cpp(sources: list[Path], out: Path, *options: str) -> None:
    """As a program outside the project would be: our headers are system headers, no flag is ours."""
    run("g++", "-std=c++20", "-O1", *options, "-isystem", ROOT / "src", "-isystem", BUILD / "generated", *sources,
        f"-L{BUILD / 'lib'}", "-loar", f"-Wl,-rpath,{BUILD / 'lib'}", "-o", out, cwd=out.parent)  # fmt: skip


def anchor(heading: str) -> str:
    """The name that a heading's link has."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


# ---- Links, figures ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, part = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / path) if path else page
        if not file.exists():
            dead.append(target)
        elif part and part not in [anchor(h) for h in re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)]:
            dead.append(target)
    assert not dead, f"{page}: these links lead nowhere: {dead}"


def test_every_folder_of_the_library_has_a_readme():
    folders = [f for f in (ROOT / "src" / "oar").rglob("*") if f.is_dir() and any(f.glob("*.[ch]*"))]
    assert [str(f) for f in folders if not (f / "README.md").exists()] == []


def test_counts_in_the_readme_are_about_right():
    """Adding an op must not break a test, so a tenth more than the stated number is accepted."""
    records = [r for r in oar._C.op_records() if r["family"] not in ("user", "test")]
    plain = [r for r in records if not r["inplace_of"]]
    actual = {
        "ops": len(plain),
        "in-place": len(records) - len(plain),
        "families": len({r["family"] for r in plain}),
        "primitives": sum(not r["has_decompose"] for r in plain),
    }
    row = re.search(r"\| ops \| (\d+) ops and (\d+) in-place forms in (\d+) families; (\d+) of them are primitives",
                    (ROOT / "README.md").read_text())  # fmt: skip
    stated = dict(zip(actual, map(int, row.groups())))
    wrong = {what: (stated[what], actual[what]) for what in actual
             if not 0.9 * actual[what] <= stated[what] <= 1.1 * actual[what]}  # fmt: skip
    assert not wrong, f"README.md says (first), the registry has (second): {wrong}"
    unsupported = sum(f.read_text().count("Unsupported{") for f in (ROOT / "src/oar/ops").rglob("*.cpp"))
    assert f"Rules marked *unsupported*: {unsupported} |" in (ROOT / "README.md").read_text()


# ---- README.md -----------------------------------------------------------------------------------


def test_python_example_of_the_readme(tmp_path):
    (example,) = fences("README.md", "python")
    assert example.count("\n") <= 15
    (tmp_path / "example.py").write_text(example)
    out = run(sys.executable, "example.py", cwd=tmp_path)
    assert float(re.match(r"loss (\S+)", out)[1]) < 1e-6, out


@needs_build
def test_cpp_example_of_the_readme(tmp_path):
    (example,) = fences("README.md", "cpp")
    assert example.count("\n") <= 15
    (tmp_path / "example.cpp").write_text(example)
    compile_cpp([tmp_path / "example.cpp"], tmp_path / "example", "-Wall", "-Wextra", "-Werror")
    out = run("./example", cwd=tmp_path)
    assert float(re.search(r"step 200: loss (\S+)", out)[1]) < 1e-6, out


def test_paddle_script_of_the_readme(tmp_path):
    (tmp_path / "script.py").write_text(fences("README.md", "python")[0].replace("oar", "paddle"))
    assert "loss" in run(sys.executable, "-m", "oar.as_paddle", "script.py", cwd=tmp_path)


@needs_build
def test_cpp_project(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    run("cmake", "-S", ROOT / "examples" / "cpp", "-B", tmp_path, f"-DOar_DIR={BUILD}", cwd=tmp_path)
    run("cmake", "--build", tmp_path, cwd=tmp_path)
    assert "float32[points, 1]" in run("./spirals", cwd=tmp_path)
    run("./images", tmp_path / "some", 40, cwd=tmp_path)
    resumed = run("./images", tmp_path / "some", 60, cwd=tmp_path)
    assert "goes on after step 40" in resumed
    assert re.search(r"step 60: .*% right", resumed), resumed


@needs_build
def test_the_page_on_training_in_cpp(tmp_path):
    """Its blocks are one program. A second run has nothing left to do."""
    (tmp_path / "page.cpp").write_text("\n".join(fences("docs/cpp.md", "cpp")))
    compile_cpp([tmp_path / "page.cpp"], tmp_path / "page", "-Wall", "-Wextra", "-Werror")
    out = run("./page", cwd=tmp_path)
    assert float(re.search(r"step 160: loss (\S+)", out)[1]) < 1.0, out
    assert run("./page", cwd=tmp_path) == ""
    state = oar.load(tmp_path / "net.safetensors")
    assert list(state["hidden.weight"].shape) == [2, 32]


@needs_build
def test_the_quickstart_trains_to_the_same_numbers_in_cpp(tmp_path):
    """From the same seed, with the same losses at every step and the same parameters in the end, to the bit."""
    quickstart = ROOT / "examples" / "quickstart"
    compile_cpp([quickstart / "train.cpp"], tmp_path / "train", "-Wall", "-Wextra", "-Werror")
    (tmp_path / "cpp").mkdir()
    out = run("./train", ROOT / "python/oar/datasets/digits.npz", "--epochs", 2, "--seed", 3, "--out", "cpp", cwd=tmp_path)
    (tmp_path / "script.py").write_text(
        "import numpy as np, oar, train\n"
        "oar.seed(3); np.random.seed(3)\n"
        "net = train.DigitNet()\n"
        "np.save('losses.npy', np.array(train.train(net, 2, 32, 0.004, 0)))\n"
        "oar.save(net.state_dict(), 'python.safetensors')\n"
        "test = train.Digits('test')\n"
        "print(f'{(train.probabilities(net, test.images).argmax(axis=1) == test.labels).mean():.2%} of')\n"
    )
    printed = run(sys.executable, "script.py", cwd=tmp_path, PYTHONPATH=f"{quickstart}{os.pathsep}{BUILD / 'python'}")
    losses = np.load(tmp_path / "losses.npy")
    assert len(losses) == 88
    np.testing.assert_array_equal(np.load(tmp_path / "cpp/losses.npy"), losses)
    wanted, found = oar.load(tmp_path / "python.safetensors"), oar.load(tmp_path / "cpp/digits.safetensors")
    assert sorted(wanted) == sorted(found)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name].numpy(), value.numpy(), err_msg=name)
    assert re.search(r"[\d.]+% of", out)[0] == re.search(r"[\d.]+% of", printed)[0]


# ---- Pages of docs/ ------------------------------------------------------------------------------

# These have their own tests.
OWN_TEST = [ROOT / "README.md", ROOT / "examples" / "oar_reader" / "README.md",
            *(ROOT / "docs" / page for page in ("custom-ops.md", "importing.md", "ocr.md", "onnx.md", "paddle-models.md",
                                         "parameter-server.md", "tutorial.md"))]
WITH_PYTHON = [page for page in PAGES if fences(str(page), "python") and page not in OWN_TEST]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_of_a_page(page, tmp_path):
    """The blocks continue each other, as they do for a reader."""
    (tmp_path / "page.py").write_text("\n".join(fences(str(page), "python")))
    run(sys.executable, "page.py", cwd=tmp_path)


def test_python_of_the_page_on_models_of_paddle(tmp_path):
    """Its model is one that Oar wrote; the block that writes one comes last on the page."""
    before = ("import oar\n"
              "net = oar.nn.Sequential(oar.nn.Conv2D(3, 4, 7, 8), oar.nn.ReLU(), oar.nn.Flatten(), oar.nn.Linear(3136, 5))\n"
              "oar.inference.paddle.save(net, 'inference', [oar.static.InputSpec([None, 3, 224, 224], 'float32', 'x')])\n"
              "image, executor = oar.randn([2, 3, 224, 224]).numpy(), oar.static.Executor()\n")
    after = "import numpy as np\nnp.testing.assert_allclose(scores.numpy(), net(oar.to_tensor(image)).numpy(), rtol=1e-4, atol=1e-5)\n"
    (tmp_path / "page.py").write_text("\n".join([before, *fences("docs/paddle-models.md", "python"), after]))
    run(sys.executable, "page.py", cwd=tmp_path)


@pytest.mark.skipif(bool(oar._C.parameter_server_missing()), reason="this build has no parameter servers")
@pytest.mark.parametrize("number", range(2))
def test_scripts_of_the_page_on_servers(number, tmp_path):
    """Its blocks are scripts of their own."""
    (tmp_path / "train.py").write_text(fences("docs/parameter-server.md", "python")[number])
    run(sys.executable, "-m", "oar.distributed.launch", "--server_num", 1, "--worker_num", 1, "train.py", cwd=tmp_path)


def test_python_of_the_example_reader(tmp_path):
    (tmp_path / "save.py").write_text(
        "import oar\noar.jit.save(oar.nn.Linear(3, 2), 'model.oar', input_spec=[oar.static.InputSpec([None, 3], 'float32', 'x')])\n")
    run(sys.executable, "save.py", cwd=tmp_path)
    reader = ROOT / "examples" / "oar_reader"
    (tmp_path / "page.py").write_text("\n".join(fences("examples/oar_reader/README.md", "python")))
    assert "program forward" in run(sys.executable, "page.py", cwd=tmp_path, PYTHONPATH=str(reader))


def test_python_of_the_page_on_text_in_images():
    """Its networks come from a registry, so it does not run here: the names that it uses are looked up."""
    (block,) = fences("docs/ocr.md", "python")
    from oar.vision import ocr

    names = set(re.findall(r"\bocr\.(\w+)", block))
    assert names == {"fetch_models", "Reader", "draw"} and all(callable(getattr(ocr, name)) for name in names)


def test_python_of_the_page_on_onnx(tmp_path):
    nodes = [onnx_files.node("GlobalAveragePool", ["image"], ["mean"]), onnx_files.node("Flatten", ["mean"], ["scores"])]
    image = onnx_files.port("image", ["batch", 3, "height", "width"])
    (tmp_path / "model.onnx").write_bytes(onnx_files.model(nodes, [image], ["scores"]))
    (tmp_path / "page.py").write_text("\n".join(fences("docs/onnx.md", "python")))
    printed = run(sys.executable, "page.py", cwd=tmp_path)
    assert "['image'] ['scores']" in printed
    assert "mean(" in printed


def test_the_tutorial_shows_what_its_code_draws(tmp_path):
    (tmp_path / "page.py").write_text("\n".join(fences("docs/tutorial.md", "python")))
    run(sys.executable, "page.py", cwd=tmp_path)
    drawn, shown = ((folder / "learning_curve.svg").read_text() for folder in (tmp_path, ROOT / "docs" / "images"))
    shapes = [re.sub(r"-?\d+\.\d+", "", text) for text in (drawn, shown)]  # batches are shuffled, so heights differ
    assert shapes[0] == shapes[1], "copy learning_curve.svg, which the tutorial writes, to docs/images"


def test_the_list_of_missing_names_is_current(tmp_path):
    """`make docs` writes it."""
    run(sys.executable, ROOT / "tools" / "missing_names.py", "--check", cwd=tmp_path)


def test_no_name_that_exists_is_listed_as_missing():
    text = (ROOT / "docs" / "from-paddle.md").read_text()
    listed = re.findall(r"^\*\*`paddle([\w.]*)`\*\* \(.*?\n\n(.*?)\n(?=\n)", text, re.MULTILINE | re.DOTALL)
    assert len(listed) > 5
    found = []
    for path, names in listed:
        home = oar
        for part in path.split(".")[1:]:
            home = getattr(home, part, None)
        found += [f"oar{path}.{name}" for name in re.findall(r"`(\w+)`", names) if hasattr(home, name)]
    assert found == []


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md" and f"({page.name})" not in index] == []
    assert "(docs/README.md)" in (ROOT / "README.md").read_text()


REGISTRAR = """
#include "oar/ops/core/registry.h"
namespace oar {
std::span<const OpDef* const> example_family();
namespace {
const bool added = (Registry::get().add_family("example", example_family()), true);
}
}  // namespace oar
"""


@needs_build
def test_the_worked_family_passes_the_tests_of_the_registry(tmp_path):
    """Generated, compiled as an extension instead of into the library, and tested as any family is."""
    (family,) = [block for block in fences("docs/adding-an-op.md", "cpp") if "OAR_FAMILY(example" in block]
    ops = tmp_path / "ops"
    ops.mkdir()
    (ops / "example.cpp").write_text(family)
    run(sys.executable, ROOT / "tools" / "generate" / "main.py", "--ops", ops, "--kernels", ops, "--out", tmp_path, cwd=tmp_path)
    assert "## to_polar" in (tmp_path / "docs" / "reference" / "example.md").read_text()
    (tmp_path / "registrar.cpp").write_text(REGISTRAR)
    for other in ("all.h", "families.gen.cpp"):  # of this one family, which is not what they are
        (tmp_path / "oar" / "ops" / "gen" / other).unlink()
    library = tmp_path / "libexample.so"
    compile_cpp([ops / "example.cpp", tmp_path / "oar/ops/gen/example.gen.cpp", tmp_path / "registrar.cpp"], library,
                "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
                "-fno-strict-aliasing", f"-I{tmp_path}")  # fmt: skip
    # Loaded before the package, which then finds the ops as it finds all others.
    program = f"""
import ctypes, sys
ctypes.CDLL({str(library)!r})
import oar, pytest
x = oar.to_tensor([[1.0, -2.0], [0.5, 3.0]], stop_gradient=False)
assert x.sum_of_squares(axis=1).tolist() == [5.0, 9.25]
radius, angle = oar.to_polar(x, x * x)
(radius + angle).sum().backward()
assert oar.func.vmap(oar.sum_of_squares)(x.detach()).tolist() == [5.0, 9.25]
x.detach().log_cosh_()
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "example- and registry", "tests/python"]))
"""
    out = run(sys.executable, "-c", program, cwd=ROOT)
    passed = re.search(r"(\d+) passed", out)
    assert passed and int(passed[1]) >= 30, out


@needs_build
def test_cpp_extension_of_adding_an_op(tmp_path):
    (source,) = [block for block in fences("docs/adding-an-op.md", "cpp") if block.startswith("// my_ops.cpp")]
    (tmp_path / "my_ops.cpp").write_text(source)
    compile_cpp([tmp_path / "my_ops.cpp"], tmp_path / "libmy_ops.so", "-shared", "-fPIC")
    run(sys.executable, "-c", f"""
import ctypes, oar
ctypes.CDLL({str(tmp_path / "libmy_ops.so")!r})
x = oar.to_tensor([0.5, 2.0], stop_gradient=False)
y = oar._C.ops.my_soft_square(x)
y.sum().backward()
assert abs(y.sum().item() - 1.0) < 1e-6 and abs(x.grad.sum().item() - 0.8) < 1e-6
""", cwd=tmp_path)  # fmt: skip


@needs_build
def test_custom_ops(tmp_path):
    relu, square = fences("docs/custom-ops.md", "cpp")
    (tmp_path / "scaled_relu.cpp").write_text(relu)
    (tmp_path / "custom_square.cpp").write_text(square)
    (page,) = fences("docs/custom-ops.md", "python")
    said = run(sys.executable, "-c", page + """
more = load("more", ["custom_square.cpp"])
x = oar.to_tensor([3.0], stop_gradient=False)
more.custom_square(x).backward()
assert x.grad.tolist() == [6.0]
""", cwd=tmp_path, OAR_EXTENSION_DIR=str(tmp_path))
    assert said.split("\n")[:2] == ["[0.0, 6.0] [0.0, 3.0]", "[1.0, 3.0]"]


# ---- docs/adding-a-device.md ---------------------------------------------------------------------


@needs_build
def test_plugin_of_adding_a_device(tmp_path):
    (source,) = fences("docs/adding-a-device.md", "cpp")
    (tmp_path / "toy.cpp").write_text(source)
    # Not linked to the library: the C header is all it needs.
    run("g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'src'}", "toy.cpp",
        "-o", "toy.so", cwd=tmp_path)  # fmt: skip
    run(sys.executable, "-c", """
import oar
assert oar._C.load_plugin("./toy.so") == "toy"
x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]]).to("toy")
x.stop_gradient = False
y = x * x + oar.to_tensor([10.0, 20.0]).to("toy")
y.backward()
assert y.cpu().tolist() == [[11.0, 24.0], [19.0, 36.0]]
assert x.grad.cpu().tolist() == [[2.0, 4.0], [6.0, 8.0]]
assert oar.square(x).cpu().tolist() == [[1.0, 4.0], [9.0, 16.0]]
try:
    oar.matmul(x, x)
except NotImplementedError as error:
    assert "toy devices know five ops only" in str(error), error
else:
    raise AssertionError("matmul ran")
""", cwd=tmp_path)  # fmt: skip
    tests = BUILD / "bin" / "oar_tests"
    if tests.exists():
        out = run(tests, "--gtest_filter=Conformance.Plugin", cwd=tmp_path, OAR_CTS_PLUGIN=str(tmp_path / "toy.so"),
                  OAR_CTS_DEVICE="toy:0")  # fmt: skip
        assert " passed, 0 failed, " in out, out


# ---- Import, benchmarks --------------------------------------------------------------------------


def test_import_leaves_numpy_alone(tmp_path):
    """NumPy takes longer to import than all of Oar; see docs/performance.md."""
    run(sys.executable, "-c", "import sys, oar; assert 'numpy' not in sys.modules, 'numpy was imported'", cwd=tmp_path)


def test_benchmark_runs(tmp_path):
    out = run(sys.executable, ROOT / "benchmarks" / "per_call.py", "--rounds", "1", "--seconds", "0.0005", "--json",
              tmp_path / "tiny.json", cwd=tmp_path)  # fmt: skip
    assert "| forward and backward" in out and (tmp_path / "tiny.json").exists()
