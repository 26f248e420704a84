"""Calls of functions in other processes."""

from __future__ import annotations

import atexit
import json
import os
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from oar import _C
from oar.distributed import _launched, environment
from oar.distributed.rpc._agent import Agent, WorkerInfo

__all__ = [
    "WorkerInfo",
    "get_all_worker_infos",
    "get_current_worker_info",
    "get_worker_info",
    "init_rpc",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

_FOREVER = -1
_agent: Agent | None = None
_meeting: _Meeting | None = None


class _Meeting:
    """Where the workers tell each other their names and addresses, and wait for each other at the end."""

    def __init__(self, rank: int, size: int, endpoint: str | None) -> None:
        self._rank, self._size = rank, size
        self._server: Any = None
        self._timeout = environment.ParallelEnv().pg_timeout
        self._store: Any = environment.job.store if endpoint is None else None
        if self._store is None:
            self._store = self._open(endpoint)
        # A job may begin and end several times in one rendezvous.
        self._prefix = f"rpc/{self._store.add_to(f'rpc/begun/{rank}', 1)}"

    def _open(self, endpoint: str | None) -> Any:
        address = "tcp://" + endpoint.split("://")[-1] if endpoint else _launched.master()
        if not address:
            raise RuntimeError(f"[init_rpc] {self._size} workers were announced, but nothing says where they meet. "
                               "hint: pass master_endpoint='host:port', or set PADDLE_MASTER.")
        served = endpoint is None and os.environ.get("OAR_STORE_SERVED")
        if self._rank == 0 and address.startswith("tcp://") and not served:
            self._server = _C.store_serve(*_launched.host_and_port(address))
        return _C.store_open(address, self._timeout)

    def host(self) -> str:
        return self._store.own_address() or "127.0.0.1"

    def key(self) -> bytes:
        """A secret of this job, which the first worker draws."""
        if self._rank == 0:
            self._store.set(f"{self._prefix}/key", secrets.token_bytes(32))
        return self._store.get(f"{self._prefix}/key", self._timeout)

    def exchange(self, own: WorkerInfo) -> list[WorkerInfo]:
        self._store.set(f"{self._prefix}/worker/{self._rank}", json.dumps(own).encode())
        return [WorkerInfo(*json.loads(self._store.get(f"{self._prefix}/worker/{r}", self._timeout))) for r in range(self._size)]

    def part(self) -> None:
        """Waits until all workers want to end. The first one, which may serve the rendezvous, goes last."""
        for step, others in (("done", range(self._size)), ("gone", range(self._size) if self._rank == 0 else ())):
            self._store.set(f"{self._prefix}/{step}/{self._rank}", b"1")
            for r in others:
                self._store.get(f"{self._prefix}/{step}/{r}", self._timeout)
        self._store = self._server = None


def _running(caller: str) -> Agent:
    if _agent is None:
        raise RuntimeError(f"[{caller}] this process is no worker yet. hint: call oar.distributed.rpc.init_rpc(name) first.")
    return _agent


def init_rpc(name: str, rank: int | None = None, world_size: int | None = None, master_endpoint: str | None = None) -> None:
    """Makes this process a worker, whose functions others call by its name, and waits for all workers.

    The workers must trust each other: functions, arguments and results are pickled, and a worker runs whatever it is asked to. Who
    does not know the key of the job, which is exchanged in the rendezvous, cannot connect.

    Args:
        name: of this worker; each has another one.
        rank: the number of this worker; None: what the launcher says.
        world_size: how many workers there are; None: what the launcher says.
        master_endpoint: ``host:port`` where they meet, which the worker 0 serves; None: what the launcher says.

    Examples:
        >>> import oar
        >>> from oar.distributed import rpc
        >>> rpc.init_rpc("worker0", rank=0, world_size=1)
        >>> rpc.rpc_sync("worker0", max, args=(3, 5))
        5
        >>> rpc.shutdown()
    """
    global _agent, _meeting
    if _agent is not None:
        raise RuntimeError(f"[init_rpc] this process is the worker {_agent.info.name!r} already. hint: call rpc.shutdown() first.")
    if not isinstance(name, str) or not name:
        raise ValueError(f"[init_rpc] name is {name!r}; a worker needs a name that is not empty.")
    env = environment.ParallelEnv()
    rank = env.rank if rank is None else rank
    size = env.world_size if world_size is None else world_size
    if not 0 <= rank < size:
        raise ValueError(f"[init_rpc] rank is {rank}, but the ranks of {size} workers go from 0 to {size - 1}.")
    if size == 1:
        _agent = Agent(name, rank, "127.0.0.1", secrets.token_bytes(32))
        return
    meeting = _Meeting(rank, size, master_endpoint)
    agent = Agent(name, rank, meeting.host(), meeting.key())
    infos = meeting.exchange(agent.info)
    agent.workers = {info.name: info for info in infos}
    if len(agent.workers) < size:
        agent.close()
        raise ValueError(f"[init_rpc] two workers have one name: {sorted(info.name for info in infos)}. hint: give each its own.")
    _agent, _meeting = agent, meeting
    atexit.register(_close)


def _close() -> None:
    """Ends the service without waiting for others."""
    global _agent, _meeting
    agent, _agent, _meeting = _agent, None, None
    if agent is not None:
        agent.close()


class _Answer:
    """The result of a call that may not be there yet."""

    def __init__(self, future: Future[Any], to: str, timeout: float) -> None:
        self._future, self._to, self._timeout = future, to, timeout

    def wait(self) -> Any:
        """The result of the function. Raises the error of the function, or that of a worker that has gone."""
        try:
            return self._future.result(None if self._timeout == _FOREVER else self._timeout)
        except FutureTimeout:
            if self._future.done():
                raise  # the function itself has raised it
            raise TimeoutError(f"[rpc] the worker {self._to!r} has not answered within {self._timeout} s. "
                               "hint: pass a larger timeout, or -1 to wait for ever.") from None


def _call(caller: str, to: str, fn: Callable[..., Any], args: Any, kwargs: Any, timeout: float) -> _Answer:
    agent = _running(caller)
    if to not in agent.workers:
        raise ValueError(f"[{caller}] there is no worker {to!r}. hint: the workers are {', '.join(sorted(agent.workers))}.")
    if timeout != _FOREVER and not timeout > 0:
        raise ValueError(f"[{caller}] timeout is {timeout}; pass a number of seconds above 0, or -1 to wait for ever.")
    return _Answer(agent.call(to, fn, tuple(args or ()), dict(kwargs or {})), to, timeout)


def rpc_sync(
    to: str, fn: Callable[..., Any], args: Any = None, kwargs: dict[str, Any] | None = None, timeout: float = _FOREVER
) -> Any:
    """Calls a function in another worker and waits for its result.

    Args:
        to: the name of the worker.
        fn: a function of a module that the worker can import.
        args: its arguments; tensors are sent by value.
        kwargs: its named arguments.
        timeout: how many seconds to wait; -1 waits for ever.

    Returns:
        what the function returns. Its error is raised here, with a note that shows where it happened.

    Examples:
        >>> from oar.distributed import rpc
        >>> rpc.init_rpc("worker0", rank=0, world_size=1)
        >>> rpc.rpc_sync("worker0", sorted, args=([3, 1, 2],), kwargs={"reverse": True})
        [3, 2, 1]
        >>> rpc.shutdown()
    """
    return _call("rpc_sync", to, fn, args, kwargs, timeout).wait()


def rpc_async(
    to: str, fn: Callable[..., Any], args: Any = None, kwargs: dict[str, Any] | None = None, timeout: float = _FOREVER
) -> _Answer:
    """Calls a function in another worker, and does not wait.

    Args:
        to: the name of the worker.
        fn: a function of a module that the worker can import.
        args: its arguments; tensors are sent by value.
        kwargs: its named arguments.
        timeout: how many seconds ``wait`` waits; -1 waits for ever.

    Returns:
        an object whose ``wait()`` returns the result.

    Examples:
        >>> from oar.distributed import rpc
        >>> rpc.init_rpc("worker0", rank=0, world_size=1)
        >>> rpc.rpc_async("worker0", sum, args=([1, 2],)).wait()
        3
        >>> rpc.shutdown()
    """
    return _call("rpc_async", to, fn, args, kwargs, timeout)


def shutdown() -> None:
    """Ends the service of this worker, after all workers have called this function: until then each still answers the others.

    Examples:
        >>> from oar.distributed import rpc
        >>> rpc.init_rpc("worker0", rank=0, world_size=1)
        >>> rpc.shutdown()
    """
    if _agent is None:
        return
    if _meeting is not None:
        _meeting.part()
    _close()


def get_worker_info(name: str) -> WorkerInfo:
    """A worker.

    Args:
        name: of the worker.

    Returns:
        its name, rank, address and port.

    Examples:
        >>> from oar.distributed import rpc
        >>> rpc.init_rpc("worker0", rank=0, world_size=1)
        >>> rpc.get_worker_info("worker0").rank
        0
        >>> rpc.shutdown()
    """
    agent = _running("get_worker_info")
    if name not in agent.workers:
        raise ValueError(f"[get_worker_info] there is no worker {name!r}. hint: the workers are {', '.join(sorted(agent.workers))}.")
    return agent.workers[name]


def get_all_worker_infos() -> list[WorkerInfo]:
    """All workers, in the order of their ranks.

    Returns:
        a list of names, ranks, addresses and ports.

    Examples:
        >>> from oar.distributed import rpc
        >>> rpc.init_rpc("worker0", rank=0, world_size=1)
        >>> [worker.name for worker in rpc.get_all_worker_infos()]
        ['worker0']
        >>> rpc.shutdown()
    """
    return sorted(_running("get_all_worker_infos").workers.values(), key=lambda worker: worker.rank)


def get_current_worker_info() -> WorkerInfo:
    """This worker.

    Returns:
        its name, rank, address and port.

    Examples:
        >>> from oar.distributed import rpc
        >>> rpc.init_rpc("worker0", rank=0, world_size=1)
        >>> rpc.get_current_worker_info().name
        'worker0'
        >>> rpc.shutdown()
    """
    return _running("get_current_worker_info").info
