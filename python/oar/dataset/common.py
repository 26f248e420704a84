"""Files from the web and their sums."""

from __future__ import annotations

import os

from oar.utils.download import _cache_folder, get_path_from_url, md5_of

__all__ = ["DATA_HOME", "download", "md5file"]

DATA_HOME = os.path.join(_cache_folder(), "dataset")


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
