"""Callbacks: their base class, how a model calls them, and those that a model adds itself."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from oar.distributed.environment import ParallelEnv
from oar.hapi._callback import Callback
from oar.hapi._plateau import EarlyStopping, ReduceLROnPlateau
from oar.hapi._trackers import VisualDL, WandbCallback
from oar.hapi.progressbar import ProgressBar

if TYPE_CHECKING:
    from oar.hapi.model import Model

__all__ = ["Callback", "CallbackList", "EarlyStopping", "LRScheduler", "ModelCheckpoint", "ProgBarLogger",
           "ReduceLROnPlateau", "VisualDL", "WandbCallback", "config_callbacks"]  # fmt: skip


class _Meter:
    """Counts of one pass: steps and samples, and where the time since the last report went."""

    def __init__(self, metrics: Sequence[str], steps: int | None, verbose: int) -> None:
        self.metrics = metrics
        self.steps = steps
        self.bar = ProgressBar(num=steps, verbose=verbose)
        self.step = self.samples = 0
        self._clear()
        self._mark = time.time()

    def _clear(self) -> None:
        self._count = self._recent_samples = 0
        self._reading = self._running = 0.0

    def begin_batch(self) -> None:
        now = time.time()
        self._reading += now - self._mark
        self._mark = now

    def end_batch(self, samples: int) -> None:
        self.step += 1
        self.samples += samples
        self._count += 1
        self._recent_samples += samples
        now = time.time()
        self._running += now - self._mark
        self._mark = now

    def due(self, log_freq: int) -> bool:
        """Whether to print now; the last step is printed when the pass ends."""
        return self.step % log_freq == 0 and (self.steps is None or self.step < self.steps)

    def show(self, logs: dict, with_times: bool) -> None:
        values = [(name, logs[name]) for name in self.metrics if name in logs]
        if with_times:
            count, samples = self._count or 1, self._recent_samples or 1
            spent = self._reading + self._running or 1e-12
            values += [("avg_reader_cost", f"{self._reading / count:.5f} sec"),
                       ("avg_batch_cost", f"{self._running / count:.5f} sec"),
                       ("ips", f"{samples / spent:.5f} samples/sec")]
            self._clear()
        self.bar.update(self.step, values)


class ProgBarLogger(Callback):
    """Prints the loss and the metrics. ``Model`` adds one unless ``verbose`` is 0.

    Args:
        log_freq: the steps from one report to the next.
        verbose: 0 prints nothing, 1 a bar that is drawn again, 2 a line for each report, 3 times besides.

    Examples:
        >>> import oar
        >>> bar = oar.callbacks.ProgBarLogger(log_freq=5, verbose=1)
        >>> bar.log_freq
        5
    """

    def __init__(self, log_freq: int = 1, verbose: int = 2) -> None:
        super().__init__()
        self.epochs: int | None = None
        self.steps: int | None = None
        self.log_freq = log_freq
        self.verbose = verbose
        self._meter: _Meter

    def _is_print(self) -> bool:
        return bool(self.verbose) and ParallelEnv().local_rank == 0

    def _say(self, text: str) -> None:
        if self._is_print():
            print(text)

    def _begin(self, logs: dict | None, title: str) -> None:
        logs = logs or {}
        self._meter = _Meter(logs.get("metrics", []), logs.get("steps"), self.verbose)
        self._say(title)

    def _end_batch(self, logs: dict | None) -> None:
        logs = logs or {}
        self._meter.end_batch(logs.get("batch_size", 1))
        if self._is_print() and self._meter.due(self.log_freq):
            self._show(logs)

    def _show(self, logs: dict | None) -> None:
        self._meter.show(logs or {}, self.verbose == 3)

    def on_train_begin(self, logs: dict | None = None) -> None:
        self.epochs = self.params["epochs"]
        self.train_metrics = self.params["metrics"]
        self._say("The loss value printed in the log is the current step, and the metric is the average value of previous "
                  "steps.")

    def on_epoch_begin(self, epoch: int | None = None, logs: dict | None = None) -> None:
        self.steps = self.params["steps"]
        self.epoch = epoch
        self._begin({"metrics": self.train_metrics, "steps": self.steps}, f"Epoch {(epoch or 0) + 1}/{self.epochs}")

    def on_train_batch_begin(self, step: int, logs: dict | None = None) -> None:
        self._meter.begin_batch()

    def on_train_batch_end(self, step: int, logs: dict | None = None) -> None:
        self._end_batch(logs)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if self._is_print() and self.steps is not None:
            self._show(logs)

    def on_eval_begin(self, logs: dict | None = None) -> None:
        self._begin(logs, "Eval begin...")

    def on_eval_batch_begin(self, step: int, logs: dict | None = None) -> None:
        self._meter.begin_batch()

    def on_eval_batch_end(self, step: int, logs: dict | None = None) -> None:
        self._end_batch(logs)

    def on_eval_end(self, logs: dict | None = None) -> None:
        if self._is_print() and self._meter.steps is not None:
            self._show(logs)
            print(f"Eval samples: {self._meter.samples}")

    def on_predict_begin(self, logs: dict | None = None) -> None:
        self._begin(logs, "Predict begin...")

    def on_predict_batch_begin(self, step: int, logs: dict | None = None) -> None:
        self._meter.begin_batch()

    def on_predict_batch_end(self, step: int, logs: dict | None = None) -> None:
        self._end_batch(logs)

    def on_predict_end(self, logs: dict | None = None) -> None:
        if not self._is_print():
            return
        if self._meter.step % self.log_freq != 0 or self.verbose == 1:
            self._show(logs)
        print(f"Predict samples: {self._meter.samples}")


class ModelCheckpoint(Callback):
    """Saves parameters and the optimizer's state. ``Model.fit`` adds one, which saves if ``save_dir`` is given.

    Files are called ``<save_dir>/<epoch>`` and, at the end, ``<save_dir>/final``.

    Args:
        save_freq: the epochs from one checkpoint to the next.
        save_dir: the folder; None saves nothing.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> net = oar.nn.Linear(2, 1)
        >>> model = oar.Model(net)
        >>> model.prepare(oar.optimizer.Adam(0.1, parameters=net.parameters()), oar.nn.MSELoss())
        >>> data = oar.io.TensorDataset([oar.ones([4, 2]), oar.ones([4, 1])])
        >>> folder = tempfile.mkdtemp()
        >>> model.fit(data, verbose=0, callbacks=oar.callbacks.ModelCheckpoint(save_dir=folder))  # doctest: +ELLIPSIS
        save checkpoint at ...0
        save checkpoint at ...final
        >>> sorted(os.listdir(folder))
        ['0.pdopt', '0.pdparams', 'final.pdopt', 'final.pdparams']
    """

    def __init__(self, save_freq: int = 1, save_dir: str | None = None) -> None:
        super().__init__()
        self.save_freq = save_freq
        self.save_dir = save_dir

    def on_epoch_begin(self, epoch: int | None = None, logs: dict | None = None) -> None:
        self.epoch = epoch

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if epoch % self.save_freq == 0:
            self._save(str(epoch))

    def on_train_end(self, logs: dict | None = None) -> None:
        self._save("final")

    def _save(self, name: str) -> None:
        if self.model is not None and self.save_dir and ParallelEnv().local_rank == 0:
            path = f"{self.save_dir}/{name}"
            print(f"save checkpoint at {os.path.abspath(path)}")
            self.model.save(path)


class LRScheduler(Callback):
    """Steps the optimizer's learning rate scheduler. ``Model.fit`` adds one that does so after every batch.

    Args:
        by_step: step after every batch.
        by_epoch: step after every epoch; ``by_step`` must be False then.

    Examples:
        >>> import oar
        >>> net = oar.nn.Linear(2, 1)
        >>> rate = oar.optimizer.lr.StepDecay(0.1, step_size=1, gamma=0.5)
        >>> model = oar.Model(net)
        >>> model.prepare(oar.optimizer.SGD(rate, parameters=net.parameters()), oar.nn.MSELoss())
        >>> data = oar.io.TensorDataset([oar.ones([4, 2]), oar.ones([4, 1])])
        >>> by_epoch = oar.callbacks.LRScheduler(by_step=False, by_epoch=True)
        >>> model.fit(data, epochs=2, verbose=0, callbacks=by_epoch)
        >>> rate()
        0.025
    """

    def __init__(self, by_step: bool = True, by_epoch: bool = False) -> None:
        super().__init__()
        if by_step and by_epoch:
            raise ValueError("[LRScheduler] by_step and by_epoch exclude each other; pass by_step=False with by_epoch=True.")
        self.by_step = by_step
        self.by_epoch = by_epoch

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if self.by_epoch:
            self._step()

    def on_train_batch_end(self, step: int, logs: dict | None = None) -> None:
        if self.by_step:
            self._step()

    def _step(self) -> None:
        from oar.optimizer.lr import LRScheduler as Schedule

        rate = getattr(getattr(self.model, "_optimizer", None), "_learning_rate", None)
        if isinstance(rate, Schedule):
            rate.step()


class CallbackList:
    """Callbacks that are called one after the other.

    Examples:
        >>> from oar.hapi.callbacks import Callback, CallbackList
        >>> class Say(Callback):
        ...     def on_train_begin(self, logs=None):
        ...         print('training')
        ...
        >>> CallbackList([Say()]).on_begin('train')
        training
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks = list(callbacks)
        self.params: dict[str, Any] = {}
        self.model: Model | None = None

    def append(self, callback: Callback) -> None:
        """Adds one at the end."""
        self.callbacks.append(callback)

    def __iter__(self) -> Iterator[Callback]:
        return iter(self.callbacks)

    def set_params(self, params: dict[str, Any]) -> None:
        """Tells all of them the parameters of the run."""
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Model) -> None:
        """Tells all of them the model."""
        for callback in self.callbacks:
            callback.set_model(model)

    def _call(self, name: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, name)(*args)

    def on_begin(self, mode: str, logs: dict | None = None) -> None:
        """A run begins; ``mode`` is 'train', 'eval' or 'predict'."""
        self._call(f"on_{_checked(mode)}_begin", logs)

    def on_end(self, mode: str, logs: dict | None = None) -> None:
        """A run ended."""
        self._call(f"on_{_checked(mode)}_end", logs)

    def on_epoch_begin(self, epoch: int | None = None, logs: dict | None = None) -> None:
        """An epoch begins."""
        self._call("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch: int | None = None, logs: dict | None = None) -> None:
        """An epoch ended."""
        self._call("on_epoch_end", epoch, logs)

    def on_batch_begin(self, mode: str, step: int | None = None, logs: dict | None = None) -> None:
        """A batch begins."""
        self._call(f"on_{_checked(mode)}_batch_begin", step, logs)

    def on_batch_end(self, mode: str, step: int | None = None, logs: dict | None = None) -> None:
        """A batch ended."""
        self._call(f"on_{_checked(mode)}_batch_end", step, logs)


def _checked(mode: str) -> str:
    if mode not in ("train", "eval", "predict"):
        raise AssertionError(f"[CallbackList] mode should be 'train', 'eval' or 'predict', not {mode!r}.")
    return mode


def config_callbacks(
    callbacks: Any = None, model: Any = None, batch_size: int | None = None, epochs: int | None = None,
    steps: int | None = None, log_freq: int = 2, verbose: int = 2, save_freq: int = 1, save_dir: str | None = None,
    metrics: list[str] | None = None, mode: str = "train",
) -> CallbackList:
    """The callbacks of a run: those given, and of the usual ones (progress bar, checkpoints, learning rate) those that
    are not among them.

    Examples:
        >>> from oar.hapi.callbacks import config_callbacks
        >>> [type(callback).__name__ for callback in config_callbacks()]
        ['ProgBarLogger', 'ModelCheckpoint', 'LRScheduler']
    """
    listed = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks is not None else []
    for callback in listed:
        if not hasattr(callback, "set_params"):
            raise TypeError(f"[Model] callbacks should be objects of oar.callbacks.Callback, but received {callback!r}.")

    def lacks(kind: type[Callback]) -> bool:
        return not any(isinstance(callback, kind) for callback in listed)

    if verbose and lacks(ProgBarLogger):
        listed.insert(0, ProgBarLogger(log_freq, verbose=verbose))
    if lacks(ModelCheckpoint):
        listed.append(ModelCheckpoint(save_freq, save_dir))
    for callback in listed:
        if isinstance(callback, EarlyStopping):
            callback.save_dir = save_dir
    if lacks(LRScheduler):
        listed.append(LRScheduler())
    result = CallbackList(listed)
    result.set_model(model)
    result.set_params({"batch_size": batch_size, "epochs": epochs, "steps": steps, "verbose": verbose,
                       "metrics": [] if mode == "test" else metrics or []})
    return result
