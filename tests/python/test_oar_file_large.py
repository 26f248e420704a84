"""An `.oar` file of 2 GiB: it opens at once, and processes share what they read of it. The file has holes and takes no room on the disk."""

import json
import os
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import oar
from oar import _C, nn
from oar.static import InputSpec

ROWS, WIDTH = 1 << 19, 1024
GIGABYTES = ROWS * WIDTH * 4


def with_longer_table(content: bytes) -> tuple[bytes, int]:
    """The same model with a table of 2 GiB, whose content is left out; and the size of the file."""
    size = struct.unpack_from("<Q", content, 16)[0]
    header = json.loads(content[64 : 64 + size])
    data = content[-(-(64 + size) // 4096) * 4096 :]
    place = header["methods"]["forward"]["program"]
    begin, end = place["data_offsets"]
    program = data[begin:end].replace(b"float32[8, 1024]", f"float32[{ROWS}, {WIDTH}]".encode())
    table = -(-len(program) // 4096) * 4096
    header["methods"]["forward"] = {"program": {"data_offsets": [0, len(program)], "crc32c": _C.crc32c(program)}}
    name, = header["tensors"]
    header["tensors"] = {name: {"dtype": "F32", "shape": [ROWS, WIDTH], "data_offsets": [table, table + GIGABYTES], "crc32c": 0}}
    text = json.dumps(header).encode()
    start = -(-(64 + len(text)) // 4096) * 4096
    whole = start + table + GIGABYTES
    preamble = content[:16] + struct.pack("<QQI", len(text), whole, _C.crc32c(text)) + bytes(24)
    preamble += struct.pack("<I", _C.crc32c(preamble))
    return (preamble + text).ljust(start, b"\0") + program, whole


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "table.oar"
    net = nn.Embedding(8, WIDTH)
    net.eval()
    oar.jit.save(net, str(path), input_spec=[InputSpec([None], "int64", "ids")])
    content, size = with_longer_table(path.read_bytes())
    with open(path, "wb") as file:
        file.write(content)
        file.truncate(size)
        file.seek(size - 4 * WIDTH)
        file.write(np.arange(WIDTH, dtype="float32").tobytes())  # the last row
    assert path.stat().st_size > 2 << 30 and path.stat().st_blocks * 512 < 1 << 20
    return path


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_it_opens_in_milliseconds(large):
    oar.inference.create_predictor(oar.inference.Config(str(large)))
    before, start = resident(), time.perf_counter()
    predictor = oar.inference.create_predictor(oar.inference.Config(str(large)))
    assert time.perf_counter() - start < 0.2  # a few milliseconds; a reader of 2 GiB takes a second at the least
    row, = predictor.run([oar.to_tensor([ROWS - 1, 0])])
    np.testing.assert_array_equal(row.numpy(), [np.arange(WIDTH), np.zeros(WIDTH)])
    assert resident() - before < 100 << 20


READER = """
    import sys
    import oar
    predictor = oar.inference.create_predictor(oar.inference.Config(sys.argv[1]))
    predictor.run([oar.arange(0, 1 << 19, 1 << 9)])
    print("ready", flush=True)
    sys.stdin.readline()
    found, inside = {}, False
    for line in open("/proc/self/smaps"):
        if not line[0].isupper():
            inside = line.rstrip().endswith("table.oar")
        elif inside and line.endswith("kB\\n"):
            key, value = line.split(":")
            found[key] = found.get(key, 0) + int(value.split()[0])
    print(found["Size"], found["Rss"], found["Shared_Clean"], found["Private_Dirty"])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_processes_share_its_pages(large):
    readers = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(READER), str(large)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for _ in range(2)]
    assert [reader.stdout.readline() for reader in readers] == ["ready\n"] * 2
    for reader in readers:
        told, _ = reader.communicate("\n")
        size, resident_size, shared, changed = map(int, told.split())
        assert size >= GIGABYTES >> 10 and resident_size >= 4 * 1024  # a page of each row
        assert changed == 0
        if reader is readers[0]:  # the other one has ended when the second looks
            assert shared >= 0.9 * resident_size
