"""Tables, the comparison with an earlier run, the picture, the record."""

import json
import math
import os
import platform
import sys

from plan import key
from plan import roles as row_roles

def time_text(t):
    for unit, scale in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if t >= scale:
            return f"{t / scale:.3g} {unit}" if t / scale < 100 else f"{t / scale:.0f} {unit}"
    return f"{t * 1e9:.0f} ns"


def cell_text(c):
    return "-" if c is None else "error" if "error" in c else "WRONG" if "wrong" in c else time_text(c["min"]) if "min" in c else "-"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def report(rows, options, peaks, out=sys.stdout):
    def say(*parts):
        print(*parts, file=out)

    groups = {}
    for row in rows:
        groups.setdefault((row["suite"], row["threads"], row["dtype"]), []).append(row)
    for (suite, threads, dtype), members in groups.items():
        modes = list(dict.fromkeys(r["mode"] for r in members))
        everyone = {role: None for r in members for role, _, _ in row_roles(r, options)}
        roles = sorted(everyone, key=lambda r: r != "oar")
        lines = {}
        for r in members:
            lines.setdefault((r["case"], r["size"], r["what"]), {})[r["mode"]] = r
        peak = peaks.get(threads, 0)
        share = suite in ("train", "infer") and peak
        head = ["case"]
        for mode in modes:
            tag = "" if mode == "eager" else "/" + mode
            head += [r + tag for r in roles] + ["ratio" + tag, "noise"]
            if share:
                head += ["peak " + r for r in roles]
            if options.memory and suite == "train":
                head += ["MiB " + r for r in roles]
            if options.memory and suite == "deploy":
                head += [text + r for text in ("load ", "MiB ") for r in roles]
        table = []
        for (case, size, what), by_mode in lines.items():
            line = [" ".join(p for p in (case, size, what) if p)]
            for mode in modes:
                r = by_mode.get(mode)
                cells = r["cells"] if r else {}
                line += [cell_text(cells.get(role)) for role in roles]
                line += [f"{r['ratio']:.2f}x" + ("  <" if r["ratio"] < 1 else "") if r and r.get("ratio") else "-",
                         f"{100 * r['noise']:.0f} %" if r and r.get("noise") is not None else "-"]
                if share:
                    line += [f"{100 * r['flops'] / cells[role]['min'] / peak:.0f} %" if r and "min" in cells.get(role, {}) else "-"
                             for role in roles]
                if options.memory and suite == "train":
                    line += [f"{cells[role]['memory'] / 2**20:.0f}" if cells.get(role, {}).get("memory") else "-" for role in roles]
                if options.memory and suite == "deploy":
                    line += [time_text(cells[role]["took"]) if cells.get(role, {}).get("took") else "-" for role in roles]
                    line += [f"{cells[role]['memory'] / 2**20:.0f}" if cells.get(role, {}).get("memory") else "-" for role in roles]
            table.append(line)
        say(f"\n== {suite}, {threads} thread{'s' if threads > 1 else ''}, {dtype}")
        if share:
            say(f"   peak: {peak / 1e9:.0f} GFLOP/s, the best float32 matrix product of numpy's BLAS seen at the start")
        widths = [max(len(str(line[i])) for line in [head] + table) for i in range(len(head))]
        for line in [head] + table:
            say("  ".join(str(v).ljust(w) if i == 0 else str(v).rjust(w) for i, (v, w) in enumerate(zip(line, widths))).rstrip())
        for mode in modes:
            some = [r for r in members if r["mode"] == mode]
            tag = "" if len(modes) == 1 and mode == "eager" else f" ({mode})"
            for peer in roles[1:]:
                ratios = [r["ratios"][peer] for r in some if peer in r["ratios"]]
                if ratios:
                    say(f"geometric mean {peer}/oar{tag}: {geometric_mean(ratios):.2f}x over {len(ratios)} cases, "
                        f"{sum(x < 1 for x in ratios)} below 1.0x")
            best = [r["ratio"] for r in some if r["ratio"]]
            if best:
                say(f"geometric mean best peer/oar{tag}: {geometric_mean(best):.2f}x, {sum(x < 1 for x in best)} of {len(best)} below 1.0x")
            for role in roles:
                bad = [r for r in some if role in r["cells"] and "min" not in r["cells"][role]]
                if bad:
                    say(f"no time from {role}{tag}: {len(bad)} of {len(some)}")
    trouble = [(r, role, c) for r in rows for role, c in r["cells"].items() if "error" in c or "wrong" in c]
    if trouble:
        say("\n== without a time")
        for r, role, c in trouble:
            text = "WRONG " + c["wrong"] if "wrong" in c else "error: " + c["error"]
            say(f"{r['label']} {r['threads']}t {r['dtype']}" + (f" {r['mode']}" if r["mode"] != "eager" else "") + f" | {role}: " + " ".join(text.split())[:300])
    everything = [x for r in rows for x in r["ratios"].values()]
    if options.as_torch and everything:
        everything.sort()
        at = lambda q: everything[min(len(everything) - 1, int(q * len(everything)))]
        say(f"\nself-test, the same framework twice: geometric mean {geometric_mean(everything):.3f}x, "
            f"5 % {at(0.05):.3f}x, median {at(0.5):.3f}x, 95 % {at(0.95):.3f}x, extremes {everything[0]:.3f}x {everything[-1]:.3f}x, "
            f"within 5 %: {100 * sum(0.95 <= x <= 1.05 for x in everything) / len(everything):.0f} % of {len(everything)}")


def compare(old_path, rows, out=sys.stdout):
    """Ratios then and now: both were formed inside one run each, so machines need not be equal."""
    with open(old_path) as f:
        old = {r["key"]: r for r in json.load(f)["rows"]}
    print(f"\n== against {os.path.basename(old_path)} (ratio best peer / oar, then -> now)", file=out)
    moved, broken, mended = [], [], []
    for row in rows:
        before = old.get(key(row))
        if not before:
            continue
        if before.get("ratio") and row["ratio"]:
            moved.append((row["ratio"] / before["ratio"], before["ratio"], row))
        elif before.get("ratio") and "min" not in row["cells"].get("oar", {}):
            broken.append(row)
        elif not before.get("ratio") and row["ratio"]:
            mended.append(row)
    if moved:
        print(f"{len(moved)} cases in both: geometric mean of the change {geometric_mean([m[0] for m in moved]):.3f}x", file=out)
    for title, chosen in (("slower by more than 10 %", sorted((m for m in moved if m[0] < 0.9), key=lambda m: m[0])),
                          ("faster by more than 10 %", sorted((m for m in moved if m[0] > 1.1), key=lambda m: -m[0]))):
        print(f"{title}: {len(chosen)}", file=out)
        for change, before, row in chosen[:40]:
            print(f"  {before:.2f}x -> {row['ratio']:.2f}x  ({change:.2f})  {row['label']} {row['threads']}t {row['dtype']}", file=out)
    for title, chosen in (("no longer measured", broken), ("measured for the first time", mended)):
        if chosen:
            print(f"{title}: " + ", ".join(r["label"] for r in chosen[:40]), file=out)


def plot(path, rows):
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("no plot: matplotlib cannot be imported", file=sys.stderr)
        return
    rows = sorted((r for r in rows if r["ratio"]), key=lambda r: r["ratio"])
    figure, axis = plt.subplots(figsize=(9, max(3, 0.14 * len(rows))))
    axis.barh(range(len(rows)), [math.log2(r["ratio"]) for r in rows],
              color=["tab:red" if r["ratio"] < 1 else "tab:green" for r in rows])
    axis.set_yticks(range(len(rows)), [f"{r['label']} {r['threads']}t {r['dtype']} {r['mode']}" for r in rows], fontsize=5)
    axis.axvline(0, color="black", lw=0.8)
    axis.set_xlabel("log2 of best peer's time / oar's (right: oar is faster)")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def save(path, rows, options, run, peaks, finished):
    keep = ("suite", "case", "family", "size", "what", "dtype", "threads", "mode", "cells", "times", "ratios", "ratio", "best_peer", "noise", "flops")
    with open(path, "w") as f:
        json.dump(dict(format=1, finished=finished, machine=dict(cpu=cpu_name(), cores=os.cpu_count(), system=platform.platform()),
                       versions=run.versions, peak_sgemm_flops=peaks, malloc=options.malloc, rounds=options.rounds, target=options.target,
                       restarts=run.restarts, rows=[dict({k: r[k] for k in keep if k in r}, key=key(r)) for r in rows]), f, indent=1)
        f.write("\n")


def cpu_name():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
