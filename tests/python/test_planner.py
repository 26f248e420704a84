"""`oar plan` and `oar distributed calibrate`: from a captured step to a plan, its picture and its placements."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import oar
import oar.nn.functional as F
from oar import nn
from oar.distributed import Replicate, Shard, load_plan

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build" / "bin" / "oar"

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")


def run(*words: object, status: int = 0) -> str:
    done = subprocess.run([str(COMMAND), *map(str, words)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status != 2 else done.stderr


@pytest.fixture(scope="module")
def step_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of a training step, as text."""
    oar.seed(1)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = oar.optimizer.AdamW(1e-3, parameters=net.parameters())

    @oar.jit.to_static
    def step(x: oar.Tensor, y: oar.Tensor) -> oar.Tensor:
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step(oar.randn([32, 64]), oar.randint(0, 8, [32]))
    path = tmp_path_factory.mktemp("plan") / "step.txt"
    path.write_text(str(step.main_program))
    return path


def test_a_captured_step_is_planned_and_loaded(step_file: Path, tmp_path: Path) -> None:
    file, svg = tmp_path / "plan.json", tmp_path / "plan.svg"
    told = "by hand: data=2,tensor=2"
    file.write_text(run("plan", step_file, "--mesh", "2x2", "--svg", svg, "--json", "--compare", told))
    content = json.loads(file.read_text())
    assert content["devices"] == 4 and content["plan"]["fits"]
    assert content["told"][0]["name"] == "by hand"
    assert content["plan"]["seconds"] <= content["told"][0]["seconds"]
    assert 1 <= len(content["alternatives"]) <= 3
    assert all(content["plan"]["seconds"] <= other["seconds"] for other in content["alternatives"])
    assert svg.read_text().endswith("</svg>\n")
    plan = load_plan(str(file))
    sizes = 1
    for size in plan.axes.values():
        sizes *= size
    assert sizes * content["plan"]["pipeline"] == 4
    names = [name for name in plan.placements if ".w_" in name]
    assert len(names) >= 3
    for name in names:
        assert len(plan.placements[name]) == len(plan.axes)
        assert all(isinstance(p, (Shard, Replicate)) for p in plan.placements[name])
    if plan.axes:
        assert plan.mesh().shape == list(plan.axes.values())


def test_placements_of_the_user_hold(step_file: Path) -> None:
    program = step_file.read_text()
    name = next(word.strip("%:,") for word in program.split() if word.startswith("%linear") and ".w_0" in word)
    out = json.loads(run("plan", step_file, "--devices", 2, "--place", f"{name}=1", "--compare", "tensor=2", "--json"))
    assert out["told"], out
    tensor = [axis["name"] for axis in out["axes"]]
    if "tensor" in tensor:
        assert out["states"][name][tensor.index("tensor")] == {"shard": 1}


def test_the_text_says_what_and_why(step_file: Path) -> None:
    text = run("plan", step_file, "--devices", 4)
    for word in ("step ", "bubble", "most memory", "sent by a device", "other plans"):
        assert word in text
    assert "No plan fits" in run("plan", step_file, "--devices", 4, "--memory", "1kB", status=1)
    assert "--mesh 8x4" in run("plan", "--help")


def test_a_description_of_a_large_model_is_planned(tmp_path: Path) -> None:
    sizes = {"layers": 12, "hidden": 4096, "heads": 32, "vocabulary": 32000, "sequence": 1024, "batch": 512}
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"kind": "transformer", **sizes}))
    machine = ROOT / "examples" / "planner" / "a100.json"
    plan = json.loads(run("plan", path, "--mesh", "4x8", "--machine", machine, "--json"))
    assert plan["devices"] == 32 and plan["plan"]["fits"]
    # No device computes faster than the machine does: six operations for each token and weight of a layer.
    weights = sizes["layers"] * 12 * sizes["hidden"] ** 2
    assert plan["plan"]["seconds"] > 6 * weights * sizes["batch"] * sizes["sequence"] / (32 * 312e12)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--mesh 8x4, or --devices 32"),
        (["--mesh", "2xtwo"], "number from 1"),
        (["--devices", "2", "--memory", "much"], "40GB"),
        (["--devices", "2", "--place", "nothing=0"], "no value 'nothing'"),
        (["--devices", "2", "--compare", "tensr=2"], "tensor=4"),
        (["--devices", "2", "--compare", "data=3"], "uses 3 devices"),
        (["--devices", "3", "--compare", "data=3"], "divide the batch"),
        (["--devices", "4", "--mesh", "2x4"], "one of them"),
    ],
)
def test_errors_show_a_way_out(step_file: Path, words: list[str], says: str) -> None:
    assert says in run("plan", step_file, *words, status=2)


def test_what_is_no_step_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text(str(oar.jit.capture(lambda x: x.exp(), [oar.ones([2])])))
    assert "no training step" in run("plan", path, "--devices", 2, status=2)
    path = tmp_path / "model.json"
    path.write_text('{"layer": 2}')
    assert 'did you mean "layers"?' in run("plan", path, "--devices", 2, status=2)


def test_calibrate_writes_what_plan_reads(step_file: Path, tmp_path: Path) -> None:
    if not oar.distributed.is_available():
        pytest.skip("no engine is built")
    file = tmp_path / "machine.json"
    done = subprocess.run([sys.executable, "-m", "oar.distributed.planning", "calibrate", "--output", str(file), "--repeat", "2"],
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    machine = json.loads(file.read_text())
    assert machine["flops"] > 1e8 and machine["links"][0]["bandwidth"] > 1e5
    assert {curve["collective"] for curve in machine["curves"]} == {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"}  # fmt: skip
    assert "step " in run("plan", step_file, "--devices", 2, "--machine", file)


def test_a_plan_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for content in ("{}", "[1]", "no", '{"axes": 3, "states": {}}'):
        path.write_text(content)
        with pytest.raises(ValueError, match="load_plan"):
            load_plan(str(path))
