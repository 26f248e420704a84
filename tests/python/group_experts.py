"""What the processes of test_hybrid_parallel.py do with layers of experts, and with norms over the batches of all."""

from __future__ import annotations

import group_gpt as gpt
import numpy as np
from group_hybrid import rows_of, start

import oar
from oar import distributed as dist
from oar import nn
from oar.distributed import fleet
from oar.distributed.utils import moe_utils
from oar.incubate.distributed.models import moe


class Experts(nn.Layer):
    """A network with a layer of experts, of which this process has a part."""

    def __init__(
        self, gate: str, capacity: float, group: dist.communication.group.Group | None = None, shares_rows: bool = False
    ) -> None:
        super().__init__()
        here = 4 if group is None else 4 // group.nranks
        self.enter, self.leave = nn.Linear(6, 8), nn.Linear(8, 3)
        experts = nn.LayerList([nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8)) for _ in range(here)])
        self.middle = moe.MoELayer(8, experts, {"type": gate, "top_k": 1 if gate == "switch" else 2}, group,
                                   group if shares_rows else None, recompute_interval=int(shares_rows))
        self.middle.gate.capacity, self.middle.gate.random_routing = (capacity, capacity), False
        self.middle.gate.switch_eps = 0.0

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        return self.leave(nn.functional.relu(self.middle(self.enter(x))))


def experts_of_whole(name: str, group: dist.communication.group.Group) -> str:
    """The name in the whole network of a parameter of this process."""
    parts = name.split(".")
    if "experts" in parts:
        place = parts.index("experts") + 1
        parts[place] = str(int(parts[place]) + group.rank * (4 // group.nranks))
    return ".".join(parts)


def experts() -> None:
    """MoELayer over processes, against all experts in one: each process has a part of the batch, or does a part of its rows."""
    size = dist.get_world_size()
    for dtype, gate in (("float64", "gshard"), ("float64", "switch"), ("float64", "naive"), ("float32", "gshard")):
        oar.set_default_dtype(dtype)
        group = start(dp_degree=size).get_data_parallel_group()
        train_experts(gate, group, shares_rows=False)
    oar.set_default_dtype("float64")
    train_experts("gshard", start(mp_degree=size).get_model_parallel_group(), shares_rows=True)
    oar.set_default_dtype("float32")
    rows_to_experts(group)


def train_experts(gate: str, group: dist.communication.group.Group, shares_rows: bool) -> None:
    oar.seed(4)
    dtype, capacity = oar.get_default_dtype(), 0.7  # some rows find no place
    whole, net = Experts(gate, capacity / group.nranks), Experts(gate, capacity, group, shares_rows)
    weights = {name: value.numpy() for name, value in whole.named_parameters()}
    for name, parameter in net.named_parameters():
        parameter.set_value(weights[experts_of_whole(name, group)])
    model = fleet.distributed_model(net)
    clips = nn.ClipGradByGlobalNorm(0.05), moe.ClipGradForMOEByGlobalNorm(0.05, moe_group=group)
    alone, together = (oar.optimizer.Momentum(0.5, 0.9, n.parameters(), grad_clip=c) for n, c in zip((whole, net), clips))
    optimizer = fleet.distributed_optimizer(together)
    numbers = np.random.default_rng(9)
    for _ in range(20):
        x, y = numbers.normal(size=(4, 5, 6)).astype(dtype), numbers.normal(size=(4, 5, 3)).astype(dtype)
        loss = nn.functional.mse_loss(whole(oar.to_tensor(x)), oar.to_tensor(y))
        parts = [oar.to_tensor(part) if shares_rows else rows_of(part, group) for part in (x, y)]
        mine = nn.functional.mse_loss(model(parts[0]), parts[1])
        loss.backward()
        mine.backward()
        for parameter in net.middle.experts.parameters():
            if parameter.grad is not None and not shares_rows:
                parameter.grad = parameter.grad / group.nranks  # the average of the losses, not their sum
        for one in (alone, optimizer):
            one.step()
            one.clear_grad(False)
        np.testing.assert_allclose(gpt.average_over(mine, group), loss.item(), rtol=gpt.tolerance_of(dtype))
    for name, parameter in net.named_parameters():
        wanted = dict(whole.named_parameters())[experts_of_whole(name, group)].numpy()
        np.testing.assert_allclose(parameter.numpy(), wanted, rtol=0, atol=gpt.tolerance_of(dtype) * np.abs(wanted).max())


def rows_to_experts(group: dist.communication.group.Group) -> None:
    """global_scatter and global_gather: each row knows where it belongs."""
    experts_here, size = 2, group.nranks
    counts = [[(r + e) % 3 for e in range(experts_here * size)] for r in range(size)]  # of process r for expert e
    local = counts[group.rank]
    everywhere = [counts[r][group.rank * experts_here + e] for r in range(size) for e in range(experts_here)]
    rows = [[group.rank, e, i] for e, n in enumerate(local) for i in range(n)]
    x = oar.to_tensor(np.array(rows, "float64").reshape(-1, 3), stop_gradient=False)
    arrived = moe_utils.global_scatter(x, oar.to_tensor(local), oar.to_tensor(everywhere), group)
    wanted = [[r, group.rank * experts_here + e, i] for e in range(experts_here) for r in range(size)
              for i in range(counts[r][group.rank * experts_here + e])]
    np.testing.assert_array_equal(arrived.numpy(), np.array(wanted).reshape(-1, 3))
    back = moe_utils.global_gather(arrived * 2, oar.to_tensor(local), oar.to_tensor(everywhere), group)
    np.testing.assert_array_equal(back.numpy(), 2 * x.numpy())
    weights = oar.to_tensor(np.arange(x.numel().item(), dtype="float64").reshape(x.shape))
    (back * weights).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * weights.numpy())


def batch_norms() -> None:
    """SyncBatchNorm over batches of different sizes, against one batch norm over all rows."""
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    random = np.random.default_rng(2)
    ends = np.cumsum([2 + r for r in range(size)])
    for shape, form in (((ends[-1], 3, 4, 2), "NCHW"), ((ends[-1], 4, 2, 3), "NHWC")):
        x, weights = random.normal(2.0, 3.0, shape), random.normal(size=shape)
        layer, whole = nn.SyncBatchNorm(3, data_format=form), nn.BatchNorm2D(3, data_format=form)
        for norm in (layer, whole):
            norm.to(dtype="float64")
            norm.weight.set_value(np.array([1.0, 2.0, 0.5]))
        here = slice(ends[rank] - 2 - rank, ends[rank])
        everything, mine = (oar.to_tensor(part, stop_gradient=False) for part in (x, x[here]))
        for _ in range(2):
            out, wanted = layer(mine), whole(everything)
        np.testing.assert_allclose(out.numpy(), wanted.numpy()[here], rtol=1e-12, atol=1e-12)
        (out * oar.to_tensor(weights[here])).sum().backward()
        (wanted * oar.to_tensor(weights)).sum().backward()
        np.testing.assert_allclose(mine.grad.numpy(), everything.grad.numpy()[here], rtol=1e-10, atol=1e-12)
        for mine_, all_ in zip(layer.parameters(), whole.parameters(), strict=True):
            if mine_.stop_gradient:  # the running statistics
                np.testing.assert_allclose(mine_.numpy(), all_.numpy(), rtol=1e-12)
            else:
                dist.all_reduce(mine_.grad)
                np.testing.assert_allclose(mine_.grad.numpy(), all_.grad.numpy(), rtol=1e-11)
        layer.eval()
        whole.eval()
        np.testing.assert_allclose(layer(mine).numpy(), whole(everything).numpy()[here], rtol=1e-12, atol=1e-12)


def experts_and_norms() -> None:
    batch_norms()
    experts()
