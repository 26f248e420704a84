"""Layers and functions against what Paddle 3.3 gives: results, gradients of every operand, and states."""

import json

import layer_cases
import numpy as np
import pytest

import oar

KNOWN = json.loads(layer_cases.FILE.read_text())


def test_every_case_is_known():
    assert [key for key, _, _ in layer_cases.cases()] == list(KNOWN)


@pytest.mark.parametrize(("key", "call", "operands"), [pytest.param(*case, id=case[0]) for case in layer_cases.cases()])
def test_as_in_paddle(key, call, operands):
    found = layer_cases.run(oar, key, call, operands)
    expected = KNOWN[key]
    assert list(found) == list(expected)
    for name, value in expected.items():
        if value is None or found[name] is None:
            assert found[name] == value, name
            continue
        shape, *numbers = value
        assert found[name][0] == shape, name
        np.testing.assert_allclose(found[name][1:], numbers, rtol=1e-3, atol=2e-4 * numbers[1] + 1e-4, err_msg=name)
