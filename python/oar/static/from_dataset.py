"""Runs of a program over a dataset."""

from __future__ import annotations

from typing import Any

from oar._lazy import np

__all__ = ["run_from_dataset"]


def run_from_dataset(
    executor: Any, function: str, program: Any, dataset: Any, scope: Any, debug: bool, fetch_list: Any, fetch_info: Any,
    print_period: int, fetch_handler: Any,
) -> None:  # fmt: skip
    """Runs the program on each batch, and prints what is fetched from time to time."""
    if dataset is None:
        raise RuntimeError(f"[Executor.{function}] there is no dataset. hint: pass an InMemoryDataset or a QueueDataset.")
    if fetch_handler is not None:
        raise NotImplementedError(f"[Executor.{function}] fetch_handler is not there yet. hint: use fetch_list, fetch_info and "
                                  "print_period.")
    wanted = list(fetch_list or [])
    titles = list(fetch_info or [getattr(variable, "name", str(variable)) for variable in wanted])
    if len(titles) != len(wanted):
        raise ValueError(f"[Executor.{function}] there are {len(titles)} texts in fetch_info for {len(wanted)} variables.")
    for number, feed in enumerate(dataset._batches()):
        shown = wanted and (debug or number % print_period == 0)
        results = executor.run(program, feed, wanted if shown else None, scope=scope)
        if shown:
            print(f"batch {number}: " + ", ".join(f"{title} {np.array2string(np.asarray(value).squeeze())}"
                                                  for title, value in zip(titles, results)), flush=True)
