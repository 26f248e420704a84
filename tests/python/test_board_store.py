"""The reader: files that grow, break, are replaced; runs that begin again; bounded memory."""

import os
import random
import threading
from pathlib import Path

import pytest

from oar.board import LogWriter
from oar.board import _summaries as summaries
from oar.board._records import framed
from oar.board._series import ScalarSeries, Series
from oar.board._store import Store


def scalar(step, value=1.0, tag="a"):
    return framed(summaries.event(1000.0 + step, step, summaries.scalar(tag, value)))


def log(folder, content=b"", time=1):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.{time:010d}.host"
    path.write_bytes(framed(summaries.first_event(0.0)) + content)
    return path


def add(path, content):
    with open(path, "ab") as file:
        file.write(content)


def steps(store, run=".", tag="a"):
    return [point[0] for point in store.runs[run].series["scalars"][tag]]


def refreshed(folder):
    store = Store(folder)
    store.refresh()
    return store


def test_a_file_that_grows_byte_by_byte(tmp_path):
    whole = b"".join(scalar(step) for step in range(1, 5))
    path = log(tmp_path)
    store = refreshed(tmp_path)
    for i in range(len(whole)):
        add(path, whole[i : i + 1])
        store.refresh()
        complete = (i + 1) * 4 // len(whole)
        assert (steps(store) if complete else []) == list(range(1, complete + 1))
    assert store.problems() == []


@pytest.mark.parametrize("where", ["length", "data"])
def test_damage_loses_nothing_before_it(tmp_path, where):
    pieces = [scalar(step) for step in range(6)]
    broken = bytearray(pieces[3])
    broken[4 if where == "length" else 20] ^= 1
    path = log(tmp_path / "run", b"".join([*pieces[:3], bytes(broken), *pieces[4:]]))
    log(tmp_path / "other", scalar(1))
    store = refreshed(tmp_path)
    assert steps(store, "run") == ([0, 1, 2] if where == "length" else [0, 1, 2, 4, 5]) and steps(store, "other") == [1]
    ((name, problem),) = store.problems()
    assert name == f"run/{path.name}" and "checksum" in problem
    add(path, scalar(9))
    store.refresh()
    assert len(store.problems()) == 1 and (9 in steps(store, "run")) == (where == "data")


def test_files_cut_off_anywhere(tmp_path):
    whole = b"".join(scalar(step) for step in range(1, 4))
    for length in range(len(whole)):
        path = log(tmp_path / "run", whole[:length])
        store = refreshed(tmp_path)
        assert store.problems() == [] and len(store.runs["run"].series["scalars"].get("a", ())) == length * 3 // len(whole)
        path.unlink()


def test_hostile_files(tmp_path):
    chance = random.Random(1)
    for i in range(60):
        folder = tmp_path / str(i)
        folder.mkdir()
        name = chance.choice(["events.out.tfevents.1.x", "vdlrecords.1.log"])
        (folder / name).write_bytes(chance.randbytes(chance.choice([0, 1, 11, 12, 13, 200, 5000])))
    good = log(tmp_path / "good", scalar(1))
    add(good, framed(chance.randbytes(50)) + framed(b"") + scalar(2))
    store = refreshed(tmp_path)
    assert steps(store, "good") == [1, 2]
    assert [name for name, _ in store.problems() if name.startswith("good/")]
    # One message for each bad file, however often it is read.
    store.refresh()
    assert len({name for name, _ in store.problems()}) == len(store.problems()) > 20


def test_not_an_event_file(tmp_path):
    (tmp_path / "events.out.tfevents.txt").write_text("this is a text, and long enough")
    (tmp_path / "vdlgraph.1.log").write_text("{}")
    (tmp_path / "notes.txt").write_text("ignored")
    problems = dict(refreshed(tmp_path).problems())
    assert "no event file" in problems["events.out.tfevents.txt"] and "add_graph" in problems["vdlgraph.1.log"]
    assert len(problems) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(tmp_path):
    path = log(tmp_path, scalar(1))
    path.chmod(0)
    assert "cannot be read" in refreshed(tmp_path).problems()[0][1]


def test_runs_are_folders_and_come_and_go(tmp_path):
    store = refreshed(tmp_path / "later")
    assert not store.runs and "does not exist" in store.problems()[0][1]
    log(tmp_path / "later", scalar(1))
    log(tmp_path / "later" / "x" / "y", scalar(2))
    (tmp_path / "later" / "loop").symlink_to(tmp_path / "later")
    store.refresh()
    assert sorted(store.runs) == [".", "x/y"] and store.problems() == []
    (tmp_path / "later" / "x" / "y" / "events.out.tfevents.0000000001.host").unlink()
    store.refresh()
    assert sorted(store.runs) == ["."]


def test_a_run_that_begins_again_replaces_what_follows(tmp_path):
    first = log(tmp_path, b"".join(scalar(s, 1.0) for s in range(10)), time=1)
    store = refreshed(tmp_path)
    log(tmp_path, b"".join(scalar(s, 2.0) for s in range(6, 9)), time=2)
    add(first, scalar(11, 1.0))  # the process that was given up writes on
    store.refresh()
    expected = [(s, 1.0) for s in range(6)] + [(s, 2.0) for s in range(6, 9)]
    assert [(p[0], p[2]) for p in store.runs["."].series["scalars"]["a"]] == expected
    assert [(p[0], p[2]) for p in refreshed(tmp_path).runs["."].series["scalars"]["a"]] == expected  # in any order of reading


def test_lines_of_a_chart_go_with_their_file(tmp_path):
    """A VisualDL file at the root, with several lines of one chart, that is written anew."""
    data = (Path(__file__).parent / "data/board/visualdl/vdlrecords.1000000000.log").read_bytes()
    path = tmp_path / "vdlrecords.1000000000.log"
    path.write_bytes(data)
    store = refreshed(tmp_path)
    for _ in range(2):
        path.unlink()
        path.write_bytes(data)
        store.refresh()
        assert sorted(store.runs) == [".", "both_cos", "both_sin"] and steps(store, "both_sin", "both") == [0, 1, 2]
    path.unlink()
    store.refresh()
    assert not store.runs


def test_times_that_are_none(tmp_path):
    event = framed(summaries.event(float("nan"), 1, summaries.scalar("a", 1.0)))
    log(tmp_path, event + framed(summaries.event(float("inf"), 2, summaries.scalar("a", 1.0))))
    assert [point[:2] for point in refreshed(tmp_path).runs["."].series["scalars"]["a"]] == [(1, 0.0), (2, 0.0)]


def test_a_replaced_file_is_read_again(tmp_path):
    path = log(tmp_path, b"".join(scalar(s) for s in range(10)))
    store = refreshed(tmp_path)
    path.unlink()
    log(tmp_path, scalar(50))
    store.refresh()
    assert steps(store) == [50]
    path.write_bytes(path.read_bytes()[:40])  # cut off in place
    store.refresh()
    assert "a" not in store.runs["."].series["scalars"]


def test_long_series_are_thinned(tmp_path):
    series = ScalarSeries(100)
    for step in range(100_000):
        series.add((1, "f"), (step, 0.0, float(step)))
        if step % 997 == 0:
            assert series.last == (step, 0.0, float(step))
    found = [p[0] for p in series]
    assert 50 <= len(found) <= 101 and found[0] == 0 and found[-1] == 99_999 and series.seen == 100_000
    gaps = {b - a for a, b in zip(found[:-2], found[1:-1])}
    assert len(gaps) == 1  # evenly
    for most in (1, 2, 3):
        few = Series(most)
        for step in range(10):
            few.add((1, "f"), (step, 0.0, None))
            assert few.last[0] == step and len(list(few)) <= most + 1


def test_pieces_of_large_files(tmp_path, monkeypatch):
    monkeypatch.setattr("oar.board._store._PIECE", 100)
    for run in ("a", "b"):
        log(tmp_path / run, b"".join(scalar(s) for s in range(3000)))
    store = refreshed(tmp_path)
    assert steps(store, "a") == steps(store, "b") == list(range(3000))


def test_too_many_tags(tmp_path, monkeypatch):
    monkeypatch.setattr("oar.board._store._MOST_TAGS", 5)
    log(tmp_path, b"".join(scalar(1, tag=f"t{i}") for i in range(20)))
    store = refreshed(tmp_path)
    assert len(store.runs["."].series["scalars"]) == 5 and "more than 5 tags" in store.problems()[0][1]


def test_reading_while_others_ask(tmp_path):
    writer = LogWriter(tmp_path, max_queue=1)
    store = Store(tmp_path)
    store.start(0.01)
    failures = []

    def ask():
        try:
            for _ in range(300):
                for points, seen in store.each("scalars", "a").values():
                    assert [p[0] for p in points] == list(range(seen))
                store.problems()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    [thread.start() for thread in threads]
    for step in range(500):
        writer.add_scalar("a", step, step)
    [thread.join() for thread in threads]
    writer.close()
    store.stop()
    store._stopping.clear()
    store.refresh()
    assert not failures and steps(store) == list(range(500))


def test_projector_files_stay_inside(tmp_path):
    from oar.board._projector import read_config, read_embedding

    logs = tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "secret.tsv").write_text("1\t2\n")
    (logs / "projector_config.pbtxt").write_text(
        '# a comment\nembeddings { tensor_name: "a" tensor_path: "../secret.tsv" sprite { single_image_dim: 3 } }\n'
        'embeddings: { tensor_path: "in.tsv" }\n')
    (logs / "in.tsv").write_text("1\t2\n3\t4\n")
    outside, inside = read_config(logs / "projector_config.pbtxt")
    with pytest.raises(ValueError, match="outside"):
        read_embedding(logs, logs, outside)
    assert read_embedding(logs, logs, inside)[0].tolist() == [[1, 2], [3, 4]]
    (logs / "projector_config.pbtxt").write_text("embeddings { ??? }")
    assert "projector_config" in refreshed(logs).problems()[0][1]
