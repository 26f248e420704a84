"""``import visualdl`` gives VisualDL if it is installed, else its ``LogWriter`` as ``oar.board`` has it."""

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_shim = Path(__file__).parent.parent.resolve()
_spec = PathFinder.find_spec("visualdl", [entry for entry in sys.path if Path(entry).resolve() != _shim])
if _spec is not None and _spec.loader is not None and _spec.origin is not None:  # a folder without __init__.py has no origin
    _installed = importlib.util.module_from_spec(_spec)
    sys.modules["visualdl"] = _installed
    _spec.loader.exec_module(_installed)
else:
    from oar.board import LogWriter

    __all__ = ["LogWriter"]
