"""What a worker of a ``DataLoader`` knows of itself."""

from __future__ import annotations

from typing import Any

__all__ = ["WorkerInfo", "get_worker_info", "set_worker_info"]


class WorkerInfo:
    """What a worker knows of itself. It cannot be changed.

    Args:
        id: the number of the worker.
        num_workers: how many there are.
        dataset: the copy of the dataset that this worker has.
        seed: the number that the seeds of all workers of this pass are derived from.
    """

    id: int
    num_workers: int
    dataset: Any
    seed: int

    def __init__(self, id: int, num_workers: int, dataset: Any, seed: int) -> None:
        vars(self).update(id=id, num_workers=num_workers, dataset=dataset, seed=seed)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(f"[get_worker_info] {name} of a WorkerInfo cannot be set: it says what the worker is.")


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a ``DataLoader``: who it is. Elsewhere None.

    Returns:
        an object with ``id``, ``num_workers``, ``dataset`` and ``seed``, or None.

    Examples:
        >>> import oar
        >>> oar.io.get_worker_info() is None  # the process of the program itself
        True
    """
    return _info


def set_worker_info(info: WorkerInfo) -> None:
    """From now on this process is a worker."""
    global _info
    _info = info
