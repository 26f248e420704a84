"""Files from the web, kept in a folder of the user's cache."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Sequence

__all__ = ["get_path_from_url", "get_weights_path_from_url", "is_url"]

_TRIES = 3
logger = logging.getLogger(__name__)


def _cache_folder() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("OAR_CACHE_DIR") or os.path.join(cache, "oar")


WEIGHTS_HOME = os.path.join(_cache_folder(), "weights")


def is_url(path: str) -> bool:
    """Whether a path is an address on the web.

    Args:
        path: the path.

    Returns:
        a bool.

    Examples:
        >>> from oar.utils.download import is_url
        >>> is_url('https://example.org/net.pdparams'), is_url('net.pdparams')
        (True, False)
    """
    return path.startswith(("http://", "https://"))


def get_weights_path_from_url(url: str, md5sum: str | None = None) -> str:
    """Fetches a file of weights, unless it is in the cache, and returns its path.

    Args:
        url: the address of the file.
        md5sum: the MD5 sum that the file must have, in hexadecimal digits, or None.

    Returns:
        the path of the file.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.utils.download.get_weights_path_from_url('net.pdparams')
        ... except ValueError as error:
        ...     print(error)
        ...
        [download] 'net.pdparams' is no address; it must begin with http:// or https://.
    """
    return get_path_from_url(url, WEIGHTS_HOME, md5sum)


def get_path_from_url(
    url: str, root_dir: str, md5sum: str | None = None, check_exist: bool = True, decompress: bool = True,
    method: str = "get",
) -> str:  # fmt: skip
    """Fetches a file into a folder, unpacks archives, and returns the path.

    Args:
        url: the address of the file.
        root_dir: the folder; it is created if it is not there.
        md5sum: the MD5 sum that the file must have, in hexadecimal digits, or None.
        check_exist: whether a file that is already there is taken, if its sum is right.
        decompress: whether zip and tar archives are unpacked beside the file.
        method: accepted for compatibility.

    Returns:
        the path of the file; of an archive that was unpacked, that of its one folder, else of the folder around.

    Examples:
        >>> import tempfile
        >>> from oar.utils.download import get_path_from_url
        >>> try:
        ...     get_path_from_url('ftp://example.org/net.zip', tempfile.gettempdir())
        ... except ValueError as error:
        ...     print(error)
        ...
        [download] 'ftp://example.org/net.zip' is no address; it must begin with http:// or https://.
    """
    if not is_url(url):
        raise ValueError(f"[download] {url!r} is no address; it must begin with http:// or https://.")
    name = os.path.basename(urllib.parse.urlsplit(url).path)
    if not name:
        raise ValueError(f"[download] the address {url!r} does not name a file.")
    os.makedirs(root_dir, exist_ok=True)
    path = os.path.join(root_dir, name)
    if not (check_exist and os.path.exists(path) and _sum_fits(path, md5sum)):
        _fetch(url, path, md5sum)
    if decompress and (tarfile.is_tarfile(path) or zipfile.is_zipfile(path)):
        return _unpack(path)
    return path


def md5_of(path: str) -> str:
    """The MD5 sum of a file, in hexadecimal digits."""
    found = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def _sum_fits(path: str, md5sum: str | None) -> bool:
    return md5sum is None or md5_of(path) == md5sum


def _fetch(url: str, path: str, md5sum: str | None) -> None:
    """Writes a file beside its place and moves it there once it is whole."""
    reason = ""
    for _ in range(_TRIES):
        handle, part = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f"{os.path.basename(path)}.part")
        try:
            with os.fdopen(handle, "wb") as file, urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310
                shutil.copyfileobj(answer, file, 1 << 20)
            if _sum_fits(part, md5sum):
                os.replace(part, path)
                return
            reason = f"its MD5 sum is not {md5sum}"
        except (urllib.error.URLError, OSError) as error:
            reason = str(error)
        finally:
            if os.path.exists(part):
                os.remove(part)
    raise RuntimeError(f"[download] {url} could not be fetched in {_TRIES} tries: {reason}. "
                       f"hint: fetch the file by other means and put it at {path}.")


def _unpack(path: str) -> str:
    """Unpacks an archive beside itself. Entries that would lie outside of the folder are refused."""
    folder = os.path.dirname(path)
    if tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            names = archive.getnames()
            archive.extractall(folder, filter="data")
    else:
        with zipfile.ZipFile(path) as archive_of_files:
            names = archive_of_files.namelist()
            archive_of_files.extractall(folder)
    tops = {os.path.normpath(name).split(os.sep)[0] for name in names}
    return os.path.join(folder, tops.pop()) if len(tops) == 1 else folder


def _decompress(fname: str) -> str:
    """Paddle's name of the step that unpacks an archive beside itself. Returns the path of what was inside."""
    return _unpack(fname)


def _get_unique_endpoints(trainer_endpoints: Sequence[str]) -> set[str]:
    """Of addresses ``host:port``, the first of each host: these processes fetch files for the others of their machine."""
    firsts: dict[str, str] = {}
    for endpoint in trainer_endpoints:
        firsts.setdefault(endpoint.split(":")[0], endpoint)
    return set(firsts.values())
