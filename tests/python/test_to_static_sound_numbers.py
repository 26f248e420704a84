"""Python numbers that depend on tensors are numbers for the captured function: of any size, as keys, for isinstance.

See eager_twin.py for how a scenario runs.
"""

import pytest

from eager_twin import raised, run_side_by_side


def grows(start, step):
    def function(t):
        n = start
        if t.sum() > 0:
            n = step(n)
        return n, t * 1

    return function


def used(use):
    def function(t):
        n = 3
        if t.sum() > 0:
            n = 7
        return use(n), t * 1

    return function


def product(t):
    n, i = 1, 0
    while t.sum() < 1e6 and i < 30:
        n, t, i = n * 10, t.abs() * 2 + 1, i + 1
    return n, t


def sum_of_numbers(t):
    total, i = 0, 0
    while t.sum() < 50:
        i += 1
        total, t = total + i, t.abs() + 1
    return total, i


FUNCTIONS = {
    "sums beyond 64 bits": grows(2**62, lambda n: n + 2**62),
    "differences beyond 64 bits": grows(-(2**63), lambda n: n - 1),
    "constants beyond 64 bits": grows(0, lambda n: 2**70),
    "large numbers beside floats": grows(2**53, lambda n: n + 1),
    "products in a loop": product,
    "sums in a loop": sum_of_numbers,
    "hash": used(hash),
    "in a set": used(lambda n: n in {3, 4}),
    "a key": used(lambda n: {3: "three", 7: "seven"}[n]),
    "isinstance": used(lambda n: (isinstance(n, int), isinstance(n, (float, str)), type(n) is int, type(n).__name__)),
    "attributes": used(lambda n: (n.real, n.bit_length())),
    "len": used(lambda n: raised(len, n)),
    "iter": used(lambda n: raised(list, n)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name, tmp_path):
    def scenario(static, x):
        f = static(FUNCTIONS[name])
        for fill in (1.0, -1.0, 0.0, 3.0, -1.0):
            yield raised(f, x(fill=fill))

    run_side_by_side(scenario, folder=tmp_path)
