"""What the functions of the fuzzer find around them, and what happens to it between calls.

Each entry is source text that defines one name, with the names that it needs. A script holds only what it uses.
"""

from __future__ import annotations

import re

__all__ = ["EDITS", "WORLD", "prelude", "names_in"]

WORLD: dict[str, tuple[str, tuple[str, ...]]] = {
    "Box": ('''
class Box:
    kind = 1.0
    def __init__(self, **given):
        self.__dict__.update(given)
    def scale(self, v):
        return v * self.s
    @property
    def double(self):
        return self.s * 2
''', ()),
    "c": ('''
c = Box(s=0.5, n=2, flag=True, mode="a", count=0, last=None, inner=Box(s=1.5, n=1))
''', ("Box",)),
    "boxes": ("boxes = [Box(s=0.5), Box(s=-1.0)]", ("Box",)),
    "items": ("items = [0.5, 1.0, -1.0]", ()),
    "table": ('table = {"a": 0.5, "b": 1.5}', ()),
    "names": ('names = {"a"}', ()),
    "array": ('array = np.array([0.5, 1.0, -0.5], "float32")', ()),
    "G": ("G = 0.5", ()),
    "M": ("M = 2", ()),
    "w": ("w = oar.to_tensor([0.5, -1.0, 1.5])", ()),
    "p": ('p = oar.create_parameter([3], "float32", default_initializer=nn.initializer.Constant(0.5))', ()),
    "q": ('q = oar.create_parameter([3], "float32", default_initializer=nn.initializer.Constant(-0.5))', ()),
    "buf": ("buf = oar.zeros([3])", ()),
    "held": ("held = [oar.to_tensor([1.0, 0.5, 0.25]), oar.to_tensor([-1.0, 0.0, 1.0])]", ()),
    "keeper": ("keeper = Box(h=oar.zeros([3]))", ("Box",)),
    "stream": ("stream = iter(range(1, 200))", ()),
    "log": ("log = []", ()),
    "make": ('''
def make(s):
    def inner(v):
        return v * s
    return inner
''', ()),
    "first": ("first = make(0.5)", ("make",)),
    "second": ("second = make(-1.5)", ("make",)),
    "functions": ('functions = {"a": lambda v: v - 0.5, "b": lambda v: v * 0.5}', ()),
    "Part": ('''
class Part(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.slope = 0.5
        self.register_buffer("seen", oar.zeros([3]))
    def forward(self, v):
        y = self.fc(v) * self.slope + self.seen
        return y.tanh() if self.training else y
''', ()),
    "net": ("net = Part()", ("Part",)),
    "seq": ("seq = nn.Sequential(nn.Linear(3, 3), nn.LeakyReLU(0.25), nn.Dropout(0.25))", ()),
    "norm": ("norm = nn.BatchNorm1D(3)", ()),
    "scheduler": ("scheduler = oar.optimizer.lr.StepDecay(0.25, step_size=2)", ()),
}

_FUNCTION = "lambda v, k=0.5: v - k"

# What may be done to a name between two calls. {x}: a number, {n}: a small integer.
EDITS: dict[str, tuple[str, ...]] = {
    "c": ("c.s = {x}", "c.s = {x}", "c.n = {n}", "c.flag = not c.flag", 'c.mode = "b" if c.mode == "a" else "a"',
          "c.inner.s = {x}", "c.inner = Box(s={x}, n={n})", "c = Box(**vars(c))", "c.kind = {x}", "c.extra = {x}",
          'vars(c).pop("extra", None)', "c.last = None", "c.count = {n}", "c.scale = lambda v: v + {x}",
          'vars(c).pop("scale", None)'),
    "Box": ("Box.kind = {x}", "Box.scale = lambda self, v: v - self.s",
            "Box.double = property(lambda self: self.s - 1)",
            "Box.double = {x}"),
    "boxes": ("boxes[1].s = {x}", "boxes.append(Box(s={x}))", "boxes.reverse()", "boxes = boxes[:1] * 2"),
    "items": ("items[0] = {x}", "items.append({x})", "items[-1] = {n}", "items = [*items, {x}]", "items.reverse()",
              "del items[1:]", "items[0] = True", "items[0] = -0.0"),
    "table": ('table["a"] = {x}', 'table["z"] = {x}', 'table.pop("z", None)', 'table["b"] = table.pop("b")',
              "table = dict(table)", 'table["a"] = {n}'),
    "names": ('names.add("b")', 'names.discard("a")', 'names.add("a")', "names.clear()"),
    "array": ("array[0] = {x}", "array = array * 0.5", 'array = array.astype("float64")', "array[:] = {x}"),
    "G": ("G = {x}", "G = {x}", "G = {n}", "G = np.float32({x})"),
    "M": ("M = {n}",),
    "w": ("w = oar.to_tensor([{x}, 0.5, -0.5])", "w.add_(oar.ones([3]))", "w.stop_gradient = not w.stop_gradient",
          "w = oar.full([1, 3], {x})", "w[1] = {x}", "w = oar.full([3], {x}, dtype='float64')"),
    "p": ("p.set_value(np.full(3, {x}, 'float32'))", "p.stop_gradient = not p.stop_gradient", "p.clear_gradient(False)",
          "p.clear_gradient()", "p.optimize_attr['learning_rate'] = {x}", "p.need_clip = not p.need_clip",
          "(p * {x}).sum().backward()"),
    "q": ("q.clear_gradient(False)", "q.clear_gradient()", "(q * {x}).sum().backward()", "q.grad = oar.full([3], {x})",
          "q.grad = None", "q.set_value(np.full(3, {x}, 'float32'))"),
    "buf": ("buf.zero_()", "buf = oar.full([3], {x})", "buf.add_(oar.ones([3]))"),
    "held": ("held[0] = oar.full([3], {x})", "held.append(oar.full([3], {x}))", "held.reverse()",
             "held[1].add_(oar.ones([3]))",
             "held = held[:1] * 2"),
    "keeper": ("keeper.h = oar.full([3], {x})", "keeper.h = oar.full([3], {x})", "keeper.h = oar.full([1, 3], {x})",
               "keeper = Box(h=keeper.h)", "keeper.h = keeper.h.detach()", "keeper.h.add_(oar.ones([3]))",
               "keeper.h = oar.full([3], {x}, dtype='float64')", "keeper.h.stop_gradient = False"),
    "stream": ("next(stream)", "stream = iter(range(1, 200))"),
    "log": ("log.clear()", "log = []"),
    "make": ("first = make({x})", "second = make({x})"),
    "first": ("first, second = second, first", "first.__closure__[0].cell_contents = {x}"),
    "second": ("second = first",),
    "functions": ('functions["a"] = lambda v: v + {x}',
                  'functions["a"], functions["b"] = functions["b"], functions["a"]'),
    "helper": (f"helper = {_FUNCTION}", "helper.__defaults__ = ({x},)"),
    "net": ("net.eval()", "net.train()", "net.slope = {x}", "net.fc.weight.set_value(net.fc.weight * 0.5)",
            "net.fc = nn.Linear(3, 3)", "net.seen.add_(oar.full([3], {x}))", "net.seen = oar.full([3], {x})",
            "hook = net.register_forward_post_hook(lambda layer, inputs, out: out * {x})",
            "pre = net.fc.register_forward_pre_hook(lambda layer, inputs: (inputs[0] + {x},))",
            "net.fc.weight.stop_gradient = not net.fc.weight.stop_gradient", "net.fc.bias = None",
            "net.fc.bias.register_hook(lambda g: g * {x}) if net.fc.bias is not None else None",
            "net.forward = lambda v: v * {x}", "net.__dict__.pop('forward', None)"),
    "seq": ("seq.eval()", "seq.train()", "seq[1]._negative_slope = {x}", "seq[2].p = 0.0", "seq[1] = nn.Tanh()",
            "seq.append(nn.ReLU())", "seq[0].weight.set_value(seq[0].weight * 0.5)", "seq.insert(0, nn.Sigmoid())"),
    "norm": ("norm.eval()", "norm.train()", "norm._mean.zero_()", "norm._momentum = 0.5"),
    "optimizer": ("optimizer.set_lr({x})", "optimizer.set_lr({x})", "optimizer.clear_grad()",
                  "optimizer.clear_grad(set_to_zero=False)", "optimizer._grad_clip = None",
                  "optimizer._grad_clip = nn.ClipGradByGlobalNorm(0.5)"),
    "scheduler": ("scheduler.step()", "scheduler.step()", "scheduler.step(0)"),
    "random": ("random.seed({n})",),
    "change": ("change({x})",),
    "f": ("f.slope = {x}", "f.eval()", "f.train()", "f.inner.weight.set_value(f.inner.weight * 0.5)",
          "f.inner = nn.Linear(3, 3)"),
}


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\b[A-Za-z_]\w*", text))


def prelude(text: str) -> list[str]:
    """The entries of the world that a script needs, in order."""
    needed = names_in(text) & WORLD.keys()
    waiting = list(needed)
    while waiting:
        for name in WORLD[waiting.pop()][1]:
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    return [WORLD[name][0].strip("\n") for name in WORLD if name in needed]
