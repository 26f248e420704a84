"""Steps of optimisers in Paddle's form: one parameter at a time, written in place.

``master_param``, if passed, holds the parameter in float32: the step is computed there, and the parameter gets the
rounded result. Hints without a meaning here (``lazy_mode``, ``min_row_size_to_use_multithread``) are accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor, ops

__all__ = [
    "adadelta_",
    "adagrad_",
    "adam_",
    "adamax_",
    "adamw_",
    "asgd_",
    "check_finite_and_unscale_",
    "decayed_adagrad",
    "dpsgd",
    "ftrl",
    "lamb_",
    "merged_adam_",
    "merged_momentum_",
    "momentum_",
    "nadam_",
    "radam_",
    "rmsprop_",
    "rprop_",
    "sgd_",
    "update_loss_scaling_",
]


def _number(value: Any) -> Any:
    """A rate or a power, which Paddle keeps with one element, as a number."""
    return ops.reshape(value, []) if isinstance(value, Tensor) else value


def _plain(value: Any) -> float:
    return float(value)


def _step(param: Tensor, master: Tensor | None, update: Callable[[Tensor], Any]) -> Tensor | None:
    """Makes a step on the parameter, or on its master copy."""
    with oar.no_grad():
        update(param if master is None else master)
        if master is not None:
            ops.copy_into(param, ops.cast(master, param.dtype))
    return master


def sgd_(param, learning_rate, grad, master_param=None, multi_precision=False):
    """``param - learning_rate * grad``."""
    _step(param, master_param, lambda p: ops.sgd_([p], [grad], _number(learning_rate)))
    return param, master_param


def momentum_(param, grad, velocity, learning_rate, master_param=None, mu=0.9, use_nesterov=False,
              regularization_method="", regularization_coeff=0.0, multi_precision=False, rescale_grad=1.0):
    """A step along a velocity that gradients feed."""
    decay = regularization_coeff if regularization_method == "l2_decay" else 0.0
    scaled = grad if rescale_grad == 1.0 else grad * rescale_grad
    _step(param, master_param, lambda p: ops.momentum_(
        [p], [scaled], [velocity], _number(learning_rate), mu, use_nesterov, decay))
    return param, velocity, master_param


def merged_momentum_(param, grad, velocity, learning_rate, master_param=None, mu=0.9, use_nesterov=False,
                     regularization_method=(), regularization_coeff=(), multi_precision=False, rescale_grad=1.0):
    """``momentum_`` of several parameters."""
    for i, one in enumerate(param):
        momentum_(one, grad[i], velocity[i], learning_rate[i % len(learning_rate)],
                  master_param[i] if master_param else None, mu, use_nesterov, regularization_method[i] if regularization_method else "",
                  regularization_coeff[i] if regularization_coeff else 0.0, multi_precision, rescale_grad)
    return param, velocity, master_param


def _adam(param, grad, learning_rate, moment1, moment2, beta1_pow, beta2_pow, master, beta1, beta2, epsilon, decay,
          keep_powers):
    wide = ops.cast(grad, moment1.dtype)
    rate = ops.cast(_number(learning_rate), moment1.dtype)
    power1, power2 = _number(beta1_pow), _number(beta2_pow)

    def update(p: Tensor) -> None:
        ops.copy_into(moment1, moment1 * beta1 + wide * (1 - beta1))
        ops.copy_into(moment2, moment2 * beta2 + wide * wide * (1 - beta2))
        bias = ops.sqrt(1 - ops.cast(power2, moment1.dtype))
        step = rate * bias / (1 - ops.cast(power1, moment1.dtype)) * moment1 / (ops.sqrt(moment2) + epsilon * bias)
        kept = ops.cast(p, moment1.dtype) * (1 - rate * decay) if decay else ops.cast(p, moment1.dtype)
        ops.copy_into(p, ops.cast(kept - step, p.dtype))

    _step(param, master, update)
    if not keep_powers:
        with oar.no_grad():
            ops.copy_into(beta1_pow, beta1_pow * beta1)
            ops.copy_into(beta2_pow, beta2_pow * beta2)
    return param, moment1, moment2, beta1_pow, beta2_pow, master


def adam_(param, grad, learning_rate, moment1, moment2, beta1_pow, beta2_pow, master_param=None, skip_update=None,
          beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_mode=False, min_row_size_to_use_multithread=1000,
          multi_precision=False, use_global_beta_pow=False):
    """Adam's step. ``beta1_pow`` and ``beta2_pow`` are the powers of this step and are advanced to the next."""
    if skip_update is not None and bool(skip_update):
        return param, moment1, moment2, beta1_pow, beta2_pow, master_param
    return _adam(param, grad, learning_rate, moment1, moment2, beta1_pow, beta2_pow, master_param, _plain(beta1),
                 _plain(beta2), _plain(epsilon), 0.0, use_global_beta_pow)


def adamw_(param, grad, learning_rate, moment1, moment2, beta1_pow, beta2_pow, master_param=None, skip_update=None,
           beta1=0.9, beta2=0.999, epsilon=1e-8, lr_ratio=1.0, coeff=0.01, with_decay=False, lazy_mode=False,
           min_row_size_to_use_multithread=1000, multi_precision=False, use_global_beta_pow=False):
    """Adam's step with decoupled weight decay."""
    if skip_update is not None and bool(skip_update):
        return param, moment1, moment2, beta1_pow, beta2_pow, master_param
    return _adam(param, grad, learning_rate * lr_ratio, moment1, moment2, beta1_pow, beta2_pow, master_param,
                 _plain(beta1), _plain(beta2), _plain(epsilon), coeff if with_decay else 0.0, use_global_beta_pow)


def merged_adam_(param, grad, learning_rate, moment1, moment2, beta1_pow, beta2_pow, master_param=None, beta1=0.9,
                 beta2=0.999, epsilon=1e-8, multi_precision=False, use_global_beta_pow=False):
    """``adam_`` of several parameters."""
    for i, one in enumerate(param):
        adam_(one, grad[i], learning_rate[i % len(learning_rate)], moment1[i], moment2[i], beta1_pow[i], beta2_pow[i],
              master_param[i] if master_param else None, None, beta1, beta2, epsilon,
              use_global_beta_pow=use_global_beta_pow)
    return param, moment1, moment2, beta1_pow, beta2_pow, master_param


def lamb_(param, grad, learning_rate, moment1, moment2, beta1_pow, beta2_pow, master_param=None, skip_update=None,
          weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6, always_adapt=False, multi_precision=False):
    """Adam's direction, as long as the parameter."""
    if skip_update is None or not bool(skip_update):
        _step(param, master_param, lambda p: ops.lamb_(
            [p], [grad], [moment1], [moment2], [beta1_pow], [beta2_pow], _number(learning_rate), beta1, beta2, epsilon,
            weight_decay, always_adapt))
    return param, moment1, moment2, beta1_pow, beta2_pow, master_param


def adamax_(param, grad, learning_rate, moment, inf_norm, beta1_pow, master_param=None, beta1=0.9, beta2=0.999,
            epsilon=1e-8, multi_precision=False):
    """Adam with the largest gradient in place of the mean square; ``beta1_pow`` stays as it is."""
    _step(param, master_param, lambda p: ops.adamax_(
        [p], [grad], [moment], [inf_norm], [beta1_pow.clone()], _number(learning_rate), beta1, beta2, epsilon))
    return param, moment, inf_norm, master_param


def adagrad_(param, grad, moment, learning_rate, master_param=None, epsilon=1e-6, multi_precision=False):
    """Steps divided by the root of all squared gradients so far."""
    _step(param, master_param, lambda p: ops.adagrad_([p], [grad], [moment], _number(learning_rate), epsilon))
    return param, moment, master_param


def decayed_adagrad(param, grad, moment, learning_rate, decay=0.95, epsilon=1e-6):
    """``adagrad_`` whose sum of squares fades."""
    with oar.no_grad():
        ops.copy_into(moment, moment * decay + grad * grad * (1 - decay))
        ops.copy_into(param, param - _number(learning_rate) * grad / (ops.sqrt(moment) + epsilon))
    return param, moment


def adadelta_(param, grad, avg_squared_grad, avg_squared_update, learning_rate, master_param=None, rho=0.95,
              epsilon=1e-6, multi_precision=False):
    """Steps as long as the last ones."""
    _step(param, master_param, lambda p: ops.adadelta_(
        [p], [grad], [avg_squared_grad], [avg_squared_update], _number(learning_rate), rho, epsilon))
    return param, avg_squared_grad, avg_squared_update, master_param


def rmsprop_(param, mean_square, grad, moment, learning_rate, mean_grad=None, master_param=None, epsilon=1e-10,
             decay=0.9, momentum=0.0, centered=False, multi_precision=False):
    """Steps divided by the root of the mean square of gradients."""
    mean = ops.zeros_like(mean_square) if mean_grad is None else mean_grad
    _step(param, master_param, lambda p: ops.rmsprop_(
        [p], [grad], [mean_square], [mean], [moment], _number(learning_rate), decay, epsilon, momentum, centered))
    return param, moment, mean_square, mean_grad, master_param


def radam_(param, grad, learning_rate, beta1_pow, beta2_pow, rho, moment1, moment2, master_param=None, beta1=0.9,
           beta2=0.999, epsilon=1e-8, multi_precision=False):
    """Adam that rectifies the step until the mean square is reliable."""
    _step(param, master_param, lambda p: ops.radam_(
        [p], [grad], [moment1], [moment2], [beta1_pow], [beta2_pow], [rho], _number(learning_rate), beta1, beta2,
        epsilon))
    return param, beta1_pow, beta2_pow, rho, moment1, moment2, master_param


def nadam_(param, grad, learning_rate, momentum_decay_pow, beta2_pow, mu_product, moment1, moment2, master_param=None,
           beta1=0.9, beta2=0.999, epsilon=1e-8, momentum_decay=0.004, multi_precision=False):
    """Adam with Nesterov's look ahead."""
    _step(param, master_param, lambda p: ops.nadam_(
        [p], [grad], [moment1], [moment2], [momentum_decay_pow], [beta2_pow], [mu_product], _number(learning_rate),
        beta1, beta2, epsilon, momentum_decay))
    return param, momentum_decay_pow, beta2_pow, mu_product, moment1, moment2, master_param


def rprop_(param, grad, prev, learning_rate, master_param=None, learning_rate_range=None, etas=None,
           multi_precision=False):
    """Steps by the sign of the gradient, with a rate for each element."""
    smallest, largest = learning_rate_range.tolist()
    shrink, grow = etas.tolist()
    _step(param, master_param, lambda p: ops.rprop_(
        [p], [grad], [prev], [learning_rate], smallest, largest, shrink, grow))
    return param, prev, learning_rate, master_param


def asgd_(param, grad, learning_rate, d, y, n, master_param=None, multi_precision=False):
    """A step along the average of the last ``n`` gradients: ``d`` is their sum, ``y`` the one that leaves it."""
    def update(p: Tensor) -> None:
        ops.copy_into(d, d - y + grad)
        ops.copy_into(y, ops.cast(grad, y.dtype))
        ops.copy_into(p, p - _number(learning_rate) / ops.cast(_number(n), d.dtype) * d)

    _step(param, master_param, update)
    return param, d, y, master_param


def ftrl(param, squared_accumulator, linear_accumulator, grad, learning_rate, l1=0.0, l2=0.0, lr_power=-0.5):
    """Follow the regularised leader."""
    with oar.no_grad():
        rate, before = _number(learning_rate), squared_accumulator.clone()
        squares = before + grad * grad
        change = (ops.pow(squares, -lr_power) - ops.pow(before, -lr_power)) / rate
        linear = linear_accumulator + grad - change * param
        divisor = ops.pow(squares, -lr_power) / rate + 2 * l2
        ops.copy_into(squared_accumulator, squares)
        ops.copy_into(linear_accumulator, linear)
        small = ops.abs(linear) > l1
        ops.copy_into(param, ops.where(small, (l1 * ops.sign(linear) - linear) / divisor, ops.zeros_like(param)))
    return param, squared_accumulator, linear_accumulator


def dpsgd(param, grad, learning_rate, clip=10.0, batch_size=16.0, sigma=1.0, seed=0):
    """A step of a clipped gradient with noise, for privacy."""
    with oar.no_grad():
        length = ops.sqrt(ops.sum(grad * grad))
        clipped = grad / ops.maximum(length / clip, ops.ones_like(length))
        noise = ops.gaussian([1], 0.0, clip * sigma, seed, param.dtype) / batch_size
        ops.copy_into(param, param - _number(learning_rate) * (clipped + noise))
    return param


# loss scaling ------------------------------------------------------------------------------------


def check_finite_and_unscale_(x, scale):
    """Gradients divided by the scale of the loss, and whether one of them is not finite."""
    with oar.no_grad():
        found = ops.any(ops.stack([ops.any(ops.logical_not(ops.isfinite(one))) for one in x], 0))
        for one in x:
            ops.copy_into(one, ops.where(found, one, one / ops.cast(_number(scale), one.dtype)))
    return x, ops.reshape(found, [1])


def update_loss_scaling_(x, found_infinite, prev_loss_scaling, in_good_steps, in_bad_steps, incr_every_n_steps=1000,
                         decr_every_n_nan_or_inf=2, incr_ratio=2.0, decr_ratio=0.5, stop_update=False):
    """Zeros for gradients that are not finite; a larger scale after good steps, a smaller one after bad ones."""
    with oar.no_grad():
        bad = _number(found_infinite)
        for one in x:
            ops.copy_into(one, ops.where(bad, ops.zeros_like(one), one))
        if not bool(stop_update):
            _update_scale(bad, prev_loss_scaling, in_good_steps, in_bad_steps, incr_every_n_steps,
                          decr_every_n_nan_or_inf, incr_ratio, decr_ratio)
    return x, prev_loss_scaling, in_good_steps, in_bad_steps


def _update_scale(bad, scale, good_steps, bad_steps, raise_after, lower_after, raise_by, lower_by) -> None:
    none = ops.zeros_like(good_steps)
    goods, bads = ops.where(bad, none, good_steps + 1), ops.where(bad, bad_steps + 1, none)
    higher = ops.equal(goods, ops.full_like(goods, raise_after))
    lower = ops.equal(bads, ops.full_like(bads, lower_after))
    raised = scale * raise_by
    raised = ops.where(ops.isfinite(raised), raised, scale)
    lowered = ops.maximum(scale * lower_by, ops.ones_like(scale))
    ops.copy_into(scale, ops.where(lower, lowered, ops.where(higher, raised, scale)))
    ops.copy_into(good_steps, ops.where(higher, none, goods))
    ops.copy_into(bad_steps, ops.where(lower, none, bads))
