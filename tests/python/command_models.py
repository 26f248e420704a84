"""A small model in every format that can be written here, and files to feed it, for tests of the command."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_files

import oar

COMMAND = str(Path(oar.__file__).parent / "bin" / "oar")


def run(*arguments, cwd, status=0, **environment):
    """The standard output; standard error if another status than 0 is expected."""
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120,
                          env={**os.environ, "OAR_PYTHON": sys.executable, **environment})
    assert done.returncode == status, f"{arguments}\n{done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stdout + done.stderr


def write_models(folder: Path):
    """Files net.*; returns the network, which takes `image`, float32[batch, 3, 32, 32], and gives six scores."""
    oar.seed(5)
    net = oar.nn.Sequential(oar.nn.Conv2D(3, 4, 5, stride=3), oar.nn.ReLU(), oar.nn.Flatten(), oar.nn.Linear(400, 6))
    net.eval()
    spec = [oar.static.InputSpec(["batch", 3, 32, 32], "float32", "image")]
    oar.jit.save(net, str(folder / "net.oar"), input_spec=spec, metadata={"licence": "MIT"})
    oar.jit.save(net, str(folder / "pair"), input_spec=spec)
    oar.onnx.export(net, str(folder / "net"), spec)
    oar.inference.paddle.save(net, str(folder / "pir"), spec)
    return net


def write_inputs(folder: Path):
    batch = np.random.default_rng(3).standard_normal((2, 3, 32, 32)).astype("float32")
    np.save(folder / "batch.npy", batch)
    np.savez(folder / "batch.npz", image=batch)
    pixels = np.random.default_rng(4).integers(0, 256, (32, 32, 3)).astype("uint8")
    write_png(folder / "photo.png", pixels)
    (folder / "labels.txt").write_text("".join(f"class {i}\n" for i in range(6)))
    (folder / "program.txt").write_text(str(oar.jit.capture(lambda x: x.exp() + x.exp(), [oar.ones([2])])))
    return batch, pixels


def write_png(path: Path, pixels):
    import struct
    import zlib

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_step(folder: Path, least=1):
    """A training step, step.oar, and its data, train.npz."""
    oar.seed(7)
    net = oar.nn.Sequential(oar.nn.Linear(4, 16), oar.nn.ReLU(), oar.nn.Dropout(0.0), oar.nn.Linear(16, 3))
    optimizer = oar.optimizer.AdamW(learning_rate=0.01, parameters=net.parameters())

    def step(x, label):
        loss = oar.nn.functional.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    spec = oar.static.InputSpec
    oar.jit.save(step, str(folder / "step.oar"), input_spec=[spec(["batch", 4], "float32", "x", stop_gradient=True),
                                                             spec(["batch"], "int64", "label", stop_gradient=True)])
    x = np.random.RandomState(0).randn(50, 4).astype("float32")
    label = x[:, :3].argmax(axis=1)
    np.savez(folder / "train.npz", x=x, label=label)
    return x, label


def write_integer_model(folder: Path):
    """embed.onnx: takes `ids`, int64[rows], and gives rows of a table."""
    nodes = [onnx_files.node("Gather", ["table", "ids"], ["rows"])]
    table = np.arange(12, dtype="float32").reshape(4, 3)
    (folder / "embed.onnx").write_bytes(onnx_files.model(nodes, [onnx_files.port("ids", ["rows"], "int64")], ["rows"], {"table": table}))
    return table
