"""Watches the calls of a thread: counts them by dtype, and looks for NaN and infinity in their results."""

from __future__ import annotations

import bisect
import os
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.amp._names import matches, older_names
from oar.amp._places import Place, current_place
from oar.framework.parameter import dtype_name
from oar.nn import _path

__all__ = ["Numbers", "counts", "clear_counts", "numbers_of", "refresh", "report", "settings"]

_COLUMNS = {"float16": 0, "bfloat16": 1, "float32": 2}
_SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_FLOATING = (*_SHORT, "complex64", "complex128")
_HALF_MAX = 65504.0
_REMEMBERED = 200_000


class _Settings:
    """What the checker was told besides the flags."""

    def __init__(self) -> None:
        self.output_dir = ""
        self.checked: frozenset[str] = frozenset()
        self.skipped: frozenset[str] = frozenset()
        self.forced = 0  # how many layers ask for a check while they run


settings = _Settings()
_counts: dict[str, list[int]] = {}
# Where the calls of the tape were made, in the order of its numbers: derivatives are computed later.
_made: tuple[list[int], list[Place]] = ([], [])


def refresh() -> None:
    """Switches the watch on or off, after a change of flags or settings."""
    _C.watch_calls(_called if _counting() or _checking() else None)
    _follow_layers(_checking())
    if not _checking():
        _made[0].clear()
        _made[1].clear()


_follows_layers = False


def _follow_layers(wanted: bool) -> None:
    global _follows_layers
    if wanted != _follows_layers:
        _follows_layers = wanted
        _path.watch() if wanted else _path.unwatch()


def _counting() -> bool:
    return bool(oar.get_flags("low_precision_op_list")["low_precision_op_list"])


def _checking() -> bool:
    return settings.forced > 0 or bool(_C.get_flag("check_nan_inf"))


def counts() -> dict[str, str]:
    """How many calls of each op were made, by Paddle's name: those in float16, bfloat16, float32 and other dtypes."""
    return {name: ",".join(map(str, row)) for name, row in _counts.items()}


def clear_counts() -> None:
    """Starts from nothing again."""
    _counts.clear()


def _called(name: str, operands: list[tuple[str, Tensor]], results: list[Any], sequence: int, backward: bool) -> None:
    with oar.no_grad():
        if _counting():
            _count(name, operands, results)
        if _checking():
            place = _place_of(sequence, backward)
            if _is_checked(name):
                _check(name, operands, results, place, backward)


# counting ----------------------------------------------------------------------------------------


def _count(name: str, operands: list[tuple[str, Tensor]], results: list[Any]) -> None:
    dtypes = [dtype_name(result.dtype) for result in results if isinstance(result, Tensor)]
    column = next((_COLUMNS[dtype] for dtype in dtypes if dtype in _COLUMNS), 3)
    for older in older_names(name, operands):
        _counts.setdefault(older, [0, 0, 0, 0])[column] += 1


# checking ----------------------------------------------------------------------------------------


def _place_of(sequence: int, backward: bool) -> Place:
    """Where a call is made, or was made whose derivative is computed."""
    numbers, places = _made
    if backward:
        at = bisect.bisect_left(numbers, sequence)
        return places[at] if at < len(places) else Place("", "")
    place = current_place()
    if sequence and (not numbers or sequence > numbers[-1]):
        if len(numbers) >= _REMEMBERED:
            del numbers[: _REMEMBERED // 2], places[: _REMEMBERED // 2]
        numbers.append(sequence)
        places.append(place)
    return place


def _is_checked(name: str) -> bool:
    if settings.skipped and matches(name, settings.skipped):
        return False
    return not settings.checked or matches(name, settings.checked)


def _level() -> int:
    return 0 if settings.forced else int(oar.get_flags("check_nan_inf_level")["check_nan_inf_level"])


def _check(name: str, operands: list[tuple[str, Tensor]], results: list[Any], place: Place, backward: bool) -> None:
    level = _level()
    for position, result in enumerate(results):
        values = _values(result)
        if values is None or (level < 2 and bool(_C.ops.all(_C.ops.isfinite(values)))):
            continue
        numbers = numbers_of(values)
        if not report(name, place.layer, result, numbers, level, settings.output_dir):
            continue
        if level == 0 and numbers.bad:
            if backward and settings.forced:  # what follows in this backward, and would end the check, does not run
                settings.forced = 0
                refresh()
            raise RuntimeError(_message(name, operands, result, position, len(results), numbers, place, backward))


def _values(result: Any) -> Tensor | None:
    """What to look at: a dense tensor of floats; None if there is nothing."""
    if not isinstance(result, Tensor) or dtype_name(result.dtype) not in _FLOATING:
        return None
    if result.is_selected_rows():
        result = result.value()
    return result if result.is_dense() and result.size else None


class Numbers:
    """What a tensor holds."""

    def __init__(self, values: Any) -> None:
        self.count = int(values.size)
        self.nan, self.inf = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        self.zero = int((values == 0).sum())
        if not self.count:
            self.most = self.least = self.mean = 0.0
            return
        with np.errstate(all="ignore"):
            self.most, self.least = float(_or_nan(values).max()), float(_or_nan(values).min())
            self.mean = float(values.mean(dtype="float64"))

    @property
    def bad(self) -> bool:
        """Whether one of them is not finite."""
        return bool(self.nan or self.inf)


def _or_nan(values: Any) -> Any:
    """The values, or a single NaN where all are NaN, without NumPy's warning."""
    known = values[~np.isnan(values)]
    return known if known.size else np.array([np.nan])


def numbers_of(tensor: Tensor) -> Numbers:
    """What a tensor holds; for complex numbers, their absolute values."""
    with oar.no_grad():
        plain = _C.ops.abs(tensor) if dtype_name(tensor.dtype).startswith("complex") else tensor
        wide = plain if dtype_name(plain.dtype) == "float64" else _C.ops.cast(plain, "float32")
        return Numbers(wide.detach().numpy().reshape(-1))


def report(name: str, label: str, tensor: Any, numbers: Numbers, level: int, output_dir: str) -> bool:
    """Prints a line about a tensor, or writes it to a file, if the level asks for it. Returns whether it did."""
    dtype = dtype_name(tensor.dtype)
    overflows = level == 2 and dtype == "float32" and max(numbers.most, -numbers.least) > _HALF_MAX
    if not (numbers.bad or overflows or level >= 3):
        return False
    found = f"num_nan={numbers.nan}, num_inf={numbers.inf}, " if numbers.bad else ""
    line = (f"[PRECISION] {'[ERROR] ' if numbers.bad else ''}in [device={str(tensor.place).removeprefix('Place(').removesuffix(')')}, "
            f"op={name}, tensor={label}, dtype={_SHORT.get(dtype, dtype)}], numel={numbers.count}, {found}num_zero={numbers.zero}, "
            f"max={numbers.most:e}, min={numbers.least:e}, mean={numbers.mean:e}")
    if not output_dir:
        print(line, flush=True)
        return True
    os.makedirs(output_dir, exist_ok=True)
    with open(os.path.join(output_dir, "worker_cpu"), "a", encoding="utf-8") as file:
        file.write(line + "\n")
    return True


def _message(name: str, operands: list[tuple[str, Tensor]], result: Tensor, position: int, count: int, numbers: Numbers,
             place: Place, backward: bool) -> str:
    which = "the result" if count == 1 else f"result {position}"
    what = f"{which}, {dtype_name(result.dtype)}{list(result.shape)},"
    where = place.describe()
    bad = [operand for operand, tensor in operands if (values := _values(tensor)) is not None and numbers_of(values).bad]
    origin = (f"It comes from the operand{'s' if len(bad) > 1 else ''} {', '.join(dict.fromkeys(bad))}, which held such values before."
              if bad else "All operands are finite: it begins here.")
    text = (f"[{name}] There are NAN or INF (num_nan={numbers.nan}, num_inf={numbers.inf}, num_zero={numbers.zero}) in {what}"
            f"{' ' + where if where else ''}{' in the forward' if backward and where else ''}. {origin}")
    return f"{text} Look at the operands there; oar.set_flags({{'check_nan_inf': False}}) ends the check."
