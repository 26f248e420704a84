"""Writes the logs of other programs that test_board_peers.py reads.

    pip install tensorboard tensorboardX visualdl
    python make_peer_logs.py

Each file holds the same numbers, so that one test fits all.
"""

import math
import shutil
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
IMAGE = (np.arange(4 * 5 * 3) * 4).reshape(4, 5, 3).astype("uint8")
SOUND = np.sin(np.arange(64) * 0.3).astype("float32")
VECTORS = np.arange(12, dtype="float32").reshape(4, 3) / 8
LABELS, SCORES = np.array([1, 0, 1, 1, 0]), np.array([0.9, 0.2, 0.6, 0.1, 0.8])
VALUES = np.arange(50) / 10


def fresh(name: str) -> Path:
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def by_tensorboardx() -> None:
    """The API of PyTorch's SummaryWriter, and its messages."""
    from tensorboardX import SummaryWriter

    folder = fresh("tensorboardx")
    with SummaryWriter(str(folder)) as writer:
        for step in range(3):
            writer.add_scalar("loss", math.exp(-step), step, walltime=1000.0 + step)
            writer.add_histogram("values", VALUES + step, step, bins=10)
        writer.add_image("image", IMAGE, 1, dataformats="HWC")
        writer.add_text("text", "hello", 1)
        writer.add_pr_curve("pr", LABELS, SCORES, 1, num_thresholds=5)
        writer.add_embedding(VECTORS, metadata=["a", "b", "c", "d"], tag="vectors", global_step=1)
        writer.add_hparams({"lr": 0.1, "kind": "sgd", "fast": True}, {"accuracy": 0.75}, name="trial")


def by_tensorboard() -> None:
    """Summaries as TensorFlow 2 writes them: tensors with the name of a plug-in."""
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.histogram import summary_v2 as histograms
    from tensorboard.plugins.image import metadata as images
    from tensorboard.plugins.scalar import summary_v2 as scalars
    from tensorboard.plugins.text import summary_v2 as texts
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util import tensor_util

    folder = fresh("tensorboard")
    writer = EventFileWriter(str(folder))

    def write(summary: Summary, step: int) -> None:
        if step > 0:  # only the first event of a tag says what it is
            for value in summary.value:
                value.ClearField("metadata")
        writer.add_event(Event(wall_time=1000.0 + step, step=step, summary=summary))

    for step in range(3):
        write(scalars.scalar_pb("loss", math.exp(-step)), step)
        write(histograms.histogram_pb("values", VALUES + step, buckets=10), step)
    png = (HERE / "one.png").read_bytes()
    tensor = tensor_util.make_tensor_proto([b"5", b"4", png, png])
    metadata = images.create_summary_metadata("", "")
    write(Summary(value=[Summary.Value(tag="image", metadata=metadata, tensor=tensor)]), 0)
    write(texts.text_pb("text", "hello"), 0)
    graph = GraphDef()
    graph.node.add(name="x", op="Placeholder")
    graph.node.add(name="y", op="Exp", input=["x"])
    graph.node.add(name="z", op="Add", input=["y", "x:0", "^x"])
    writer.add_event(Event(wall_time=1000.0, graph_def=graph.SerializeToString()))
    for step in (0, 6):
        write(scalars.scalar_pb("again", float(step)), step)
    writer.add_event(Event(wall_time=1010.0, step=6, session_log=SessionLog(status=SessionLog.START)))
    write(scalars.scalar_pb("again", 60.0), 6)
    writer.close()


def by_visualdl() -> None:
    np.float = float  # VisualDL 2.5 uses a name that NumPy has no more
    from visualdl import LogWriter

    folder = fresh("visualdl")
    with LogWriter(str(folder), display_name="shown") as writer:
        for step in range(3):
            writer.add_scalar("loss", math.exp(-step), step, walltime=1_000_000 + 1000 * step)
            writer.add_histogram("values", VALUES + step, step, buckets=10)
            writer.add_scalars("both", {"sin": math.sin(step), "cos": math.cos(step)}, step)
        writer.add_image("image", IMAGE, 1)
        writer.add_text("text", "hello", 1)
        writer.add_audio("sound", SOUND, 1, sample_rate=8000)
        writer.add_pr_curve("pr", LABELS, SCORES, 1, num_thresholds=5)
        writer.add_roc_curve("roc", LABELS, SCORES, 1, num_thresholds=5)
        writer.add_embeddings("vectors", VECTORS, metadata=["a", "b", "c", "d"])
        writer.add_hparams({"lr": 0.1, "kind": "sgd", "layers": 2}, ["accuracy"])
        writer.add_scalar("accuracy", 0.75, 0)


if __name__ == "__main__":
    from PIL import Image

    Image.fromarray(IMAGE).save(HERE / "one.png")
    by_tensorboardx()
    by_tensorboard()
    by_visualdl()
    for path in sorted(HERE.rglob("*")):  # neither a host's name nor a moment in the names
        if "tfevents" in path.name:
            path.rename(path.with_name("events.out.tfevents.1000000000.host"))
        elif "vdlrecords" in path.name:
            path.rename(path.with_name("vdlrecords.1000000000.log"))
