"""GGUF files: every kind of block against NumPy, metadata, files that are wrong."""

import random
import struct

import numpy as np
import pytest

import oar


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def gguf(metadata, tensors, version=3):
    """Metadata as (key, type, bytes); tensors as (name, shape, type, bytes)."""
    made = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, kind, value in metadata:
        made += text(key) + struct.pack("<I", kind) + value
    data = b""
    for name, shape, kind, content in tensors:
        sizes = b"".join(struct.pack("<Q", size) for size in reversed(shape))
        made += text(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", kind, len(data))
        data += content + bytes(-len(content) % 32)
    return made + bytes(-len(made) % 32) + data


def loaded(tmp_path, content):
    (tmp_path / "a.gguf").write_bytes(content)
    return oar.interop.load_gguf(tmp_path / "a.gguf")


def halves(blocks, at):
    return blocks[:, at:at + 2].copy().view("float16").astype("float32")


def nibbles(blocks):
    return np.concatenate([blocks & 15, blocks >> 4], 1).astype("float32")


def fifth_bits(blocks):
    return ((blocks.copy().view("uint32") >> np.arange(32, dtype="uint32")) & 1).astype("float32") * 16


def six_bits(q):
    """Scales and shifts of a K block: 12 bytes to eight of each."""
    low, mid, high = q[:, :4], q[:, 4:8], q[:, 8:]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], 1)
    return scales.astype("float32"), np.concatenate([mid & 63, (high >> 4) | (mid >> 6 << 4)], 1).astype("float32")


def k_block(b, high, low):
    scales, shifts = six_bits(b[:, 4:16])
    runs = low.reshape(-1, 4, 1, 32) >> np.array([0, 4], "uint8").reshape(1, 1, 2, 1) & 15
    runs = runs.reshape(-1, 8, 32).astype("float32")
    if high is not None:
        runs += (high[:, None] >> np.arange(8, dtype="uint8").reshape(1, 8, 1) & 1) * np.float32(16)
    made = halves(b, 0)[..., None] * scales[..., None] * runs - halves(b, 2)[..., None] * shifts[..., None]
    return made.reshape(-1, 256)


def q6_k(b):
    low = b[:, :128].reshape(-1, 2, 1, 64) >> np.array([0, 4], "uint8").reshape(1, 1, 2, 1) & 15
    high = b[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], "uint8").reshape(1, 1, 4, 1) & 3
    numbers = low.reshape(-1, 256).astype("float32") + 16 * high.reshape(-1, 256).astype("float32") - 32
    scales = b[:, 192:208].copy().view("int8").astype("float32").repeat(16, 1)
    return halves(b, 208) * scales * numbers


BLOCKS = {
    "Q4_0": (2, 18, 32, [0], lambda b: (nibbles(b[:, 2:]) - 8) * halves(b, 0)),
    "Q4_1": (3, 20, 32, [0, 2], lambda b: nibbles(b[:, 4:]) * halves(b, 0) + halves(b, 2)),
    "Q5_0": (6, 22, 32, [0], lambda b: (nibbles(b[:, 6:]) + fifth_bits(b[:, 2:6]) - 16) * halves(b, 0)),
    "Q5_1": (7, 24, 32, [0, 2], lambda b: (nibbles(b[:, 8:]) + fifth_bits(b[:, 4:8])) * halves(b, 0) + halves(b, 2)),
    "Q8_0": (8, 34, 32, [0], lambda b: b[:, 2:].copy().view("int8").astype("float32") * halves(b, 0)),
    "Q4_K": (12, 144, 256, [0, 2], lambda b: k_block(b, None, b[:, 16:])),
    "Q5_K": (13, 176, 256, [0, 2], lambda b: k_block(b, b[:, 16:48], b[:, 48:])),
    "Q6_K": (14, 210, 256, [208], q6_k),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name, tmp_path):
    kind, size, count, places, unpack = BLOCKS[name]
    blocks = np.random.default_rng(0).integers(0, 256, (6, size)).astype("uint8")
    for i, place in enumerate(places):
        scales = np.float16(np.random.default_rng(i).standard_normal((6, 1)))
        scales[0] = 3e-7  # too small for a leading one
        blocks[:, place:place + 2] = scales.view("uint8")
    file = loaded(tmp_path, gguf([], [("w", (3, 2 * count), kind, blocks.tobytes())]))
    assert (file.types, file.shapes) == ({"w": name}, {"w": [3, 2 * count]})
    np.testing.assert_allclose(file["w"].numpy(), unpack(blocks).reshape(3, 2 * count), rtol=1e-5, atol=1e-6)


def test_plain_dtypes_and_metadata(tmp_path):
    a, b = np.arange(6, dtype="float32").reshape(2, 3), np.float16([1.5, -2])
    bits = (np.float32([1, -0.5]).view("uint32") >> 16).astype("uint16")
    tokens = struct.pack("<IQ", 8, 2) + text("a") + text(b"\xe4\xbd")
    file = loaded(tmp_path, gguf(
        [("general.architecture", 8, text("llama")), ("n", 4, struct.pack("<I", 7)), ("eps", 6, struct.pack("<f", 0.5)), ("yes", 7, b"\1"),
         ("big", 10, struct.pack("<Q", 1 << 63)), ("tokens", 9, tokens)],
        [("a", (2, 3), 0, a.tobytes()), ("b", (2,), 1, b.tobytes()), ("c", (2,), 30, bits.tobytes()), ("d", (2,), 26, np.int32([4, -5]).tobytes())]))
    assert file.metadata == {"general.architecture": "llama", "n": 7, "eps": 0.5, "yes": True, "big": 1 << 63, "tokens": ["a", "\\xe4\\xbd"]}
    assert list(file) == ["a", "b", "c", "d"] and len(file) == 4
    np.testing.assert_array_equal(file["a"].numpy(), a)
    assert file["b"].dtype == oar.float16 and file["b"].tolist() == [1.5, -2]
    assert file["c"].dtype == oar.bfloat16 and file["c"].astype("float32").tolist() == [1, -0.5]
    assert file["d"].tolist() == [4, -5]
    assert "llama" in repr(file)


@pytest.mark.parametrize("content, error, message", [
    (b"no such file", ValueError, "does not begin with 'GGUF'"), (gguf([], [], version=1), NotImplementedError, "version 1"),
    (gguf([("k", 99, b"")], []), ValueError, "ends too early|unknown type|more entries"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), ValueError, "more entries than bytes"),
    (gguf([("k", 9, struct.pack("<IQ", 0, 1 << 50))], []), ValueError, "more entries than bytes"),
    (gguf([("general.alignment", 4, struct.pack("<I", 24))], []), ValueError, "no power of two"),
    (gguf([], [("w", (4,), 0, b"1234")]), ValueError, "beyond its end"), (gguf([], [("w", (1 << 39, 1 << 39), 0, b"")]), ValueError, r"\*"),
    (gguf([], [("w", (33,), 8, bytes(68))]), ValueError, "no multiple of its blocks"),
], ids=["mark", "version", "type", "tensors", "list", "alignment", "data", "overflow", "blocks"])
def test_files_that_are_wrong(content, error, message, tmp_path):
    with pytest.raises(error, match=message):
        loaded(tmp_path, content[:-32] if "beyond" in message else content)


def test_types_that_are_not_known(tmp_path):
    file = loaded(tmp_path, gguf([], [("w", (256,), 10, bytes(84)), ("v", (1,), 77, b"1234")]))
    assert file.types == {"w": "Q2_K", "v": "type 77"}
    for name in file:
        with pytest.raises(NotImplementedError, match="cannot be read"):
            file[name]


def test_damaged_files_are_errors(tmp_path):
    good = gguf([("k", 9, struct.pack("<IQ", 8, 1) + text("a"))], [("w", (2, 32), 8, bytes(68)), ("v", (3,), 0, bytes(12))])
    chance = random.Random(0)
    for _ in range(200):
        broken = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            broken[chance.randrange(len(broken))] = chance.choice([0, 1, 127, 255, chance.randrange(256)])
        try:
            file = loaded(tmp_path, bytes(broken))
            for name in file:
                if np.prod(file.shapes[name]) < 1e6:
                    file[name]
        except (ValueError, NotImplementedError, RuntimeError):
            pass
