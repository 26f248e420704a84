"""The same calls of public functions by Oar and by Paddle, at the edges of what their arguments may be."""

from __future__ import annotations

import os

import pytest

import oar
from peers import edges, scripts
from peers.counts import count
from peers.evaluate import evaluate
from peers.paddle_table import DIFFERENT_AT_EDGES, SINGLE
from peers.samples import Sample, Tables, compare_all

if not os.access(os.environ.get("OAR_PADDLE", ""), os.X_OK):
    pytest.skip("needs OAR_PADDLE, a Python that has PaddlePaddle: `make bench-peers`, then `make test-paddle`",
                allow_module_level=True)

TABLES = Tables("Paddle", None, DIFFERENT_AT_EDGES, errors_lack=True, single=SINGLE)
SEEN = []
NAMES = {"paddle": oar, "F": oar.nn.functional}


def samples_of(found: list[edges.Edge]) -> list[Sample]:
    return [Sample(e.name, e.dtype, f"{e.call} of {_shown(e.arguments)}", e.arguments,
                   lambda given, e=e: evaluate(e.call, {**NAMES, **given}), e.call, gradients=e.gradients)
            for e in found]


def _shown(arguments: dict) -> str:
    return ", ".join(f"{name} {a.dtype.name}{a.shape}" if isinstance(a, oar.Tensor) else f"{name}={a}"
                     for name, a in arguments.items())


def _cases(kind: str, found: dict) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(kind, list(found.values()), ids=list(found))


def _compare(found: list, peer) -> None:
    count("functions at edges")
    SEEN.append(found)
    compare_all(samples_of(found), peer, TABLES)


@_cases("calls", edges.unary())
def test_of_one_operand(calls, paddle):
    _compare(calls, paddle)


@_cases("calls", edges.binary())
def test_of_two_operands(calls, paddle):
    _compare(calls, paddle)


@_cases("calls", edges.scalars())
def test_operators_with_numbers(calls, paddle):
    _compare(calls, paddle)


@_cases("calls", edges.along())
def test_along_axes(calls, paddle):
    _compare(calls, paddle)


@_cases("calls", scripts.SCRIPTS)
def test_scripts(calls, paddle):
    _compare(calls, paddle)


@_cases("calls", scripts.WRITTEN)
def test_writes_before_the_gradient(calls, paddle):
    """A write that Paddle allows between an op and its gradient is allowed here too."""
    _compare(calls, paddle)


def test_every_reason_is_needed(paddle):
    tables = (edges.unary(), edges.binary(), edges.scalars(), edges.along(), scripts.SCRIPTS, scripts.WRITTEN)
    if len(SEEN) == sum(len(table) for table in tables):
        unused = "\n".join(TABLES.unused())
        assert not unused, f"no longer needed:\n{unused}"
