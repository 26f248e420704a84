"""Devices: the CPU's memory, streams and random numbers, and GPUs, which are not there and say so."""

import numpy as np
import pytest

import oar
from oar import device


def test_what_is_not_there_is_counted_and_refused():
    assert device.device_count() == device.cuda.device_count() == device.xpu.device_count() == oar.cuda.device_count() == 0
    assert not device.is_available() and not oar.cuda.is_available() and not oar.cuda.is_initialized()
    assert oar.cuda.empty_cache() is None  # nothing to return
    calls = {"GPU": (device.cuda, "memory_allocated synchronize get_device_properties current_stream Stream Event vmm_compact"),
             "XPU": (device.xpu, "memory_total synchronize Stream empty_cache set_debug_level")}  # fmt: skip
    for kind, (module, names) in calls.items():
        for name in names.split():
            for error in (RuntimeError, ValueError):
                with pytest.raises(error, match=rf"\[{name}\] there is no {kind} here; devices .* plug-ins"):
                    getattr(module, name)()
    for call in (oar.cuda.cudart, oar.cuda.mem_get_info, device.ipc_collect, device.get_device_capability, oar.ones([1]).cuda,
                 oar.ones([1]).pin_memory, lambda: oar.cuda.set_device(0), lambda: device.device(0)):  # fmt: skip
        with pytest.raises(RuntimeError, match="there is no GPU"):
            call()
    with pytest.raises(ValueError, match="there is no npu:0 here"):
        oar.CustomPlace("npu", 0)


def test_memory_of_the_cpu():
    before = device.memory_allocated()
    x = oar.zeros([1 << 18])
    assert device.memory_allocated("cpu") - before >= x.size * 4
    assert device.max_memory_allocated() >= device.memory_allocated() and device.memory_reserved() >= x.size * 4
    del x
    device.reset_peak_memory_stats()
    assert device.max_memory_allocated() == device.memory_allocated() and device.max_memory_reserved() == device.memory_reserved()
    device.empty_cache()
    with pytest.raises(ValueError, match="there is no gpu:0 here"):
        device.memory_allocated("gpu:0")


def test_streams_of_the_cpu():
    stream, before = device.Stream("cpu"), device.current_stream()
    with device.stream_guard(stream):
        assert device.current_stream() is stream
        y = oar.ones([2]) * 3
    assert device.current_stream() is before and stream.query() and y.tolist() == [3.0, 3.0]
    start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    stream.record_event(start)
    oar.ones([64, 64]) @ oar.ones([64, 64])
    end.record(stream)
    end.synchronize()
    assert 0.0 < start.elapsed_time(end) < 10_000.0
    with pytest.raises(RuntimeError, match="enable_timing"):
        start.elapsed_time(device.Event())
    with pytest.raises(TypeError, match=r"must be an oar\.device\.Stream"):
        device.set_stream(None)


def test_events_without_a_device_and_modules_of_devices():
    assert oar.Event is device.Event and oar.Stream is device.Stream and oar.device_guard is device.device_guard
    assert device.Event(True).enable_timing and not device.Event(False, True).enable_timing
    oar.set_default_device("cpu")
    assert oar.get_default_device() == "cpu" and oar.get_default_device().type == "cpu"
    modules = {None: device.cpu, "cpu": device.cpu, "gpu:0": oar.cuda, "cuda": oar.cuda, "xpu": device.xpu}
    assert {name: oar.get_device_module(name) for name in modules} == modules
    for error in (RuntimeError, ValueError):
        with pytest.raises(error, match="no kind of device 'abacus'. The kinds are 'cpu', 'gpu', 'xpu'"):
            oar.get_device_module("abacus")


def test_devices_of_plug_ins_that_are_not_loaded():
    custom = device.custom_device
    assert custom.device_count() == custom.device_count("npu") == 0 and custom.empty_cache() is None
    for name in ("Event", "Stream", "current_stream", "get_device_properties", "memory_allocated", "synchronize"):
        with pytest.raises(ValueError, match=rf"\[{name}\] there is no device of a plug-in here"):
            getattr(custom, name)()
    with pytest.raises(RuntimeError, match="there is no npu:0 here"):
        device.gpgpu_backend.get_device_properties("npu:0")
    with pytest.raises(ValueError, match="cpu is not a device of a plug-in"):
        custom.synchronize("cpu")


def test_guards_and_names():
    with device.device("cpu"), device.device_guard(oar.CPUPlace()):
        assert oar.get_device() == "cpu"
    x = oar.ones([2, 3])
    assert x.device == "cpu" and x.device.type == "cpu" and x.device.index is None and x.get_device() == -1 and not x.is_cuda
    properties = device.get_device_properties("cpu")
    assert properties.total_memory > 1 << 20 and properties.name == device.get_device_name()


def test_random_states():
    state = device.get_rng_state()
    first = oar.rand([3])
    device.set_rng_state(state)
    np.testing.assert_array_equal(oar.rand([3]).numpy(), first.numpy())
    device.manual_seed(11)
    assert oar.random.initial_seed() == oar.Generator().initial_seed() == 11
    drawn = oar.Generator("cpu").seed()
    assert oar.random.initial_seed() == drawn


@pytest.mark.parametrize("name", ["BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"])
def test_tensors_of_a_dtype(name):
    make = getattr(oar, f"{name}Tensor")
    wanted = oar.to_tensor([1, 0]).__getattribute__(name.lower())().dtype
    assert make is getattr(device, f"{name}Tensor") is getattr(oar.cuda, f"{name}Tensor")
    for x in (make(), make(2, 3), make([1, 0]), make(np.array([1, 0])), make(oar.to_tensor([1, 0]))):
        assert x.dtype == wanted
    assert make().shape == [0] and make(2, 3).shape == [2, 3] and make((1, 0)).shape == [2]
    with pytest.raises(TypeError, match="takes sizes, or one list"):
        make([1], [2])
