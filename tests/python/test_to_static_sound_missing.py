"""Tensors that nothing leads to have no gradient, in captured functions as in eager mode: not zeros, which optimisers would take for one."""

from eager_twin import Box, side_by_side

import oar
from oar import nn


@side_by_side
def test_results_that_nobody_uses(static, x):
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    f = static(lambda t: (a(t).sum(), b(t).sum(), t.sum()))
    for used in ((0,), (1,), (0, 1), (2,), (0, 2)):
        made = f(x(4, 3))
        sum(made[i] for i in used).backward()
        yield [p.grad is None for layer in (a, b) for p in layer.parameters()]
        for layer in (a, b):
            layer.clear_gradients(set_to_zero=False)


@side_by_side
def test_layers_of_the_branch_not_taken(static, x):
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)

    @static
    def f(t):
        if t.sum() > 0:
            return a(t).sum()
        return b(t).sum()

    for fill in (1.0, -1.0, 2.0):
        f(x(4, 3, fill=fill)).backward()
        yield [p.grad is None for layer in (a, b) for p in layer.parameters()]
        for layer in (a, b):
            layer.clear_gradients(set_to_zero=False)


@side_by_side
def test_branches_in_a_row_and_inside(static, x):
    a, b, c = (nn.Linear(3, 3) for _ in range(3))

    @static
    def f(t):
        u = a(t) if t.sum() > 0 else t * 2
        if t.sum() > 5:
            u = b(u) if t.sum() > 20 else c(u)
        return u.sum()

    for fill in (-1.0, 0.1, 1.0, 3.0):
        f(x(4, 3, fill=fill)).backward()
        yield [layer.weight.grad is None for layer in (a,)], [p.grad is not None and p.grad.abs().sum().item() > 0 for p in
                                                              (b.weight, c.weight)]
        for layer in (a, b, c):
            layer.clear_gradients(set_to_zero=False)


@side_by_side
def test_weight_decay_leaves_the_branch_not_taken_alone(static, x):
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = oar.optimizer.AdamW(0.1, parameters=[*a.parameters(), *b.parameters()], weight_decay=0.5)

    @static
    def f(t):
        return a(t).sum() if t.sum() > 0 else b(t).sum()

    for fill in (1.0, 1.0, -1.0):
        f(x(4, 3, fill=fill)).backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        yield [p.numpy().tolist() for layer in (a, b) for p in layer.parameters()]


@side_by_side
def test_results_with_a_gradient_beside_a_backward_inside(static, x):
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)

    @static
    def f(t):
        loss = a(t).sum()
        loss.backward()
        a.clear_gradients()
        return b(t).sum()

    for fill in (1.0, 2.0):
        made = f(x(4, 3, fill=fill, grad=False))
        yield made.stop_gradient
        made.backward()
        yield b.weight.grad.numpy().tolist()


@side_by_side
def test_an_argument_that_is_handed_through_stays_as_it_was(static, x):
    norm, keeper = nn.BatchNorm1D(3), Box(last=None)

    @static
    def f(t):
        keeper.last = t.detach()
        rounds = oar.zeros([])
        while rounds < 3 and t.mean() < 0.6:
            rounds = rounds + 1
            t = oar.clip(norm(t), -3, 3)
        return t * 2

    for grad in (True, False):
        t = x(2, 3, grad=grad)
        f(t)
        yield t.stop_gradient, keeper.last.stop_gradient
