"""Batches for programs, and names of dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from oar import _C
from oar._C import Tensor
from oar._lazy import np

__all__ = ["DataFeeder", "check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype"]


def convert_dtype(dtype) -> str:
    """The name of a dtype that is given as a name, as Oar's or as NumPy's."""
    return _C.dtype(dtype).name


def check_type(input: Any, input_name: str, expected_type: Any, op_name: str, extra_message: str = "") -> None:
    """Raises where an argument is of another type."""
    if not isinstance(input, expected_type):
        raise TypeError(
            f"[{op_name}] {input_name} must be {expected_type}, but received {type(input)}. {extra_message}"
        )


def check_dtype(input_dtype: Any, input_name: str, expected_dtype: Any, op_name: str, extra_message: str = "") -> None:
    """Raises if a dtype is not one of the expected ones."""
    if convert_dtype(input_dtype) not in expected_dtype:
        raise TypeError(
            f"[{op_name}] the data type of {input_name} must be {expected_dtype}, but is {convert_dtype(input_dtype)}. "
            f"{extra_message}"
        )


def check_variable_and_dtype(
    input: Any, input_name: str, expected_dtype: Any, op_name: str, extra_message: str = ""
) -> None:
    """Raises if an argument is not a tensor, or of another dtype."""
    check_type(input, input_name, Tensor, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


class DataFeeder:
    """Turns lists of samples into what a program is fed.

    Args:
        feed_list: the inputs.
        place: kept; arrays are on the host.
        program: kept.
    """

    def __init__(self, feed_list: Sequence[Any], place: Any = None, program: Any = None) -> None:
        for number, variable in enumerate(feed_list):
            if isinstance(variable, str):
                raise ValueError(f"[DataFeeder] feed_list[{number}] is the name {variable!r}. Give the variable that static.data returned.")
        self.feed_vars = list(feed_list)
        self.feed_names = [v.name for v in self.feed_vars]
        self.place = place

    def feed(self, iterable: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """The samples of a batch, each a tuple with one entry for every input, by name."""
        columns: list[list[Any]] = [[] for _ in self.feed_vars]
        for sample in iterable:
            if len(sample) != len(columns):
                raise ValueError(f"[DataFeeder] a sample has {len(sample)} entries for {len(columns)} inputs.")
            for column, entry in zip(columns, sample):
                column.append(entry)
        return {v.name: self._batch(v, column) for v, column in zip(self.feed_vars, columns)}

    @staticmethod
    def _batch(variable: Tensor, column: list[Any]) -> Any:
        from oar.static.scope import LoDTensor

        batch = np.array(column, dtype=variable.dtype.name)
        sizes = [size if isinstance(size, int) else -1 for size in variable.shape]
        made = LoDTensor()
        made.set(batch.reshape(sizes) if sizes.count(-1) <= 1 else batch)
        return made
