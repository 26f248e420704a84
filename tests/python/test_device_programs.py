"""Captured functions on another device: the test plug-in with queues, whose memory Python cannot read."""

import subprocess
import sys
from pathlib import Path

import pytest

import oar

PLUGIN = Path(oar._C.__file__).resolve().parents[2] / "plugins" / "async_device.so"
pytestmark = pytest.mark.skipif(not PLUGIN.exists(), reason="needs the test plug-ins of the build tree")

# A plug-in stays for the life of a process, so each test has one of its own.
START = f"""
import numpy as np
import oar
from oar import nn
oar._C.load_plugin({str(PLUGIN)!r})

def close(a, b):
    np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), rtol=1e-4, atol=1e-5)
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", START + code], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_a_function_is_whole():
    run("""
@oar.jit.to_static
def f(x, y):
    return oar.tanh(x @ y) * 2.0 + x.sum()

x, y = oar.rand([4, 4]), oar.rand([4, 4])
for _ in range(3):
    close(f(x.to("async"), y.to("async")), oar.tanh(x @ y) * 2.0 + x.sum())
close(f(x.to("async:1"), y.to("async:1")), oar.tanh(x @ y) * 2.0 + x.sum())
close(f(x, y), oar.tanh(x @ y) * 2.0 + x.sum())
counts = oar.jit.capture_counts(f)
assert counts["whole"] == 5 and counts["segments"] == 0, counts
""")


@pytest.mark.parametrize("optimizer", ["SGD(0.1", "Momentum(0.1, 0.9", "AdamW(0.05"])
def test_a_training_step_is_whole(optimizer):
    run(f"""
def trained(device, static):
    oar.seed(3)
    oar.set_device("cpu")
    start = [oar.rand([6, 8]) - 0.5, oar.rand([8, 3]) - 0.5]
    x, y = oar.rand([5, 6]), oar.rand([5, 3])
    oar.set_device(device)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    with oar.no_grad():
        for p, value in zip([net[0].weight, net[2].weight], start):
            p.copy_(value.to(device))
        for p in (net[0].bias, net[2].bias):
            p.copy_(oar.zeros(p.shape))
    opt = oar.optimizer.{optimizer}, parameters=net.parameters())

    def step(x, y):
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    run = oar.jit.to_static(step) if static else step
    losses = [run(x.to(device), y.to(device)) for _ in range(6)]
    if static:
        counts = oar.jit.capture_counts(run)
        assert counts["whole"] == 6 and counts["segments"] == 0, counts
    return losses + net.parameters()

wanted = trained("cpu", False)
for device, static in [("async", False), ("async", True)]:
    for a, b in zip(trained(device, static), wanted):
        close(a, b)
""")


def test_a_function_that_looks_at_values_runs_in_segments():
    run("""
@oar.jit.to_static
def f(x):
    y = oar.exp(x * 0.5) + 1.0
    print(end=str(len(str(y.sum().cpu().numpy()))))
    return y * y - x

x = oar.rand([8])
for _ in range(4):
    y = oar.exp(x * 0.5) + 1.0
    close(f(x.to("async")), y * y - x)
counts = oar.jit.capture_counts(f)
assert counts["segments"] == 4 and counts["whole"] == 0, counts
""")


def test_streams_and_counts_of_a_plug_in():
    run("""
custom = oar.device.custom_device
assert custom.device_count() == custom.device_count("async") == 2
assert custom.get_device_properties(1).name == "async:1" and oar.get_device_module("async") is custom
start, end = custom.Event(enable_timing=True), custom.Event(enable_timing=True)
start.record()
x = oar.ones([64, 64]).to("async")
y = x @ x
end.record()
assert start.elapsed_time(end) > 0.0 and custom.Stream("async:1").query()
custom.synchronize()
oar.device.synchronize("async:1")
assert custom.current_stream(1) is oar.device.current_stream("async:1") is not oar.device.current_stream("cpu")
for call in (custom.memory_allocated, lambda: oar.device.memory_allocated("async:1")):
    try:
        call()
    except RuntimeError as error:
        assert "does not report its memory" in str(error)
    else:
        raise AssertionError("no error")
""")
