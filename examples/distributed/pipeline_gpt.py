"""Trains a small GPT whose layers stand in different processes:

    python -m oar.distributed.launch --nproc_per_node 4 examples/distributed/pipeline_gpt.py

It learns to write text, character by character: this file, or the one that --text names. All processes together are the stages of one
pipeline; with --dp 2 there are two pipelines, and each gets half of a batch. The losses are the same in each case. With --checkpoint the
weights are saved, and the next run goes on from them, with any number of processes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import oar
from oar import nn
from oar.distributed import fleet
from oar.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, SharedLayerDesc


class Embedding(nn.Layer):
    """The first layer. The last one uses its table again."""

    def __init__(self, characters: int, width: int, length: int) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(characters, width), nn.Embedding(length, width)

    def forward(self, text: oar.Tensor) -> oar.Tensor:
        return self.table(text) + self.places(oar.arange(text.shape[1]))


class Block(nn.Layer):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        rows, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape([rows, length, 3, self.heads, width // self.heads]).unbind(2)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).reshape([rows, length, width]))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def scores(embedding: Embedding, x: oar.Tensor) -> oar.Tensor:
    return oar.matmul(x, embedding.table.weight, transpose_y=True)


def loss(given: oar.Tensor, labels: oar.Tensor) -> oar.Tensor:
    return nn.functional.cross_entropy(given.reshape([-1, given.shape[-1]]), labels.reshape([-1]))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=__file__, help="the file to learn")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--length", type=int, default=64, help="characters of a row")
    parser.add_argument("--batch", type=int, default=32, help="rows in all pipelines together")
    parser.add_argument("--micro-batches", type=int, default=8, help="parts of a batch in a pipeline")
    parser.add_argument("--schedule", default="1F1B", choices=["1F1B", "F-then-B", "ZBH1", "ZBVPP"])
    parser.add_argument("--chunks", type=int, default=1, help="pieces of the network in each process (interleaved schedule)")
    parser.add_argument("--recompute", type=int, default=0, help="so many layers at a time keep their input alone")
    parser.add_argument("--dp", type=int, default=1, help="pipelines")
    parser.add_argument("--checkpoint", help="a folder: weights are saved there every 20 steps, and loaded at the start")
    return parser.parse_args()


def main() -> None:
    given = options()
    count = oar.distributed.get_world_size()
    rows = given.batch // given.dp
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": given.dp, "pp_degree": count // given.dp}
    strategy.pipeline_configs = {"accumulate_steps": given.micro_batches, "micro_batch_size": rows // given.micro_batches,
                                 "schedule_mode": given.schedule}
    fleet.init(is_collective=True, strategy=strategy)
    groups = fleet.get_hybrid_communicate_group()

    text = np.frombuffer(Path(given.text).read_bytes(), np.uint8).astype("int64")
    embedding = ("embedding", Embedding), (256, given.width, given.length)
    oar.seed(0)
    net = PipelineLayer(
        [SharedLayerDesc(*embedding[0], None, "table.weight", *embedding[1]),
         *[LayerDesc(Block, given.width, 4) for _ in range(given.blocks)],
         LayerDesc(nn.LayerNorm, given.width),
         SharedLayerDesc(*embedding[0], scores, "table.weight", *embedding[1])],
        loss_fn=loss, topology=groups.topology(), seg_method="uniform", recompute_interval=given.recompute,
        num_virtual_pipeline_stages=given.chunks)
    model = fleet.meta_parallel.PipelineParallel(net, groups, strategy)
    rate = oar.optimizer.lr.CosineAnnealingDecay(3e-3, given.steps)
    optimizer = fleet.distributed_optimizer(
        oar.optimizer.AdamW(rate, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0)))

    state = {"net": net.state_dict(), "step": 0}
    if given.checkpoint and any(Path(given.checkpoint).glob("*.metadata")):
        oar.distributed.load_state_dict(state, given.checkpoint)
        rate.step(state["step"])
    if groups.get_global_rank() == 0:
        print(f"{count // given.dp} stages, {sum(p.size for p in net.parameters()):,} parameters in the first, idle "
              f"{model.schedule.idle:.0%} of the time by the schedule", flush=True)

    first = groups.get_data_parallel_rank() * rows
    for step in range(state["step"], given.steps):
        begins = np.random.default_rng(step).integers(0, len(text) - given.length, given.batch)[first : first + rows]
        batch = oar.to_tensor(np.stack([text[begin : begin + given.length + 1] for begin in begins]))
        value = model.train_batch((batch[:, :-1], batch[:, 1:]), optimizer, rate)
        oar.distributed.all_reduce(value, oar.distributed.ReduceOp.AVG)
        if groups.get_global_rank() == 0 and (step + 1) % 10 == 0:
            print(f"step {step + 1}: loss {value.item():.4f}", flush=True)
        if given.checkpoint and (step + 1) % 20 == 0:
            state["step"] = step + 1
            oar.distributed.save_state_dict(state, given.checkpoint, async_save=True, keep=2)
    oar.clear_async_save_task_queue()


if __name__ == "__main__":
    main()
