"""Captured functions never give a stale result: the order of dictionaries, and changes during iteration.

See eager_twin.py for how a scenario runs.
"""

import collections

from eager_twin import Box, raised, side_by_side


@side_by_side
def test_an_ordered_dictionary_is_ordered_anew(static, x):
    table = collections.OrderedDict(a=1.0, b=2.0, c=3.0)
    f = static(lambda t: (t * next(iter(table.values())), list(table), list(table.items()), list(reversed(table))))
    yield f(x())
    table.move_to_end("a")
    yield f(x())
    table.move_to_end("c", last=False)
    yield f(x()), f(x())
    table.popitem()
    yield f(x())


@side_by_side
def test_sublayers_are_ordered_anew(static, x):
    from oar import nn

    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    f = static(lambda t: net(t))
    yield f(x())
    net._sub_layers.move_to_end("0")
    yield f(x())


@side_by_side
def test_an_entry_that_is_removed_and_set_again_is_the_last(static, x):
    table, c = {"a": 1, "b": 2, "c": 3}, Box(u=1, v=2)

    @static
    def f(t):
        del table["a"]
        table["z"] = 0
        table["a"] = t.shape[1]
        c.__dict__.pop("u")
        c.u = 5
        return t * 1, list(table), list(vars(c))

    for _ in range(3):
        yield f(x()), list(table), list(vars(c))
        table.pop("z")


@side_by_side
def test_an_entry_that_is_set_removed_and_set_again(static, x):
    table = {"a": 1}

    @static
    def f(t):
        table["n"] = 1
        del table["n"]
        table["m"] = 2
        table["n"] = 3
        return t * len(table)

    for _ in range(3):
        yield f(x()), list(table)
        del table["n"], table["m"]


@side_by_side
def test_a_dictionary_that_grows_while_it_is_gone_over(static, x):
    table = {"a": 1.0, "b": 2.0}

    @static
    def f(t):
        for key in table:
            table[key + "x"] = 1.0
        return t * 1

    for _ in range(2):
        yield raised(f, x()), table


@side_by_side
def test_values_that_change_while_they_are_gone_over(static, x):
    table = {"a": 1.0, "b": 2.0, "c": 3.0}

    @static
    def f(t):
        seen = []
        for _, value in table.items():
            table["c"] = 10.0 * value
            seen.append(value)
        return t * 1, seen

    for _ in range(2):
        yield f(x()), table


@side_by_side
def test_views_of_a_dictionary_see_what_comes_later(static, x):
    table = {"a": 1.0, "b": 2.0}

    @static
    def f(t):
        keys, values = table.keys(), table.values()
        table["d"] = 4.0
        return t * sum(values), list(keys), len(keys), "d" in keys

    for _ in range(2):
        yield f(x()), table
        del table["d"]


@side_by_side
def test_every_entry_is_replaced_while_it_is_gone_over(static, x):
    table = {"a": x(3, grad=False), "b": x(3, grad=False)}

    @static
    def f(t):
        for key in table:
            table[key] = (table[key] * 0.5 + t.mean(0)).detach()
        return t * table["a"]

    for _ in range(3):
        yield f(x()), table


@side_by_side
def test_the_factory_of_a_defaultdict(static, x):
    table = collections.defaultdict(int, a=1.0)

    @static
    def f(t):
        found = table["z"]
        del table["z"]
        return t * 1, found

    for table.default_factory in (int, float, list, None, int):
        yield raised(f, x()), dict(table)


@side_by_side
def test_copies_of_dictionaries_keep_their_class(static, x):
    tables = collections.defaultdict(list, a=[1]), collections.Counter("aab"), collections.OrderedDict(a=1), {"a": 1}
    f = static(lambda t: (t * 1, [table.copy() for table in tables], tables[2] | {"b": 2}, tables[3] | tables[2]))
    yield f(x())
    yield f(x())


@side_by_side
def test_entries_of_other_mappings(static, x):
    given, table = collections.UserDict(ab=1.0, cd=2.0), {}

    @static
    def f(t):
        made = {}
        made.update(given)
        table.update(given)
        table.update([("e", 3.0)], g=4.0)
        return t * 1, made, dict(given), {**given}, dict([("a", 1)], b=2)

    yield f(x()), table
    given["ab"] = 5.0
    yield f(x()), table
