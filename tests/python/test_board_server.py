"""The server: its answers, whom it answers, and the command."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

import oar
from oar.board import LogWriter
from oar.board._server import _PAGE, BoardServer, serve
from oar.board._store import Store


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    vectors = np.random.default_rng(0).normal(size=(50, 6)) * [9, 5, 1, 1, 1, 1]
    for name in ("one", "two"):
        with LogWriter(folder / name, display_name=f"run {name}") as writer:
            for step in range(5):
                writer.add_scalar("a/b c&d", step * (1 if name == "one" else 2), step)
            writer.add_scalar("odd", float("nan"), 0)
            writer.add_scalar("odd", float("-inf"), 1)
            writer.add_histogram("h", [1.0, 2.0, 2.5], 1, buckets=3)
            writer.add_image("i", np.zeros((4, 5, 3), "uint8"), 1)
            writer.add_audio("s", np.zeros(10), 1)
            writer.add_text("t", "<script>alert(1)</script>", 1)
            writer.add_pr_curve("p", [1, 0], [0.9, 0.1], 1)
            writer.add_hparams({"lr": 0.1 if name == "one" else 0.2}, ["a/b c&d"])
            writer.add_graph(oar.nn.Linear(2, 2), [oar.static.InputSpec([3, 2])])
            writer.add_embeddings("e", vectors, [f"v{i}" for i in range(50)])
    (folder / "bad").mkdir()
    (folder / "bad" / "events.out.tfevents.1").write_bytes(bytes(50))
    return folder


@pytest.fixture(scope="module")
def server(logs):
    store = Store(logs)
    store.refresh()
    server = serve(store, "127.0.0.1", 0, 5.0, ["board.example"])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def request(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def ask(server, name, **query):
    answer, body = request(server, f"/api/{name}?{urlencode(query)}")
    assert answer.status == 200, body
    return json.loads(body)


def test_overview(server):
    found = ask(server, "overview")
    assert [(run["name"], run["display"]) for run in found["runs"] if not run["empty"]] == [("one", "run one"), ("two", "run two")]
    assert found["tags"]["scalars"]["a/b c&d"] == ["one", "two"] and found["tags"]["graphs"] == {"program": ["one", "two"]}
    assert found["tags"]["embeddings"] == {"e": ["one", "two"]} and found["tags"]["hparams"] == {"hparams": ["one", "two"]}
    ((file, problem),) = found["problems"]
    assert file == "bad/events.out.tfevents.1" and "no event file" in problem


def test_scalars(server):
    found = ask(server, "scalars", tag="a/b c&d")
    assert found["one"]["value"] == [0, 1, 2, 3, 4] and found["two"]["value"] == [0, 2, 4, 6, 8]
    assert found["one"]["step"] == [0, 1, 2, 3, 4] and found["one"]["seen"] == 5
    assert ask(server, "scalars", tag="odd")["one"]["value"] == ["NaN", "-Infinity"]
    assert ask(server, "scalars", tag="none") == {}


def test_other_kinds(server):
    ((step, _, edges, counts),) = ask(server, "histograms", tag="h")["one"]
    assert (step, edges, counts) == (1, [1.0, 1.5, 2.0, 2.5], [1, 0, 2])
    assert ask(server, "text", tag="t")["two"][0][2] == "<script>alert(1)</script>"
    ((_, _, form, x, y, _),) = ask(server, "curves", tag="p")["one"]
    assert form == "pr" and x[0] == 1.0 and y[0] == 0.5
    table = ask(server, "hparams")
    assert table["names"] == ["lr"] and table["metrics"] == ["a/b c&d"]
    assert [(row["run"], row["values"]["lr"], row["metrics"]["a/b c&d"]) for row in table["rows"]] == [("one", 0.1, 4), ("two", 0.2, 8)]
    graph = ask(server, "graph", run="one", tag="program")
    assert graph["svg"].startswith("<svg") and "linear(" in graph["text"] and not graph["note"]
    assert ask(server, "graph", run="one", tag="graph")["svg"].count("<g class=") == 5


@pytest.mark.parametrize(("kind", "tag", "start", "type"), [("images", "i", b"\x89PNG", "image/png"), ("audio", "s", b"RIFF", "audio/wav")])
def test_blobs(server, kind, tag, start, type):
    ((_, _, key),) = ask(server, kind, tag=tag)["one"]
    answer, body = request(server, f"/api/blob?{urlencode({'kind': kind, 'run': 'one', 'tag': tag, 'key': key})}")
    assert answer.status == 200 and body.startswith(start) and answer.getheader("Content-Type") == type
    assert request(server, f"/api/blob?{urlencode({'kind': kind, 'run': 'one', 'tag': tag, 'key': 'x' + key})}")[0].status == 404


def test_embeddings(server, logs):
    found = ask(server, "embedding", run="one", tag="e")
    points = np.asarray(found["points"])
    vectors = np.loadtxt(logs / "one/embeddings/e/tensors.tsv")
    centred = vectors - vectors.mean(0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    assert found["variance"] == pytest.approx((sizes**2 / (sizes**2).sum()).tolist())
    expected = centred @ axes.T
    for k in range(6):  # each axis up to its sign
        scaled = expected[:, k] / np.abs(expected).max()
        assert min(np.abs(points[:, k] - scaled).max(), np.abs(points[:, k] + scaled).max()) < 1e-3
    assert found["labels"][3] == ["v3"] and found["total"] == 50
    near = ask(server, "neighbours", run="one", tag="e", index=7, count=5, metric="euclidean")
    distances = np.linalg.norm(vectors - vectors[7], axis=1)
    assert [i for i, _ in near] == np.argsort(distances)[1:6].tolist()
    near = ask(server, "neighbours", run="one", tag="e", index=7, count=5, metric="cosine")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert [i for i, _ in near] == np.argsort(1 - unit @ unit[7])[1:6].tolist()


def test_what_has_not_changed_is_not_sent_again(server):
    for path in ("/api/overview", "/api/scalars?tag=odd", "/api/hparams"):
        answer, body = request(server, path)
        tag = answer.getheader("ETag")
        again, nothing = request(server, path, If_None_Match=tag)
        assert answer.status == 200 and body and again.status == 304 and nothing == b""
        assert request(server, path, If_None_Match='"other"')[0].status == 200


@pytest.mark.parametrize(("host", "allowed"), [
    ("127.0.0.1", True), ("localhost:8040", True), ("LOCALHOST", True), ("[::1]:8040", True), ("192.168.1.5:8040", True),
    ("board.example:1", True), (socket.gethostname(), True),
    ("evil.example", False), ("evil.example:8040", False), ("localhost.evil.example", False), ("127.0.0.1.evil.example", False),
    ("", False), ("localhost@evil.example", False), ("evil.example@localhost", False), ("[::1", False),
])
def test_hosts(server, host, allowed):
    """A site whose name was made to lead here (DNS rebinding) gets nothing."""
    for path in ("/", "/api/overview"):
        answer, body = request(server, path, Host=host)
        assert answer.status == (200 if allowed else 403)
        assert allowed or (b"allow-host" in body and b"runs" not in body)


@pytest.mark.parametrize("path", [
    "/../_server.py", "/%2e%2e/_server.py", "/..%2f_server.py", "//etc/passwd", "/page/../../__init__.py", "/_server.py",
    "/board.css/../../_server.py", "/api/", "/api/nothing", "/api/../../_server.py", "/\x00"[:1] + "%00",
    "/api/blob?kind=images&run=../..&tag=i&key=x", "/api/graph?run=..&tag=program", "/api/embedding?run=none&tag=e",
])
def test_nothing_outside_is_served(server, path):
    answer, body = request(server, path)
    assert answer.status == 404 and b"import" not in body


@pytest.mark.parametrize("path", [
    "/api/scalars", "/api/blob?kind=images", "/api/blob?kind=graphs&run=one&tag=program&key=x",
    "/api/neighbours?run=one&tag=e&index=-1&count=3&metric=cosine", "/api/neighbours?run=one&tag=e&index=1&count=x&metric=cosine",
])
def test_bad_questions(server, path):
    assert request(server, path)[0].status == 400


def test_other_methods(server):
    answer, body = request(server, "/", method="HEAD")
    assert answer.status == 200 and body == b"" and int(answer.getheader("Content-Length")) > 100
    assert request(server, "/", method="POST", Content_Length="0")[0].status == 501


def test_the_page_is_complete_and_safe(server):
    page = request(server, "/")[1].decode()
    files = {path.name for path in _PAGE.iterdir()}
    named = {name for name in files if name in page}
    for name in files:
        answer, body = request(server, f"/{name}")
        assert answer.status == 200 and answer.getheader("X-Content-Type-Options") == "nosniff"
        assert "default-src 'self'" in answer.getheader("Content-Security-Policy") and answer.getheader("Access-Control-Allow-Origin") is None
        named |= {other for other in files if f"./{other}".encode() in body}
        assert b"http://" not in body.replace(b"http://www.w3.org", b"") and b"https://" not in body  # it works offline
    assert named >= files - {"index.html"}


def test_the_next_free_port(logs):
    store = Store(logs)
    first = serve(store, "127.0.0.1", 0, 5.0)
    second = serve(store, "127.0.0.1", first.server_port, 5.0)
    assert first.server_port < second.server_port < first.server_port + 50
    first.server_close()
    second.server_close()
    with pytest.raises(OSError):
        BoardServer(store, ("203.0.113.1", 0), 5.0)


COMMAND = Path(oar.__file__).parent / "bin" / "oar"


@pytest.mark.parametrize("command", [[sys.executable, "-m", "oar.board"], [str(COMMAND), "board"]], ids=["python", "oar"])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_command(logs, command, end):
    # A job in the background of a script ignores interrupts, and its children inherit that.
    process = subprocess.Popen([*command, str(logs), "--port", "0", "--reload", "0.2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env={**os.environ, "OAR_PYTHON": sys.executable},
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    line = process.stdout.readline()
    assert line.startswith(f"oar board: {logs} at http://127.0.0.1:")
    port = int(line.split(":")[-1].split("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    deadline = time.monotonic() + 20
    while True:
        connection.request("GET", "/api/overview")
        found = json.loads(connection.getresponse().read())
        if not found["loading"] or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert len(found["runs"]) == 3
    process.send_signal(end)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 0 and errors == "" and out.strip() == "oar board: stopped"


@pytest.mark.parametrize(("words", "text"), [
    (["--help"], "usage: oar board"), ([], "LOGDIR"), (["logs", "--port", "x"], "--port"), (["logs", "--reload", "0"], "0.1 and 3600"),
    (["logs", "--host", "203.0.113.1"], "--host"), ([__file__], "is a file"), (["logs", "--points", "5"], "100 and 1000000"),
])
def test_mistakes_at_the_command(words, text):
    done = subprocess.run([sys.executable, "-m", "oar.board", *words], capture_output=True, text=True)
    assert done.returncode == (0 if words == ["--help"] else 2)
    assert text in done.stdout + done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(("content", "text"), [
    ("#!/bin/sh\necho /bare/python3\necho missing\n", "which /bare/python3 does not find"),
    ("#!/bin/sh\necho /bare/python3\necho broken ImportError: no\n", "the Python package, which /bare/python3 cannot import: ImportError: no"),
    ("#!/bin/sh\nexit 1\n", "cannot be run"),
])
def test_the_command_without_the_package(tmp_path, content, text):
    python = tmp_path / "python3"
    python.write_text(content)
    python.chmod(0o755)
    done = subprocess.run([str(COMMAND), "board", "logs"], capture_output=True, text=True, env={**os.environ, "OAR_PYTHON": str(python)})
    assert done.returncode == 2 and text in done.stderr
