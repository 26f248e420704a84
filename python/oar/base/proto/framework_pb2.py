"""What ``core.get_all_op_protos`` describes ops with: the names of their slots."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from oar.base.operators import Form

__all__ = ["OpProto"]


@dataclass
class Var:
    """A slot for tensors; ``duplicable``: it takes a list of them."""

    name: str
    duplicable: bool = False
    dispensable: bool = True


@dataclass
class Attr:
    """A slot for another argument, and its default."""

    name: str
    default: Any = None


@dataclass
class OpProto:
    """The slots of an op that ``Block.append_op`` takes."""

    type: str
    inputs: list[Var] = field(default_factory=list)
    outputs: list[Var] = field(default_factory=list)
    attrs: list[Attr] = field(default_factory=list)
    comment: str = ""

    @classmethod
    def of(cls, form: Form) -> OpProto:
        """From a line of the table of ops."""
        tensors = [a for a in form.arguments if a.older[0][0].isupper()]
        others = [a for a in form.arguments if a not in tensors]
        return cls(
            form.older,
            [Var(a.older[0], a.many) for a in tensors],
            [Var(name, many) for name, many in zip(form.results, form.many)],
            [Attr(a.older[0], a.default if a.optional else None) for a in others],
            f"{form.name}, with the names of append_op.",
        )

    @classmethod
    def FromString(cls, data: bytes) -> OpProto:  # noqa: N802
        """From the bytes of ``SerializeToString``."""
        rows = json.loads(data)
        kinds = {"inputs": Var, "outputs": Var, "attrs": Attr}
        for key, kind in kinds.items():
            rows[key] = [kind(**row) for row in rows[key]]
        return cls(**rows)

    def SerializeToString(self) -> bytes:  # noqa: N802
        """As bytes."""
        return json.dumps(asdict(self)).encode()
