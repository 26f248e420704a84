"""Loops, branches and arrays of old TensorFlow graphs, against the same in NumPy."""

import numpy as np
import pytest
from tensorflow_files import Type, const, field, graph, node, placeholder

import oar

X = np.float32([[1, 2, 3], [0.5, -1, 2]])


def loop(frame, start, test, step, constants=()):
    """Nodes of a loop over variables {name: node before it}. `test` and `step` are nodes: they read `name/now` and `name/in`, and
    write `frame/more` and `name/next`. Constants enter as `name/in`."""
    nodes = [node(f"{name}/in", "Enter", before, frame_name=frame, is_constant=False) for name, before in start.items()]
    nodes += [node(f"{name}/in", "Enter", before, frame_name=frame, is_constant=True) for name, before in constants]
    for name in start:
        nodes += [node(f"{name}/merge", "Merge", f"{name}/in", f"{name}/turn"), node(f"{name}/switch", "Switch", f"{name}/merge", f"{frame}/decides"),
                  node(f"{name}/now", "Identity", f"{name}/switch:1"), node(f"{name}/turn", "NextIteration", f"{name}/next"),
                  node(f"{name}/out", "Exit", f"{name}/switch")]
    return [*nodes, *test, node(f"{frame}/decides", "LoopCond", f"{frame}/more"), *step]


def load(path, nodes, outputs):
    path.write_bytes(graph(nodes))
    return oar.interop.load_tensorflow(path, inputs=["x"], outputs=outputs)


def counted(frame, times, step, variable="y", before="x"):
    """`times` steps with a counter."""
    i = f"{frame}_i"
    return [const(f"{i}/zero", np.int32(0)), *loop(frame, {i: f"{i}/zero", variable: before},
            [const(f"{frame}/times", np.int32(times)), node(f"{frame}/more", "Less", f"{i}/merge", f"{frame}/times")],
            [const(f"{i}/one", np.int32(1)) + field(3, f"^{i}/now"), node(f"{i}/next", "Add", f"{i}/now", f"{i}/one"), *step])]


def grows(limit):
    """y is doubled, and w added, while its sum is below a limit."""
    return loop("f", {"y": "x"}, [node("sum", "Sum", "y/merge", "axes"), const("limit", np.float32(limit)), node("f/more", "Less", "sum", "limit")],
                [node("twice", "Add", "y/now", "y/now"), node("y/next", "Add", "twice", "w/in")], [("w", "w")])


def grown(x, limit):
    while x.sum() < limit:
        x = x * 2 + np.float32(0.25)
    return x


COMMON = [placeholder("x", -1, 3), const("axes", np.int32([0, 1])), const("w", np.float32(0.25))]


@pytest.mark.parametrize("times", [0, 1, 5])
def test_a_loop_that_counts_is_unrolled(times, tmp_path):
    step = [const("half", np.float32(0.5)), node("y/next", "Mul", "y/now", "half")]
    model = load(tmp_path / "m.pb", [*COMMON, *counted("f", times, step)], ["y/out", "f_i/out"])
    y, i = model(X)
    np.testing.assert_allclose(y.numpy(), X * np.float32(0.5) ** times)
    assert i.item() == times
    assert "while_loop" not in model.program(X).text()


def test_a_loop_that_a_run_ends_is_part_of_the_program(tmp_path):
    model = load(tmp_path / "m.pb", [*COMMON, *grows(100)], ["y/out"])
    for scale in (0.1, 1, 50):
        np.testing.assert_allclose(model(X * np.float32(scale))[0].numpy(), grown(X * np.float32(scale), 100), rtol=1e-6)
    assert len(model.program(X).text()) == len(model.program(X * 50).text())


def test_loops_in_loops(tmp_path):
    inner = counted("g", 3, [node("z/next", "Add", "z/now", "z/now")], variable="z", before="y/now")
    # What enters the inner loop is in the frame of the outer one.
    model = load(tmp_path / "m.pb", [*COMMON, *counted("f", 2, [*inner, node("y/next", "Sub", "z/out", "w/in")]),
                                     node("w/in", "Enter", "w", frame_name="f", is_constant=True)], ["y/out"])
    np.testing.assert_allclose(model(X)[0].numpy(), (X * 8 - 0.25) * 8 - 0.25)


def branch(name, truth, yes, no, reads):
    """x -> yes or no; both read `name/x` by the Switch of the truth."""
    nodes = [node(f"{name}/s", "Switch", truth, truth), node(f"{name}/yes", "Identity", f"{name}/s:1"), node(f"{name}/id", "Identity", truth),
             node(f"{name}/x", "Switch", reads, f"{name}/id")]
    return [*nodes, *yes, *no, node(f"{name}/merge", "Merge", f"{name}/no_result", f"{name}/yes_result")]


def positive():
    return [node("sum", "Sum", "x", "axes"), const("zero", np.float32(0)), node("good", "Greater", "sum", "zero")]


def test_a_branch_that_a_run_decides_is_part_of_the_program(tmp_path):
    nodes = branch("c", "good", [const("three", np.float32(3)) + field(3, "^c/yes"), node("c/yes_result", "Mul", "c/x:1", "three")],
                   [node("c/no_result", "Neg", "c/x")], "x")
    model = load(tmp_path / "m.pb", [*COMMON, *positive(), *nodes], ["c/merge"])
    for x in (X, -X):
        np.testing.assert_allclose(model(x)[0].numpy(), x * 3 if x.sum() > 0 else -x)
    model.program(X)  # there is one


def test_a_branch_of_constants(tmp_path):
    nodes = branch("c", "good", [const("c/yes_result", np.float32(3)) + field(3, "^c/yes")],
                   [const("c/no_result", np.float32(5)) + field(3, "^c/no")], "x")
    nodes += [node("c/no", "Identity", "c/s"), node("y", "Mul", "x", "c/merge")]
    model = load(tmp_path / "m.pb", [*COMMON, *positive(), *nodes], ["y"])
    for x in (X, -X):
        np.testing.assert_allclose(model(x)[0].numpy(), x * (3 if x.sum() > 0 else 5))
    model.program(X)


def test_branches_whose_shapes_differ_run_step_by_step(tmp_path):
    nodes = branch("c", "good", [node("c/yes_result", "Sum", "c/x:1", "axes")], [node("c/no_result", "Neg", "c/x")], "x")
    model = load(tmp_path / "m.pb", [*COMMON, *positive(), *nodes], ["c/merge"])
    np.testing.assert_allclose(model(X)[0].numpy(), X.sum())
    np.testing.assert_allclose(model(-X)[0].numpy(), X)


def test_arrays_of_a_loop(tmp_path):
    """The running sums of the rows, last to first."""
    size = [const("rows", np.int32(2)), node("read", "TensorArrayV3", "rows", dtype=Type("float32")), node("written", "TensorArrayV3", "rows", dtype=Type("float32")),
            const("places", np.int32([0, 1])), node("filled", "TensorArrayScatterV3", "read", "places", "x", "read:1"), const("start", np.zeros(3, "float32"))]
    i = "f_i"
    step = [const(f"{i}/one", np.int32(1)), node(f"{i}/next", "Add", f"{i}/now", f"{i}/one"),
            node("row", "TensorArrayReadV3", "handle/in", f"{i}/now", "flow/in", dtype=Type("float32")), node("s/next", "Add", "s/now", "row"),
            node("out/next", "TensorArrayWriteV3", "target/in", f"{i}/now", "s/next", "out/now")]
    test = [const("f/times", np.int32(2)), node("f/more", "Less", f"{i}/merge", "f/times")]
    nodes = [*COMMON, *size, const(f"{i}/zero", np.int32(0)),
             *loop("f", {i: f"{i}/zero", "s": "start", "out": "written:1"}, test, step, [("handle", "read"), ("flow", "filled"), ("target", "written")]),
             node("all", "TensorArrayGatherV3", "written", "places", "out/out", dtype=Type("float32")), node("n", "TensorArraySizeV3", "written", "out/out")]
    model = load(tmp_path / "m.pb", nodes, ["all", "n"])
    sums, count = model(X)
    np.testing.assert_allclose(sums.numpy(), np.cumsum(X, 0))
    assert count.item() == 2


@pytest.mark.parametrize("lost", ["f/decides", "y/turn", "y/switch"])
def test_a_loop_without_a_part_is_an_error(lost, tmp_path):
    nodes = [n for n in [*COMMON, *grows(100)] if field(1, lost) not in n]
    with pytest.raises((ValueError, NotImplementedError)):
        load(tmp_path / "m.pb", nodes, ["y/out"])(X)


def test_an_array_that_was_never_written(tmp_path):
    nodes = [*COMMON, const("rows", np.int32(2)), node("a", "TensorArrayV3", "rows", dtype=Type("float32")), const("one", np.int32(1)),
             node("y", "TensorArrayReadV3", "a", "one", "a:1", dtype=Type("float32")), node("z", "Add", "y", "x")]
    with pytest.raises(NotImplementedError, match="never written"):
        load(tmp_path / "m.pb", nodes, ["z"])(X)


