"""Callbacks that write results for the dashboard and to Weights & Biases."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

from oar.distributed.environment import ParallelEnv
from oar.hapi._callback import Callback
from oar.utils.helpers import try_import

__all__ = ["VisualDL", "WandbCallback"]


class _Tracker(Callback):
    """Passes results on: those of training by step, those of evaluations by epoch."""

    epoch = 0
    train_step = 0
    _in_fit = False

    def _is_write(self) -> bool:
        return ParallelEnv().local_rank == 0

    def _write(self, mode: str, step: int, values: dict[str, Any]) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def _updates(self, logs: dict | None, mode: str, metrics: list[str]) -> None:
        values = {}
        for name in metrics:
            value = (logs or {}).get(name)
            if isinstance(value, (list, tuple)):
                value = value[0]
            if isinstance(value, numbers.Number):
                values[f"{mode}/{name}"] = value
        self._write(mode, self.train_step if mode == "train" else self.epoch, values)

    def on_train_begin(self, logs: dict | None = None) -> None:
        self.epochs = self.params["epochs"]
        self.train_metrics = self.params["metrics"]
        self.train_step = 0
        self._in_fit = True

    def on_epoch_begin(self, epoch: int | None = None, logs: dict | None = None) -> None:
        self.steps = self.params["steps"]
        self.epoch = epoch or 0

    def on_train_batch_end(self, step: int, logs: dict | None = None) -> None:
        self.train_step += 1
        if self._is_write():
            self._updates(logs, "train", self.train_metrics)

    def on_train_end(self, logs: dict | None = None) -> None:
        self._in_fit = False
        if self._is_write():
            self._close()

    def on_eval_begin(self, logs: dict | None = None) -> None:
        self.eval_steps = (logs or {}).get("steps")
        self.eval_metrics = (logs or {}).get("metrics", [])

    def on_eval_end(self, logs: dict | None = None) -> None:
        if self._is_write():
            self._updates(logs, "eval", self.eval_metrics)
            if not self._in_fit:
                self._close()


class VisualDL(_Tracker):
    """Writes the loss and the metrics with ``oar.board.LogWriter``; ``oar board log_dir`` shows them. TensorBoard reads these
    files, too.

    Args:
        log_dir: the folder of the logs.

    Examples:
        >>> import oar
        >>> oar.callbacks.VisualDL('visualdl_logs').log_dir
        'visualdl_logs'
    """

    def __init__(self, log_dir: str) -> None:
        super().__init__()
        self.log_dir = log_dir
        self.writer: Any = None

    def _write(self, mode: str, step: int, values: dict[str, Any]) -> None:
        if self.writer is None:
            from oar.board import LogWriter

            self.writer = LogWriter(self.log_dir)
        for tag, value in values.items():
            self.writer.add_scalar(tag=tag, step=step, value=value)

    def _close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class WandbCallback(_Tracker):
    """Writes the loss and the metrics to Weights & Biases; its package ``wandb`` must be installed.

    Args:
        project: the name of the project.
        entity: the user or team that the run belongs to.
        name: the name of the run.
        dir: the folder for its files.
        mode: ``'online'``, ``'offline'`` or ``'disabled'``.
        job_type: the kind of run, for grouping.
        kwargs: further arguments of ``wandb.init``.

    Examples:
        >>> import oar
        >>> oar.callbacks.WandbCallback(project='digits')  # doctest: +SKIP
    """

    def __init__(self, project: str | None = None, entity: str | None = None, name: str | None = None,
                 dir: str | None = None, mode: str | None = None, job_type: str | None = None, **kwargs: Any) -> None:
        super().__init__()
        self.wandb = try_import("wandb", "WandbCallback needs the package wandb; install it with `pip install wandb`")
        self.wandb_args = {"project": project, "name": name, "entity": entity, "dir": dir, "mode": mode,
                           "job_type": job_type, **kwargs}
        self._run: Any = None
        _ = self.run

    @property
    def run(self) -> Any:
        """The run that results go to; one that is in progress already is used."""
        if self._run is None and self._is_write():
            if self.wandb.run is not None:
                warnings.warn("[WandbCallback] results go to the wandb run that is in progress; call wandb.finish() before "
                              "to start another one.", stacklevel=3)
                self._run = self.wandb.run
            else:
                self._run = self.wandb.init(**self.wandb_args)
        return self._run

    def on_train_begin(self, logs: dict | None = None) -> None:
        super().on_train_begin(logs)
        if self._is_write():
            self.run.define_metric("train/step")
            self.run.define_metric("train/*", step_metric="train/step")
            self.run.define_metric("epoch")
            self.run.define_metric("eval/*", step_metric="epoch")

    def _write(self, mode: str, step: int, values: dict[str, Any]) -> None:
        self.run.log({"train/step" if mode == "train" else "epoch": step, **values})

    def _close(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None
