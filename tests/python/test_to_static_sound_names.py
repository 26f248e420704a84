"""Captured functions never give a stale result: globals, enclosing variables, modules, data classes."""

import collections
import dataclasses
import enum
import sys
import types
import typing

from eager_twin import raised, side_by_side

import oar
from oar import nn

SCALE = 1.0
TABLE = {"scale": 1.0}


# names -------------------------------------------------------------------------------------------


@side_by_side
def test_globals(static, x, patch):
    module = sys.modules[__name__]
    f = static(lambda t: t * SCALE + TABLE["scale"])
    for scale, entry in ((1.0, 1.0), (1.0, 1.0), (2.0, 1.0), (2.0, 3.0)):
        patch.setattr(module, "SCALE", scale)
        patch.setitem(TABLE, "scale", entry)
        yield f(x())
    patch.setattr(module, "TABLE", {"scale": 9.0})
    yield f(x())
    patch.setattr(module, "len", lambda _: 5, raising=False)
    yield static(lambda t: t * len([1]))(x())


@side_by_side
def test_a_builtin_that_a_global_hides_later(static, x, patch):
    f = static(lambda t: t * abs(-2.0) + max(1, 3))
    yield f(x())
    yield f(x())
    patch.setattr(sys.modules[__name__], "abs", lambda v: 7.0, raising=False)
    yield f(x())
    patch.delattr(sys.modules[__name__], "abs")
    yield f(x())


@side_by_side
def test_a_builtin_is_replaced(static, x, patch):
    import builtins

    f = static(lambda t: t * round(2.4) + len((1, 2)))
    yield f(x())
    patch.setattr(builtins, "round", lambda v: 100)
    yield f(x())


@side_by_side
def test_globals_and_locals_as_dictionaries(static, x, patch):
    def f(t):
        s = globals()["SCALE"]
        return t * s + locals()["s"], "SCALE" in globals()

    f = static(f)
    for scale in (1.0, 1.0, 2.0):
        patch.setattr(sys.modules[__name__], "SCALE", scale)
        yield f(x())


@side_by_side
def test_variables_of_enclosing_functions(static, x):
    s, others = 1.0, {"z": 1.0}

    def deep():
        return s * 2

    f = static(lambda t: t * s + deep() + (lambda: others["z"])())
    for s, z in ((1.0, 1.0), (1.0, 1.0), (2.0, 1.0), (2.0, 5.0)):
        others["z"] = z
        yield f(x())


@side_by_side
def test_two_closures_of_one_factory(static, x):
    def factory(s):
        def f(t):
            return t * s

        return f

    one, two = static(factory(1.0)), static(factory(2.0))
    yield one(x()), two(x()), one(x())
    helpers = [factory(1.0), factory(2.0)]

    @static
    def both(t, which):
        return helpers[which](t) + helpers[0](t)

    yield both(x(), 0), both(x(), 1), both(x(), 0)
    current = factory(3.0)
    g = static(lambda t: current(t))
    yield g(x())
    current = factory(4.0)
    yield g(x())


@side_by_side
def test_a_variable_that_is_unbound_at_first(static, x):
    def f(t):
        try:
            return t * late
        except NameError:
            return t - 1

    f = static(f)
    yield f(x())
    yield f(x())
    late = 4.0
    yield f(x())
    del late
    yield f(x())


@side_by_side
def test_a_cell_is_written_from_outside(static, x):
    s = 1.0

    def f(t):
        return t * s

    g = static(f)
    yield g(x())
    for value in (1.0, 3.0):
        f.__closure__[0].cell_contents = value
        yield g(x())


@side_by_side
def test_module_attributes(static, x, patch):
    module = types.ModuleType("settings")
    module.s = 1.0
    patch.setitem(sys.modules, "settings", module)

    @static
    def f(t):
        import settings
        from settings import s

        return t * settings.s + s

    for module.s in (1.0, 1.0, 2.0):
        yield f(x())
    other = types.ModuleType("settings")
    other.s = 9.0
    patch.setitem(sys.modules, "settings", other)
    yield f(x())
    patch.delitem(sys.modules, "settings")
    yield raised(f, x(), message=False)


@side_by_side
def test_imports_inside(static, x, folder, patch):
    patch.syspath_prepend(str(folder))
    name = f"late_{folder.name}"
    (folder / f"{name}.py").write_text("s = 3.0\n")

    @static
    def f(t):
        import math
        module = __import__(name)
        return t * math.pi + module.s

    yield f(x()), name.split("_")[0] in str(sys.modules[name])
    sys.modules[name].s = 5.0
    yield f(x())
    del sys.modules[name]
    yield f(x()), sys.modules[name].s
    del sys.modules[name]


# data classes and their kin ----------------------------------------------------------------------


@dataclasses.dataclass
class Options:
    s: float = 1.0
    flags: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    s: float = 1.0


class Mode(enum.Enum):
    ADD = 1
    SCALE = 2


class Bits(enum.IntFlag):
    A = 1
    B = 2


Pair = collections.namedtuple("Pair", "left right")


class Typed(typing.NamedTuple):
    t: oar.Tensor
    s: float = 2.0


@side_by_side
def test_dataclasses(static, x):
    c, frozen = Options(), Frozen()
    f = static(lambda t: (t * c.s + len(c.flags) + frozen.s, dataclasses.replace(c, s=c.s + 1), dataclasses.asdict(c)))
    yield f(x())
    yield f(x())
    c.s = 2.0
    yield f(x())
    c.flags.append(1)
    yield f(x())
    frozen = Frozen(5.0)
    yield f(x())
    object.__setattr__(frozen, "s", 6.0)
    yield f(x())


@side_by_side
def test_dataclasses_as_arguments(static, x):
    f = static(lambda t, c: t * c.s + len(c.flags))
    c = Options()
    for c.s in (1.0, 1.0, 2.0):
        yield f(x(), c)
    c.flags.append(3)
    yield f(x(), c)
    yield f(x(), Options(2.0, [3]))
    yield f(x(), Options(5.0))


@side_by_side
def test_named_tuples(static, x):
    pair = Pair(1.0, 2.0)
    f = static(lambda t: (Pair(t * pair.left, pair), Typed(t, pair.right), pair._replace(left=t + 1), Pair._fields))
    for pair in (Pair(1.0, 2.0), Pair(1.0, 2.0), Pair(3.0, 2.0), Pair(3.0, 4.0)):
        yield f(x())
    g = static(lambda p: p.left * p.right)
    yield g(Pair(x(), 2.0)), g(Pair(x(), 3.0)), g(Pair(2.0, x()))


@side_by_side
def test_enums(static, x):
    mode, bits = Mode.ADD, Bits.A

    @static
    def f(t, own=Mode.ADD):
        y = t + 1 if mode is Mode.ADD else t * 2
        if bits & Bits.B:
            y = y - 5
        return (y * 3 if own == Mode.SCALE else y), mode.name, Mode(mode.value), bits

    for mode, bits in ((Mode.ADD, Bits.A), (Mode.SCALE, Bits.A), (Mode.SCALE, Bits.A | Bits.B)):
        yield f(x()), f(x(), own=Mode.SCALE)


@side_by_side
def test_a_layer_keeps_plain_attributes(static, x):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc, self.s, self.table = nn.Linear(3, 3), 1.0, {"k": 1.0}

        def forward(self, t):
            return self.fc(t) * self.s + self.table["k"]

    oar.seed(3)
    net = static(Net())
    x.watch(net)
    for net.s, net.table["k"] in ((1.0, 1.0), (1.0, 1.0), (2.0, 1.0), (2.0, 3.0)):
        yield net(x())
