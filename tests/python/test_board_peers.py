"""Logs that TensorBoard, PyTorch's API and VisualDL wrote: ``data/board/make_peer_logs.py`` made them."""

import math
from pathlib import Path

import numpy as np
import pytest

from oar.board._graphs import draw
from oar.board._projector import read_embedding
from oar.board._store import Store

LOGS = Path(__file__).parent / "data" / "board"
VALUES = np.arange(50) / 10


@pytest.fixture(scope="module")
def store():
    store = Store(LOGS)
    store.refresh()
    assert store.problems() == []
    return store


@pytest.mark.parametrize("run", ["tensorboard", "tensorboardx", "visualdl"])
def test_what_all_of_them_write(store, run):
    series = store.runs[run].series
    loss = list(series["scalars"]["loss"])
    assert [(p[0], p[1]) for p in loss] == [(step, 1000.0 + step) for step in range(3)]
    assert [p[2] for p in loss] == pytest.approx([math.exp(-step) for step in range(3)], rel=1e-6)
    for step, _, found in series["histograms"]["values"]:
        counts, edges = np.histogram(VALUES + step, 10)
        assert found.counts == tuple(counts) and found.edges == pytest.approx(tuple(edges))
    tag = {"tensorboardx": "text/text_summary"}.get(run, "text")
    assert store.point("text", run, tag, -1) == "hello"
    image = store.point("images", run, "image/1" if run == "tensorboard" else "image", -1)
    assert image.data.startswith(b"\x89PNG")


@pytest.mark.parametrize("run", ["tensorboardx", "visualdl"])
def test_curves(store, run):
    ((_, _, curve),) = store.runs[run].series["curves"]["pr"]
    assert curve.form == "pr" and curve.counts == ((3, 2, 2, 1, 0), (2, 1, 1, 1, 0), (0, 1, 1, 1, 2), (0, 1, 1, 2, 3))
    assert curve.y == pytest.approx([3 / 5, 2 / 3, 2 / 3, 1 / 2, 0]) and curve.x == pytest.approx([1, 2 / 3, 2 / 3, 1 / 3, 0])
    if run == "visualdl":
        ((_, _, roc),) = store.runs[run].series["curves"]["roc"]
        assert roc.y == pytest.approx([1, 2 / 3, 2 / 3, 1 / 3, 0]) and roc.x == pytest.approx([1, 1 / 2, 1 / 2, 1 / 2, 0])


def test_hparams(store):
    assert store.runs["tensorboardx/trial"].hparams == ({"lr": 0.1, "kind": "sgd", "fast": True}, ("accuracy",))
    assert store.runs["visualdl"].hparams == ({"lr": 0.1, "kind": "sgd", "layers": 2}, ("accuracy",))


def test_embeddings(store):
    expected = np.arange(12).reshape(4, 3) / 8
    (entry,) = store.runs["tensorboardx"].embeddings.values()
    vectors, labels, _ = read_embedding(LOGS, LOGS / "tensorboardx", entry)
    assert (vectors == expected).all() and labels == [["a"], ["b"], ["c"], ["d"]]
    vectors, labels, _ = store.point("embeddings", "visualdl", "vectors", -1)
    assert (np.asarray(vectors) == expected).all() and labels == [["a"], ["b"], ["c"], ["d"]]


def test_visualdl_alone(store):
    assert store.runs["visualdl"].display == "shown"
    assert [p[2] for p in store.runs["visualdl/both_sin"].series["scalars"]["both"]] == pytest.approx(
        [math.sin(step) for step in range(3)], rel=1e-6)
    sound = store.point("audio", "visualdl", "sound", -1)
    assert sound.data.startswith(b"RIFF") and sound.rate == 8000


def test_a_session_that_starts_again(store):
    assert [(p[0], p[2]) for p in store.runs["tensorboard"].series["scalars"]["again"]] == [(0, 0.0), (6, 60.0)]


def test_graph_of_tensorflow(store):
    picture = draw(store.point("graphs", "tensorboard", "graph", -1))
    assert picture.startswith("<svg") and picture.count('class="edge"') == 3
    assert all(f">{op}</text>" in picture for op in ("Placeholder", "Exp", "Add"))
