"""The examples of the page on the command run."""

import shlex
import sys

from command_models import run as command
from command_models import write_inputs, write_models
from test_docs import fences
from test_docs import run as run_program


def test_commands_of_the_page(tmp_path):
    write_models(tmp_path)
    write_inputs(tmp_path)
    (tmp_path / "page.py").write_text("\n".join(fences("docs/command.md", "python")))
    run_program(sys.executable, "page.py", cwd=tmp_path)
    printed = {}
    for block in fences("docs/command.md", "sh"):
        for line in block.splitlines():
            program, *words = shlex.split(line)
            assert program == "oar", line
            printed[line] = command(*words, cwd=tmp_path)
    assert len(printed) > 20
    assert (tmp_path / "results.npz").exists() and (tmp_path / "program.svg").exists() and (tmp_path / "trained.safetensors").exists()
    assert any("before and after" in text for text in printed.values())
