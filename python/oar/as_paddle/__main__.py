"""The command ``python -m oar.as_paddle``: run a script, a module or code with Oar as ``paddle``."""

from __future__ import annotations

import os
import runpy
import sys
import types

from oar import as_paddle

USAGE = """usage: python -m oar.as_paddle script.py [args ...]
       python -m oar.as_paddle -m module [args ...]
       python -m oar.as_paddle -c code [args ...]

Runs a program written for Paddle with Oar in its place: `import paddle` gives Oar, in the program
and in the processes it starts.
"""


def _without_launcher(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback from the program's own first frame on."""
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path != __file__ and not path.startswith("<frozen runpy") and path != runpy.__file__:
            break
        trace = trace.tb_next
    return trace


def _show_only_the_program() -> None:
    shown = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        trace = _without_launcher(trace)
        shown(kind, error.with_traceback(trace), trace)

    sys.excepthook = excepthook


def _fresh_main(file: str | None) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if file is not None:
        main.__file__ = file
    sys.modules["__main__"] = main
    return main


def _run_script(path: str) -> None:
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        sys.path.pop(0)
        runpy.run_path(path, run_name="__main__")
        return
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        sys.exit(f"python -m oar.as_paddle: cannot open '{path}': {error.strerror}")
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    code = compile(source, path, "exec", dont_inherit=True)
    exec(code, _fresh_main(path).__dict__)


def _run_code(text: str) -> None:
    sys.path[0] = ""
    exec(compile(text, "<string>", "exec", dont_inherit=True), _fresh_main(None).__dict__)


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        sys.exit(0 if arguments else 2)
    as_paddle.install()
    _show_only_the_program()
    kind, rest = arguments[0], arguments[1:]
    if kind in ("-m", "-c") and not rest:
        sys.exit(f"python -m oar.as_paddle: {kind} needs an argument\n{USAGE}")
    if kind == "-m":
        sys.argv = rest
        if rest[0].startswith("paddle.") and not hasattr(sys.modules.get(rest[0]), "__path__"):
            sys.modules.pop(rest[0], None)  # it has been loaded under its other name, and must be found as a module to run
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        _run_code(rest[0])
    else:
        sys.argv = arguments
        _run_script(kind)


if __name__ == "__main__":
    main()
