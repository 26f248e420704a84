"""One row after the other: the same inputs for all, agreement first, then batches in turns."""

import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np

from agreement import find_wrong
from cases import ops
from plan import passes, roles
from processes import HERE, Trouble, Worker
from report import cell_text

class Run:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="bench-")
        self.workers = {}                   # (role, threads)
        self.versions = {}
        self.rows = []
        self.inputs_of = None
        self.restarts = 0
        self.turn = 0
        self.shown = 0.0

    def worker(self, role, kind, exe, threads, fresh=False):
        if fresh:
            return Worker(role, kind, exe, threads, self.folder, False)
        slot = (role, threads)
        if slot not in self.workers:
            for other in [s for s in self.workers if s[1] != threads]:
                self.workers.pop(other).close()         # one thread count at a time
            self.workers[slot] = Worker(role, kind, exe, threads, self.folder, self.options.malloc == "keep")
        return self.workers[slot]

    def inputs(self, row):
        """The inputs of a case, written once; every worker reads the same files."""
        if "spec" not in row:
            return None
        this = (row["suite"], row["case"], row["size"])
        folder = os.path.join(self.folder, "inputs")
        if self.inputs_of != this:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            rng = np.random.default_rng(hash_text("/".join(this)))
            for letter, spec in zip("abcdefgh", row["spec"]["inputs"]):
                np.save(os.path.join(folder, letter + ".npy"), ops.make(spec, row["sizes"], rng))
            self.inputs_of = this
        return folder

    def request(self, row):
        q = dict(cmd="prepare", suite=row["suite"], dtype=row["dtype"], mode=row["mode"])
        if "spec" in row:
            q.update(case=row["spec"], size=row["sizes"], inputs=self.inputs(row), backward=row.get("backward", False),
                     record=row.get("record", False))
        else:
            q.update(name=row["case"], batch=row["batch"])
        if row["suite"] == "deploy":
            q["files"] = self.files(row["case"])
        return q

    def files(self, name):
        """The network as ONNX, and as what Oar reads; written or fetched once."""
        folder = self.options.out.parent / "deploy"
        if not (folder / f"{name}.onnx").exists():
            subprocess.run([self.options.oar, "-m", "oar.as_paddle", HERE / "deploy_files.py", folder, name], check=True)
        own = folder / f"{name}.oar"
        return [str(folder / f"{name}.onnx"), str(own if own.exists() else folder / f"{name}.onnx")]

    def measure(self, row):
        o = self.options
        model = "spec" not in row
        timeout = o.timeout * (6 if model else 1)
        if not model:
            timeout = row["spec"].get("timeout", timeout)
        cells, samples, live, parameters = {}, {}, [], {}
        gathered = row.setdefault("times", {})              # role: seconds per call, over all passes
        failed = {r: c for r, c in row.get("cells", {}).items() if "error" in c or "wrong" in c}

        def guarded(worker, request):
            try:
                answer = worker.ask(request, timeout)
            except Trouble as e:
                worker.close()
                self.restarts += worker.info is not None
                answer = dict(error=str(e))
            if "error" in answer:
                cells[worker.role] = dict(error=answer["error"], trace=answer.get("trace", ""))
                return None
            return answer

        row.setdefault("cells", {})
        everyone = roles(row, o)
        order = everyone if self.turn % 2 == 0 else everyone[::-1]
        self.turn += 1
        for role, kind, exe in order:
            if role in failed:
                continue
            w = self.worker(role, kind, exe, row["threads"])
            answer = guarded(w, self.request(row) | mode_of(role))
            if w.info:
                self.versions[role] = w.info
            if answer is None:
                continue
            samples[role] = answer["samples"]
            if "parameters" in answer:
                parameters[role] = answer["parameters"]
            cells[role] = {}
            live.append(w)
        tol, check = (row["spec"]["tol"], row["spec"]["check"]) if not model else (1e-3, row.get("check", "close"))
        wrong = find_wrong(samples, check, tol, row["dtype"] != "float32")
        if len({p for p in parameters.values()}) > 1:
            wrong.setdefault("oar", f"parameter counts differ: {parameters}")
        for role, why in wrong.items():
            cells[role] = dict(wrong=why)
        live = [w for w in live if w.role not in wrong]

        plans = {}
        for w in live:
            answer = guarded(w, dict(cmd="calibrate", target=o.target))
            if answer is not None:
                plans[w.role] = answer
        live = [w for w in live if w.role in plans]
        rounds = math.ceil(o.rounds / passes(row, o))
        if plans:
            longest = max(p["n"] * p["each"] for p in plans.values())
            rounds = max(2, min(rounds, int(o.budget / max(longest, 1e-9))))
        times = {w.role: [] for w in live}
        started, i = time.monotonic(), 0
        while i < rounds or (i < 4 * rounds and time.monotonic() - started < 2 * o.budget and unsettled(times)):
            for w in (live if i % 2 == 0 else live[::-1]):
                if w.role not in times:
                    continue
                p = plans[w.role]
                warm = max(1, p["n"] // 10) if p["n"] * p["each"] < 1.0 else 0
                answer = guarded(w, dict(cmd="time", n=p["n"], warm=warm))
                if answer is None:
                    times.pop(w.role)
                else:
                    times[w.role].append(answer["seconds"] / p["n"])
            i += 1
        for role, each in times.items():
            each = gathered[role] = gathered.get(role, []) + each
            cells[role] = dict(min=min(each), median=statistics.median(each), rounds=len(each), n=plans[role]["n"])
        cells.update(failed)
        row["cells"] = {r: cells[r] for r, _, _ in everyone}
        if model:
            for w in live:
                if w.process is not None:
                    guarded(w, dict(cmd="drop"))
        if o.memory and row["suite"] in ("train", "deploy"):
            for role, kind, exe in everyone:
                if "min" not in cells.get(role, {}) or "memory" in cells[role]:
                    continue
                w = self.worker(role, kind, exe, row["threads"], fresh=True)
                try:
                    answer = w.ask(self.request(row) | mode_of(role), timeout)
                    cells[role].update({k: answer[k] for k in ("memory", "took") if k in answer})
                except Trouble:
                    pass
                w.close()
        finish(row)

    def progress(self, index, total, row):
        line = f"[{index}/{total}] {row['label']} {row['threads']}t {row['dtype']}" + ("" if row["mode"] == "eager" else " " + row["mode"])
        if "cells" in row:
            line += "  " + "  ".join(f"{r} {cell_text(c)}" for r, c in row["cells"].items())
            if row.get("ratio"):
                line += f"  {row['ratio']:.2f}x"
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns
            sys.stderr.write("\r\033[K" + line[:width - 1])
            sys.stderr.flush()
        elif time.monotonic() - self.shown > 15:
            self.shown = time.monotonic()
            sys.stderr.write(line + "\n")

    def stop_workers(self):
        for w in self.workers.values():
            w.close()
        self.workers.clear()

    def close(self):
        self.stop_workers()
        shutil.rmtree(self.folder, ignore_errors=True)


def mode_of(role):
    """What a role changes in a request."""
    return dict(mode="compiled") if role == "compile" else {}


def unsettled(times):
    """Whether some framework's two fastest rounds still differ by more than 3 %."""
    return any(len(t) > 1 and sorted(t)[1] > 1.03 * min(t) for t in times.values())


def hash_text(text):
    return zlib.crc32(text.encode())


def finish(row):
    """Ratios of a row: peer / oar, of the minima."""
    cells = row["cells"]
    own = cells.get("oar", {}).get("min")
    peers = {r: c["min"] for r, c in cells.items() if r != "oar" and "min" in c}
    row["ratios"] = {r: t / own for r, t in peers.items()} if own else {}
    row["ratio"] = min(row["ratios"].values()) if row["ratios"] else None
    row["best_peer"] = min(peers, key=peers.get) if peers else None
    row["noise"] = max((c["median"] / c["min"] - 1 for c in cells.values() if "min" in c), default=None)
