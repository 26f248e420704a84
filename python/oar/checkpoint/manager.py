"""``CheckpointManager``: keeps the last checkpoints of a training run and resumes from them."""

from __future__ import annotations

import os
import re
import threading
import warnings
from typing import Any, NamedTuple

import oar
from oar._C import Tensor
from oar.checkpoint import _folder
from oar.checkpoint._folder import CheckpointError
from oar.framework._async_save import Task, copied
from oar.framework._misfits import Misfits, shape_of
from oar.framework.random_state import get_random_states, set_random_states
from oar.optimizer._state import OptimizerState

__all__ = ["Checkpoint", "CheckpointManager"]

_RESERVED = ("extra", "random_state")


class Checkpoint(NamedTuple):
    """What ``CheckpointManager.restore`` returns.

    Examples:
        >>> from oar.checkpoint import Checkpoint
        >>> Checkpoint(step=3, extra=None, path='run/step_3').step
        3
    """

    step: int
    extra: Any
    path: str


class CheckpointManager:
    """Writes checkpoints of a training run, keeps the last ones, and goes on from one of them as if nothing had happened.

    A checkpoint is a folder ``step_00000012`` with a file for each object, which ``oar.load`` and ``paddle.load`` read too:
    ``.pdparams`` for a layer, ``.pdopt`` for an optimizer, ``.pdstate`` for the others. It appears whole or not at all,
    also if the process is killed or the disk is full; then the checkpoints before it are unchanged. Checksums find damage when a
    checkpoint is restored.

    A restored run continues to the bit: besides the objects, the random numbers of Oar, NumPy and Python are restored, and a
    ``DataLoader`` continues with the batch that comes next.

    Args:
        directory: the folder of the checkpoints; it is created.
        max_to_keep: how many checkpoints are kept, those written last. None keeps all.
        keep_period: checkpoints whose step is a multiple of it are kept for ever.
        async_save: write in a thread. ``save`` copies what it saves and returns; an error of a write is raised by the next
            ``save``, ``wait_until_finished`` or ``close``.
        save_random_state: save the random numbers, too.
        objects: what is saved, by name: anything with ``state_dict`` and ``set_state_dict`` or ``load_state_dict``, such as layers,
            optimizers, schedulers that no optimizer has, scalers and data loaders.

    Examples:
        >>> import tempfile
        >>> import oar
        >>> net = oar.nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.Adam(0.1, parameters=net.parameters())
        >>> manager = oar.checkpoint.CheckpointManager(tempfile.mkdtemp(), max_to_keep=2, model=net, optimizer=optimizer)
        >>> for step in range(1, 5):
        ...     net(oar.ones([1, 2])).sum().backward()
        ...     optimizer.step()
        ...     optimizer.clear_grad()
        ...     manager.save(step, extra={'epoch': 0})
        ...
        >>> manager.all_steps()
        [3, 4]
        >>> checkpoint = manager.restore()
        >>> checkpoint.step, checkpoint.extra
        (4, {'epoch': 0})
    """

    def __init__(
        self, directory: Any, *, max_to_keep: int | None = 5, keep_period: int | None = None, async_save: bool = False,
        save_random_state: bool = True, **objects: Any,
    ) -> None:  # fmt: skip
        for name, value in (("max_to_keep", max_to_keep), ("keep_period", keep_period)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ValueError(f"[CheckpointManager] {name} should be a positive integer or None, but received {value!r}.")
        for name, value in objects.items():
            _check_object(name, value)
        self._root = os.path.abspath(os.fsdecode(directory))
        self._max_to_keep, self._keep_period = max_to_keep, keep_period
        self._async, self._with_random = async_save, save_random_state
        self._objects = objects
        self._task: Task | None = None
        self._writing = threading.Lock()
        os.makedirs(self._root, exist_ok=True)
        _folder.remove_leftovers(self._root)

    @property
    def directory(self) -> str:
        """The folder of the checkpoints."""
        return self._root

    # saving ------------------------------------------------------------------------------------

    def save(self, step: int, extra: Any = None) -> None:
        """Writes a checkpoint, and removes those that are not kept any more.

        When it returns, the checkpoint is on the disk (unless ``async_save``). A checkpoint of the same step is replaced.

        Args:
            step: its number.
            extra: anything else that ``oar.save`` takes: the number of the epoch, the best loss so far.
        """
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise ValueError(f"[CheckpointManager.save] step should be an integer from 0, but received {step!r}.")
        self.wait_until_finished()
        states = {_file_name(name, value): value.state_dict() for name, value in self._objects.items()}
        states["extra.pdstate"] = {"extra": extra}
        if self._with_random:
            states["random_state.pdstate"] = get_random_states()
        if self._async:
            self._task = Task(self._write, step, copied(states))
            self._task.start()
        else:
            self._write(step, states)

    def _write(self, step: int, states: dict[str, Any]) -> None:
        with self._writing:
            known = _folder.steps_in(self._root)
            serial = max((value for value in known.values() if value < 1 << 61), default=-1) + 1
            try:
                _folder.write_folder(self._root, step, serial, states)
            except OSError as error:
                there = f"those of steps {sorted(known)} are unchanged" if known else "there was none before"
                raise OSError(
                    error.errno, f"[CheckpointManager.save] the checkpoint of step {step} could not be written to '{self._root}': "
                    f"{error.strerror}. Of the checkpoints there, {there}. Free some space or choose another directory.",
                ) from error
            self._remove_old()

    def _remove_old(self) -> None:
        if self._max_to_keep is None:
            return
        steps = list(_folder.steps_in(self._root))
        for step in steps[: -self._max_to_keep]:
            if not self._keep_period or step % self._keep_period:
                _folder.remove_folder(self._root, step)

    def wait_until_finished(self) -> None:
        """Waits for the checkpoint that is being written. An error of the write is raised here."""
        task, self._task = self._task, None
        if task is not None:
            task.finish()

    close = wait_until_finished

    def __enter__(self) -> CheckpointManager:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # reading -----------------------------------------------------------------------------------

    def all_steps(self) -> list[int]:
        """The steps of the checkpoints, in the order in which they were written."""
        return list(_folder.steps_in(self._root))

    def latest_step(self) -> int | None:
        """The step of the checkpoint that was written last; None if there is none."""
        steps = self.all_steps()
        return steps[-1] if steps else None

    def restore(self, step: int | None = None, fallback: bool = False) -> Checkpoint | None:
        """Puts a checkpoint into the objects.

        All files are checked, and compared with the objects, before anything changes.

        Args:
            step: which one; None is the one that was written last.
            fallback: if that one is damaged, warn and take the one before it, instead of an error.

        Returns:
            the step, what was passed as ``extra``, and the path of the folder; None if there are no checkpoints and no step was
            requested.
        """
        self.wait_until_finished()
        steps = self.all_steps()
        if step is None and not steps:
            return None
        wanted = [step] if step is not None else steps[::-1] if fallback else steps[-1:]
        for position, one in enumerate(wanted):
            try:
                states = _folder.read_files(self._root, one, self._file_names())
                break
            except CheckpointError as error:
                if position == len(wanted) - 1:
                    raise CheckpointError(f"{error}{self._others(one)}") from error
                warnings.warn(f"{error} The one before it is tried.", stacklevel=2)
        self._apply(one, states)
        return Checkpoint(one, states["extra.pdstate"]["extra"], os.path.join(self._root, f"step_{one:08d}"))

    def _others(self, step: int) -> str:
        others = [other for other in self.all_steps() if other != step]
        return f" There are checkpoints of the steps {others}." if others else ""

    def _file_names(self) -> list[str]:
        names = [_file_name(name, value) for name, value in self._objects.items()]
        return [*names, "extra.pdstate", *(["random_state.pdstate"] if self._with_random else [])]

    def _apply(self, step: int, states: dict[str, Any]) -> None:
        for name, value in self._objects.items():
            _refuse_misfit(name, value, states[_file_name(name, value)], step)
        for name, value in self._objects.items():
            load = getattr(value, "set_state_dict", None) or value.load_state_dict
            load(states[_file_name(name, value)])
        if self._with_random:
            set_random_states(states["random_state.pdstate"])


def _check_object(name: str, value: Any) -> None:
    if name in _RESERVED or not re.fullmatch(r"\w+", name):
        raise ValueError(f"[CheckpointManager] an object cannot be called {name!r}. Choose another name.")
    can_load = hasattr(value, "set_state_dict") or hasattr(value, "load_state_dict")
    if not hasattr(value, "state_dict") or not can_load:
        raise TypeError(f"[CheckpointManager] {name} is a {type(value).__name__}, which does not have state_dict() and set_state_dict() "
                        "or load_state_dict(). Pass plain values to save(extra=...).")


def _file_name(name: str, value: Any) -> str:
    layer, optimizer = isinstance(value, oar.nn.Layer), isinstance(value, oar.optimizer.Optimizer)
    return name + (".pdparams" if layer else ".pdopt" if optimizer else ".pdstate")


def _refuse_misfit(name: str, value: Any, state: Any, step: int) -> None:
    """An error, before anything is changed, if a state is that of another layer or optimizer."""
    kind = type(value)
    if isinstance(value, oar.optimizer.Optimizer) and kind.set_state_dict in (OptimizerState.set_state_dict, oar.optimizer.Adam.set_state_dict):
        try:
            value._check_state_dict(state)
        except (AssertionError, KeyError) as error:
            raise CheckpointError(f"[CheckpointManager.restore] checkpoint {step} does not fit {name}: {error} Nothing was restored.") from error
    if not isinstance(value, oar.nn.Layer):
        return
    own = value.state_dict()
    misfits = Misfits(
        [key for key in own if key not in state], [key for key in state if key not in own],
        {key: f"has shape {shape_of(state[key])}, expected {list(tensor.shape)}" for key, tensor in own.items()
         if isinstance(tensor, Tensor) and key in state and shape_of(state[key]) != list(tensor.shape)},
    )  # fmt: skip
    if misfits:
        raise CheckpointError(f"[CheckpointManager.restore] checkpoint {step} does not fit {name}: {misfits}. Nothing was restored. "
                              "Build the network as it was when the checkpoint was written.")
