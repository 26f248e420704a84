"""``LogWriter``: what it writes, read back; mistakes; threads and processes."""

import os
import subprocess
import sys
import threading
import time
import zlib

import numpy as np
import pytest

import oar
from oar.board import LogWriter
from oar.board._media import curve_of, grid, png
from oar.board._projector import read_embedding
from oar.board._store import Store
from oar.vision import image_load


def read(folder):
    store = Store(folder)
    store.refresh()
    assert store.problems() == []
    return store


def points(store, kind, tag, run="."):
    return list(store.runs[run].series[kind][tag])


def value(store, kind, tag, run="."):
    return store.point(kind, run, tag, -1)


@pytest.mark.parametrize("number", [1.5, np.float32(1.5), np.array([1.5]), oar.to_tensor(1.5), oar.to_tensor([1.5], dtype="bfloat16")])
def test_scalars(tmp_path, number):
    with LogWriter(tmp_path) as writer:
        writer.add_scalar("train/loss", number, 3, walltime=1_700_000_000_500)
        writer.add_scalar("train/loss", float("nan"), 4)
    (first, second) = points(read(tmp_path), "scalars", "train/loss")
    assert first == (3, 1_700_000_000.5, 1.5) and second[0] == 4 and np.isnan(second[2])


def test_several_scalars_are_runs_of_one_chart(tmp_path):
    with LogWriter(tmp_path / "run") as writer:
        writer.add_scalars("a/b", {"x": 1, "y": 2}, 5)
    store = read(tmp_path)
    assert {name: points(store, "scalars", "a/b", name)[0][2] for name in store.runs if "a_b" in name} == {
        "run/a_b_x": 1.0, "run/a_b_y": 2.0}


def test_histogram(tmp_path):
    values = np.random.default_rng(0).normal(size=500)
    with LogWriter(tmp_path) as writer:
        writer.add_histogram("h", np.append(values, [np.nan, np.inf]), 1, buckets=7)
    ((_, _, found),) = points(read(tmp_path), "histograms", "h")
    counts, edges = np.histogram(values, 7)
    assert found.counts == tuple(counts) and found.edges == tuple(edges)


@pytest.mark.parametrize("form", ["HWC", "CHW", "HW", "NCHW"])
def test_images_are_what_was_passed(tmp_path, form):
    pixels = np.random.default_rng(1).integers(0, 256, (5, 7, 1 if form == "HW" else 3), dtype="uint8")
    given = {"HWC": pixels, "CHW": pixels.transpose(2, 0, 1), "HW": pixels[..., 0], "NCHW": pixels.transpose(2, 0, 1)[None]}[form]
    with LogWriter(tmp_path / "run") as writer:
        writer.add_image("i", given, 1, dataformats=form)
        writer.add_image("scaled", oar.to_tensor(given / 255), 1, dataformats=form)
    store = read(tmp_path)
    for tag in ("i", "scaled"):
        blob = value(store, "images", tag, "run")
        (tmp_path / "i.png").write_bytes(blob.data)
        decoded = np.asarray(image_load(str(tmp_path / "i.png"), backend="cv2"))[..., ::-1]
        assert (blob.width, blob.height) == (7, 5)
        assert (decoded.reshape(5, 7, -1) == pixels).all()


def test_png_of_any_number_of_channels():
    for channels in (1, 2, 3, 4):
        pixels = np.random.default_rng(channels).integers(0, 256, (3, 4, channels), dtype="uint8")
        data = png(pixels)
        at, content, head = 8, b"", b""
        while at < len(data):
            length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
            body = data[at + 8 : at + 8 + length]
            assert zlib.crc32(name + body) == int.from_bytes(data[at + 8 + length : at + 12 + length], "big")
            content, head = content + body * (name == b"IDAT"), head or body
            at += 12 + length
        assert head[8] == 8 and head[9] == {1: 0, 2: 4, 3: 2, 4: 6}[channels]
        lines = np.frombuffer(zlib.decompress(content), "uint8").reshape(3, -1)
        assert (np.cumsum(lines[:, 1:], axis=0, dtype="uint8") == pixels.reshape(3, -1)).all() and (lines[:, 0] == 2).all()


def test_image_matrix():
    images = np.arange(5 * 2 * 3).reshape(5, 2, 3, 1)
    whole = grid(images, -1, 1.0)
    assert whole.shape == (6, 6, 1)
    assert (whole[:2, 3:] == images[1]).all() and (whole[2:4, :3] == images[2]).all() and (whole[4:, :3] == images[4]).all() and (whole[4:, 3:] == 0).all()
    assert grid(images, 1, 2.0).shape == (4, 30, 1)
    assert (grid(images, 1, 2.0)[::2, ::2] == grid(images, 1, 1.0)).all()


def test_text_sound_name(tmp_path):
    with LogWriter(tmp_path, display_name="a name") as writer:
        writer.add_text("t", "größer\n<b>", 2)
        writer.add_audio("a", oar.to_tensor([0.0, 0.5, -1.0, 7.0]), 2, sample_rate=4000)
    store = read(tmp_path)
    assert value(store, "text", "t") == "größer\n<b>" and store.runs["."].display == "a name"
    sound = value(store, "audio", "a").data
    assert sound[:4] == b"RIFF" and int.from_bytes(sound[24:28], "little") == 4000
    assert np.frombuffer(sound[44:], "<i2").tolist() == [0, 16383, -32767, 32767]


def test_curves_agree_with_counting():
    chance = np.random.default_rng(2)
    labels, scores = chance.integers(0, 2, 200), chance.random(200)
    thresholds = np.arange(21) / 20
    for form in ("pr", "roc"):
        curve = curve_of(form, labels, scores, 21, None)
        for i, threshold in enumerate(thresholds):
            chosen = np.floor(scores * 20) >= round(threshold * 20)
            tp, fp = (chosen & (labels == 1)).sum(), (chosen & (labels == 0)).sum()
            tn, fn = (~chosen & (labels == 0)).sum(), (~chosen & (labels == 1)).sum()
            assert [part[i] for part in curve.counts] == [tp, fp, tn, fn]
            rates = (tp / (tp + fp) if tp + fp else 0, tp / (tp + fn)) if form == "pr" else (tp / (tp + fn), fp / (fp + tn))
            assert (curve.y[i], curve.x[i]) == pytest.approx(rates)


def test_hparams_and_embeddings(tmp_path):
    vectors = np.random.default_rng(3).normal(size=(6, 4)).astype("float32")
    with LogWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "layers": 3, "kind": "sgd", "fast": True, "none": None}, ["acc", "loss"])
        writer.add_embeddings("a tag/b", oar.to_tensor(vectors), [list("abcdef"), list("ghijk\t")], ["first", "second"])
        writer.add_embeddings("other", vectors[:2], ["x", "y"])
    run = read(tmp_path).runs["."]
    assert run.hparams == ({"lr": 0.1, "layers": 3.0, "kind": "sgd", "fast": True}, ("acc", "loss"))
    assert list(run.embeddings) == ["a tag/b", "other"]
    found, labels, header = read_embedding(tmp_path, tmp_path, run.embeddings["a tag/b"])
    assert np.allclose(found, vectors, rtol=1e-6) and header == ["first", "second"]
    assert labels[0] == ["a", "g"] and labels[5] == ["f", " "]


@pytest.mark.parametrize("model", ["layer", "function", "captured", "static"])
def test_graphs(tmp_path, model):
    net = oar.nn.Sequential(oar.nn.Linear(3, 4), oar.nn.ReLU())
    spec = [oar.static.InputSpec([-1, 3], "float32", "x")]
    with LogWriter(tmp_path) as writer:
        if model == "static":
            program = oar.static.Program()
            oar.enable_static()
            try:
                with oar.static.program_guard(program):
                    oar.nn.functional.relu(oar.static.data("x", [2, 3]))
            finally:
                oar.disable_static()
            writer.add_graph(program)
        else:
            writer.add_graph({"layer": net, "function": lambda x: net(x), "captured": oar.jit.capture(net, spec)}[model],
                             None if model == "captured" else spec)
    store = read(tmp_path)
    text = value(store, "graphs", "program")
    assert text.startswith("program ") and "relu(" in text
    if model == "layer":
        assert text.startswith("program Sequential") and b"sequential/0/linear" in value(store, "graphs", "graph")


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda w: w.add_scalar("a", [1, 2], 0), ValueError, "2 elements"),
    (lambda w: w.add_scalar("a", "text", 0), TypeError, "not numbers"),
    (lambda w: w.add_scalar("", 1, 0), TypeError, "not empty"),
    (lambda w: w.add_scalars("a", [1], 0), TypeError, "dict"),
    (lambda w: w.add_histogram("a", [np.nan], 0), ValueError, "no finite"),
    (lambda w: w.add_histogram("a", [1], 0, buckets=0), ValueError, "buckets is 0"),
    (lambda w: w.add_image("a", np.zeros((2, 3, 9)), 0), ValueError, "9 channels"),
    (lambda w: w.add_image("a", np.zeros((2, 3)), 0), ValueError, "dataformats"),
    (lambda w: w.add_image_matrix("a", np.zeros((2, 3, 9)), 0), ValueError, "dataformats"),
    (lambda w: w.add_audio("a", np.zeros((2, 3)), 0), ValueError, "one channel"),
    (lambda w: w.add_pr_curve("a", [1], [2.0], 0), ValueError, "from 0 to 1"),
    (lambda w: w.add_roc_curve("a", [1, 0], [0.5], 0), ValueError, "2 labels and 1"),
    (lambda w: w.add_embeddings("a", [1, 2]), ValueError, "one vector in each row"),
    (lambda w: w.add_embeddings("a", [[1], [2]], ["x"]), ValueError, "one label for each"),
    (lambda w: w.add_hparams([], []), TypeError, "dict"),
    (lambda w: w.add_hparams({}, "acc"), TypeError, "list of tags"),
    (lambda w: w.add_graph(3), TypeError, "layer"),
    (lambda w: w.add_graph(oar.nn.ReLU()), ValueError, "input_spec"),
])
def test_mistakes(tmp_path, call, error, words):
    with LogWriter(tmp_path) as writer, pytest.raises(error, match=words):
        call(writer)


def test_records_wait_for_a_moment_only(tmp_path):
    writer = LogWriter(tmp_path, max_queue=3, flush_secs=0.2)
    size = os.path.getsize(writer.file_name)
    writer.add_scalar("a", 1, 1)
    assert os.path.getsize(writer.file_name) == size
    deadline = time.monotonic() + 10
    while os.path.getsize(writer.file_name) == size and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(points(read(tmp_path), "scalars", "a")) == 1
    for step in (2, 3, 4):
        writer.add_scalar("a", 1, step)
    assert len(points(read(tmp_path), "scalars", "a")) == 4
    writer.close()


def test_files(tmp_path):
    with LogWriter(tmp_path / "deep" / "er", filename_suffix=".end") as writer:
        assert writer.file_name.endswith(".end") and writer.logdir == str(tmp_path / "deep" / "er")
    for step in (1, 2):  # a name of one's own: the second adds to the first
        with LogWriter(tmp_path / "own", file_name="vdlrecords.log") as writer:
            writer.add_scalar("a", 1, step)
    assert [p.name for p in (tmp_path / "own").iterdir()] == ["events.out.tfevents.vdlrecords.log"]
    assert [p[0] for p in points(read(tmp_path), "scalars", "a", "own")] == [1, 2]
    with LogWriter(tmp_path / "none", write_to_disk=False) as writer:
        writer.add_scalar("a", 1, 1)
        writer.add_embeddings("e", [[1.0]], ["x"])
    assert not (tmp_path / "none").exists()


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with LogWriter(comment="tried") as writer:
        assert writer.logdir.startswith("runs") and writer.logdir.endswith(".tried")


def test_a_closed_writer_begins_a_new_file(tmp_path):
    writer = LogWriter(tmp_path)
    writer.add_scalar("a", 1, 1)
    writer.close()
    writer.add_scalar("a", 2, 2)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert [p[2] for p in points(read(tmp_path), "scalars", "a")] == [1.0, 2.0]


def test_threads_write_whole_records(tmp_path):
    with LogWriter(tmp_path, max_queue=4) as writer:
        def write(name):
            for step in range(200):
                writer.add_scalar(name, step, step)

        threads = [threading.Thread(target=write, args=(f"t{i}",)) for i in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    store = read(tmp_path)
    assert all([p[2] for p in points(store, "scalars", f"t{i}")] == list(range(200)) for i in range(4))


def test_a_forked_process_writes_to_its_own_file(tmp_path):
    writer = LogWriter(tmp_path)
    writer.add_scalar("parent", 1, 1)  # waits in memory, once
    child = os.fork()
    if child == 0:
        writer.add_scalar("child", 2, 2)
        writer.flush()
        os._exit(0)
    os.waitpid(child, 0)
    writer.close()
    store = read(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert len(points(store, "scalars", "parent")) == len(points(store, "scalars", "child")) == 1


def test_what_waits_is_written_when_the_program_ends(tmp_path):
    code = f"from oar.board import LogWriter; LogWriter({str(tmp_path)!r}).add_scalar('a', 1, 1)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert len(points(read(tmp_path), "scalars", "a")) == 1
