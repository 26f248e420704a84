"""Random scripts: a world, a function that reads and changes it, calls of the function, and edits between them.

Every script draws a few features first, so that some are plain and run as one program while others do everything.
"""

from __future__ import annotations

import random

from to_static.world import EDITS, names_in, prelude

__all__ = ["generate"]

FEATURES = (
    "attributes", "containers", "globals", "closures", "helpers", "layers", "arrays", "outside", "branches",
    "tensor branches",
    "loops", "tensor loops", "effects", "writes", "values", "random", "sizes", "structures", "errors",
    "local functions",
    "early return", "arguments", "rows", "lists", "kept",
)

_NUMBERS = ("0.5", "-0.5", "1.5", "2.0", "0.25", "1.0", "-1.0", "0.0", "3")


class _Body:
    """Writes the body of one function. ``tensors`` are variables of shape [n, 3]; ``numbers`` are numbers of Python."""

    def __init__(self, rng: random.Random, features: set[str], tensors: list[str], numbers: list[str],
                 form: str) -> None:
        self.rng, self.features, self.form = rng, features, form
        self.tensors, self.numbers = list(tensors), list(numbers)
        self.lists: list[str] = []
        self.made = 0
        self.in_loop = 0

    def one(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def on(self, feature: str) -> bool:
        return feature in self.features

    # expressions -------------------------------------------------------------------------------

    def tensor(self, depth: int = 2) -> str:
        if depth <= 0 or self.rng.random() < 0.15:
            return self.rng.choice(self.tensors)
        a = self.tensor(depth - 1)
        ways = [
            lambda: f"({a} {self.one('+', '-', '*')} {self.tensor(depth - 1)})",
            lambda: f"({a} {self.one('+', '-', '*')} {self.number(depth - 1)})",
            lambda: f"({self.number(depth - 1)} {self.one('+', '-', '*')} {a})",
            lambda: f"({a} {self.one('+', '-', '*')} {self.row(depth - 1)})",
            lambda: f"({a} {self.one('+', '-', '*')} {self.scalar(depth - 1)})",
            lambda: f"{a}.{self.one('tanh', 'sigmoid', 'abs', 'detach', 'clone', 'square')}()",
            lambda: f"oar.{self.one('maximum', 'minimum')}({a}, {self.tensor(depth - 1)})",
            lambda: f"oar.where({a} > 0, {a}, {self.tensor(depth - 1)})",
            lambda: f"F.{self.one('relu', 'softmax', 'gelu', 'softplus')}({a})",
            lambda: f"{a}.clip(-2, 2).{self.one('sin', 'exp', 'cos')}()",
            lambda: f"{a}.{self.one('reshape([-1, 3])', 't().t()', 'flatten().reshape([-1, 3])', 'unsqueeze(0)[0]')}",
            lambda: f"oar.concat([{a}, {self.tensor(depth - 1)}], 1)[:, 1:4]",
            lambda: f"oar.{self.one('zeros_like', 'ones_like')}({a})",
        ]
        ways += self._tensor_ways(a, depth)
        return self.rng.choice(ways)()

    def _tensor_ways(self, a: str, depth: int) -> list:
        ways = []
        if self.on("helpers"):
            ways += [lambda: f"helper({a})", lambda: f"helper({a}, {self.number(depth - 1)})",
                     lambda: f"functools.partial(helper, k={self.number(0)})({a})"]
        if self.on("closures"):
            ways += [lambda: f"{self.one('first', 'second')}({a})", lambda: f"functions[{self.string()}]({a})"]
        if self.on("attributes"):
            ways += [lambda: f"c.scale({a})"]
        if self.on("layers"):
            ways += [lambda: f"net({a})", lambda: f"seq({a})", lambda: f"seq[0]({a})", lambda: f"norm({a})"]
            ways += [lambda: f"nn.{self.one('Softmax()', 'LeakyReLU(0.2)', 'Tanh()')}({a})"]
        if self.form == "layer":
            ways += [lambda: f"self.inner({a})", lambda: f"({a} * self.slope)"]
        if self.on("branches"):
            ways += [lambda: f"({a} if {self.condition()} else {self.tensor(depth - 1)})"]
        if self.on("tensor branches"):
            ways += [lambda: f"({a} if {self.tensor_condition()} else {self.tensor(depth - 1)})"]
        if self.on("containers"):
            ways += [lambda: f"sum({a} * e for e in items)", lambda: f"[{a} * e for e in items][-1]",
                     lambda: f"sum([{a} * b.s for b in boxes])",
                     lambda: f"{{n: {a} + e for n, e in table.items()}}['a']",
                     lambda: f"functools.reduce(lambda v, e: v * e, items[:2], {a})"]
        if self.on("structures"):
            ways += [lambda: f"[{a}, {self.tensor(depth - 1)}][{self.one('0', '-1', 'len(t.shape) - 2')}]",
                     lambda: f"(lambda v, s={self.number(0)}: v * s)({a})", lambda: f"dict(v={a}).get('v')"]
        if self.on("random"):
            ways += [lambda: f"F.dropout({a}, 0.5)", lambda: f"({a} + oar.rand([3]))"]
        if self.on("sizes"):
            ways += [lambda: f"({a} + oar.full([t.shape[0], 1], 0.5))",
                     lambda: f"({a} * oar.arange(3).astype('float32'))",
                     lambda: f"oar.concat([{a}, {a}])[: t.shape[0]]", lambda: f"{a}.reshape([t.shape[0], 3])",
                     lambda: f"{a}[: oar.shape(t)[0]]", lambda: f"{a}.reshape([oar.shape(t)[0], 3])",
                     lambda: f"({a} + oar.arange(oar.shape(t)[0]).astype('float32').unsqueeze(1))",
                     lambda: f"({a} + oar.zeros([oar.shape(t)[0], 1]))",
                     lambda: f"oar.expand({a}[:1], [oar.shape(t)[0], 3])"]
        if self.on("rows"):
            ways += [lambda: f"oar.stack([r * {self.number(0)} for r in {a}])",
                     lambda: f"oar.stack([r for r in reversed({a})])",
                     lambda: f"({a} + sum(r * q for r, q in zip({a}, {self.tensor(depth - 1)})))"]
        return ways

    def row(self, depth: int) -> str:
        """Something that a tensor of shape [n, 3] can be combined with."""
        ways = [f"{self.rng.choice(self.tensors)}.{self.one('mean', 'sum')}(0)", f"{self.rng.choice(self.tensors)}[0]"]
        if self.on("outside"):
            ways += ["w", "p", "held[0]", "sum(held)", "oar.stack(held).mean(0)"]
        if self.on("writes"):
            ways += ["buf"]
        if self.on("kept"):
            ways += ["keeper.h", "keeper.h"]
        if self.on("arrays"):
            ways += ["oar.to_tensor(array).astype('float32')"]
        if self.on("arguments"):
            ways += ["(u if u is not None else 0.5)"]
        return self.rng.choice(ways)

    def scalar(self, depth: int = 1) -> str:
        a = self.tensor(depth - 1)
        return self.one(f"{a}.sum()", f"{a}.mean()", f"{a}.max()", f"{a}[0, 0]", f"({a}.mean() * {self.number(0)})")

    def number(self, depth: int = 1) -> str:
        ways = [self.one(*_NUMBERS), self.one(*_NUMBERS), self.rng.choice(self.numbers or ["0.5"])]
        if self.on("attributes"):
            ways += ["c.s", "c.inner.s", "c.kind", "c.double", "getattr(c, 's')", "getattr(c, 'extra', 0.5)", "c.n",
                     "c.count",
                     "vars(c)['s']"]
        if self.on("containers"):
            ways += ["items[0]", "items[-1]", "len(items)", "sum(items)", "table['a']", "table.get('z', 0.5)",
                     "len(names)",
                     "boxes[-1].s", "sum(b.s for b in boxes)", "max(items)", "len(sorted(table))",
                     "[v for v in table.values()][0]", "sum(i * e for i, e in enumerate(items))"]
        if self.on("globals"):
            ways += ["G", "M", "G", "globals()['G']"]
        if self.on("arrays"):
            ways += ["float(array[0])", "float(array.sum())", "array[1]"]
        if self.on("closures") and self.form == "closure":
            ways += ["local", "local", "(lambda: local)()"]
        if self.on("sizes"):
            ways += ["t.shape[0]", "len(t)", "(t.shape[0] / 2)", "(t.shape[0] % 3)", "len(str(t.shape[0]))", "t.ndim",
                     "{2: 0.5, 4: 1.5}.get(t.shape[0], 1.0)", "t.shape[0] * 0.5", "max(t.shape)", "t.shape.index(3)"]
        if self.on("values"):
            ways += [f"float({self.rng.choice(self.tensors)}.mean())", f"{self.rng.choice(self.tensors)}.sum().item()",
                     f"int({self.rng.choice(self.tensors)}.mean() > 0)",
                     f"{self.rng.choice(self.tensors)}.numpy().max()"]
        if self.on("random"):
            ways += ["random.random()", "next(stream)"]
        if self.on("arguments"):
            ways += ["k", "k"]
        if self.on("branches") and depth > 0:
            ways += [f"({self.number(0)} if {self.condition()} else {self.number(0)})"]
        if depth > 0:
            ways += [f"({self.number(0)} {self.one('+', '-', '*')} {self.number(0)})"]
        return self.rng.choice(ways)

    def string(self) -> str:
        return self.one("'a'", "'b'", *(["c.mode"] if self.on("attributes") else []))

    def condition(self) -> str:
        """A condition that needs no value of a tensor."""
        ways = [f"{self.number(0)} > {self.number(0)}", "len(t.shape) == 2", "t.stop_gradient", "oar.is_grad_enabled()"]
        if self.on("attributes"):
            ways += ["c.flag", "c.mode == 'a'", "c.n > 1", "hasattr(c, 'extra')", "c.last is None", "not c.flag"]
        if self.on("containers"):
            ways += ["'a' in names", "'z' in table", "len(items) > 2", "0.5 in items", "bool(names)",
                     "items == [0.5, 1.0, -1.0]"]
        if self.on("closures"):
            ways += ["first is second", "functions['a'] is not functions['b']"]
        if self.on("outside"):
            ways += ["w.stop_gradient", "p.grad is None", "len(held) == 2", "held[0] is held[1]", "w.ndim == 1"]
        if self.on("layers"):
            ways += ["net.training", "len(seq) > 3", "net.fc.bias is None"]
        if self.on("sizes"):
            ways += ["t.shape[0] > 3", "t.shape[0] in {2, 4}", "t.shape[0] == 2", "t.shape[0]"]
        if self.on("arguments"):
            ways += ["u is None", "isinstance(k, float)", "k == 1", "k is True", "k"]
        if self.rng.random() < 0.2:
            return f"({self.rng.choice(ways)} {self.one('and', 'or')} not {self.rng.choice(ways)})"
        return self.rng.choice(ways)

    def tensor_condition(self) -> str:
        a = self.rng.choice(self.tensors)
        plain = self.one(f"{a}.mean() > {self.one('0.1', '-0.3', '0.7')}", f"{a}.sum() < {self.one('0.3', '2.1')}",
                         f"({a} > {self.one('0.1', '-1.7')}).all()", f"({a} > 0.9).any()", f"{a}[0, 0] > 0.2")
        if self.rng.random() < 0.25:
            other = f"{self.rng.choice(self.tensors)}.mean() < 0.4"
            return self.one(f"{plain} and {other}", f"{plain} or {other}", f"not {plain}",
                            f"{self.condition()} and {plain}")
        return plain

    # statements --------------------------------------------------------------------------------

    def block(self, size: int, depth: int) -> list[str]:
        """Lines of statements; variables that are created inside a branch are forgotten after it."""
        lines: list[str] = []
        known = list(self.tensors), list(self.numbers), list(self.lists)
        for _ in range(size):
            lines += self.statement(depth)
        self.tensors, self.numbers, self.lists = known
        return lines

    def statement(self, depth: int) -> list[str]:
        ways = [self.assignment] * 4
        ways += [self.number_assignment]
        if self.on("effects"):
            ways += [self.effect] * 2
        if self.on("writes"):
            ways += [self.write]
        if self.on("errors"):
            ways += [self.error]
        if self.on("kept"):
            ways += [self.keep]
        if self.on("lists"):
            ways += [self.list_statement] * 2
        if depth > 0:
            ways += [lambda: self.branch(depth)] * (2 * self.on("branches") + 2 * self.on("tensor branches"))
            ways += [lambda: self.loop(depth)] * (self.on("loops") + self.on("tensor loops") + self.on("rows"))
            ways += [lambda: self.local_function(depth)] * self.on("local functions")
            ways += [lambda: ["with oar.no_grad():", *_indented(self.block(1, depth - 1))]]
        if self.on("early return") and depth > 0:
            ways += [lambda: [f"if {self.any_condition()}:", f"    return {self.result()}"]]
        if self.in_loop:
            ways += [lambda: [f"if {self.any_condition()}:", f"    {self.one('break', 'continue')}"]]
        return self.rng.choice(ways)()

    def any_condition(self) -> str:
        return self.tensor_condition() if self.on("tensor branches") and self.rng.random() < 0.5 else self.condition()

    def assignment(self) -> list[str]:
        value = self.tensor()
        if self.rng.random() < 0.5 or self.in_loop:
            value = f"oar.clip({value}, -3, 3)"
        if len(self.tensors) > 1 and self.rng.random() < 0.4:
            name = self.rng.choice(self.tensors[1:])
        else:
            self.made += 1
            name = f"a{self.made}"
        if name in self.tensors and self.rng.random() < 0.15:
            return [f"{name} = {name} {self.one('+', '*', '-')} {value}"]
        if name not in self.tensors:
            self.tensors.append(name)
        return [f"{name} = {value}"]

    def number_assignment(self) -> list[str]:
        if self.numbers and self.rng.random() < 0.3 and not self.in_loop:
            return [f"{self.rng.choice(self.numbers)} {self.one('+=', '-=')} {self.number()}"]
        self.made += 1
        name = f"n{self.made}"
        lines = [f"{name} = {self.number()}"]
        self.numbers.append(name)
        return lines

    def effect(self) -> list[str]:
        a = self.rng.choice(self.tensors)
        ways = [f"log.append({self.number()})", f"log.append({a}.detach())", f"print('seen', {self.number(0)})", f"print(({a} > 0).sum())",
                "log.append(len(log))",
                f"log.append({a}.shape[0])"]
        if self.on("attributes"):
            ways += ["c.count += 1", f"c.last = {a}.detach()", f"c.s = {self.one('c.s * 0.5', 'c.s', '0.75')}",
                     f"c.last = {a}", "c.n = t.shape[0]"]
        if self.on("containers"):
            ways += [f"items[0] = {self.one('0.5', '-items[0]')}", "names.add('b')", "table['z'] = 0.25",
                     "table['n'] = len(table)", "names.discard('a')"]
        if self.form == "layer":
            ways += [f"self.last = {a}", "self.calls = getattr(self, 'calls', 0) + 1", "self.slope = self.slope * 0.5"]
        return [self.rng.choice(ways)]

    def write(self) -> list[str]:
        a = self.rng.choice(self.tensors)
        return [self.one(f"buf.add_({a}.detach().mean(0))", f"buf.set_value(buf * 0.5 + {a}.detach()[0] * 0.5)",
                         "buf.scale_(0.5)",
                         f"buf[0] = {self.number(0)}", f"buf.copy_({a}.detach()[0], False)")]

    def keep(self) -> list[str]:
        a = self.rng.choice(self.tensors)
        if self.form != "step" and self.rng.random() < 0.3:  # results of a function that calls backward() have no history
            return [f"keeper.h = (keeper.h * 0.5 + {a}.mean(0)).tanh()"]
        return [self.one(f"keeper.h = keeper.h.detach() * 0.5 + {a}.detach().mean(0)", f"keeper.h = {a}.detach()[0] - keeper.h",
                         "keeper.h = keeper.h.clip(-1, 1)")]

    def list_statement(self) -> list[str]:
        """A list of tensors is created, or changed, or read."""
        a = self.tensor(1)
        if not self.lists or self.rng.random() < 0.3 and not self.in_loop:
            self.made += 1
            self.lists.append(f"l{self.made}")
            return [f"l{self.made} = [{a}, {self.rng.choice(self.tensors)}]"]
        name = self.rng.choice(self.lists)
        if self.rng.random() < 0.5:
            return [self.one(f"{name}.append(oar.clip({a}, -3, 3))", f"{name}[0] = oar.clip({a} + {name}[-1], -3, 3)",
                             f"{name}.insert(0, {name}.pop())", f"{name} += [{a}]", f"{name}.append({name}.pop(0))",
                             f"del {name}[2:]", f"{name}[-1] = {name}[0]")]
        self.made += 1
        self.tensors.append(f"a{self.made}")
        return [f"a{self.made} = " + self.one(f"{name}[{self.one('0', '-1')}]", f"sum({name})", f"oar.stack({name}).mean(0)",
                                              f"{name}[0] * len({name})")]

    def error(self) -> list[str]:
        return self.rng.choice([
            [f"if {self.any_condition()}:", f"    raise ValueError({self.one('1', 'len(t.shape)')})"],
            [f"assert {self.any_condition()}, 'said'"],
            ["try:", *_indented(self.block(1, 0)), f"    if {self.any_condition()}:", "        raise KeyError('k')",
             "except KeyError:", *_indented(self.block(1, 0)), *self.one("|finally:|    pass", "").split("|")[1:]],
        ])

    def branch(self, depth: int) -> list[str]:
        condition = self.any_condition() if self.on("branches") else self.tensor_condition()
        name = self.rng.choice(self.tensors)
        lines = [f"if {condition}:", *_indented(self.block(self.rng.randint(1, 2), depth - 1)),
                 f"    {name} = {self.tensor(1)}"]
        if self.rng.random() < 0.3:
            lines += [f"elif {self.any_condition()}:", *_indented(self.block(1, depth - 1)),
                      f"    {name} = {self.tensor(1)}"]
        if self.rng.random() < 0.7:
            lines += ["else:", *_indented(self.block(1, depth - 1)), f"    {name} = {self.tensor(1)}"]
        return lines

    def loop(self, depth: int) -> list[str]:
        name = self.rng.choice(self.tensors)
        step = f"    {name} = oar.clip({self.tensor(1)}, -3, 3)"
        heads = []
        self.made += 1
        i = f"i{self.made}"
        if self.on("loops"):
            heads += [f"for {i} in range({self.one('2', '3', 'len(t.shape)')}):",
                      f"for {i}, {i}b in enumerate((0.5, -1.0)):",
                      f"for {i}, {i}b in zip((1, 2), ('a', 'b')):"]
            if self.on("containers"):
                heads += [f"for {i} in items:", f"for {i}b, {i} in table.items():", f"for {i} in [b.s for b in boxes]:"]
            if self.on("attributes"):
                heads += [f"for {i} in range(c.n):"]
        before: list[str] = []
        if self.on("rows"):
            a = self.rng.choice(self.tensors)
            heads += [f"for {i} in {a}:", f"for {i}b, {i} in enumerate({a}):", f"for {i} in reversed({a}):",
                      f"for {i}, {i}b in zip({a}, {self.rng.choice(self.tensors)}):"]
        if self.on("tensor loops"):
            a = self.rng.choice(self.tensors)
            heads += [f"for {i} in range(({a}.mean() > 0).astype('int64') + 1):",
                      f"while {i} < 3 and {a}.mean() < 0.6:"]
        head = self.rng.choice(heads or [f"for {i} in range(2):"])
        if head.startswith("while"):
            before = [self.one(f"{i} = 0", f"{i} = oar.zeros([])")]
            step = f"    {i} = {i} + 1\n" + step
        if self.on("early return") and self.rng.random() < 0.3:
            step += f"\n    if {self.any_condition()}:\n        return {self.result()}"
        self.in_loop += 1
        numbers = list(self.numbers)
        if "while" not in head and "range((" not in head:
            self.numbers.append(i)
        body = self.block(self.rng.randint(0, 2), depth - 1)
        self.numbers = numbers
        self.in_loop -= 1
        tail = ["else:", f"    {name} = {self.tensor(1)}"] if self.rng.random() < 0.1 else []
        return [*before, head, *step.split("\n"), *_indented(body), *tail]

    def local_function(self, depth: int) -> list[str]:
        self.made += 1
        name, found = f"g{self.made}", f"a{self.made}"
        inner = _Body(self.rng, self.features - {"early return", "local functions", "effects"}, ["v", *self.tensors],
                      self.numbers,
                      self.form)
        inner.made = self.made + 50
        lines = [f"def {name}(v, s={self.number(0)}):", *_indented(inner.block(1, depth - 1)),
                 f"    return {inner.tensor()} * s",
                 f"{found} = oar.clip({name}({self.rng.choice(self.tensors)}), -3, 3)"]
        self.tensors.append(found)
        return lines

    def result(self) -> str:
        a, b = self.tensor(1), self.rng.choice(self.tensors)
        if not self.on("structures"):
            return self.one(a, f"({a}).sum()", a)
        return self.one(f"({a}, {b})", f"[{a}, {self.number()}]", f"{{'y': {a}, 'n': {self.number()}}}",
                        f"{a}, [{b}, None]",
                        f"{a}, {self.condition()}", a, f"({a}, t, {b})")


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines or ["pass"]]


def _function(rng: random.Random, features: set[str], form: str) -> list[str]:
    arguments = "t, u=None, k=0.5"
    static = "branching" if features & {"tensor branches", "tensor loops"} else "static"
    body = _Body(rng, features, ["t"], [], form)
    lines = _open_block(body, rng.randint(1, 4))
    if form == "step":
        lines += _step(body, rng)
    else:
        lines += [f"return {body.result()}"]
    if form == "layer":
        return ["class Main(nn.Layer):", "    def __init__(self):", "        super().__init__()",
                "        self.inner, self.slope = nn.Linear(3, 3), 0.5", f"    def forward(self, {arguments}):",
                *_indented(_indented(lines)), f"f = {static}(Main())"]
    if form == "closure":
        return ["def outer():", "    local = 0.5", f"    def f({arguments}):", *_indented(_indented(lines)),
                "    def change(v):",
                "        nonlocal local", "        local = v", "    return f, change", "f, change = outer()",
                f"f = {static}(f)"]
    return [f"@{static}", f"def f({arguments}):", *_indented(lines)]


def _open_block(body: _Body, size: int) -> list[str]:
    lines: list[str] = []
    for _ in range(size):
        lines += body.statement(2)
    return lines


_CLEARS = ("optimizer.clear_grad()", "optimizer.clear_grad()", "optimizer.clear_grad(set_to_zero=False)",
           "p.clear_gradient()", "q.clear_gradient(); p.clear_gradient(False)")


def _step(body: _Body, rng: random.Random) -> list[str]:
    lines = [f"loss = ({body.tensor()} * 0.5).mean() + p.square().sum() * 0.1", "loss.backward()"]
    if rng.random() < 0.3:
        lines += [f"if {body.condition()}:", "    (q * 0.5).sum().backward()"]
    if rng.random() < 0.2:
        lines = [f"found = 0.0 if {rng.choice('pq')}.grad is None else {rng.choice(['1.0', 'q.grad', 'p.grad'])}",
                 *lines, "loss = loss + (t * found).sum()"]
    lines += ["optimizer.step()"]
    clear = rng.choice(_CLEARS)
    if rng.random() < 0.8:
        lines = [*lines, clear] if rng.random() < 0.7 else [clear, *lines]
    if rng.random() < 0.15:
        lines += [f"log.append({rng.choice('pq')}.grad is None)"]
    if rng.random() < 0.3:
        lines += [rng.choice(["optimizer.set_lr(optimizer.get_lr() * 0.5)", "log.append(optimizer.get_lr())",
                              "log.append(loss.item())"])]
    return [*lines, "return loss.detach()"]


def _optimizer(rng: random.Random, text: str) -> str:
    owners = [name for name in ("net", "seq") if name in names_in(text)]
    parameters = " + ".join(["[p, q]", *(f"{name}.parameters()" for name in owners)])
    kind = rng.choice(["SGD", "Adam", "Momentum", "AdamW"])
    clip = rng.choice(["", ", grad_clip=nn.ClipGradByGlobalNorm(0.5)"])
    decay = rng.choice(["", ", weight_decay=0.1"])
    return f"optimizer = oar.optimizer.{kind}(0.1, parameters={parameters}{clip}{decay})"


def _calls(rng: random.Random, features: set[str], form: str, names: set[str]) -> list[str]:
    """Calls of the function and edits between them: mostly of names that the function knows. Reading the zeros of a
    gradient turns them into a tensor, so half of the scripts read gradients after the last call only."""
    show = rng.choice(["show", "call"])
    lines: list[str] = []
    editable = sorted(name for name in EDITS if name in names and name != "f") + (["f"] if "Main" in names else [])
    rows = 2
    for i in range(rng.randint(4, 7)):
        if i > 1:
            for _ in range(rng.choice([0, 1, 1, 1, 2])):
                if editable:
                    edit = rng.choice(EDITS[rng.choice(editable)])
                    lines.append(edit.format(x=rng.choice(_NUMBERS), n=rng.randint(0, 4)))
        if rng.random() < 0.25:
            rows = rng.choice([1, 2, 3, 4, 5, 6])
        first = f"x({rows}, 3)"
        draw = rng.random()
        if draw < 0.04:
            first = f"x({rows}, 3, dtype='float64')"
        elif draw < 0.08 or (form == "step" and draw < 0.8):  # a gradient of an argument is left in segments only
            first = f"x({rows}, 3, grad=False)"
        elif draw < 0.12:
            first = f"x({rows}, 6)[:, ::2]"
        arguments = [first]
        if "arguments" in features:
            second = rng.choice(["None", "x(3)", "x(3)", "w", "buf"] if "buf" in names else ["None", "x(3)", "x(1, 3)"])
            arguments += [second, rng.choice(["0.5", "1", "1.0", "True", "2.0", "-0.0", "0.0", "np.float32(0.5)"])]
        call = f"{show}(f, {', '.join(arguments)})"
        lines.append(f"with oar.no_grad(): {call}" if rng.random() < 0.06 else call)
    return [*lines, "look()"]


def generate(seed: int) -> str:
    """The script of a seed. It finds oar, nn, F, np, random, functools, static, branching, x, show, call and look."""
    rng = random.Random(seed)
    features = {name for name in FEATURES if rng.random() < rng.choice([0.15, 0.35])}
    form = rng.choices(["function", "closure", "layer", "step"], [5, 2, 2, 2])[0]
    if form == "step":
        features |= {"outside"}
    lines = _function(rng, features, form)
    if "helper" in names_in("\n".join(lines)):
        body = _Body(rng, features - {"helpers", "early return", "sizes"}, ["v"], ["k"], "function")
        body.features.discard("arguments")
        inner = [line.replace("t.shape", "v.shape").replace("t.stop_gradient",
                                                            "v.stop_gradient") for line in body.block(1, 1)]
        returned = body.tensor().replace("t.shape", "v.shape").replace("t.stop_gradient", "v.stop_gradient")
        lines = ["def helper(v, k=0.5):", *_indented(inner), f"    return oar.clip({returned}, -3, 3)", *lines]
    if form == "step":
        lines = [_optimizer(rng, "\n".join(lines)), *lines]
    calls = _calls(rng, features, form, names_in("\n".join(lines)))
    text = "\n".join([*lines, *calls])
    return "\n".join([*prelude(text), text]) + "\n"
