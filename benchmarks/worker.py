"""One framework in one process, driven by bench.py over a pipe with JSON lines.

    EXE worker.py --kind paddle|torch --role NAME --threads N --channel IN,OUT

Requests name a case; the worker builds it, replies with a sample of its results
(for the comparison), and then times batches of calls on request.
"""

import argparse
import base64
import gc
import json
import os
import sys
import time
import traceback
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cases import deploy, models  # noqa: E402
from frameworks import Paddle, Torch  # noqa: E402
from runtimes import RUNTIMES  # noqa: E402

SAMPLE = 20000  # elements of a result that are sent to the driver

def leaves(x):
    if isinstance(x, (list, tuple)):
        return [y for item in x for y in leaves(item)]
    return [] if x is None else [x]


def sample(array):
    """Shape, and evenly spaced elements, of one result."""
    array = np.asarray(array)
    flat = array.reshape(-1)
    if flat.size > SAMPLE:
        flat = flat[np.linspace(0, flat.size - 1, SAMPLE).astype(np.int64)]
    wide = flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64)
    return dict(shape=list(array.shape), dtype=str(array.dtype), complex=flat.dtype.kind == "c",
                data=base64.b64encode(np.ascontiguousarray(wide).tobytes()).decode())


def memory(field):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def forget_peak():
    """Sets the peak of resident memory to what is resident now."""
    gc.collect()
    try:
        with open("/proc/self/clear_refs", "w") as handle:
            handle.write("5")
    except OSError:
        pass


class Worker:
    def __init__(self, framework, role):
        self.f = framework
        self.role = role
        self.run = None             # run(n): n calls
        self.keep = None

    def to_samples(self, results):
        return [sample(self.f.array(x) if self.f.is_tensor(x) else x) for x in leaves(results)]

    def prepare(self, q):
        self.run = self.keep = None
        gc.collect()
        if isinstance(self.f, tuple(RUNTIMES.values())):
            return self.prepare_file(q)
        if q["suite"] in ("train", "infer", "deploy"):
            return self.prepare_model(q)
        return self.prepare_expression(q)

    def prepare_expression(self, q):
        case, f = q["case"], self.f
        short = "p" if f.kind == "paddle" else "t"
        backward, record = q.get("backward", False), q.get("record", False)
        letters = "abcdefgh"[:len(case["inputs"])]
        wanted = case["grad"] if backward else letters if record else ""
        names = dict(f.names)
        names.update(ME=self.role, record=record, np=np, os=os, time=time)
        inputs = {}
        for letter in letters:
            array = np.load(os.path.join(q["inputs"], letter + ".npy"))
            inputs[letter] = f.tensor(array, letter in wanted and array.dtype.kind == "f", q["dtype"])
            del array
        names.update({k + "_": v for k, v in q["size"].items()})
        names.update(q["size"])
        names.update(inputs, inputs=inputs)
        if case["setup_" + short]:
            exec(compile(case["setup_" + short], "<setup>", "exec"), names)
        text = case[short] if case.get("stmt") else "r = " + case[short]

        # One call, to learn what comes out.
        with f.recording(bool(wanted) or record):
            exec(compile(text, "<case>", "exec"), names)
        r = names["r"]
        samples = self.to_samples(r)
        extra = names.get("extra", [])
        lines = text.split("\n")
        if backward:
            assert f.is_tensor(r), "a case with gradients gives one tensor"
            shape = [int(s) for s in r.shape]
            if int(np.prod(shape, dtype=np.int64)) == 1:
                names["seed_"] = None
                lines += ["r.backward()"]
            else:
                rng = np.random.default_rng(7)
                seed = f.tensor(rng.standard_normal(shape, dtype=np.float32), False, q["dtype"])
                names["seed_"] = f.cast(seed, r.dtype)
                lines += ["r.backward(seed_)"]
            code = compile("\n".join(lines[-1:]), "<backward>", "exec")
            exec(code, names)
            turned = case.get("transposed_t", "") if f.kind == "torch" else ""
            samples += self.to_samples([names[x].grad.t() if x in turned else names[x].grad for x in wanted])
            for x in wanted:
                exec(f.clear.format(x=x), names)
            for x in extra:
                exec(f.clear.format(x="x"), dict(x=x))

        # The call again, as a loop over local names.  data_ptr() asks for each
        # result's memory, so that a framework that defers work has to do it.
        if f.is_tensor(r):
            lines += ["r.data_ptr()"] if hasattr(r, "data_ptr") else ["r.numpy()"]
        elif isinstance(r, (list, tuple)) and r and all(f.is_tensor(x) for x in r):
            lines += ["for r_ in r: r_.data_ptr()"]
        for x in wanted if backward else "":
            lines += [f"{x}.grad.data_ptr()", f.clear.format(x=x)]
        if backward and extra:
            lines += ["for x_ in extra: " + f.clear.format(x="x_")]
        names.pop("r", None)
        skip = {"__builtins__"}
        local = ", ".join(f"{k}={k}" for k in names if k not in skip and k.isidentifier())
        source = f"def run(n_times_, {local}):\n    for i_ in range(n_times_):\n" + "\n".join("        " + s for s in lines)
        exec(compile(source, "<timed>", "exec"), names)
        run, grad_on = names["run"], bool(wanted) or record
        del r

        def timed(n):
            with f.recording(grad_on):
                run(n)
        self.run, self.keep = timed, names
        return dict(samples=samples)

    # ---------------------------------------------------------------- models

    def fill(self, model):
        """The same weights in every framework, from their names alone."""
        linear = self.f.linear_types()
        seen, count, parameters = set(), 0, []
        for prefix, layer in self.f.layers(model):
            for name, p in self.f.own_parameters(layer):
                if id(p) in seen:
                    continue
                seen.add(id(p))
                shape = [int(s) for s in p.shape]
                flip = self.f.kind == "paddle" and isinstance(layer, linear) and len(shape) == 2
                full = (prefix + "." if prefix else "") + name
                value = models.initial(full, shape[::-1] if flip else shape)
                self.f.set_value(p, value.T if flip else value)
                count += int(np.prod(shape))
                parameters.append(p)
        return count, parameters

    def prepare_model(self, q):
        f, spec = self.f, models.MODELS[q["name"]]
        train, dtype = q["suite"] == "train", q["dtype"]
        if dtype != "float32":
            self.check_autocast(dtype)
        before = memory("VmRSS")
        masks = getattr(f.names["attention"], "masks", None)
        if masks is not None and "length" in spec["config"]:
            masks[spec["config"]["length"]]             # made now: not inside a captured program
        model = f.build(q["name"])
        count, parameters = self.fill(model)
        data = models.data(q["name"], q["batch"])
        x, y = (f.tensor(a, False, "float32") for a in data)
        model.train() if train else model.eval()
        call = f.compiled(model) if q["mode"] == "compiled" else model
        forget_peak()               # that of building the model
        if train:
            opt = f.optimizer(spec["optimizer"], parameters, spec["lr"], spec.get("weight_decay", 0.0), spec.get("momentum", 0.0))

            def update(x, y):
                if dtype == "float32":
                    loss = call(x, y)
                else:
                    with f.autocast(dtype):
                        loss = call(x, y)
                loss.backward()
                opt.step()
                f.zero(opt)
                return loss
            whole = f.compiled(update) if q["mode"] == "step" else update

            def step():
                loss = whole(x, y)
                loss.data_ptr()
                return loss
            started = time.perf_counter()
            results = [float(np.asarray(f.array(step())).reshape(-1)[0]) for _ in range(3)]
            took = (time.perf_counter() - started) / 3
            samples = [sample(np.array(results))]
        else:
            def step():
                with f.inference():
                    if dtype == "float32":
                        out = call(x)
                    else:
                        with f.autocast(dtype):
                            out = call(x)
                    out.data_ptr()
                    return out
            started = time.perf_counter()
            samples = self.to_samples(step())
            took = time.perf_counter() - started

        def run(n):
            for _ in range(n):
                step()
            if train:
                for p in parameters:
                    p.data_ptr()
        self.run, self.keep = run, (model, call)
        return dict(samples=samples, parameters=count, took=took,
                    memory=memory("VmHWM") - before)

    def prepare_file(self, q):
        """Loads a file and runs it once; says how long that took, and how much memory it needs."""
        inputs = deploy.inputs(q["name"], q["batch"])
        forget_peak()
        before, started = memory("VmRSS"), time.perf_counter()
        call = self.f.load(q["files"][self.f.__class__.__name__ == "OarPredictor"], inputs, q["dtype"])
        results = call()
        took = time.perf_counter() - started
        samples = [sample(array) for array in self.f.arrays(results)]

        def run(n):
            for _ in range(n):
                call()
        self.run, self.keep = run, call
        return dict(samples=samples, took=took, memory=memory("VmHWM") - before)

    def check_autocast(self, dtype):
        """Real Paddle ignores auto_cast on a CPU; then a bfloat16 time would be a float32 time."""
        x = self.f.tensor(np.ones((4, 4), np.float32), False, "float32")
        with self.f.autocast(dtype):
            y = self.f.module.matmul(x, x)
        if dtype not in str(y.dtype):
            raise RuntimeError(f"automatic mixed precision has no effect here: matmul gave {y.dtype}, not {dtype}")

    # ---------------------------------------------------------------- timing

    def time(self, n, warm):
        if warm:
            self.run(warm)
        gc.disable()
        try:
            started = time.perf_counter()
            self.run(n)
            return time.perf_counter() - started
        finally:
            gc.enable()

    def calibrate(self, target):
        """How many calls last about `target` seconds."""
        n, took = 1, self.time(1, 0)
        if took > 20 * target:              # so long that one call is enough of a warm-up
            return dict(n=1, each=took)
        took = self.time(1, 1)
        while took < target / 2 and n < 1 << 24:
            n = max(n + 1, min(n * 10, int(n * target / max(took, 1e-7)) + 1))
            took = self.time(n, 0)
        n = max(1, round(n * target / took + 0.5)) if took < target else n
        return dict(n=n, each=took / max(n, 1))


KINDS = {"paddle": Paddle, "torch": Torch} | RUNTIMES


def serve(worker, source, sink):
    for line in source:
        q = json.loads(line)
        started = time.perf_counter()
        try:
            if q["cmd"] == "prepare":
                answer = worker.prepare(q)
            elif q["cmd"] == "calibrate":
                answer = worker.calibrate(q["target"])
            elif q["cmd"] == "time":
                answer = dict(seconds=worker.time(q["n"], q["warm"]))
            elif q["cmd"] == "drop":
                worker.run = worker.keep = None
                gc.collect()
                answer = {}
            else:
                answer = dict(error="unknown command")
        except (Exception, SystemExit) as e:
            text = f"{type(e).__name__}: {e}".strip()
            answer = dict(error=text[:2000], trace=traceback.format_exc()[-3000:])
            worker.run = worker.keep = None
        answer["elapsed"] = time.perf_counter() - started
        sink.write(json.dumps(answer) + "\n")
        sink.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=list(KINDS), required=True)
    parser.add_argument("--role", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--channel", required=True)
    arguments = parser.parse_args()
    read, write = map(int, arguments.channel.split(","))
    source, sink = os.fdopen(read, "r"), os.fdopen(write, "w")
    try:
        framework = KINDS[arguments.kind](arguments.threads)
    except BaseException as e:
        sink.write(json.dumps(dict(error=f"{type(e).__name__}: {e}")) + "\n")
        sink.flush()
        raise
    gc.collect()
    gc.freeze()                     # later collections need not look at the framework's own objects
    native = getattr(getattr(framework, "names", {}).get("attention"), "native", None)
    sink.write(json.dumps(dict(version=str(framework.version), threads=framework.threads, numpy=np.__version__,
                               python=sys.version.split()[0],
                               note="" if native is None else f"own attention call: plain {native[False]}, causal {native[True]}")) + "\n")
    sink.flush()
    serve(Worker(framework, arguments.role), source, sink)


if __name__ == "__main__":
    main()
