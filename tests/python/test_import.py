"""What `import oar` imports at once, and what is imported on first use."""

import subprocess
import sys

import pytest

import oar


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_import_is_lean():
    """Neither NumPy nor the parts that many programs never use, nor modules of Python's that take long to import."""
    brought = set(run("import sys, oar; print(*sys.modules)").split())
    assert not brought & {"numpy", "ml_dtypes", "typing", "inspect", "re", "dataclasses", "oar.nn", "oar.static", "oar.jit",
                          "oar.framework", "oar.optimizer", "oar.base", "oar.io"}
    assert {"oar._C", "oar._tensor"} <= brought


def test_import_is_quick():
    """150 ms, by CPU time, since other programs may run; the best of some tries."""
    code = ("import resource; at = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2]); before = at(); "
            "import oar; print(at() - before)")
    assert min(float(run(code)) for _ in range(5)) < 0.15


@pytest.mark.parametrize("part", sorted(oar._lazy_names))
def test_each_part_can_come_first(part):
    """As an attribute, by `from` and, for modules, by `import`, whatever has been imported before: nothing."""
    elsewhere = ("core", "ir_backward")  # modules of other packages, so `import` does not find them here
    whole = f"import oar.{part}; " if isinstance(getattr(oar, part), type(sys)) and part not in elsewhere else ""
    run(f"import oar; value = oar.{part}; {whole}from oar import {part} as other; assert value is other")


def test_names_are_listed_before_they_are_imported():
    listed = run("import oar; print(*dir(oar))").split()
    assert {"nn", "optimizer", "save", "grad", "LazyGuard", "to_tensor", "matmul", "__version__"} <= set(listed)
    assert set(oar._lazy_names) <= set(listed) and listed == sorted(listed)


def test_star_import_takes_everything():
    taken = set(run("from oar import *; print(*dir())").split())
    present = run("import oar; print(*dir(oar))").split()  # not of this process, where other tests import further parts
    assert {name for name in present if not name.startswith("_")} <= taken


def test_a_tensor_has_all_attributes_from_the_start():
    before, after = run("import oar; a = set(dir(oar.Tensor)); oar._lazy_names.load_all(); "
                        "print(len(a), len(set(dir(oar.Tensor)) | a))").split()
    assert before == after


def test_missing_names_are_explained_in_parts_imported_later():
    code = "import oar.{0}\ntry:\n    oar.{0}.nothing_like_it\nexcept AttributeError as error:\n    print(error)"
    for part in ("nn", "optimizer.lr", "static.nn", "nn.functional", "vision"):
        assert f"there is no oar.{part}.nothing_like_it" in run(code.format(part))
    assert "did you mean oar.nn.Linear?" in run("import oar\ntry:\n    oar.Linear\nexcept AttributeError as e:\n    print(e)")


def test_asking_whether_a_name_is_there_imports_nothing():
    assert run("import sys, oar; hasattr(oar, 'no_such'); hasattr(oar.linalg, 'no_such'); "
               "print('oar.nn' in sys.modules)") == "False"


def test_eager_training_does_without_static_programs():
    code = """
import sys, oar
net = oar.nn.Linear(2, 1)
schedule = oar.optimizer.lr.StepDecay(0.1, step_size=1)
optimizer = oar.optimizer.Adam(schedule, parameters=net.parameters())
for _ in range(2):
    loss = net(oar.ones([3, 2])).mean()
    loss.backward()
    optimizer.minimize(loss)
    optimizer.clear_grad()
    schedule.step()
print(*sys.modules)
"""
    assert not {"oar.static", "oar.jit", "oar.base"} & set(run(code).split())


def test_a_part_that_fails_to_import_says_why():
    """An error inside a part is not mistaken for a missing name."""
    code = """
import sys, types, oar
class Broken:
    def find_spec(name, path=None, target=None):
        if name == "oar.metric":
            raise AttributeError("the reason")
sys.meta_path.insert(0, Broken)
try:
    oar.metric
except AttributeError as error:
    print(error)
"""
    assert run(code) == "the reason"
