"""Shared by all tests: a fixed seed, and state that a test must not leave behind."""

import os

import pytest

# Read when the library is loaded; processes that tests start inherit it.
os.environ.setdefault("OAR_VERIFY_PASSES", "1")

import oar  # noqa: E402

FULL = os.environ.get("OAR_TEST_MODE") == "full"
SEGMENTS = os.environ.get("OAR_TEST_MODE") == "segments"


def pytest_configure(config):
    config.addinivalue_line("markers", "full: only with OAR_TEST_MODE=full")


def pytest_collection_modifyitems(items):
    if FULL:
        return
    skip = pytest.mark.skip(reason="needs OAR_TEST_MODE=full")
    for item in items:
        if "full" in item.keywords:
            item.add_marker(skip)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """With OAR_TEST_MODE=segments, the kernel calls of every test are queued until a value is read."""
    if SEGMENTS:
        function = pyfuncitem.obj
        pyfuncitem.obj = lambda **given: oar._C.run_in_segments(function, (), given, "")
    yield


@pytest.fixture(autouse=True)
def clean_state():
    """The same random numbers for every test, whatever ran before; gradient mode and dtype as found."""
    dtype, threads = oar.get_default_dtype(), oar.get_num_threads()
    oar.seed(2024)
    yield
    leaked = not oar.is_grad_enabled()
    oar.set_default_dtype(dtype)
    oar.set_num_threads(threads)
    oar._C.set_grad_enabled(True)
    assert not leaked, "the test left gradient recording switched off"
