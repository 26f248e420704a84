"""Writes the C++ side: typed argument structs, vjp structs and functions, one header per family."""

from __future__ import annotations

from schema import Op, Parameter

# How a parameter is stored in the argument struct, read from a Value, and passed to the function.
SCALARS = {
    "bool": ("bool", "as_bool()"),
    "int": ("int64_t", "as_int()"),
    "float": ("double", "as_double()"),
    "Scalar": ("Scalar", "as_scalar()"),
    "str": ("std::string_view", "as_string()"),
    "dtype": ("DType", "as_dtype()"),
}
KEYWORDS = {"default", "switch", "case", "new", "std", "delete", "operator", "int", "float", "bool", "double"}


def identifier(name: str) -> str:
    return name + "_" if name in KEYWORDS else name


def field(p: Parameter, i: int) -> tuple[str, str]:
    """(type, initialiser) of an argument struct's member."""
    v = f"a[{i}]"
    if p.type == "Tensor":
        if not p.list:
            return "const Tensor&", f"{v}.as_tensor()"
        return "TensorList", f"{v}.is_none() ? TensorList() : {v}.as_tensors()"
    if p.type == "program":
        return ("ClosureList", f"as_programs({v})") if p.list else ("const Closure&", f"as_program({v})")
    if p.type == "shape":
        base, read = "Dims", "as_dim_list()"
    elif p.list:
        base, read = ("Ints", "as_ints()") if p.type == "int" else ("std::span<const double>", "as_doubles()")
    else:
        base, read = SCALARS[p.type]
    if p.optional:
        return f"std::optional<{base}>", f"{v}.is_none() ? std::nullopt : std::optional<{base}>({v}.{read})"
    return base, f"{v}.{read}"


def parameter_type(p: Parameter) -> str:
    if p.type == "Tensor":
        return "const TensorArgs&" if p.list else "const Tensor&"
    if p.type == "program":
        return "ClosureList" if p.list else "const ClosurePtr&"
    if p.type == "shape" or (p.list and p.type == "int"):
        base = "DimArgs" if p.type == "shape" else "IntArgs"
    elif p.list:
        base = "DoubleArgs"
    else:
        base = SCALARS[p.type][0]
    if p.optional:
        return f"const std::optional<{base}>&"
    return f"const {base}&" if base in ("DimArgs", "IntArgs", "DoubleArgs", "Scalar") else base


def default_text(p: Parameter) -> str:
    d = p.default
    if d is None:
        return ""
    if d == "None":
        return " = {}" if p.type == "Tensor" else " = std::nullopt"
    if d in ("True", "False"):
        return f" = {d.lower()}"
    if d[0] in "'\"":
        return f' = "{d[1:-1]}"'
    if p.type == "dtype":
        names = {"float32": "Float32", "float64": "Float64", "int64": "Int64", "int32": "Int32", "bool": "Bool"}
        return f" = DType::{names[d]}"
    if d.startswith("["):
        return f" = {{{d[1:-1]}}}"
    if p.type == "shape" or p.list:
        return f" = {{{d}}}"
    if p.type == "int":
        return f" = int64_t{{{d}}}" if p.optional else f" = {d}"
    if p.type == "float" and p.optional:
        return f" = double{{{d}}}"
    return f" = {d}"


def return_type(op: Op) -> str:
    if len(op.results) == 1:
        return "std::vector<Tensor>" if op.results[0].list else "Tensor"
    return "std::tuple<" + ", ".join("Tensor" for _ in op.results) + ">"


def args_struct(op: Op) -> str:
    members, inits = [], []
    for i, p in enumerate(op.parameters):
        kind, init = field(p, i)
        # C++ forbids a member with its class's name: scale(x, scale) has the member scale_.
        member = p.name + "_" if p.name == op.name else identifier(p.name)
        members.append(f"  {kind} {member};")
        inits.append(f"{member}({init})")
    name = identifier(op.name)
    separator = " : " if inits else " "
    return "\n".join([f"struct {name} {{",
                      f"  explicit {name}([[maybe_unused]] const Args& a){separator}{', '.join(inits)} {{}}",
                      *members, "};"])


def vjp_struct(op: Op) -> str:
    name = identifier(op.name)
    taken = {p.name for p in op.parameters}
    members, inits = [], []
    single = len(op.results) == 1
    if single and op.results[0].list:
        members = ["  TensorList out;", "  TensorList grad;"]
        inits = ["out(c.outputs)", "grad(c.cotangents)"]
    else:
        for i, r in enumerate(op.results):
            result = r.name if r.name not in taken else r.name + "_out"
            gradient = "grad" if single else f"grad_{r.name}"
            members += [f"  const Tensor& {identifier(result)};", f"  const Tensor& {gradient};"]
            inits += [f"{identifier(result)}(c.outputs[{i}])", f"{gradient}(c.cotangents[{i}])"]
    return "\n".join([f"struct {name} : args::{name} {{",
                      f"  explicit {name}(const VjpCall& c) : args::{name}(c.args), {', '.join(inits)}, call(c) {{}}",
                      *members,
                      "  const VjpCall& call;",
                      "  bool needs(size_t i) const { return call.needs(i); }", "};"])


def signature(op: Op, with_defaults: bool) -> str:
    parts, seen_default = [], False
    # C++ wants defaults at the end; a schema may have a required parameter after an optional one.
    last_required = max([i for i, p in enumerate(op.parameters) if p.default is None], default=-1)
    for i, p in enumerate(op.parameters):
        default = default_text(p) if with_defaults and i > last_required else ""
        parts.append(f"{parameter_type(p)} {identifier(p.name)}{default}")
        seen_default |= bool(default)
    return f"{return_type(op)} {identifier(op.name)}({', '.join(parts)})"


def definition(op: Op) -> str:
    lines = [signature(op, False) + " {",
             f'  static constinit OpReference op__("{op.name}");']
    for p in op.parameters:
        if p.type == "Tensor" and not p.list and not p.optional:
            lines.append(f'  require_defined({identifier(p.name)}, "{op.name}", "{p.name}");')
    values = [identifier(p.name) if p.type != "Tensor" or not p.list else f"TensorList({identifier(p.name)})"
              for p in op.parameters]
    values = [f"program_value({v})" if p.type == "program" else f"Value({v})" for p, v in zip(op.parameters, values)]
    # Names with two underscores: a parameter may be called `values` or `op`.
    lines.append(f"  const Value values__[] = {{{', '.join(values) or 'Value()'}}};")
    lines.append(f"  Outputs r__ = op__(Args(values__, {len(values)}));")
    if len(op.results) == 1 and op.results[0].list:
        lines.append("  return {r__.begin(), r__.end()};")
    elif len(op.results) == 1:
        lines.append("  return std::move(r__[0]);")
    else:
        lines.append("  return {" + ", ".join(f"std::move(r__[{i}])" for i in range(len(op.results))) + "};")
    return "\n".join(lines + ["}"])


def header(family: str, ops: list[Op]) -> str:
    programs = any(p.type == "program" for op in ops for p in op.parameters)
    parts = [f"// Generated from src/oar/ops/families/{family}.cpp. Do not edit.", "#pragma once", "",
             '#include "oar/base/api.h"', '#include "oar/ops/core/call_args.h"', '#include "oar/ops/core/op_def.h"',
             *(['#include "oar/tensor/closure.h"'] if programs else []), "", "namespace OAR_API oar {", "namespace args {"]
    parts += [args_struct(op) for op in ops]
    parts += ["}  // namespace args", "namespace vjp {"]
    parts += [vjp_struct(op) for op in ops if not op.inplace_of]
    parts += ["}  // namespace vjp", ""]
    for op in ops:
        parts += [f"// {op.brief}", signature(op, True) + ";"]
    return "\n".join(parts + ["}  // namespace oar", ""])


def source(family: str, ops: list[Op]) -> str:
    parts = [f"// Generated from src/oar/ops/families/{family}.cpp. Do not edit.",
             f'#include "oar/ops/gen/{family}.h"', "", '#include "oar/ops/core/op_reference.h"', "", "namespace oar {"]
    parts += [definition(op) for op in ops]
    return "\n".join(parts + ["}  // namespace oar", ""])


def families_source(families: list[str]) -> str:
    lines = ["// Generated: the list of families. Do not edit.", '#include "oar/ops/core/families.h"', "",
             '#include "oar/ops/core/registry.h"', "", "namespace oar {"]
    lines += [f"std::span<const OpDef* const> {f}_family();" for f in families]
    lines.append("void register_families(Registry& registry) {")
    lines += [f'  registry.add_family("{f}", {f}_family());' for f in families]
    return "\n".join(lines + ["}", "}  // namespace oar", ""])


def all_header(families: dict[str, list[Op]]) -> str:
    lines = ["// Generated: every op. Do not edit.", "#pragma once", ""]
    return "\n".join(lines + [f'#include "oar/ops/gen/{f}.h"' for f in families] + [""])
