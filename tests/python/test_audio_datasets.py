"""ESC50 and TESS on a few small files."""

import numpy as np
import pytest

import oar
from oar.audio import datasets
from oar.audio.datasets import dataset as base
from oar.dataset import common


def tone(path, seed, rate=8000, channels=1):
    oar.audio.save(path, oar.to_tensor(np.random.default_rng(seed).uniform(-1, 1, (channels, 2000)), dtype="float32"), rate)


@pytest.fixture
def surroundings(tmp_path):
    folder = tmp_path / "ESC-50-master"
    (folder / "audio").mkdir(parents=True)
    (folder / "meta").mkdir()
    rows = ["filename,fold,target,category,esc10,src_file,take"]
    for number in range(6):
        rows.append(f"{number}.wav,{number % 3 + 1},{number * 7},kind,True,{number},A")
        tone(folder / "audio" / f"{number}.wav", number)
    (folder / "meta" / "esc50.csv").write_text("\n".join(rows) + "\n")
    return str(tmp_path)


def test_folds(surroundings):
    train = datasets.ESC50(split=2, archive=surroundings)
    dev = datasets.ESC50("dev", 2, archive=surroundings)
    assert train.labels == [0, 14, 21, 35] and dev.labels == [7, 28] and len(train.label_list) == 50
    sound, label = dev[1]
    assert label == 28 and sound.shape == [2000] and dev.sample_rate == 8000
    np.testing.assert_array_equal(sound.numpy(), oar.audio.load(dev.files[1])[0].numpy()[0])
    assert datasets.ESC50("dev", 4, archive=surroundings).labels == []


@pytest.mark.parametrize("kind", ["spectrogram", "melspectrogram", "logmelspectrogram", "mfcc"])
def test_features(kind, surroundings):
    arguments = {"n_fft": 128} | ({} if kind == "spectrogram" else {"n_mels": 20}) | ({"n_mfcc": 10} if kind == "mfcc" else {})
    data = datasets.ESC50(feat_type=kind, archive=surroundings, **arguments)
    rate = {} if kind == "spectrogram" else {"sr": 8000}
    layer = base.feat_funcs[kind](**rate, **arguments)
    wave = oar.audio.load(data.files[0])[0]
    np.testing.assert_array_equal(data[0][0].numpy(), layer(wave)[0].numpy())


def test_batches_by_workers(surroundings):
    data = datasets.ESC50(feat_type="mfcc", archive=surroundings, n_mfcc=10, n_mels=20, n_fft=128)
    features, labels = next(iter(oar.io.DataLoader(data, batch_size=4, num_workers=1)))
    np.testing.assert_array_equal(features[2].numpy(), data[2][0].numpy())
    assert labels.tolist() == data.labels


def test_emotions(tmp_path):
    folder = tmp_path / "TESS_Toronto_emotional_speech_set" / "OAF"
    folder.mkdir(parents=True)
    for number, emotion in enumerate(["sad", "ps", "angry"]):
        tone(folder / f"OAF_word{number}_{emotion}.wav", number)
    train = datasets.TESS(n_folds=3, split=2, archive=str(tmp_path))
    assert [train.label_list[label] for label in train.labels] == ["sad", "angry"]
    assert datasets.TESS("dev", 3, 2, archive=str(tmp_path)).labels == [5]
    tone(folder / "hello.wav", 0)
    with pytest.raises(ValueError, match=r"\[TESS\] .*hello.wav' is not named as speaker_word_emotion.wav"):
        datasets.TESS(n_folds=4, split=3, archive=str(tmp_path))


def test_errors(surroundings, tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="feat_type is 'fft'; it must be one of 'raw', 'melspectrogram'"):
        datasets.ESC50(feat_type="fft", archive=surroundings)
    with pytest.raises(AssertionError, match="split is 6; it should be an integer from 1 to 5"):
        datasets.ESC50(split=6)
    with pytest.raises(AssertionError, match="split is 3; it should be an integer from 1 to n_folds, 2"):
        datasets.TESS(n_folds=2, split=3)
    with pytest.raises(FileNotFoundError, match="has no TESS_Toronto"):
        datasets.TESS(archive=surroundings)
    tone(tmp_path / "ESC-50-master" / "audio" / "1.wav", 0, channels=2)
    with pytest.raises(ValueError, match="has 2 channels; one was expected"):
        datasets.ESC50("dev", 2, archive=surroundings)[0]
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(common, "_PADDLE_HOME", str(tmp_path / "paddle"))

    def no_network(url, *_, **__):
        raise RuntimeError("no network")

    monkeypatch.setattr(base.download, "get_path_from_url", no_network)
    with pytest.raises(RuntimeError, match=r"(?s)\[ESC50\] ESC-50-master/audio is in neither .*curl -L -O 'https.*no network"):
        datasets.ESC50()


def test_files_that_are_there_are_not_fetched(surroundings, monkeypatch):
    monkeypatch.setattr(common, "DATA_HOME", surroundings)
    assert len(datasets.ESC50()) == 4
