"""An interpreter of Python functions, for captures: every value that reaches a program has a known, guarded source.

| file | what it does |
|---|---|
| `code.py` | decodes bytecode |
| `frame.py` | frames and the binding of arguments |
| `world.py` | objects made inside, objects found outside (guarded), writes that wait |
| `machine.py`, `instructions.py` | the instructions |
| `attributes.py`, `calls.py`, `operators.py`, `builtin_functions.py` | Python's protocols |
| `known.py`, `arrays.py`, `substitutes.py` | native code that may run, and Python in place of some of it |
| `results.py` | results and effects, made anew at every run |

What is not known is declined: the function then runs in segments, as Python. See docs/to-static.md.
"""

from oar.jit.interpret import builtin_functions as builtin_functions
from oar.jit.interpret import instructions as instructions
from oar.jit.interpret.code import SUPPORTED as SUPPORTED
from oar.jit.interpret.machine import Machine as Machine
from oar.jit.interpret.results import Results as Results
from oar.jit.interpret.world import Decline as Decline
from oar.jit.interpret.world import Raised as Raised
from oar.jit.interpret.world import Restart as Restart
