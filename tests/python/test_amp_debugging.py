"""``amp.debugging``: NaN and infinity by op and layer, calls by dtype, two runs side by side."""

import csv
import os
import zipfile

import numpy as np
import pytest

import oar
from oar import nn
from oar.amp import debugging

Mode = debugging.DebugMode


@pytest.fixture(autouse=True)
def nothing_is_watched_afterwards():
    yield
    debugging.disable_tensor_checker()
    oar.set_flags({"low_precision_op_list": 0, "check_nan_inf_level": 0})


def check(*args, **kwargs):
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(True, *args, **kwargs))


class Block(nn.Layer):
    def __init__(self, bad):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.bad = bad

    def forward(self, x):
        return self.fc(x) if not self.bad else oar.log(self.fc(x) * 0 - 1)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = nn.LayerList([Block(False), Block(True)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


# errors --------------------------------------------------------------------------------------------


def test_the_error_names_op_counts_layer_and_line():
    net = Net()
    check()
    with pytest.raises(RuntimeError) as caught:
        net(oar.ones([1, 2]))
    text = str(caught.value)
    assert text.startswith("[log] There are NAN or INF (num_nan=2, num_inf=0, num_zero=0) in the result, float32[1, 2],")
    assert "in the layer net.blocks.1," in text and os.path.basename(__file__) in text and "All operands are finite" in text


def test_the_path_ends_at_the_innermost_layer():
    net = Net()
    net.blocks[0].fc.weight.set_value(np.full([2, 2], np.inf, "float32"))
    check()
    with pytest.raises(RuntimeError, match=r"in the layer net\.blocks\.0\.fc, .*comes from the operand weight"):
        net(oar.ones([1, 2]))


def test_derivatives_know_the_layer_of_the_forward():
    class Root(nn.Layer):
        def forward(self, x):
            return oar.sqrt(x)

    net = nn.Sequential(nn.Linear(2, 2), Root())
    net[0].weight.set_value(np.zeros([2, 2], "float32"))
    check()
    made = net(oar.ones([1, 2]))
    with pytest.raises(RuntimeError, match=r"\[sqrt_grad\] .*num_inf=2.* in the layer sequential\.1, .* in the forward"):
        made.sum().backward()


def test_the_flag_alone():
    oar.set_flags({"FLAGS_check_nan_inf": True})
    with pytest.raises(RuntimeError, match=r"\[divide\] There are NAN or INF \(num_nan=1, num_inf=1"):
        oar.to_tensor([1.0, 0.0]) / oar.to_tensor([0.0, 0.0])
    oar.set_flags({"FLAGS_check_nan_inf": False})
    assert np.isnan((oar.to_tensor([0.0]) / oar.to_tensor([0.0])).numpy()).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_dtypes(dtype):
    one = oar.ones([2]).astype(dtype)
    check()
    with pytest.raises(RuntimeError, match="There are NAN or INF"):
        one / (one - one)


def test_optimizers_are_checked():
    w = oar.create_parameter([1], "float32")
    optimizer = oar.optimizer.SGD(1e38, parameters=[w])
    (w * 1e30).sum().backward()
    check()
    with pytest.raises(RuntimeError, match="There are NAN or INF"):
        optimizer.step()


def test_captured_steps_are_checked():
    @oar.jit.to_static
    def f(x):
        return oar.log(x - 2) + 1

    assert np.isnan(f(oar.ones([2])).numpy()).all()
    check()
    with pytest.raises(RuntimeError, match=r"\[log\] There are NAN"):
        f(oar.ones([2]))


# modes, lists, steps -------------------------------------------------------------------------------


def test_modes(capfd):
    big = oar.full([2], 1e6)
    lines = {}
    for mode in (Mode.CHECK_NAN_INF, Mode.CHECK_ALL_FOR_OVERFLOW, Mode.CHECK_ALL):
        check(mode)
        _ = (big + 1, big / (big - big), big / big)
        debugging.disable_tensor_checker()
        lines[mode] = [info.op_type for info in oar.amp.accuracy_compare.parse_lines(capfd.readouterr().out.splitlines())]
    assert lines[Mode.CHECK_NAN_INF] == ["divide"]
    assert lines[Mode.CHECK_ALL_FOR_OVERFLOW] == ["add", "divide"]
    assert lines[Mode.CHECK_ALL] == ["add", "subtract", "divide", "divide"]


def test_lists_of_either_generation_of_names():
    zero = oar.zeros([1])
    for name in ("elementwise_div", "divide"):
        check(skipped_op_list=[name])
        zero / zero
        check(checked_op_list=[name])
        oar.log(zero)
        with pytest.raises(RuntimeError):
            zero / zero
    x = oar.to_tensor([1.0, 0.0, 0.0], stop_gradient=False)
    check(checked_op_list=["elementwise_pow_grad"])
    made = oar.pow(x, oar.to_tensor([0.0, 0.5, 1.0]))
    with pytest.raises(RuntimeError, match="num_inf=1"):
        made.sum().backward()


def test_steps():
    debugging.TensorCheckerConfig.current_step_id = 0
    config, on = debugging.TensorCheckerConfig(True, debug_step=[1, 3]), []
    for _ in range(2):
        debugging.enable_tensor_checker(config)
        on.append(oar.get_flags("FLAGS_check_nan_inf")["FLAGS_check_nan_inf"])
    assert on == [False, False] and debugging.TensorCheckerConfig.current_step_id == 0
    config, on = debugging.TensorCheckerConfig(True, debug_step=[0, 3]), []
    for _ in range(5):
        debugging.enable_tensor_checker(config)
        on.append(oar.get_flags("FLAGS_check_nan_inf")["FLAGS_check_nan_inf"])
    assert on == [True, True, True, False, False] and debugging.TensorCheckerConfig.current_step_id == 3


def test_seeds_are_those_of_the_beginning():
    oar.seed(102)
    drawn = oar.rand([2]).numpy()
    config = debugging.TensorCheckerConfig(True)
    assert config.initial_seed == config.seed == 102
    np.testing.assert_array_equal(drawn, oar.rand([2]).numpy())


BAD = {
    "mode": (lambda: debugging.TensorCheckerConfig(True, 1), ValueError, "debug_mode should be a DebugMode"),
    "list": (lambda: debugging.TensorCheckerConfig(True, checked_op_list="log"), ValueError, "checked_op_list must be list or tuple"),
    "skipped": (lambda: debugging.TensorCheckerConfig(True, skipped_op_list={"log"}), ValueError, "skipped_op_list must be"),
    "steps": (lambda: debugging.TensorCheckerConfig(True, debug_step=3), ValueError, "debug_step must be list or tuple"),
    "order": (lambda: debugging.TensorCheckerConfig(True, debug_step=[3, 1]), AssertionError, "the second the larger"),
    "height": (lambda: debugging.TensorCheckerConfig(True, stack_height_limit="1"), ValueError, "must be int"),
    "config": (lambda: debugging.enable_tensor_checker(True), TypeError, "takes a TensorCheckerConfig, but received bool"),
    "tensor": (lambda: debugging.check_numerics(1.0, "op", "x"), TypeError, "should be a Tensor, but received float"),
    "all tensors": (lambda: debugging.compare_accuracy(".", ".", "x", dump_all_tensors=True), AssertionError, "not supported"),
    "folder": (lambda: debugging.compare_accuracy("no_such_folder", ".", "x"), FileNotFoundError, "no_such_folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes(case):
    call, error, text = BAD[case]
    with pytest.raises(error, match=text):
        call()


# one layer, one tensor -----------------------------------------------------------------------------


class Guarded(nn.Layer):
    @debugging.check_layer_numerics
    def forward(self, x, shift=0.0):
        return oar.sqrt(x + shift)


def test_a_guarded_layer():
    net = nn.Sequential(nn.Linear(2, 2), Guarded())
    net[0].weight.set_value(np.ones([2, 2], "float32"))
    net(oar.ones([1, 2])).sum().backward()
    assert np.isfinite(net[0].weight.grad.numpy()).all()
    with pytest.raises(RuntimeError, match=r"\[sqrt\].*num_nan=2"):
        net(-oar.ones([1, 2]))
    oar.log(oar.zeros([1]))  # outside nothing is checked


def test_derivatives_of_a_guarded_layer():
    made = Guarded()(oar.zeros([2]))
    with pytest.raises(RuntimeError, match=r"\[sqrt_grad\]"):
        made.sum().backward()
    assert np.isinf(oar.log(oar.zeros([1])).numpy()).all()  # the check has ended


def test_a_guarded_layer_needs_a_tensor():
    with pytest.raises(RuntimeError, match="No elements found in args"):
        Guarded()()
    with pytest.raises(RuntimeError, match="First input of this layer must be tensor"):
        Guarded()(1.0)


def test_check_numerics(capfd):
    x = oar.to_tensor([1.0, 0.0, 3.0])
    stats, values = debugging.check_numerics(x, "op", "x")
    assert stats.tolist() == [0, 0, 1] and stats.dtype == oar.int64 and values.dtype == oar.float32
    np.testing.assert_allclose(values.numpy(), [3.0, 0.0, 4 / 3], rtol=1e-6)
    bad = oar.to_tensor([float("nan"), float("inf"), 0.0, 1.0], dtype="float16")
    with pytest.raises(RuntimeError, match="num_nan=1, num_inf=1, num_zero=1.* in bad, a result of op"):
        debugging.check_numerics(bad, "op", "bad")
    stats, _ = debugging.check_numerics(bad, "op", "bad", Mode.CHECK_NAN_INF)
    assert stats.tolist() == [1, 1, 1] and "tensor=bad, dtype=fp16" in capfd.readouterr().out
    stats, _ = debugging.check_numerics(oar.zeros([0]), "op", "none")
    assert stats.tolist() == [0, 0, 0]


def test_check_numerics_in_a_program(capfd):
    oar.enable_static()
    try:
        main = oar.static.Program()
        with oar.static.program_guard(main):
            x = oar.static.data("x", [2])
            stats, values = debugging.check_numerics(x / x, "divide", "y", Mode.CHECK_NAN_INF)
        run = oar.static.Executor().run(main, feed={"x": np.array([0, 2], "float32")}, fetch_list=[stats, values])
    finally:
        oar.disable_static()
    assert run[0].tolist() == [1, 0, 0] and "op=divide, tensor=y" in capfd.readouterr().out


# calls by dtype ------------------------------------------------------------------------------------


def test_calls_are_counted_under_the_names_of_paddle(capsys):
    conv, image = nn.Conv2D(3, 2, 3), oar.rand([1, 3, 8, 8])
    with debugging.collect_operator_stats():
        with oar.amp.auto_cast(level="O2", dtype="bfloat16"):
            conv(image)
        oar.ones([2]) + oar.ones([2])
        oar.to_tensor([1]) + 1
    counted = oar.base.core.get_low_precision_op_list()
    assert counted["conv2d"] == "0,1,0,0" and counted["elementwise_add"] == "0,1,1,1"
    table = capsys.readouterr().out
    assert "  conv2d " in table and f"op count: {len(counted)} " in table
    with debugging.collect_operator_stats():
        pass
    assert oar.base.core.get_low_precision_op_list() == {}


def test_derivatives_are_counted():
    x = oar.ones([2, 2])
    x.stop_gradient = False
    debugging.enable_operator_stats_collection()
    (x @ x).sum().backward()
    debugging.disable_operator_stats_collection()
    counted = oar.base.core.get_low_precision_op_list()
    assert counted["matmul_v2"] == counted["matmul_v2_grad"] == "0,0,1,0"


def test_nothing_is_printed_without_counting(capsys):
    debugging.disable_operator_stats_collection()
    assert capsys.readouterr().out == ""


# two runs ------------------------------------------------------------------------------------------


def dump(folder, dtype):
    check(Mode.CHECK_ALL, output_dir=str(folder))
    x, y = (oar.to_tensor(values, dtype=dtype) for values in ([2000.0, 3000.0, 4.0, 0.0], [100.0, 500.0, 2.0, 10000.0]))
    _ = (x + y, x * y)
    debugging.disable_tensor_checker()


def test_two_runs_side_by_side(tmp_path):
    dump(tmp_path / "full", "float32")
    dump(tmp_path / "half", "float16")
    table = str(tmp_path / "table.csv")
    debugging.compare_accuracy(str(tmp_path / "full"), str(tmp_path / "half"), table)
    with open(table, newline="") as file:
        rows = {row["op_type"]: row for row in csv.DictReader(file)}
    assert (rows["add"]["infinite"], rows["multiply"]["infinite"]) == ("0", "1")
    assert (rows["multiply"]["fp32 dtype"], rows["multiply"]["fp16 dtype"]) == ("fp32", "fp16")
    assert int(rows["multiply"]["fp16 num_inf"]) == 2 and float(rows["add"]["fp16 / fp32 max_value"]) == pytest.approx(1, rel=1e-3)


def test_one_run_and_an_excel_file(tmp_path):
    dump(tmp_path / "full", "float32")
    table = str(tmp_path / "table.xlsx")
    debugging.compare_accuracy(str(tmp_path / "full"), str(tmp_path / "missing"), table)
    with zipfile.ZipFile(table) as archive:
        assert archive.testzip() is None and b"multiply" in archive.read("xl/worksheets/sheet1.xml")
