"""``python -m oar.tools.from_torch``: scripts as users write them, single calls, what is reported, the command.

``from_torch/scripts`` holds scripts for PyTorch, ``from_torch/converted`` what they become. After a change of the converter that is
meant to change them, run it on each script with ``-o`` and read the difference. ``peers/test_from_torch_scripts.py`` compares the
losses of both in the two libraries.
"""

import ast
import importlib
import inspect
import math
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import oar
import pytest
from oar import nn
from oar.tools.from_torch import convert
from oar.tools.from_torch.__main__ import main
from oar.tools.from_torch.tables import MODULES, method_table, table

FOLDER = Path(__file__).parent / "from_torch"
SCRIPTS = sorted(path.stem for path in (FOLDER / "scripts").glob("*.py"))
DIGITS = Path(oar.__file__).parent / "datasets" / "digits.npz"
# What is reported about each script; the others need nothing.
NOTES = {
    "amp_accumulation": [(60, "torch.backends.cudnn.deterministic = True: it sets up PyTorch alone and was removed")],
    "resnet": [(12, "cudnn.benchmark = True: it sets up PyTorch alone and was removed"),
               (27, "torch.nn.BatchNorm2d is passed on")],
}


def converted(text):
    return convert(text).text


def notes(text):
    return [note.text for note in convert(text).notes]


def test_there_are_fifteen_scripts():
    assert len(SCRIPTS) == 15


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_becomes_what_it_became(name):
    made = convert((FOLDER / "scripts" / f"{name}.py").read_text())
    assert made.text == (FOLDER / "converted" / f"{name}.py").read_text()
    wanted = NOTES.get(name, [])
    assert len(made.notes) == len(wanted)
    for note, (line, text) in zip(made.notes, wanted, strict=True):
        assert (note.line, note.text[:len(text)]) == (line, text)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_converted_script_imports_oar_and_keeps_its_comments(name):
    before, after = ((FOLDER / kind / f"{name}.py").read_text() for kind in ("scripts", "converted"))
    imported = {alias.name if isinstance(node, ast.Import) else node.module
                for node in ast.walk(ast.parse(after)) if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
    tops = {module.partition(".")[0] for module in imported}
    assert "oar" in tops
    assert not tops & {"torch", "torchvision"}
    assert re.findall(r"#.*", before) == re.findall(r"#.*", after)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_converted_script_runs(name, monkeypatch, capsys, tmp_path):
    saved = str(tmp_path / "first.pt")
    given = ["--data", str(DIGITS)] if name == "mlp_digits" else []
    for more in (["--save-init", saved], ["--init", saved]):
        monkeypatch.setattr(sys, "argv", [name, "--steps", "3", *given, *more])
        runpy.run_path(str(FOLDER / "converted" / f"{name}.py"), run_name="__main__")
        losses = [float(found) for found in re.findall(r"loss[ =:]+([-\d.e]+)", capsys.readouterr().out, re.IGNORECASE)]
        assert len(losses) >= 3
        assert all(math.isfinite(loss) for loss in losses)


def test_mixed_precision_and_checkpoints(tmp_path):
    found = []
    for steps in ("2", "4"):
        call = [sys.executable, FOLDER / "converted" / "amp_accumulation.py", "--amp", "--steps", steps, "--checkpoint", tmp_path / "kept"]
        done = subprocess.run(call, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found += re.findall(r"^step (\d+)", done.stdout, re.MULTILINE)
    assert found == ["0", "1", "2", "3"]


# ---- the tables --------------------------------------------------------------------------------------------------


def _found(path):
    value = oar
    for name in path.split(".")[1:]:
        value = getattr(value, name)
    return value


def test_every_row_leads_to_something_of_oar():
    rules = [rule for rows in table().rules.values() for rule in rows if not rule.template]
    assert len(rules) > 600
    for rule in rules:
        assert _found(rule.target) is not None, rule.path


def test_every_module_is_there():
    for module in MODULES.values():
        assert importlib.import_module(module)


def _takes(function):
    """The names of arguments of a function or class, or None if it takes any."""
    if isinstance(function, type) and function.__init__ is object.__init__:
        return None
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    second = {keyword for keyword, meant in oar._C.spellings.items() if set(meant) & set(parameters)}
    return set(parameters) | second | {"device", "requires_grad", "pin_memory", "dtype"}


def test_every_argument_has_a_name_of_oar():
    checked = 0
    for rows in table().rules.values():
        for rule in rows:
            takes = None if rule.template else _takes(_found(rule.target))
            for parameter in rule.parameters or () if takes is not None else ():
                if parameter.new:
                    checked += 1
                    assert parameter.new in takes, (rule.path, parameter.new, sorted(takes))
    assert checked > 400


def test_methods_that_are_renamed_are_there():
    owners = {"tensor": oar.Tensor, "optimizer": oar.optimizer.Adam, "schedule": oar.optimizer.lr.StepDecay, "module": nn.Layer,
              "scaler": oar.amp.GradScaler}
    for kind, owner in owners.items():
        for rows in method_table(kind).rules.values():
            for rule in rows:
                if not rule.template and not rule.advice:
                    assert hasattr(owner, rule.target.lstrip(".")), rule.path


# ---- single calls ------------------------------------------------------------------------------------------------

CALLS = """
torch.cat([a, b], dim=1) -> oar.concat([a, b], dim=1)
torch.max(a) -> oar.max(a)
torch.max(a, b) -> oar.compat.max(a, b)
torch.max(a, dim=1)[0] -> oar.compat.max(a, dim=1)[0]
torch.tensor([1.0], requires_grad=True) -> oar.to_tensor([1.0], stop_gradient=False)
torch.tensor(a, dtype=torch.long, device=d) -> oar.to_tensor(a, dtype=oar.int64, place=d)
torch.randint(10, (3,)) -> oar.randint(high=10, shape=(3,), low=0)
torch.randint(0, 10, (3,)) -> oar.randint(0, 10, (3,))
torch.Tensor(a) -> oar.FloatTensor(a)
isinstance(a, torch.Tensor) -> isinstance(a, oar.Tensor)
torch.relu(torch.abs(a)) -> oar.nn.functional.relu(oar.abs(a))
torch.numel(a) -> a.size
torch.load("f", map_location="cpu", weights_only=True) -> oar.load("f")
torch.device("cuda:0") -> oar.device("cuda:0")
torch.compile(a, mode="max-autotune") -> oar.jit.to_static(a)
torch.nn.Linear(3, 4, bias=False) -> oar.compat.nn.Linear(3, 4, bias=False)
torch.nn.BatchNorm2d(8, 1e-3, 0.01) -> oar.nn.BatchNorm2D(8, epsilon=1e-3, momentum=0.99)
torch.nn.BatchNorm1d(8, momentum=m + n) -> oar.nn.BatchNorm1D(8, momentum=1 - (m + n))
torch.nn.LSTM(3, 4) -> oar.nn.LSTM(3, 4, time_major=True)
torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True) -> oar.nn.LSTM(3, 4, direction="bidirect")
torch.nn.GRU(3, 4, 2, False, batch_first=first) -> oar.nn.GRU(3, 4, 2, bias_ih_attr=False, bias_hh_attr=False, time_major=not first)
torch.nn.RNN(3, 4, bidirectional=two) -> oar.nn.SimpleRNN(3, 4, direction="bidirect" if two else "forward", time_major=True)
torch.nn.Embedding(9, 4, padding_idx=0, sparse=True) -> oar.nn.Embedding(9, 4, padding_idx=0, sparse=True)
torch.nn.ConvTranspose2d(1, 2, 3, 2, 1, 1, bias=False) -> oar.nn.Conv2DTranspose(1, 2, 3, 2, 1, 1, bias_attr=False)
torch.nn.Conv2d(1, 2, 3, padding_mode="circular") -> oar.nn.Conv2D(1, 2, 3, padding_mode="circular")
torch.nn.MaxPool2d(2, return_indices=True) -> oar.nn.MaxPool2D(2, return_mask=True)
torch.nn.Dropout(0.5, inplace=True) -> oar.nn.Dropout(0.5)
torch.nn.Dropout(0.5, True) -> oar.nn.Dropout(0.5)
torch.nn.ReLU(inplace=True) -> oar.nn.ReLU()
torch.nn.ReLU(True,) -> oar.nn.ReLU()
torch.nn.CrossEntropyLoss(w, ignore_index=-1) -> oar.nn.CrossEntropyLoss(w, ignore_index=-1, axis=1)
torch.nn.CrossEntropyLoss(reduction="none",) -> oar.nn.CrossEntropyLoss(reduction="none", axis=1,)
torch.nn.HuberLoss("sum", 0.5) -> oar.nn.SmoothL1Loss("sum", 0.5)
torch.nn.functional.cross_entropy(a, b) -> oar.nn.functional.cross_entropy(a, b, axis=1)
torch.nn.functional.avg_pool2d(a, 3, padding=1) -> oar.nn.functional.avg_pool2d(a, 3, padding=1, exclusive=False)
torch.nn.functional.avg_pool2d(a, 2) -> oar.nn.functional.avg_pool2d(a, 2)
torch.nn.functional.binary_cross_entropy_with_logits(a, b, pos_weight=w) -> oar.nn.functional.binary_cross_entropy_with_logits(a, b, pos_weight=w)
torch.nn.Transformer.generate_square_subsequent_mask(n + 1) -> oar.triu(oar.full([n + 1, n + 1], float("-inf")), diagonal=1)
torch.nn.TransformerEncoderLayer(8, 2, batch_first=True) -> oar.nn.TransformerEncoderLayer(8, 2, dim_feedforward=2048)
torch.optim.SGD(ps, 0.1) -> oar.optimizer.SGD(parameters=ps, learning_rate=0.1)
torch.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True) -> oar.optimizer.Momentum(parameters=ps, learning_rate=0.1, momentum=0.9, use_nesterov=True)
torch.optim.Adam(ps, lr=1e-3, betas=(0.5, 0.9), eps=1e-7) -> oar.optimizer.Adam(parameters=ps, learning_rate=1e-3, beta1=0.5, beta2=0.9, epsilon=1e-7)
torch.optim.Adam(ps, betas=pair) -> oar.optimizer.Adam(parameters=ps, beta1=pair[0], beta2=pair[1])
torch.optim.Adagrad(ps) -> oar.optimizer.Adagrad(parameters=ps, learning_rate=0.01, epsilon=1e-10)
torch.utils.data.TensorDataset(a, b) -> oar.io.TensorDataset([a, b])
torch.utils.data.TensorDataset(*parts) -> oar.io.TensorDataset([*parts])
torch.utils.data.DataLoader(d, 4, True, num_workers=2) -> oar.io.DataLoader(d, batch_size=4, shuffle=True, num_workers=2)
torch.utils.data.DataLoader(d, batch_size=4, sampler=s) -> oar.io.DataLoader(d, batch_sampler=oar.io.BatchSampler(sampler=s, batch_size=4, drop_last=False))
torch.cuda.amp.GradScaler(enabled=e) -> oar.amp.GradScaler(enable=e)
torch.amp.GradScaler("cuda", init_scale=8.0) -> oar.amp.GradScaler(init_loss_scaling=8.0)
torch.autocast("cuda") -> oar.amp.auto_cast()
torch.autocast("cpu") -> oar.amp.auto_cast(dtype='bfloat16')
torch.autograd.grad(a, b, create_graph=True)[0] -> oar.grad(a, b, create_graph=True)[0]
torch.inference_mode() -> oar.no_grad()
torch.nn.init.normal_(a, std=0.1) -> oar.nn.init.normal_(a, std=0.1)
torch.nn.utils.clip_grad_norm_(ps, 1.0, foreach=True) -> oar.nn.utils.clip_grad_norm_(ps, 1.0)
torch.linalg.norm(a) -> oar.linalg.norm(a)
torch.func.vmap(f, in_dims=0) -> oar.func.vmap(f, in_axes=0)
a.cuda() -> a
a.nelement() -> a.size
a.max(dim=1) -> oar.compat.max(a, dim=1)
a.max() -> a.max()
a.max(1)[1] -> oar.compat.max(a, 1)[1]
"a b".split(" ") -> "a b".split(" ")
torch.zeros(3).sort(descending=True) -> oar.compat.sort(oar.zeros(3), descending=True)
torch.zeros(3).type(torch.long) -> oar.zeros(3).astype(oar.int64)
torch.zeros(3).to(d, non_blocking=True) -> oar.zeros(3).to(d)
torch.zeros(3).split(2) -> oar.compat.split(oar.zeros(3), 2)
a.shape[:-1] + (3,) -> tuple(a.shape[:-1]) + (3,)
a.shape == (2, 3) -> tuple(a.shape) == (2, 3)
next(net.parameters()).device -> net.parameters()[0].device
net.load_state_dict(torch.load("f")) -> net.load_state_dict(oar.interop.torch_state(oar.load("f"), net))
net.load_state_dict(other.state_dict()) -> net.load_state_dict(other.state_dict())
a.data.fill_(0) -> a.detach().fill_(0)
a.data + 1 -> a.data + 1
""".strip().splitlines()


@pytest.mark.parametrize("row", CALLS, ids=[row.split(" -> ")[0] for row in CALLS])
def test_a_call(row):
    before, after = row.split(" -> ")
    made = convert(f"import torch\nx = {before}\n")
    assert made.text == f"import oar\nx = {after}\n"
    assert made.notes == []


PROGRAMS = {
    "schedule": ("import torch\nif a:\n    s = torch.optim.lr_scheduler.StepLR(o, 30, gamma=0.5)  # slower\n",
                 "import oar\nif a:\n    s = oar.optimizer.lr.StepDecay(learning_rate=o.get_lr(), step_size=30, gamma=0.5)  # slower\n"
                 "    o.set_lr_scheduler(s)\n"),
    "rates": ("import torch\nfor g in o.param_groups:\n    g['lr'] *= 0.5\nprint(o.param_groups[0]['lr'])\n",
              "import oar\no.set_lr(o.get_lr() * 0.5)\nprint(o.get_lr())\n"),
    "zero_grad": ("import torch\no = torch.optim.Adam(ps)\no.zero_grad(set_to_none=True)\n",
                  "import oar\no = oar.optimizer.Adam(parameters=ps)\no.clear_grad()\n"),
    "imports": ("import torch, os\nimport torch.nn as nn\nfrom torch.nn import (\n    Conv2d,  # images\n    Module,\n)\nfrom torch.optim import SGD\n"
                "class A(Module):\n    c = Conv2d(1, 2, 3)\no = SGD(ps, 0.1)\n",
                "import oar\nimport os\nimport oar.nn as nn\n# images\nfrom oar.nn import Conv2D as Conv2d, Layer as Module\nfrom oar.optimizer import SGD\n"
                "class A(Module):\n    c = Conv2d(1, 2, 3)\no = SGD(parameters=ps, learning_rate=0.1)\n"),
    "nearest name": ("import torch.nn.functional as F\ny = F.relu(F.pad(x, (1, 1)))\n",
                     "import oar\nimport oar.nn.functional as F\ny = F.relu(oar.compat.nn.functional.pad(x, (1, 1)))\n"),
    "shadowed": ("import torch\ndef f(torch):\n    return torch.cat\ndef g(x):\n    cat = 1\n    return cat, torch.cat([x])\n",
                 "import oar\ndef f(torch):\n    return torch.cat\ndef g(x):\n    cat = 1\n    return cat, oar.concat([x])\n"),
    "alias": ("import torch\nF = torch.nn.functional\nconv = torch.nn.Conv2d\ny = F.relu(x)\nc = conv(1, 2, 3)\n",
              "import oar\nF = oar.nn.functional\nconv = oar.nn.Conv2D\ny = F.relu(x)\nc = conv(1, 2, 3)\n"),
    "set-up": ("import torch\ntorch.backends.cudnn.benchmark = True\nif a:\n    torch.use_deterministic_algorithms(True)\n",
               "import oar\nif a:\n    pass\n"),
    "text": ("import torch\nprint(f'{torch.cat([a, b])}: {a.numel()} é')\n", "import oar\nprint(f'{oar.concat([a, b])}: {a.size} é')\n"),
    "annotations": ("import torch\ndef f(x: torch.Tensor, y: 'torch.Tensor') -> 'list[torch.Tensor]':\n    return x.max(1)\n",
                    "import oar\ndef f(x: oar.Tensor, y: 'oar.Tensor') -> 'list[oar.Tensor]':\n    return oar.compat.max(x, 1)\n"),
    "cells": ("import torch\ncell = torch.nn.LSTMCell(3, 4)\nh, c = cell(x, (h, c))\n",
              "import oar\ncell = oar.nn.LSTMCell(3, 4)\nh, c = cell(x, (h, c))[1]\n"),
    "functions with a derivative": (
        "import torch\nclass A(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, g):\n        x, = ctx.saved_tensors\n",
        "import oar\nclass A(oar.autograd.PyLayer):\n    @staticmethod\n    def backward(ctx, g):\n        x, = ctx.saved_tensor()\n"),
    "memory of a parameter": ("import torch\np = torch.ones(2)\np.data -= 0.1 * p.grad\n",
                              "import oar\np = oar.ones(2)\np.detach().subtract_(0.1 * p.grad)\n"),
    "layout of the text": ("import torch\nx = torch.cat(\n    [a,   # one\n     b],\n    dim = 1,\n)\n",
                           "import oar\nx = oar.concat(\n    [a,   # one\n     b],\n    dim = 1,\n)\n"),
    "batch norms": ("import torch\nn = torch.nn.BatchNorm1d(3)\nprint(n.running_mean, n.weight)\n",
                    "import oar\nn = oar.nn.BatchNorm1D(3)\nprint(n._mean, n.weight)\n"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name):
    before, after = PROGRAMS[name]
    assert converted(before) == after


def test_what_is_not_of_pytorch_stays_as_it_is():
    text = "import numpy as np\nx = np.max(a, 1); y = 'a'.split()\nclass Net:\n    def zero_grad(self): ...\n"
    assert convert(text).text == text
    assert convert(text).notes == []


def test_ends_of_lines_stay():
    assert converted("import torch\r\nx = torch.ones(2)  # two\r\n") == "import oar\r\nx = oar.ones(2)  # two\r\n"


# ---- what is reported ---------------------------------------------------------------------------------------------

REPORTS = {
    "torch.frobnicate(x)": "torch.frobnicate: Oar has no counterpart",
    "torch.var_mean(x)": "call oar.var and oar.mean",
    "torch.nn.utils.rnn.pack_padded_sequence(x, n)": "sequence_length=lengths",
    "torch.utils.checkpoint.checkpoint(f, x)": "recompute",
    "torch.nn.MaxPool2d(2, dilation=2)": "no argument dilation; it was left out (it was 2)",
    "torch.randn(3, generator=g)": "no argument generator",
    "torch.optim.RMSprop(ps)": "epsilon under the root",
    "torch.nn.TransformerEncoderLayer(8, 2)": "[batch, time, width]",
    "torch.nn.init.kaiming_normal_(w)": "swap mode 'fan_in'",
    "u.max(1)": "if this is a tensor, write oar.compat.max(u, ...)",
    "torch.utils.data.DataLoader(d, **more)": "the arguments of a ** are not known here",
    "[torch.optim.lr_scheduler.StepLR(o, 3) for o in os]": "call o.set_lr_scheduler(schedule)",
    "torch.ones(2).retain_grad()": "keeps the gradients of leaves only",
    "make(torch.nn.BatchNorm2d)": "its arguments have Oar's names",
    "torch.save(torch.nn.Linear(2, 2), 'f')": "save model.state_dict()",
}


@pytest.mark.parametrize("call", REPORTS)
def test_a_report(call):
    found = notes(f"import torch\nx = {call}\n")
    assert any(REPORTS[call] in note for note in found), found


@pytest.mark.parametrize("line", ["from torch import frobnicate", "import torch.frobnicate as f", "from torch.nn import *",
                                  "import torch.distributed as dist", "from transformers import AutoModel"])
def test_imports_that_have_no_counterpart(line):
    made = convert(f"{line}\n")
    assert [note.line for note in made.notes] == [1]


def test_a_kaiming_start_of_convolutions_alone_needs_no_report():
    text = "import torch.nn as nn\nfor m in ms:\n    if isinstance(m, nn.Conv2d):\n        nn.init.kaiming_normal_(m.weight)\n"
    assert notes(text) == []


def test_annotations_stand_on_their_lines():
    made = convert("import torch\nx = torch.frobnicate(1)\ny = torch.fizz(\n    2)\n", annotate=True).text.splitlines()
    assert made[1].startswith("x = torch.frobnicate(1)  # from_torch: torch.frobnicate: Oar has no counterpart")
    assert made[2].startswith("# from_torch: torch.fizz: ")
    assert made[3:] == ["y = torch.fizz(", "    2)"]


# ---- the command ----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_file(tmp_path, capsys):
    script, made = tmp_path / "a.py", tmp_path / "b.py"
    script.write_text("import torch\nx = torch.ones(2)\ny = torch.fizz(x)\n")
    assert main([str(script), "-o", str(made)]) == 0
    assert made.read_text() == "import oar\nx = oar.ones(2)\ny = torch.fizz(x)\n"
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"{script}:3: torch.fizz: ")


def test_the_command_shows_a_difference(tmp_path, capsys):
    script = tmp_path / "a.py"
    script.write_text("import torch\n")
    assert main([str(script), "--diff"]) == 0
    assert "-import torch\n+import oar\n" in capsys.readouterr().out
    assert script.read_text() == "import torch\n"


@pytest.mark.parametrize("text, code", [("import torch\nx = torch.ones(2)\n", 0), ("import torch\nx = torch.fizz\n", 1), ("x = (\n", 2)])
def test_the_command_checks(tmp_path, capsys, text, code):
    script = tmp_path / "a.py"
    script.write_text(text)
    assert main([str(script), "--check"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert bool(shown.err) == bool(code)


def test_the_command_names_a_file_that_is_not_there(tmp_path, capsys):
    assert main([str(tmp_path / "none.py")]) == 2
    assert "none.py: it cannot be read" in capsys.readouterr().err


# ---- state dicts -----------------------------------------------------------------------------------------------------


def test_states_of_batch_norms_and_recurrent_layers():
    net = nn.Sequential(nn.BatchNorm1D(2), nn.LSTM(2, 3))
    own = net.state_dict()
    state = {"0.weight": own["0.weight"], "0.bias": own["0.bias"], "0.running_mean": oar.ones([2]), "0.running_var": oar.ones([2]) * 2,
             "0.num_batches_tracked": oar.to_tensor(3)}
    state.update({name: value for name, value in own.items() if name.endswith("_l0")})
    net.load_state_dict(oar.interop.torch_state(state, net))
    assert net[0]._mean.tolist() == [1.0, 1.0]
    assert net[0]._variance.tolist() == [2.0, 2.0]


def test_states_that_are_oars_stay():
    net = nn.Sequential(nn.BatchNorm1D(2), nn.Linear(2, 3), nn.TransformerEncoderLayer(4, 2, 8), oar.compat.nn.Linear(3, 2))
    state = net.state_dict()
    made = oar.interop.torch_state(state, net)
    assert list(made) == list(state)
    assert all(made[name] is state[name] for name in state)


def test_states_of_transformer_layers_are_taken_apart():
    layer = nn.TransformerDecoderLayer(4, 2, 6)
    rng = np.random.RandomState(0)
    shapes = {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4), "out_proj.bias": (4,)}
    state = {f"{name}.{part}": rng.rand(*shape).astype("float32") for name in ("self_attn", "multihead_attn") for part, shape in shapes.items()}
    state.update({"linear1.weight": rng.rand(6, 4), "linear1.bias": rng.rand(6), "linear2.weight": rng.rand(4, 6), "linear2.bias": rng.rand(4)})
    state.update({f"norm{i}.{part}": rng.rand(4) for i in (1, 2, 3) for part in ("weight", "bias")})
    made = oar.interop.torch_state(state, layer)
    assert set(made) == set(layer.state_dict())
    np.testing.assert_array_equal(made["cross_attn.k_proj.weight"].numpy(), state["multihead_attn.in_proj_weight"][4:8].T)
    np.testing.assert_array_equal(made["self_attn.out_proj.weight"], state["self_attn.out_proj.weight"].T)
    np.testing.assert_array_equal(made["linear2.weight"], state["linear2.weight"].T)


def test_weights_of_linear_layers_that_lie_the_other_way():
    made = oar.interop.torch_state({"weight": oar.ones([3, 2]), "bias": oar.zeros([3])}, nn.Linear(2, 3))
    assert made["weight"].shape == [2, 3]
