"""A training that test_elastic.py starts on machines that come and go. It continues from its newest checkpoint."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import oar
from oar import distributed as dist
from oar.checkpoint import CheckpointManager

folder, steps, pace = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
oar.seed(3)
net = oar.nn.Linear(4, 1)
optimizer = oar.optimizer.Adam(0.01, parameters=net.parameters())
manager = CheckpointManager(str(folder / "checkpoints"), max_to_keep=2, model=net, optimizer=optimizer)
found = manager.restore(fallback=True)
begin = found.step if found else 0
with open(folder / "rounds", "a") as file:
    file.write(f"{rank} of {size} from {begin}\n")
for step in range(begin, steps):
    # All machines together see the same numbers, however many they are.
    numbers = oar.sin(oar.arange(48, dtype="float32").reshape([12, 4]) * (step + 1))
    loss = (net(numbers[rank::size]) ** 2).sum() / 12
    loss.backward()
    for p in net.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    optimizer.clear_grad()
    if rank == 0:
        manager.save(step + 1)
    dist.barrier()
    (folder / f"step.{rank}").write_text(str(step + 1))
    if os.environ.get("FAILS_AT") in (str(step), "any") and rank == size - 1:
        os._exit(9)
    time.sleep(pace)
if rank == 0:
    oar.save(net.state_dict(), str(folder / "result.pdparams"))
