"""A captured clear_grad() leaves what eager mode leaves: zeros, None, or what was there."""

import weakref

import numpy as np
import pytest
from eager_twin import Box, run_side_by_side, side_by_side

import oar
from oar import nn
from oar.jit import capture_counts, to_static


def parameter(value=1.0, size=3):
    return oar.create_parameter([size], "float32", default_initializer=nn.initializer.Constant(value))


def momentum(parameters):
    return oar.optimizer.Momentum(0.1, 0.9, parameters=parameters, weight_decay=0.1)


def gradients(parameters):
    return [p.grad for p in parameters]


@side_by_side
def test_cleared_and_looked_at_after_every_call(static, x):
    p, q, c = parameter(), parameter(2.0), Box(zeros=True)
    x.watch(p, q)

    @static
    def step(t):
        ((t * p) ** 2).sum().backward()
        p.clear_gradient(c.zeros)
        q.clear_gradient(c.zeros)

    for c.zeros in (True, True, False, False, True):
        yield step(x(grad=False))
    q.grad = oar.ones([3])
    for c.zeros in (True, True, False):
        yield step(x(grad=False))


@side_by_side
def test_cleared_and_never_looked_at_between_calls(static, x):
    p, q, c = parameter(), parameter(2.0), Box(zeros=True)
    optimizer = momentum([p, q])

    @static
    def step(t):
        ((t * p) ** 2).sum().backward()
        optimizer.step()
        optimizer.clear_grad(c.zeros)

    for c.zeros in (True, True, True, False, True, True):
        step(x(grad=False))
    yield p, q, gradients([p, q])
    step(x(grad=False)), (q * 2).sum().backward(), step(x(grad=False)), step(x(grad=False))
    yield p, q, gradients([p, q])


@side_by_side
def test_an_unused_parameter_moves_on_with_zeros_and_rests_with_none(static, x):
    used, unused = parameter(), parameter(2.0)
    optimizer = momentum([used, unused])

    @static
    def step(t):
        ((t * used) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()

    for _ in range(2):
        step(x(grad=False))
    yield used, unused
    (unused * 3).sum().backward()
    for _ in range(3):
        step(x(grad=False))
    yield used, unused, gradients([used, unused])
    for _ in range(2):
        step(x(grad=False))
    unused.clear_gradient(False)
    for _ in range(2):
        step(x(grad=False))
    yield used, unused, gradients([used, unused])


@side_by_side
def test_cleared_before_backward(static, x):
    p, unused = parameter(), parameter(2.0)
    optimizer = momentum([p, unused])

    @static
    def step(t):
        optimizer.clear_grad()
        ((t * p) ** 2).mean().backward()
        optimizer.step()

    for _ in range(3):
        step(x(grad=False))
    yield p, unused, gradients([p, unused])
    (unused * 3).sum().backward()
    for _ in range(3):
        step(x(grad=False))
    yield p, unused, gradients([p, unused])


@side_by_side
def test_gradients_add_up_after_a_clear(static, x):
    p = parameter()

    @static
    def accumulate(t):
        (t * p).sum().backward()

    @static
    def twice_then_clear(t):
        (t * p).sum().backward()
        (t * p * p).sum().backward()
        found = p.grad.clone()
        p.clear_grad()
        return found

    @static
    def clear_then_twice(t):
        p.clear_grad()
        (t * p).sum().backward()
        (t * p * p).sum().backward()

    for _ in range(2):
        for f in (accumulate, accumulate, twice_then_clear, accumulate, clear_then_twice, twice_then_clear):
            yield f(x(grad=False)), p.grad if f is accumulate else None
        for f in (twice_then_clear, accumulate, twice_then_clear, accumulate, clear_then_twice):
            f(x(grad=False))
        yield p.grad


@side_by_side
def test_only_some_are_cleared(static, x):
    kept, zeroed, removed = parameter(1.0), parameter(2.0), parameter(3.0)

    @static
    def step(t):
        (t * kept * zeroed * removed).sum().backward()
        zeroed.clear_grad()
        removed.clear_gradient(set_to_zero=False)

    for _ in range(3):
        yield step(x(grad=False)), gradients([kept, zeroed, removed])
    for _ in range(3):
        step(x(grad=False))
    yield gradients([kept, zeroed, removed])


@side_by_side
def test_a_branch_on_a_gradient_that_is_none(static, x):
    p = parameter()

    @static
    def before(t):
        found = 1.0 if p.grad is None else 2.0
        (t * p).sum().backward()
        p.clear_grad()
        return t.detach() * found

    @static
    def after(t):
        (t * p).sum().backward()
        p.clear_gradient(t.shape[0] == 2)
        return t.detach() * (1.0 if p.grad is None else 2.0 + p.grad)

    @static
    def alone(t):
        return t.detach() * (1.0 if p.grad is None else 2.0)

    @static
    def removed(t):
        p.clear_gradient(False)
        return t.detach() * (1.0 if p.grad is None else 2.0)

    for f in (before, before, after, alone, removed, before, alone, alone, removed, alone, before, removed, after):
        yield f(x(grad=False)), f(x(3, 3, grad=False)), f(x(grad=False))
    yield p.grad


@side_by_side
def test_a_gradient_that_is_none_inside_a_branch_of_a_tensor(static, x):
    p = parameter()

    @static
    def f(t):
        y = t.detach()
        if t.sum() > 0:
            y = y * (2.0 if p.grad is None else 3.0)
        return y

    @static
    def g(t):
        y = t.detach()
        if t.sum() > 0:
            y = y + p.grad
        return y

    for _ in range(2):
        yield f(x(fill=1.0)), f(x(fill=-1.0))
        (p * 2).sum().backward()
        yield f(x(fill=1.0)), f(x(fill=-1.0)), g(x(fill=1.0))
        (p * 2).sum().backward()
        yield g(x(fill=1.0)), g(x(fill=-1.0))
        p.clear_grad()
        yield g(x(fill=1.0)), f(x(fill=1.0)), p.grad
        p.clear_gradient(False)


@side_by_side
def test_the_gradient_of_a_parameter_that_was_written_or_detached_before(static, x):
    p = parameter()

    def written(t):
        with oar.no_grad():
            p.add_(t.sum(0))

    @static
    def seen_after_a_write(t):
        written(t)
        return t.detach() * (1.0 if p.grad is None else 2.0)

    @static
    def cleared_after_a_write(t):
        written(t)
        p.clear_grad()

    @static
    def seen_after_detach(t):
        return (p.detach() * t + (1.0 if p.grad is None else p.grad)).detach()

    @static
    def cleared_after_detach(t):
        y = p.detach() * t
        p.clear_gradient()
        return y

    for _ in range(2):
        for f in (seen_after_a_write, cleared_after_a_write, seen_after_detach, cleared_after_detach):
            yield f(x(grad=False)), p.grad
            (p * 2).sum().backward()
            yield f(x(grad=False)), p.grad
        p.clear_gradient(False)


@side_by_side
def test_a_failed_capture_of_a_branch_leaves_no_trace(static, x):
    p = parameter()
    optimizer = momentum([p])
    x.watch(p)

    @static
    def step(t):
        try:
            if (t > 0.9).any():
                raise KeyError
        except KeyError:
            pass
        (t * p).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    for fill in (0.0, 1.0, 0.0):
        yield step(x(fill=fill, grad=False))


@side_by_side
def test_the_zeros_are_a_tensor_like_any_other(static, x):
    p = parameter()

    @static
    def raised(t):
        (t * p).sum().backward()
        p.clear_grad()
        p.grad.add_(oar.ones([3]))
        same = p.grad is p.grad
        (t * p).sum().backward()
        return same

    @static
    def read(t):
        return t.detach() + p.grad

    @static
    def written(t):
        p.grad.add_(t.detach().sum(0))

    for f in (raised, read, written, raised, read):
        yield f(x(grad=False)), p.grad
    for f in (read, written, read, written):
        p.clear_grad()
        f(x(grad=False))
        f(x(grad=False))
    yield p.grad
    p.clear_grad()
    read(x(grad=False))
    yield p.grad, p.grad is p.grad


@side_by_side
def test_who_holds_the_gradient_keeps_it(static, x):
    p = parameter()

    @static
    def step(t):
        (t * p).sum().backward()
        held = p.grad
        p.clear_grad()
        return held, p.grad

    for _ in range(3):
        yield step(x(grad=False))
    (p * 2).sum().backward()
    held = p.grad
    step(x(grad=False))
    yield held, p.grad


@side_by_side
def test_who_holds_the_gradient_sees_what_is_written_to_it(static, x):
    p = parameter()

    @static
    def halved(t):
        p.grad.scale_(0.5)

    @static
    def halved_and_added(t):
        p.grad.scale_(0.5)
        (t * p).sum().backward()

    @static
    def halved_and_cleared(t):
        p.grad.scale_(0.5)
        p.clear_grad()

    for f in (halved, halved_and_added, halved_and_cleared):
        for _ in range(2):
            (p * 2).sum().backward()
            held, part = p.grad, p.grad[1:]
            yield f(x(grad=False)), held, part, p.grad, held is p.grad
            held.add_(oar.ones([3]))
            yield f(x(grad=False)), held, part, p.grad


@side_by_side
def test_a_gradient_that_was_set(static, x):
    p, c = parameter(), Box(zeros=True)

    @static
    def step(t):
        p.grad = t.detach().sum(0)
        seen = p.grad * 2
        p.clear_gradient(c.zeros)
        return seen

    for c.zeros in (True, True, False, True):
        yield step(x(grad=False)), p.grad
        p.grad = None if c.zeros else oar.ones([3])
    for c.zeros in (True, True, False, True):
        step(x(grad=False))
    yield p.grad

    @static
    def removed(t):
        (t * p).sum().backward()
        p.grad = None

    for _ in range(2):
        yield removed(x(grad=False)), p.grad
        p.grad = oar.ones([3])
        p.clear_grad()


@side_by_side
def test_rows_are_removed(static, x):
    embedding = nn.Embedding(5, 3, sparse=True)
    tied = nn.Embedding(5, 3, sparse=True)
    optimizer = oar.optimizer.SGD(0.1, parameters=[*embedding.parameters(), *tied.parameters()])
    numbers = oar.to_tensor([1, 3])

    @static
    def step(t):
        loss = (embedding(numbers) * 2).sum() + embedding(numbers + 1).sum() + tied(numbers).sum() + tied.weight.sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    for _ in range(3):
        yield step(x(grad=False)), embedding.weight, tied.weight, embedding.weight.grad, tied.weight.grad


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_the_dtype_of_the_zeros(dtype, tmp_path):
    def scenario(static, x):
        p = oar.create_parameter([3], dtype, default_initializer=nn.initializer.Constant(1.0))

        @static
        def step(t):
            (p * p).sum().backward()
            p.clear_grad()

        for _ in range(2):
            step(x(grad=False))
        yield p.grad

    run_side_by_side(scenario, False, tmp_path)


@side_by_side
def test_a_function_that_runs_in_segments(static, x):
    p, log = parameter(), []

    @static
    def step(t):
        loss = (t * p).sum()
        loss.backward()
        log.append(loss.item())
        p.clear_grad()

    for _ in range(3):
        step(x(grad=False))
    yield p.grad, log
    (p * 2).sum().backward()
    yield p.grad


def test_a_step_is_captured_once():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    unused = nn.Linear(2, 2)
    optimizer = oar.optimizer.AdamW(0.1, parameters=[*net.parameters(), *unused.parameters()])

    @to_static
    def step(t):
        loss = (net(t) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    for _ in range(5):
        step(oar.ones([2, 3]))
    assert capture_counts(step) == {"captures": 1, "whole": 5, "segments": 0, "eager": 0}
    assert all(np.array_equal(p.grad.numpy(), np.zeros(p.shape)) for p in net.parameters())
    assert all(p.grad is None for p in unused.parameters())


def test_a_program_keeps_no_gradient_alive():
    p = parameter()
    (p * 2).sum().backward()
    found = weakref.ref(p.grad)

    @to_static
    def step(t):
        (t * p).sum().backward()

    step(oar.ones([2, 3]))
    assert capture_counts(step)["whole"] == 1 and found() is None
    np.testing.assert_array_equal(p.grad.numpy(), [4, 4, 4])
