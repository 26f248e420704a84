#!/usr/bin/env python3
"""Checks that code outside the op families does not compare op names, but asks the op's record.

Counts, per file of `src/oar` and `python/bindings`, each place that compares a string with the name of an op (`op->name() == "conv"`,
`made_by(value, "reshape")`, a table `{"relu", rule}` or `{"sum", "mean"}`), a part of a name (`starts_with`, `find`) or a
look-up by one (`costs.at(op.name())`). `tools/data/name_comparisons.txt` lists how
many each file may still have; that list only shrinks. An op that was found by name and compared by address counts too
(`call.op == &get_op("cast")`); building a call of it compares nothing.

    tools/check_names.py             fails when a file has more than it may
    tools/check_names.py --update    lowers the list to what is left; it never raises a number
    tools/check_names.py --list      shows every place
"""

from __future__ import annotations

import argparse
import re
import sys

from check_common import ROOT, finish, project_files

sys.path.insert(0, str(ROOT / "tools/generate"))
import schema  # noqa: E402

ALLOWED = ROOT / "tools/data/name_comparisons.txt"
CHECKED = ("src/oar/", "python/bindings/")
# Families define ops. Kernels of a backend say which op they compute, writers of other formats what an op is called there.
# The folders below ops/ know no op, and pipeline.cpp lists passes. The registry finds ops by name; scalar.cpp lists the
# functions of scalar bodies. Importers have tables of foreign ops, of which some have the names of Oar's. Two files of the bindings
# list Python's functions and operators by name.
EXEMPT = ("src/oar/ops/families/", "src/oar/interop/", "src/oar/backend/cpu/", "src/oar/base/", "src/oar/tensor/", "src/oar/device/",
          "src/oar/compiler/passes/pipeline.cpp", "src/oar/ops/core/registry.cpp", "src/oar/ops/core/scalar.cpp",
          "python/bindings/control.cpp", "python/bindings/tensor_type.cpp")

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = r'"(\w+)"'
# What holds the name of an op: op.name(), call.op->name(), and variables that are set to it or called so.
OP_NAME = r"(?:[\w.>-]*\bop|\bop_\w+|\brules\w*(?:\([^()]*\))?)\s*(?:\.|->)\s*name\(\)"
COMPARED = re.compile(rf"[=!]=\s*{STRING}|{STRING}\s*[=!]=")
NAMES = r"(?:\bname\(\)\)?|\bname|\bop|\bop_name|\bcalled)"
# Functions whose string argument is compared with the name of an op.
ASKED = re.compile(rf"\b(?:made_by|other_operand|readers_of_op|is_op)\([^;{{}}\"]*{STRING}|\bcontains\({STRING}")
# Parts of a name: name().starts_with("conv"), name.find(word), switch (hash(name)); and tables of names: by_name[op.name()].
PARTS = r"\s*\.\s*(?:starts_with|ends_with|find|rfind|find_first_of|contains|compare|substr|back|front)\("
LOOKED_UP = r"(?:\.\s*(?:find|contains|count|at)\(|\[)\s*(?:std::string(?:_view)?\()?\s*"
# Ops found by name: in a comparison, in a list, or kept in a variable that is compared.
FOUND = re.compile(rf"[=!]=\s*&\s*get_op\({STRING}\)|&\s*get_op\({STRING}\)\s*[=!]=|"
                   rf"[{{,]\s*&\s*get_op\({STRING}\)(?=\s*[,}}])")
KEPT = re.compile(rf"[&*]\s*(?:const\s+)?(\w+)\s*=\s*&?\s*get_op\({STRING}\)")
# A name kept as text, by itself or of an op.
LITERAL = re.compile(rf"(?:string_view|string|char\s*\*|auto)\s*&?\s*(?:const\s+)?(\w+)(?:\[\])?\s*=\s*{STRING}\s*;")
ALIAS = re.compile(rf"(\w+)\s*=\s*(?:std::string(?:_view)?\()?\s*{OP_NAME}\)?\s*[;,]")
# A row of a table starts with a name; a list holds nothing but names.
ROW = re.compile(rf"[{{,]\s*\{{\s*{STRING}\s*,")
LIST = re.compile(r"\{((?:\s*\"\w+\"\s*,?)+)\}")
ANY = "*"  # no name in particular


def strings_of(match: re.Match) -> list[tuple[str, int]]:
    return [(text, match.start(number)) for number, text in enumerate(match.groups(), 1) if text]


def compared_in(text: str) -> set[tuple[int, str]]:
    """(place, name) of comparisons by ==, by functions, and of rows and lists of names."""
    found = set()
    for match in COMPARED.finditer(text):
        # Op names are words such as "max" and "equal" too: what is compared must be the name of an op.
        before = text[max(0, match.start() - 60):match.start()]
        if match.group(2) or re.search(NAMES + r"\s*$", before):
            found.update((at, name) for name, at in strings_of(match))
    for pattern in (ASKED, ROW, FOUND):
        for match in pattern.finditer(text):
            found.update((at, name) for name, at in strings_of(match))
    return found


def kept_in(text: str) -> set[tuple[int, str]]:
    """… of ops and names that are kept in a variable first."""
    found = set()
    for kept in KEPT.finditer(text):
        word = rf"&?\s*\b{kept.group(1)}\b"
        for match in re.finditer(rf"[=!]=\s*{word}(?!\s*(?:\.|->|\())|&\s*{kept.group(1)}\s*[=!]=", text):
            found.add((match.start(), kept.group(2)))
    for kept in LITERAL.finditer(text):
        word = rf"\b{kept.group(1)}\b"
        for match in re.finditer(rf"name(?:\(\))?\s*[=!]=\s*{word}|{word}\s*[=!]=[^;&|]*name\b", text):
            found.add((match.start(), kept.group(2)))
    return found


def parts_in(text: str) -> set[tuple[int, str]]:
    """… of parts of names and of look-ups by name; whose name it is is found elsewhere."""
    holders = [OP_NAME] + [rf"\b{match.group(1)}\b" for match in ALIAS.finditer(text)]
    found = set()
    for holder in holders:
        for pattern in (holder + PARTS, LOOKED_UP + holder, rf"switch\s*\([^;{{}}]*{holder}"):
            found.update((match.start(), ANY) for match in re.finditer(pattern, text))
    return found


def comparisons(text: str, names: set[str]) -> list[tuple[int, str]]:
    """(line, name) of each place of a source that compares with the name of an op."""
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    found = compared_in(text) | kept_in(text) | parts_in(text)
    for match in LIST.finditer(text):
        inside = [(word, match.start(1) + text[match.start(1):match.end(1)].index(f'"{word}"'))
                  for word in re.findall(r'"(\w+)"', match.group(1))]
        if len(inside) > 1 and all(word in names for word, _ in inside):
            found.update((at, name) for name, at in inside)
    return sorted((text.count("\n", 0, at) + 1, name) for at, name in found if name in names or name == ANY)


def allowed() -> dict[str, int]:
    lines = [line for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
    return {path: int(count) for count, path in (line.split() for line in lines)}


def write_allowed(counts: dict[str, int]) -> None:
    head = [line for line in ALLOWED.read_text().splitlines() if line.startswith("#")]
    rows = [f"{count:3d} {path}" for path, count in sorted(counts.items()) if count]
    ALLOWED.write_text("\n".join(head + rows) + "\n")


def self_test() -> None:
    names = {"conv", "relu", "sum", "mean", "max", "reshape"}

    def count(text: str) -> int:
        return len(comparisons(text, names))

    assert count('if (op->name() == "conv") return; if ("relu" != op.name()) return;') == 2
    assert count('return name == "conv" || name == "relu";') == 2
    assert count('if (c.made_by(operand(call, 0), "reshape")) return;') == 1
    assert count('const Rule rules[] = {{"relu", once},\n {"sum", twice}};') == 2
    assert count('constexpr std::string_view kOnAxes[] = {"sum", "mean"};') == 2
    assert count('static const Op& op = get_op("reshape");  // name == "conv"') == 0
    assert count('static const Op& view = get_op("reshape"), &all = get_op("sum"); return op == &view || op != &all;') == 2
    assert count('if (call.op == &get_op("sum")) return; Op* ops[] = {&get_op("max"), &get_op("conv")};') == 3
    assert count('call.op = &get_op("sum"); if (both.contains(key)) both[key] = call_op("max", a);') == 0
    assert count('if (word == "max") return Join::Max; attribute(call, "axis");') == 0
    assert count('names = {"sum", "whole"};') == 0
    assert comparisons('\n  name() == "conv"', names) == [(2, "conv")]
    # By parts, by tables, through variables.
    assert count('if (op.name().starts_with("conv") || call.op->name().ends_with("_grad")) return;') == 2
    assert count('for (auto word : kHeavy) if (op.name().find(word) != npos) return heavy;') == 1
    assert count('const std::string& name = call.op->name(); if (name.starts_with("lin")) return;') == 1
    assert count('if (kCheap.contains(op->name()) || kCosts.at(op.name()) > 1) return rules[call.op->name()];') == 3
    assert count('switch (hash_of(op.name())) { case 1: return; }') == 1
    assert count('if (std::string_view(op->name()) == "sum" || op.name().compare("max") == 0) return;') == 2
    assert count('constexpr std::string_view kSum = "sum"; return op.name() == kSum || kSum != name;') == 2
    assert count('static const Op& all = get_op("sum"); return &all == call.op;') == 1
    assert count('static const Op* all = &get_op("sum"); return call.op == all;') == 1
    assert count('if (&get_op("sum") == op) return; const std::map<std::string, int> t = {{"relu", 1}, {"sum", 2}};') == 3
    assert count('device.name().find("cpu"); names.at(file.name()); text.starts_with("conv"); op.names().find(x);') == 0
    assert count('fail("{} has no kernel", op.name()); OpScope scope(op.name().c_str()); kernels(op.name(), 1);') == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="lower the list of what is allowed")
    parser.add_argument("--list", action="store_true", help="show every place")
    options = parser.parse_args()
    self_test()

    families = schema.read_all(ROOT / "src/oar/ops/families", ROOT / "build/generated/host")
    names = {op.name for ops in families.values() for op in ops}
    limits, counts, failures = allowed(), {}, 0
    for path in project_files(".cpp", ".h", ".inc"):
        if not str(path).startswith(CHECKED) or str(path).startswith(EXEMPT):
            continue
        places = comparisons((ROOT / path).read_text(), names)
        if places:
            counts[str(path)] = len(places)
        too_many = len(places) > limits.get(str(path), 0)
        failures += too_many
        for line, name in places if too_many or options.list else ():
            whose = f', "{name}"' if name != ANY else ""
            print(f"{path}:{line}: compares the name of an op{whose}", file=sys.stderr)
        if too_many:
            print(f"{path}: {len(places)} comparisons with names of ops, {limits.get(str(path), 0)} allowed; ask the "
                  "op's record instead, and give it a field if it has none", file=sys.stderr)
    fewer = {p: min(n, counts.get(p, 0)) for p, n in limits.items()}
    if options.update:
        write_allowed(fewer)
    elif fewer != limits:
        print(f"names: {sum(limits.values()) - sum(fewer.values())} fewer than allowed; "
              "tools/check_names.py --update lowers the list")
    finish("names", failures, f"{sum(counts.values())} comparisons left in {len(counts)} files")


if __name__ == "__main__":
    main()
