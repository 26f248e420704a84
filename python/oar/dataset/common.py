"""Files from the web, where they are kept, and their sums."""

from __future__ import annotations

import glob
import importlib
import os
import pickle
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

from oar.utils.download import _cache_folder, get_path_from_url, md5_of

__all__ = ["DATA_HOME", "cluster_files_reader", "download", "fetch_all", "md5file", "split"]

DATA_HOME = os.path.join(_cache_folder(), "dataset")
# Where Paddle keeps what it has fetched.
_PADDLE_HOME = os.path.join(os.path.expanduser("~"), ".cache", "paddle", "dataset")

_MODULES = ("cifar", "conll05", "imdb", "imikolov", "mnist", "movielens", "uci_housing", "wmt14", "wmt16")


def md5file(fname: str) -> str:
    """The MD5 sum of a file.

    Args:
        fname: its path.

    Returns:
        32 hexadecimal digits.

    Examples:
        >>> import os
        >>> from oar.dataset.common import md5file
        >>> md5file(os.devnull)
        'd41d8cd98f00b204e9800998ecf8427e'
    """
    return md5_of(fname)


def download(url: str, module_name: str, md5sum: str, save_name: str | None = None) -> str:
    """Fetches a file into a folder of ``DATA_HOME``, unless it is there.

    Args:
        url: the address of the file.
        module_name: the folder.
        md5sum: the MD5 sum that the file must have.
        save_name: the name to store it under; None keeps that of the address.

    Returns:
        the path of the file.

    Examples:
        >>> from oar.dataset.common import download
        >>> try:
        ...     download('digits.zip', 'digits', '0')
        ... except ValueError as error:
        ...     print(error)
        ...
        [download] 'digits.zip' is no address; it must begin with http:// or https://.
    """
    folder = os.path.join(DATA_HOME, module_name)
    wanted = os.path.join(folder, save_name) if save_name else None
    if wanted and os.path.exists(wanted) and md5_of(wanted) == md5sum:
        return wanted
    path = get_path_from_url(url, folder, md5sum, decompress=False)
    if wanted:
        os.replace(path, wanted)
    return wanted or path


def fetch_all() -> None:
    """Fetches the files of all datasets of ``oar.dataset``."""
    for name in _MODULES:
        importlib.import_module(f"oar.dataset.{name}").fetch()


def split(reader: Callable[[], Iterator[Any]], line_count: int, suffix: str = "%05d.pickle",
          dumper: Callable[[Any, Any], None] = pickle.dump) -> None:
    """Writes the samples of a reader to files of some samples each.

    Args:
        reader: a function without arguments that returns an iterator over samples.
        line_count: how many samples a file gets.
        suffix: the path of the files, with a place for their number.
        dumper: called with a list of samples and an open file.

    Examples:
        >>> import glob, os, tempfile
        >>> from oar.dataset.common import split
        >>> folder = tempfile.mkdtemp()
        >>> split(lambda: iter(range(5)), 2, os.path.join(folder, 'part-%05d.pickle'))
        >>> [os.path.basename(path) for path in sorted(glob.glob(folder + '/*'))]
        ['part-00000.pickle', 'part-00001.pickle', 'part-00002.pickle']
    """
    if not callable(dumper):
        raise TypeError(f"[split] dumper should be a function, not {dumper!r}.")
    if line_count < 1:
        raise ValueError(f"[split] line_count is {line_count}; a file needs one sample at least.")
    samples: list[Any] = []
    number = 0
    for sample in reader():
        samples.append(sample)
        if len(samples) == line_count:
            _dump(samples, suffix % number, dumper)
            samples, number = [], number + 1
    if samples:
        _dump(samples, suffix % number, dumper)


def _dump(samples: list[Any], path: str, dumper: Callable[[Any, Any], None]) -> None:
    with open(path, "wb") as file:
        dumper(samples, file)


def cluster_files_reader(
    files_pattern: str, trainer_count: int, trainer_id: int, loader: Callable[[Any], Any] = pickle.load
) -> Callable[[], Iterator[Any]]:
    """A reader of the part of the files of ``split`` that belongs to one process.

    Args:
        files_pattern: a pattern of paths, such as ``'part-*.pickle'``.
        trainer_count: how many processes read.
        trainer_id: the number of this process.
        loader: returns the samples of an open file. The default unpickles, so read only files that you trust.

    Returns:
        a function without arguments that returns an iterator over samples.

    Examples:
        >>> import os, tempfile
        >>> from oar.dataset.common import cluster_files_reader, split
        >>> folder = tempfile.mkdtemp()
        >>> split(lambda: iter(range(5)), 2, os.path.join(folder, 'part-%05d.pickle'))
        >>> list(cluster_files_reader(folder + '/*.pickle', trainer_count=2, trainer_id=0)())
        [0, 1, 4]
    """
    if not callable(loader):
        raise TypeError(f"[cluster_files_reader] loader should be a function, not {loader!r}.")

    def reader() -> Iterator[Any]:
        for path in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            with open(path, "rb") as file:
                yield from loader(file)

    return reader


def found_or_fetched(
    owner: str, argument: str, given: str | None, url: str, md5: str, module_name: str, download_it: bool = True
) -> str:
    """The path of a dataset's file: the one that is given, one that was fetched before, or one that is fetched now.

    Args:
        owner: the dataset, for messages.
        argument: the argument that names the file, for messages.
        given: what the user passed for it.
        url: where the file is on the web.
        md5: the sum that it must have.
        module_name: the folder of ``DATA_HOME`` that keeps it.
        download_it: whether it may be fetched.
    """
    if given is not None:
        if not os.path.exists(given):
            raise FileNotFoundError(f"[{owner}] {argument} is {given!r}, but there is no such file.")
        return given
    if not download_it:
        raise AssertionError(f"[{owner}] {argument} is not given, and download=False. Pass one of them.")
    name = os.path.basename(urllib.parse.urlsplit(url).path)
    plain = os.path.basename(urllib.parse.unquote(name))
    folders = [os.path.join(home, module_name) for home in (DATA_HOME, _PADDLE_HOME)]
    for path in (os.path.join(folder, known) for folder in folders for known in dict.fromkeys((name, plain))):
        if os.path.isfile(path) and md5_of(path) == md5:
            return path
    try:
        return download(url, module_name, md5)
    except (RuntimeError, OSError) as error:
        target = os.path.join(folders[0], name)
        raise RuntimeError(
            f"[{owner}] {argument} is not given, and {plain} (MD5 sum {md5}) is in neither {folders[0]} nor {folders[1]}, and it "
            f"could not be fetched. Where there is a network, run\n    curl -L --create-dirs -o '{target}' '{url}'\nor pass "
            f"{argument} with the path of your copy. The reason: {error}"
        ) from None


def _check_exists_and_download(path: str | None, url: str, md5: str, module_name: str, download: bool = True) -> str:
    """Paddle's name of what finds or fetches a file."""
    if path and os.path.exists(path):
        return path
    if not download:
        raise ValueError(f"[{module_name}] {path} does not exist, and download=False.")
    return found_or_fetched(module_name, "path", None, url, md5, module_name)
