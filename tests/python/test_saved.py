"""What a recorded op keeps: an operand only if a requested gradient reads it."""

import pytest

import oar


def leaf(values):
    return oar.to_tensor(values, stop_gradient=False)


def test_a_factor_may_change_when_no_gradient_reads_it():
    a = leaf([1.0, 2.0])
    x = a + 0.0
    y = x * 2.0
    x.add_(oar.to_tensor(1.0))
    y.sum().backward()
    assert y.tolist() == [2.0, 4.0] and a.grad.tolist() == [2.0, 2.0]


def test_a_factor_that_a_gradient_reads_may_not_change():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    x = a + 0.0
    y = x * b
    x.add_(oar.to_tensor(1.0))
    with pytest.raises(RuntimeError, match="multiply needs its operand x"):
        y.sum().backward()


@pytest.mark.parametrize("product", [lambda x, w: x * w, oar.matmul, oar.nn.functional.linear])
def test_an_input_without_gradient_does_not_keep_the_weight_alive(product):
    x, w = leaf([[1.0, 2.0], [3.0, 4.0]]), oar.ones([2, 2])
    y = product(w, x)
    before = y.sum()
    w.add_(oar.to_tensor(1.0))  # read by the gradient of x
    with pytest.raises(RuntimeError, match="changed in place"):
        before.backward()
    frozen = oar.ones([2, 2])
    z = product(frozen, x)
    x2 = x.detach()
    x2.add_(oar.to_tensor(1.0))  # the same memory as x; only the gradient of `frozen` would read it
    z.sum().backward()
    assert x.grad is not None


def test_a_convolution_of_data_does_not_keep_the_weight():
    x, w = oar.ones([1, 1, 3, 3]), leaf([[[[2.0]]]])
    y = oar.nn.functional.conv2d(x, w)
    w.detach().add_(oar.to_tensor(1.0))  # only the gradient of x would read it
    y.sum().backward()
    assert w.grad.item() == 9.0
    y = oar.nn.functional.conv2d(x, w)
    x.add_(oar.to_tensor(1.0))  # read by the gradient of w
    with pytest.raises(RuntimeError, match="conv needs its operand x"):
        y.sum().backward()
