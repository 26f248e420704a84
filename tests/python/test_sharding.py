"""``group_sharded_parallel`` over several processes: numbers, memory, files, mistakes."""

from __future__ import annotations

import os
from pathlib import Path

import group_sharded
import numpy as np
import oar
import pytest
from oar import distributed as dist
from oar import nn
from oar.distributed.sharding import group_sharded_parallel, save_group_sharded_model

HERE = Path(__file__).resolve().parent
several_processes = pytest.mark.skipif(not dist.is_available(), reason="built without Gloo and MPI")


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setenv("PADDLE_DISTRI_PG_TIMEOUT", "60000")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


@several_processes
@pytest.mark.parametrize("count", [2, 4])
def test_numbers_of_one_process(count):
    dist.spawn(group_sharded.stages, nprocs=count)


@several_processes
@pytest.mark.parametrize("count", [2, 4])
def test_memory(count):
    dist.spawn(group_sharded.memory, nprocs=count)


@several_processes
def test_mixed_precision():
    dist.spawn(group_sharded.mixed_precision, nprocs=2)


@several_processes
def test_files(tmp_path):
    dist.spawn(group_sharded.files, args=(str(tmp_path),), nprocs=2)


@several_processes
def test_states_on_disk(tmp_path):
    dist.spawn(group_sharded.on_disk, args=(str(tmp_path),), nprocs=2)


@several_processes
def test_copies_frozen_layers_and_overlap():
    dist.spawn(group_sharded.others, nprocs=4)


@pytest.mark.parametrize("level", group_sharded.LEVELS)
def test_one_process(level):
    twin = group_sharded.network("float32")
    wanted = group_sharded.trained(twin, group_sharded.adam(twin), steps=4)
    net = group_sharded.network("float32")
    plain = group_sharded.adam(net)
    net, optimizer, _ = group_sharded_parallel(net, plain, level)
    np.testing.assert_allclose(group_sharded.trained(net, plain, steps=4), wanted, rtol=1e-6)  # the inner optimiser does the same
    assert optimizer.get_lr() == plain.get_lr()


def pair(kind=oar.optimizer.AdamW, **options):
    net = nn.Linear(2, 2)
    return net, kind(0.1, parameters=net.parameters(), **options)


def test_mistakes():
    with pytest.raises(ValueError, match="level is 'all', but it must be 'os', 'os_g' or 'p_g_os'"):
        group_sharded_parallel(*pair(), "all")
    with pytest.raises(NotImplementedError, match="Lamb computes with whole parameters"):
        group_sharded_parallel(*pair(oar.optimizer.Lamb), "os")
    with pytest.raises(NotImplementedError, match="sync_buffers=True"):
        group_sharded_parallel(*pair(), "os", sync_buffers=True)
    net, optimizer = pair()
    net(oar.ones([1, 2])).sum().backward()
    optimizer.step()
    with pytest.raises(RuntimeError, match="the AdamW has states already"):
        group_sharded_parallel(net, optimizer, "os")
    net, optimizer, _ = group_sharded_parallel(*pair(), "os_g")
    net._layers.to(dtype="float64")
    with pytest.raises(RuntimeError, match="weight|linear.* was cast or replaced after its states were divided"):
        optimizer.step()
    net, optimizer, _ = group_sharded_parallel(*pair(), "p_g_os")
    with pytest.raises(NotImplementedError, match="with divided parameters cannot be captured"):
        oar.jit.capture(net, [oar.static.InputSpec([1, 2])])
    assert net._layers.weight.shape == [2, 2] and np.isnan(net._layers.weight.numpy()).all()
    with pytest.raises(RuntimeError, match=r"\[state_dict\] the parameters are divided"):
        net.state_dict()
    with net.whole_parameters():
        assert np.isfinite(net.state_dict()["weight"].numpy()).all()
    with pytest.raises(TypeError, match="must be what group_sharded_parallel returned, not Linear"):
        save_group_sharded_model(net._layers, "folder")
    with pytest.raises(TypeError, match="optimizer must be what group_sharded_parallel returned, not AdamW"):
        save_group_sharded_model(net, "folder", pair()[1])
