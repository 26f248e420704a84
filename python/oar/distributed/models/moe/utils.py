"""Which rows go to which expert: counting, ordering and limiting them. Experts are numbers; -1 is none. Nothing here has gradients."""

from __future__ import annotations

from typing import Any

from oar._lazy import np

import oar
from oar._C import Tensor

__all__: list[str] = []


def _numbers(x: Tensor) -> Any:
    return x.detach().numpy()


def _number_count(numbers: Tensor, upper_range: int) -> Tensor:
    """How often each number below ``upper_range`` is there. Those below zero are not counted."""
    flat = _numbers(numbers).reshape(-1)
    if flat.size and flat.max() >= upper_range:
        raise ValueError(f"[_number_count] numbers has {flat.max()}, but upper_range is {upper_range}.")
    return oar.to_tensor(np.bincount(flat[flat >= 0], minlength=upper_range).astype("int64"))


def _assign_pos(x: Tensor, cum_count: Tensor) -> Tensor:
    """The places of all rows that have an expert, in the order of the experts; rows of one expert stay in order."""
    flat = _numbers(x).reshape(-1)
    order = np.argsort(flat, kind="stable")
    return oar.to_tensor(order[np.count_nonzero(flat < 0) :].astype("int64"))


def _random_routing(topk_idx: Tensor, topk_value: Tensor, prob: Tensor, topk: int = 2) -> Tensor:
    """The experts of each row, without the second one where twice its value is less than a random number."""
    if topk != 2:
        raise RuntimeError(f"[_random_routing] topk is {topk}, but the second of two experts is drawn. hint: pass topk=2.")
    chosen, drawn = _numbers(topk_idx).copy(), 2 * _numbers(topk_value)[:, 1] < _numbers(prob)
    chosen[drawn, 1] = -1
    return oar.to_tensor(chosen)


def _limit_by_capacity(expert_count: Tensor, capacity: Tensor, n_worker: int) -> Tensor:
    """How many rows of each process each expert takes, if those of earlier processes come first."""
    asked = _numbers(expert_count).reshape(n_worker, -1)
    taken = np.minimum(np.cumsum(asked, axis=0), _numbers(capacity)[None])
    return oar.to_tensor(np.diff(taken, axis=0, prepend=0).reshape(-1))


def _prune_gate_by_capacity(gate_idx: Tensor, expert_count: Tensor, n_expert: int, n_worker: int) -> Tensor:
    """The experts of all rows, with -1 for rows that an expert has no place for: it takes the first ones."""
    chosen = _numbers(gate_idx)
    flat = chosen.reshape(-1).copy()
    order = np.argsort(flat, kind="stable")
    order = order[flat[order] >= 0]
    asked = np.bincount(flat[order], minlength=n_expert * n_worker)
    place = np.arange(len(order)) - np.repeat(np.cumsum(asked) - asked, asked)
    flat[order[place >= _numbers(expert_count)[flat[order]]]] = -1
    return oar.to_tensor(flat.reshape(chosen.shape))
