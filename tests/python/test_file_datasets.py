"""Datasets of files whose lines are piped through a command, and runs of programs over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import oar


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[str]]:
    """Three files with the samples 0 to 11: two keys and a number each."""
    oar.enable_static()
    paths = []
    for part in range(3):
        paths.append(tmp_path / f"part-{part}")
        paths[-1].write_text("".join(f"2 {i} {i + 100} 1 {i / 2}\n" for i in range(4 * part, 4 * part + 4)))
    with oar.static.program_guard(oar.static.Program()):
        yield [str(path) for path in paths]
    oar.disable_static()


def made(kind: type, files: list[str], **settings: object) -> oar.distributed.InMemoryDataset:
    dataset = kind()
    slots = [oar.static.data("keys", [None, 2], "int64"), oar.static.data("number", [None, 1])]
    dataset.init(**{"batch_size": 5, "thread_num": 2, "use_var": slots, **settings})
    dataset.set_filelist(files)
    return dataset


def numbers(dataset: oar.distributed.QueueDataset) -> list[float]:
    batches = list(dataset._batches())
    assert all(batch["keys"].dtype == np.int64 and batch["number"].shape[1] == 1 for batch in batches)
    return np.concatenate([batch["number"] for batch in batches]).reshape(-1).tolist()


def test_datasets_read_through_a_pipe(files: list[str]) -> None:
    queue = made(oar.distributed.QueueDataset, files, pipe_command=r"sed 's/\([0-9.]*\)$/-\1/'")
    assert numbers(queue) == [-i / 2 for i in range(12)]
    memory = made(oar.distributed.InMemoryDataset, files)
    memory.load_into_memory()
    assert memory.get_memory_data_size() == 12 and numbers(memory) == [i / 2 for i in range(12)]
    memory.local_shuffle()
    shuffled = numbers(memory)
    assert sorted(shuffled) == [i / 2 for i in range(12)] and shuffled != sorted(shuffled)
    memory.slots_shuffle(["number"])
    assert numbers(memory) != shuffled and sorted(numbers(memory)) == sorted(shuffled)
    memory.release_memory()
    with pytest.raises(RuntimeError, match="load_into_memory"):
        numbers(memory)


def test_runs_over_a_dataset(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    dataset = made(oar.distributed.QueueDataset, files)
    program = oar.static.default_main_program()
    total = program._find("number").sum()
    executor = oar.static.Executor()
    executor.infer_from_dataset(program, dataset, fetch_list=[total], fetch_info=["sum"], print_period=2)
    assert capsys.readouterr().out == "batch 0: sum 5.\nbatch 2: sum 10.5\n"
    with pytest.raises(RuntimeError, match="no dataset"):
        executor.train_from_dataset(program)


def test_mistakes_are_named(files: list[str], tmp_path: Path) -> None:
    for line, message in (("1 2 3", "slot 'number'"), ("2 1 2 1 x", "float32"), ("2 1 2 1 0.5 7", "1 values follow"), ("-1", "slot 'keys'")):
        (tmp_path / "wrong").write_text("2 1 2 1 0.5\n" + line + "\n")
        with pytest.raises(ValueError, match=rf"line 2 of .*{message}"):
            list(made(oar.distributed.QueueDataset, [str(tmp_path / "wrong")])._batches())
    with pytest.raises(RuntimeError, match="code 3"):
        made(oar.distributed.InMemoryDataset, files, pipe_command="exit 3").load_into_memory()
    with pytest.raises(TypeError, match="batchsize"):
        made(oar.distributed.QueueDataset, files, batchsize=3)
    with pytest.raises(ValueError, match="batch_size"):
        made(oar.distributed.QueueDataset, files, batch_size=0)
