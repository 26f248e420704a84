"""The processes that are measured: one per framework, stopped while another one works."""

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
THREAD_VARIABLES = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS",
                    "NUMEXPR_NUM_THREADS", "OAR_NUM_THREADS", "FLAGS_paddle_num_threads"]


class Trouble(Exception):
    """A worker died or did not answer."""


# glibc returns large blocks to the system or keeps them, depending on what was freed before; a
# case's time can differ sevenfold between two processes of one framework for that reason alone.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}


def environment(threads, keep_memory=False):
    env = dict(os.environ)
    if keep_memory:
        env.update(KEEP_MEMORY)
    for name in THREAD_VARIABLES:
        env[name] = str(threads)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return env


def die_with_parent():
    """Linux: a stopped worker must not outlive a killed driver."""
    try:
        import ctypes
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except Exception:
        pass


class Worker:
    """A framework's process.  It is stopped (SIGSTOP) whenever it has nothing to do, so that
    spinning threads of one framework take no time from another."""

    def __init__(self, role, kind, exe, threads, folder, keep_memory):
        self.role, self.kind, self.exe, self.threads, self.folder = role, kind, exe, threads, folder
        self.keep_memory = keep_memory
        self.process = None
        self.info = None
        self.starts = 0
        self.refused = None                 # why it cannot be started at all

    def command(self):
        script = str(HERE / "worker.py")
        front = [self.exe, "-m", "oar.as_paddle", script] if self.role == "oar" and self.kind == "paddle" else [self.exe, script]
        return front + ["--kind", self.kind, "--role", self.role, "--threads", str(self.threads)]

    def start(self):
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()
        self.starts += 1
        self.log = os.path.join(self.folder, f"{self.role}-{self.threads}-{self.starts}.log")
        with open(self.log, "wb") as log:
            try:
                self.process = subprocess.Popen(
                    self.command() + ["--channel", f"{down_read},{up_write}"], pass_fds=(down_read, up_write),
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                    env=environment(self.threads, self.keep_memory),
                    start_new_session=True, preexec_fn=die_with_parent)
            except OSError as e:
                for fd in (down_read, up_write, self.down, self.up):
                    os.close(fd)
                raise Trouble(f"cannot start: {e}")
        os.close(down_read)
        os.close(up_write)
        self.buffer = b""
        hello = self._answer(120)
        if "error" in hello:
            self.close()
            raise Trouble("cannot start: " + hello["error"])
        self.info = hello
        self._signal(signal.SIGSTOP)

    def ask(self, request, timeout):
        if self.refused:
            raise Trouble(self.refused)
        if self.process is None:
            try:
                self.start()
            except Trouble as e:
                if self.info is None:
                    self.refused = str(e)
                raise
        self._signal(signal.SIGCONT)
        try:
            os.write(self.down, (json.dumps(request) + "\n").encode())
        except OSError:
            pass                                # _answer sees the end of the pipe
        answer = self._answer(timeout)
        self._signal(signal.SIGSTOP)
        return answer

    def _answer(self, timeout):
        end = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.up], [], [], max(0.0, min(1.0, end - time.monotonic())))
            if ready:
                piece = os.read(self.up, 1 << 20)
                if not piece:
                    raise Trouble("crashed: " + self._obituary())
                self.buffer += piece
            elif time.monotonic() >= end:
                self.close()
                raise Trouble(f"no answer for {timeout:.0f} s; stopped")
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def _obituary(self):
        try:
            status = self.process.wait(10)
        except subprocess.TimeoutExpired:
            status = None
        self.close()
        what = "closed its pipe" if status is None else f"exit status {status}"
        if status is not None and status < 0:
            try:
                what = signal.Signals(-status).name
            except ValueError:
                what = f"signal {-status}"
        with open(self.log, "rb") as f:
            tail = f.read()[-4000:].decode("utf8", "replace").strip().split("\n")
        last = next((s.strip() for s in reversed(tail) if s.strip()), "")
        return what + (f" ({last[:200]})" if last else "")

    def _signal(self, number):
        try:
            os.kill(self.process.pid, number)
        except (ProcessLookupError, AttributeError):
            pass

    def close(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self.process.kill()
            self.process.wait()
        self.process = None
        for fd in (self.down, self.up):
            os.close(fd)


PEAK = """
import time, sys
import numpy as np
n = 1536
a = np.random.default_rng(0).random((n, n), dtype=np.float32); b = a.copy()
a @ b
best, end = 1e9, time.perf_counter() + 1.5
while time.perf_counter() < end:
    t = time.perf_counter(); a @ b; best = min(best, time.perf_counter() - t)
print(2 * n ** 3 / best)
"""


def measure_peak(exes, threads):
    """Best sgemm rate of numpy's BLAS over the given interpreters, FLOP/s."""
    best, where = 0.0, ""
    for exe in dict.fromkeys(exes):
        try:
            out = subprocess.run([exe, "-c", PEAK], env=environment(threads), capture_output=True, timeout=120, text=True)
            rate = float(out.stdout.strip() or 0)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            continue
        if rate > best:
            best, where = rate, exe
    return best, where
