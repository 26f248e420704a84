"""An interpreter of Python functions, for captures: every value that reaches a program has a known, guarded source.

| file | what it does |
|---|---|
| `code.py` | decodes bytecode |
| `frame.py` | frames and the binding of arguments |
| `world.py`, `pending.py` | objects created inside, objects found outside (guarded), deferred writes |
| `machine.py`, `instructions.py`, `container_instructions.py`, `call_instructions.py` | the instructions |
| `attributes.py`, `calls.py`, `methods.py`, `iteration.py`, `operators.py` | Python's protocols |
| `builtin_functions.py`, `builtin_objects.py`, `package_functions.py` | functions of Python's and of this package's |
| `known.py`, `arrays.py`, `substitutes.py` | native code that may run, and Python in place of some of it |
| `flow.py`, `forks.py`, `ways.py`, `loops.py`, `heap.py` | branches and loops on the values of tensors |
| `numbers.py`, `asking.py`, `grown.py` | what is known only at run time: numbers, which tensors require a gradient, lengths of lists |
| `kept.py` | tensors that a function keeps outside from call to call |
| `results.py` | results and effects, rebuilt at every run |

What is not known is declined: the function then runs in segments, as Python. See docs/to-static.md.
"""

from oar.jit._interpret import builtin_functions as builtin_functions
from oar.jit._interpret import builtin_objects as builtin_objects
from oar.jit._interpret import call_instructions as call_instructions
from oar.jit._interpret import container_instructions as container_instructions
from oar.jit._interpret import instructions as instructions
from oar.jit._interpret import package_functions as package_functions
from oar.jit._interpret.code import SUPPORTED as SUPPORTED
from oar.jit._interpret.kept import Keep as Keep
from oar.jit._interpret.kept import KeptTensor as KeptTensor
from oar.jit._interpret.kept import can_be_kept as can_be_kept
from oar.jit._interpret.loops import Interpreter as Interpreter
from oar.jit._interpret.results import Results as Results
from oar.jit._interpret.world import Decline as Decline
from oar.jit._interpret.world import Raised as Raised
from oar.jit._interpret.world import Restart as Restart
