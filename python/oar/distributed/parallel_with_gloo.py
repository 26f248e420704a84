"""A barrier by Gloo for programs that connect their processes by other means."""

from __future__ import annotations

from typing import Any

from oar import _C

__all__ = ["gloo_barrier", "gloo_init_parallel_env", "gloo_release"]

_NUMBER = -1  # of the group: those of new_group are above 0
_WAIT_MS = 1_800_000
_kept: list[Any] = []  # the rendezvous, and its server in the process 0


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Connects processes for ``gloo_barrier``.

    Args:
        rank_id: the number of this process.
        rank_num: how many processes there are.
        server_endpoint: ``host:port`` of the process 0, where the processes meet.

    Examples:
        >>> import oar
        >>> oar.distributed.gloo_init_parallel_env(0, 1, "127.0.0.1:8080")
        >>> oar.distributed.gloo_barrier()
        >>> oar.distributed.gloo_release()
    """
    if not isinstance(rank_num, int) or not 0 <= rank_id < rank_num:
        raise ValueError(f"[gloo_init_parallel_env] there is no process {rank_id} of {rank_num}.")
    gloo_release()
    store = None
    if rank_num > 1:
        host, _, port = server_endpoint.rpartition(":")
        if rank_id == 0:
            _kept.append(_C.store_serve(host, int(port)))
        store = _C.store_open(f"tcp://{server_endpoint}", _WAIT_MS)
        _kept.append(store)
    _C.group_make(_NUMBER, "gloo", list(range(rank_num)), rank_id, "gloo", store, _WAIT_MS)


def gloo_barrier() -> None:
    """Waits until all processes of ``gloo_init_parallel_env`` have come this far.

    Examples:
        >>> import oar
        >>> oar.distributed.gloo_init_parallel_env(0, 1, "127.0.0.1:8080")
        >>> oar.distributed.gloo_barrier()
    """
    _C.group_start(_NUMBER, "barrier", [], [], 0, 0, 0).wait(None)


def gloo_release() -> None:
    """Ends what ``gloo_init_parallel_env`` began.

    Examples:
        >>> import oar
        >>> oar.distributed.gloo_release()
    """
    _C.group_remove(_NUMBER)
    _kept.clear()
