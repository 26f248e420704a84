"""Where a DataLoader is: a loader that goes on elsewhere gives the batches that would have come, and disturbs no random numbers."""

import random

import numpy as np
import pytest

import oar
from oar.framework.random_state import get_random_states, set_random_states

COUNT = 23


class Noisy(oar.io.Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return np.array([index, np.random.randint(1000)])


class Plain(Noisy):
    def __getitem__(self, index):
        return np.array([index])


class Stream(oar.io.IterableDataset):
    def __iter__(self):
        return iter(np.arange(COUNT) + np.random.randint(100))


class Place(oar.io.IterableDataset):
    """Knows where it is, and must not be read again from the beginning."""

    def __init__(self):
        self.at, self.read = 0, 0

    def __iter__(self):
        while self.at < COUNT:
            self.at, self.read = self.at + 1, self.read + 1
            yield self.at
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def batches_of(sampler):
    return oar.io.BatchSampler(sampler=sampler, batch_size=4)


LOADERS = {
    "in order": lambda data, **kw: oar.io.DataLoader(data, batch_size=4, **kw),
    "shuffled": lambda data, **kw: oar.io.DataLoader(data, batch_size=4, shuffle=True, **kw),
    "single": lambda data, **kw: oar.io.DataLoader(data, batch_size=None, shuffle=True, **kw),
    "subset": lambda data, **kw: oar.io.DataLoader(data, batch_sampler=batches_of(oar.io.SubsetRandomSampler(list(range(20)))), **kw),
    "weighted": lambda data, **kw: oar.io.DataLoader(data, batch_sampler=batches_of(oar.io.WeightedRandomSampler(np.arange(COUNT) + 1.0, COUNT)), **kw),
    "distributed": lambda data, **kw: oar.io.DataLoader(
        data, batch_sampler=oar.io.DistributedBatchSampler(data, 4, num_replicas=2, rank=1, shuffle=True), **kw),
    "stream": lambda data, **kw: oar.io.DataLoader(Stream(), batch_size=4, **kw),
}


def seed():
    np.random.seed(1), oar.seed(1), random.seed(1)


def run(loader, passes, stop=None):
    """Batches, each with random numbers that training draws after it."""
    seen = []
    for _ in range(passes):
        for batch in loader:
            batch = batch[0] if isinstance(batch, list) else batch
            seen.append((batch.tolist(), np.random.rand(), oar.rand([1]).item(), random.random()))
            if len(seen) == stop:
                return seen
    return seen


def through_a_file(state, path):
    oar.save(state, path)
    return oar.load(path)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", list(LOADERS))
def test_another_loader_goes_on(tmp_path, name, workers):
    data = Plain() if workers else Noisy()
    make = lambda: LOADERS[name](data, num_workers=workers)  # noqa: E731
    seed()
    whole = run(make(), 3)
    per_pass = len(whole) // 3
    for stop in (1, per_pass, per_pass + 2):
        seed()
        first = make()
        before = run(first, 3, stop)
        state, drawn = first.state_dict(), get_random_states()
        assert state["passes"] == (stop - 1) // per_pass and state["batches"] == (stop - 1) % per_pass + 1
        np.random.seed(9), oar.seed(8), random.seed(7)
        set_random_states(through_a_file(drawn, tmp_path / "random"))
        second = make()
        second.load_state_dict(through_a_file(state, tmp_path / "loader"))
        assert second.state_dict()["batches"] == state["batches"]
        assert before + run(second, 3 - state["passes"]) == whole


def test_between_passes():
    seed()
    data = Plain()
    loader = LOADERS["distributed"](data)
    assert loader.state_dict()["batches"] is None
    run(loader, 1)
    state = loader.state_dict()
    assert (state["passes"], state["batches"], state["samplers"]) == (1, None, [{"epoch": 1}])
    other = LOADERS["distributed"](data)
    other.load_state_dict(state)
    assert run(other, 1)[0][0] == run(loader, 1)[0][0]


def test_a_dataset_that_knows_its_place():
    loader = oar.io.DataLoader(Place(), batch_size=5)
    next(iter(loader))
    data = Place()
    other = oar.io.DataLoader(data, batch_size=5)
    state = loader.state_dict()
    assert state["dataset"] == {"at": 5}
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert next(iter(other)).tolist() == [6, 7, 8, 9, 10] and data.read == 5 and other.state_dict()["batches"] == 2


def test_breaking_off_and_two_iterators():
    loader = LOADERS["in order"](Plain())
    next(iter(loader))
    assert loader.state_dict()["batches"] == 1
    outer, inner = iter(loader), iter(loader)
    next(outer), next(inner), next(inner), next(outer)
    assert loader.state_dict()["batches"] == 2  # the iterator that began last counts
    assert [len(list(outer)), len(list(inner))] == [4, 4]


@pytest.mark.parametrize("state", [{}, {"passes": 1}, 3, None])
def test_states_of_something_else(state):
    with pytest.raises(ValueError, match=r"\[DataLoader.load_state_dict\] the state has .*expected \['batches', 'dataset', 'passes', 'random', 'samplers'\]"):
        LOADERS["in order"](Plain()).load_state_dict(state)
