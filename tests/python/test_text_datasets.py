"""The datasets of oar.text and the readers of oar.dataset, on small archives. The numbers are what Paddle reads from them."""

import gzip
import pickle
import struct

import numpy as np
import pytest
import text_archives

import oar
from oar import dataset, text
from oar.dataset import common


def lists(samples):
    return [[np.asarray(field).tolist() for field in sample] for sample in samples]


def samples_of(data):
    return lists(data[number] for number in range(len(data)))


@pytest.fixture(params=["archive", "folder"])
def packed(request, tmp_path):
    """Files as a tar archive, and as the folder that it unpacks to."""

    def make(files):
        if request.param == "archive":
            return text_archives.tar(tmp_path / "files.tgz", files)
        return text_archives.folder(tmp_path / "unpacked", files)

    return make


def test_imdb(packed):
    path = packed(text_archives.IMDB)
    train = text.Imdb(path, cutoff=0)
    assert train.word_idx == {b"film": 0, b"great": 1, b"a": 2, b"bad": 3, b"acting": 4, b"fun": 5, b"is": 6, b"this": 7, "<unk>": 8}
    assert samples_of(train) == [[[2, 1, 0, 1, 5], [0]], [[7, 0, 6, 2, 3, 0], [1]]]
    assert samples_of(text.Imdb(path, mode="TEST", cutoff=3)) == [[[1, 1, 2], [0]], [[2, 2, 0], [1]]]
    assert train[0][0].dtype == np.int64


def test_imikolov(packed):
    path = packed(text_archives.PTB)
    runs = text.Imikolov(path, "NGRAM", 2, "test", 1)
    # '<s>' and '<e>' are text, words are bytes, and the corpus' own <unk> is a word.
    assert runs.word_idx == {"<e>": 0, "<s>": 1, b"the": 2, b"cat": 3, b"ran": 4, b"sat": 5, "<unk>": 6}
    assert samples_of(runs) == [[1, 6], [6, 3], [3, 4], [4, 0], [1, 2], [2, 2], [2, 0]]
    assert samples_of(text.Imikolov(path, "seq", 3, "test", 1)) == [[[1, 2, 2], [2, 2, 0]]]
    assert len(text.Imikolov(path, "SEQ", -1, "train", 1)) == 3
    with pytest.raises(AssertionError, match=r"\[Imikolov\] window_size is -1"):
        text.Imikolov(path)
    with pytest.raises(AssertionError, match=r"data_type is 'GRAM'; it should be one of 'NGRAM', 'SEQ'"):
        text.Imikolov(path, "GRAM")


def test_movielens(tmp_path):
    for path in (text_archives.movies(tmp_path / "ml-1m.zip"), text_archives.folder(tmp_path, text_archives.MOVIES)):
        before = np.random.get_state()[1].copy()
        parts = {mode: text.Movielens(path, mode, test_ratio=0.3, rand_seed=7) for mode in ("train", "test")}
        assert (np.random.get_state()[1] == before).all()
        for_test = np.random.RandomState(7).random_sample(40) < 0.3
        assert [len(parts["train"]), len(parts["test"])] == [(~for_test).sum(), for_test.sum()]
        number = int(np.flatnonzero(for_test)[0])
        user, gender, age, job, movie, categories, title, rating = lists([parts["test"][0]])[0]
        assert (user, movie, rating) == ([1 + number % 2], [1 + number % 3], [float(1 + number % 5) * 2 - 5])
        assert (gender, age, job) == (([1], [0], [10]) if user == [1] else ([0], [6], [16]))
        names = {n: word for word, n in parts["test"].movie_title_dict.items()}
        assert [names[n] for n in title] == [["toy", "story"], ["am\xe9lie"], ["the", "toy"]][movie[0] - 1]
        assert parts["train"].categories_dict == {"Animation": 0, "Comedy": 1, "Drama": 2}
        assert len(categories) == (2 if movie == [1] else 1)
    assert repr(parts["train"].user_info[2]) == "<UserInfo id(2), gender(M), age(56), job(16)>"
    assert repr(parts["train"].movie_info[1]) == "<MovieInfo id(1), title(Toy Story ), categories(['Animation', 'Comedy'])>"


def test_houses(tmp_path):
    rows = np.random.default_rng(0).random((10, 14))
    path = tmp_path / "housing.data"
    np.savetxt(path, rows)
    train, test = text.UCIHousing(str(path)), text.UCIHousing(str(path), mode="test")
    assert (len(train), len(test)) == (8, 2)
    scaled = (rows - rows.mean(0)) / (rows.max(0) - rows.min(0))
    np.testing.assert_allclose(test[1][0], scaled[9, :13].astype("float32"), rtol=1e-6, atol=1e-7)
    assert test[1][1].tolist() == [np.float32(rows[9, 13])] and test[1][0].dtype == np.float32
    path.write_text("1 2 3")
    with pytest.raises(ValueError, match=r"\[UCIHousing\] .* has 3 numbers; rows of 14 were expected"):
        text.UCIHousing(str(path))


def test_wmt14(packed):
    path = packed(text_archives.WMT14)
    pairs = text.WMT14(path, dict_size=5)
    assert samples_of(pairs) == [[[0, 3, 4, 1], [0, 3, 4], [3, 4, 1]], [[0, 3, 4, 2, 2, 1], [0, 3, 2, 4, 2], [3, 2, 4, 2, 1]]]
    assert samples_of(text.WMT14(path, "gen", 9)) == [[[0, 5, 1], [0, 5], [5, 1]]]
    assert pairs.get_dict(reverse=True)[1] == {0: "<s>", 1: "<e>", 2: "<unk>", 3: "the", 4: "cat"}
    with pytest.raises(AssertionError, match=r"\[WMT14\] dict_size is -1; it should be a positive number"):
        text.WMT14(path)


def test_wmt16(packed):
    path = packed(text_archives.WMT16)
    pairs = text.WMT16(path, "test", 6, 9)
    assert pairs.get_dict("en") == {"<s>": 0, "<e>": 1, "<unk>": 2, "a": 3, "dog": 4, "runs": 5}
    assert pairs.get_dict("de", reverse=True)[3] == "ein" and len(pairs.get_dict("de")) == 8
    assert samples_of(pairs) == [[[0, 2, 4, 1], [0, 2, 4], [2, 4, 1]]]
    assert samples_of(text.WMT16(path, "val", 6, 9, lang="de"))[0][0] == [0, 3, 2, 1]


def conll(tmp_path):
    folder = text_archives.folder(tmp_path, text_archives.CONLL_DICTIONARIES)
    names = ("wordDict.txt", "verbDict.txt", "targetDict.txt", "emb")
    return text.Conll05st(text_archives.tar(tmp_path / "conll.tgz", text_archives.CONLL), *(f"{folder}/{name}" for name in names))


def test_conll(tmp_path):
    data = conll(tmp_path)
    assert len(data) == 3 and data.get_embedding().endswith("emb")
    assert data.get_dict()[2] == {"B-A0": 0, "I-A0": 1, "B-V": 2, "I-V": 3, "B-A1": 4, "I-A1": 5, "O": 6}
    assert samples_of(data)[0] == [[0, 2, 3, 0], [0] * 4, [2] * 4, [3] * 4, [0] * 4, [5] * 4, [0] * 4, [1, 1, 1, 1], [0, 1, 2, 4]]
    assert samples_of(data)[2] == [[6, 0], [4, 4], [6, 6], [0, 0], [5, 5], [5, 5], [2, 2], [1, 1], [0, 2]]


def test_loaders_take_them(tmp_path):
    path = text_archives.tar(tmp_path / "ptb.tgz", text_archives.PTB)
    loader = oar.io.DataLoader(text.Imikolov(path, "NGRAM", 3, "train", 0), batch_size=4, num_workers=1)
    first = next(iter(loader))
    assert [field.shape for field in first] == [[4]] * 3 and first[0].dtype == oar.int64


@pytest.mark.parametrize("make", [text.Imdb, text.Movielens, text.UCIHousing, text.Imikolov], ids=lambda make: make.__name__)
def test_what_is_missing_is_said(make, tmp_path, monkeypatch):
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(common, "_PADDLE_HOME", str(tmp_path / "paddle"))

    def no_network(url, *_):
        raise RuntimeError(f"no way to {url}")

    monkeypatch.setattr(common, "download", no_network)
    arguments = {"window_size": 2} if make is text.Imikolov else {}
    with pytest.raises(RuntimeError) as caught:
        make(**arguments)
    told = str(caught.value)
    assert told.startswith(f"[{make.__name__}] data_file is not given") and "curl -L --create-dirs -o '" in told
    assert str(tmp_path / "home") in told and "no way to http" in told
    with pytest.raises(AssertionError, match="data_file is not given, and download=False"):
        make(download=False, **arguments)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        make(data_file=str(tmp_path / "nothing"), **arguments)
    with pytest.raises(AssertionError, match=r"mode is 'validate'; it should be one of 'train', 'test'"):
        make(mode="validate", **arguments)


def test_archives_that_are_not(tmp_path):
    (tmp_path / "page.html").write_text("<html>not found</html>")
    with pytest.raises(ValueError, match="is neither a tar or zip archive nor a folder"):
        text.Imdb(str(tmp_path / "page.html"))
    other = text_archives.tar(tmp_path / "other.tgz", {"a": "b"})
    with pytest.raises(FileNotFoundError, match=r"has no file 'ptb.train.txt'"):
        text.Imikolov(other, window_size=2)
    with pytest.raises(ValueError, match=r"has no files aclImdb/train/pos"):
        text.Imdb(other)


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """A function that puts a file where fetched ones are, with the sum that a module expects."""
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    monkeypatch.setattr(common, "_PADDLE_HOME", str(tmp_path / "paddle"))
    sums = {}
    monkeypatch.setattr(common, "md5_of", lambda path: sums.get(path))

    def put(folder, name, md5, make):
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / name
        make(path)
        sums[str(path)] = md5

    return put


def test_readers_of_text(fetched):
    fetched("imdb", "aclImdb_v1.tar.gz", dataset.imdb.MD5, lambda path: text_archives.tar(path, text_archives.IMDB))
    numbers = dataset.imdb.word_dict()
    assert numbers == {"<unk>": 0} and list(dataset.imdb.train(numbers)()) == [([0] * 5, 0), ([0] * 6, 1)]
    fetched("imikolov", "simple-examples.tgz", dataset.imikolov.MD5, lambda path: text_archives.tar(path, text_archives.PTB))
    numbers = dataset.imikolov.build_dict(min_word_freq=1)
    kinds = dataset.imikolov.DataType
    assert list(dataset.imikolov.test(numbers, 4)()) == [(1, 2, 6, 5), (2, 6, 5, 0)]
    assert list(dataset.imikolov.test(numbers, -1, kinds.SEQ)()) == [([1, 2, 6, 5], [2, 6, 5, 0])]
    fetched("wmt14", "wmt14.tgz", dataset.wmt14.MD5, lambda path: text_archives.tar(path, text_archives.WMT14))
    assert list(dataset.wmt14.test(5)()) == [([0, 4, 1], [0, 4], [4, 1])]
    assert dataset.wmt14.get_dict(4)[0][3] == "le"
    fetched("wmt16", "wmt16.tar.gz", dataset.wmt16.DATA_MD5, lambda path: text_archives.tar(path, text_archives.WMT16))
    assert list(dataset.wmt16.validation(6, 9)()) == [([0, 3, 2, 1], [0, 3, 2], [3, 2, 1])]
    assert dataset.wmt16.get_dict("de", 4) == {"<s>": 0, "<e>": 1, "<unk>": 2, "ein": 3}
    fetched("movielens", "ml-1m.zip", dataset.movielens.MD5, text_archives.movies)
    assert (dataset.movielens.max_movie_id(), dataset.movielens.max_user_id(), dataset.movielens.max_job_id()) == (3, 2, 16)
    assert len(list(dataset.movielens.train()())) + len(list(dataset.movielens.test()())) == 40


def test_readers_of_houses_and_digits(fetched):
    rows = np.random.default_rng(0).random((10, 14))
    fetched("uci_housing", "housing.data", dataset.uci_housing.MD5, lambda path: np.savetxt(path, rows))
    assert [price.item() for _, price in dataset.uci_housing.test()()] == pytest.approx(rows[8:, 13])
    assert dataset.uci_housing.predict_reader()[0].shape == (13,)
    images = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    heads = struct.pack(">4I", 2051, 5, 28, 28), struct.pack(">2I", 2049, 5)
    mnist = dataset.mnist
    fetched("mnist", "t10k-images-idx3-ubyte.gz", mnist.TEST_IMAGE_MD5, lambda path: path.write_bytes(gzip.compress(heads[0] + images.tobytes())))
    fetched("mnist", "t10k-labels-idx1-ubyte.gz", mnist.TEST_LABEL_MD5, lambda path: path.write_bytes(heads[1] + bytes([3, 1, 4, 1, 5])))
    pixels, digits = zip(*mnist.test()())
    assert digits == (3, 1, 4, 1, 5)
    np.testing.assert_allclose(pixels, images.reshape(5, 784) / 255.0 * 2 - 1, atol=1e-6)


def test_readers_of_photographs(fetched):
    def write(path):
        batch = {b"data": np.arange(2 * 3072, dtype=np.uint8).reshape(2, 3072), b"labels": [7, 2]}
        text_archives.tar(path, {"cifar-10-batches-py/test_batch": pickle.dumps(batch, protocol=2)})

    fetched("cifar", "cifar-10-python.tar.gz", dataset.cifar.CIFAR10_MD5, write)
    (first, label), second = dataset.cifar.test10()()
    assert (label, second[1]) == (7, 2) and first.dtype == np.float32
    np.testing.assert_allclose(first, np.arange(3072, dtype=np.uint8) / 255, atol=1e-7)
    cycling = dataset.cifar.test10(cycle=True)()
    assert [next(cycling)[1] for _ in range(5)] == [7, 2, 7, 2, 7]


def test_cifar_runs_no_code_of_a_file(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    path = text_archives.tar(tmp_path / "evil.tgz", {"test_batch": pickle.dumps(Evil())})
    with pytest.raises(pickle.UnpicklingError, match="builtins.print"):
        list(dataset.cifar.reader_creator(path, "test_batch")())


def test_reader_of_roles(tmp_path, monkeypatch):
    data = conll(tmp_path)
    monkeypatch.setattr(dataset.conll05, "Conll05st", lambda: data)
    assert list(dataset.conll05.test()())[1][-1] == [6, 6, 6, 2] and dataset.conll05.get_dict() == data.get_dict()
