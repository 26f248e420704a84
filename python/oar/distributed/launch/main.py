"""Runs a script as the processes of a training: today one."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

__all__ = ["launch"]

_COUNTS = ("--nnodes", "--nproc_per_node")
_DEVICES = ("--devices", "--gpus", "--xpus", "--npus", "--ips")
_IGNORED = (
    "--master", "--legacy", "--rank", "--log_level", "--log_dir", "--log_overwrite", "--run_mode", "--job_id", "--host",
    "--max_restart", "--elastic_level", "--elastic_timeout", "--start_port", "--auto_parallel_config", "--auto_tuner_json",
    "--sort_ip", "--auto_cluster_config",
)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("launch", description="Runs a script as the only process of a training.", allow_abbrev=False)
    for name in _COUNTS:
        parser.add_argument(name, default=None, help="how many; 1")
    for name in _DEVICES:
        parser.add_argument(name, default=None, help="a list with one element")
    for name in _IGNORED:
        parser.add_argument(name, default=None, help="accepted for compatibility")
    parser.add_argument("training_script", help="the script, or a module if it has no .py")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _check_alone(options: argparse.Namespace) -> None:
    asked = {name: getattr(options, name.removeprefix("--")) for name in (*_COUNTS, *_DEVICES)}
    for name, value in asked.items():
        count = 1 if not value else int(value.split(":")[0]) if name in _COUNTS else len(value.split(","))
        if count > 1:
            raise NotImplementedError(f"[launch] {name} {value} means {count} processes; Oar has one. hint: ask for one.")


def launch() -> None:
    """Runs the script of the command line as the only process of a training. The command is
    ``python -m oar.distributed.launch script.py arguments ...``; it takes Paddle's options.

    Examples:
        >>> import sys
        >>> import oar
        >>> sys.argv = ["launch", "--nproc_per_node", "2", "train.py"]
        >>> oar.distributed.launch()
        Traceback (most recent call last):
        ...
        NotImplementedError: [launch] --nproc_per_node 2 means 2 processes; Oar has one. hint: ask for one.
    """
    options = _parser().parse_args()
    _check_alone(options)
    os.environ.setdefault("PADDLE_TRAINER_ID", "0")
    os.environ.setdefault("PADDLE_TRAINERS_NUM", "1")
    script = options.training_script
    sys.argv = [script, *options.training_script_args]
    if script.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        runpy.run_path(script, run_name="__main__")
    else:
        runpy.run_module(script, run_name="__main__", alter_sys=True)
