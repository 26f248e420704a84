"""A small GPT that is written once for one process and for several: a kit has the layers that differ."""

from __future__ import annotations

from typing import Any

import numpy as np

import oar
from oar import distributed as dist
from oar import nn
from oar.distributed import fleet
from oar.distributed.fleet import meta_parallel
from oar.distributed.fleet.layers.mpu import mp_ops
from oar.distributed.fleet.utils import sequence_parallel_utils as sequences
from oar.nn import functional as F

VOCABULARY, WIDTH, HEADS, LENGTH, BATCH = 24, 16, 4, 8, 4


class Plain:
    """Everything in one process."""

    def words(self) -> nn.Layer:
        return nn.Embedding(VOCABULARY, WIDTH)

    def column(self, inputs: int, outputs: int, has_bias: bool = True) -> nn.Layer:
        return nn.Linear(inputs, outputs, bias_attr=None if has_bias else False)

    def row(self, inputs: int, outputs: int) -> nn.Layer:
        return nn.Linear(inputs, outputs)

    def norm(self) -> nn.Layer:
        return nn.LayerNorm(WIDTH)

    def enter(self, hidden: oar.Tensor) -> oar.Tensor:
        return hidden

    def leave(self, hidden: oar.Tensor) -> oar.Tensor:
        return hidden

    def attend(self, q: oar.Tensor, k: oar.Tensor, v: oar.Tensor) -> oar.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def losses(self, logits: oar.Tensor, labels: oar.Tensor) -> oar.Tensor:
        return F.cross_entropy(logits, labels, reduction="none").reshape([-1])

    def positions(self, length: int) -> oar.Tensor:
        return oar.arange(length)


class Tensors(Plain):
    """Weights cut along the axis of tensors."""

    def words(self) -> nn.Layer:
        return meta_parallel.VocabParallelEmbedding(VOCABULARY, WIDTH)

    def column(self, inputs: int, outputs: int, has_bias: bool = True) -> nn.Layer:
        return meta_parallel.ColumnParallelLinear(inputs, outputs, has_bias=has_bias, gather_output=False)

    def row(self, inputs: int, outputs: int) -> nn.Layer:
        return meta_parallel.RowParallelLinear(inputs, outputs, input_is_parallel=True)

    def leave(self, hidden: oar.Tensor) -> oar.Tensor:
        return mp_ops._c_identity(hidden, fleet.get_hybrid_communicate_group().get_model_parallel_group())

    def losses(self, logits: oar.Tensor, labels: oar.Tensor) -> oar.Tensor:
        return meta_parallel.ParallelCrossEntropy()(logits, labels).reshape([-1])


class Sequences(Tensors):
    """And between the cut layers sequences cut among the same processes."""

    def column(self, inputs: int, outputs: int, has_bias: bool = True) -> nn.Layer:
        return sequences.ColumnSequenceParallelLinear(inputs, outputs, has_bias=has_bias, gather_output=False)

    def row(self, inputs: int, outputs: int) -> nn.Layer:
        return sequences.RowSequenceParallelLinear(inputs, outputs, input_is_parallel=True)

    def norm(self) -> nn.Layer:
        layer = nn.LayerNorm(WIDTH)
        for parameter in layer.parameters():
            sequences.mark_as_sequence_parallel_parameter(parameter)
        return layer

    def enter(self, hidden: oar.Tensor) -> oar.Tensor:
        return sequences.ScatterOp.apply(hidden)

    def leave(self, hidden: oar.Tensor) -> oar.Tensor:
        return sequences.AllGatherOp.apply(hidden)


class Block(nn.Layer):
    def __init__(self, kit: Plain) -> None:
        super().__init__()
        self.kit = kit
        self.before, self.between = kit.norm(), kit.norm()
        self.qkv, self.out = kit.column(WIDTH, 3 * WIDTH, has_bias=False), kit.row(WIDTH, WIDTH)
        self.wide, self.narrow = kit.column(WIDTH, 4 * WIDTH), kit.row(4 * WIDTH, WIDTH)

    def forward(self, hidden: oar.Tensor) -> oar.Tensor:
        mixed = self.qkv(self.before(hidden))  # [length, batch, heads here * 3 * size]
        length, batch = mixed.shape[:2]
        parts = mixed.reshape([length, batch, -1, 3, WIDTH // HEADS]).transpose([3, 1, 0, 2, 4])
        seen = self.kit.attend(parts[0], parts[1], parts[2])  # [batch, length, heads here, size]
        hidden = hidden + self.out(seen.transpose([1, 0, 2, 3]).reshape([length, batch, -1]))
        return hidden + self.narrow(F.gelu(self.wide(self.between(hidden))))


class GPT(nn.Layer):
    """The losses of all words, given those before them."""

    def __init__(self, kit: Plain, blocks: int = 2) -> None:
        super().__init__()
        self.kit = kit
        self.words, self.places = kit.words(), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.LayerList([Block(kit) for _ in range(blocks)])
        self.last = kit.norm()

    def forward(self, ids: oar.Tensor, labels: oar.Tensor) -> oar.Tensor:
        ids, labels = ids.transpose([1, 0]), labels.transpose([1, 0])  # sequences along the first axis
        hidden = self.words(ids) + self.places(self.kit.positions(ids.shape[0])).unsqueeze(1)
        hidden = self.kit.enter(hidden)
        for block in self.blocks:
            hidden = block(hidden)
        logits = self.kit.leave(self.last(hidden)).matmul(self.words.weight, transpose_y=True)
        return self.kit.losses(logits, labels)


def batches(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    numbers = np.random.default_rng(5).integers(0, VOCABULARY, (count, BATCH, LENGTH + 1))
    return [(ids[:, :-1], ids[:, 1:]) for ids in numbers]


def own_piece(value: np.ndarray, parameter: oar.Tensor) -> np.ndarray:
    """The piece of a whole weight that a parameter of this process stands for."""
    if not getattr(parameter, "is_distributed", False):
        return value
    group = fleet.get_hybrid_communicate_group().get_model_parallel_group()
    return np.split(value, group.nranks, axis=parameter.split_axis)[group.rank]


def take_weights(net: nn.Layer, whole: nn.Layer) -> None:
    weights = {name: value.numpy() for name, value in whole.named_parameters()}
    for name, parameter in net.named_parameters():
        parameter.set_value(own_piece(weights[name], parameter))


def same_weights(net: nn.Layer, whole: nn.Layer, tolerance: float) -> None:
    weights = {name: value.numpy() for name, value in whole.named_parameters()}
    for name, parameter in net.named_parameters():
        wanted = own_piece(weights[name], parameter)
        error = np.abs(parameter.numpy() - wanted).max() / np.abs(weights[name]).max()
        assert error < tolerance, (name, error)


def tolerance_of(dtype: str) -> float:
    return {"float32": 1e-5, "float64": 1e-12}[dtype]


def trained_alone(steps: int, make_optimizer: Any, whole: nn.Layer) -> list[float]:
    optimizer = make_optimizer(whole.parameters())
    found = []
    for ids, labels in batches(steps):
        loss = whole(oar.to_tensor(ids), oar.to_tensor(labels)).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        found.append(loss.item())
    return found


def momentum(parameters: list[oar.Tensor]) -> Any:
    return oar.optimizer.Momentum(0.3, 0.9, parameters, weight_decay=0.01, grad_clip=nn.ClipGradByGlobalNorm(0.5))


def average_over(value: oar.Tensor, group: dist.communication.group.Group) -> float:
    total = value.detach().clone()
    dist.all_reduce(total, dist.ReduceOp.AVG, group)
    return total.item()
