"""Trains a small GPT on the letters of this repository's documentation, divided among processes in two ways at once:

    python -m oar.distributed.launch --nproc_per_node 4 examples/distributed/hybrid_gpt.py --mp 2

Two processes divide each layer (`--mp 2`), and two such pairs divide each batch. With `--sequence-parallel` each pair also divides the
sequences between its layers. The losses are those of one process, up to rounding:

    python examples/distributed/hybrid_gpt.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import oar
from oar import nn
from oar.distributed import ReduceOp, all_reduce, fleet
from oar.distributed.fleet.layers.mpu import mp_ops
from oar.distributed.fleet.meta_parallel import (
    ColumnParallelLinear,
    ParallelCrossEntropy,
    RowParallelLinear,
    VocabParallelEmbedding,
    get_rng_state_tracker,
)
from oar.distributed.fleet.utils.sequence_parallel_utils import (
    AllGatherOp,
    ColumnSequenceParallelLinear,
    RowSequenceParallelLinear,
    ScatterOp,
    mark_as_sequence_parallel_parameter,
    register_sequence_parallel_allreduce_hooks,
)
from oar.nn import functional as F


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mp", type=int, default=1, help="how many processes divide each layer; the others divide the batch")
    parser.add_argument("--sequence-parallel", action="store_true", help="divide sequences between the layers, too")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16, help="sequences in all processes together")
    parser.add_argument("--length", type=int, default=64, help="letters in a sequence")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.0)
    return parser.parse_args()


class Block(nn.Layer):
    """Attention and two linear layers. Between them each process has all of the hidden values, or with sequence parallelism a piece of
    the sequence; inside it has some heads and some columns."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        width = options.width
        column, row = ((ColumnSequenceParallelLinear, RowSequenceParallelLinear) if options.sequence_parallel
                       else (ColumnParallelLinear, RowParallelLinear))
        self.size, self.dropout = width // options.heads, options.dropout
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = column(width, 3 * width, has_bias=True, gather_output=False)
        self.out = row(width, width, input_is_parallel=True)
        self.wide = column(width, 4 * width, has_bias=True, gather_output=False)
        self.narrow = row(4 * width, width, input_is_parallel=True)

    def forward(self, hidden: oar.Tensor) -> oar.Tensor:
        mixed = self.qkv(self.before(hidden))  # [length, batch, 3 * size * heads of this process]
        length, batch = mixed.shape[:2]
        q, k, v = mixed.reshape([length, batch, -1, 3, self.size]).transpose([3, 1, 0, 2, 4]).unbind(0)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        with get_rng_state_tracker().rng_state("local"):  # each process has other heads, and drops other elements
            seen = F.dropout(seen, self.dropout, training=self.training)
        hidden = hidden + self.out(seen.transpose([1, 0, 2, 3]).reshape([length, batch, -1]))
        return hidden + self.narrow(F.gelu(self.wide(self.between(hidden))))


class GPT(nn.Layer):
    """The average loss of all letters, given those before them."""

    def __init__(self, options: argparse.Namespace, letters: int) -> None:
        super().__init__()
        self.divides_sequences = options.sequence_parallel
        self.group = fleet.get_hybrid_communicate_group().get_model_parallel_group()
        self.letters, self.places = VocabParallelEmbedding(letters, options.width), nn.Embedding(options.length, options.width)
        self.blocks = nn.LayerList([Block(options) for _ in range(options.layers)])
        self.last = nn.LayerNorm(options.width)
        self.losses = ParallelCrossEntropy()
        if self.divides_sequences:
            for layer in self.sublayers():
                if isinstance(layer, nn.LayerNorm):
                    for parameter in layer.parameters():
                        mark_as_sequence_parallel_parameter(parameter)

    def forward(self, ids: oar.Tensor, following: oar.Tensor) -> oar.Tensor:
        hidden = self.letters(ids.T) + self.places(oar.arange(ids.shape[1])).unsqueeze(1)  # [length, batch, width]
        if self.divides_sequences:
            hidden = ScatterOp.apply(hidden)
        for block in self.blocks:
            hidden = block(hidden)
        hidden = self.last(hidden)
        hidden = AllGatherOp.apply(hidden) if self.divides_sequences else mp_ops._c_identity(hidden, self.group)
        return self.losses(hidden.matmul(self.letters.weight, transpose_y=True), following.T).mean()


def documentation() -> tuple[np.ndarray, int]:
    """The text as numbers of letters, and how many letters there are: a multiple of 8, which processes can divide."""
    pages = sorted((Path(__file__).resolve().parents[2] / "docs").glob("*.md"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    known = sorted(set(text))
    numbers = np.searchsorted(np.array(known), np.array(list(text)))
    return numbers, -(-len(known) // 8) * 8


def start_alike(net: nn.Layer) -> None:
    """Gives the pieces of each weight the numbers that the whole weight would have in one process."""
    group = fleet.get_hybrid_communicate_group().get_model_parallel_group()
    random = np.random.default_rng(0)
    for parameter in net.parameters():
        shape, axis = list(parameter.shape), getattr(parameter, "split_axis", None)
        if axis is not None:
            shape[axis] *= group.nranks
        if len(shape) > 1:
            whole = random.normal(0.0, 0.02, shape).astype("float32")
            parameter.set_value(whole if axis is None else np.split(whole, group.nranks, axis)[group.rank])


def main() -> None:
    options = parsed()
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": -1, "mp_degree": options.mp}
    fleet.init(is_collective=True, strategy=strategy)
    groups = fleet.get_hybrid_communicate_group()
    copies = groups.get_data_parallel_group()
    get_rng_state_tracker().add("local", 1000 + fleet.worker_index())

    text, letters = documentation()
    net = GPT(options, letters)
    start_alike(net)
    if options.sequence_parallel:
        register_sequence_parallel_allreduce_hooks(net)
    model = fleet.distributed_model(net)
    optimizer = fleet.distributed_optimizer(
        oar.optimizer.AdamW(1e-3, parameters=net.parameters(), weight_decay=0.01, grad_clip=nn.ClipGradByGlobalNorm(1.0)))

    if fleet.is_first_worker():
        here = sum(parameter.numel().item() for parameter in net.parameters())
        print(f"{groups.nranks} processes: {copies.nranks} parts of a batch x {options.mp} pieces of a layer, {here:,} weights in each", flush=True)
    random = np.random.default_rng(1)
    for step in range(options.steps):
        begins = random.integers(0, len(text) - options.length - 1, options.batch)  # the same in all processes
        batch = text[begins[:, None] + np.arange(options.length + 1)]
        mine = oar.to_tensor(np.split(batch, copies.nranks)[copies.rank])
        loss = model(mine[:, :-1], mine[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if step % 10 == 0 or step == options.steps - 1:
            average = loss.detach()
            all_reduce(average, ReduceOp.AVG, copies)
            if fleet.is_first_worker():
                print(f"step {step}: loss {average.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
