"""Training scripts of several processes, run by one: groups, messages, fleet, layers that are cut, spawn and launch."""

import copy
import os
import subprocess
import sys

import numpy as np
import pytest

import oar
import oar.distributed as dist
from oar import nn
from oar.distributed import fleet
from oar.distributed.fleet import meta_parallel
from oar.distributed.fleet.utils import hybrid_parallel_util, sequence_parallel_utils


@pytest.fixture
def started():
    return fleet.init(is_collective=True)


def train(net, optimizer, steps=3):
    x, y = oar.to_tensor([[1.0, 2.0], [3.0, -1.0]]), oar.to_tensor([[1.0], [0.0]])
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        hybrid_parallel_util.fused_allreduce_gradients(net.parameters(), None)
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return losses


def test_a_script_of_several_processes_trains_as_one(started):
    oar.seed(3)
    plain = nn.Linear(2, 1)
    twin = copy.deepcopy(plain)
    net = fleet.distributed_model(twin)
    optimizer = fleet.distributed_optimizer(oar.optimizer.Momentum(0.1, parameters=net.parameters()))
    wanted = train(plain, oar.optimizer.Momentum(0.1, parameters=plain.parameters()))
    assert train(net, optimizer) == wanted
    assert fleet.worker_num() == fleet.nranks() == fleet.world_size() == 1
    assert fleet.worker_index() == fleet.rank() == 0 and fleet.is_first_worker() and fleet.is_worker() and not fleet.is_server()
    fleet.barrier_worker()
    assert fleet.util.all_reduce([1, 2]).tolist() == [1, 2] and fleet.util.all_gather(3) == [3]


def test_messages_give_back_what_they_were_given():
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.AVG):
        assert dist.all_reduce(x, op).is_completed()
    assert x.tolist() == [1.0, 2.0] and dist.broadcast(x, 0).wait() and dist.reduce(x, 0).wait()
    parts = []
    dist.all_gather(parts, x)
    dist.all_gather(parts, x * 2)  # a full list is overwritten
    assert [part.tolist() for part in parts] == [[2.0, 4.0]] and parts[0].stop_gradient
    out = oar.zeros([2])
    dist.scatter(out, [x])
    assert out.tolist() == [1.0, 2.0]
    dist.alltoall_single(out, x * 3, [2], [2])
    assert out.tolist() == [3.0, 6.0]
    objects = []
    dist.all_gather_object(objects, {"a": [1]})
    assert objects == [{"a": [1]}]
    dist.barrier()
    dist.wait(x)


MISTAKES = {
    "peer": (lambda: dist.send(oar.ones([1]), 1), ValueError, r"\[send\] dst is 1, but there is one process"),
    "source": (lambda: dist.broadcast(oar.ones([1]), 2), ValueError, r"\[broadcast\] src is 2"),
    "op": (lambda: dist.all_reduce(oar.ones([1]), 9), ValueError, r"\[all_reduce\] op must be one of ReduceOp.*not 9"),
    "shape": (lambda: dist.scatter(oar.ones([1]), [oar.ones([2])]), ValueError, r"\[scatter\].*\[2\].*\[1\]"),
    "list": (lambda: dist.scatter(oar.ones([1]), []), ValueError, "must have one tensor"),
    "group": (lambda: dist.new_group([0, 1]), ValueError, r"\[new_group\] ranks \[0, 1\] has \[1\]"),
    "stream": (lambda: dist.stream.all_reduce(oar.ones([1]), sync_op=False, use_calc_stream=True), RuntimeError, "sync_op"),
    "spawn": (lambda: dist.spawn(print, nprocs=0), ValueError, r"\[spawn\] nprocs is 0"),
    "role": (lambda: fleet.init(role_maker=3), ValueError, "role_maker must be a role maker"),
    "collective": (lambda: fleet.init(is_collective=1), ValueError, "is_collective must be a bool"),
    "workers": (
        lambda: fleet.init(fleet.UserDefinedRoleMaker(worker_endpoints=["a:1", "b:2"])), ValueError, "2 workers and 0 servers"),
    "processes": (
        lambda: fleet.init(fleet.UserDefinedRoleMaker(is_collective=True, worker_endpoints=["a:1", "b:2"])), ValueError,
        "2 workers, but the launcher of this process has started 1"),
    "setting": (lambda: setattr(fleet.DistributedStrategy(), "nothing", 1), TypeError, "no setting 'nothing'"),
    "type": (lambda: setattr(fleet.DistributedStrategy(), "amp", 1), TypeError, "amp must be of type bool, not int"),
    "key": (lambda: setattr(fleet.DistributedStrategy(), "amp_configs", {"a": 1}), ValueError, "amp_configs has no a"),
    "model": (lambda: fleet.distributed_model(3), TypeError, "model must be a layer"),
    "pipeline": (lambda: meta_parallel.PipelineLayer([nn.ReLU(), nn.ReLU()], num_stages=2), ValueError, "num_stages=1"),
    "stream of numbers": (lambda: meta_parallel.RNGStatesTracker().rng_state("x").__enter__(), ValueError, "no stream 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_named(what):
    call, error, text = MISTAKES[what]
    with pytest.raises(error, match=text):
        call()


def test_a_strategy_keeps_its_settings():
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": 1, "pp_configs": {"enable_timer": True}}
    strategy.last_comm_group_size_MB = 2
    twin = copy.deepcopy(strategy)
    twin.hybrid_configs = {"dp_degree": 4}
    assert strategy.hybrid_configs["dp_degree"] == 1 and twin.hybrid_configs["dp_degree"] == 4
    assert twin.hybrid_configs["pp_configs"].enable_timer and twin.last_comm_group_size_MB == 2.0
    assert not fleet.DistributedStrategy().hybrid_configs["pp_configs"].enable_timer
    assert "dp_degree" in repr(strategy)


def test_the_grid_of_processes():
    grid = fleet.CommunicateTopology(["data", "pipe", "model"], [2, 2, 3])
    assert grid.world_size() == 12 and grid.get_coord(7) == (1, 0, 1) and grid.get_rank(data=1, pipe=0, model=1) == 7
    assert grid.get_comm_list("data") == [[0, 6], [1, 7], [2, 8], [3, 9], [4, 10], [5, 11]]
    assert grid.get_axis_list("pipe", 1) == [3, 4, 5, 9, 10, 11]
    assert grid.get_fused_ranks(["data", "model"]) == [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10, 11]]
    assert grid.get_rank_from_stage(7, pipe=1) == 10
    with pytest.raises(ValueError, match="needs 12 processes"):
        fleet.HybridCommunicateGroup(fleet.CommunicateTopology(["data", "pipe", "sharding", "sep", "model"], [2, 2, 1, 1, 3]))


def test_cut_layers_are_whole_layers(started):
    groups = fleet.get_hybrid_communicate_group()
    assert groups.get_model_parallel_world_size() == 1 and groups.get_stage_id() == 0 and groups.get_parallel_mode() is None
    oar.seed(1)
    words = meta_parallel.VocabParallelEmbedding(7, 4)
    first = meta_parallel.ColumnParallelLinear(4, 6, has_bias=True, gather_output=False)
    second = meta_parallel.RowParallelLinear(6, 5, input_is_parallel=True)
    ids, labels = oar.to_tensor([[1, 2, 3]]), oar.to_tensor([[4, 0, 1]])
    out = second(first(words(ids)))
    hidden = nn.functional.linear(nn.functional.embedding(ids, words.weight), first.weight, first.bias)
    wanted = nn.functional.linear(hidden, second.weight, second.bias)
    np.testing.assert_array_equal(out.numpy(), wanted.numpy())
    loss = meta_parallel.ParallelCrossEntropy()(out, labels)
    assert loss.shape == [1, 3, 1]
    assert loss.mean().item() == pytest.approx(nn.functional.cross_entropy(wanted, labels).item(), rel=1e-6)
    assert sequence_parallel_utils.ScatterOp.apply(out) is out
    assert meta_parallel.ColumnParallelLinear(4, 6).bias is None


def test_a_pipeline_of_one_stage():
    tied = [
        meta_parallel.SharedLayerDesc("words", nn.Embedding, None, "weight", 7, 4),
        meta_parallel.LayerDesc(nn.Linear, 4, 4),
        nn.ReLU(),
        lambda x: x * 2,
        meta_parallel.SharedLayerDesc("words", nn.Embedding, lambda layer, x: x @ layer.weight.T, "weight", 7, 4),
    ]
    net = meta_parallel.PipelineLayer(tied, num_stages=1)
    assert sorted(net.state_dict()) == ["1.bias", "1.weight", "shared_layers.words.weight"]
    out = net(oar.to_tensor([[1, 2]]))
    assert out.shape == [1, 2, 7]
    out.sum().backward()
    assert net.shared_layers["words"].weight.grad is not None


def test_streams_of_random_numbers(started):
    meta_parallel.model_parallel_random_seed(5)
    tracker = meta_parallel.get_rng_state_tracker()
    before = oar.get_rng_state()
    with tracker.rng_state():
        first = oar.rand([3]).tolist()
    with tracker.rng_state():
        assert oar.rand([3]).tolist() != first
    outside = oar.rand([3]).tolist()
    oar.set_rng_state(before)
    assert oar.rand([3]).tolist() == outside  # blocks do not move the stream around them
    meta_parallel.model_parallel_random_seed(5)
    with tracker.rng_state():
        assert oar.rand([3]).tolist() == first


def test_static_programs_are_minimised_through_fleet():
    oar.enable_static()
    try:
        main, startup = oar.static.Program(), oar.static.Program()
        with oar.static.program_guard(main, startup):
            x = oar.static.data("x", [None, 2])
            loss = nn.Linear(2, 1)(x).square().mean()
            fleet.init(is_collective=True)
            optimizer = fleet.distributed_optimizer(oar.optimizer.SGD(0.1), fleet.DistributedStrategy())
            optimizer.minimize(loss)
        run = oar.static.Executor()
        run.run(startup)
        feed = {"x": np.ones([4, 2], "float32")}
        losses = [float(run.run(main, feed=feed, fetch_list=[loss])[0]) for _ in range(5)]
        assert losses[-1] < losses[0]
    finally:
        oar.disable_static()


def fail() -> None:
    raise ValueError("a mistake in the child")


def test_spawn_runs_a_process_and_shows_its_error():
    assert dist.spawn(os.getpid, nprocs=1).processes[0].exitcode == 0
    with pytest.raises(RuntimeError, match="a mistake in the child"):
        dist.spawn(fail, nprocs=1, start_method="fork")


def test_launch_runs_a_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import sys, paddle\npaddle.distributed.init_parallel_env()\n"
                      "print(sys.argv[1:], paddle.distributed.get_rank(), paddle.distributed.get_world_size())\n")
    command = [sys.executable, "-m", "oar.as_paddle", "-m", "paddle.distributed.launch", "--gpus", "0", str(script), "--epochs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "['--epochs', '2'] 0 1\n", done.stderr


class Lines(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        return lambda: iter([[("words", [int(word) for word in line.split()]), ("weight", [0.5])]])


def test_lines_become_samples(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", iter(["1 2\n", "3\n", "4 5 6\n"]))
    lines = Lines()
    lines.set_batch(2)
    lines.run_from_stdin()
    assert capsys.readouterr().out == "2 1 2 1 0.5\n1 3 1 0.5\n3 4 5 6 1 0.5\n"
    for sample, text in (
        ([("words", [])], "slots"), ([("words", []), ("weight", [1])], "no values"),
        ([("words", ["a"]), ("weight", [1])], "must be numbers"), ("words", "must be a list or tuple"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            lines._gen_str(sample)


def test_blocks_that_run_again_draw_the_same_numbers_from_streams():
    tracker = meta_parallel.get_rng_state_tracker()
    tracker.reset()
    tracker.add("again", 3)
    x = oar.ones([50], "float32")
    x.stop_gradient = False

    def block(x):
        with tracker.rng_state("again"):
            return nn.functional.dropout(x * x, 0.5)

    before = tracker.get_states_tracker()
    out = fleet.recompute.recompute(block, x)
    after = tracker.get_states_tracker()
    with tracker.rng_state("again"):
        wanted = oar.rand([2]).tolist()
    tracker.set_states_tracker(after)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * out.numpy())
    with tracker.rng_state("again"):
        assert oar.rand([2]).tolist() == wanted  # the second run has moved nothing
    tracker.set_states_tracker(before)
    np.testing.assert_array_equal(block(x).numpy(), out.numpy())
