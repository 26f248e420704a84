#!/usr/bin/env python3
"""Random calls of every op, compared with its NumPy expression, with PyTorch and with PaddlePaddle.

Shapes (0-d, empty, axes of size 1, broadcast, large now and then), dtypes, layouts, attributes and numbers (NaN,
infinities, signed zeros, subnormals, huge ones in a share of the calls) are random. values/compare.py states the rule
of comparison; what differs on purpose is in values/known.py. The peers are asked if OAR_TORCH and OAR_PADDLE name
Pythons that have them: PyTorch about every call that it has, Paddle about those that differ from the others.

    values_fuzz.py --count 100000              # calls 0 to 99999, every op in turn
    values_fuzz.py --minutes 10 --jobs 2
    values_fuzz.py --op softmax --seed 4711 --count 1 --show
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import select
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

_BATCH = 20_000  # calls of one process
_ASKED = 128  # calls that a peer answers at once, while the next ones are made
_SECONDS = 900.0  # a process that writes nothing for this long hangs


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=None,
                        help="how many calls (default 100000, or no limit with --minutes)")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first call")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so many minutes")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--op", action="append", default=[], metavar="NAME", help="only this op; may be repeated")
    parser.add_argument("--most", type=int, default=20, help="stop after so many differences (default 20; 0: never)")
    parser.add_argument("--show", action="store_true", help="print every call and what each reference says")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


# one process ----------------------------------------------------------------------------------------


class Worker:
    """Makes calls, asks the references, writes a line of JSON for each call before it begins and when it is judged."""

    def __init__(self, options: argparse.Namespace) -> None:
        from registry.records import RECORDS, Trait

        self.options = options
        self.records = [r for r in RECORDS if (r.numpy or r.inplace_of) and not r.has(Trait.RANDOM)
                        and "program" not in r.schema and not r.writes_aside
                        and (not options.op or r.name in options.op)]
        self.peers: dict = {}
        self.asked: dict[str, list] = {}  # peer -> the calls that it has to answer

    def run(self) -> None:
        """PyTorch answers for some calls while the next ones are made."""
        made, sent = [], []
        for number in range(self.options.seed, self.options.seed + self.options.count):
            judged = self.one(number)
            if judged is None:
                continue
            made.append(judged)
            if len(made) == _ASKED:
                self.conclude(sent)
                self.send_to_torch(made)
                made, sent = [], made
        self.conclude(sent)
        self.send_to_torch(made)
        self.conclude(made)
        for peer in self.peers.values():
            peer.close()

    def one(self, number: int):
        from values.calls import NoCall, make
        from values.compare import Judged

        record = self.records[number % len(self.records)]
        say(begins=number, op=record.name)
        try:
            call = make(record, number)
        except NoCall:
            say(number=number, op=record.name, none=True)
            return None
        judged = Judged(call)
        judged.run()
        judged.by_numpy()
        return judged

    def conclude(self, sent: list) -> None:
        """Judges calls that were sent to PyTorch."""
        from values.known import reason

        self.receive("torch", "PyTorch")
        self.by_paddle([j for j in sent if j.fault() or j.unsettled])
        for judged in sent:
            fault = judged.fault()
            known = reason(judged, fault) if fault else None
            line = {"number": judged.call.number, "op": judged.call.record.name, "compared": judged.compared,
                    "refused": judged.error is not None, "unsettled": judged.unsettled,
                    "says": {who: said.partition(":")[0] for who, said in judged.says.items()}}
            if fault and not known:
                line |= {"fault": fault, "call": judged.call.shown()}
            if known:
                line["known"] = known
            if self.options.show:
                say(shown=f"{judged.call.what}: {judged.call.shown()}\n  error: {judged.error}\n  " +
                    "\n  ".join(f"{who} {said}" for who, said in judged.says.items()))
            say(**line)

    def peer(self, variable: str, name: str):
        if name not in self.peers and os.access(os.environ.get(variable, ""), os.X_OK):
            from peers import process

            process.PATIENCE = 20  # for many calls
            self.peers[name] = process.Peer(os.environ[variable], name)
        return self.peers.get(name)

    def send_to_torch(self, made: list) -> None:
        from peers.torch_table import TORCH

        # In-place ops have the expression of their functional twin.
        pairs = [(j, TORCH.get(j.call.record.inplace_of or j.call.record.name)) for j in made]
        self.send("OAR_TORCH", "torch", [(j, e) for j, e in pairs if e])

    def by_paddle(self, waiting: list) -> None:
        from peers.paddle_calls import expression
        from peers.paddle_table import OURS

        pairs = []
        for judged in waiting:
            record = judged.call.record
            if record.name in OURS or record.inplace_of:
                continue
            try:
                pairs.append((judged, expression(record, dict(zip(record.parameters, judged.args)))))
            except Exception:  # noqa: BLE001, S112  (no such form of the call)
                continue
        self.ask("OAR_PADDLE", "paddle", "Paddle", pairs)
        # It lacks many dtypes, but shapes and attributes that are wrong are wrong in any.
        self.ask("OAR_PADDLE", "paddle", "Paddle", [(j, e) for j, e in pairs if j.error and "Paddle" not in j.says],
                 lambda judged: judged.as_float32())

    def ask(self, variable: str, name: str, title: str, pairs: list, arguments=lambda judged: judged.args) -> None:
        self.send(variable, name, pairs, arguments)
        self.receive(name, title)

    def send(self, variable: str, name: str, pairs: list, arguments=lambda judged: judged.args) -> None:
        from peers.process import Call

        peer = self.peer(variable, name) if pairs else None
        if peer:
            peer.send([Call(e, dict(zip(j.call.record.parameters, arguments(j)))) for j, e in pairs])
            self.asked[name] = [j for j, _ in pairs]

    def receive(self, name: str, title: str) -> None:
        asked = self.asked.pop(name, [])
        if not asked:
            return
        for judged, answer in zip(asked, self.peers[name].receive()):
            if answer.missing or (answer.values and all(v is None for v in answer.values)):
                continue
            if answer.error:
                judged.says[title] = f"refuses: {answer.error}"
            else:
                judged.take(title, answer.values, moved=False)


def say(**line) -> None:
    print(json.dumps(line), flush=True)


def lines_of(process: subprocess.Popen):
    """What a process writes. One that is silent for long is ended."""
    rest = b""
    while select.select([process.stdout], [], [], _SECONDS)[0]:
        found = os.read(process.stdout.fileno(), 1 << 16)
        if not found:
            return
        *whole, rest = (rest + found).split(b"\n")
        yield from whole
    process.kill()


# all of them -------------------------------------------------------------------------------------------


class Run:
    """Starts workers, reads what they write, shows progress."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.total = options.count if options.count is not None else 100_000 if options.minutes is None else None
        self.end = time.monotonic() + options.minutes * 60 if options.minutes is not None else None
        self.next_number, self.begun = options.seed, time.monotonic()
        self.faults = 0
        self.counts: collections.Counter = collections.Counter()
        self.says: collections.Counter = collections.Counter()
        self.by_op: collections.Counter = collections.Counter()
        self.seen: set[str] = set()
        self.lock = threading.Lock()

    def over(self) -> bool:
        late = self.end is not None and time.monotonic() > self.end
        return late or bool(self.options.most and self.faults >= self.options.most)

    def run(self) -> int:
        threads = [threading.Thread(target=self._work) for _ in range(self.options.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self._conclude()

    def _work(self) -> None:
        while True:
            with self.lock:
                left = _BATCH if self.total is None else min(_BATCH, self.options.seed + self.total - self.next_number)
                first = self.next_number
                self.next_number += max(left, 0)
            if left <= 0 or self.over():
                return
            self._read(first, left)

    def _process(self, first: int, count: int) -> subprocess.Popen:
        command = [sys.executable, __file__, "--worker", "--seed", str(first), "--count", str(count)]
        command += [word for name in self.options.op for word in ("--op", name)]
        command += ["--show"] if self.options.show else []
        return subprocess.Popen(command, stdout=subprocess.PIPE)

    def _read(self, first: int, count: int) -> None:
        """Reads a worker to its end. After one that dies, another continues with the next call."""
        process = self._process(first, count)
        current, op = first, "?"
        for text in lines_of(process):
            line = json.loads(text)
            if "begins" in line:
                current, op = line["begins"], line["op"]
            elif "shown" in line:
                print(line["shown"])
            else:
                with self.lock:
                    self._take(line)
            if self.over():
                process.kill()
                break
        if process.wait() != 0 and not self.over():
            with self.lock:
                self._report(op, current, f"the process ended with {process.returncode}", "")
            if first + count - current - 1 > 0:
                self._read(current + 1, first + count - current - 1)

    def _take(self, line: dict) -> None:
        self.counts["calls"] += 1
        if "none" in line:
            return
        self.counts["compared"] += line["compared"]
        self.counts["refused"] += line["refused"]
        self.counts["unsettled"] += line["unsettled"]
        self.counts["known"] += "known" in line
        self.by_op[line["op"]] += line["compared"]
        self.seen.add(line["op"])
        for who, said in line["says"].items():
            self.says[who, said] += 1
        if "fault" in line:
            self._report(line["op"], line["number"], line["fault"], line["call"])
        if self.counts["calls"] % 500 == 0:
            print(self.summary(), file=sys.stderr, flush=True)

    def _report(self, op: str, number: int, fault: str, call: str) -> None:
        self.faults += 1
        again = f"tests/fuzz/values_fuzz.py --op {op} --seed {number} --count 1"
        print(f"== {op}: {fault}\n   {call}\n   again: {again}", flush=True)

    def summary(self) -> str:
        seconds = time.monotonic() - self.begun
        of = f" of {self.total}" if self.total is not None else ""
        said = ", ".join(f"{self.says[who, 'agrees']} agree with {who} ({self.says[who, 'differs']} do not)"
                         for who in ("NumPy", "PyTorch", "Paddle") if self.says[who, "agrees"] or self.says[who, "differs"])
        rate = self.counts["calls"] / seconds
        return (f"{self.counts['calls']}{of} calls, {rate:.0f}/s: {self.counts['compared']} compared "
                f"({said}), {self.counts['refused']} refused; {self.counts['known']} differ for a known reason, "
                f"{self.counts['unsettled']} at extreme numbers without a peer to ask, {self.faults} differ")

    def _conclude(self) -> int:
        print(self.summary())
        never = sorted(name for name in self.seen if not self.by_op[name])
        if never and self.counts["calls"] > 50 * len(self.seen):
            print(f"never compared: {', '.join(never)}")
            return 2
        return 1 if self.faults else 0


def main() -> int:
    options = arguments()
    if options.worker:
        Worker(options).run()
        return 0
    return Run(options).run()


if __name__ == "__main__":
    sys.exit(main())
