"""Paddle's inner names that programs use: modes, places, dtypes, devices."""

import importlib

import numpy as np
import pytest

import oar
from oar import base, device, framework


@pytest.mark.parametrize("path", ["oar.base", "oar.base.core", "oar.base.data_feeder", "oar.base.dygraph",
                                  "oar.base.dygraph.base", "oar.base.framework", "oar.device", "oar.framework",
                                  "oar.framework.core"])
def test_what_a_module_lists_it_has(path):
    module = importlib.import_module(path)
    for name in module.__all__:
        assert hasattr(module, name), name


def test_calls_run_at_once():
    oar.disable_static()
    base.enable_dygraph()
    with base.dygraph.guard(base.CPUPlace()):
        x = base.dygraph.to_variable(np.ones([2], "float32"), name="x")
        assert base.in_dygraph_mode() and base.dygraph.enabled() and oar.in_dynamic_mode()
        assert not framework.in_pir_mode() and framework.in_dynamic_or_pir_mode()
    assert x.name == "x" and x.tolist() == [1, 1]


def test_guard_goes_back_to_the_device_before():
    with pytest.raises(RuntimeError), base.dygraph.guard(oar.CPUPlace()):
        raise RuntimeError
    assert oar.get_device() == "cpu"


def test_places_that_are_not_there():
    kinds = {oar.CUDAPlace: "GPU", base.CUDAPinnedPlace: "GPU", oar.XPUPlace: "XPU", oar.IPUPlace: "IPU"}
    for place, kind in kinds.items():
        for error in (RuntimeError, ValueError):
            with pytest.raises(error, match=rf"\[{place.__name__}\] there is no {kind} here"):
                place(0)
    assert not isinstance(oar.CPUPlace(), oar.CUDAPlace)
    for name in ("cuda", "rocm", "xpu", "cinn"):
        assert getattr(oar, f"is_compiled_with_{name}")() is getattr(base.core, f"is_compiled_with_{name}")() is False


def test_dtypes_by_other_names():
    for old, new in [("FP32", "float32"), ("BF16", "bfloat16"), ("INT64", "int64"), ("COMPLEX128", "complex128")]:
        dtype = getattr(base.core.VarDesc.VarType, old)
        assert dtype == oar.zeros([1], dtype=new).dtype == getattr(base.core.DataType, new.upper())
    for given in ("float64", oar.float64, np.float64, np.dtype("float64")):
        assert base.data_feeder.convert_dtype(given) == "float64"
        assert base.framework.convert_np_dtype_to_dtype_(given) == oar.float64


def test_devices():
    assert device.get_all_device_type()[0] == device.get_available_device()[0] == device.get_device() == "cpu"
    for kind in device.get_all_custom_device_type():
        assert device.is_compiled_with_custom_device(kind) and f"{kind}:0" in device.get_available_custom_device()
    assert not device.is_compiled_with_custom_device("toaster")
    assert device.get_cudnn_version() is None and base.core.get_cuda_device_count() == 0
    assert base.core.is_bfloat16_supported(oar.CPUPlace())
    assert base.core.is_float16_supported(oar.CPUPlace()) == ("avx512_fp16" in base.core._processor_flags())


def test_default_dtype_of_the_framework():
    framework.set_default_dtype("float64")
    assert framework.get_default_dtype() == "float64" and oar.to_tensor(1.0).dtype == oar.float64


def test_second_paths():
    assert oar.nn.loss.NLLLoss is oar.nn.NLLLoss and oar.nn.spectral_norm is oar.nn.utils.spectral_norm
