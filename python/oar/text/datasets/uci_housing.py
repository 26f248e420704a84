"""House prices in Boston."""

from __future__ import annotations

import os

import oar
from oar._lazy import np
from oar.dataset.common import found_or_fetched
from oar.io import Dataset
from oar.text.datasets._words import checked_choice

__all__ = ["UCIHousing"]

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]

_COLUMNS = len(feature_names) + 1
_TRAINING_SHARE = 0.8


def read_houses(path: str | os.PathLike, mode: str) -> np.ndarray:
    """The rows for training or testing, [rows, 14], with features scaled by their ranges around 0."""
    values = np.fromfile(path, sep=" ")
    if values.size == 0 or values.size % _COLUMNS:
        raise ValueError(f"[UCIHousing] {path!r} has {values.size} numbers; rows of {_COLUMNS} were expected. Is it housing.data?")
    rows = values.reshape(-1, _COLUMNS)
    features = rows[:, :-1]
    features[:] = (features - features.sum(axis=0) / len(rows)) / (features.max(axis=0) - features.min(axis=0))
    first_test = int(len(rows) * _TRAINING_SHARE)
    return rows[:first_test] if mode == "train" else rows[first_test:]


class UCIHousing(Dataset):
    """House prices in Boston: 13 features of a district, each divided by its range, and the median price.

    Args:
        data_file: the path of ``housing.data``; None looks in the folder of datasets and fetches it.
        mode: ``'train'``, the first 80 % of the rows, or ``'test'``, the rest.
        download: whether the file may be fetched.

    Returns:
        a dataset of pairs of arrays, [13] and [1], in the default dtype.

    Examples:
        >>> import os, tempfile
        >>> import numpy as np
        >>> import oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'housing.data')
        >>> np.savetxt(path, np.random.rand(10, 14))
        >>> houses = oar.text.UCIHousing(data_file=path, mode='train')
        >>> len(houses), houses[0][0].shape, houses[0][1].shape
        (8, (13,), (1,))
    """

    def __init__(self, data_file: str | None = None, mode: str = "train", download: bool = True) -> None:
        self.mode = checked_choice("UCIHousing", "mode", mode, ("train", "test"))
        self.data_file = found_or_fetched("UCIHousing", "data_file", data_file, URL, MD5, "uci_housing", download)
        self.data = read_houses(self.data_file, self.mode)
        self.dtype = oar.get_default_dtype()

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        row = self.data[idx]
        return row[:-1].astype(self.dtype), row[-1:].astype(self.dtype)

    def __len__(self) -> int:
        return len(self.data)
