"""Pipelines over several processes: schedules, numbers, mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import group_pipeline
import oar
import pytest
from oar import distributed as dist
from oar import nn
from oar.distributed import fleet
from oar.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, PipelineParallel
from oar.distributed.fleet.meta_parallel.pipeline.schedule import KINDS, make_schedule
from oar.distributed.fleet.meta_parallel.pipeline.segments import boundaries

HERE = Path(__file__).resolve().parent
several_processes = pytest.mark.skipif(not dist.is_available(), reason="built without Gloo and MPI")


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setenv("PADDLE_DISTRI_PG_TIMEOUT", "60000")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


def carried_out(actions, stages, chunks):
    """Carries out a schedule as processes do: each waits for what its next action needs. Returns whether all come to an end."""
    done, positions = set(), [0] * stages
    moved = True
    while moved:
        moved = False
        for stage, own in enumerate(actions):
            while positions[stage] < len(own):
                kind, chunk, micro = own[positions[stage]]
                place = chunk * stages + stage
                needs = {"F": [("F", place - 1)] if place else [], "W": [("B", place)],
                         "B": [("F", place), *([("B", place + 1)] if place < stages * chunks - 1 else [])]}[kind]
                if not all((*what, micro) in done for what in needs):
                    break
                assert (kind, place, micro) not in done
                done.add((kind, place, micro))
                positions[stage] += 1
                moved = True
    return all(position == len(own) for position, own in zip(positions, actions))


@pytest.mark.parametrize("kind", KINDS)
def test_schedules_come_to_an_end(kind):
    for stages in range(1, 6):
        for micro_batches in (1, 2, 3, 4, 5, 7, 8, 13):
            for chunks in (1, 2, 3):
                schedule = make_schedule(kind, stages, micro_batches, chunks)
                assert carried_out(schedule.actions, stages, chunks), (stages, micro_batches, chunks)
                passes = 3 if KINDS[kind] else 2
                assert all(len(own) == passes * micro_batches * chunks for own in schedule.actions)


def test_what_schedules_keep_and_how_long_they_wait():
    stages, micro_batches = 4, 8
    late, plain, split = (make_schedule(kind, stages, micro_batches) for kind in ("F-then-B", "1F1B", "ZBH1"))
    cut, both = make_schedule("1F1B", stages, micro_batches, 2), make_schedule("ZBVPP", stages, micro_batches, 2)
    assert late.most_kept == [8] * 4 and plain.most_kept == split.most_kept == [4, 3, 2, 1]
    usual = (stages - 1) / (micro_batches + stages - 1)
    assert plain.idle == late.idle == pytest.approx(usual)
    assert cut.idle == pytest.approx((stages - 1) / (2 * micro_batches + stages - 1))
    assert both.idle < cut.idle < plain.idle and split.idle < 0.75 * plain.idle


def test_segments():
    class Block(nn.Layer):
        pass

    blocks = [nn.Linear(1, 1), *[LayerDesc(Block) for _ in range(6)], nn.ReLU(), abs]
    assert boundaries(list(range(10)), 4, "uniform", None) == [0, 2, 4, 7, 10]
    assert boundaries(blocks, 3, "layer:Block", None) == [0, 3, 5, 9]
    assert boundaries(list(range(6)), 3, "parameters", lambda: [50, 1, 1, 1, 30, 30]) == [0, 1, 5, 6]
    assert boundaries(list(range(4)), 2, [0, 3], None) == boundaries(list(range(4)), 2, [0, 3, 4], None) == [0, 3, 4]
    for method, text in (("layer:Block", "6 layers match, which 4 pieces do not divide"), ([0, 2, 2], "rising"), ("other", "must be 'uniform'")):
        with pytest.raises(ValueError, match=text):
            boundaries(blocks, 4, method, None)
    with pytest.raises(ValueError, match="2 layers cannot be cut into 3 pieces"):
        boundaries([1, 2], 3, "uniform", None)


def test_mistakes():
    with pytest.raises(ValueError, match="2 stages in a grid of 2 processes, but there is 1"):
        PipelineLayer([nn.ReLU(), nn.ReLU()], num_stages=2)
    with pytest.raises(ValueError, match="both None"):
        PipelineLayer([nn.ReLU()])
    with pytest.raises(TypeError, match=r"layers\[0\] must be a layer"):
        PipelineLayer([3], num_stages=1)
    fleet.init(is_collective=True)
    groups = fleet.get_hybrid_communicate_group()
    with pytest.raises(TypeError, match="must be a PipelineLayer, not Linear"):
        PipelineParallel(nn.Linear(1, 1), groups, fleet.DistributedStrategy())
    strategy = fleet.DistributedStrategy()
    strategy.pipeline_configs = {"schedule_mode": "2F2B"}
    with pytest.raises(ValueError, match="schedule_mode is '2F2B'"):
        PipelineParallel(PipelineLayer([nn.ReLU()], num_stages=1), groups, strategy)


def test_one_process_with_virtual_stages():
    fleet.init(is_collective=True)
    strategy = fleet.DistributedStrategy()
    strategy.pipeline_configs = {"accumulate_steps": 3, "micro_batch_size": 2}
    net = group_pipeline.made("float64", 3, num_stages=1, num_virtual_pipeline_stages=2)
    model = PipelineParallel(net, fleet.get_hybrid_communicate_group(), strategy)
    optimizer = group_pipeline.optimizer_of(net, True)
    wanted, _ = group_pipeline.alone("float64", 3, 6, True, 4)
    pairs = [(oar.to_tensor(words[:, :-1]), oar.to_tensor(words[:, 1:])) for words in group_pipeline.batches(6, 4)]
    assert [model.train_batch(pair, optimizer).item() for pair in pairs] == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(ValueError, match=r"the inputs have 5 rows, but micro_batch_size \* accumulate_steps is 2 \* 3"):
        model.train_batch((pairs[0][0][:5], pairs[0][1][:5]), optimizer)
    with pytest.raises(ValueError, match="a list of 2, but accumulate_steps is 3"):
        model.train_batch(([pairs[0][0]] * 2, pairs[0][1]), optimizer)
    with pytest.raises(RuntimeError, match="call train_batch or eval_batch"):
        model(pairs[0][0])


@several_processes
@pytest.mark.parametrize("count", [2, 3, 4])
def test_numbers_of_one_process(count):
    dist.spawn(group_pipeline.schedules, nprocs=count)


@several_processes
def test_with_copies(tmp_path):
    dist.spawn(group_pipeline.with_copies, args=(str(tmp_path),), nprocs=4)


@several_processes
def test_scalers_losses_and_shapes():
    dist.spawn(group_pipeline.details, nprocs=2)


@several_processes
def test_changing_shapes_are_an_error():
    with pytest.raises(RuntimeError, match=r"give all micro-batches one shape, or set pipeline_configs\['p2p_cache_shape'\] to False"):
        dist.spawn(group_pipeline.changing_shapes, nprocs=2)


@several_processes
def test_the_example_runs(tmp_path):
    script = HERE.parents[1] / "examples" / "distributed" / "pipeline_gpt.py"
    small = ["--blocks", "2", "--width", "16", "--length", "8", "--batch", "8", "--micro-batches", "4", "--checkpoint", str(tmp_path / "run")]
    for steps, count in ((20, 2), (30, 1)):
        done = subprocess.run([sys.executable, "-m", "oar.distributed.launch", "--nproc_per_node", str(count), "--log_dir", str(tmp_path / "log"),
                               str(script), *small, "--steps", str(steps)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"step {steps}: loss" in done.stdout and ("step 10:" in done.stdout) == (steps == 20), done.stdout
