"""Files of torch.save: values of both formats, and files that are wrong or would run code."""

import io
import pickle
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

import oar

DATA = Path(__file__).parent / "data"
FILES = ["torch_zip.pt", "torch_legacy.pt"]
GRID = np.arange(24, dtype="float32").reshape(4, 6) / 8


@pytest.mark.parametrize("name", FILES)
def test_values(name):
    value = oar.load(DATA / name)
    expected = {
        "transposed": GRID.T, "part": GRID[1:3, ::2], "half": GRID[0].astype("float16"), "long": np.int64([1, -2, 1 << 40]),
        "bool": np.array([True, False]), "scalar": np.int32(7), "empty": np.zeros((0, 3), "float32"),
        "repeated": np.float32([2.5, 2.5, 2.5]), "complex": np.complex64([1 + 2j]), "parameter": np.ones(2, "float32"),
    }
    for key, array in expected.items():
        got = value[key].numpy()
        assert got.dtype == array.dtype and got.shape == array.shape, key
        np.testing.assert_array_equal(got, array)
    assert value["bfloat16"].dtype == oar.bfloat16
    np.testing.assert_array_equal(value["bfloat16"].astype("float32").numpy(), GRID[1])
    assert value["tied"][0] is value["tied"][1]
    assert (value["step"], value["rate"], value["note"], value["size"], value["none"]) == (12, 0.125, "text", (2, 3), None)
    assert value["optimizer"]["state"][0]["m"].tolist() == [1.0]
    assert value["dtype"] == "float16"


@pytest.mark.parametrize("name", FILES)
def test_a_state_dict_fills_a_layer(name):
    state = oar.load(DATA / name)["model"]
    layer = oar.nn.Linear(2, 3)
    layer.set_state_dict({"weight": state["weight"].t(), "bias": state["bias"]})
    assert layer(oar.to_tensor([[1.0, 1.0]])).tolist() == [[3.5, 8.5, 13.5]]
    assert isinstance(oar.load(DATA / name, return_numpy=True)["model"]["bias"], np.ndarray)
    with open(DATA / name, "rb") as file:
        assert oar.load(file)["step"] == 12


def refused(data, message):
    with pytest.raises(pickle.UnpicklingError, match=message):
        oar.load(io.BytesIO(data))


def archive(content, root="archive", compression=zipfile.ZIP_STORED, **entries):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as file:
        file.writestr(f"{root}/data.pkl", content)
        for name, data in entries.items():
            file.writestr(f"{root}/{name.replace('__', '/')}", data)
    return made.getvalue()


def tensor_pickle(offset=0, shape=(2,), strides=(1,), count=2):
    """A pickle of one tensor, opcode by opcode."""
    def number(n):
        return b"\x8a\x08" + n.to_bytes(8, "little", signed=True)

    def numbers(values):
        return b"(" + b"".join(number(v) for v in values) + b"t"

    storage = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpu" + number(count) + b"tQ"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(shape) + numbers(strides) + b"\x89NtR."


def test_the_pickle_of_these_tests_is_right():
    value = oar.load(io.BytesIO(archive(tensor_pickle(), data__0=np.float32([1, 2]).tobytes())))
    assert value.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("arguments", [
    {"offset": 1}, {"shape": (3,)}, {"strides": (2,)}, {"offset": -1}, {"shape": (-1,)}, {"strides": (-1,)}, {"shape": (1 << 40,), "strides": (0,)},
    {"shape": (1 << 61, 8), "strides": (0, 0)}, {"shape": (2, 2)}, {"count": -1},
])
def test_views_outside_of_their_storage(arguments):
    refused(archive(tensor_pickle(**arguments), data__0=bytes(8)), "The file has a (tensor|storage)")


def test_storages_that_are_missing_or_short():
    refused(archive(tensor_pickle()), "'archive/data/0' is missing")
    refused(archive(tensor_pickle(), data__0=bytes(7)), "has 7 bytes instead of 8")
    refused(archive(tensor_pickle(count=1 << 60), data__0=bytes(8)), "has 8 bytes instead of")


def test_archives_of_something_else():
    refused(archive(b"N.", root="a/b"), "no data.pkl")
    refused(archive(b"N.", **{"constants.pkl": b"N."}), "TorchScript")
    refused(archive(b"N.", compression=zipfile.ZIP_DEFLATED, data__0=bytes(1 << 20)), "compressed or larger than the file")
    refused(archive(b"N.", byteorder=b"big"), "another byte order")


@pytest.mark.parametrize("name", ["os\nsystem", "builtins\nexec", "torch.nn.modules.linear\nLinear", "torch\nload", "torch.hub\nload"])
def test_no_code_runs(name):
    harm = f"\x80\x02c{name}\n(X\x01\x00\x00\x00xtR.".encode("latin1")
    refused(archive(harm), "The file (wants|holds an object of)")
    with open(DATA / "torch_legacy.pt", "rb") as file:
        content = file.read()
    refused(content.replace(b"ctorch._utils\n_rebuild_tensor_v2\n", f"c{name}\n".encode(), 1), "The file (wants|holds an object of)")


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_errors(name):
    content = (DATA / name).read_bytes()
    chance = random.Random(0)
    for _ in range(300):
        broken = bytearray(content)
        for _ in range(chance.randint(1, 3)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        if chance.random() < 0.3:
            del broken[chance.randrange(len(broken)):]
        try:
            oar.load(io.BytesIO(bytes(broken)))
        except pickle.UnpicklingError:
            pass
