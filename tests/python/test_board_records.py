"""The bytes of log files: framing, checksums, messages; damaged ones as well."""

import io
import random
import struct

import numpy as np
import pytest

from oar import _C
from oar import _protobuf as pb
from oar.board import _summaries as summaries
from oar.board._events import EventDecoder
from oar.board._items import Histogram
from oar.board._records import Damaged, EventFraming, VisualDLFraming, framed, masked_crc
from oar.board._tensors import read_tensor
from oar.board._visualdl import VisualDLDecoder


@pytest.mark.parametrize(("data", "expected"), [
    (b"", 0), (b"a", 0xC1D04330), (b"123456789", 0xE3069283),  # RFC 3720 has the three after these
    (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E),
])
def test_checksum(data, expected):
    assert _C.crc32c(data) == expected
    assert _C.crc32c(memoryview(data)) == expected


def test_checksum_of_any_length():
    """Bit by bit, for lengths around the eight bytes that one step takes."""
    for length in range(40):
        data = random.Random(length).randbytes(length)
        value = 0xFFFFFFFF
        for byte in data:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        assert _C.crc32c(data) == value ^ 0xFFFFFFFF


def test_bytes_of_a_scalar():
    event = summaries.event(1.0, 2, summaries.scalar("a", 0.5))
    assert event.hex() == "09" "000000000000f03f" "1002" "2a0a" "0a08" "0a0161" "150000003f"
    assert framed(event)[:8] == struct.pack("<Q", len(event)) and len(framed(event)) == len(event) + 16
    crc = _C.crc32c(event)
    mask = ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
    assert struct.unpack("<I", framed(event)[-4:])[0] == mask == masked_crc(event)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32, 2**63 - 1, -1, -(2**63)])
def test_varints(number):
    ((field, value),) = pb.fields(memoryview(pb.field(3, number)))
    assert (field, pb.signed(value)) == (3, number)
    assert pb.integers(memoryview(pb.varint(number) * 3)) == [number] * 3


def test_numbers_beyond_float32_become_infinite():
    for value, expected in ((1e300, np.inf), (-1e300, -np.inf)):
        (item,) = EventDecoder().items(summaries.event(0.0, 0, summaries.scalar("a", value)))
        assert item.value == expected


def test_records_of_a_file_in_order():
    data = [b"", b"one", bytes(1000)]
    file = io.BytesIO(b"".join(map(framed, data)))
    size, at, found = len(file.getvalue()), 0, []
    while (record := EventFraming().read(file, at, size)) is not None:
        found.append(record[0])
        at = record[1]
    assert found == data and at == size


def test_a_record_that_is_not_complete_is_not_read():
    whole = framed(b"some data")
    for length in range(len(whole)):
        assert EventFraming().read(io.BytesIO(whole[:length]), 0, length) is None
    assert EventFraming().read(io.BytesIO(whole), 0, len(whole)) == (b"some data", len(whole))


def test_every_changed_bit_is_noticed():
    whole = framed(b"some data")
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged) as caught:
            EventFraming().read(io.BytesIO(changed), 0, len(changed))
        # The length of a record whose data are wrong is right, so the next one can be read.
        assert caught.value.next_at == (None if bit // 8 < 12 else len(whole))


def test_a_length_without_checksum_is_bounded():
    with pytest.raises(Damaged, match="should have 4611686018427387904 bytes"):
        VisualDLFraming().read(io.BytesIO(struct.pack("<Q", 2**62)), 0, 2**62 + 8)


def test_decoders_survive_any_bytes():
    """Random changes of real messages end in items or in one of the errors that a reader expects."""
    errors = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, struct.error)
    messages = [summaries.event(1.0, 3, content) for content in (
        summaries.scalar("a", 1.0), summaries.histogram("h", Histogram((0.0, 1.0, 2.0), (3.0, 4.0))), summaries.text("t", "x"),
        *summaries.hparams({"lr": 0.1, "name": "x", "on": True}, ["a"], 1.0))]
    chance = random.Random(0)
    outcomes = {"items": 0, "error": 0}
    for _ in range(4000):
        changed = bytearray(chance.choice(messages))
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        if chance.random() < 0.3:
            changed = changed[: chance.randrange(len(changed))]
        for decoder in (EventDecoder(), VisualDLDecoder()):
            try:
                decoder.items(bytes(changed))
                outcomes["items"] += 1
            except errors:
                outcomes["error"] += 1
    assert outcomes["items"] > 100 and outcomes["error"] > 100


def test_tensors():
    shape = pb.field(2, b"".join(pb.field(2, pb.field(1, size)) for size in (2, 2)))
    filled = pb.field(1, 2) + shape + pb.field(6, struct.pack("<d", 1.5))
    assert read_tensor(memoryview(filled)).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    listed = pb.field(1, 3) + shape + b"".join(pb.field(7, number) for number in (1, -2, 3, 4))
    assert read_tensor(memoryview(listed)).tolist() == [[1, -2], [3, 4]]
    with pytest.raises(ValueError, match="3 elements"):
        read_tensor(memoryview(pb.field(1, 1) + shape + pb.field(4, bytes(12))))
    huge = pb.field(2, b"".join(pb.field(2, pb.field(1, 2**30)) for _ in range(3)))
    with pytest.raises(ValueError, match="shape"):
        read_tensor(memoryview(pb.field(1, 1) + huge + pb.field(5, struct.pack("<f", 1.0))))


def test_histograms_lose_empty_ends():
    """PyTorch's have a thousand buckets, and edges as far as numbers go."""
    limits = [-1e300, -1.0, 0.0, 1.0, 1.7e308]
    counts = [0.0, 2.0, 3.0, 4.0, 0.0]
    proto = b"".join(pb.double_field(i, v) for i, v in enumerate((-3.0, 0.5, 9.0, 0.0, 0.0), 1))
    proto += pb.packed_doubles(6, limits) + pb.packed_doubles(7, counts)
    event = pb.field(5, pb.field(1, pb.field(1, "h") + pb.field(5, proto)))
    (item,) = EventDecoder().items(event)
    assert item.value == Histogram((-3.0, -1.0, 0.0, 0.5), (2.0, 3.0, 4.0))
