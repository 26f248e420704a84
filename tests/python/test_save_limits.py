"""Pickles that describe more than can be built, and files that are replaced: all of them or none."""

import io
import os
import pickle
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import oar
from oar import static


def refused(data, text):
    start = time.process_time()
    with pytest.raises(pickle.UnpicklingError, match=text):
        oar.load(io.BytesIO(data))
    assert time.process_time() - start < 5


def nested(opening, closing, levels):
    return b"\x80\x04" + opening * levels + closing * (levels - 1) + b"."


@pytest.mark.parametrize("levels", [1000, 30_000])
@pytest.mark.parametrize(
    "data",
    [
        lambda n: nested(b"]", b"a", n),  # lists in lists
        lambda n: b"\x80\x04)" + b"\x85" * n + b".",  # tuples of one
        lambda n: b"\x80\x04}" + b")" + b"\x85" * n + b"K\x01s.",  # … as the key of a dictionary, which is hashed
        lambda n: b"\x80\x04(" + b")" + b"\x85" * n + b"\x91.",  # … in a frozenset
        lambda n: b"\x80\x04}" + b"K\x00}" * n + b"s" * n + b".",  # dictionaries in dictionaries
    ],
    ids=["lists", "tuples", "keys", "frozenset", "dictionaries"],
)
def test_deep_pickles_are_refused(data, levels):
    refused(data(levels), "nested .* deep; 200 is the limit")


def test_lists_that_grow_after_they_were_stored_are_counted():
    # Each list is put into the one before it while it is still empty.
    levels = 5000
    data = b"\x80\x02]q\x00" + b"".join(b"]r" + i.to_bytes(4, "little") + b"a" + b"j" + i.to_bytes(4, "little")
                                       for i in range(1, levels)) + b"0h\x00."
    refused(data, "nested|damaged")


@pytest.mark.parametrize("doublings", [40, 110])
def test_doubled_tuples_are_refused(doublings):
    tuples = b"\x80\x04)" + b"\x94h\x00\x86"[:1] + b"h\x00\x86" + b"".join(
        b"\x94h" + bytes([i]) + b"\x86" for i in range(1, doublings)) + b"."
    assert len(tuples) < 500
    refused(tuples, "elements; .* is the limit")
    lists = b"\x80\x04]" + b"".join(b"\x94]h" + bytes([i]) + b"ah" + bytes([i]) + b"a" for i in range(doublings)) + b"."
    refused(lists, "elements; .* is the limit")


def long_number(value):
    return b"\x8a\x0a" + value.to_bytes(10, "little", signed=True)


EQUAL_HASHES = [k * ((1 << 61) - 1) for k in range(1, 1500)]


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(dict.fromkeys(EQUAL_HASHES), 4),
        pickle.dumps(dict.fromkeys(EQUAL_HASHES), 0),
        pickle.dumps(set(EQUAL_HASHES), 4),  # elements one by one
        pickle.dumps(set(EQUAL_HASHES), 2),  # set([...])
        pickle.dumps(frozenset(EQUAL_HASHES), 4),
        b"\x80\x02(" + b"".join(long_number(n) + b"N" for n in EQUAL_HASHES) + b"d.",
        b"\x80\x02ccollections\nOrderedDict\n](" + b"".join(long_number(n) + b"N\x86" for n in EQUAL_HASHES) + b"e\x85R.",
        pickle.dumps({(k, -(k << 40)): 0 for k in range(20_000)}, 4),  # the hashes of tuples are not checked
    ],
    ids=["dictionary", "text", "set", "set of a list", "frozenset", "dict opcode", "pairs", "tuples"],
)
def test_many_keys_of_one_hash_are_refused(data):
    refused(data, "numbers with the same hash|tuples of large numbers")


def test_numbers_of_different_hashes_are_keys():
    value = {**{k * 10**12: k for k in range(5000)}, **{k / 7: k for k in range(5000)}, float("nan"): 1, (1.5, "a"): 2}
    for protocol in range(6):
        assert oar.load(io.BytesIO(pickle.dumps([value, set(value)], protocol)))[0].keys() >= {5 * 10**12, 1 / 7}


def test_copies_that_nobody_keeps_are_counted():
    copies = b"h\x00h\x01\x85R0" * 10_000  # list(numbers), thrown away
    refused(b"\x80\x04cbuiltins\nlist\n\x94](" + b"K\x01" * 10_000 + b"e\x94" + copies + b".", "elements; .* is the limit")


def test_a_list_that_holds_itself_is_refused():
    itself = []
    itself.append(itself)
    refused(pickle.dumps(itself), "holds itself")


def test_a_far_place_in_the_memo_is_refused():
    refused(b"\x80\x02Nr\xff\xff\xff\x7f.", "place 2147483647")


def test_bytes_of_a_number_are_refused():
    for name in (b"bytes", b"bytearray"):
        refused(b"\x80\x02cbuiltins\n" + name + b"\n\x8a\x06\x00\x00\x00\x00\x00\x10\x85R.", "of a int")


def test_shared_and_long_values_are_read():
    shared = [1, (2, 3)]
    value = {"a": [shared] * 50, "numbers": list(range(30_000)), ("key", 1): {"x": np.ones(3)}}
    for protocol in (0, 1, 2, 3, 4, 5):
        back = oar.load(io.BytesIO(pickle.dumps(value, protocol=protocol)), return_numpy=True)
        assert back["a"] == value["a"] and back["numbers"] == value["numbers"]
        np.testing.assert_array_equal(back["key", 1]["x"], np.ones(3))


def test_a_stream_without_a_place_is_read():
    class Stream(io.BytesIO):
        def seekable(self):
            return False

    assert oar.load(Stream(pickle.dumps([1, 2]))) == [1, 2]


def test_two_pickles_in_one_file():
    file = io.BytesIO(pickle.dumps([1]) + pickle.dumps([2]))
    assert oar.load(file) == [1]
    assert oar.load(file) == [2]


def test_what_is_saved_can_be_loaded(tmp_path):
    value = leaf = []
    for _ in range(150):
        leaf.append([])
        leaf = leaf[0]
    leaf.append(oar.ones([2]))
    oar.save(value, tmp_path / "x")
    back = oar.load(tmp_path / "x")
    for _ in range(150):
        back = back[0]
    assert back[0].numpy().tolist() == [1.0, 1.0]
    for _ in range(100):
        value = [value]
    with pytest.raises(ValueError, match="nested 180 deep"):
        oar.save(value, tmp_path / "x")


# files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.pdparams", "x.safetensors"])
def test_saving_to_a_link_writes_its_target(tmp_path, name):
    target, link = tmp_path / "far" / name, tmp_path / name
    target.parent.mkdir()
    oar.save({"a": oar.zeros([1])}, target)
    os.symlink(target, link)
    oar.save({"a": oar.ones([1])}, link)
    assert link.is_symlink() and oar.load(target)["a"].numpy().tolist() == [1.0]
    hanging = tmp_path / "hanging"
    os.symlink(tmp_path / "far" / "new", hanging)
    oar.save([1], hanging)
    assert hanging.is_symlink() and oar.load(tmp_path / "far" / "new") == [1]
    assert sorted(os.listdir(tmp_path / "far")) == sorted([name, "new"])


def test_a_pipe_is_written_to_and_read_from(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor() as pool:
        reader = pool.submit(oar.load, path)
        oar.save({"a": [1, 2]}, path)
        assert reader.result() == {"a": [1, 2]}
    assert stat.S_ISFIFO(path.stat().st_mode) and os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_permissions_of_a_file_stay(tmp_path, mode):
    path = tmp_path / "x"
    oar.save([1], path)
    os.chmod(path, mode)
    oar.save([2], path)
    assert stat.S_IMODE(path.stat().st_mode) == mode and oar.load(path) == [2]


@pytest.fixture
def model(tmp_path):
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.scope_guard(static.Scope()), oar.framework.unique_name.guard(), static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        out = static.nn.fc(x, 2)
        exe = static.Executor()
        exe.run(startup)
        yield main, x, out, exe, str(tmp_path / "model")
    oar.disable_static()


def contents(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_a_model_is_replaced_whole_or_not_at_all(model, monkeypatch, fails):
    main, x, out, exe, path = model
    folder = os.path.dirname(path)
    static.save_inference_model(path, [x], [out], exe)
    static.save(main, path + "_states")
    before = contents(folder)
    assert len(before) == 5
    static.global_scope().find_var(main.all_parameters()[0].name).get_tensor().set(np.ones((4, 2), "float32"), None)
    replace, calls = os.replace, []

    def failing(source, target):
        calls.append(target)
        if len(calls) == fails:
            raise OSError("no room")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    if fails < 3:
        with pytest.raises(OSError, match="no room"):
            static.save_inference_model(path, [x], [out], exe)
        assert contents(folder) == before
    calls.clear()
    with pytest.raises(OSError, match="no room"):
        static.save(main, path + "_states")
    monkeypatch.undo()
    assert contents(folder) == before
    static.save_inference_model(path, [x], [out], exe)
    after = contents(folder)
    assert after["model.pdmodel"] == before["model.pdmodel"] and after["model.pdiparams"] != before["model.pdiparams"]


def test_a_model_whose_states_cannot_be_written_keeps_its_program(model, monkeypatch):
    main, x, out, exe, path = model
    static.save_inference_model(path, [x], [out], exe)
    before = contents(os.path.dirname(path))
    monkeypatch.setattr(static.io, "serialize_persistables", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        static.save_inference_model(path, [x], [out * 2], exe)
    assert contents(os.path.dirname(path)) == before
