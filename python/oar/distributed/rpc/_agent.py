"""What a worker runs for calls between processes: a listener, a connection to each worker that it calls, and threads for both.

Messages are pickled, and pass through ``multiprocessing.connection``: whoever connects must know a key, which the workers exchange in
the rendezvous."""

from __future__ import annotations

import itertools
import pickle
import socket
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any, NamedTuple

__all__ = ["Agent", "WorkerInfo"]

_THREADS = 16  # calls that a worker serves at the same time; calls that wait for calls need one each


class WorkerInfo(NamedTuple):
    """A worker: its name, its number and where it listens.

    Examples:
        >>> from oar.distributed.rpc import WorkerInfo
        >>> WorkerInfo("trainer0", 0, "127.0.0.1", 40001).name
        'trainer0'
    """

    name: str
    rank: int
    ip: str
    port: int


class _Call(NamedTuple):
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Failure(NamedTuple):
    """An error of the called function, and where it happened."""

    error: Exception
    where: str


def _packed(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _failure(error: Exception) -> bytes:
    where = "".join(traceback.format_exception(error))
    try:
        content = _packed(_Failure(error, where))
        pickle.loads(content)  # some errors can be pickled but not unpickled
        return content
    except Exception:
        return _packed(_Failure(RuntimeError(f"{type(error).__name__}: {error}"), where))


def _outcome(content: bytes) -> bytes:
    """Runs a call that has arrived. Returns its result or its error, pickled."""
    try:
        call = pickle.loads(content)
        return _packed(call.function(*call.args, **call.kwargs))
    except Exception as error:
        return _failure(error)


def _settle(future: Future[Any], worker: str, content: bytes) -> None:
    try:
        value = pickle.loads(content)
    except Exception as error:
        future.set_exception(error)
        return
    if isinstance(value, _Failure):
        value.error.add_note(f"In the worker {worker!r}:\n{value.where}")
        future.set_exception(value.error)
    else:
        future.set_result(value)


class _Peer:
    """The connection on which this worker calls another one."""

    def __init__(self, info: WorkerInfo, key: bytes) -> None:
        self._info, self._waiting, self._numbers = info, dict[int, Future[Any]](), itertools.count()
        self._lock, self._closed = threading.Lock(), False
        self._connection = Client((info.ip, info.port))
        answer_challenge(self._connection, key)
        deliver_challenge(self._connection, key)
        threading.Thread(target=self._read, name=f"rpc answers of {info.name}", daemon=True).start()

    def call(self, content: bytes) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = future
            try:
                if self._closed:
                    raise ConnectionError
                self._connection.send_bytes(number.to_bytes(8, "little") + content)
            except OSError:
                del self._waiting[number]
                future.set_exception(self._gone())
        return future

    def _gone(self) -> ConnectionError:
        return ConnectionError(f"[rpc] the worker {self._info.name!r} (rank {self._info.rank}, {self._info.ip}:{self._info.port}) has "
                               "closed its connection. hint: look at its log; all workers call rpc.shutdown() together.")

    def _read(self) -> None:
        try:
            while True:
                message = self._connection.recv_bytes()
                with self._lock:
                    future = self._waiting.pop(int.from_bytes(message[:8], "little"), None)
                if future is not None:
                    _settle(future, self._info.name, message[8:])
        except (EOFError, OSError):
            with self._lock:
                waiting, self._waiting, self._closed = self._waiting, {}, True
            for future in waiting.values():
                future.set_exception(self._gone())

    def close(self) -> None:
        self._connection.close()


class Agent:
    """This process as a worker: it serves calls from its construction until ``close``."""

    def __init__(self, name: str, rank: int, host: str, key: bytes) -> None:
        self._key, self._lock, self._closed = key, threading.Lock(), False
        self._listener = Listener((host, 0), backlog=128)
        self.info = WorkerInfo(name, rank, host, self._listener.address[1])
        self.workers: dict[str, WorkerInfo] = {name: self.info}
        self._peers: dict[str, _Peer] = {}
        self._served: set[Connection] = set()
        self._pool = ThreadPoolExecutor(_THREADS, "rpc")
        threading.Thread(target=self._accept, name="rpc listener", daemon=True).start()

    def call(self, to: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
        content = _packed(_Call(function, args, kwargs))
        if to == self.info.name:
            future: Future[Any] = Future()
            self._pool.submit(lambda: _settle(future, to, _outcome(content)))
            return future
        return self._peer(to).call(content)

    def _peer(self, to: str) -> _Peer:
        with self._lock:
            if to not in self._peers:
                self._peers[to] = _Peer(self.workers[to], self._key)
            return self._peers[to]

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except OSError:
                continue
            threading.Thread(target=self._serve, args=(connection,), name="rpc server", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        """Answers the calls of one connection. Each runs in a thread of the pool, so that a long one holds up no other."""
        sending = threading.Lock()

        def answer(number: bytes, content: bytes) -> None:
            outcome = _outcome(content)
            try:
                with sending:
                    connection.send_bytes(number + outcome)
            except OSError:
                pass  # the caller has gone

        try:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            self._served.add(connection)
            while not self._closed:
                message = connection.recv_bytes()
                self._pool.submit(answer, message[:8], message[8:])
        except (EOFError, OSError, RuntimeError):  # of an unknown key, too: AuthenticationError is no part of the job
            pass
        except Exception:
            if not self._closed:
                traceback.print_exc()
        finally:
            self._served.discard(connection)
            connection.close()

    def close(self) -> None:
        self._closed = True
        try:
            socket.create_connection((self.info.ip, self.info.port), 1.0).close()  # wakes the listener
        except OSError:
            pass
        self._listener.close()
        self._pool.shutdown(wait=True)
        for peer in self._peers.values():
            peer.close()
        for connection in list(self._served):
            connection.close()
