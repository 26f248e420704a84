"""Captured functions never give a stale result: containers and iterators."""

import array
import collections
import heapq
import itertools
import queue
import types

import numpy as np
from eager_twin import Box, raised, side_by_side

import oar


# what containers hold ----------------------------------------------------------------------------


@side_by_side
def test_objects_after_many_others_in_a_container(static, x):
    many = [Box(s=1.0) for _ in range(200)]
    table = {i: Box(s=1.0) for i in range(200)}
    f = static(lambda t: t * many[150].s + table[199].s + sum(b.s for b in many))
    yield f(x())
    yield f(x())
    many[150].s = 2.0
    yield f(x())
    table[199].s = 3.0
    yield f(x())
    many[70].s = 4.0
    yield f(x())


@side_by_side
def test_a_list_that_is_changed_in_place(static, x):
    items = [1.0, 2.0]

    @static
    def f(t):
        y = t * items[0] + items[-1] + len(items)
        return y, 2.0 in items, sum(items), items[:1], items.index(items[-1])

    changes = [
        lambda: items.append(3.0), lambda: items.insert(0, 9.0), lambda: items.pop(), lambda: items.reverse(),
        lambda: items.sort(), lambda: items.__setitem__(0, 7.0), lambda: items.extend([1.0, 2.0]),
        lambda: items.__delitem__(0), lambda: items.__imul__(2), lambda: items.__setitem__(slice(None), [5.0]),
    ]
    yield f(x())
    for change in changes:
        yield f(x())
        change()
        yield f(x())


@side_by_side
def test_a_dictionary_that_is_changed_in_place(static, x):
    table = {"a": 1.0, "b": 2.0}

    @static
    def f(t):
        y = t * table.get("a", 10.0) + table.setdefault("b", 4.0) + len(table)
        return y, list(table), list(table.items()), "c" in table, next(iter(table.values()))

    changes = [
        lambda: table.update(c=3.0), lambda: table.pop("a"), lambda: table.__setitem__("a", 5.0),
        lambda: table.pop("b"), lambda: table.update({"b": 1.0}), lambda: table.update(zip(table, (8.0, 9.0))),
    ]
    yield f(x())
    for change in changes:
        change()
        yield f(x())


@side_by_side
def test_the_order_of_a_dictionary(static, x):
    table = {"a": 2.0, "b": 3.0}

    @static
    def f(t):
        for name, value in table.items():
            t = t * value if name == "a" else t + value
        return t

    yield f(x())
    yield f(x())
    table["a"] = table.pop("a")
    yield f(x())


@side_by_side
def test_a_set_that_is_changed_in_place(static, x):
    names = {"a"}
    f = static(lambda t: (t * 2 if "a" in names else t - 1, len(names), sorted(names), names & {"b"}, names == {"a"}))
    for change in (lambda: None, lambda: names.add("b"), lambda: names.discard("a"), lambda: names.clear()):
        yield f(x())
        change()
        yield f(x())


@side_by_side
def test_sets_of_objects(static, x):
    boxes = {Box(s=1.0)}
    f = static(lambda t: t * sum(b.s for b in boxes))
    yield f(x())
    next(iter(boxes)).s = 2.0
    yield f(x())
    boxes.add(Box(s=3.0))
    yield f(x())


@side_by_side
def test_nested_containers(static, x):
    tree = {"a": [1.0, {"b": (2.0, [3.0])}]}
    f = static(lambda t: t * tree["a"][0] + tree["a"][1]["b"][1][0] + tree["a"][1]["b"][0])
    yield f(x())
    tree["a"][1]["b"][1][0] = 4.0
    yield f(x())
    tree["a"][1]["b"] = (5.0, [6.0])
    yield f(x())
    tree["a"] = [7.0, tree["a"][1]]
    yield f(x())


@side_by_side
def test_tensors_in_containers_are_replaced(static, x):
    held = {"w": oar.ones([3]), "more": [oar.ones([3]), oar.zeros([3])]}
    f = static(lambda t: t * held["w"] + sum(held["more"]))
    yield f(x())
    held["w"] = oar.full([3], 2.0)
    yield f(x())
    held["w"].add_(oar.ones([3]))
    yield f(x())
    held["more"].append(oar.full([3], 5.0))
    yield f(x())
    held["more"][0] = oar.full([2, 1], 7.0)
    yield f(x())
    held["w"] = oar.ones([3], dtype="float64")
    yield f(x())
    held["w"] = 3
    yield f(x())


@side_by_side
def test_a_list_that_is_an_argument_twice(static, x):
    @static
    def f(a, b, t):
        a.append(t.sum())
        return t * len(b), a is b

    one, two = [], []
    yield f(one, two, x()), one, two
    yield f(one, one, x()), one, two
    yield f(one, two, x()), one, two


@side_by_side
def test_a_list_of_arguments_is_changed_inside(static, x):
    @static
    def f(items):
        items[0] = items[0] * 2
        items.append(items[0] + 1)
        return items

    items = [x()]
    for _ in range(3):
        yield f(items), items


@side_by_side
def test_a_dictionary_of_arguments_is_changed_inside(static, x):
    @static
    def f(batch):
        batch["y"] = batch.pop("x") * 2
        return batch

    for _ in range(3):
        batch = {"x": x()}
        yield f(batch), batch, f(dict(batch, x=x()))


@side_by_side
def test_bytes_and_arrays_of_python(static, x):
    raw, numbers = bytearray([1, 2]), array.array("d", [1.0, 2.0])
    view = memoryview(raw)
    f = static(lambda t: t * raw[0] + numbers[1] + view[1] + len(numbers))
    yield f(x())
    yield f(x())
    raw[0] = 5
    yield f(x())
    numbers[1] = 7.0
    yield f(x())
    view[1] = 9
    yield f(x())
    numbers.append(1.0)
    yield f(x())


@side_by_side
def test_numpy_outside_changed_in_place(static, x):
    table, scalar, view = np.array([1.0, 2.0]), np.float32(1.0), np.arange(4.0)[::2]

    @static
    def f(t):
        y = t * float(table[0]) + oar.to_tensor(table.astype("float32")).sum() + scalar
        return y, view.sum(), t + view[1]

    yield f(x())
    table[0] = 3.0
    yield f(x())
    table[1] += 3.0
    yield f(x())
    scalar = np.float32(4.0)
    yield f(x())
    view.base[2] = 50.0
    yield f(x())
    table = np.array([1, 2])
    yield f(x())


@side_by_side
def test_other_containers(static, x):
    counter = collections.Counter("aab")
    default = collections.defaultdict(lambda: 2.0)
    chain = collections.ChainMap({"a": 1.0}, {"a": 5.0, "b": 2.0})
    ordered = collections.OrderedDict(a=1.0, b=2.0)
    space = types.SimpleNamespace(s=1.0)
    proxy = types.MappingProxyType(ordered)

    @static
    def f(t):
        y = t * counter["a"] + default["new"] + chain["a"] + next(iter(ordered.values())) + space.s + proxy["b"]
        return y, len(default), counter.most_common(1)

    yield f(x())
    yield f(x())
    counter.update("aaa")
    yield f(x())
    del chain.maps[0]["a"]
    yield f(x())
    ordered.move_to_end("a")
    yield f(x())
    space.s = 3.0
    yield f(x())
    ordered["b"] = 20.0
    yield f(x())
    default["new"] = 100.0
    yield f(x()), dict(default)


# iterators ---------------------------------------------------------------------------------------


def _counting():
    value = 0.0
    while True:
        value += 1.0
        got = yield value
        value += got or 0.0


ITERATORS = {
    "iter": lambda: iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "count": lambda: itertools.count(1),
    "cycle": lambda: itertools.cycle([1.0, 2.0, 3.0]),
    "islice": lambda: itertools.islice(itertools.count(), 2, 30),
    "chain": lambda: itertools.chain([1.0], [2.0, 3.0], range(30)),
    "generator": _counting,
    "expression": lambda: (i * 2.0 for i in range(30)),
    "zip": lambda: map(sum, zip(range(30), range(5, 40))),
    "map": lambda: map(float, range(30)),
    "filter": lambda: filter(lambda v: v % 2, range(60)),
    "enumerate": lambda: map(sum, enumerate(range(30))),
    "reversed": lambda: reversed(range(30)),
    "accumulate": lambda: itertools.accumulate(range(1, 30)),
    "callable": lambda: iter(lambda box=[0]: box.__setitem__(0, box[0] + 1) or box[0], 100),
}


def _one_iterator(make):
    @side_by_side
    def scenario(static, x):
        source = make()
        f = static(lambda t: t * next(source))
        for _ in range(3):
            yield f(x())
        yield next(source)
        yield f(x())

    return scenario


for _name, _make in ITERATORS.items():
    globals()[f"test_an_iterator_outside_{_name}"] = _one_iterator(_make)


@side_by_side
def test_iterators_inside(static, x):
    items, names = [1.0, 2.0], ("a", "b", "c")

    @static
    def f(t):
        for i, v in enumerate(items, start=1):
            t = t * v + i
        for v, n in zip(items, names):
            t = t + v * len(n)
        for a, b in itertools.product(items, repeat=2):
            t = t + a * b
        for key, group in itertools.groupby(sorted(items)):
            t = t + key * len(list(group))
        iterator = iter(items)
        t = t + next(iterator) + next(iterator, 5.0) + next(iterator, 6.0)
        return t, list(itertools.accumulate(items)), list(reversed(items)), [*map(lambda v: v + 1, items)]

    yield f(x())
    items.append(3.0)
    yield f(x())
    items[0] = 5.0
    yield f(x())


@side_by_side
def test_generators_inside(static, x):
    c = Box(s=1.0, n=2)

    def values(t):
        for i in range(c.n):
            got = yield t * c.s + i
            if got:
                return
        yield from (t * k for k in range(c.n))

    @static
    def f(t):
        g = values(t)
        first = next(g)
        return first, list(values(t)), g.send(None), raised(lambda: g.send(True), message=False)

    for c.s, c.n in ((1.0, 2), (1.0, 2), (2.0, 2), (2.0, 3)):
        yield f(x())


@side_by_side
def test_deques_and_queues(static, x):
    deque, waiting, heap = collections.deque(range(1, 20)), queue.Queue(), [5, 7, 9, 11, 13]
    stack = list(range(20))
    for i in range(1, 20):
        waiting.put(float(i))

    @static
    def f(t):
        deque.rotate(1)
        return t * deque.popleft() + waiting.get() + heapq.heappop(heap) + stack.pop()

    for _ in range(4):
        yield f(x()), list(deque), waiting.qsize(), heap, stack


@side_by_side
def test_a_class_that_iterates(static, x):
    class Loader:
        def __init__(self):
            self.position, self.items = 0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

        def __iter__(self):
            return self

        def __next__(self):
            if self.position == len(self.items):
                raise StopIteration
            self.position += 1
            return self.items[self.position - 1]

    loader, fresh = Loader(), Loader()
    f = static(lambda t: t * next(loader))
    yield f(x())
    yield f(x()), loader.position

    @static
    def g(t):
        fresh.position = 0
        for v in fresh:
            t = t + v
        return t

    yield g(x())
    fresh.items = [1.0]
    yield g(x()), fresh.position
