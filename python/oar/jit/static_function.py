"""A function that runs as captured programs."""

from __future__ import annotations

import functools
import inspect
import logging
import warnings
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar._grad_mode import no_grad
from oar.jit import segments, specs
from oar.jit.capture import CapturedBlock, CapturedProgram
from oar.jit.report import must_capture, options, say, total
from oar.jit.variant import Declined, CapturePlan, Variant, capture_variant
from oar.nn.layer.layers import Layer

__all__ = ["StaticFunction"]

_log = logging.getLogger("oar.jit")  # not a Python warning: those are the user's, to count and to filter
_MOST_VARIANTS = 32
_MOST_GROUPS = 256
_MANY_CAPTURES = 32


class _Uncaptured:
    """A form of a function that cannot be captured: it runs as Python while what it read is as it was."""

    def __init__(self, reason: str, guards: Any) -> None:
        self.reason, self._guards = reason, guards
        self.tries = 0

    def holds(self) -> bool:
        return self._guards is None or self._guards.changed() is None


class _SizeGroup:
    """The variants for calls that differ in sizes alone."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []  # the most recently used first
        self.met: list[int] | None = None  # a size above 1 for every index, if there was one
        self.open: set[int] = set()
        self.fixed = False  # the function needs its sizes as numbers
        self.uncaptured: _Uncaptured | None = None

    def meet(self, sizes: tuple[int, ...]) -> None:
        """Sizes that are not what they were are open from now on; 0 and 1 are special and stay numbers."""
        if self.met is None:
            self.met = list(sizes)
        for i, size in enumerate(sizes):
            if size != self.met[i] and size > 1:
                if self.met[i] > 1:
                    self.open.add(i)
                self.met[i] = size


class StaticFunction(_C.StaticCall):
    """A function that is captured when it is called, and runs as a program from then on.

    ``function`` is called as it is inside another capture, under ``vmap`` and ``jvp``, and after
    ``enable_to_static(False)``.

    Args:
        function: the function.
        input_spec: an ``InputSpec`` per argument.
        instance: the object, where the function is a method.
        keeps_tensors: whether numbers that depend on the values of tensors are tensors for the caller.

    Examples:
        >>> import oar
        >>> f = oar.jit.to_static(lambda x: x * 2)
        >>> isinstance(f, oar.jit.StaticFunction)
        True
        >>> f(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [2., 4.])
    """

    def __init__(
        self, function: Callable, input_spec: Any = None, instance: Any = None, keeps_tensors: bool = False
    ) -> None:
        self._function = function
        self._instance = instance
        self._input_spec = input_spec
        self._keeps_tensors = keeps_tensors
        self._call = function if instance is None else function.__get__(instance)
        self._groups: dict[Any, _SizeGroup] = {}
        self._warned = self._told = False
        self._training = True
        self._last: Variant | None = None
        self._last_specs: list[Any] | None = None
        functools.update_wrapper(self, function)

    # calling -----------------------------------------------------------------------------------

    def _call_in_python(self, *args: Any, **kwargs: Any) -> Any:
        """Every call for which no form offered to ``StaticCall`` is valid."""
        if not options.enabled or getattr(self._function, "_oar_not_to_static", False):
            return self._call(*args, **kwargs)
        if not self._training and _C.is_grad_enabled():
            with no_grad():
                return self(*args, **kwargs)
        signature = _C.call_key(args, kwargs)
        if signature is None:
            return self._call(*args, **kwargs)
        key, tensors, sizes = signature
        with self._lock:
            group = self._groups.get(key) or self._new_group(key)
            variant, why = self._find(group, sizes, tensors)
            if variant is None and not (group.uncaptured and group.uncaptured.holds()):
                try:
                    why = self._in_words(why, sizes, args, kwargs)
                    variant = self._capture(group, sizes, tensors, args, kwargs, why)
                except _FallBack as fall_back:
                    return fall_back.result
            if variant is not None:
                total.whole += 1
                self._counts.whole += 1
                variant.used = self._counts.whole
                form = variant.form_for(key)
                if form is not None:
                    self.offer(form)
                if variant.writes:
                    return self._run(variant, tensors, args, kwargs)
        if variant is not None:
            return self._run(variant, tensors, args, kwargs)
        return self._run_as_python(args, kwargs)

    def _run(self, variant: Variant, tensors: list[Tensor], args: tuple, kwargs: dict) -> Any:
        try:
            return variant.run(tensors)
        except _C.Unmet:
            pass  # Python runs after the handler, where it would be the context of what the function raises
        return self._run_as_python(args, kwargs)

    def _call_after_unmet(self, *args: Any, **kwargs: Any) -> Any:
        return self._run_as_python(args, kwargs)

    def _run_as_python(self, args: tuple, kwargs: dict) -> Any:
        result = segments.run(self._call, args, kwargs, self._title)
        self._count("segments")
        return result

    @property
    def _title(self) -> str:
        return getattr(self._function, "__name__", type(self._function).__name__)

    def train(self) -> None:
        """Record calls for ``backward`` again, after ``eval()``."""
        self._set_training(True, "train")

    def eval(self) -> None:
        """Run without a record for ``backward`` from now on."""
        self._set_training(False, "eval")

    def _set_training(self, training: bool, mode: str) -> None:
        if isinstance(self._instance, Layer) and self._instance.training != training:
            raise RuntimeError(f"[{mode}] {self._function.__name__} is a method of a Layer; call the layer's {mode}().")
        self._training = training
        self.forget()

    def _count(self, name: str) -> None:
        for counts in (self._counts, total):
            setattr(counts, name, getattr(counts, name) + 1)

    def _find(self, group: _SizeGroup, sizes: tuple, tensors: list[Tensor]) -> tuple[Variant | None, Any]:
        """A variant for the call; or why the last one used is not: a text, or the variant and a place among sizes."""
        why: Any = None
        for i, variant in enumerate(group.variants):
            place = variant.other_size(sizes)
            misfit = variant.mismatch(tensors) if place is None else (variant, place)
            if misfit is None:
                if i:
                    group.variants.insert(0, group.variants.pop(i))
                return variant, None
            why = why or misfit
        return None, why

    def _in_words(self, why: Any, sizes: tuple, args: tuple, kwargs: dict) -> str | None:
        if why is None or isinstance(why, str):
            return why
        variant, place = why
        then, axis = variant.sizes[place], place
        for name, tensor in specs.argument_names(self._call, args, kwargs):
            if axis < len(tensor.shape):
                break
            axis -= len(tensor.shape)
        return f"size {axis} of {name} is {sizes[place]}, and was {'more than 1' if then is None else then}"

    # capturing ---------------------------------------------------------------------------------

    def _capture(
        self, group: _SizeGroup, sizes: tuple, tensors: list[Tensor], args: tuple, kwargs: dict, why: str | None
    ) -> Variant:
        title = self._title
        names = [name for name, _ in specs.argument_names(self._call, args, kwargs)]
        plan = CapturePlan(self._call, args, kwargs, tensors, names, title, self._keeps_tensors)
        group.meet(sizes)
        given = specs.open_sizes(self._call, self._input_spec, args, kwargs, tensors)
        if not group.fixed:
            labels = [f"{name}_{axis}" for name, t in zip(names, tensors) for axis in range(len(t.shape))]
            plan.symbols = {i: _identifier(labels[i]) for i in group.open}
            plan.symbols.update(given)
        declined: Declined | None = None
        try:
            variant = self._attempt(group, plan, title)
        except Declined as error:
            declined = error
        if declined is not None:
            raise self._fall_back(group, declined, title, args, kwargs)
        opened = sorted(set(plan.symbols.values())) if None in variant.sizes else []
        say(f"{title}: captured" + (f" again: {why}" if why else "") + (f"; open: {', '.join(opened)}" if opened else ""))
        if options.code_level > 0:
            print(variant.program.program.text())
        self._count("captures")
        self._last, self._last_specs = variant, specs.of_call(self._call, args, kwargs)
        group.variants.insert(0, variant)
        variant.used = self._counts.whole + 1
        self._drop_oldest()
        if self._counts.captures > _MANY_CAPTURES and not self._warned:
            self._warned = True
            warnings.warn(
                f"{title} has been captured {self._counts.captures} times; the last reason: "
                f"{why or 'a call of a new kind'}. A capture runs the function in Python: pass what changes as a "
                "tensor, or leave the function out of to_static.",
                stacklevel=4,
            )
        return variant

    def _attempt(self, group: _SizeGroup, plan: CapturePlan, title: str) -> Variant:
        if plan.symbols:
            try:
                return capture_variant(plan, with_open=True)
            except Declined as declined:
                say(f"{title}: sizes stay numbers: {declined}")
        variant = capture_variant(plan, with_open=False)
        group.fixed = group.fixed or bool(plan.symbols)
        return variant

    def _fall_back(self, group: _SizeGroup, declined: Declined, title: str, args: tuple, kwargs: dict) -> _FallBack:
        """Runs the function as Python, once. What it raises is raised; else it runs so while what it read is the same."""
        result = self._run_as_python(args, kwargs)
        reason = str(declined)
        say(f"{title}: runs as Python: {reason}")
        if not self._told:
            self._told = True
            _log.warning("%s runs in segments, not as one program: %s", title, reason)
        if must_capture():
            raise RuntimeError(f"{title} was not captured: {reason}") from declined
        tries = group.uncaptured.tries + 1 if group.uncaptured else 1
        guards = declined.guards if tries < 8 else None
        group.uncaptured = _Uncaptured(reason, guards)
        group.uncaptured.tries = tries
        return _FallBack(result)

    def _new_group(self, key: Any) -> _SizeGroup:
        if len(self._groups) >= _MOST_GROUPS:
            del self._groups[next(iter(self._groups))]
            self.forget()
        group = self._groups[key] = _SizeGroup()
        return group

    def _drop_oldest(self) -> None:
        """If there are too many variants, drops the least recently used one."""
        listed = [(v.last_use(), group, v) for group in self._groups.values() for v in group.variants]
        if len(listed) > _MOST_VARIANTS:
            _, group, variant = min(listed, key=lambda item: item[0])
            group.variants.remove(variant)
            self.forget()

    # as an attribute of a class ----------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> StaticFunction:
        if instance is None or self._instance is not None:
            return self
        own = getattr(instance, "__dict__", None)
        key = f"__static_{self._function.__name__}"
        bound = own.get(key) if own is not None else None
        if bound is None or bound._function is not self._function or bound._instance is not instance:
            bound = StaticFunction(self._function, self._input_spec, instance, self._keeps_tensors)
            if own is not None:
                own[key] = bound
        return bound

    def __deepcopy__(self, memo: dict) -> StaticFunction:
        instance = memo.get(id(self._instance), self._instance)
        return StaticFunction(self._function, self._input_spec, instance, self._keeps_tensors)

    def __reduce__(self) -> tuple:
        return StaticFunction, (self._function, self._input_spec, self._instance, self._keeps_tensors)

    # looking into it ---------------------------------------------------------------------------

    @property
    def dygraph_function(self) -> Callable:
        """The function itself."""
        return self._call

    _dygraph_function = dygraph_function

    @property
    def code(self) -> str:
        """The source of the function."""
        return inspect.getsource(self._function)

    @property
    def concrete_program(self) -> ConcreteProgram:
        """The program captured last; one is captured from the input spec if there is none yet."""
        if self._last is None:
            self._capture_from_spec()
        assert self._last is not None
        return ConcreteProgram(self._last)

    @property
    def main_program(self) -> CapturedProgram:
        """The function as a program."""
        return self.concrete_program.main_program

    @property
    def program_cache(self) -> ProgramCache:
        """The programs that have been captured, to look into."""
        return ProgramCache(self)

    def get_traced_count(self) -> int:
        """How many programs there are."""
        return len(self.program_cache)

    def _capture_from_spec(self) -> None:
        if self._input_spec is None:
            raise RuntimeError("There is no program yet: call the function, or pass an input_spec to to_static.")
        args = specs.example_arguments(self._input_spec)
        key, tensors, sizes = _C.call_key(args, {})
        with self._lock:
            group = self._groups.get(key) or self._new_group(key)
            self._capture(group, sizes, tensors, args, {}, None)

    def get_concrete_program(self, *args: Any, **kwargs: Any) -> tuple[ConcreteProgram, ConcreteProgram]:
        """The program for a call with these arguments, captured now if it is not there. Twice: Paddle has two views."""
        key, tensors, sizes = _C.call_key(args, kwargs)
        with self._lock:
            group = self._groups.get(key) or self._new_group(key)
            variant, _ = self._find(group, sizes, tensors)
            if variant is None:
                try:
                    variant = self._capture(group, sizes, tensors, args, kwargs, None)
                except _FallBack:
                    why = group.uncaptured.reason if group.uncaptured else "it could not be captured"
                    raise RuntimeError(f"There is no program: {why}") from None
        concrete = ConcreteProgram(variant)
        return concrete, concrete

    def rollback(self) -> Callable:
        """The function as it was; a layer gets its own ``forward`` back."""
        instance = self._instance
        if isinstance(instance, Layer) and instance.__dict__.get("forward") is self:
            del instance.forward
        elif instance is not None:
            instance.__dict__.pop(f"__static_{self._function.__name__}", None)
        return self._call

    def __repr__(self) -> str:
        return f"<StaticFunction {getattr(self._function, '__qualname__', self._function)}>"


class _FallBack(Exception):  # noqa: N818
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


class ConcreteProgram:
    """A captured form of a function, to look into."""

    def __init__(self, variant: Variant) -> None:
        self._native = variant.program
        self.guards = variant.guards.labels()

    @property
    def program(self) -> ConcreteProgram:
        """Itself: it has the halves that a run consists of."""
        return self

    @property
    def main_program(self) -> CapturedProgram:
        """The function alone."""
        return CapturedProgram(self._native.program, False, -1)

    train_program = infer_program = program  # Paddle's names for its two forms; here each mode has a capture of its own

    def global_block(self) -> CapturedBlock:
        """The calls of the function."""
        return self.main_program.global_block()

    @property
    def forward_program(self) -> CapturedProgram:
        """The function with what its backward half reads."""
        return CapturedProgram(self._native.forward, False, -1)

    @property
    def backward_program(self) -> CapturedProgram:
        """From the gradients of its results to those of inputs and parameters."""
        return CapturedProgram(self._native.backward, False, -1)


class ProgramCache:
    """The programs of a static function, under Paddle's names for looking at them."""

    def __init__(self, function: StaticFunction) -> None:
        self._function = function

    def concrete_programs(self) -> list[ConcreteProgram]:
        """One for each form of calls that was captured."""
        return [ConcreteProgram(variant) for group in self._function._groups.values() for variant in group.variants]

    def last(self) -> tuple[Any, tuple[ConcreteProgram, ConcreteProgram]]:
        """The key of the program captured last, and the program in Paddle's two views."""
        if self._function._last is None:
            raise RuntimeError("[ProgramCache.last] no program has been captured yet. Call the function first.")
        concrete = ConcreteProgram(self._function._last)
        return self._function._last.sizes, (concrete, concrete)

    def clear(self) -> None:
        """Drops all of them; the next call captures."""
        with self._function._lock:
            self._function._groups.clear()
            self._function._last = None
            self._function.forget()

    def __len__(self) -> int:
        return sum(len(group.variants) for group in self._function._groups.values())


def _identifier(label: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in label)
