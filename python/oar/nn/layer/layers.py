"""``Layer``, the base class of every network."""

from __future__ import annotations

import copy
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, overload
from weakref import ref

import oar
from oar._C import Tensor
from oar._spelling import keywords_of, respelled
from oar.framework import unique_name
from oar.framework.mode import in_declarative_mode, in_to_static_mode  # noqa: F401
from oar.framework.param_attr import ParamAttr
from oar.framework.parameter import Parameter, make_parameter
from oar.nn import _path
from oar.nn.layer._layer_state import LayerStateMixin
from oar.nn.layer._entries import LayerEntries
from oar.nn.layer._module_methods import ModuleMethods

__all__ = ["Layer"]

_WORD_START = re.compile("(.)([A-Z][a-z]+)")
_CAMEL = re.compile("([a-z])([A-Z])")
_NOT_READY = "super().__init__() should be called first"
_NOTHING: Any = object()
_watched = False  # whether the path of the layer that runs is kept
_path.watched_globals(globals())


def _convert_camel_to_snake(name: str) -> str:
    return _CAMEL.sub(r"\1_\2", _WORD_START.sub(r"\1_\2", name)).lower()


class HookRemoveHelper:
    """What registering a hook returns: ``remove()`` takes the hook away again."""

    next_hook_id = 0

    def __init__(self, hooks: OrderedDict) -> None:
        self._hooks_ref = ref(hooks)
        self._hook_id = HookRemoveHelper.next_hook_id
        HookRemoveHelper.next_hook_id += 1

    def remove(self) -> None:
        """Remove the hook. Removing it twice is not an error."""
        hooks = self._hooks_ref()
        if hooks is not None:
            hooks.pop(self._hook_id, None)


class _HookWithKwargs:
    """A forward hook that also gets the arguments by name; ``always`` calls it after an error, too."""

    def __init__(self, hook: Callable, with_kwargs: bool, always: bool = False) -> None:
        self.hook, self.with_kwargs, self.always = hook, with_kwargs, always

    def before(self, layer: Layer, inputs: Any, kwargs: dict[str, Any]) -> Any:
        return self.hook(layer, inputs, kwargs)

    def after(self, layer: Layer, inputs: Any, kwargs: dict[str, Any], outputs: Any) -> Any:
        return self.hook(layer, inputs, kwargs, outputs) if self.with_kwargs else self.hook(layer, inputs, outputs)


def _add_hook(hooks: OrderedDict, hook: Callable, prepend: bool = False) -> HookRemoveHelper:
    helper = HookRemoveHelper(hooks)
    hooks[helper._hook_id] = hook
    if prepend:
        hooks.move_to_end(helper._hook_id, last=False)
    return helper


class Layer(LayerStateMixin, ModuleMethods):
    """A piece of a network: parameters, buffers and other layers, and a ``forward`` that uses them.

    Assigning a ``Parameter``, a ``Tensor`` or a ``Layer`` to an attribute registers it: parameters are
    trained and saved, tensors become buffers (not saved unless given to ``register_buffer``), layers
    become sublayers.

    Args:
        name_scope: stem of the layer's unique name; the class name in snake case when None.
        dtype: dtype of parameters that are created without one.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> class Net(nn.Layer):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(4, 8)
        ...         self.last = nn.Linear(8, 2)
        ...     def forward(self, x):
        ...         return self.last(nn.functional.relu(self.hidden(x)))
        ...
        >>> net = Net()
        >>> net(oar.ones([3, 4])).shape
        [3, 2]
        >>> [name for name, _ in net.named_parameters()]
        ['hidden.weight', 'hidden.bias', 'last.weight', 'last.bias']
    """

    training: bool

    def __init__(self, name_scope: str | None = None, dtype: Any = "float32") -> None:
        own = self.__dict__
        own["training"] = True
        own["_full_name"] = unique_name.generate(name_scope or _convert_camel_to_snake(type(self).__name__))
        own["_name_counts"] = {}  # how often each of its parts was named; it dies with the layer
        own["_dtype"] = dtype
        own["_parameters"] = LayerEntries(self)
        own["_buffers"] = LayerEntries(self)
        own["_sub_layers"] = LayerEntries(self)
        own["_non_persistable_buffer_names_set"] = set()
        own["_forward_pre_hooks"] = OrderedDict()
        own["_forward_post_hooks"] = OrderedDict()
        own["_state_dict_hooks"] = OrderedDict()
        own["_loaddict_holder"] = OrderedDict()  # values that wait for their parameters, by the parameters' names

    # calling -----------------------------------------------------------------------------------

    def __call__(self, first: Any = _NOTHING, /, *inputs: Any, **kwargs: Any) -> Any:
        # The usual call, with one argument and no hooks, packs no arguments: it takes two thirds of the time.
        if inputs or kwargs or self._forward_pre_hooks or self._forward_post_hooks or first is _NOTHING or _watched:
            inputs = inputs if first is _NOTHING else (first, *inputs)
            if _watched:
                _path.enter(self)
                try:
                    return self._call_with_hooks(inputs, kwargs)
                finally:
                    _path.leave()
            return self._call_with_hooks(inputs, kwargs)
        return self.forward(first)

    def _call_with_hooks(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for hook in list(self._forward_pre_hooks.values()):
            if isinstance(hook, _HookWithKwargs):
                inputs, kwargs = hook.before(self, inputs, kwargs) or (inputs, kwargs)
                continue
            replaced = hook(self, inputs)
            if replaced is not None:
                inputs = replaced if isinstance(replaced, tuple) else (replaced,)
        try:
            outputs = self.forward(*inputs, **(keywords_of(self.forward, kwargs) if kwargs else kwargs))
        except BaseException:  # the end of a second run for recomputation, too
            for hook in list(self._forward_post_hooks.values()):
                if isinstance(hook, _HookWithKwargs) and hook.always:
                    hook.after(self, inputs, kwargs, None)
            raise
        for hook in list(self._forward_post_hooks.values()):
            kept = isinstance(hook, _HookWithKwargs)
            replaced = hook.after(self, inputs, kwargs, outputs) if kept else hook(self, inputs, outputs)
            if replaced is not None:
                outputs = replaced
        return outputs

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the layer's result. Every subclass writes its own."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward().")

    def backward(self, *inputs: Any) -> Any:
        """Raises an error: gradients come from ``Tensor.backward()``."""
        raise ValueError("A Layer has no backward(): gradients come from Tensor.backward().")

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookRemoveHelper:
        """Call ``hook(layer, inputs)`` before ``forward``, and with ``prepend`` before other hooks; what it returns replaces
        the inputs. With ``with_kwargs`` it is ``hook(layer, inputs, kwargs)``, which returns both or None."""
        return _add_hook(self._forward_pre_hooks, self._kept_hook(hook, with_kwargs), prepend)

    def register_forward_post_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> HookRemoveHelper:
        """Call ``hook(layer, inputs, outputs)`` after ``forward``, and with ``prepend`` before other hooks; what it returns
        replaces the outputs. With ``with_kwargs`` it is ``hook(layer, inputs, kwargs, outputs)``; with ``always_call`` it is
        called after an error, too."""
        return _add_hook(self._forward_post_hooks, self._kept_hook(hook, with_kwargs, always_call), prepend)

    @staticmethod
    def _kept_hook(hook: Any, with_kwargs: bool, always: bool = False) -> Any:
        return _HookWithKwargs(hook, with_kwargs, always) if with_kwargs or always else hook

    def register_state_dict_hook(self, hook: Callable[[dict], Any]) -> HookRemoveHelper:
        """Call ``hook(state_dict)`` when a state dict is created; the result replaces it."""
        return _add_hook(self._state_dict_hooks, hook)

    # modes -------------------------------------------------------------------------------------

    def _set_training(self, training: bool) -> None:
        for layer in self.sublayers(include_self=True):
            layer.training = training

    def train(self, mode: bool = True) -> Layer:
        """Put this layer and its sublayers into training mode, or with False into evaluation mode; returns the layer."""
        self._set_training(bool(mode))
        return self

    def eval(self) -> Layer:
        """Put this layer and its sublayers into evaluation mode; returns the layer."""
        self._set_training(False)
        return self

    def apply(self, fn: Callable[[Layer], None]) -> Layer:
        """Call ``fn`` on every sublayer, innermost first, then on this layer; returns the layer."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    @property
    def _helper(self) -> Any:
        """What makes parameters, variables and calls of a layer of a program, named after this one."""
        from oar.base.layer_helper import LayerHelper

        return LayerHelper(self._full_name, name=self._full_name)

    def full_name(self) -> str:
        """The layer's unique name, such as ``linear_0``."""
        return self._full_name

    # creating and registering ------------------------------------------------------------------

    @overload
    def create_parameter(
        self, shape: Sequence[int], attr: Literal[False], dtype: Any = None, is_bias: bool = False,
        default_initializer: Any = None, device: Any = None,
    ) -> None: ...  # fmt: skip

    @overload
    def create_parameter(
        self, shape: Sequence[int], attr: Any = None, dtype: Any = None, is_bias: bool = False,
        default_initializer: Any = None, device: Any = None,
    ) -> Parameter: ...  # fmt: skip

    def create_parameter(
        self,
        shape: Sequence[int],
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Any = None,
        device: Any = None,
    ) -> Parameter | None:
        """Create a parameter named after this layer, on a device if one is given; None when ``attr`` is False."""
        attr = copy.copy(ParamAttr._to_attr(None if attr == "" else attr))
        if attr is False:
            return None
        if attr.name is None:
            attr.name = unique_name.generate_within(self._name_counts, f"{self._full_name}.{'b' if is_bias else 'w'}")
        dtype = dtype or oar.get_default_dtype()
        made = make_parameter(shape, dtype, attr, default_initializer, is_bias)
        if device is not None:
            made._become(made.to(device))
        return made

    def create_tensor(
        self, name: str | None = None, persistable: bool | None = None, dtype: Any = None
    ) -> Tensor:
        """Create an empty tensor named after this layer."""
        tensor = oar.zeros([0], dtype=dtype or self._dtype)
        full = f"{self._full_name}.{name or '_generated_var'}"
        tensor.name = full if name is not None else unique_name.generate_within(self._name_counts, full)
        tensor.persistable = bool(persistable)
        return tensor

    create_variable = create_tensor

    def _check_name(self, kind: str, name: Any, registry: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"The name of {kind} should be a string, but received {type(name).__name__}.")
        if "." in name or name == "":
            problem = "be empty" if name == "" else f"contain '.', as {name!r} does"
            raise KeyError(f"The name of {kind} can not {problem}.")
        if name not in registry and hasattr(self, name):
            raise KeyError(f"The {kind} '{name}' cannot be added: an attribute of that name already exists.")

    def add_sublayer(self, name: str, sublayer: Layer | None) -> Layer | None:
        """Register ``sublayer``; it can be reached as attribute ``name``."""
        if sublayer is not None and not isinstance(sublayer, Layer):
            raise AssertionError(f"A sublayer should be a Layer, but received {type(sublayer).__name__}.")
        self._sub_layers[name] = sublayer
        return sublayer

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Register ``parameter``; it can be reached as attribute ``name``."""
        if "_parameters" not in self.__dict__:
            raise RuntimeError(_NOT_READY)
        self._check_name("parameter", name, self._parameters)
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(f"The parameter to add should be a Parameter, but received {type(parameter).__name__}.")
        if parameter is not None and self._loaddict_holder:
            if parameter.name not in self._loaddict_holder:
                raise AssertionError(f"The parameter {parameter.name} is not among those that were loaded.")
            parameter.set_value(self._loaddict_holder[parameter.name])
        self._parameters[name] = parameter
        return parameter

    @respelled
    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """Register a tensor that is not trained; saved with the state when ``persistable``."""
        if "_buffers" not in self.__dict__:
            raise ValueError(_NOT_READY)
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and (not isinstance(tensor, Tensor) or isinstance(tensor, Parameter)):
            raise TypeError(f"The registered buffer should be a Paddle.Tensor, but received {type(tensor).__name__}.")
        self._buffers[name] = tensor
        if persistable:
            self._non_persistable_buffer_names_set.discard(name)
        else:
            self._non_persistable_buffer_names_set.add(name)

    # walking -----------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """The direct sublayers with their names, each layer once."""
        seen: set[int] = set()
        for name, layer in self._sub_layers.items():
            if layer is not None and id(layer) not in seen:
                seen.add(id(layer))
                yield name, layer

    def children(self) -> Iterator[Layer]:
        """The direct sublayers."""
        for _, layer in self.named_children():
            yield layer

    def named_sublayers(
        self,
        prefix: str = "",
        include_self: bool = False,
        layers_set: set[Any] | None = None,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Layer]]:
        """All layers below this one with their structured names, parents first."""
        seen = set() if layers_set is None else layers_set
        if include_self and self not in seen:
            if remove_duplicate:
                seen.add(self)
            yield prefix, self
        for name, layer in self._sub_layers.items():
            if layer is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from layer.named_sublayers(below, True, seen, remove_duplicate)

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """All layers below this one."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def _named_members(
        self, registry: str, prefix: str, include_sublayers: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        layers: Iterable[tuple[str, Layer]] = [(prefix, self)]
        if include_sublayers:
            layers = self.named_sublayers(prefix, True, None, remove_duplicate)
        seen: set[int] = set()
        for where, layer in layers:
            for key, value in getattr(layer, registry).items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{where}.{key}" if where else key), value

    @respelled
    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their structured names."""
        return self._named_members("_parameters", prefix, include_sublayers, remove_duplicate)

    @respelled
    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """Parameters of this layer and, by default, of those below it."""
        return [value for _, value in self.named_parameters(include_sublayers=include_sublayers)]

    @respelled
    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their structured names."""
        return self._named_members("_buffers", prefix, include_sublayers, remove_duplicate)

    @respelled
    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """Buffers of this layer and, by default, of those below it."""
        return [value for _, value in self.named_buffers(include_sublayers=include_sublayers)]

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all trainable parameters."""
        for parameter in self.parameters():
            if parameter.trainable:
                parameter.clear_gradient(set_to_zero)

    # attributes --------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Registered values live in __dict__ too, so Python comes here for a missing name only.
        own = self.__dict__
        for registry in ("_parameters", "_sub_layers", "_buffers"):
            if name in own.get(registry, ()):
                return own[registry][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._register("_parameters", name, value)
        elif name in own.get("_parameters", ()):
            self._unset("_parameters", "parameter", "Parameter", name, value)
        elif isinstance(value, Layer):
            self._register("_sub_layers", name, value)
        elif name in own.get("_sub_layers", ()):
            self._unset("_sub_layers", "sublayer", "Layer", name, value)
        elif isinstance(value, Tensor):
            if name not in own.get("_buffers", (name,)):
                self._non_persistable_buffer_names_set.add(name)
            self._register("_buffers", name, value)
        elif name in own.get("_buffers", ()):
            self._unset("_buffers", "buffer", "Tensor", name, value)
        else:
            object.__setattr__(self, name, value)

    def _register(self, registry: str, name: str, value: Any) -> None:
        own = self.__dict__
        if registry not in own:
            raise ValueError(_NOT_READY)
        for other in ("_parameters", "_buffers", "_sub_layers"):
            if other != registry:
                own[other].pop(name, None)
        own[registry][name] = value

    def _unset(self, registry: str, kind: str, expected: str, name: str, value: Any) -> None:
        if value is not None:
            raise TypeError(
                f"assignment to {kind} '{name}' should be of type {expected} or None, "
                f"but got '{type(value).__name__}'"
            )
        self.__dict__[registry][name] = None

    def __delattr__(self, name: str) -> None:
        for registry in (self._parameters, self._sub_layers, self._buffers):
            if name in registry:
                del registry[name]
                self._non_persistable_buffer_names_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = set(dir(type(self))) | set(self.__dict__)
        return sorted(names.union(self._parameters, self._sub_layers, self._buffers))

    # printing ----------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """The text between the parentheses when the layer is printed."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n")
        below = [f"({name}): " + repr(layer).replace("\n", "\n  ") for name, layer in self._sub_layers.items()]
        text = type(self).__name__ + "("
        text += extra[0] if len(extra) == 1 else "\n  " + "\n  ".join(extra) + "\n"
        if below:
            text += "\n  " + "\n  ".join(below) + "\n"
        return text + ")"
