"""Saving in a thread, while the program goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from oar._C import Tensor
from oar._lazy import np
from oar.framework.io import save

__all__ = ["Task", "async_save", "clear_async_save_task_queue", "copied"]


class Task(threading.Thread):
    """A function that writes files, and what went wrong in it."""

    def __init__(self, function: Callable[..., Any], *arguments: Any, **configs: Any) -> None:
        super().__init__(daemon=False)  # the process ends when the files are whole
        self._function, self._arguments, self._configs = function, arguments, configs
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._function(*self._arguments, **self._configs)
        except BaseException as error:  # it is raised by whoever waits
            self.error = error

    def finish(self) -> None:
        """Waits for it. What went wrong is raised here."""
        self.join()
        if self.error is not None:
            raise self.error


_tasks: list[Task] = []


def copied(value: Any) -> Any:
    """The same structure with tensors of their own: the program may change them while they are saved."""
    if isinstance(value, Tensor):
        made = value.detach().clone()
        made.name = value.name
        return made
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return type(value)((key, copied(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        items = [copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def async_save(obj: Any, path: str, protocol: int = 4, sync_other_task: bool = False, **configs: Any) -> None:
    """``save`` in a thread. Tensors are copied first, so the program may go on and change them.

    Args:
        obj: what is saved.
        path: the path of the file.
        protocol: the protocol of the pickle.
        sync_other_task: whether to wait for saves that are still running.
        configs: passed to ``save``.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'net.pdparams')
        >>> oar.async_save(oar.nn.Linear(2, 3).state_dict(), path)
        >>> oar.clear_async_save_task_queue()
        >>> oar.load(path)['weight'].shape
        [2, 3]
    """
    if sync_other_task:
        clear_async_save_task_queue()
    task = Task(save, copied(obj), path, protocol, **configs)
    _tasks.append(task)
    task.start()


def clear_async_save_task_queue() -> None:
    """Waits for the saves that are still running. An error of one of them is raised here.

    Examples:
        >>> import oar
        >>> oar.clear_async_save_task_queue()
    """
    while _tasks:
        _tasks.pop(0).finish()
