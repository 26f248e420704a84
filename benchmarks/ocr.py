"""Text in images: Oar and RapidOCR on the same networks, one run, in turns.

    python benchmarks/ocr.py --rapidocr PYTHON [--models DIR] [--fonts DIR ...] [--images FILE ...] [--count 100] [--threads 1 2]

PYTHON is an interpreter with `pip install rapidocr==3.10.0 onnxruntime`; DIR defaults to that package's models. Each library has a
process of its own, and reads one image at a time, in turns. Texts and boxes are compared first: every line of every image. A row is the
sum over all images of the least of the rounds, in processor time, so that other programs disturb little; its ratio is the peer's time by
Oar's, so above 1 Oar is faster. `first` is the first time that an image is read, when Oar prepares programs for its sizes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import ocr_pages


def oar_reader(models: str, threads: int) -> Any:
    import oar
    from oar.vision import ocr

    oar.set_num_threads(threads)
    reader = ocr.Reader(models)
    return lambda path: [[line.text, line.score, line.box] for line in reader(path)]


def rapid_reader(models: str, threads: int) -> Any:
    from rapidocr import RapidOCR

    def only(word: str) -> str:
        return str(next(path for path in sorted(Path(models).rglob("*.onnx")) if word in path.stem.lower()))

    engine = RapidOCR(params={
        "Global.log_level": "critical", "EngineConfig.onnxruntime.intra_op_num_threads": threads,
        "Det.model_path": only("det"), "Rec.model_path": only("rec"), "Cls.model_path": only("cls")})

    def read(path: str) -> list[Any]:
        found = engine(path)
        return [] if found.txts is None else [[t, float(s), b.tolist()] for t, s, b in zip(found.txts, found.scores, found.boxes)]

    return read


def serve(library: str, models: str, threads: int) -> None:
    """Reads the images whose paths come in; answers with processor seconds, seconds and lines."""
    read = {"oar": oar_reader, "rapidocr": rapid_reader}[library](models, threads)
    for path in sys.stdin:
        processor, clock = time.process_time(), time.perf_counter()
        lines = read(path.rstrip("\n"))
        print(json.dumps([time.process_time() - processor, time.perf_counter() - clock, lines]), flush=True)


class Side:
    """A process that reads images."""

    def __init__(self, python: str, library: str, models: str, threads: int) -> None:
        self._process = subprocess.Popen([python, __file__, "--serve", library, "--models", models, "--threads", str(threads)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, path: Path) -> tuple[float, float, list[Any]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process that reads {path} has ended")
        return tuple(json.loads(answer))

    def close(self) -> None:
        self._process.communicate()


def furthest(a: list[Any], b: list[Any]) -> float:
    """The largest distance between corners of the boxes, in pixels along an axis."""
    return max((abs(p - q) for x, y in zip(a, b) for u, v in zip(x[2], y[2]) for p, q in zip(u, v)), default=0.0)


def compare(images: list[Path], ours: list[list[Any]], theirs: list[list[Any]]) -> bool:
    same, lines, worst = 0, 0, 0.0
    for path, a, b in zip(images, ours, theirs):
        lines += len(b)
        if [line[0] for line in a] == [line[0] for line in b]:
            same += 1
            worst = max(worst, furthest(a, b))
            continue
        different = [(x[0], y[0]) for x, y in zip(a, b) if x[0] != y[0]]
        print(f"  {path.name}: {len(a)} lines and {len(b)}; first difference {different[:1]}")
    print(f"the same text on {same} of {len(images)} images ({lines} lines); their boxes differ by at most {worst:g} pixels")
    return same == len(images)


def measure(python: str, models: str, images: list[Path], threads: int, rounds: int) -> bool:
    sides = {"oar": Side(sys.executable, "oar", models, threads), "rapidocr": Side(python, "rapidocr", models, threads)}
    times: dict[str, list[list[tuple[float, float]]]] = {name: [[] for _ in images] for name in sides}
    texts: dict[str, list[list[Any]]] = {name: [] for name in sides}
    for _ in range(rounds):
        for i, path in enumerate(images):
            for name, side in sides.items():
                processor, clock, lines = side.read(path)
                times[name][i].append((processor, clock))
                if len(texts[name]) == i:
                    texts[name].append(lines)
    for side in sides.values():
        side.close()
    agree = compare(images, texts["oar"], texts["rapidocr"])
    for what, pick in (("first", lambda runs: runs[0]), ("best", lambda runs: tuple(map(min, zip(*runs))))):
        for which, kind in enumerate(("processor", "clock")):
            ours, theirs = (sum(pick(runs)[which] for runs in times[name]) for name in ("oar", "rapidocr"))
            print(f"{threads} threads, {what}, {kind}: Oar {ours:.2f} s, RapidOCR {theirs:.2f} s, ratio {theirs / ours:.2f}")
    return agree


def models_of(python: str) -> str:
    code = "import importlib.util as u, pathlib as p; print(p.Path(u.find_spec('rapidocr').origin).parent / 'models')"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rapidocr", help="a Python that has RapidOCR")
    parser.add_argument("--models", help="a folder with one detection, one recognition and one direction network")
    parser.add_argument("--fonts", type=Path, nargs="*", default=[Path("/usr/share/fonts")])
    parser.add_argument("--images", type=Path, nargs="*", default=[], help="more images")
    parser.add_argument("--count", type=int, default=100, help="rendered pages")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.models, arguments.threads[0])
        return 0
    if not arguments.rapidocr:
        parser.error("--rapidocr is missing: the Python of an environment with `pip install rapidocr==3.10.0 onnxruntime`")
    models = arguments.models or models_of(arguments.rapidocr)
    with tempfile.TemporaryDirectory() as folder:
        # Drawn by the peer's Python, which has Pillow.
        subprocess.run([arguments.rapidocr, ocr_pages.__file__, folder, str(arguments.count), *map(str, arguments.fonts)], check=True)
        images = [*sorted(Path(folder).iterdir()), *arguments.images]
        agree = [measure(arguments.rapidocr, models, images, threads, arguments.rounds) for threads in arguments.threads]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
