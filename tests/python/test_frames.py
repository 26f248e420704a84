"""Messages name the user's lines, wherever the user's files and the package are."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import oar
from oar.framework.frames import is_users_file, last_users_frame

PACKAGE = Path(oar.__file__).parent


def test_whose_file_it_is(tmp_path):
    import json

    for path in (PACKAGE / "_tensor.py", PACKAGE / "nn" / "layer" / "layers.py", json.__file__, "<frozen runpy>"):
        assert not is_users_file(str(path)), path
    for path in (tmp_path / "oar" / "train.py", tmp_path / "oar" / "oar" / "x.py", str(PACKAGE) + "_x/a.py", __file__,
                 "<string>", "<stdin>", Path(json.__file__).parents[1] / "site-packages" / "other" / "a.py"):
        assert is_users_file(str(path)), path


SCRIPT = """
    import oar

    def picked(x, index):
        return oar.gather(x.exp(), index)  # captured

    wrong = oar.to_tensor([7])
    program = oar.jit.capture(picked, [oar.ones([2]), oar.to_tensor([0])])
    try:
        program(oar.ones([2]), wrong)
    except IndexError as error:
        print(error)
    oar._C.run_in_segments(lambda: oar.gather(oar.ones([2]), wrong), (), {}, "")  # in segments
"""


@pytest.mark.parametrize("folder", ["plain", "oar", "oar/oar", "my oar é"])
def test_lines_of_files_in_a_folder_called_oar(tmp_path, folder):
    script = tmp_path / folder / "train.py"
    script.parent.mkdir(parents=True)
    source = textwrap.dedent(SCRIPT)
    script.write_text(source)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)

    def place(mark):
        return f"{script}:{next(i for i, line in enumerate(source.splitlines(), 1) if line.endswith(f'# {mark}'))}"
    assert place("captured") in done.stdout, done.stderr
    assert place("in segments") in done.stderr.splitlines()[-1]


def test_the_last_frame_of_the_user():
    def users():
        oar.ones([2]).reshape([3])

    with pytest.raises(ValueError) as caught:
        users()
    frame = last_users_frame(caught.value.__traceback__)
    assert frame.filename == __file__ and frame.name == "users"
    assert last_users_frame(None) is None


# what the user called, and what it must be called in the error
CALLS = [
    (lambda x: x.view("float64"), "view"),
    (lambda x: x.T.view([7]), "view"),
    (lambda x: oar.nn.functional.unfold(x, 2), "unfold"),
    (lambda x: oar.nn.functional.fold(x, [2, 2], 2), "fold"),
    (lambda x: x.astype("nonsense"), "astype"),
    (lambda x: oar.arange("a"), "arange"),
    (lambda x: oar.clip(x, "a"), "clip"),
    (lambda x: oar.split(x, 2, axis=1), "split"),
    (lambda x: x.fill_("a"), "fill_"),
    (lambda x: x.set_value("a"), "set_value"),
    (lambda x: oar.nn.functional.max_pool2d(x, 2), "max_pool2d"),
    (lambda x: oar.nn.functional.mse_loss(x, oar.ones([4])), "mse_loss"),
    (lambda x: oar.nn.Linear(4, 5)(x), "linear"),
    (lambda x: oar.nn.LSTM(4, 5)(oar.ones([2, 2, 3])), "linear"),
    (lambda x: x[5], "indexing"),
    (lambda x: x[[0, 5]], "indexing"),
    (lambda x: x.__setitem__(5, 1.0), "indexing"),
    (lambda x: x.item(9), "indexing"),
    (lambda x: x + oar.ones([4]), "add"),
]


@pytest.mark.parametrize("call, name", CALLS, ids=[f"{i}-{name}" for i, (_, name) in enumerate(CALLS)])
def test_errors_name_what_the_user_called(call, name):
    with pytest.raises((ValueError, TypeError, IndexError), match=rf"^\[{name}\] "):
        call(oar.ones([2, 3]))


def test_signatures_are_pythons():
    with pytest.raises(TypeError) as caught:
        oar.sum(oar.ones([2]), axs=1)
    text = str(caught.value)
    assert "did you mean 'axis'?" in text and "int[]" not in text
    assert "sum(x: Tensor, axis: int | list[int] | None = None, dtype: str | dtype | None = None" in text
    with pytest.raises(TypeError, match=r"view\(x: Tensor, "):  # of the function that was called, not of the op inside
        oar.ones([2]).view("int37")
