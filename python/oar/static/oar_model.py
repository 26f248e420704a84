"""Programs as methods of an ``.oar`` file: texts, signatures, large constants."""

from __future__ import annotations

import json
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.framework.oar_file import OarContent

__all__ = ["FORMAT", "VERSION", "OarBuilder", "first_line"]

FORMAT, VERSION = "oar program", 1


def first_line(feeds: list[str], fetches: list[str], labels: dict[str, str]) -> str:
    """The line of JSON above the text of a program."""
    return json.dumps({"format": FORMAT, "version": VERSION, "feed": feeds, "fetch": fetches, "names": labels}) + "\n"


class OarBuilder:
    """Collects the methods of a file and what their programs read."""

    def __init__(self, metadata: Any = None, docs: Any = None) -> None:
        self.metadata = _texts(metadata, "metadata")
        self.docs = _texts(docs, "docs")
        self.methods: dict[str, Any] = {}
        self.programs: dict[str, tuple[bytes, bytes]] = {}
        self.tensors: dict[str, Tensor] = {}

    def add(self, name: str, doc: str, programs: list[Any], feeds: list[str], fetches: list[str], order: list[str]) -> dict[str, Any]:
        """Adds a method: its program and, second, the one to train further. ``order`` has the inputs as programs take them.

        Returns the description of the method, which the caller may extend.
        """
        parts = [_C.saved_parts(program) for program in programs]
        prefixes = f"{name}.constant", f"{name}.training.constant"
        texts = [self._text(prefix, program, part, feeds, fetches, order) for prefix, program, part in zip(prefixes, programs, parts)]
        self.programs[name] = texts[0], texts[1] if len(texts) > 1 else b""
        types = dict(zip(order, parts[0]["inputs"]))
        self.methods[name] = {
            "doc": doc,
            "inputs": [self._port(feed, types[feed]) for feed in feeds],
            "outputs": [self._port(fetch, kind) for fetch, kind in zip(fetches, parts[0]["outputs"])],
            "sizes": parts[0]["sizes"],
            "ops": parts[0]["ops"],
        }
        return self.methods[name]

    def _port(self, name: str, kind: tuple[str, list]) -> dict[str, Any]:
        row = {"name": name, "dtype": kind[0], "shape": kind[1]}
        return {**row, "doc": self.docs[name]} if name in self.docs else row

    def _text(self, prefix: str, program: Any, parts: dict, feeds: list[str], fetches: list[str], order: list[str]) -> bytes:
        labels = {label: tensor.name for label, tensor in program.states()}
        labels.update(zip(program.input_names, order))
        for label, tensor in parts["constants"].items():
            labels[label] = f"{prefix}.{label}"
            self.tensors[labels[label]] = tensor
        return (first_line(feeds, fetches, labels) + parts["text"]).encode()

    def content(self, states: dict[str, Tensor], more: dict[str, Any]) -> OarContent:
        """Everything, with the states that the programs read."""
        both = self.tensors.keys() & states.keys()
        if both:
            raise ValueError(f"the name {min(both)!r} is needed for a constant of the program. Rename the parameter.")
        ports = {row["name"] for method in self.methods.values() for row in [*method["inputs"], *method["outputs"]]}
        if not self.docs.keys() <= ports:
            raise ValueError(f"docs has a text for {min(self.docs.keys() - ports)!r}, which is no input or output. "
                             f"There are {', '.join(sorted(ports))}.")
        header = {"methods": self.methods, "metadata": self.metadata, **more}
        return OarContent(header, self.programs, {**self.tensors, **states})


def _texts(value: Any, what: str) -> dict[str, str]:
    given = {} if value is None else value
    if not isinstance(given, dict) or not all(isinstance(text, str) for item in given.items() for text in item):
        raise TypeError(f"{what} should map texts to texts, but received {value!r}.")
    return dict(given)
