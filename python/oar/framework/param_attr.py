"""``ParamAttr``: how a layer's parameter is named, initialised and trained."""

from __future__ import annotations

from typing import Any

__all__ = ["ParamAttr"]


def _check(value: Any, name: str, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"The type of '{name}' in ParamAttr must be {expected}, but received {type(value).__name__}."
        )


class ParamAttr:
    """The attributes of one parameter, given to a layer as ``weight_attr`` or ``bias_attr``.

    Args:
        name: name of the parameter; generated from the layer's name when None.
        initializer: an ``oar.nn.initializer.Initializer``; the layer's default when None.
        learning_rate: factor on the optimizer's learning rate for this parameter.
        regularizer: ``L1Decay`` or ``L2Decay``; takes precedence over the optimizer's.
        trainable: whether gradients are computed for it.
        do_model_average: kept for model averaging.
        need_clip: whether gradient clipping touches it.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> attr = oar.ParamAttr(initializer=nn.initializer.Constant(0.5), learning_rate=0.1)
        >>> nn.Linear(2, 1, weight_attr=attr).weight.tolist()
        [[0.5], [0.5]]
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        from oar.nn.initializer import Initializer
        from oar.regularizer import WeightDecayRegularizer

        none = type(None)
        _check(name, "name", (str, none))
        if isinstance(initializer, type) and issubclass(initializer, Initializer):
            initializer = initializer()
        _check(initializer, "initializer", (Initializer, none))
        _check(learning_rate, "learning_rate", (float, int))
        _check(regularizer, "regularizer", (WeightDecayRegularizer, none))
        _check(trainable, "trainable", (bool,))
        _check(do_model_average, "do_model_average", (bool,))
        _check(need_clip, "need_clip", (bool,))
        if name == "":
            raise ValueError("The name of a ParamAttr cannot be an empty string.")
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip

    @staticmethod
    def _to_attr(arg: Any) -> Any:
        """Read what a user may pass as an attribute; ``False`` stays False: "no such parameter"."""
        from oar.nn.initializer import Initializer
        from oar.regularizer import WeightDecayRegularizer

        if arg is None or arg is True:
            return ParamAttr()
        if arg is False or isinstance(arg, ParamAttr):
            return arg
        if isinstance(arg, (list, tuple)):
            return [ParamAttr._to_attr(item) for item in arg]
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        if isinstance(arg, WeightDecayRegularizer):
            return ParamAttr(regularizer=arg)
        raise TypeError(
            f"A {type(arg).__name__} cannot be used as ParamAttr; pass a ParamAttr, a name, an initializer, "
            "a regularizer, or False for no parameter."
        )

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"ParamAttr({fields})"
