"""Archives of TorchScript: the language, arguments and results, what a module keeps, files that are wrong."""

import io
import random as chances
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from torchscript_files import Object, Raw, View, archive, forward, name, text

import oar
from oar import _C

X = np.arange(6, dtype="float32").reshape(2, 3) - 2


def loaded(content):
    return oar.interop.TorchModel(*_C.torch_model(content))


def run(body, *arguments, attributes=None, constants=(), more="", named=None, **signature):
    model = loaded(archive(forward(body, **signature) + more, attributes, constants))
    return [t.numpy() for t in model(*arguments, **(named or {}))]


def numbers(body, **more):
    """What the code returns, without an input that matters."""
    return [t.tolist() for t in run(body, X, **more)]


# ---- the language ------------------------------------------------------------------------------

def test_expressions():
    assert numbers("return (1, -2, 3.5, -1e-3, True, (4,), [5, 6], None)") == [1, -2, 3.5, pytest.approx(-1e-3), True, 4, 5, 6]
    assert numbers("return 1 if torch.gt(2, 1) else 2") == [1]
    assert numbers("return not torch.__contains__([1, 2], 3)") == [True]
    assert numbers("a, b, = (1, 2)\nc, d = b, a\nreturn (c, d)") == [2, 1]
    assert numbers('return torch.len("a\\n\\"\\101")') == [4]
    assert numbers("return [inf, -inf]") == [float("inf"), -float("inf")]
    assert numbers('d = {"a": 1, "b": 2}\nreturn (d["b"], torch.len(torch.keys(d)))') == [2, 2]
    assert numbers("return (torch.div(7, 2), torch.floordiv(-7, 2), torch.remainder(-7, 3), int(2.7), float(2), bool(0), torch.neg(3))") == [
        3.5, -4, 2, 2, 2.0, False, -3]


def test_flow():
    assert numbers("n = 0\nfor i in range(5):\n  if torch.eq(i, 1):\n    continue\n  elif torch.eq(i, 4):\n    break\n  n = torch.add(n, i)\nreturn n") == [5]
    assert numbers("n = 10\nk = 0\nwhile torch.gt(n, 1):\n  n = torch.floordiv(n, 2)\n  k = torch.add(k, 1)\nreturn (n, k)") == [1, 3]
    assert numbers('n = 0\nfor a, b in torch.items({"u": 1, "v": 2}):\n  n = torch.add(torch.mul(n, 10), b)\nreturn n') == [12]
    assert numbers("with self:\n  n = 3\nreturn n") == [3]
    assert numbers("if torch.__is__(None, None):\n  return 1\nelse:\n  pass\nreturn 2") == [1]


def test_lists():
    body = """
a = annotate(List[int], [])
_0 = torch.append(a, 3)
torch.extend(a, [1, 2])
_1 = torch.insert(a, 0, 9)
b = torch.pop(a, 1)
_2 = torch._set_item(a, -1, 7)
torch.sort(a)
return (a, b, torch.slice(a, None, None, -1), torch.add(a, [4]), torch.mul([0], 2), torch.eq(a, [1, 7, 9]), torch.index(a, 7), ops.prim.max(a))"""
    assert numbers(body) == [1, 7, 9, 3, 9, 7, 1, 1, 7, 9, 4, 0, 0, True, 1, 9]


def test_texts_are_for_errors():
    body = 'ops.prim.RaiseException(torch.format("{} of {}: {}", torch.size(x, 0), [1, 2.5], "a"), "builtins.ValueError")'
    with pytest.raises(Exception, match=r"raises an error: 2 of \[1, 2.5\]: a"):
        run(body, X)
    assert numbers('p = torch.split("a b c", " ")\nreturn (torch.len(p), torch.eq(torch.join("-", p), "a-b-c"), torch.startswith(p[0], "a"))') == [3, True, True]


def test_functions_classes_and_named_tuples():
    code = forward("""
_0 = __torch__.twice
p = __torch__.Pair(x, 3)
o = __torch__.Count.__new__(__torch__.Count)
_1 = (o).__init__(2, )
_2 = (o).step()
first, n, = p
child = self.child
return (_0(x, ), torch.mul(p.a, p.b), o.n, (getattr(child, "0")).forward(first, k=n), child.size)""", fields="child : __torch__.Child") + """
class Child(Module):
  __annotations__["0"] = __torch__.Leaf
  size : Final[int] = 5
class Leaf(Module):
  def forward(self: __torch__.Leaf,
    x: Tensor,
    k: float=1.) -> Tensor:
    return torch.add(x, k)
class Pair(NamedTuple):
  a : Tensor
  b : int
class Count:
  n : int
  def __init__(self: __torch__.Count,
    n: int) -> NoneType:
    self.n = n
    return None
  def step(self: __torch__.Count) -> NoneType:
    self.n = torch.add(self.n, 1)
    return None
def twice(x: Tensor,
    by: float=2.) -> Tensor:
  return torch.mul(x, by)
"""
    model = loaded(archive(code, {"child": Object("__torch__.Child", **{"0": Object("__torch__.Leaf")})}))
    twice, product, n, leaf, size = [t.numpy() for t in model(X)]
    np.testing.assert_array_equal(twice, 2 * X)
    np.testing.assert_array_equal(product, 3 * X)
    np.testing.assert_array_equal(leaf, X + 3)
    assert (n, size) == (3, 5)
    assert model.program(X)  # objects of one run are no obstacle


def test_writes_make_new_values_in_each_run():
    body = "z = torch.zeros([2, 3])\n_0 = torch.add_(torch.select(z, 0, 0), torch.select(x, 0, 1))\nreturn z"
    model = loaded(archive(forward(body)))
    for _ in range(2):
        np.testing.assert_array_equal(model(X)[0].numpy(), [X[1], [0, 0, 0]])


def test_sizes_that_are_traced():
    body = """
_0 = ops.prim.NumToTensor(torch.size(x, 1))
n = int(torch.floor_divide(torch.mul(_0, CONSTANTS.c0), CONSTANTS.c1))
return torch.reshape(x, [n, -1])"""
    got, = run(body, X, constants=(np.int64(4), np.int64(2)))
    np.testing.assert_array_equal(got, X.reshape(6, 1))


# ---- arguments and results ---------------------------------------------------------------------

ARGUMENTS = "x: Tensor,\n    n: int,\n    scale: float=2.,\n    mask: Optional[Tensor]=None,\n    pair: Tuple[int, Tensor]=(1, CONSTANTS.c0)"


def test_arguments():
    body = """
if torch.__isnot__(mask, None):
  y = torch.masked_fill(x, unchecked_cast(Tensor, mask), n)
else:
  y = torch.mul(x, scale)
k, t, = pair
return torch.add(torch.mul(y, k), t)"""
    model = loaded(archive(forward(body, ARGUMENTS), constants=(np.float32(10),)))
    assert model.inputs == ["x", "n"]
    np.testing.assert_allclose(model(X, 3)[0].numpy(), X * 2 + 10)
    np.testing.assert_allclose(model({"x": X, "n": np.int64(3)})[0].numpy(), X * 2 + 10)
    np.testing.assert_allclose(model(X, 3, 0.5)[0].numpy(), X / 2 + 10)
    np.testing.assert_allclose(model(X, 5, mask=X > 0)[0].numpy(), np.where(X > 0, 5, X) + 10)
    np.testing.assert_allclose(model(X, n=1, scale=1, pair=(3, np.float32(1)))[0].numpy(), X * 3 + 1)
    with pytest.raises(Exception, match="no parameter 'other'"):
        model(X, 1, other=2)
    with pytest.raises(Exception, match="is given twice"):
        model(X, 1, x=X)
    with pytest.raises(Exception, match="does not get its argument 'n'"):
        model(X)
    with pytest.raises(Exception, match="takes one number"):
        model(X, X)


def test_containers():
    body = """
found = annotate(Dict[str, Tensor], {})
for k in torch.keys(table):
  torch._set_item(found, k, torch.add(table[k], torch.len(parts)))
total = torch.sum(torch.stack(parts))
return (found, [total, parts[0]])"""
    model = loaded(archive(forward(body, "parts: List[Tensor],\n    table: Dict[str, Tensor]", "Tuple[Dict[str, Tensor], List[Tensor]]")))
    got = model([X, X], {"u": X, "v": 2 * X})
    assert model.outputs == ["output.0.u", "output.0.v", "output.1.0", "output.1.1"]
    for ours, wanted in zip(got, [X + 2, 2 * X + 2, 2 * X.sum(), X], strict=True):
        np.testing.assert_allclose(ours.numpy(), wanted)
    assert len(model((X, X, X), {"u": X})) == 3


def test_flat_inputs(tmp_path):
    code = forward("a, b, = pair\nreturn torch.add(torch.mul(parts[0], a), b)", "parts: List[Tensor],\n    pair: Tuple[int, Tensor]")
    (tmp_path / "net.pt").write_bytes(archive(code))
    model = oar.interop.load(tmp_path / "net.pt")
    assert (model.format, model.inputs, model.dtypes["pair.0"]) == ("torchscript", ["parts.0", "pair.0", "pair.1"], "int64")
    np.testing.assert_allclose(model(X, np.int64(3), X)[0].numpy(), 4 * X)
    np.testing.assert_allclose(model(X, np.int64(2), X)[0].numpy(), 3 * X)


# ---- tensors -----------------------------------------------------------------------------------

def test_weights():
    fields = "weight : Tensor\nscale : Tensor\nchild : __torch__.Net"
    code = forward("weight = self.weight\nlisted = self.listed\nreturn torch.add(torch.matmul(x, weight), listed[0])", fields=fields).replace(
        "__parameters__ = []", '__parameters__ = ["weight", ]', 1)
    weight, child = np.arange(6, dtype="float32").reshape(3, 2), np.ones(2, "float32")
    attributes = {"weight": weight, "listed": [child], "scale": np.float32(3), "child": Object("__torch__.Net", weight=child)}
    model = loaded(archive(code, attributes))
    assert sorted(model.weights) == ["child.weight", "weight"]
    np.testing.assert_array_equal(model.weights["child.weight"].numpy(), child)
    np.testing.assert_allclose(model(X)[0].numpy(), X @ weight + 1)
    assert "weight" in model.program(X).text()


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64"])
def test_dtypes(dtype):
    kept = np.array([0, 1, 2]).astype(dtype)
    got, = run("return torch.clone(self.kept)", X, attributes={"kept": kept})
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, kept)


def test_views_of_one_storage():
    storage = np.arange(12, dtype="float32")
    attributes = {"a": View(storage, (3, 2), (1, 3), 2), "b": View(storage, (2, 2), (0, 1), 4), "c": View(storage, (0, 3), (3, 1))}
    a, b, c = run("return (torch.clone(self.a), torch.clone(self.b), torch.clone(self.c))", X, attributes=attributes)
    np.testing.assert_array_equal(a, np.array([[2, 5], [3, 6], [4, 7]]))
    np.testing.assert_array_equal(b, np.array([[4, 5], [4, 5]]))
    assert c.shape == (0, 3)


# ---- what tensors decide, what a module keeps --------------------------------------------------

def test_tensors_decide():
    body = "if bool(torch.gt(torch.sum(x), 0)):\n  y = torch.masked_select(x, torch.gt(x, 1))\nelse:\n  y = torch.neg(x)\nreturn y"
    model = loaded(archive(forward(body)))
    np.testing.assert_array_equal(model(X)[0].numpy(), X[X > 1])
    np.testing.assert_array_equal(model(-X)[0].numpy(), X)
    with pytest.raises(Exception, match="step by step.*depends on the inputs|step by step.*not a number that is known"):
        model.program(X)


def test_a_module_keeps_attributes_and_lists():
    body = """
self.runs = torch.add(self.runs, 1)
_0 = torch.append(self.seen, x)
self.last = (x, [torch.mul(x, 2)])
return (self.runs, torch.len(self.seen), (self.last)[0])"""
    model = loaded(archive(forward(body), {"runs": 5, "seen": [X], "last": None}))
    for i in range(3):
        runs, seen, last = model(X + i)
        assert (runs.item(), seen.item()) == (6 + i, 2 + i)
        np.testing.assert_array_equal(last.numpy(), X + i)


def test_a_buffer_keeps_what_is_written():
    model = loaded(archive(forward("total = self.total\n_0 = torch.add_(total, torch.sum(x))\nreturn torch.mul(total, 2)"), {"total": np.zeros(2, "float32")}))
    for i in range(1, 4):
        np.testing.assert_allclose(model(X)[0].numpy(), [2 * i * X.sum()] * 2)


def test_a_buffer_that_only_some_runs_write():
    body = "total = self.total\nif add:\n  _0 = torch.add_(total, torch.sum(x))\nelse:\n  pass\nreturn torch.add(torch.mul(total, 2), x)"
    model = loaded(archive(forward(body, "x: Tensor,\n    add: bool"), {"total": np.ones(3, "float32")}))
    total = 1.0
    for add in (False, True, False, True, True, False):
        total += X.sum() * add
        np.testing.assert_allclose(model(X, add)[0].numpy(), 2 * total + X)
        total += X.sum() * add
        np.testing.assert_allclose(model({"x": X, "add": np.bool_(add)})[0].numpy(), 2 * total + X)


def test_an_assignment_that_changes_nothing_is_none():
    model = loaded(archive(forward("self.n = 3\nself.w = self.w\nreturn torch.mul(x, self.n)"), {"n": 3, "w": X}))
    np.testing.assert_array_equal(model(X)[0].numpy(), 3 * X)
    assert model.program(X)


# ---- errors ------------------------------------------------------------------------------------

def refused(content, match, *arguments):
    with pytest.raises(Exception, match=match):
        loaded(content)(*(arguments or (X,)))


def test_unknown_ops_are_listed():
    child = "class Child(Module):\n  def forward(self: __torch__.Child,\n    x: Tensor) -> Tensor:\n    return torch.fourth(x)\n"
    code = forward("y = torch.one_thing(x)\nchild = self.child\nz = (child).forward(x, )\nreturn ops.other.second(torch.relu(y), torch._third_(x))")
    with pytest.raises(Exception, match="cannot import yet: _third_, fourth, one_thing, other.second"):
        loaded(archive(code + child, {"child": Object("__torch__.Child")}))
    model = loaded(archive(forward("if torch.gt(torch.size(x, 0), 2):\n  y = torch.one_thing(x)\n  y = torch.other(y)\nelse:\n  y = x\nreturn y")))
    np.testing.assert_array_equal(model(X)[0].numpy(), X)
    with pytest.raises(Exception, match=r"cannot import yet: one_thing \(__torch__.py:8\); its code also names other"):
        model(np.zeros((3, 3), "float32"))


def test_code_that_is_wrong():
    refused(archive(forward("return y")), "__torch__.py:7: 'y' has no value")
    refused(archive(forward("return self.y")), "no attribute 'y'")
    refused(archive(forward("return (self).f(x, )")), "no method 'f'")
    refused(archive(forward("return __torch__.f(x, )")), "no '__torch__.f'")
    refused(archive(forward("return CONSTANTS.c9")), "no 'CONSTANTS.c9'")
    refused(archive(forward("a, b, = x\nreturn a")), "a tensor is unpacked")
    refused(archive(forward("return x +")), "line 7: '' stands where an expression is expected|line 7")
    refused(archive(forward("return (x")), "__torch__.py")
    refused(archive(forward('return "x')), "a text does not end")
    refused(archive(forward("return torch.reshape(x, [7])")), "reshape")
    refused(archive("def f(x: Tensor) -> Tensor:\n  return x\n"), "no code of '__torch__.Net'")
    refused(archive("class Net(Module):\n  training : bool\n"), "no method 'forward'")


def test_nesting_has_limits():
    refused(archive(forward("return " + "(" * 5000 + "x" + ")" * 5000)), "nested too deeply")
    refused(archive(forward("return " + "[" * 5000)), "nested too deeply")
    refused(archive(forward("return x" + "[0]" * 5000)), "nested too deeply")
    refused(archive(forward("return x" + ".a" * 5000)), "nested too deeply")
    refused(archive(forward("return " + "not " * 5000 + "x")), "nested too deeply")
    refused(archive(forward("\n".join("  " * i + "if True:" for i in range(500)) + " ")), "nested too deeply")
    refused(archive(forward("return (self).forward(x, )")), "call each other too deeply")
    refused(archive(forward("a = [x]\nfor i in range(10000000000):\n  a = torch.add(a, a)\nreturn a")), "more than .* entries")
    with pytest.raises(Exception, match="step by step.*(does not end|too many steps)"):
        loaded(archive(forward("while True:\n  pass\nreturn x"))).program(X)


def test_pickles_that_are_wrong():
    def with_module(pickle):
        return archive(forward("return x"), edit=lambda files: files.update({"data.pkl": pickle}))

    refused(with_module(b"\x80\x02cos\nsystem\n(" + text("true") + b"tR."), "name 'os.system'")
    refused(with_module(b"\x80\x02N."), "holds no module")
    refused(with_module(b"\x80\x02" + name("__torch__.Net") + b")\x81Nb."), "state is no dictionary")
    refused(with_module(b"\x80\x02"), "ends too early")
    circle = b"\x80\x02" + name("__torch__.Net") + b")\x81q\x00}(" + text("self") + b"h\x00" + text("l") + b"]q\x01h\x01aub."
    np.testing.assert_array_equal(loaded(with_module(circle))(X)[0].numpy(), X)
    deep = b"\x80\x02" + name("__torch__.Net") + b")\x81}(" + text("l") + b"](" * 2000 + b"e" * 2000 + b"ub."
    refused(with_module(deep), "nested too deeply")
    quantised = b"(" + text("storage") + name("torch.QInt8Storage") + text("0") + text("cpu") + b"K\x01tQ"
    refused(archive(forward("return x"), {"w": Raw(quantised)}), "a quantised tensor \\(qint8\\)")
    refused(archive(forward("return x"), {"w": Object("__torch__.torch.classes.quantized.Conv2dPackedParamsBase")}), "which is no TorchScript")
    refused(archive(forward("return x"), {"w": View(np.zeros(2, "float32"), (1 << 40,), (1,))}), "larger than its storage")
    refused(archive(forward("return x"), {"w": View(np.zeros(2, "float32"), (1 << 40,), (0,))}), "too large")
    refused(archive(forward("return x"), {"w": X}, edit=lambda files: files.pop("data/0")), "no 'net/data/0'")


def test_zip_bombs():
    out = io.BytesIO(archive(forward("return x") + "#" * (1 << 20), packed=zipfile.ZIP_DEFLATED))
    content = bytearray(out.getvalue())
    np.testing.assert_array_equal(loaded(bytes(content))(X)[0].numpy(), X)
    place = content.find(b"net/code/__torch__.py", content.rfind(b"PK\x01\x02", 0, content.rfind(b"__torch__.py"))) - 46
    content[place + 24:place + 28] = struct.pack("<I", 0xfffffff0)
    refused(bytes(content), "another size than stated")


def test_damaged_files_are_errors():
    content = archive(forward("weight = self.weight\nreturn torch.matmul(x, weight)"), {"weight": X.T.copy()})
    chance = chances.Random(0)
    for at in [*range(0, len(content), 37)]:
        damaged = bytearray(content[:at] if chance.random() < 0.3 else content)
        for _ in range(chance.randint(0, 3)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            loaded(bytes(damaged))(X)
        except Exception as error:  # noqa: BLE001
            assert "internal" not in str(error).lower(), error


def test_kinds_of_archives(tmp_path):
    script = tmp_path / "script.pt"
    script.write_bytes(archive(forward("return x")))
    assert oar.interop.guess(script)[:2] == ("torchscript", "model")
    assert oar.interop.guess(tmp_path / "script")[0] == "torchscript"
    assert oar.interop.guess(Path(__file__).parent / "data" / "torch_zip.pt")[:2] == ("torch", "tensors")
