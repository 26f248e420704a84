"""Users' mistakes: a clear error of the right class that names the op, and the process continues."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import oar

F = oar.nn.functional


def x23():
    return oar.ones([2, 3])


# what, the call, the class, what the text must hold
MISTAKES = [
    ("shapes of add", lambda: x23() + oar.ones([4]), ValueError, r"\[add\].*\[2, 3\].*\[4\]"),
    ("shapes of matmul", lambda: oar.matmul(x23(), x23()), ValueError, r"\[matmul\].*\[2, 3\]"),
    ("shapes of concat", lambda: oar.concat([x23(), oar.ones([2, 4])]), ValueError, r"\[concat\]"),
    ("shapes of stack", lambda: oar.stack([x23(), oar.ones([2, 4])]), ValueError, r"\[stack\]"),
    ("reshape", lambda: x23().reshape([4, 2]), ValueError, r"\[reshape\].*\[4, 2\]"),
    ("two unknown sizes", lambda: x23().reshape([-1, -1]), ValueError, r"\[reshape\]"),
    ("expand", lambda: x23().expand([5, 3]), ValueError, r"\[expand\]"),
    ("conv channels", lambda: F.conv2d(oar.ones([1, 3, 5, 5]), oar.ones([4, 2, 3, 3])), ValueError, r"\[conv2d\]"),
    ("linear", lambda: F.linear(x23(), oar.ones([4, 5])), ValueError, r"\[linear\]"),
    ("where", lambda: oar.where(oar.ones([2], "bool"), oar.ones([3]), oar.ones([3])), ValueError, r"\[where\]"),
    ("axis of sum", lambda: x23().sum(axis=5), (ValueError, IndexError), r"\[sum\].*5"),
    ("axis of softmax", lambda: F.softmax(x23(), axis=2), (ValueError, IndexError), r"\[softmax\].*2"),
    ("axis of concat", lambda: oar.concat([x23(), x23()], axis=-3), (ValueError, IndexError), r"\[concat\].*-3"),
    ("axis twice", lambda: x23().sum(axis=[0, 0]), ValueError, r"\[sum\]"),
    ("permutation", lambda: oar.transpose(x23(), [0, 0]), ValueError, r"\[transpose\]"),
    ("permutation too short", lambda: oar.transpose(x23(), [0]), ValueError, r"\[transpose\]"),
    ("index", lambda: x23()[5], IndexError, "5"),
    ("gather", lambda: oar.gather(x23(), oar.to_tensor([7])), IndexError, r"\[gather\].*7"),
    ("embedding", lambda: F.embedding(oar.to_tensor([9]), x23()), IndexError, r"\[embedding\].*9"),
    ("bitwise of floats", lambda: oar.bitwise_and(x23(), x23()), TypeError, r"\[bitwise_and\].*float32"),
    ("dtype name", lambda: oar.zeros([2], "float31"), TypeError, "float31"),
    ("dtype of cast", lambda: x23().astype("nonsense"), TypeError, "nonsense"),
    ("keyword", lambda: oar.add(x23(), z=1), TypeError, r"\[add\].*'z'"),
    ("near keyword", lambda: oar.sum(x23(), axes=1), TypeError, r"\[sum\].*axis"),
    ("None", lambda: oar.add(x23(), None), TypeError, r"\[add\].*'y'.*None"),
    ("None with operator", lambda: x23() + None, TypeError, ""),
    ("a string with operator", lambda: x23() * "a", TypeError, ""),
    ("missing", lambda: oar.matmul(x23()), TypeError, r"\[matmul\].*'y'"),
    ("negative size", lambda: oar.zeros([2, -3]), ValueError, r"\[zeros\].*-3"),
    ("negative size of full", lambda: oar.full([-1], 1.0), ValueError, r"\[full\]"),
    ("overflow of sizes", lambda: oar.zeros([2 ** 40, 2 ** 40]), (ValueError, MemoryError), r"\[zeros\]"),
    ("overflow of bytes", lambda: oar.zeros([2 ** 62]), (ValueError, MemoryError), r"\[zeros\]"),
    ("overflow of expand", lambda: oar.ones([1]).expand([2 ** 40, 2 ** 40]), (ValueError, MemoryError), r"\[expand\]"),
    ("size beyond int64", lambda: oar.zeros([2 ** 70]), ValueError, "does not fit an integer of 64 bits"),
    ("axis beyond int64", lambda: oar.sum(oar.ones([2]), 2 ** 64), ValueError, r"\[sum\] argument 'axis': 18446744073709551616 does not fit"),
    ("item of several", lambda: x23().item(), ValueError, ""),
    ("truth of several", lambda: bool(x23()), ValueError, ""),
    ("len of a scalar", lambda: len(oar.ones([])), TypeError, ""),
    ("int of several", lambda: int(x23()), (TypeError, ValueError), ""),
    ("float of a complex number", lambda: float(oar.to_tensor(1j)), TypeError, ""),
    ("float as index", lambda: [1, 2][oar.to_tensor(1.0)], TypeError, ""),
    ("split", lambda: oar.split(x23(), 2, axis=1), ValueError, r"\[split\]"),
    ("topk", lambda: oar.topk(x23(), 9), (ValueError, IndexError), r"\[topk\]"),
    ("set_value", lambda: x23().set_value(np.ones(5)), ValueError, "shape"),
    ("squeeze", lambda: oar.squeeze(x23(), axis=7), (ValueError, IndexError), r"\[squeeze\]"),
    ("one_hot", lambda: F.one_hot(oar.to_tensor([5]), 3), (ValueError, IndexError), r"\[one_hot\]"),
    ("einsum", lambda: oar.einsum("ij,jk->ik", x23(), x23()), ValueError, r"\[einsum\]"),
    ("einsum text", lambda: oar.einsum("ij->>k", x23()), ValueError, r"\[einsum\]"),
    ("reduction text", lambda: F.mse_loss(x23(), x23(), reduction="most"), ValueError, "most"),
    ("write to a broadcast", lambda: oar.ones([1]).expand([3]).add_(oar.ones([3])), ValueError, "clone"),
    ("write of floats to ints", lambda: oar.ones([2], "int64").divide_(oar.ones([2])), TypeError, r"\[divide_\]"),
    ("write that grows", lambda: oar.ones([1]).add_(oar.ones([3])), ValueError, r"\[add_\]"),
    ("unknown flag", lambda: oar.set_flags({"no_such_flag": 1}), (ValueError, KeyError), "no_such_flag"),
    ("flag's type", lambda: oar.set_flags({"memory_limit_mb": "many"}), (ValueError, TypeError), ""),
    ("device", lambda: oar.set_device("toaster"), ValueError, "toaster"),
    ("plain op name", lambda: oar._C.ops.no_such_op, AttributeError, "no_such_op"),
]


@pytest.mark.parametrize("call, error, text", [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistake(call, error, text):
    with pytest.raises(error, match=f"(?s){text}"):
        call()
    assert x23().sum().item() == 6


@pytest.mark.parametrize("call, error", [m[1:3] for m in MISTAKES if "[" in m[3]],
                         ids=[m[0] for m in MISTAKES if "[" in m[3]])
def test_mistake_while_recording(call, error, monkeypatch):
    """The same with operands that require gradients."""
    original = x23

    def recorded():
        t = original()
        t.stop_gradient = False
        return t * 1.0
    monkeypatch.setitem(globals(), "x23", recorded)
    with pytest.raises(error):
        call()


def test_freed_graph():
    x = oar.ones([2])
    x.stop_gradient = False
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_memory_limit():
    before = oar.get_flags("memory_limit_mb")
    value = next(iter(before.values())) if isinstance(before, dict) else before
    kept = oar.ones([10])
    try:
        oar.set_flags({"memory_limit_mb": 64})
        with pytest.raises(MemoryError, match="(?s)limit"):
            oar.zeros([1024, 1024, 64])
        big = oar.zeros([1024, 1024])  # 4 MB are fine
        with pytest.raises(MemoryError):
            for _ in range(100):
                kept = oar.concat([kept, big.reshape([-1])])
        assert big.sum().item() == 0
        del kept, big
        assert oar.zeros([1024, 1024]).shape == [1024, 1024]
    finally:
        oar.set_flags({"memory_limit_mb": value})
    assert oar.zeros([1024, 1024, 20]).size == 20 << 20


def test_an_error_in_backward_leaves_the_engine_usable():
    x = oar.ones([2])
    x.stop_gradient = False
    y = x * 1.0
    z = y * y
    y.add_(oar.ones([2]))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="in place"):
            z.sum().backward()
    (x * 2.0).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])


def test_error_is_one_readable_line():
    with pytest.raises(ValueError) as caught:
        oar.matmul(oar.ones([2, 3]), oar.ones([4, 5]))
    text = str(caught.value)
    assert text.startswith("[matmul]") and "[2, 3]" in text and "[4, 5]" in text and "\n" not in text
    assert caught.value.__traceback__ is not None


def test_fatal_signal_names_op_and_line():
    code = """
        import ctypes, oar
        def here():
            ctypes.string_at(0)
        oar.ones([2])
        here()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode < 0
    assert "here" in done.stderr, done.stderr[-1500:]


def test_exit_with_live_tensors_and_threads():
    code = """
        import threading, oar
        kept = oar.ones([100])
        kept.me = kept
        kept.stop_gradient = False
        y = (kept * 2.0).sum()
        def work():
            while True:
                oar.matmul(oar.ones([50, 50]), oar.ones([50, 50]))
        threading.Thread(target=work, daemon=True).start()
        print("end")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.strip() == "end", done.stderr[-1500:]


def test_classes_that_paddle_raises():
    """Paddle raises one class or the other, by the mode or the function; scripts catch either."""
    for kind in (TypeError, ValueError, AssertionError, RuntimeError):
        with pytest.raises(kind, match=r"\[eig\].*int64"):
            oar.linalg.eig(oar.ones([2, 2], "int64"))
    for kind in (ValueError, AssertionError, RuntimeError):
        with pytest.raises(kind, match=r"\[diagonal_scatter\]"):
            oar.diagonal_scatter(oar.ones([2, 2]), oar.ones([2]), 0, 1, 1)
        with pytest.raises(kind, match=r"\[pdist\]"):
            oar.pdist(oar.ones([2, 2, 2]))
