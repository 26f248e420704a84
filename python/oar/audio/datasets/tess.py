"""Words spoken with seven emotions."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from oar.audio.datasets.dataset import AudioClassificationDataset, folder_of

__all__ = ["TESS"]


class TESS(AudioClassificationDataset):
    """2,800 recordings of two actresses who say 200 words with seven emotions, from Toronto.

    Args:
        mode: ``'train'`` for the recordings of all folds but one, ``'dev'`` for those of that one.
        n_folds: how many folds there are. Recordings, sorted by name, go to the folds in turn.
        split: the fold for ``'dev'``, from 1.
        feat_type: what a sample holds: ``'raw'``, ``'spectrogram'``, ``'melspectrogram'``, ``'logmelspectrogram'`` or ``'mfcc'``.
        archive: the ``url`` and ``md5`` of the archive, if not the usual one; or the path of a folder that has
            ``TESS_Toronto_emotional_speech_set``. None looks in the folder of datasets and fetches the archive.
        kwargs: arguments of the layer of ``oar.audio.features`` that computes the feature.

    Returns:
        a dataset of pairs: a tensor, and the class. ``label_list`` has the names of the emotions.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = pathlib.Path(tempfile.mkdtemp(), 'TESS_Toronto_emotional_speech_set')
        >>> folder.mkdir()
        >>> for emotion in ('happy', 'sad'):
        ...     oar.audio.save(folder / ('OAF_back_' + emotion + '.wav'), oar.zeros([1, 800]), 24414)
        ...
        >>> sounds = oar.audio.datasets.TESS(mode='dev', n_folds=2, archive=str(folder.parent))
        >>> len(sounds), sounds.label_list[sounds[0][1]]
        (1, 'happy')
    """

    archive: Any = {
        "url": "https://bj.bcebos.com/paddleaudio/datasets/TESS_Toronto_emotional_speech_set.zip",
        "md5": "1465311b24d1de704c4c63e4ccc470c7",
    }
    label_list = ["angry", "disgust", "fear", "happy", "neutral", "ps", "sad"]  # "ps": a pleasant surprise
    audio_path = "TESS_Toronto_emotional_speech_set"

    class meta_info(NamedTuple):
        """What the name of a file says."""

        speaker: str
        word: str
        emotion: str

    def __init__(
        self, mode: str = "train", n_folds: int = 5, split: int = 1, feat_type: str = "raw", archive: Any = None, **kwargs: Any
    ) -> None:
        if not isinstance(n_folds, int) or n_folds < 1:
            raise AssertionError(f"[TESS] n_folds is {n_folds!r}; it should be a positive integer.")
        if split not in range(1, n_folds + 1):
            raise AssertionError(f"[TESS] split is {split!r}; it should be an integer from 1 to n_folds, {n_folds}.")
        if archive is not None:
            self.archive = archive
        files, labels = self._get_data(mode, n_folds, split)
        super().__init__(files=files, labels=labels, feat_type=feat_type, **kwargs)

    def _get_data(self, mode: str, n_folds: int, split: int) -> tuple[list[str], list[int]]:
        folder = os.path.join(folder_of("TESS", self.archive, [self.audio_path]), self.audio_path)
        found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".wav")]
        files, labels = [], []
        for number, path in enumerate(sorted(found)):
            if (number % n_folds + 1 != split) == (mode == "train"):
                files.append(path)
                labels.append(self._label(path))
        return files, labels

    def _label(self, path: str) -> int:
        parts = os.path.splitext(os.path.basename(path))[0].split("_")
        if len(parts) != 3 or parts[2] not in self.label_list:
            raise ValueError(f"[TESS] {path!r} is not named as speaker_word_emotion.wav, with one of {', '.join(self.label_list)}.")
        return self.label_list.index(self.meta_info(*parts).emotion)
