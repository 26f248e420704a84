"""Runs a script as the processes of a training."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from oar.distributed import _launched

__all__ = ["launch"]

_DEVICES = ("--devices", "--gpus", "--xpus", "--npus")
_IGNORED = (
    "--legacy", "--log_level", "--elastic_level", "--auto_parallel_config", "--auto_tuner_json", "--sort_ip",
    "--auto_cluster_config",
)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("launch", description="Runs a script in several processes, on one machine or many.",
                                     allow_abbrev=False)
    add = parser.add_argument
    add("--nproc_per_node", "--nproc-per-node", type=int, default=None, help="processes on this machine; else as many as devices, or 1")
    add("--nnodes", default=None, help="machines: a number; 2:4 is a job that goes on while there are 2 to 4 of them")
    add("--elastic_timeout", type=float, default=10.0, help="seconds to wait for more machines, if their number is a range (10)")
    add("--node_rank", "--node-rank", "--rank", type=int, default=-1, help="the number of this machine; -1: in the order of arrival")
    add("--master", default=None,
        help="host:port where the machines meet, or file:///folder that all of them see; needed for several machines")
    add("--host", default=None, help="the address under which other machines reach this one")
    add("--ips", default=None, help="the addresses of the machines, separated by commas; the first one is the master")
    for name in _DEVICES:
        add(name, default=None, help="numbers of devices, separated by commas: one process for each")
    add("--log_dir", default="log", help="the folder for a log of each process")
    add("--log_overwrite", default="False", help="True: older logs are not kept")
    add("--job_id", default="default", help="a name, in the names of logs")
    add("--run_mode", default=None, help="collective, or ps: with servers of parameters; ps is meant where servers are named")
    add("--server_num", type=int, default=None, help="ps: servers of parameters on this machine")
    add("--worker_num", type=int, default=None, help="ps: workers on this machine")
    add("--trainer_num", type=int, default=None, help="another name of --worker_num")
    add("--servers", default=None, help="ps: host:port of all servers, separated by commas; those of --host are started here")
    add("--workers", default=None, help="ps: host:port of all workers, separated by commas")
    add("--trainers", default=None, help="another name of --workers")
    add("--max_restart", type=int, default=0, help="how often the processes are started again after a failure")
    add("--start_port", type=int, default=None, help="the first of the ports that PADDLE_TRAINER_ENDPOINTS names")
    add("--backend", default=None, choices=("gloo", "mpi"), help="the engine")
    for name in _IGNORED:
        add(name, default=None, help="accepted for compatibility")
    add("training_script", help="the script, or a module if it has no .py")
    add("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _check(options: argparse.Namespace) -> None:
    if options.run_mode not in ("collective", "ps", "rpc", None):
        raise ValueError(f"[launch] --run_mode is {options.run_mode}. hint: use collective, rpc (which is the same), or ps.")
    if (options.master or "").startswith("file://") and not (options.nnodes and ":" in options.nnodes):
        raise ValueError("[launch] a folder as --master is for a range of machines, such as --nnodes 2:4. hint: pass host:port.")


def _devices(options: argparse.Namespace) -> list[str]:
    given = next((getattr(options, n.removeprefix("--")) for n in _DEVICES if getattr(options, n.removeprefix("--"))), "")
    return [device for device in given.split(",") if device]


def _run_here(options: argparse.Namespace) -> None:
    """The script, as the only process."""
    os.environ.setdefault("PADDLE_TRAINER_ID", "0")
    os.environ.setdefault("PADDLE_TRAINERS_NUM", "1")
    script = options.training_script
    sys.argv = [script, *options.training_script_args]
    if script.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        runpy.run_path(script, run_name="__main__")
    else:
        runpy.run_module(script, run_name="__main__", alter_sys=True)


def launch() -> None:
    """Runs the script of the command line in several processes. The command is
    ``python -m oar.distributed.launch --nproc_per_node 2 script.py arguments ...`` or, with servers of parameters,
    ``python -m oar.distributed.launch --server_num 2 --worker_num 2 script.py arguments ...``; it takes Paddle's options. Under ``mpirun``
    and ``srun``, which start the processes themselves, it runs the script.

    Examples:
        >>> import sys
        >>> import oar
        >>> sys.argv = ["launch", "--run_mode", "heter", "train.py"]
        >>> oar.distributed.launch()
        Traceback (most recent call last):
        ...
        ValueError: [launch] --run_mode is heter. hint: use collective, rpc (which is the same), or ps.
    """
    from oar.distributed.launch import elastic, job, ps_job

    options = _parser().parse_args()
    _check(options)
    if options.run_mode == "ps" or options.server_num or options.servers:
        sys.exit(ps_job.run(options))
    devices = _devices(options)
    count = (len(devices) or 1) if options.nproc_per_node is None else options.nproc_per_node
    if count < 1:
        raise ValueError(f"[launch] --nproc_per_node is {count}; at least one process is needed.")
    addresses = [a for a in (options.ips or "").split(",") if a]
    span = elastic.range_of(options.nnodes)
    nodes = span[1] if span else int(options.nnodes or len(addresses) or 1)
    started = _launched.place().size > 1 and not os.environ.get("PADDLE_TRAINERS_NUM")
    if started or (count == 1 and nodes == 1 and options.max_restart == 0 and not span):
        return _run_here(options)
    if nodes > 1 and not options.master:
        if not addresses:
            raise ValueError(f"[launch] {nodes} machines need a place where they meet. hint: pass --master host:port, the same on all.")
        options.master = f"{addresses[0]}:{options.start_port or 6170}"
    sys.exit(elastic.run(options, count, *span, devices) if span else job.run(options, count, nodes, devices))
