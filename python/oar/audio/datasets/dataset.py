"""Sounds with their classes."""

from __future__ import annotations

import os
from typing import Any

import oar
from oar._C import Tensor
from oar.audio.features import MFCC, LogMelSpectrogram, MelSpectrogram, Spectrogram
from oar.dataset import common
from oar.io import Dataset
from oar.utils import download

__all__ = ["AudioClassificationDataset", "folder_of"]

feat_funcs: dict[str, Any] = {
    "raw": None,
    "melspectrogram": MelSpectrogram,
    "mfcc": MFCC,
    "logmelspectrogram": LogMelSpectrogram,
    "spectrogram": Spectrogram,
}


class AudioClassificationDataset(Dataset):
    """Files with sounds, and their classes.

    Args:
        files: the paths of WAV files with one channel.
        labels: the class of each file.
        feat_type: what a sample holds: ``'raw'`` for the samples of the sound, or ``'spectrogram'``, ``'melspectrogram'``,
            ``'logmelspectrogram'`` or ``'mfcc'``.
        sample_rate: accepted for compatibility; that of each file is used.
        kwargs: arguments of the layer of ``oar.audio.features`` that computes the feature.

    Returns:
        a dataset of pairs: a tensor, and the class.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> from oar.audio.datasets.dataset import AudioClassificationDataset
        >>> path = os.path.join(tempfile.mkdtemp(), 'tone.wav')
        >>> oar.audio.save(path, oar.sin(oar.arange(4000) * 0.35).unsqueeze(0), 8000)
        >>> sounds = AudioClassificationDataset([path], [3], feat_type='mfcc', n_mfcc=20)
        >>> feature, label = sounds[0]
        >>> feature.shape[0], label
        (20, 3)
    """

    def __init__(
        self, files: list[str], labels: list[int], feat_type: str = "raw", sample_rate: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__()
        if feat_type not in feat_funcs:
            raise RuntimeError(f"[{type(self).__name__}] feat_type is {feat_type!r}; it must be one of {', '.join(map(repr, feat_funcs))}.")
        self.files = files
        self.labels = labels
        self.feat_type = feat_type
        self.sample_rate = sample_rate
        self.feat_config = kwargs
        self._extractors: dict[int, Any] = {}

    def _extractor(self, sample_rate: int) -> Any:
        """The layer that computes the feature; it holds windows and filters, which depend on the rate."""
        if sample_rate not in self._extractors:
            rate = {} if self.feat_type == "spectrogram" else {"sr": sample_rate}
            self._extractors[sample_rate] = feat_funcs[self.feat_type](**rate, **self.feat_config)
        return self._extractors[sample_rate]

    def __getitem__(self, idx: int) -> tuple[Tensor, int]:
        waveform, self.sample_rate = oar.audio.load(self.files[idx])
        if waveform.shape[0] != 1:
            raise ValueError(f"[{type(self).__name__}] {self.files[idx]!r} has {waveform.shape[0]} channels; one was expected.")
        if self.feat_type == "raw":
            return waveform.squeeze(0), self.labels[idx]
        return self._extractor(self.sample_rate)(waveform).squeeze(0), self.labels[idx]

    def __len__(self) -> int:
        return len(self.files)


def folder_of(owner: str, archive: Any, needed: list[str]) -> str:
    """The folder that has the files of a dataset, which are fetched and unpacked if they are not there.

    Args:
        owner: the dataset, for messages.
        archive: a dictionary with the ``url`` and ``md5`` of an archive, or the path of a folder.
        needed: paths that the folder must have.
    """
    given = isinstance(archive, (str, os.PathLike))
    homes = [os.fspath(archive)] if given else [common.DATA_HOME, common._PADDLE_HOME]
    for home in homes:
        if all(os.path.exists(os.path.join(home, path)) for path in needed):
            return home
    if given:
        raise FileNotFoundError(f"[{owner}] the folder {homes[0]!r} has no {' and no '.join(needed)}.")
    try:
        download.get_path_from_url(archive["url"], common.DATA_HOME, archive["md5"], decompress=True)
    except (RuntimeError, OSError) as error:
        raise RuntimeError(
            f"[{owner}] {needed[0]} is in neither {homes[0]} nor {homes[1]}, and it could not be fetched. Where there is a network, "
            f"run\n    curl -L -O '{archive['url']}'\nand unpack the archive in {homes[0]}, or pass archive with the path of the "
            f"folder that has {needed[0]}. The reason: {error}"
        ) from None
    return common.DATA_HOME
