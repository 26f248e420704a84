"""A job whose machines come and go: rounds, in each of which the machines that are there run the script.

A round begins when enough machines have come, and is over when the script has ended on all of them, when one of its processes has
failed, when a machine has gone, or when one more has come. Then those that are there meet for the next round, and the script
continues from its last checkpoint. What the machines know of each other is in the rendezvous (`<job>/<round>/...`)."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from typing import Any

from oar import _C
from oar.distributed.launch import job

__all__ = ["range_of", "run"]

_BEAT = 1.0    # seconds between two signs of life of a machine
_SILENT = 6.0  # seconds without one, after which a machine has gone
_POLL = 0.1


class _Over(Exception):
    """The round is over. Says why, and whether a process failed while all machines were there."""

    def __init__(self, reason: str, failed: bool) -> None:
        super().__init__(reason)
        self.failed = failed


def range_of(nodes: str | None) -> tuple[int, int] | None:
    """The least and the largest number of machines of ``--nnodes 2:4``; None if the number is fixed."""
    if not nodes or ":" not in nodes:
        return None
    least, _, most = nodes.partition(":")
    if not (least.isdigit() and most.isdigit() and 1 <= int(least) <= int(most)):
        raise ValueError(f"[launch] --nnodes {nodes} is no range of numbers. hint: 2:4 means from 2 to 4 machines.")
    return int(least), int(most)


def _own_address() -> str:
    """The address of this machine by its name, which a folder cannot tell."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


class _Life:
    """The signs of life of all machines. What counts is when this machine has seen another one's last, so clocks may differ."""

    def __init__(self, store: Any, job_name: str) -> None:
        self._store, self._key = store, f"{job_name}/life"
        self.number = store.add_to(f"{self._key}/machines", 1) - 1
        self._seen: dict[int, tuple[bytes | None, float]] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        count = 0
        while not self._ended.wait(_BEAT if count else 0.0):
            count += 1
            try:
                self._store.set(f"{self._key}/{self.number}", str(count).encode())
            except RuntimeError:
                return  # the rendezvous has gone, which the main thread notices

    def has_gone(self, machine: int) -> bool:
        if machine == self.number:
            return False
        beat, now = self._store.find(f"{self._key}/{machine}"), time.monotonic()
        last, since = self._seen.get(machine, (None, now))
        if machine not in self._seen or beat != last:
            self._seen[machine] = (beat, now)
            return False
        return now - since > _SILENT

    def end(self) -> None:
        self._ended.set()


class _Round:
    """One round, as a machine sees it. It stands where a job of fixed size has its rendezvous."""

    def __init__(self, machines: _Machines, number: int) -> None:
        self._all, self.number, self.store = machines, number, machines.store
        self._key = f"{machines.name}/{number}"
        self._members: list[int] = []
        self.node = self.store.add_to(f"{self._key}/arrived", 1) - 1
        self.store.set(f"{self._key}/member/{self.node}", str(machines.life.number).encode())
        self.address = ""
        self._server: Any = None

    def begin(self) -> int:
        """Waits for the others. Returns how many machines take part; 0: without this one, which waits for the next round."""
        if self.node == 0:
            self._open()
        size = int(self._get("size"))
        self._members = [int(self._get(f"member/{i}")) for i in range(size)]
        self.address = self._get("address").decode()
        return size if self.node < size else 0

    def _open(self) -> None:
        """The first machine decides how many take part: as many as there are when no more come."""
        least, most, settle = self._all.least, self._all.most, self._all.settle
        known, since = 0, time.monotonic()
        while True:
            arrived = min(most, self._count("arrived"))
            if arrived != known:
                known, since = arrived, time.monotonic()
                print(f"[launch] round {self.number}: {known} machines, {least} to {most} are wanted", file=sys.stderr, flush=True)
            if known == most or (known >= least and time.monotonic() - since > settle):
                break
            time.sleep(_POLL)
        host = self._all.options.host or self.store.own_address() or "127.0.0.1"
        self._server = _C.store_serve(host, 0)
        self._set("address", f"{host}:{self._server.port()}")
        self._set("size", str(known))

    def exchange(self, key: str, own: str, nodes: int) -> list[str]:
        """What each machine says."""
        self._set(f"{key}/{self.node}", own)
        return [self._get(f"{key}/{i}").decode() for i in range(nodes)]

    def check(self) -> None:
        """Raises _Over if the round is over."""
        reason = self.store.find(f"{self._key}/over")
        if reason is not None:
            raise _Over(reason[1:].decode(), reason[:1] == b"F")
        for node, machine in enumerate(self._members):
            if self.store.find(f"{self._key}/done/{node}") is None and self._all.life.has_gone(machine):
                self.end(f"the machine {node} has gone")
        if 0 < len(self._members) < min(self._all.most, self._count("arrived")):
            self.end("a machine has come")

    def is_done(self) -> bool:
        """Whether the script has ended on all machines."""
        return all(self.store.find(f"{self._key}/done/{node}") is not None for node in range(len(self._members)))

    def end(self, reason: str, failed: bool = False) -> None:
        """Ends the round for all machines."""
        self._set("over", ("F" if failed else "-") + reason)
        raise _Over(reason, failed)

    def fail(self) -> None:
        """A process of this machine has failed: because a machine has gone, which takes a while to be sure of, or by itself."""
        deadline = time.monotonic() + _SILENT + 2 * _BEAT
        while time.monotonic() < deadline:
            self.check()
            time.sleep(_POLL)
        self.end(f"a process of the machine {self.node} has failed", failed=True)

    def finish(self) -> None:
        """The script has ended here. Waits for the other machines; raises _Over if one of them needs another round."""
        self._set(f"done/{self.node}", "1")
        for node in range(len(self._members)):
            self._get(f"done/{node}")
        self._set(f"left/{self.node}", "1")
        if self._all.server is None:
            return
        for node, machine in enumerate(self._members):  # the machine that serves the rendezvous goes last
            while self.store.find(f"{self._key}/left/{node}") is None and not self._all.life.has_gone(machine):
                time.sleep(_POLL)

    def _count(self, key: str) -> int:
        return self.store.add_to(f"{self._key}/{key}", 0)

    def _set(self, key: str, value: str) -> None:
        self.store.set(f"{self._key}/{key}", value.encode())

    def _get(self, key: str) -> bytes:
        while (value := self.store.find(f"{self._key}/{key}")) is None:
            self.check()
            self._check_first()
            time.sleep(_POLL)
        return value

    def _check_first(self) -> None:
        """The machine that opens the round may go before it has done so."""
        first = self.store.find(f"{self._key}/member/0")
        if first is not None and not self._members and self._all.life.has_gone(int(first)):
            self.end("the machine that opens the round has gone")


class _Machines:
    """This machine among those of the job."""

    def __init__(self, options: argparse.Namespace, least: int, most: int) -> None:
        self.options, self.least, self.most = options, least, most
        self.settle, self.name = float(options.elastic_timeout), f"elastic/{options.job_id}"
        self.server, self.store = job.open_rendezvous(options.master, most, options.node_rank)
        if self.server is None and not self.store.own_address() and not options.host:
            options.host = _own_address()
        self.life = _Life(self.store, self.name)

    def join(self, number: int) -> _Round:
        """The round of this number, or a newer one if this machine comes late."""
        newest = int(self.store.find(f"{self.name}/round") or b"0")
        if number > newest:
            self.store.set(f"{self.name}/round", str(number).encode())
        return _Round(self, max(number, newest))


def _run_round(current: _Round, options: argparse.Namespace, count: int, devices: list[str], attempt: int) -> int:
    """Runs the script once. Returns its exit code; raises _Over if the round was ended elsewhere."""
    size = current.begin()
    if size == 0:  # in reserve
        while not current.is_done():
            current.check()
            time.sleep(_POLL)
        return 0
    places = job.environments(options, count, size, devices, current)
    if current.node == 0:
        print(f"[launch] round {current.number} begins with {size} machines", file=sys.stderr, flush=True)
    code = job.run_processes(options, places, attempt, current.check)
    if code == 0:
        current.finish()
    elif code != 130:
        current.fail()
    return code


def run(options: argparse.Namespace, count: int, least: int, most: int, devices: list[str]) -> int:
    """Runs the job until it has ended well, or has failed more often than it may. Returns the exit code."""
    machines = _Machines(options, least, most)
    number, attempt, failures = 0, 0, 0
    try:
        while True:
            current = machines.join(number)
            try:
                return _run_round(current, options, count, devices, attempt)
            except _Over as over:
                print(f"[launch] round {current.number} is over: {over}", file=sys.stderr, flush=True)
                failures += over.failed
            except SystemExit:
                machines.store.set(f"{machines.name}/{current.number}/over", b"-a machine was told to end")
                raise
            if failures > options.max_restart:
                return 1
            number, attempt = current.number + 1, attempt + 1
    except RuntimeError as error:
        raise RuntimeError(f"[launch] the rendezvous {options.master} has gone: {error} hint: the machine that serves it must stay, or pass "
                           "--master file:///a/folder/that/all/see.") from None
    finally:
        machines.life.end()
