#!python
"""The command `oar` of an installed wheel: runs the program in the package.

The package is found but not imported, because importing it takes longer than most commands.
"""

import importlib.util
import os
import sys

spec = importlib.util.find_spec("oar")
if spec is None or not spec.submodule_search_locations:
    sys.exit("oar: the Python package 'oar' is not installed for " + sys.executable)
os.environ.setdefault("OAR_PYTHON", sys.executable)  # the one that `oar doctor` asks
program = os.path.join(spec.submodule_search_locations[0], "bin", "oar")
os.execv(program, [program, *sys.argv[1:]])
