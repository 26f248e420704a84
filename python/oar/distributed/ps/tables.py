"""What a table is told: how its values begin, change, and end."""

from __future__ import annotations

import dataclasses
from typing import Any

from oar.distributed.entry_attr import EntryAttr, ShowClickEntry

__all__ = ["Initial", "Rule", "Score", "TableConfig", "initial_of", "rule_of"]

_RULES = ("sgd", "adagrad", "adam", "sum")
_INITIALS = ("constant", "uniform", "gaussian")


def _number(kinds: tuple[str, ...], kind: str, what: str) -> int:
    if kind not in kinds:
        raise ValueError(f"[{what}] the kind is {kind!r}. hint: use one of {', '.join(kinds)}.")
    return kinds.index(kind)


@dataclasses.dataclass(frozen=True)
class Rule:
    """How values change with a gradient; ``sum`` adds it.

    Examples:
        >>> from oar.distributed import ps
        >>> ps.Rule('adam', learning_rate=1e-3).beta1
        0.9
    """

    kind: str = "sgd"
    learning_rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    initial_accumulator: float = 0.0

    def _native(self) -> tuple[int, float, float, float, float, float]:
        return (_number(_RULES, self.kind, "Rule"), self.learning_rate, self.beta1, self.beta2, self.epsilon,
                self.initial_accumulator)


@dataclasses.dataclass(frozen=True)
class Initial:
    """The first values of a row: ``constant`` with a ``value``; ``uniform`` in ``[-scale, scale)``, or ``gaussian`` with that standard
    deviation, by a random stream of each key.

    Examples:
        >>> from oar.distributed import ps
        >>> ps.Initial('gaussian', scale=0.01).seed
        0
    """

    kind: str = "uniform"
    value: float = 0.0
    scale: float = 0.1
    seed: int = 0

    def _native(self) -> tuple[int, float, float, int]:
        return _number(_INITIALS, self.kind, "Initial"), self.value, self.scale, self.seed


@dataclasses.dataclass(frozen=True)
class Score:
    """Which rows ``shrink`` removes: those without a push for more than ``most_unseen`` shrinks and, in a table that counts shows,
    those whose ``show_coefficient * (shows - clicks) + click_coefficient * clicks`` is below ``least_score``. Shows and clicks are
    multiplied by ``decay`` with each shrink.

    Examples:
        >>> from oar.distributed import ps
        >>> ps.Score(most_unseen=7).decay
        0.98
    """

    show_coefficient: float = 0.1
    click_coefficient: float = 1.0
    decay: float = 0.98
    least_score: float = 0.8
    most_unseen: int = 30

    def _native(self, counts_shows: bool) -> tuple[bool, float, float, float, float, int]:
        return counts_shows, self.show_coefficient, self.click_coefficient, self.decay, self.least_score, self.most_unseen


@dataclasses.dataclass(frozen=True)
class TableConfig:
    """A table. All workers must give it the same settings.

    Examples:
        >>> from oar.distributed import ps
        >>> ps.TableConfig('words', width=8, on_disk=True).sparse
        True
    """

    name: str
    width: int
    sparse: bool = True
    on_disk: bool = False
    cache_bytes: int = 256 << 20
    rule: Rule = Rule()
    initial: Initial = Initial()
    score: Score = Score()
    entry: EntryAttr | None = None

    def _create(self, client: Any) -> None:
        entry = (self.entry._kind, self.entry._threshold) if self.entry is not None else (0, 0.0)
        client.create_table(self.name, self.sparse, self.width, self.on_disk, self.cache_bytes, self.rule._native(),
                            self.initial._native(), self.score._native(isinstance(self.entry, ShowClickEntry)), entry)


def initial_of(attr: Any, width: int) -> Initial:
    """The initialiser of a ``ParamAttr``, in the words of a table."""
    from oar.nn import initializer as init

    given = getattr(attr, "initializer", attr)
    if given is None:
        return Initial(scale=(6.0 / (1 + width)) ** 0.5 * 0.1)
    if isinstance(given, init.Constant):
        return Initial("constant", value=float(given._value))
    if isinstance(given, init.Uniform) and given._low == -given._high:
        return Initial("uniform", scale=float(given._high))
    if isinstance(given, init.Normal) and given._mean == 0:
        return Initial("gaussian", scale=float(given._std))
    raise NotImplementedError(f"[sparse_embedding] rows on servers cannot begin with {type(given).__name__}. hint: use Constant, "
                              "Uniform between -x and x, or Normal with the mean 0.")


def rule_of(optimizer: Any) -> Rule:
    """The rule that updates values as an optimiser does."""
    from oar import optimizer as optim

    for what, name in ((optimizer._grad_clip, "grad_clip"), (optimizer.regularization, "weight_decay")):
        if what:
            raise NotImplementedError(f"[distributed_optimizer] {name} is not there for parameter servers yet. hint: leave it out.")
    rate = float(optimizer.get_lr())
    if type(optimizer) is optim.SGD:
        return Rule("sgd", rate)
    if type(optimizer) is optim.Adagrad:
        return Rule("adagrad", rate, epsilon=float(optimizer._default_dict["epsilon"]),
                    initial_accumulator=optimizer.initial_accumulator_value)
    if type(optimizer) is optim.Adam:
        return Rule("adam", rate, float(optimizer._beta1), float(optimizer._beta2), float(optimizer._epsilon))
    raise NotImplementedError(f"[distributed_optimizer] servers have no rule for {type(optimizer).__name__}. hint: use SGD, Adagrad "
                              "or Adam.")
