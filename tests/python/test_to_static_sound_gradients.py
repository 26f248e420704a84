"""Captured functions never give a stale result: gradients of any order, hooks and modes."""

from eager_twin import Box, raised, side_by_side

import oar
from oar.autograd import PyLayer
from oar.nn import functional as F


# gradients ---------------------------------------------------------------------------------------


def _orders(static, x, function, depth):
    f = static(function)
    for _ in range(2):
        t = x(grad=True)
        value, found = f(t), []
        for order in range(depth):
            (value,) = oar.grad(value.sum(), t, create_graph=order + 1 < depth, allow_unused=True)
            found.append(value)
            if value is None or value.stop_gradient:
                break
        yield found


@side_by_side
def test_a_parameter_that_is_detached_before_it_is_used(static, x):
    p = oar.create_parameter([3], "float32", default_initializer=oar.nn.initializer.Constant(0.5))
    other = p.detach()
    other.stop_gradient = False
    x.watch(p, other)

    @static
    def returned(t):
        return p.detach() * t + p * t * t

    @static
    def backward_inside(t):
        (p.detach() * t + p * t * t).sum().backward()

    @static
    def in_a_branch(t):
        if t.sum() > 0:
            y = p.detach() * t + p * t * t
        else:
            y = p.detach() * p * t
        return y

    @static
    def two_leaves(t):
        return p * t + other * t * t

    @static
    def written(t):
        same = p.detach()
        with oar.no_grad():
            same.add_(t.detach().sum(0))
        return p * t

    for f in (returned, backward_inside, in_a_branch, two_leaves, written):
        for fill in (1.0, -1.0, 0.5):
            y = f(x(fill=fill, grad=f is not backward_inside))
            if y is not None:
                y.sum().backward()
            yield y
        with oar.no_grad():
            p.set_value(p * 2)
        yield f(x())


DERIVATIVES = {
    "detached": (lambda t: t.detach() * t * t, 2),
    "detached three times": (lambda t: t.detach() * t * t * t, 3),
    "no_grad inside": (lambda t: _constant(t) * t**3, 3),
    "cubes": (lambda t: t**3, 3),
    "twice detached": (lambda t: (t * t).detach() * t + t.detach() * t**2, 2),
    "exp": (lambda t: (t.detach() * t).exp(), 3),
    "tanh": (lambda t: t.tanh(), 3),
    "matmul": (lambda t: (t @ t.t()).sum() * t, 2),
    "softmax": (lambda t: F.softmax(t) * t * t, 2),
    "unused": (lambda t: oar.ones([3]) * 2 + 0 * t.sum(), 2),
    "stop gradient of a part": (lambda t: _part(t) + t**2, 2),
    "a branch": (lambda t: t**3 if t.sum() > 0 else t**2, 2),
    "an inner gradient": (lambda t: oar.grad((t**3).sum(), t, create_graph=True)[0] * t, 2),
    "an inner gradient of a constant": (lambda t: oar.grad((t**3).sum(), t)[0] * t, 2),
}


def _constant(t):
    with oar.no_grad():
        return t * t


def _part(t):
    y = t**3
    y.stop_gradient = True
    return y * t


def _one_derivative(function, depth):
    return side_by_side(lambda static, x: _orders(static, x, function, depth))


for _name, (_function, _depth) in DERIVATIVES.items():
    globals()["test_derivatives_" + _name.replace(" ", "_")] = _one_derivative(_function, _depth)


@side_by_side
def test_backward_through_captured_functions_in_turn(static, x):
    w = oar.ones([3])
    w.stop_gradient = False
    x.watch(w)
    f, g = static(lambda t: (t * w).tanh()), static(lambda t: t * w + 1)
    for _ in range(3):
        y = g(f(x()) * 2) + f(x())
        y.sum().backward()
        yield y.detach()


@side_by_side
def test_backward_twice(static, x):
    f = static(lambda t: (t**2).sum())
    t = x(grad=True)
    y = f(t)
    y.backward(retain_graph=True)
    y.backward()
    yield t.grad, raised(y.backward, message=False)


@side_by_side
def test_hooks_on_tensors(static, x):
    w, c, seen = oar.ones([3]), Box(s=2.0), []
    w.stop_gradient = False
    x.watch(w)

    @static
    def f(t):
        y = t * w
        y.register_hook(lambda g: g * c.s)
        return y * 2

    for c.s in (2.0, 2.0, 3.0):
        yield f(x())
    hook = w.register_hook(lambda g: seen.append(1) or g * 10)
    yield f(x()), seen
    hook.remove()
    yield f(x()), seen
    t = x(grad=True)
    t.register_hook(lambda g: seen.append(2) or g * 100)
    f(t).sum().backward()
    yield t.grad, seen


@side_by_side
def test_py_layers(static, x):
    c, log = Box(s=2.0, back=3.0), []

    class Scale(PyLayer):
        @staticmethod
        def forward(ctx, t, n):
            ctx.n = n
            log.append("forward")
            ctx.save_for_backward(t)
            return t * n * c.s

        @staticmethod
        def backward(ctx, g):
            log.append("backward")
            (t,) = ctx.saved_tensor()
            return g * ctx.n * c.back + t * 0

    f = static(lambda t, n: Scale.apply(t * 1, n) + 1)
    for c.s, c.back, n in ((2.0, 3.0, 1), (2.0, 3.0, 1), (5.0, 3.0, 1), (5.0, 7.0, 1), (5.0, 7.0, 2)):
        yield f(x(), n), log.count("forward")
    Scale.forward = staticmethod(lambda ctx, t, n: setattr(ctx, "n", n) or ctx.save_for_backward(t) or t - n)
    yield f(x(), 1), log.count("forward")


@side_by_side
def test_gradients_inside(static, x):
    w = oar.ones([3])
    w.stop_gradient = False
    x.watch(w)
    c = Box(clear=True)

    @static
    def f(t):
        loss = (t.detach() * w).sum()
        loss.backward()
        g = w.grad * 1
        if c.clear:
            w.clear_gradient()
        return g, loss.detach()

    for c.clear in (True, True, False, False, True):
        yield f(x())
    w.grad = None
    yield f(x())


@side_by_side
def test_a_leaf_that_is_the_root_itself(static, x):
    w = oar.ones([3])
    w.stop_gradient = False

    @static
    def f(t):
        w.backward()
        return t * 2

    for _ in range(3):
        yield f(x()), w.grad


@side_by_side
def test_no_grad_around_and_inside(static, x):
    f = static(lambda t: t * 2)
    g = static(oar.no_grad()(lambda t: t * 3))
    for _ in range(2):
        with oar.no_grad():
            yield f(x())
        yield f(x()), g(x())


@side_by_side
def test_amp_around(static, x):
    f = static(lambda t: (t @ t.t() + 1, t.exp().dtype == oar.float32))
    for level in ("O1", "O1", "O2"):
        yield f(x())
        with oar.amp.auto_cast(dtype="bfloat16", level=level):
            yield f(x())
        with oar.amp.auto_cast(dtype="bfloat16", custom_black_list=["matmul"]):
            yield f(x())


@side_by_side
def test_derivatives_under_transforms(static, x):
    c = Box(s=2.0)
    f = static(lambda t: (t * c.s).tanh().sum())
    for c.s in (2.0, 2.0, 3.0):
        yield oar.func.vmap(f)(x(4, 3)), oar.func.jvp(f, x(3), oar.ones([3])), oar.func.grad(f)(x(3))


@side_by_side
def test_gradients_that_are_zero_everywhere(static, x):
    """Zeros, not None: the result depends on the input."""
    for function in (oar.floor, oar.sign, lambda t: (t.round() * 2).sum()):
        f = static(lambda t, function=function: function(t))
        for _ in range(2):
            t = x(grad=True)
            f(t).sum().backward()
            yield t.grad
