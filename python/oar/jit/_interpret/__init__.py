"""An interpreter of Python functions, for captures: every value that reaches a program has a known, guarded source.

| file | what it does |
|---|---|
| `code.py` | decodes bytecode |
| `frame.py` | frames and the binding of arguments |
| `world.py` | objects made inside, objects found outside (guarded), writes that wait |
| `machine.py`, `instructions.py` | the instructions |
| `attributes.py`, `calls.py`, `operators.py`, `builtin_functions.py` | Python's protocols |
| `known.py`, `arrays.py`, `substitutes.py` | native code that may run, and Python in place of some of it |
| `flow.py`, `forks.py`, `heap.py`, `numbers.py` | branches and loops on the values of tensors |
| `results.py` | results and effects, made anew at every run |

What is not known is declined: the function then runs in segments, as Python. See docs/to-static.md.
"""

from oar.jit._interpret import builtin_functions as builtin_functions
from oar.jit._interpret import instructions as instructions
from oar.jit._interpret.code import SUPPORTED as SUPPORTED
from oar.jit._interpret.kept import Keep as Keep
from oar.jit._interpret.kept import KeptTensor as KeptTensor
from oar.jit._interpret.kept import can_be_kept as can_be_kept
from oar.jit._interpret.loops import Interpreter as Interpreter
from oar.jit._interpret.results import Results as Results
from oar.jit._interpret.world import Decline as Decline
from oar.jit._interpret.world import Raised as Raised
from oar.jit._interpret.world import Restart as Restart
