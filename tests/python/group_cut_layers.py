"""What the processes of test_hybrid_parallel.py do with single layers that are cut: their forms, errors, random numbers and scalers."""

from __future__ import annotations

from typing import Any

import group_gpt as gpt
import numpy as np
import pytest
from group_hybrid import captured_step, rows_of, start

import oar
from oar import distributed as dist
from oar import nn
from oar.distributed import fleet
from oar.distributed.fleet import meta_parallel
from oar.distributed.fleet.layers.mpu import random
from oar.distributed.fleet.meta_optimizers import HybridParallelGradScaler
from oar.incubate.distributed.fleet import recompute_hybrid


def details() -> None:
    groups = start(mp_degree=2)
    group = groups.get_model_parallel_group()
    cut_layers(group)
    lookups(group)
    parallel_losses(group)
    random_streams(group)
    recomputed()
    scalers(groups)
    accumulated_sequences(group)
    gradients_of_parts(group)
    captured_step(gpt.Tensors)
    static_split(group)


def cut_layers(group: dist.communication.group.Group) -> None:
    """The forms that the GPT does not use: gathered outputs, whole inputs, weights drawn apart, inputs from the first process."""
    column, row = meta_parallel.ColumnParallelLinear(6, 4, has_bias=True), meta_parallel.RowParallelLinear(4, 6)
    assert column.weight.shape == [6, 2] and column.weight.is_distributed and column.weight.split_axis == 1
    assert row.weight.split_axis == 0 and not getattr(row.bias, "is_distributed", False)
    parts: list[oar.Tensor] = []
    dist.all_gather(parts, column.weight, group)
    assert not np.allclose(parts[0].numpy(), parts[1].numpy())  # the pieces begin with different numbers
    whole = oar.concat(parts, axis=1)
    whole.stop_gradient = False
    x = oar.randn([3, 6])
    dist.broadcast(x, group.ranks[0], group)
    x.stop_gradient = False
    out = row(column(x))
    rows: list[oar.Tensor] = []
    dist.all_gather(rows, row.weight, group)
    twin = x.detach()
    twin.stop_gradient = False
    wanted = twin @ whole @ oar.concat(rows)
    np.testing.assert_allclose(out.numpy(), wanted.numpy(), rtol=2e-5, atol=1e-6)
    out.square().sum().backward()
    wanted.square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), twin.grad.numpy(), rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(column.weight.grad.numpy(), np.split(whole.grad.numpy(), 2, 1)[group.rank], rtol=2e-5, atol=1e-5)
    for make, text in ((lambda: meta_parallel.ColumnParallelLinear(6, 5), r"out_features is 5, which 2 processes cannot divide"),
                       (lambda: meta_parallel.RowParallelLinear(5, 6), r"in_features is 5"),
                       (lambda: meta_parallel.VocabParallelEmbedding(7, 6), r"num_embeddings is 7")):  # fmt: skip
        with pytest.raises(AssertionError, match=text):
            make()
    with pytest.raises(ValueError, match=r"\[_c_split\] axis 1 .* \[3, 5\] cannot be cut into 2 equal parts"):
        gpt.mp_ops._c_split(oar.ones([3, 5]), group)
    model = fleet.distributed_model(nn.Linear(2, 2))
    given = oar.full([1, 2], float(group.rank + 1))
    model(given)
    assert given.tolist() == [[1.0, 1.0]]  # what the first process has passed


def lookups(group: dist.communication.group.Group) -> None:
    table = oar.arange(6, dtype="float32").reshape([3, 2])
    ids = oar.to_tensor([0, 2, 3, 5])
    own = gpt.mp_ops._c_lookup_table(table, ids, 3 * group.rank, 6)
    kept = slice(2 * group.rank, 2 * group.rank + 2)
    assert own[kept].tolist() == [[0, 1], [4, 5]] and float(own.abs().sum()) == 10
    bad = oar.to_tensor([-1]) if group.rank == 0 else oar.to_tensor([6])
    with pytest.raises((ValueError, IndexError), match="embedding"):
        gpt.mp_ops._c_lookup_table(table, bad, 3 * group.rank, 6)


def parallel_losses(group: dist.communication.group.Group) -> None:
    numbers = np.random.default_rng(1)
    logits, labels = numbers.normal(0.0, 30.0, (2, 3, 8)), np.array([[0, 7, -100], [3, 4, 5]])
    loss_of = meta_parallel.ParallelCrossEntropy()
    whole = oar.to_tensor(logits, stop_gradient=False)
    piece = rows_of(logits, group, 2)
    piece.stop_gradient = False
    weights = oar.to_tensor(numbers.normal(size=(2, 3, 1)))
    wanted = nn.functional.softmax_with_cross_entropy(whole, oar.to_tensor(labels).unsqueeze(-1))
    losses = loss_of(piece, oar.to_tensor(labels))
    np.testing.assert_allclose(losses.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-13)
    (losses * weights).sum().backward()
    (wanted * weights).sum().backward()
    np.testing.assert_allclose(piece.grad.numpy(), np.split(whole.grad.numpy(), 2, 2)[group.rank], rtol=1e-11, atol=1e-14)
    _, softmax = gpt.mp_ops._c_softmax_with_cross_entropy(piece, oar.to_tensor(labels), group, return_softmax=True)
    np.testing.assert_allclose(softmax.numpy(), np.split(nn.functional.softmax(whole).numpy(), 2, 2)[group.rank], rtol=1e-12)
    half = loss_of(piece.astype("bfloat16"), oar.to_tensor(labels))
    assert half.dtype == oar.bfloat16
    bad = oar.to_tensor([[-3]]) if group.rank == 0 else oar.to_tensor([[8]])
    with pytest.raises((ValueError, IndexError), match="take_along_axis"):
        gpt.mp_ops._of_label(oar.ones([1, 4]), bad, bad == -100, group)


def random_streams(group: dist.communication.group.Group) -> None:
    """Dropout differs among the processes inside of the stream, and is the same outside; what is drawn inside moves nothing outside."""
    meta_parallel.model_parallel_random_seed(21)
    tracker, x = meta_parallel.get_rng_state_tracker(), oar.ones([64])
    draws = []
    for _ in range(2):
        outside = nn.functional.dropout(x, 0.5)
        with tracker.rng_state():
            inside = nn.functional.dropout(x, 0.5)
        draws.append((outside, inside))
    inside = random.dropout(x, 0.5, rng_name="model_parallel_rng")
    draws.append((nn.functional.dropout(x, 0.5), inside))
    for outside, inside in draws:
        for mask, differ in ((outside, False), (inside, True)):
            parts: list[oar.Tensor] = []
            dist.all_gather(parts, mask, group)
            assert np.array_equal(parts[0].numpy(), parts[1].numpy()) != differ
    assert not np.array_equal(draws[0][1].numpy(), draws[1][1].numpy())
    meta_parallel.model_parallel_random_seed()  # drawn by the first process
    parts = []
    dist.all_gather(parts, oar.rand([4]), group)
    assert parts[0].tolist() == parts[1].tolist()


def recomputed() -> None:
    """Blocks of cut layers that run again for the derivative, with dropout in the stream: gradients are the same to the bit."""
    column = meta_parallel.ColumnParallelLinear(6, 8, has_bias=True, gather_output=False)
    row = meta_parallel.RowParallelLinear(8, 6, input_is_parallel=True)
    tracker = meta_parallel.get_rng_state_tracker()
    found = []
    group = fleet.get_hybrid_communicate_group().get_model_parallel_group()

    def in_parts(function: Any, x: oar.Tensor) -> oar.Tensor:
        return recompute_hybrid({"mp_group": group, "partition": True}, function, x)

    for run in (lambda function, x: function(x), fleet.recompute.recompute, in_parts):
        meta_parallel.model_parallel_random_seed(5)
        x = oar.ones([4, 6])
        x.stop_gradient = False

        def block(x: oar.Tensor) -> oar.Tensor:
            with tracker.rng_state():
                return row(nn.functional.dropout(nn.functional.gelu(column(x)), 0.5))

        run(block, run(block, x)).square().sum().backward()
        found.append([t.grad.numpy() for t in (x, *column.parameters(), *row.parameters())])
        for parameter in (*column.parameters(), *row.parameters()):
            parameter.clear_gradient(False)
    for plain, *others in zip(*found):
        for again in others:
            np.testing.assert_array_equal(plain, again)


def scalers(groups: fleet.HybridCommunicateGroup) -> None:
    """An infinity in one process skips the step in all of them."""
    with pytest.raises(NotImplementedError, match="ClipGradByNorm would take the norm of a piece"):
        fleet.distributed_optimizer(oar.optimizer.SGD(1.0, nn.Linear(2, 1).parameters(), grad_clip=nn.ClipGradByNorm(1.0)))
    for make in (fleet.distributed_scaler, lambda scaler: HybridParallelGradScaler(scaler, groups)):
        net = nn.Linear(2, 1)
        optimizer = fleet.distributed_optimizer(oar.optimizer.SGD(1.0, parameters=net.parameters()))
        scaler = make(oar.amp.GradScaler(init_loss_scaling=8.0))
        before = net.weight.numpy()
        for value, moves in (("inf", False), ("1", True)):
            factor = float(value) if groups.get_model_parallel_rank() == 1 else 1.0
            scaler.scale((net(oar.ones([1, 2])) * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
            assert (net.weight.numpy() != before).all() == moves
        assert scaler.scale(oar.to_tensor(1.0)).item() == 4.0


def accumulated_sequences(group: dist.communication.group.Group) -> None:
    """Gradients of marked parameters are added up over the processes in the last of several passes."""
    net = nn.Linear(1, 1)
    gpt.sequences.mark_as_sequence_parallel_parameter(net.weight)
    gpt.sequences.register_sequence_parallel_allreduce_hooks(net, accumulation_steps=2)
    for number in (1, 2):
        (net(oar.full([1, 1], 1.0)) * (10 * number + group.rank)).sum().backward()
        assert net.weight.grad.item() == {1: 10 + group.rank, 2: 10 + 11 + 20 + 21}[number]
    assert net.bias.grad.item() == 30 + 2 * group.rank


def gradients_of_parts(group: dist.communication.group.Group) -> None:
    """The pairs of ops that cut and join, against differences of the loss that all processes compute; second derivatives, too."""
    random = np.random.default_rng(8)
    weights = oar.to_tensor(random.normal(size=(4, 6)))

    def loss_of(values: np.ndarray, axis: int) -> tuple[oar.Tensor, oar.Tensor]:
        x = oar.to_tensor(values, stop_gradient=False)
        part = gpt.mp_ops.own_part(x, axis, group) ** 3
        return (gpt.mp_ops.joined(part, axis, group, shared=True) * weights).sum(), x

    for axis in (0, 1, -1):
        values = random.normal(size=(4, 6))
        loss, x = loss_of(values, axis)
        (first,) = oar.grad([loss], [x], create_graph=True)
        np.testing.assert_allclose(first.numpy(), 3 * values**2 * weights.numpy(), rtol=1e-12)
        (second,) = oar.grad([first.sum()], [x])
        np.testing.assert_allclose(second.numpy(), 6 * values * weights.numpy(), rtol=1e-12)
        shifted = values.copy()
        shifted[1, 2] += 1e-6
        slope = (loss_of(shifted, axis)[0] - loss).item() / 1e-6
        np.testing.assert_allclose(first[1, 2].item(), slope, rtol=1e-4, atol=1e-6)


def static_split(group: dist.communication.group.Group) -> None:
    oar.enable_static()
    main, startup = oar.static.Program(), oar.static.Program()
    with oar.static.program_guard(main, startup):
        ids = oar.static.data("ids", [2, 3], "int64")
        hidden = dist.split(ids, (8, 6), "embedding", num_partitions=2)
        hidden = dist.split(hidden, (6, 4), "linear", axis=1, num_partitions=2, bias_attr=False)
        out = dist.split(hidden, (4, 5), "linear", axis=0, num_partitions=2)
        with pytest.raises(AssertionError, match="num_partitions is 3, but there are 2 processes"):
            dist.split(ids, (9, 6), "embedding", num_partitions=3)
    run = oar.static.Executor()
    run.run(startup)
    (found,) = run.run(main, feed={"ids": np.array([[0, 1, 2], [5, 6, 7]])}, fetch_list=[out])
    oar.disable_static()
    parts: list[oar.Tensor] = []
    dist.all_gather(parts, oar.to_tensor(found), group)
    assert parts[0].shape == [2, 3, 5] and np.array_equal(parts[0].numpy(), parts[1].numpy())
    with pytest.raises(ValueError, match="outside of static programs"):
        dist.split(oar.ones([2, 3]), (3, 4), "linear")
