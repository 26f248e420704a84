"""Tensors and layers laid out over a grid of processes, of which there is one; settings; roles of processes."""

import numpy as np
import pytest

import oar
import oar.distributed as dist
from oar.distributed.auto_parallel.api import dtensor_from_local
from oar.distributed.fleet import auto
from oar.distributed.fleet.base import role_maker
from oar.incubate.distributed.fleet import role_maker as older
from oar.incubate.distributed.fleet.parameter_server.ir.ps_dispatcher import HashName, RoundRobin


@pytest.fixture
def grid():
    return dist.ProcessMesh([[0, 1, 2], [3, 4, 5]], dim_names=["x", "y"])


def test_a_grid_and_its_parts(grid):
    assert grid.shape == [2, 3] and grid.ndim == 2 and grid.process_ids == [0, 1, 2, 3, 4, 5] and grid.size == 6
    assert grid == dist.ProcessMesh(shape=[2, 3], process_ids=range(6)) and grid != dist.ProcessMesh([0, 1])
    assert [grid.get_dim_size(dim) for dim in ("y", 0, None)] == [3, 2, 1]
    assert [grid.get_rank_by_dim_and_process_id("y", process) for process in (5, 3, 9)] == [2, 0, -1]
    assert grid[0] == dist.ProcessMesh([0, 1, 2]) and grid[0].dim_names == ["y"]
    assert grid[:, 1].process_ids == [1, 4] and grid[:, 1].dim_names == ["x"] and grid[1, 1].process_ids == [4]
    assert grid.get_mesh_with_dim("y").shape == [3, 2] and grid.get_mesh_with_dim("y", 1).process_ids == [1, 4]
    assert grid["x"].process_ids == [0, 3]
    assert grid.unique_id == dist.ProcessMesh(grid.mesh, ["a", "b"]).unique_id
    assert auto.create_mesh([("dp", 2), ("mp", 3)]) == grid and dist.get_mesh().dim_names == ["dp", "mp"]
    dist.set_mesh(None)


def test_a_tensor_keeps_its_layout_and_its_values(grid):
    x = oar.arange(24, dtype="float32").reshape([4, 6])
    laid_out = dist.shard_tensor(x, grid, [dist.Shard(0), dist.Shard(1)])
    assert laid_out.is_dist() and not x.is_dist() and x.placements is None and x.process_mesh is None
    assert laid_out.process_mesh == grid and laid_out.placements == [dist.Shard(0), dist.Shard(1)] and laid_out.num_shard == 6
    assert laid_out.dist_attr().dims_mapping == [0, 1] and laid_out.dist_attr().sharding_specs == ["x", "y"]
    assert laid_out.shape == [4, 6] and laid_out._local_shape == [2, 2]
    np.testing.assert_array_equal(laid_out._local_value().numpy(), x.numpy()[:2, :2])
    np.testing.assert_array_equal((laid_out @ laid_out.T).numpy(), x.numpy() @ x.numpy().T)
    assert dist.shard_tensor(x, grid, [dist.Partial()])._local_value().tolist() == x.tolist()
    assert dist.shard_tensor(x, grid, []).placements == [dist.Replicate(), dist.Replicate()]
    whole = dist.unshard_dtensor(laid_out)
    assert not whole.is_dist() and whole.tolist() == x.tolist()


@pytest.mark.parametrize("process, rows", [(0, slice(0, 2)), (1, slice(2, 4)), (2, slice(4, 5)), (3, slice(5, 5))])
def test_pieces_that_are_not_of_one_size(process, rows):
    attr = dist.DistAttr(dist.ProcessMesh([0, 1, 2, 3], ["x"]), ["x"])
    assert attr.piece(process, [5]) == [rows]


def test_gradients_start_at_the_layout_and_flow_through_reshard():
    mesh = dist.ProcessMesh([0], ["x"])
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    laid_out = dist.shard_tensor(x, mesh, [dist.Shard(0)])
    assert laid_out.is_leaf and not laid_out.stop_gradient
    other = dist.reshard(laid_out, mesh, [dist.Replicate()])
    assert other.placements == [dist.Replicate()] and not other.is_leaf
    (other * other).sum().backward()
    assert laid_out.grad.tolist() == [2.0, 4.0] and x.grad is None


def test_layers(grid):
    seen = []

    def shard(name, layer, mesh):
        seen.append(name)
        if isinstance(layer, oar.nn.Linear):
            layer.weight = dist.shard_tensor(layer.weight, mesh, [dist.Shard(0), dist.Replicate()])

    net = oar.nn.Sequential(oar.nn.Linear(4, 3), oar.nn.BatchNorm1D(3))
    x = oar.randn([5, 4])
    expected = net(x).numpy()
    dist.shard_layer(net, grid, shard, output_fn=lambda out, mesh: out * 2)
    assert seen == ["", "0", "1"]
    assert net[0].weight.placements == [dist.Shard(0), dist.Replicate()] and net[0].bias.placements == [dist.Replicate()] * 2
    assert isinstance(net[0].weight, oar.Parameter) and net[1]._mean.is_dist()
    np.testing.assert_allclose(net(x).numpy(), expected * 2, rtol=1e-6)
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
    before = net[0].weight.numpy()
    net(x).square().sum().backward()
    optimizer.step()
    assert not np.allclose(before, net[0].weight.numpy())


@pytest.mark.parametrize("stage, moment, weight", [
    (None, [dist.Replicate(), dist.Shard(0)], [dist.Replicate(), dist.Shard(0)]),
    (dist.ShardingStage1, [dist.Shard(1), dist.Shard(0)], [dist.Replicate(), dist.Shard(0)]),
    (dist.ShardingStage3, [dist.Shard(1), dist.Shard(0)], [dist.Shard(1), dist.Shard(0)])])  # fmt: skip
def test_optimizers(grid, stage, moment, weight):
    def shard(name, layer, mesh):
        layer.weight = dist.shard_tensor(layer.weight, mesh, [dist.Replicate(), dist.Shard(0)])

    net, plain = oar.nn.Linear(6, 4), oar.nn.Linear(6, 4)
    plain.set_state_dict(net.state_dict())
    dist.shard_layer(net, grid, shard)
    inner = oar.optimizer.AdamW(0.1, parameters=net.parameters())
    optimizer = dist.shard_optimizer(inner, stage and stage("x", grid))
    other = oar.optimizer.AdamW(0.1, parameters=plain.parameters())
    for _ in range(2):
        for layer, one in ((net, optimizer), (plain, other)):
            layer(oar.ones([3, 6])).square().sum().backward()
            one.step()
            one.clear_grad()
    np.testing.assert_allclose(net.weight.numpy(), plain.weight.numpy(), rtol=1e-6)
    assert net.weight.placements == weight and inner._get_accumulator("moment1", net.weight).placements == moment
    assert optimizer.get_lr() == 0.1


def test_programs_and_functions(grid):
    oar.enable_static()
    try:
        with oar.static.program_guard(oar.static.Program()):
            x = oar.static.data("x", [2, 3])
            laid_out = dist.shard_tensor(x, grid, [dist.Shard(0), dist.Replicate()])
            assert laid_out.dist_attr().process_mesh == grid
            got = oar.static.Executor().run(feed={"x": np.ones([2, 3], "float32")}, fetch_list=[laid_out + 1])
            np.testing.assert_array_equal(got[0], np.full([2, 3], 2.0))
    finally:
        oar.disable_static()
    made = dist.dtensor_from_fn(oar.full, grid, [dist.Replicate()], [2], 3.0)
    assert made.is_dist() and made.tolist() == [3.0, 3.0]
    annotated = auto.shard_tensor(oar.ones([4, 6]), grid, [None, "x"])
    assert annotated.placements == [dist.Shard(1), dist.Replicate()]
    with grid:
        assert auto.shard_tensor(oar.ones([2])).placements == [dist.Replicate()] * 2


MISTAKES = {
    "mesh": (lambda g: dist.ProcessMesh(3), ValueError, "mesh must be an instance of list"),
    "names": (lambda g: dist.ProcessMesh([0, 1], ["x", "y"]), AssertionError, "for each of 1 axes"),
    "twice": (lambda g: dist.ProcessMesh([0, 0]), AssertionError, "each once"),
    "axis": (lambda g: g.get_dim_size("z"), AssertionError, "no axis 'z'"),
    "not a mesh": (lambda g: dist.shard_tensor(oar.ones([2]), [0], [dist.Shard(0)]), TypeError, "mesh must be a ProcessMesh, not list"),
    "placements": (lambda g: dist.shard_tensor(oar.ones([2]), g, dist.Shard(0)), TypeError, "must be a list of Shard"),
    "cut": (lambda g: dist.shard_tensor(oar.ones([2]), g, [dist.Shard(1)]), ValueError, r"Shard\(dim=1\) cuts an axis"),
    "plain": (lambda g: dist.unshard_dtensor(oar.ones([2])), ValueError, "is a plain one"),
    "others": (lambda g: dtensor_from_local(oar.ones([2]), g, [dist.Shard(0)]), NotImplementedError, "this process is alone"),
    "partial": (lambda g: dist.Partial("sum"), TypeError, "must be one of ReduceType"),
    "attr": (lambda g: dist.DistAttr([[0]], [None]), ValueError, "must be an instance of paddle.distributed.ProcessMesh"),
    "spec": (lambda g: dist.DistAttr(g, ["z"]), ValueError, "no axis 'z'"),
    "optimizer": (lambda g: dist.shard_optimizer(3), AssertionError, "must be an AdamW or SGD"),
    "stage": (lambda g: dist.shard_optimizer(oar.optimizer.SGD(0.1, parameters=[oar.ones([2])]), dist.ShardingStage1("x")), ValueError, "there is no mesh"),
    "strategy": (lambda g: auto.Strategy([]), ValueError, "must be a dictionary"),
    "passes": (lambda g: dist.Strategy({"fused_passes": {"none": 1}}), ValueError, "fused_passes has no 'none'"),
    "endpoints": (lambda g: older.UserDefinedRoleMaker(server_endpoints="a:1"), TypeError, "must be a list of strings"),
    "number": (lambda g: older.UserDefinedCollectiveRoleMaker(1, ["a:1"]), ValueError, "current_id is 1"),
    "no role": (lambda g: role_maker.RoleMakerBase()._is_worker(), NotImplementedError, "knows its role"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_named(what, grid):
    call, error, text = MISTAKES[what]
    with pytest.raises(error, match=text):
        call(grid)


def test_settings():
    strategy = auto.Strategy({"sharding": {"degree": 2}, "seed": 7})
    assert (strategy.sharding.degree, strategy.sharding.stage, strategy.seed) == (2, 1, 7)
    strategy.recompute.checkpoints.append("x")
    assert auto.Strategy().recompute.checkpoints == []
    assert strategy.to_dict()["recompute"]["checkpoints"] == ["x"] and strategy.get("auto_mode") == "semi"
    own = dist.Strategy({"fused_passes": {"enable": True}})
    assert own.fused_passes.enable and own.amp.level == "o1" and own.pipeline.schedule_mode == "1F1B" and own.full_graph


SERVERS = {"PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.1:6001,10.0.0.2:6001", "PADDLE_TRAINERS_NUM": "3",
           "PADDLE_TRAINER_ENDPOINTS": "10.0.0.3:6002,10.0.0.4:6002,10.0.0.4:6003"}  # fmt: skip


def _set(monkeypatch, **variables):
    for name in ("PADDLE_PSERVERS_IP_PORT_LIST", "TRAINING_ROLE", "PADDLE_TRAINER_ID", "POD_IP", "PADDLE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_a_worker_with_servers(monkeypatch):
    _set(monkeypatch, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="2", **SERVERS)
    role = role_maker.PaddleCloudRoleMaker()
    assert role._is_worker() and not role._is_server() and not role._is_first_worker() and not role._is_non_distributed()
    assert (role._worker_num(), role._server_num(), role._worker_index(), role._node_num()) == (3, 2, 2, 2)
    old = older.PaddleCloudRoleMaker()
    assert old.is_worker() and old.worker_num() == 3 and old.worker_index() == 2


def test_a_server(monkeypatch):
    _set(monkeypatch, TRAINING_ROLE="PSERVER", POD_IP="10.0.0.2", PADDLE_PORT="6001", **SERVERS)
    role = role_maker.PaddleCloudRoleMaker()
    assert role._is_server() and role._server_index() == 1 and role._all_gather(4) == 4
    monkeypatch.setenv("PADDLE_PORT", "1")
    with pytest.raises(ValueError, match=r"10\.0\.0\.2:1, which is not among"):
        role_maker.PaddleCloudRoleMaker()._is_server()


@pytest.mark.parametrize("variables, text", [
    ({"TRAINING_ROLE": "COOK"}, "TRAINING_ROLE must be one of TRAINER"), ({"TRAINING_ROLE": "TRAINER"}, "no PADDLE_TRAINER_ID")])  # fmt: skip
def test_an_environment_that_is_incomplete(monkeypatch, variables, text):
    _set(monkeypatch, **SERVERS, **variables)
    for make in (lambda: role_maker.PaddleCloudRoleMaker()._generate_role(), lambda: older.PaddleCloudRoleMaker().generate_role()):
        with pytest.raises(ValueError, match=text):
            make()


def test_without_a_launcher(monkeypatch):
    _set(monkeypatch)
    for collective in (False, True):
        role = role_maker.PaddleCloudRoleMaker(is_collective=collective)
        assert role._is_first_worker() and role._worker_num() == 1 and role._is_non_distributed()


def test_who_keeps_which_parameter():
    class Variable:
        def __init__(self, name):
            self.name = lambda: name

    turns = RoundRobin(["a:1", "b:1"])
    assert turns.dispatch([1, 2, 3]) == ["a:1", "b:1", "a:1"] and turns.dispatch([4]) == ["b:1"]
    turns.reset()
    assert turns.dispatch([5]) == ["a:1"]
    hashed = HashName(["a:1", "b:1"]).dispatch([Variable("w"), Variable("v"), Variable("w")])
    assert hashed[0] == hashed[2] and set(hashed) <= {"a:1", "b:1"}
