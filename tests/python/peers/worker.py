"""The other side of peers/torch_process.py; runs in PyTorch's environment, which has no Oar.

One request a line: the name of an .npz file with arrays and a description of the calls. The answer is a line too: the
name of an .npz file with, for each call, values and gradients, or an error.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch

import torch_words

WORDS = {name: value for name, value in vars(torch_words).items() if not name.startswith("_")}


class Call:
    """One call: its expression, arguments by name, and what gradients are asked for."""

    def __init__(self, description: dict, arrays):
        self.expression = description["expression"]
        self.arrays = arrays
        self.wanted = description["gradients"]
        self.constants = description["constants"]
        self.leaves: list[torch.Tensor] = []
        self.arguments = {name: self.decoded(value, name not in self.constants)
                          for name, value in description["arguments"].items()}

    def decoded(self, value, variable: bool):
        if isinstance(value, list):
            return [self.decoded(v, variable) for v in value]
        if not isinstance(value, dict):
            return value
        kind, content = next(iter(value.items()))
        if kind == "dtype":
            return getattr(torch, content)
        if kind == "complex":
            return complex(*content)
        tensor = torch.from_numpy(self.arrays[content].copy())
        if self.wanted and variable and tensor.dtype in (torch.float64, torch.complex128):
            self.leaves.append(tensor.requires_grad_())
        return tensor

    def run(self) -> list:
        result = eval(self.expression, {**WORDS, **self.arguments})  # the tables are ours
        return list(result) if isinstance(result, (list, tuple)) else [result]

    def gradients(self, outputs: list) -> list[torch.Tensor]:
        pairs = [(out, torch.from_numpy(self.arrays[key])) for out, key in zip(outputs, self.wanted)
                 if key is not None and isinstance(out, torch.Tensor) and out.requires_grad]
        pairs = [(out, cotangent) for out, cotangent in pairs if out.shape == cotangent.shape]
        if not pairs:
            return [torch.zeros_like(leaf) for leaf in self.leaves]
        found = torch.autograd.grad([out for out, _ in pairs], self.leaves, [c for _, c in pairs], allow_unused=True)
        return [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(self.leaves, found)]


def answer(call: Call, key: str, arrays: dict) -> dict:
    """What one call gave, its arrays put among the others."""
    def put(tensor) -> str:
        name = f"{key}.{len(arrays)}"
        arrays[name] = tensor.detach().resolve_conj().resolve_neg().numpy(force=True)
        return name

    try:
        outputs = call.run()
        values = [put(out) if isinstance(out, torch.Tensor) else None for out in outputs]
    except Exception as error:  # noqa: BLE001  (the test shows it)
        return {"missing" if lacks(error) else "error": f"{type(error).__name__}: {error}"}
    try:
        gradients = [put(g) for g in call.gradients(outputs)] if call.wanted else []
    except Exception as error:  # noqa: BLE001
        return {"values": values, "gradients": None, "gradient_error": None if lacks(error) else str(error)}
    return {"values": values, "gradients": gradients}


def lacks(error: Exception) -> bool:
    """Whether PyTorch says that it has no such case, or no such derivative."""
    phrases = ("not implemented", "not supported", "modified by an inplace operation", "Autograd not support dtype")
    return isinstance(error, NotImplementedError) or any(phrase in str(error) for phrase in phrases)


def main() -> None:
    torch.set_num_threads(1)
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        name = line.strip()
        with np.load(name) as stored:
            arrays = {key: stored[key] for key in stored.files if key != "calls"}
            calls = json.loads(str(stored["calls"]))
        found: dict[str, np.ndarray] = {}
        answers = [answer(Call(call, arrays), str(i), found) for i, call in enumerate(calls)]
        np.savez(name + ".out.npz", answers=json.dumps(answers), **found)
        print(name + ".out.npz", flush=True)


if __name__ == "__main__":
    main()
