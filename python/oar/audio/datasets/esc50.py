"""Sounds of surroundings, in 50 classes."""

from __future__ import annotations

import csv
import os
from typing import Any, NamedTuple

from oar.audio.datasets.dataset import AudioClassificationDataset, folder_of

__all__ = ["ESC50"]


class ESC50(AudioClassificationDataset):
    """2,000 recordings of surroundings, five seconds each, in 50 classes from dogs to fireworks.

    Args:
        mode: ``'train'`` for the recordings of four folds, ``'dev'`` for those of the other.
        split: that other fold, 1 to 5.
        feat_type: what a sample holds: ``'raw'``, ``'spectrogram'``, ``'melspectrogram'``, ``'logmelspectrogram'`` or ``'mfcc'``.
        archive: the ``url`` and ``md5`` of the archive, if not the usual one; or the path of a folder that has
            ``ESC-50-master``. None looks in the folder of datasets and fetches the archive.
        kwargs: arguments of the layer of ``oar.audio.features`` that computes the feature.

    Returns:
        a dataset of pairs: a tensor, and the class. ``label_list`` has the names of the classes.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = pathlib.Path(tempfile.mkdtemp(), 'ESC-50-master')
        >>> (folder / 'audio').mkdir(parents=True)
        >>> (folder / 'meta').mkdir()
        >>> _ = (folder / 'meta' / 'esc50.csv').write_text('filename,fold,target,category,esc10,src_file,take\\n'
        ...                                                '1-100032-A-0.wav,1,0,dog,True,100032,A\\n')
        >>> oar.audio.save(folder / 'audio' / '1-100032-A-0.wav', oar.zeros([1, 800]), 44100)
        >>> sounds = oar.audio.datasets.ESC50(mode='dev', archive=str(folder.parent))
        >>> len(sounds), sounds[0][0].shape, sounds.label_list[sounds[0][1]]
        (1, [800], 'Dog')
    """

    archive: Any = {
        "url": "https://paddleaudio.bj.bcebos.com/datasets/ESC-50-master.zip",
        "md5": "7771e4b9d86d0945acce719c7a59305a",
    }
    label_list = [
        "Dog", "Rooster", "Pig", "Cow", "Frog", "Cat", "Hen", "Insects (flying)", "Sheep", "Crow",
        "Rain", "Sea waves", "Crackling fire", "Crickets", "Chirping birds", "Water drops", "Wind", "Pouring water",
        "Toilet flush", "Thunderstorm",
        "Crying baby", "Sneezing", "Clapping", "Breathing", "Coughing", "Footsteps", "Laughing", "Brushing teeth", "Snoring",
        "Drinking, sipping",
        "Door knock", "Mouse click", "Keyboard typing", "Door, wood creaks", "Can opening", "Washing machine",
        "Vacuum cleaner", "Clock alarm", "Clock tick", "Glass breaking",
        "Helicopter", "Chainsaw", "Siren", "Car horn", "Engine", "Train", "Church bells", "Airplane", "Fireworks", "Hand saw",
    ]  # fmt: skip
    meta = os.path.join("ESC-50-master", "meta", "esc50.csv")
    audio_path = os.path.join("ESC-50-master", "audio")

    class meta_info(NamedTuple):
        """A row of the table of recordings."""

        filename: str
        fold: str
        target: str
        category: str
        esc10: str
        src_file: str
        take: str

    def __init__(
        self, mode: str = "train", split: int = 1, feat_type: str = "raw", archive: Any = None, **kwargs: Any
    ) -> None:
        if split not in range(1, 6):
            raise AssertionError(f"[ESC50] split is {split!r}; it should be an integer from 1 to 5.")
        if archive is not None:
            self.archive = archive
        files, labels = self._get_data(mode, split)
        super().__init__(files=files, labels=labels, feat_type=feat_type, **kwargs)

    def _get_data(self, mode: str, split: int) -> tuple[list[str], list[int]]:
        folder = folder_of("ESC50", self.archive, [self.audio_path, self.meta])
        with open(os.path.join(folder, self.meta), newline="") as table:
            rows = [self.meta_info(*row) for row in list(csv.reader(table))[1:] if row]
        chosen = [row for row in rows if (int(row.fold) != split) == (mode == "train")]
        return [os.path.join(folder, self.audio_path, row.filename) for row in chosen], [int(row.target) for row in chosen]
