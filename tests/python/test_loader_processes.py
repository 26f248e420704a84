"""Workers of a DataLoader in trouble: little memory, signals, deaths, errors, other ways to start a process."""

import contextlib
import gc
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest

import oar
from oar import io
from oar.io.dataloader import default_collate_fn


class Rows(io.Dataset):
    """Sample ``n`` is ``size`` numbers ``n``, and ``n``."""

    def __init__(self, length=12, size=20_000):
        self.length, self.size = length, size

    def __getitem__(self, idx):
        return np.full([self.size], idx, "float32"), idx

    def __len__(self):
        return self.length


class Stream(io.IterableDataset):
    """Worker ``w`` has ``lengths[w]`` numbers; some take long."""

    def __init__(self, lengths, slow=()):
        self.lengths, self.slow = lengths, slow

    def __iter__(self):
        worker = io.get_worker_info().id
        for number in range(self.lengths[worker]):
            if worker in self.slow:
                time.sleep(0.03)
            yield np.array(100 * worker + number)


def run(script, tmp_path, command=(), **arguments):
    """A program of its own, in a session of its own, so that all its processes can be found."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(script))
    return subprocess.Popen([*command, sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True, **arguments)  # fmt: skip


@contextlib.contextmanager
def cleaned(process):
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def shared_memory():
    """What is in shared memory, but for locks: tests that start processes at the same time have those."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("sem.")}


def wait_until_gone(group, seconds=60):
    for _ in range(int(seconds / 0.05)):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def limit_files(number):
    """The kernel then refuses larger shared memory."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))


@pytest.mark.parametrize("collate", [None, lambda samples: [np.stack(field) for field in zip(*samples)]], ids=["default", "own"])
def test_no_room_for_shared_memory_is_a_warning(collate):
    loader = io.DataLoader(Rows(), batch_size=4, num_workers=2, worker_init_fn=limit_files, collate_fn=collate)
    with pytest.warns(UserWarning, match=r"\[DataLoader\] there is no room for shared memory \(.*File too large") as told:
        batches = list(loader)
    assert len([w for w in told if "no room" in str(w.message)]) == 1
    assert [batch[1].tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    for batch in batches:
        np.testing.assert_array_equal(batch[0].numpy(), np.repeat(batch[1].numpy()[:, None], 20_000, 1))


@pytest.mark.skipif(not shutil.which("unshare") or os.geteuid() != 0, reason="needs mount namespaces")
def test_a_tiny_dev_shm_does_not_matter(tmp_path):
    script = """
        import os
        import numpy as np
        from oar import io

        class Rows(io.Dataset):
            def __getitem__(self, idx):
                return np.full([1 << 18], idx, "float32")
            def __len__(self):
                return 8

        assert os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize <= 65536
        print([batch[:, -1].tolist() for batch in io.DataLoader(Rows(), batch_size=4, num_workers=2)], os.listdir("/dev/shm"))
    """
    inside = "mount -t tmpfs -o size=64k tmpfs /dev/shm && exec \"$@\""
    with cleaned(run(script, tmp_path, ["unshare", "-m", "sh", "-c", inside, "sh"])) as process:
        out, errors = process.communicate(timeout=300)
        if b"Operation not permitted" in errors or b"permission denied" in errors:
            pytest.skip("mounting is not allowed here")
        assert (out, errors) == (b"[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]] []\n", b"")


def test_batches_that_are_kept_are_not_overwritten():
    loader = io.DataLoader(Rows(40), batch_size=2, num_workers=2, prefetch_factor=1)
    kept = []
    for number, (rows, numbers) in enumerate(loader):
        if number % 3:
            kept.append((rows[:, 5:], numbers.clone()))  # a view keeps the memory of the batch
    gc.collect()
    for rows, numbers in kept:
        np.testing.assert_array_equal(rows.numpy(), np.repeat(numbers.numpy()[:, None], 19_995, 1))


def test_batches_may_be_changed_and_outlive_the_loader():
    loader = io.DataLoader(Rows(6), batch_size=2, num_workers=2, persistent_workers=True)
    first = [batch[0] for batch in loader]
    for batch in first:
        batch.add_(1.0)
    second = [batch[0] for batch in loader]
    del loader
    gc.collect()
    assert [batch[0, 0].item() for batch in first] == [1, 3, 5] and [batch[1, -1].item() for batch in second] == [1, 3, 5]


def orders(seed, workers, passes=2):
    np.random.seed(seed)
    loader = io.DataLoader(Rows(20, 1), batch_size=3, shuffle=True, num_workers=workers)
    order = [[batch[1].tolist() for batch in loader] for _ in range(passes)]
    return order, np.random.randint(1 << 30)


def test_the_order_does_not_depend_on_workers():
    wanted = orders(3, 0)
    assert wanted[0][0] != wanted[0][1]
    for workers in (1, 2, 5):
        assert orders(3, workers) == wanted  # and NumPy's next number is the same, too


def test_random_numbers_of_workers_follow_the_seed():
    class Drawn(io.Dataset):
        def __getitem__(self, idx):
            return np.array([np.random.randint(1 << 30), random.getrandbits(30), int(oar.randint(0, 1 << 30, [1]))])

        def __len__(self):
            return 4

    def drawn(seed):
        np.random.seed(seed)
        loader = io.DataLoader(Drawn(), num_workers=2)
        return [[batch.tolist()[0] for batch in loader] for _ in range(2)]

    first = drawn(1)
    assert first == drawn(1) != drawn(2)
    numbers = [number for samples in first for sample in samples for number in sample]
    assert len(set(numbers)) == len(numbers)  # other numbers in each worker and each pass


@pytest.mark.parametrize("slow", [(), (0,), (1, 2)])
def test_the_order_of_streams_does_not_depend_on_time(slow):
    loader = io.DataLoader(Stream([5, 1, 3], slow), batch_size=1, num_workers=3, persistent_workers=True)
    for _ in range(2):
        assert [int(batch) for batch in loader] == [0, 100, 200, 1, 201, 2, 202, 3, 4]


def test_streams_drop_what_is_not_full():
    loader = io.DataLoader(Stream([5, 1, 4]), batch_size=2, drop_last=True, num_workers=3)
    assert [batch.tolist() for batch in loader] == [[0, 1], [200, 201], [2, 3], [202, 203]]
    loader = io.DataLoader(Stream([2, 0]), batch_size=None, num_workers=2)
    assert [sample.item() for sample in loader] == [0, 1]


@pytest.mark.parametrize("number, told", [
    (signal.SIGKILL, "signal SIGKILL. Perhaps the machine ran out of memory"),
    (signal.SIGSEGV, "signal SIGSEGV. Native code that the dataset calls has crashed"),
    (signal.SIGTERM, "signal SIGTERM."),
])  # fmt: skip
def test_a_worker_that_is_killed(number, told):
    class Deadly(Rows):
        def __getitem__(self, idx):
            if idx == 5:
                signal.signal(signal.SIGSEGV, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            return super().__getitem__(idx)

    given = []
    with pytest.raises(RuntimeError, match=rf"^\[DataLoader\] worker 1 \(pid \d+\) was ended by {re.escape(told)}"):
        for batch in io.DataLoader(Deadly(), batch_size=1, num_workers=2):
            given.append(batch[1].item())
    assert given == [0, 1, 2, 3, 4]


def test_a_worker_that_is_killed_while_it_waits():
    loader = io.DataLoader(Rows(100), batch_size=1, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    os.kill(loader._pool._workers[0].process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"worker 0 \(pid \d+\) was ended by signal SIGKILL"):
        list(batches)
    assert len(list(loader)) == 100  # a new pass has new workers


@pytest.mark.parametrize("leave, told", [(lambda: os._exit(3), r"worker 0 \(pid \d+\) ended with exit code 3\.$"),
                                         (lambda: sys.exit(3), "(?s)DataLoader worker 0 raised an error.*SystemExit: 3")])  # fmt: skip
def test_a_worker_that_exits(leave, told):
    class Leaving(Rows):
        def __getitem__(self, idx):
            leave()

    with pytest.raises(RuntimeError, match=told):
        list(io.DataLoader(Leaving(), num_workers=1))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("tensors", [False, True])
def test_uneven_samples_are_named(workers, tensors):
    class Uneven(Rows):
        def __getitem__(self, idx):
            image = np.zeros([3, 8 if idx != 6 else 9], "float32")
            return {"image": oar.to_tensor(image) if tensors else image, "label": idx}

    loader = io.DataLoader(Uneven(), batch_size=4, num_workers=workers)
    with pytest.raises(ValueError, match=re.escape(
            "[DataLoader] samples 4 and 6 of the dataset do not fit into one batch: sample['image'] has shape [3, 8] in the one and "
            "[3, 9] in the other. Pad or crop them in the dataset, or give the DataLoader a collate_fn that does.")):  # fmt: skip
        list(loader)


def test_other_ways_to_be_uneven():
    with pytest.raises(RuntimeError, match=r"samples 0 and 1 of the batch .*: the sample has 2 fields in the one and 1 in the other"):
        default_collate_fn([(1, 2), (1,)])
    with pytest.raises(KeyError, match=r"samples 0 and 2 of the batch .*: sample\[0\] has 'a' in the one, but only \['b'\] in the other"):
        default_collate_fn([({"a": 1},), ({"a": 1},), ({"b": 1},)])
    with pytest.raises(TypeError, match=r"sample\[1\] is a NoneType. Give the DataLoader a collate_fn"):
        default_collate_fn([(1, None)])
    with pytest.raises(ValueError, match=r"samples 0 and 1 of the batch .*: the sample has shape \[2\] in the one and \[3\]"):
        list(io.DataLoader(UnevenStream(), batch_size=2))


class UnevenStream(io.IterableDataset):
    def __iter__(self):
        yield np.zeros(2)
        yield np.zeros(3)


@pytest.mark.parametrize("how", ["INT", "INT to all", "KILL", "TERM"])
def test_no_process_is_left(how, tmp_path):
    script = """
        import signal, sys, time
        import numpy as np
        from oar import io

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has none

        class Slow(io.Dataset):
            def __getitem__(self, idx):
                time.sleep(0 if idx < 4 else 60)
                return np.zeros(10_000)
            def __len__(self):
                return 10**6

        for number, batch in enumerate(io.DataLoader(Slow(), num_workers=2)):
            if number == 3:
                print("running", flush=True)
    """
    with cleaned(run(script, tmp_path)) as process:
        assert process.stdout.readline() == b"running\n"
        time.sleep(0.2)
        before = shared_memory()
        if how == "INT to all":
            os.killpg(process.pid, signal.SIGINT)
        else:
            os.kill(process.pid, getattr(signal, f"SIG{how}"))
        _, errors = process.communicate(timeout=300)
        assert wait_until_gone(process.pid)
        assert errors.count(b"Traceback") == ("INT" in how) and (b"KeyboardInterrupt" in errors) == ("INT" in how)
        assert shared_memory() <= before


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(method, tmp_path):
    script = f"""
        import multiprocessing
        import numpy as np
        from oar import io

        class Rows(io.Dataset):
            def __getitem__(self, idx):
                if idx == 100:
                    raise IndexError("too far")
                return np.full([20_000], idx, "float32"), idx
            def __len__(self):
                return 9

        def init(number):
            assert multiprocessing.get_start_method() == "{method}"

        if __name__ == "__main__":
            multiprocessing.set_start_method("{method}")
            loader = io.DataLoader(Rows(), batch_size=2, num_workers=2, worker_init_fn=init, persistent_workers=True)
            print([batch[1].tolist() for batch in loader], [batch[0][0, -1].item() for batch in loader])
            try:
                list(io.DataLoader(io.Subset(Rows(), [100]), num_workers=1))
            except IndexError as error:
                print("too far" in str(error) and "__getitem__" in str(error))
    """
    with cleaned(run(script, tmp_path)) as process:
        out, errors = process.communicate(timeout=300)
        assert (out.decode(), errors) == ("[[0, 1], [2, 3], [4, 5], [6, 7], [8]] [0.0, 2.0, 4.0, 6.0, 8.0]\nTrue\n", b"")


@pytest.mark.parametrize("shared", [True, False])
def test_large_jobs_and_large_answers_do_not_block_each_other(shared):
    class Echo(io.Dataset):
        def __getitem__(self, idx):
            return idx

        def __len__(self):
            return 10**6

    def collate(samples):
        return np.repeat(np.array(samples), 3)

    loader = io.DataLoader(Echo(), batch_size=150_000, num_workers=2, collate_fn=collate, use_shared_memory=shared)
    total = sum(int(batch.sum()) for batch in loader)
    assert total == 3 * sum(range(10**6))


def test_handlers_of_the_parent_do_not_run_in_workers(tmp_path):
    script = """
        import signal, time
        import numpy as np
        from oar import io

        signal.signal(signal.SIGTERM, lambda *_: print("saving", flush=True))

        class Slow(io.Dataset):
            def __getitem__(self, idx):
                time.sleep(30 * (idx > 0))
                return np.zeros(3)
            def __len__(self):
                return 9

        for batch in io.DataLoader(Slow(), num_workers=1):
            break
        print("done")
    """
    with cleaned(run(script, tmp_path)) as process:
        out, errors = process.communicate(timeout=300)
        assert (out, errors) == (b"done\n", b"")


def test_workers_may_use_tensors_after_the_parent_has():
    a = oar.randn([300, 300])
    parent = (a @ a).sum().item()

    class Products(io.Dataset):
        def __getitem__(self, idx):
            return (a @ a).sum(), oar.get_num_threads() if hasattr(oar, "get_num_threads") else 1

        def __len__(self):
            return 2

    for total, _ in io.DataLoader(Products(), num_workers=2, timeout=300):
        np.testing.assert_allclose(total.item(), parent, rtol=1e-3)


def test_slots_that_grow():
    class Growing(io.Dataset):
        def __getitem__(self, idx):
            return np.full([1 << (idx + 8)], idx, "int64"), np.full([3], -idx, "int16")

        def __len__(self):
            return 12

    kept = list(io.DataLoader(Growing(), batch_size=1, num_workers=1, prefetch_factor=1))
    for number, (large, small) in enumerate(kept):
        assert large.shape == [1, 1 << (number + 8)] and (large.numpy() == number).all() and (small.numpy() == -number).all()


def test_no_warning_and_no_open_file_is_left():
    def used():
        return len(os.listdir("/proc/self/fd"))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(io.DataLoader(Rows(4), num_workers=2))
        gc.collect()
        before = used()
        for _ in range(3):
            list(io.DataLoader(Rows(4), num_workers=2))
        gc.collect()
    assert used() <= before
