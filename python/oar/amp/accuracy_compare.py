"""Two runs side by side, from the reports of the tensor checker."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterable
from typing import Any
from xml.sax.saxutils import escape

from oar._lazy import np

__all__ = ["MixedPrecisionTensorInfo", "TensorInfo", "compare_accuracy", "merge_tensor_info_list", "parse_lines", "parse_log"]

_INTEGERS = {"numel": "numel", "num_inf": "has_inf", "num_nan": "has_nan", "num_zero": "num_zero"}
_NUMBERS = {"max": "max_value", "min": "min_value", "mean": "mean_value"}
_TEXTS = {"op": "op_type", "device": "device", "tensor": "tensor_name", "dtype": "dtype"}


class TensorInfo:
    """One line of a report.

    Examples:
        >>> from oar.amp.accuracy_compare import TensorInfo
        >>> TensorInfo().init_from_string('[PRECISION] in [device=cpu, op=add, tensor=x, dtype=fp32], numel=2').key()
        'add/x'
    """

    def __init__(self) -> None:
        self.device: str | None = None
        self.op_type: str | None = None
        self.tensor_name: str | None = None
        self.dtype: str | None = None
        self.numel: int | None = None
        self.max_value: float | None = None
        self.min_value: float | None = None
        self.mean_value: float | None = None
        self.has_inf: int | None = None
        self.has_nan: int | None = None
        self.num_zero: int | None = None

    def __str__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in (*_TEXTS.values(), *_INTEGERS.values(), *_NUMBERS.values()))
        return f"[TensorInfo] {fields}"

    def key(self) -> str:
        """What the reports of two runs have in common for one tensor."""
        return f"{self.op_type}/{self.tensor_name}"

    def init_from_string(self, line: str) -> TensorInfo:
        """Read a line that begins with ``[PRECISION]``."""
        for word in line.split():
            name, given, value = word.strip("[],").partition("=")
            if not given:
                continue
            if name in _TEXTS:
                setattr(self, _TEXTS[name], value)
            elif name in _INTEGERS:
                setattr(self, _INTEGERS[name], int(value))
            elif name in _NUMBERS:
                setattr(self, _NUMBERS[name], float(value))
        return self


class MixedPrecisionTensorInfo:
    """What both runs say about one tensor; either may be missing.

    Args:
        fp32_tensor_info: the line of the first run.
        fp16_tensor_info: the line of the other run.
        fp32_idx: how many tensors of this name came before.
        grad_scale: the scale of the loss in the other run.

    Examples:
        >>> from oar.amp.accuracy_compare import MixedPrecisionTensorInfo, TensorInfo
        >>> info = TensorInfo().init_from_string('[PRECISION] in [op=exp, tensor=x], numel=1, max=1e+06, min=1e+00, mean=1e+00')
        >>> MixedPrecisionTensorInfo(info, None).is_normal
        False
    """

    def __init__(self, fp32_tensor_info: TensorInfo | None, fp16_tensor_info: TensorInfo | None, fp32_idx: int = 0,
                 grad_scale: float = 1.0) -> None:
        self.full, self.half, self.index = fp32_tensor_info, fp16_tensor_info, fp32_idx
        first = fp16_tensor_info or fp32_tensor_info
        assert first is not None
        self.op_type, self.tensor_name, self.numel = first.op_type, first.tensor_name, first.numel
        scale = grad_scale if self.op_type is not None and self.op_type.endswith("_grad") else 1.0
        self.ratios = [self._ratio(name, scale) for name in _NUMBERS.values()]
        self.is_normal = self._all_representable(scale) and not (self.half and (self.half.has_inf or self.half.has_nan))

    def _ratio(self, name: str, scale: float) -> float | None:
        """The other run's number by the first one's; 1 where that is zero."""
        if self.full is None or self.half is None:
            return None
        below = getattr(self.full, name) * scale
        return getattr(self.half, name) / below if below else 1.0

    def _all_representable(self, scale: float) -> bool:
        limit = float(np.finfo(np.float16).max)
        values = [(info, factor) for info, factor in ((self.full, scale), (self.half, 1.0)) if info is not None]
        return all(abs(value * factor) <= limit for info, factor in values for value in (info.max_value, info.min_value)
                   if value is not None)

    def row(self) -> list[Any]:
        """A row of the table."""
        return [self.op_type, self.tensor_name, self.index, self.numel, 0 if self.is_normal else 1, *_columns(self.full),
                *_columns(self.half), *self.ratios]


_TITLES = ["op_type", "tensor_name", "index", "numel", "infinite",
           *(f"{run} {name}" for run in ("fp32", "fp16")
             for name in ("dtype", "max_value", "min_value", "mean_value", "num_zero", "num_inf", "num_nan")),
           *(f"fp16 / fp32 {name}" for name in ("max_value", "min_value", "mean_value"))]  # fmt: skip


def _columns(info: TensorInfo | None) -> list[Any]:
    if info is None:
        return [None] * 7
    return [info.dtype, info.max_value, info.min_value, info.mean_value, info.num_zero, info.has_inf or 0, info.has_nan or 0]


def parse_lines(lines: Iterable[str], specified_op_list: Iterable[str] | None = None) -> list[TensorInfo]:
    """The tensors that the lines of a report are about.

    Args:
        lines: lines of text; those that are not of a report are left out.
        specified_op_list: the ops to keep; None keeps all.

    Returns:
        a list of ``TensorInfo``.

    Examples:
        >>> from oar.amp.accuracy_compare import parse_lines
        >>> line = '[PRECISION] in [device=cpu, op=add, tensor=, dtype=fp32], numel=2, num_zero=0, max=2e+00, min=1e+00, mean=1.5e+00'
        >>> [(info.op_type, info.max_value) for info in parse_lines([line, 'something else'])]
        [('add', 2.0)]
    """
    wanted = None if specified_op_list is None else set(specified_op_list)
    found = [TensorInfo().init_from_string(line) for line in lines if "[PRECISION]" in line]
    return [info for info in found if wanted is None or info.op_type in wanted]


def parse_log(log_dir: str | None, filename: str | None, specified_op_list: Iterable[str] | None = None) -> list[TensorInfo] | None:
    """The tensors that a report in a file is about; None if there is no such file.

    Args:
        log_dir: the folder.
        filename: the file.
        specified_op_list: the ops to keep; None keeps all.

    Returns:
        a list of ``TensorInfo``, or None.

    Examples:
        >>> from oar.amp.accuracy_compare import parse_log
        >>> parse_log('no_such_folder', 'worker_cpu') is None
        True
    """
    if log_dir is None or filename is None or not os.path.exists(os.path.join(log_dir, filename)):
        return None
    with open(os.path.join(log_dir, filename), encoding="utf-8") as file:
        return parse_lines(file, specified_op_list)


def merge_tensor_info_list(
    fp32_tensor_info_list: list[TensorInfo] | None, fp16_tensor_info_list: list[TensorInfo] | None, grad_scale: float
) -> list[MixedPrecisionTensorInfo]:
    """The tensors of two runs, matched by op, name and number.

    Args:
        fp32_tensor_info_list: the first run.
        fp16_tensor_info_list: the other run. None: the first alone.
        grad_scale: the scale of the loss in the other run.

    Returns:
        a list in the order of the other run, or of the first if it is alone.

    Examples:
        >>> from oar.amp.accuracy_compare import merge_tensor_info_list, parse_lines
        >>> line = '[PRECISION] in [device=cpu, op=add, tensor=, dtype=fp32], numel=2, num_zero=0, max=2e+00, min=1e+00, mean=1.5e+00'
        >>> merge_tensor_info_list(parse_lines([line]), parse_lines([line]), 1.0)[0].ratios
        [1.0, 1.0, 1.0]
    """
    full = _numbered(fp32_tensor_info_list or [])
    if fp16_tensor_info_list is None:
        return [MixedPrecisionTensorInfo(info, None, number, grad_scale) for (_, number), info in full.items()]
    half = _numbered(fp16_tensor_info_list)
    return [MixedPrecisionTensorInfo(full.get(key), info, key[1], grad_scale) for key, info in half.items()]


def _numbered(infos: list[TensorInfo]) -> dict[tuple[str, int], TensorInfo]:
    seen: dict[str, int] = {}
    found = {}
    for info in infos:
        number = seen.get(info.key(), 0)
        seen[info.key()] = number + 1
        found[info.key(), number] = info
    return found


def compare_accuracy(dump_path: str, another_dump_path: str, output_filename: str, loss_scale: float = 1,
                     dump_all_tensors: bool = False) -> None:
    """What ``amp.debugging.compare_accuracy`` does.

    Args:
        dump_path: the folder of the first run.
        another_dump_path: the folder of the other run.
        output_filename: the table.
        loss_scale: the scale of the loss in the other run.
        dump_all_tensors: only False is supported.

    Examples:
        >>> import tempfile
        >>> from oar.amp.accuracy_compare import compare_accuracy
        >>> folder = tempfile.mkdtemp()
        >>> compare_accuracy(folder, folder, folder + '/table.csv')
    """
    if not os.path.isdir(dump_path):
        raise FileNotFoundError(f"[compare_accuracy] there is no folder {dump_path!r}. Pass the output_dir of a TensorCheckerConfig.")
    sheets = {}
    for name in sorted(name for name in os.listdir(dump_path) if "worker_" in name):
        merged = merge_tensor_info_list(parse_log(dump_path, name), parse_log(another_dump_path, name), loss_scale)
        sheets[name] = [info.row() for info in merged]
    if output_filename.endswith(".xlsx"):
        _write_workbook(output_filename, sheets)
    else:
        _write_csv(output_filename, sheets)


def _write_csv(path: str, sheets: dict[str, list[list[Any]]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["worker", *_TITLES])
        for name, rows in sheets.items():
            writer.writerows([name, *row] for row in rows)


# An Excel file is a ZIP archive of a few XML files.
_CONTENT_TYPES = """<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>
{parts}</Types>"""
_PART = ('<Override PartName="/xl/worksheets/sheet{n}.xml" '
         'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>\n')
_RELATIONS = """<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{entries}</Relationships>"""
_RELATION = '<Relationship Id="rId{n}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{target}"/>'
_WORKBOOK = """<?xml version="1.0" encoding="UTF-8"?>
<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
 xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>{sheets}</sheets></workbook>"""
_SHEET = """<?xml version="1.0" encoding="UTF-8"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>"""


def _write_workbook(path: str, sheets: dict[str, list[list[Any]]]) -> None:
    named = list(sheets.items()) or [("worker_cpu", [])]
    places = range(1, len(named) + 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _CONTENT_TYPES.format(parts="".join(_PART.format(n=n) for n in places)))
        archive.writestr("_rels/.rels", _RELATIONS.format(entries=_RELATION.format(n=1, kind="officeDocument", target="xl/workbook.xml")))
        entries = "".join(_RELATION.format(n=n, kind="worksheet", target=f"worksheets/sheet{n}.xml") for n in places)
        archive.writestr("xl/_rels/workbook.xml.rels", _RELATIONS.format(entries=entries))
        listed = "".join(f'<sheet name="{escape(name[:31])}" sheetId="{n}" r:id="rId{n}"/>' for n, (name, _) in enumerate(named, 1))
        archive.writestr("xl/workbook.xml", _WORKBOOK.format(sheets=listed))
        for n, (_, rows) in enumerate(named, 1):
            archive.writestr(f"xl/worksheets/sheet{n}.xml", _SHEET.format(rows="".join(_xml_row(row) for row in [_TITLES, *rows])))


def _xml_row(row: list[Any]) -> str:
    return f"<row>{''.join(_xml_cell(value) for value in row)}</row>"


def _xml_cell(value: Any) -> str:
    if isinstance(value, (int, float)) and np.isfinite(value):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape("" if value is None else str(value))}</t></is></c>'
