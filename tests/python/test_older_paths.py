"""Names outside of Paddle's public lists that programs import: readers, inner paths, saving in a thread."""

import logging
import subprocess
import sys

import numpy as np
import pytest

import oar
from oar import nn, reader


def numbers(n):
    return lambda: iter(range(n))


def test_readers():
    assert list(oar.batch(numbers(5), 2)()) == [[0, 1], [2, 3], [4]]
    assert list(oar.batch(numbers(5), 2, drop_last=True)()) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="positive integer"):
        oar.batch(numbers(5), 0)
    assert sorted(reader.shuffle(numbers(10), 4)()) == list(range(10))
    assert list(reader.chain(numbers(2), numbers(3))()) == [0, 1, 0, 1, 2]
    assert list(reader.compose(numbers(2), lambda: iter([(5, 6), (7, 8)]))()) == [(0, 5, 6), (1, 7, 8)]
    with pytest.raises(reader.ComposeNotAligned):
        list(reader.compose(numbers(2), numbers(3))())
    assert list(reader.compose(numbers(2), numbers(3), check_alignment=False)()) == [(0, 0), (1, 1)]
    assert list(reader.map_readers(lambda a, b: a * b, numbers(3), numbers(3))()) == [0, 1, 4]
    assert list(reader.firstn(numbers(9), 3)()) == [0, 1, 2]


def test_readers_in_threads():
    assert list(reader.buffered(numbers(100), 7)()) == list(range(100))
    assert list(reader.xmap_readers(lambda x: x * x, numbers(50), 4, 8, order=True)()) == [i * i for i in range(50)]
    assert sorted(reader.xmap_readers(lambda x: -x, numbers(50), 4, 8)()) == list(range(-49, 1))
    assert sorted(reader.multiprocess_reader([numbers(3), numbers(4)])()) == [0, 0, 1, 1, 2, 2, 3]

    def broken():
        yield 1
        raise KeyError("the reason")

    for made in (reader.buffered(broken, 2), reader.multiprocess_reader([broken])):
        with pytest.raises(KeyError, match="the reason"):
            list(made())
    stopped = reader.buffered(lambda: iter(int, 1), 2)()  # it never ends
    assert next(stopped) == 0
    stopped.close()


def test_a_reader_is_read_once_and_kept():
    reads = []
    kept = reader.cache(lambda: reads.append(1) or iter([1, 2]))
    assert list(kept()) == list(kept()) == [1, 2] and reads == [1]


def test_saving_in_a_thread(tmp_path):
    net = nn.Linear(2, 3)
    before = net.weight.numpy().copy()
    path = str(tmp_path / "net.pdparams")
    oar.async_save(net.state_dict(), path)
    net.weight.set_value(np.zeros((2, 3), "float32"))
    oar.clear_async_save_task_queue()
    np.testing.assert_array_equal(oar.load(path)["weight"].numpy(), before)
    oar.async_save({"a": [oar.ones([1]), (2, "b")]}, path, sync_other_task=True)
    oar.clear_async_save_task_queue()
    assert oar.load(path)["a"][1] == (2, "b")
    oar.async_save({"a": 1}, str(tmp_path))  # a folder
    with pytest.raises(Exception, match=str(tmp_path.name)):
        oar.clear_async_save_task_queue()


def test_inner_paths():
    from oar import common_ops_import, core
    from oar.amp.auto_cast import amp_state
    from oar.base.param_attr import ParamAttr
    from oar.base.variable_index import _getitem_static, _setitem_static
    from oar.framework.io import EagerParamBase
    from oar.nn.layer.layers import in_declarative_mode
    from oar.nn.layer.transformer import _convert_attention_mask, _convert_param_attr_to_list

    assert core is oar.framework.core and ParamAttr is oar.ParamAttr and issubclass(EagerParamBase, oar.Tensor)
    assert common_ops_import.LayerHelper is oar.base.layer_helper.LayerHelper
    assert oar.framework.LayerHelper is oar.base.layer_helper.LayerHelper and oar.framework._dygraph_tracer()._has_grad
    assert amp_state() is None
    with oar.amp.auto_cast(dtype="bfloat16", custom_black_list=["matmul"]):
        state = amp_state()
        assert state["enable"] and state["dtype"] == "bfloat16" and state["level"] == "O1"
        assert not state["custom_white_list"] and state["custom_black_list"] == {"linear", "matmul"}
    assert not in_declarative_mode()
    seen = []
    oar.jit.to_static(lambda x: seen.append(in_declarative_mode()) or x + 1)(oar.ones([1]))
    assert seen == [True]
    assert _convert_attention_mask(oar.to_tensor([[True, False]]), "float32").tolist() == [[0.0, -1e9]]
    assert _convert_attention_mask(None, "float32") is None
    assert [a.name for a in _convert_param_attr_to_list(ParamAttr(name="w"), 2)] == ["w_0", "w_1"]
    x = oar.arange(3)
    assert _getitem_static(x, 1).item() == 1 and _setitem_static(x, 1, 5).tolist() == [0, 5, 2] and x.tolist() == [0, 1, 2]
    assert nn.functional.hard_swish is nn.functional.hardswish and nn.functional.diag_embed is oar.diag_embed


def test_calls_that_must_run_at_once():
    @oar.base.framework.dygraph_only
    def call():
        return 1

    assert call() == 1
    oar.enable_static()
    try:
        with pytest.raises(RuntimeError, match="call runs its calls at once"):
            call()
        with oar.static.amp.fp16_guard():
            assert oar.ones([1]).dtype == oar.float32
    finally:
        oar.disable_static()


def test_loggers(capfd):
    logger = oar.base.log_helper.get_logger("oar.test", logging.INFO, fmt="%(levelname)s %(message)s")
    logger.info("hello")
    assert logger is oar.base.log_helper.get_logger("oar.test", logging.INFO) and not logger.propagate
    assert capfd.readouterr().err == "INFO hello\n"


def test_helpers_of_layers():
    layer = nn.Linear(2, 2)
    assert layer._helper.name == layer.full_name()


def test_the_crash_handler_goes():
    code = "import oar, os, signal; {}os.kill(os.getpid(), signal.SIGSEGV)"
    texts = [subprocess.run([sys.executable, "-c", code.format(call)], capture_output=True, text=True).stderr
             for call in ("", "oar.disable_signal_handler(); ")]  # fmt: skip
    assert "SIGSEGV" in texts[0] and texts[1] == ""


def test_kernels_of_attention():
    from oar.nn.attention import SDPBackend, sdpa_kernel

    x = oar.randn([1, 3, 2, 4])
    plain = nn.functional.scaled_dot_product_attention(x, x, x)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        np.testing.assert_array_equal(nn.functional.scaled_dot_product_attention(x, x, x).numpy(), plain.numpy())
    for wrong in (SDPBackend.ERROR, [], "math"):
        with pytest.raises(ValueError, match="sdpa_kernel"), sdpa_kernel(wrong):
            pass


def test_a_layer_s_helper_knows_the_default_dtype():
    class Head(oar.nn.Layer):
        def __init__(self):
            super().__init__()
            self.dtype_of_weights = self._helper.get_default_dtype()

    assert Head().dtype_of_weights == "float32" == oar.base.layer_helper.LayerHelper.get_default_dtype()
    oar.set_default_dtype("float64")
    try:
        assert Head().dtype_of_weights == "float64"
    finally:
        oar.base.layer_helper.LayerHelper.set_default_dtype("float32")
    assert oar.get_default_dtype() == "float32"
