"""Every row to be measured."""

from cases import deploy, models, ops, selftest, tiny

def plan(options):
    """Every row to be measured, as dictionaries."""
    rows = []
    wanted = [f for f in (options.filter or "").split(",") if f]

    def add(**row):
        row["label"] = " ".join(str(row[k]) for k in ("suite", "case", "size", "what") if row[k])
        if not wanted or any(w in row["label"] for w in wanted):
            rows.append(row)

    for threads in options.threads:
        for dtype in options.dtype:
            for suite in options.suite:
                if suite == "tiny" and dtype == "float32" and threads == options.threads[0]:
                    for c in tiny.CASES:
                        for record in (False, True):
                            if c["record"] if record else c["plain"]:
                                add(suite=suite, case=c["name"], family="tiny", size="", what="recording" if record else "",
                                    dtype=dtype, threads=threads, mode="eager", spec=c, sizes={}, record=record)
                            elif record and not c["plain"]:
                                add(suite=suite, case=c["name"], family="tiny", size="", what="", dtype=dtype,
                                    threads=threads, mode="eager", spec=c, sizes={}, record=True)
                elif suite == "selftest":
                    for c in selftest.CASES:
                        add(suite=suite, case=c["name"], family="selftest", size="", what="", dtype="float32",
                            threads=threads, mode="eager", spec=c, sizes={})
                elif suite == "ops":
                    for c in ops.CASES:
                        if dtype == "bfloat16" and not c["bf16"]:
                            continue
                        for size in (("small",) if options.quick else ("small", "large")):
                            for backward in (False, True):
                                if not backward or c["grad"]:
                                    add(suite=suite, case=c["name"], family=c["family"], size=size,
                                        what="fwd+bwd" if backward else "fwd", dtype=dtype, threads=threads, mode="eager",
                                        spec=c, sizes=c[size], backward=backward)
                elif suite == "deploy":
                    for name, (batches, heavy) in deploy.cases().items():
                        for batch in () if options.quick and heavy else batches:
                            add(suite=suite, case=name, family="deploy", size=f"b{batch}", what="", dtype=dtype, threads=threads,
                                mode="eager", batch=batch, check=deploy.FILES.get(name, {}).get("check", "close"))
                elif suite in ("train", "infer"):
                    for m in models.MODELS.values():
                        if options.quick and m["heavy"]:
                            continue
                        for batch in ((m["batch"],) if suite == "train" else m["infer"]):
                            for mode in options.modes:
                                if mode == "step" and suite != "train":
                                    continue
                                add(suite=suite, case=m["name"], family="model", size=f"b{batch}", what="", dtype=dtype,
                                    threads=threads, mode=mode, batch=batch,
                                    flops=models.flops(m["name"], batch, suite == "train"))
    # threads outermost, then dtype; the tiny suite once (its tensors never split)
    return rows


# Who is measured, by suite: the role, what kind of process plays it, and the option that names its interpreter.
FRAMEWORKS = (("oar", "paddle", "oar"), ("torch", "torch", "torch"), ("paddle", "paddle", "paddle"))
SERVERS = (("oar", "predictor", "oar"), ("torch", "torch", "torch"), ("compile", "torch", "torch"),
           ("onnxruntime", "onnxruntime", "onnxruntime"), ("openvino", "openvino", "onnxruntime"))


def roles(row, options):
    """Roles, kinds and interpreters of those that are installed and can run a row."""
    if options.as_torch:
        return [("oar", "torch", options.oar), ("torch", "torch", options.torch)]
    deployed = row["suite"] == "deploy"
    return [(role, kind, getattr(options, option)) for role, kind, option in (SERVERS if deployed else FRAMEWORKS)
            if getattr(options, option) and not (kind == "torch" and deployed and row["case"] in deploy.FILES)]


def passes(row, options):
    """In how many fresh processes a row is measured.  Short calls differ by some percent from one
    process to the next (addresses, hash seeds); the minimum over several evens that out."""
    return options.passes or {"tiny": 3, "ops": 2}.get(row["suite"], 1)


def key(row):
    return "/".join(str(row[k]) for k in ("suite", "case", "size", "what", "dtype", "threads", "mode"))
