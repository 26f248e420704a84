"""Programs written for Paddle, run with Oar in its place."""

import os
import subprocess
import sys
import textwrap

import pytest

import oar


def run(*arguments, cwd=None, code=0):
    process = subprocess.run(
        [sys.executable, "-m", "oar.as_paddle", *map(str, arguments)], cwd=cwd, capture_output=True, text=True
    )
    assert process.returncode == code, process.stderr
    return process.stdout if code == 0 else process.stderr


def run_code(code, *arguments, **options):
    return run("-c", textwrap.dedent(code), *arguments, **options)


def test_modules_are_the_same_objects():
    out = run_code(
        """
        import paddle, oar, sys
        import paddle.nn.functional as F
        from paddle.optimizer import lr
        import paddle.nn.layer.layers
        assert paddle.nn is oar.nn and F is oar.nn.functional and lr is oar.optimizer.lr
        assert sys.modules["paddle.nn.layer.layers"] is sys.modules["oar.nn.layer.layers"]
        assert paddle.Tensor is oar.Tensor and isinstance(paddle.nn.Linear(1, 1), oar.nn.Layer)
        assert oar.nn.__spec__.name == "oar.nn"
        print(paddle.__version__, oar.__version__)
        """
    )
    assert out.split() == ["3.3.1", oar.__version__]


def test_inner_paths_of_functions():
    run_code(
        """
        import paddle
        from paddle.nn.functional.input import embedding, one_hot
        from paddle.nn.functional import distance, extension, norm
        F = paddle.nn.functional
        assert embedding is F.embedding and norm.layer_norm is F.layer_norm
        assert extension.sequence_mask is F.sequence_mask and distance.pairwise_distance is F.pairwise_distance
        assert F.vision.affine_grid is F.affine_grid and F.common.interpolate is F.interpolate
        assert not hasattr(norm, "no_such_norm")
        paddle.framework.random._manual_program_seed(7)
        assert paddle.static.default_main_program().random_seed == 7
        assert paddle.static.Program().random_seed == 7
        assert isinstance(paddle.ones([1]), paddle.base.framework.Variable)
        """
    )


def test_writing_to_paddle_is_seen_in_oar():
    run_code("import paddle, oar; paddle.answer = 42; assert oar.answer == 42")
    run_code("import paddle, oar; paddle.answer = 42; del paddle.answer; assert not hasattr(oar, 'answer')")


@pytest.mark.parametrize(
    ("code", "error", "name"),
    [
        ("import paddle.cost_model", "ModuleNotFoundError", "paddle.cost_model"),
        ("import paddle.distributed.io", "ModuleNotFoundError", "paddle.distributed.io"),
        ("from paddle.distributed import passes", "ImportError", "paddle.distributed.passes"),
        ("import paddle; paddle.distributed.io", "AttributeError", "paddle.distributed.io"),
        ("import paddle; paddle.distributed.fsdp", "AttributeError", "paddle.distributed.fsdp"),
    ],
)
def test_missing_names_are_named(code, error, name):
    text = run("-c", code, code=1)
    assert f"{error}: Oar does not have {name} yet" in text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import paddle.nnn", "ModuleNotFoundError: there is no paddle.nnn; did you mean paddle.nn?"),
        ("from paddle.nn import Liner", "ImportError: there is no paddle.nn.Liner; did you mean paddle.nn.Linear?"),
        ("import paddle; paddle.zeroes", "AttributeError: there is no paddle.zeroes; did you mean paddle.zeros?"),
        ("import paddle; paddle.optimizer.SDG", "AttributeError: there is no paddle.optimizer.SDG; did you mean "
                                                "paddle.optimizer.SGD?"),
        ("import paddle; paddle.gelu", "AttributeError: there is no paddle.gelu; did you mean "
                                       "paddle.nn.functional.gelu?"),
        ("import paddle; paddle.qwertyuiop", "AttributeError: there is no paddle.qwertyuiop\n"),
    ],
)
def test_typing_errors_are_told_from_missing_names(code, message):
    text = run("-c", code, code=1)
    assert message in text and text.count("id you mean") <= 1


def test_typing_errors_without_the_command():
    done = subprocess.run([sys.executable, "-c", "import oar; oar.nn.Liner"], capture_output=True, text=True)
    assert done.stderr.endswith("AttributeError: there is no oar.nn.Liner; did you mean oar.nn.Linear?\n")


def test_what_is_printed_speaks_of_paddle():
    out = run_code(
        """
        import paddle
        print(paddle.float32, repr(paddle.ones([1], "int64").dtype), paddle.version.full_version, paddle.version.major)
        try:
            paddle.matmul([[1.0]], [[1.0]])
        except TypeError as error:
            print(error)
        """
    )
    assert out.startswith("paddle.float32 paddle.int64 3.3.1 3\n") and "paddle.to_tensor" in out
    assert repr(oar.float32) == "oar.float32"


def test_hasattr_still_works():
    run_code("import paddle; assert hasattr(paddle, 'nn') and not hasattr(paddle, 'foo')")
    run_code("import paddle; assert hasattr(paddle.nn, 'Linear') and not hasattr(paddle.nn, 'Foo')")


def test_script_sees_itself(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, os, helper, paddle\n"
        "assert __name__ == '__main__' and sys.modules['__main__'].__file__ == __file__\n"
        "assert os.path.samefile(__file__, sys.argv[0])\n"
        "print(sys.argv[1:], helper.value)\n"
        "sys.exit(3)\n"
    )
    (tmp_path / "helper.py").write_text("value = 'helped'\n")
    process = subprocess.run(
        [sys.executable, "-m", "oar.as_paddle", str(script), "--a", "b"], capture_output=True, text=True
    )
    assert process.returncode == 3 and process.stdout == "['--a', 'b'] helped\n"


def test_module_and_code(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tool.py").write_text("import sys, paddle\nprint(__name__, __spec__.name, sys.argv[1:])\n")
    assert run("-m", "package.tool", "x", cwd=tmp_path) == "__main__ package.tool ['x']\n"
    assert run("-c", "import sys; print(sys.argv)", "x") == "['-c', 'x']\n"
    assert "cannot open" in run(tmp_path / "nothing.py", code=1)
    assert "usage" in run("--help")


def test_modules_of_the_package_run_under_their_second_name(tmp_path):
    """In a process that a program starts, too."""
    assert run("-m", "paddle.base.reader", cwd=tmp_path) == ""
    child = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'paddle.base.reader'], check=True); print('ran')"
    assert run("-c", child, cwd=tmp_path) == "ran\n"


def test_tracebacks_show_the_program(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import paddle\n\nraise ValueError('here')\n")
    text = run(script, code=1)
    assert f'File "{script}", line 3' in text and "ValueError: here" in text
    assert text.startswith(f'Traceback (most recent call last):\n  File "{script}", line 3, in <module>\n')


def test_tracebacks_begin_at_the_program(tmp_path):
    (tmp_path / "failing.py").write_text("import paddle\n\ndef f():\n    paddle.ones([2]).reshape([3])\n\nf()\n")
    for arguments in (("failing.py",), ("-m", "failing"), ("-c", "import failing")):
        text = run(*arguments, cwd=tmp_path, code=1)
        first, where = text.splitlines()[:2]
        assert first == "Traceback (most recent call last):" and "runpy" not in text and "__main__.py" not in text
        assert ("failing.py" if arguments[0] != "-c" else "<string>") in where
        assert "[reshape]" in text.splitlines()[-1]


def test_tracebacks_of_broken_syntax(tmp_path):
    (tmp_path / "broken.py").write_text("import paddle\nx = = 3\n")
    text = run("broken.py", cwd=tmp_path, code=1)
    assert text.lstrip().startswith('File "broken.py", line 2') and "SyntaxError" in text


def test_hooks_of_the_program_for_errors_still_run(tmp_path):
    (tmp_path / "hooked.py").write_text(
        "import sys\nsys.excepthook = lambda kind, error, trace: print('hooked', error)\nraise ValueError('x')\n")
    process = subprocess.run([sys.executable, "-m", "oar.as_paddle", "hooked.py"], cwd=tmp_path, capture_output=True,
                             text=True)
    assert process.returncode == 1 and process.stdout == "hooked x\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_child_processes(tmp_path, method):
    script = tmp_path / "parallel.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import multiprocessing, paddle

            class Net(paddle.nn.Layer):
                pass

            def child(layer_class):
                import oar, paddle
                return paddle.nn is oar.nn and layer_class is oar.nn.Linear and issubclass(Net, oar.nn.Layer)

            if __name__ == "__main__":
                context = multiprocessing.get_context({method!r})
                with context.Pool(1) as pool:
                    print(pool.map(child, [paddle.nn.Linear]))
            """
        )
    )
    assert run(script) == "[True]\n"


def test_subprocesses_find_paddle():
    out = run_code(
        """
        import subprocess, sys, os, paddle
        code = "import paddle.nn, oar; print(paddle.nn is oar.nn, paddle.__version__)"
        print(subprocess.check_output([sys.executable, "-c", code], text=True, cwd="/").strip())
        """
    )
    assert out == "True 3.3.1\n"


def test_pickles_agree(tmp_path):
    run_code(
        """
        import paddle, pickle
        pickle.dump(paddle.nn.Linear(2, 2), open("layer.pkl", "wb"))
        """,
        cwd=tmp_path,
    )
    code = "import pickle, oar; print(type(pickle.load(open('layer.pkl', 'rb'))) is oar.nn.Linear)"
    out = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, text=True, env=os.environ.copy())
    assert out == "True\n"


def test_oar_is_untouched_without_the_command():
    code = "import oar, sys; assert 'paddle' not in sys.modules and not hasattr(oar, 'nothing')"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_visualdl(tmp_path):
    """Its LogWriter is there without the package, in processes that a program starts too; an installed package is used."""
    code = "from visualdl import LogWriter; print(LogWriter.__module__)"
    started = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    for program in (code, f"import paddle; {code}", started):
        assert run("-c", program, cwd=tmp_path) == "oar.board.writer\n"
    (tmp_path / "visualdl").mkdir()  # a folder of logs is not a package
    assert run("-c", code, cwd=tmp_path) == "oar.board.writer\n"
    (tmp_path / "visualdl" / "__init__.py").write_text("from visualdl.other import LogWriter\n")
    (tmp_path / "visualdl" / "other.py").write_text("class LogWriter:\n    pass\n")
    for program in (code, started):
        assert run("-c", program, cwd=tmp_path) == "visualdl.other\n"
