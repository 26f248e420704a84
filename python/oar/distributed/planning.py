"""What the planner needs of this machine, and what a plan says of parameters."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar.distributed.auto_parallel.process_mesh import ProcessMesh
from oar.distributed.communication import all_gather, all_reduce, alltoall_single, irecv, isend, reduce_scatter
from oar.distributed.communication.group import barrier
from oar.distributed.environment import get_rank, get_world_size, init_parallel_env, is_initialized
from oar.distributed.placement import Placement, Replicate, Shard
from oar.distributed.spawn import spawn

__all__ = ["LoadedPlan", "calibrate", "load_plan"]

_SIZES = (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 24)  # bytes


def _seconds(call: Callable[[], object], repeat: int, together: bool) -> float:
    """The median time of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repeat):
        if together:
            barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _device(repeat: int) -> dict[str, float]:
    """What this process computes and moves in a second."""
    n = 768
    x, y = oar.randn([n, n]), oar.randn([n, n])
    product = _seconds(lambda: oar.matmul(x, y).numpy(), repeat, False)
    wide = oar.randn([1 << 22])
    moved = _seconds(lambda: (wide + 1.0).numpy(), repeat, False)
    small = oar.ones([1])
    launch = _seconds(lambda: small + 1.0, 50, False)
    flops = 2.0 * n**3 / product
    return {"flops": flops, "scalar_flops": (1 << 22) / moved, "bandwidth": 2.0 * 4 * (1 << 22) / moved, "launch": launch}


def _collectives(count: int) -> dict[str, Callable[[Any], Callable[[], object]]]:
    """By name: what makes a call for a tensor."""
    rank = get_rank()

    def gather(x: Any) -> Callable[[], object]:
        part = x[: x.shape[0] // count]
        return lambda: all_gather([], part)

    def scatter(x: Any) -> Callable[[], object]:
        part = oar.zeros([x.shape[0] // count])
        return lambda: reduce_scatter(part, list(x.split(count)))

    def exchange(x: Any) -> Callable[[], object]:
        out = oar.zeros_like(x)
        return lambda: alltoall_single(out, x)

    def send(x: Any) -> Callable[[], object]:
        def call() -> None:
            if rank > 1:
                return
            task = isend(x, 1) if rank == 0 else irecv(x, 0)
            if task is not None:
                task.wait()

        return call

    return {"all_reduce": lambda x: lambda: all_reduce(x), "all_gather": gather, "reduce_scatter": scatter,
            "all_to_all": exchange, "send": send}  # fmt: skip


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Latency and seconds per byte of the line through the smallest and the largest message."""
    (small, first), (large, last) = points[0], points[-1]
    slope = max((last - first) / (large - small), 1e-15)
    return max(first - slope * small, 1e-9), slope


def calibrate(output: str | None = None, sizes: Sequence[int] = _SIZES, repeat: int = 5) -> dict[str, Any]:
    """Measures what the processes of a job compute and send, as the planner's description of a machine.

    All processes call it, after ``init_parallel_env``. The command ``oar distributed calibrate`` starts processes for it.

    Args:
        output: a file for the description, as JSON; the first process writes it.
        sizes: how many bytes the measured messages have, ascending; at least two sizes.
        repeat: how often each is measured; the median counts.

    Returns:
        the description, as a dictionary; the same in all processes for what they measured together.

    Examples:
        >>> import oar
        >>> from oar.distributed.planning import calibrate
        >>> try:
        ...     calibrate()  # outside of a job
        ... except RuntimeError as error:
        ...     print(str(error).splitlines()[0])
        [calibrate] needs the processes of a job, at least 2, after init_parallel_env().
    """
    if not is_initialized() or get_world_size() < 2:
        raise RuntimeError(
            "[calibrate] needs the processes of a job, at least 2, after init_parallel_env().\n"
            "hint: Run `oar distributed calibrate --processes 2 --output machine.json`."
        )
    if len(sizes) < 2 or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
        raise ValueError(f"[calibrate] sizes are {list(sizes)}; at least two are needed, ascending.")
    count = get_world_size()
    machine: dict[str, Any] = {"name": f"{os.uname().nodename}, {count} processes", **_device(repeat)}
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    machine["memory"] = pages / count
    curves: list[dict[str, Any]] = []
    for name, make in _collectives(count).items():
        points = []
        for size in sizes:
            x = oar.ones([max(count, size // 4 // count * count)])
            taken = oar.to_tensor([_seconds(make(x), repeat, True)], dtype="float64")
            all_reduce(taken)
            points.append((float(x.shape[0] * 4), float(taken) / count))
        curves.append({"collective": name, "devices": 2 if name == "send" else count, "points": [list(p) for p in points]})
    latency, slope = _line(points)  # of the last one
    machine["links"] = [{"name": "host", "devices": max(count, 2), "latency": latency, "bandwidth": 1 / slope}]
    machine["curves"] = curves
    if output is not None and get_rank() == 0:
        _write(output, machine)
    return machine


def _write(path: str, machine: dict[str, Any]) -> None:
    """Replaces the file as a whole."""
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
        json.dump(machine, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)


class LoadedPlan:
    """A plan that ``oar plan --json`` wrote.

    Args:
        content: the JSON, as a dictionary.

    Examples:
        >>> from oar.distributed.planning import LoadedPlan
        >>> plan = LoadedPlan({"axes": [{"name": "data", "size": 2}], "states": {"w": [{"shard": 0}]}})
        >>> plan.placements
        {'w': [Shard(dim=0)]}
    """

    def __init__(self, content: dict[str, Any]) -> None:
        try:
            self.axes: dict[str, int] = {axis["name"]: axis["size"] for axis in content["axes"]}
            self.placements: dict[str, list[Placement]] = {
                name: [Shard(p["shard"]) if isinstance(p, dict) else Replicate() for p in places]
                for name, places in content["states"].items()
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"[load_plan] this is no plan: {error!r} is missing or of another kind.\n"
                             "hint: Write it with `oar plan step.oar --devices 4 --json > plan.json`.") from error  # fmt: skip
        self.choice: dict[str, Any] = content.get("plan", {})

    def mesh(self) -> ProcessMesh:
        """The processes of one stage of the pipeline, as a mesh with the plan's axes."""
        sizes = list(self.axes.values()) or [1]
        ids: Any = oar.arange(int(oar.to_tensor(sizes).prod())).reshape(sizes).tolist()
        return ProcessMesh(ids, dim_names=list(self.axes) or ["data"])


def load_plan(path: str) -> LoadedPlan:
    """Reads a plan: the axes of its mesh, and the placements of parameters and other states, one for each axis.

    Args:
        path: the file that ``oar plan --json`` wrote.

    Returns:
        an object with ``axes``, ``placements``, ``choice`` and ``mesh()``. ``shard_tensor(w, plan.mesh(), plan.placements[name])``
        applies it to a parameter.

    Examples:
        >>> import json, os, tempfile
        >>> from oar.distributed.planning import load_plan
        >>> path = os.path.join(tempfile.mkdtemp(), "plan.json")
        >>> with open(path, "w") as file:
        ...     json.dump({"axes": [{"name": "tensor", "size": 2}], "states": {"b": ["replicate"]}}, file)
        >>> load_plan(path).placements["b"]
        [Replicate()]
    """
    with open(path, encoding="utf-8") as file:
        try:
            content = json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"[load_plan] {path} is no JSON: {error}.\nhint: Write it with `oar plan ... --json > {path}`.") from error
    if not isinstance(content, dict):
        raise ValueError(f"[load_plan] {path} holds no plan.\nhint: Write it with `oar plan ... --json > {path}`.")
    return LoadedPlan(content)


def _measure(output: str, repeat: int) -> None:
    init_parallel_env()
    calibrate(output, repeat=repeat)


def _main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="oar distributed", description="Measures processes of this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("calibrate", help="measure collectives, and write a description of the machine for `oar plan`")
    measured.add_argument("--processes", type=int, default=2, help="how many processes take part")
    measured.add_argument("--output", default="machine.json", help="the file to write")
    measured.add_argument("--repeat", type=int, default=5, help="how often each call is measured")
    options = parser.parse_args(words)
    if options.processes < 2 or options.repeat < 1:
        parser.error("--processes must be at least 2 and --repeat at least 1")
    if not os.path.isdir(os.path.dirname(os.path.abspath(options.output))):
        parser.error(f"the folder of {options.output} does not exist")
    spawn(_measure, args=(options.output, options.repeat), nprocs=options.processes)
    print(f"Written to {options.output}")
    return 0


if __name__ == "__main__":
    # Processes that are started import this module by its own name.
    from oar.distributed import planning

    sys.exit(planning._main(sys.argv[1:]))
