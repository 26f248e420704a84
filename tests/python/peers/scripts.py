"""Short scripts for what a table of operands cannot express: writes, aliases, dtypes as arguments, creating tensors."""

from __future__ import annotations


import numpy as np

from peers.edges import Edge, along, binary, tensor, unary

_SQUARE = np.arange(9.0).reshape(3, 3)


def _edges(name: str, calls, **arguments) -> list[Edge]:
    return [Edge(name, "", call, dict(arguments)) for call in calls]


def overlapping() -> list[Edge]:
    """Writes whose source overlaps what is written: as if the source had been copied first."""
    sources = ("a.T", "a[::-1]", "a.flip(0)", "a[0]", "a[:, 0]", "a.transpose([1, 0])", "paddle.roll(a, 1)", "a[0:1]",
               "a.T.T", "a[:, ::-1]", "a.reshape([9]).reshape([3, 3]).T")
    writes = ("paddle.assign(paddle.expand({}, [3, 3]), a)", "a.set_value(paddle.expand({}, [3, 3]))",
              "a.copy_(paddle.expand({}, [3, 3]))", "a[:] = {}", "a.add_({})", "a.subtract_({})", "a.multiply_({})",
              "a += {}")
    parts = ("a[1:] = a[:-1]", "a[:-1] = a[1:]", "a[:, 1:] = a[:, :-1]", "a[0] = a[:, 1]", "a[1:].add_(a[:-1])",
             "a[paddle.to_tensor([0, 1])] = a[paddle.to_tensor([1, 0])]", "a[a > 3] = a[0, 1]")
    lines = [write.format(source) for source in sources for write in writes] + list(parts)
    return _edges("overlapping", [f"a = paddle.assign(x)\n{line}\nresult = a" for line in lines],
                  x=tensor(_SQUARE, "float32"))


_WITH_DTYPE = """
paddle.ones([2], dtype={}), paddle.zeros([2], dtype={}), paddle.full([2], 1, {}), paddle.empty([0], dtype={}),
paddle.arange(3, dtype={}), paddle.eye(2, dtype={}), paddle.linspace(0, 3, 4, dtype={}),
paddle.to_tensor([1, 0], dtype={}), paddle.to_tensor([1.5, 0.0], dtype={}), paddle.ones_like(x, dtype={}),
paddle.zeros_like(x, dtype={}), paddle.full_like(x, 2, dtype={}), paddle.sum(x, dtype={}), paddle.prod(x, dtype={}),
paddle.cumsum(x, dtype={}), paddle.cumprod(x, 0, dtype={}), F.softmax(x, dtype={}), F.log_softmax(x, dtype={}),
paddle.nansum(x, dtype={}), paddle.empty_like(x[:0], dtype={}), paddle.logspace(0, 3, 4, dtype={}),
paddle.tril_indices(2, 2, 0, dtype={}), paddle.randint(1, 2, [2], dtype={})"""
_OF_DTYPE = "x.astype({}), x.cast({}), paddle.cast(x, {}), x.to({}), x.view({}), paddle.argmax(x, dtype={})"


def _listed(text: str) -> list[str]:
    """The expressions of a text, split where no bracket is open."""
    found, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            found.append(text[start:i].strip())
            start = i + 1
    return [*found, text[start:].strip()]


def dtypes() -> list[Edge]:
    """Python's types, their names and Paddle's own where a dtype is expected."""
    names = ("float", "int", "bool", "complex", "'float32'", "'int'", "'bool'", "'float'", "paddle.float16")
    calls = [call.format(name) for name in names for call in _listed(_WITH_DTYPE) + _listed(_OF_DTYPE)]
    calls += [call.format("None") for call in _listed(_WITH_DTYPE)]
    return _edges("dtypes", calls, x=tensor([1.0, 2.0], "float32"))


_CREATION = """
paddle.arange(1e30), paddle.arange(0), paddle.arange(5, 1), paddle.arange(5, 1, -2), paddle.arange(0.5, 3),
paddle.arange(3.0), paddle.arange(0, 1, 0.1), paddle.arange(1, 2, 0.3, 'float64'), paddle.arange(True),
paddle.arange(paddle.to_tensor(3)), paddle.arange(paddle.to_tensor(3.5)), paddle.arange(0, float('inf')),
paddle.arange(0, 5, 0), paddle.arange(float('nan')), paddle.arange(0, 10, 3, 'int32'), paddle.linspace(0, 1, 1),
paddle.linspace(0, 10, 5, 'int32'), paddle.linspace(10, 0, 4, 'int64'), paddle.linspace(0, 1, 0),
paddle.full([2], float('nan')), paddle.full([], 3), paddle.full([2], 3), paddle.full([2], True), paddle.full([2], 1.5),
paddle.full([2], 1+2j), paddle.full([2], 1.7, 'int32'), paddle.to_tensor(3), paddle.to_tensor(3.5),
paddle.to_tensor(True), paddle.to_tensor([]), paddle.to_tensor([1, 2.5]), paddle.to_tensor([True, 2]),
paddle.to_tensor(1+2j), paddle.to_tensor([[], []]), paddle.ones([0, 2]), paddle.ones([]), paddle.zeros(3),
paddle.eye(0), paddle.eye(2, 0), paddle.tril_indices(3, 3, 0), paddle.triu_indices(3, 3, 1),
paddle.diag(paddle.arange(2.0), 1), F.one_hot(paddle.arange(3), 3), paddle.complex(paddle.ones([]), paddle.ones([])),
paddle.meshgrid(paddle.arange(2), paddle.arange(3))"""


def creation() -> list[Edge]:
    """Making tensors of odd arguments."""
    return _edges("creation", _listed(_CREATION))


def written_after(found: dict[str, list[Edge]]) -> dict[str, list[Edge]]:
    """What may be written between an op and its gradient: operands and results that the gradient does not need."""
    scripts = {}
    for name, edges in found.items():
        edge = next((e for e in edges if e.gradients and e.dtype == "float64"), None)
        if edge is None:
            continue
        operands = list(edge.arguments)
        copies = "".join(f"{o}_leaf, {o} = {o}, paddle.assign({o})\n" for o in operands)
        plain = np.linspace(0.15, 0.85, 6).reshape(2, 3)
        given = {o: tensor(plain + 0.01 * i, "float64") for i, o in enumerate(operands)}
        call = f"{copies}out = {edge.call}\nout = out[0] if isinstance(out, (list, tuple)) else out\n"
        scripts[name] = [Edge(name, f"{written} written",
                              f"{call}{written}.add_(paddle.ones_like({written}))\nresult = out", given, True)
                         for written in (*operands, "out")]
    return scripts


_PLAIN = {name: [e for e in edges if "keepdim" not in e.call and "axis=[" not in e.call]
          for name, edges in along().items()}
SCRIPTS = {"overlapping": overlapping(), "dtypes": dtypes(), "creation": creation()}
WRITTEN = written_after({**unary(), **binary(), **_PLAIN})
