"""Ops of your own, equal to built-in ones."""

from __future__ import annotations

from collections.abc import Callable

from oar import _C

_TRAITS = {"elementwise": 1, "broadcast": 2, "promote": 4, "linear": 16, "nograd": 1024}


def register_op(schema: str, compute: Callable, *, vjp: Callable | None = None, infer: Callable | None = None,
                saves: str = "", shard: str | None = None, brief: str = "", numpy: str | None = None,
                traits: tuple[str, ...] = ()):
    """Registers an op and returns its function.

    ``compute(*args)`` builds the result from other ops; with it alone the op runs eagerly, is differentiable to any
    order, batches and can be captured. ``vjp(*args, outputs, grads)`` gives a faster derivative; it sees only the operands
    and results that ``saves`` names. ``infer(*args)`` returns ``[(shape, dtype)]`` and lets a capture keep the op as
    one instruction. ``shard`` and ``traits`` are as in docs/adding-an-op.md.

    Args:
        schema: name, arguments and results, as in ``'my_op(Tensor x, float a = 1.0) -> Tensor'``.
        compute: a function of the arguments that calls other ops.
        vjp: computes the gradients of the tensor arguments from the arguments, ``outputs`` and ``grads``.
        infer: returns ``(shape, dtype)`` of each result from the arguments.
        saves: the names of what ``vjp`` reads.
        shard: which axes may be cut, in index notation.
        brief: one line for users.
        numpy: the same in NumPy, as text.
        traits: names of traits, such as ``'elementwise'``.

    Examples:
        >>> import oar
        >>> cube = oar.utils.register_op('doc_cube(Tensor x) -> Tensor', lambda x: x * x * x, brief='x * x * x.')
        >>> x = oar.to_tensor([2.0], stop_gradient=False)
        >>> cube(x).backward()
        >>> x.grad
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [12.])
    """
    bits = 0
    for trait in traits:
        if trait not in _TRAITS:
            raise ValueError(f"'{trait}' is not a trait; use one of {', '.join(_TRAITS)}.")
        bits |= _TRAITS[trait]
    return _C.register_op(schema, brief, compute, infer, vjp, saves, shard, numpy, bits)
