"""Datasets, samplers and the loader, with and without workers."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import namedtuple

import numpy as np
import pytest

import oar
from oar import io


Point = namedtuple("Point", "x y")


class Squares(io.Dataset):
    def __init__(self, length=10):
        self.length = length

    def __getitem__(self, idx):
        return np.full([3], idx, "float32"), idx * idx

    def __len__(self):
        return self.length


class Counting(io.IterableDataset):
    def __init__(self, length=10):
        self.length = length

    def __iter__(self):
        info = io.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(start, self.length, step):
            yield np.array([number])


def labels(loader):
    return [batch[1].numpy().tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_come_in_order(workers):
    loader = io.DataLoader(Squares(), batch_size=4, num_workers=workers)
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    assert isinstance(batches[0], list) and isinstance(batches[0][0], oar.Tensor)
    assert [batch[0].shape for batch in batches] == [[4, 3], [4, 3], [2, 3]]
    assert labels(loader) == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    assert len(list(io.DataLoader(Squares(), batch_size=4, drop_last=True, num_workers=workers))) == 2


@pytest.mark.parametrize("shared", [True, False])
def test_large_batches_survive_the_reuse_of_memory(shared):
    class Images(io.Dataset):
        def __getitem__(self, idx):
            return {"image": np.full([64, 64], idx, "float32"), "name": f"image {idx}"}

        def __len__(self):
            return 64

    loader = io.DataLoader(Images(), batch_size=4, num_workers=2, use_shared_memory=shared)
    batches = list(loader)
    for number, batch in enumerate(batches):
        np.testing.assert_array_equal(batch["image"].numpy()[:, 0, 0], np.arange(4) + 4 * number)
        assert batch["name"][0] == f"image {4 * number}"


def test_shuffling_follows_numpy_and_covers_everything():
    np.random.seed(3)
    first = labels(io.DataLoader(Squares(), batch_size=10, shuffle=True))[0]
    np.random.seed(3)
    assert labels(io.DataLoader(Squares(), batch_size=10, shuffle=True, num_workers=1))[0] == first
    assert sorted(first) == [n * n for n in range(10)] and first != sorted(first)


def test_structures_are_kept():
    def collate(samples):
        values = np.stack([sample[0] for sample in samples])
        return {"v": values, "n": [1, 2], "p": Point(values, None), "s": np.array(["a", "b"])}

    for workers in (0, 1):
        batch = next(iter(io.DataLoader(Squares(), batch_size=2, collate_fn=collate, num_workers=workers)))
        assert isinstance(batch["v"], oar.Tensor) and batch["n"] == [1, 2]
        assert isinstance(batch["p"], Point) and isinstance(batch["p"].x, oar.Tensor) and batch["p"].y is None
        assert batch["s"].tolist() == ["a", "b"]


def test_samples_one_by_one():
    samples = list(io.DataLoader(Squares(3), batch_size=None))
    assert samples[2][0].shape == [3] and samples[2][1] == 4


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_iterable_datasets(workers):
    loader = io.DataLoader(Counting(11), batch_size=2, num_workers=workers)
    for _ in range(2):
        assert sorted(int(n) for batch in loader for n in batch.numpy().ravel()) == list(range(11))
    with pytest.raises(ValueError):
        len(loader)
    with pytest.raises(ValueError):
        io.DataLoader(Counting(), shuffle=True)


def test_worker_information_and_seeds():
    class Who(io.Dataset):
        def __getitem__(self, idx):
            info = io.get_worker_info()
            drawn = [np.random.randint(1 << 30), random.getrandbits(30)]
            return np.array([info.id, info.num_workers, os.getpid(), *drawn])

        def __len__(self):
            return 4

    started = oar.io.get_worker_info()
    rows = np.concatenate([b.numpy() for b in io.DataLoader(Who(), batch_size=1, num_workers=2)])
    assert started is None
    assert rows[:, 0].tolist() == [0, 1, 0, 1] and set(rows[:, 1]) == {2}
    assert len(set(rows[:, 2])) == 2 and os.getpid() not in rows[:, 2]
    assert len(set(rows[:, 3])) == 4 and len(set(rows[:, 4])) == 4


def test_persistent_workers_keep_their_processes():
    class Pid(io.Dataset):
        def __getitem__(self, idx):
            return np.array([os.getpid()])

        def __len__(self):
            return 8

    loader = io.DataLoader(Pid(), batch_size=1, num_workers=2, persistent_workers=True)
    passes = [{int(b.numpy()[0, 0]) for b in loader} for _ in range(2)]
    assert passes[0] == passes[1] and len(passes[0]) == 2
    for _ in loader:
        break  # A pass that is given up ...
    assert len(list(loader)) == 8  # ... does not disturb the next.
    for outer, inner in zip(loader, loader):
        assert outer.shape == inner.shape
    del loader


def test_worker_init_function_runs_in_the_worker():
    class Flag(io.Dataset):
        value = -1

        def __getitem__(self, idx):
            return np.array([Flag.value])

        def __len__(self):
            return 2

    def init(number):
        Flag.value = 40 + number

    values = [int(b.numpy()[0, 0]) for b in io.DataLoader(Flag(), num_workers=2, worker_init_fn=init)]
    assert values == [40, 41] and Flag.value == -1


class OddError(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


@pytest.mark.parametrize(("error", "expected"), [(KeyError("k"), KeyError), (OddError(1, 2), RuntimeError)])
def test_errors_carry_the_workers_traceback(error, expected):
    class Broken(io.Dataset):
        def __getitem__(self, idx):
            raise error

        def __len__(self):
            return 4

    with pytest.raises(expected) as caught:
        list(io.DataLoader(Broken(), num_workers=2))
    assert "DataLoader worker 0 raised" in str(caught.value)
    assert "in __getitem__" in str(caught.value) and "raise error" in str(caught.value)


def test_error_in_init_function():
    def init(number):
        raise OSError("no such camera")

    with pytest.raises(OSError, match="no such camera"):
        list(io.DataLoader(Squares(), num_workers=1, worker_init_fn=init))


def test_killed_worker_is_reported():
    class Deadly(io.Dataset):
        def __getitem__(self, idx):
            os.kill(os.getpid(), signal.SIGKILL)

        def __len__(self):
            return 4

    with pytest.raises(RuntimeError, match=r"\[DataLoader\] worker 0 \(pid \d+\) was ended by signal SIGKILL"):
        list(io.DataLoader(Deadly(), num_workers=2))


def test_timeout():
    class Slow(io.Dataset):
        def __getitem__(self, idx):
            time.sleep(30)

        def __len__(self):
            return 2

    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out"):
        list(io.DataLoader(Slow(), num_workers=1, timeout=0.3))
    assert time.monotonic() - begin < 10


def test_interrupt_leaves_no_process(tmp_path):
    script = tmp_path / "loop.py"
    script.write_text(
        textwrap.dedent(
            """
            import signal, time
            import numpy as np
            from oar import io

            signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has none

            class Slow(io.Dataset):
                def __getitem__(self, idx):
                    time.sleep(0.05)
                    return np.zeros(3)
                def __len__(self):
                    return 10**6

            loader = io.DataLoader(Slow(), num_workers=2)
            for number, batch in enumerate(loader):
                if number == 0:
                    print("running", flush=True)
            """
        )
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout.readline() == b"running\n"
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert b"KeyboardInterrupt" in errors and b"Fetcher" not in errors
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_datasets():
    pair = io.TensorDataset([oar.arange(6).reshape([3, 2]), oar.arange(3)])
    assert len(pair) == 3 and pair[1][0].numpy().tolist() == [2, 3]
    with pytest.raises(AssertionError):
        io.TensorDataset([oar.arange(2), oar.arange(3)])
    joined = io.ConcatDataset([Squares(2), Squares(3)])
    assert [joined[n][1] for n in range(len(joined))] == [0, 1, 0, 1, 4] and joined[-1][1] == 4
    assert len(io.ComposeDataset([Squares(3), Squares(3)])[1]) == 4
    assert len(list(io.ChainDataset([Counting(2), Counting(3)]))) == 5
    assert io.Subset(Squares(), [3, 5])[1][1] == 25


def test_random_split():
    oar.seed(1)
    pieces = io.random_split(Squares(10), [7, 3])
    assert [len(piece) for piece in pieces] == [7, 3]
    assert sorted(i for piece in pieces for i in piece.indices) == list(range(10))
    assert [len(piece) for piece in io.random_split(Squares(10), [0.35, 0.65])] == [4, 6]
    with pytest.raises(ValueError, match="add up"):
        io.random_split(Squares(10), [1, 2])


def test_samplers():
    assert list(io.SequenceSampler(Squares(3))) == [0, 1, 2]
    assert sorted(io.RandomSampler(Squares(5))) == list(range(5))
    assert len(list(io.RandomSampler(Squares(5), replacement=True, num_samples=9))) == 9
    assert list(io.RandomSampler(Squares(5), generator=iter([4, 4, 1]))) == [4, 4, 1]
    assert set(io.WeightedRandomSampler([0.0, 1.0, 0.0], 5)) == {1}
    assert sorted(io.SubsetRandomSampler([2, 4, 6])) == [2, 4, 6]
    assert list(io.BatchSampler(Squares(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert len(io.BatchSampler(sampler=io.SequenceSampler(Squares(5)), batch_size=2, drop_last=True)) == 2
    with pytest.raises(AssertionError):
        io.BatchSampler(Squares(), sampler=io.SequenceSampler(Squares()))


def test_distributed_sampler_covers_the_data_evenly():
    parts = [list(io.DistributedBatchSampler(Squares(11), 2, num_replicas=3, rank=rank)) for rank in range(3)]
    assert parts[0] == [[0, 1], [6, 7]] and parts[1] == [[2, 3], [8, 9]] and parts[2] == [[4, 5], [10, 0]]
    shuffled = io.DistributedBatchSampler(Squares(8), 2, num_replicas=2, rank=0, shuffle=True)
    first, second = list(shuffled), list(shuffled)
    assert first != second
    shuffled.set_epoch(0)
    assert list(shuffled) == first and len(shuffled) == 2


def test_digits():
    from oar.datasets import Digits

    train, test = Digits("train"), Digits("test")
    assert len(train) + len(test) == 1797 and len(test) == 359
    assert train[0][0].shape == (1, 8, 8) and train.images.max() == 1.0
    shares = np.bincount(test.labels) / np.bincount(np.concatenate([train.labels, test.labels]))
    assert (np.abs(shares - 0.2) < 0.01).all()
    assert not {image.tobytes() for image in test.images} & {image.tobytes() for image in train.images}


def test_accuracy():
    meter = oar.metric.Accuracy(topk=(1, 2))
    pred = oar.to_tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
    meter.update(meter.compute(pred, oar.to_tensor([[1], [2]])))
    assert meter.accumulate() == [0.5, 1.0] and meter.name() == ["acc_top1", "acc_top2"]
    assert float(oar.metric.accuracy(pred, oar.to_tensor([[1], [2]]))) == 0.5


def test_collate_fn_is_what_was_given_and_may_be_set_later():
    data = [np.float32(n) for n in range(4)]

    class Numbers(oar.io.Dataset):
        def __getitem__(self, index):
            return data[index]

        def __len__(self):
            return len(data)

    loader = oar.io.DataLoader(Numbers(), batch_size=2)
    assert loader.collate_fn is None and oar.io.DataLoader(Numbers(), batch_size=None).collate_fn is None
    assert [batch[0].tolist() if isinstance(batch, list) else batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
    loader.collate_fn = lambda samples: np.array([sum(samples)], "float32")
    assert [batch.tolist() for batch in loader] == [[1], [5]]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_for_static_programs(workers):
    from oar import static

    with oar.pir_utils.IrGuard(), static.program_guard(static.Program(), static.Program()):
        rows, numbers = static.data("rows", [None, 3]), static.data("numbers", [None], "int64")
        total = rows.sum() + numbers.sum().astype("float32")
        executor = static.Executor()
        known = [v.name for v in static.default_main_program().list_vars()]
        fed = io.DataLoader(Squares(), feed_list=[rows, numbers], batch_size=5, return_list=False, num_workers=workers)
        sums = []
        for batch in fed:
            assert isinstance(batch, list) and sorted(batch[0]) == ["numbers", "rows"]
            sums.append(executor.run(feed=batch, fetch_list=[total])[0].item())
        assert sums == [3 * 10 + 30.0, 3 * 35 + 255.0]
        pairs = list(io.DataLoader(Squares(), batch_size=2, places=[oar.CPUPlace()] * 2, num_workers=workers))
        assert [[batch[1].numpy().tolist() for batch in pair] for pair in pairs] == [[[0, 1], [4, 9]], [[16, 25], [36, 49]]]
        assert [v.name for v in static.default_main_program().list_vars()] == known  # batches are no part of it
        with pytest.raises(AssertionError, match="return_list=False needs feed_list"):
            io.DataLoader(Squares(), return_list=False)
        with pytest.raises(ValueError, match="a batch has 2 fields, but feed_list has 1 variables: rows"):
            next(iter(io.DataLoader(Squares(), feed_list=[rows], return_list=False)))


def test_places():
    assert next(iter(io.DataLoader(Squares(), places="cpu")))[0].place.is_cpu_place()
    assert isinstance(next(iter(io.DataLoader(Squares(), places=[oar.CPUPlace()], return_list=False))), list)
    with pytest.raises(RuntimeError, match=r"\[DataLoader\] there is no gpu:0 here"):
        io.DataLoader(Squares(), places="gpu:0")


@pytest.mark.parametrize("workers", [0, 1])
def test_dtypes_of_samples(workers):
    class Mixed(io.Dataset):
        def __getitem__(self, idx):
            return {
                "tensor": oar.full([2], idx, "bfloat16"), "bool": np.array([True, False]), "half": np.float16(idx), "wide": idx + 0.5,
                "number": oar.to_tensor(idx), "complex": np.array(1j * idx, "complex64"), "text": np.array(["a", "bc"][idx]),
                "date": np.array("2020-01-01", "datetime64[D]"), "empty": np.zeros([0, 3]), "turned": np.arange(6.0).reshape(2, 3).T[::-1],
                "promoted": np.array([idx], "int32" if idx else "float32"), "big": np.array([idx], ">i4"),
            }  # fmt: skip

        def __len__(self):
            return 2

    batch = next(iter(io.DataLoader(Mixed(), batch_size=2, num_workers=workers)))
    dtypes = {name: value.dtype.name for name, value in batch.items() if isinstance(value, oar.Tensor)}
    assert dtypes == {"tensor": "bfloat16", "bool": "bool", "half": "float16", "wide": "float64", "number": "int64", "complex": "complex64",
                      "empty": "float64", "turned": "float64", "promoted": "float64", "big": "int32"}  # fmt: skip
    assert batch["text"].tolist() == ["a", "bc"] and str(batch["date"][1]) == "2020-01-01"
    assert batch["tensor"].astype("float32").tolist() == [[0, 0], [1, 1]] and batch["empty"].shape == [2, 0, 3]
    assert batch["turned"][1].tolist() == [[2, 5], [1, 4], [0, 3]] and batch["promoted"].tolist() == [[0], [1]]
    assert batch["number"].tolist() == [0, 1] and batch["big"].tolist() == [[0], [1]] and batch["wide"].tolist() == [0.5, 1.5]


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_of_tensors_are_gathered(workers):
    x, y = oar.randn([50, 4, 3]), oar.arange(50)
    data = io.Subset(io.TensorDataset([x, y]), list(range(49, -1, -1)))
    for rows, numbers in io.DataLoader(data, batch_size=8, shuffle=True, num_workers=workers):
        np.testing.assert_array_equal(rows.numpy(), x.numpy()[numbers.numpy()])
    picked = io.DataLoader(io.TensorDataset([x, y]), batch_sampler=[[-1, 3], [0]], num_workers=workers)
    assert [batch[1].tolist() for batch in picked] == [[49, 3], [0]]
    with pytest.raises((IndexError, ValueError)):
        list(io.DataLoader(io.TensorDataset([x, y]), batch_sampler=[[50]], num_workers=workers))


def test_batch_samplers_of_other_kinds():
    for jobs in ([(0, 2), (1,)], [np.array([0, 2]), np.array([1])], [range(0, 3, 2), {1}]):
        assert labels(io.DataLoader(Squares(), batch_sampler=jobs)) == [[0, 4], [1]]


def test_native_stacking():
    from oar import _C

    rows = [np.arange(3, dtype="int32") + n for n in range(4)]
    out = np.zeros((4, 3), "int32")
    assert _C.stack_into(rows, out) == -1 and out.tolist() == np.stack(rows).tolist()
    assert _C.stack_into([*rows[:3], np.zeros(2, "int32")], out) == 3 and _C.stack_into([rows[0], rows[1].astype("int64")], out) == 1
    assert _C.stack_into(rows, np.zeros((4, 3), "float32")) == 0 and _C.stack_into(rows, np.zeros((5, 3), "int32")) == 0
    assert _C.stack_into(rows, np.zeros((3, 4), "int32").T) == 0 and _C.stack_into([], out) == 0
    assert _C.stack_into([oar.to_tensor(row) for row in rows], out) == -1 and out[3].tolist() == [3, 4, 5]
    for turned in (np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1), np.arange(24, dtype="uint8")[::-3], np.array(5.0), np.zeros((2, 0))):
        made = _C.stack_samples([turned, turned + 1])
        np.testing.assert_array_equal(made.numpy(), np.stack([turned, turned + 1]))
    assert _C.stack_samples([np.array("a")]) == 0 and _C.stack_samples([rows[0], 3]) == 1
    eight = oar.ones([2]).astype("float8_e4m3fn")
    assert _C.stack_samples([eight, eight]).dtype == oar.float8_e4m3fn
    with pytest.raises(TypeError):
        _C.stack_into(tuple(rows), out)


def test_weights_of_rows():
    drawn = list(io.WeightedRandomSampler([[0.0, 1.0], [2.0, 0.0]], 3))
    assert drawn == [1, 1, 1, 0, 0, 0]
    for weights, replacement in (([0.0, 0.0], True), ([-1.0, 2.0], True), ([0.0, 1.0], False)):
        with pytest.raises(AssertionError, match="WeightedRandomSampler"):
            iter(io.WeightedRandomSampler(weights, 2, replacement))


def test_concatenated_lists():
    both = io.ConcatDataset([[0, 1], [], [2]])
    assert [both[n] for n in range(-3, 3)] == [0, 1, 2, 0, 1, 2] and list(both) == [0, 1, 2]
    with pytest.raises(IndexError, match="index 3 is out of range for 3 samples"):
        both[3]
    with pytest.raises(AssertionError, match="does not support IterableDataset, but dataset 1 is a Counting. ChainDataset takes these"):
        io.ConcatDataset([[1], Counting()])
