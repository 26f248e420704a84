#include "oar/ir/print.h"

#include <cmath>

#include "oar/base/string_util.h"
#include "oar/ir/bind.h"
#include "oar/ir/region.h"
#include "oar/ir/text_reader.h"

namespace oar {
namespace {

// A floating number always shows that it is one: 2.0 and 2 are different attributes.
std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string text = format("{}", v);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

// Functions of users may be called <lambda>, and their values anything.
std::string name_text(const std::string& name) { return is_plain_name(name) ? name : quoted(name); }

std::string label_text(const Program& program, ValueId id) {
  const std::string label = program.label(id);
  const bool named = id >= 0 && !program.values[static_cast<size_t>(id)].name.empty();
  return named ? "%" + name_text(label.substr(1)) : label;
}

std::string attribute_text(const Parameter& p, const Value& v) {
  if (v.tag == OAR_TAG_INT && !can_be_size(p, v)) return std::to_string(v.integer);
  switch (v.tag) {
    case OAR_TAG_DOUBLE:
      return float_text(v.as_double());
    case OAR_TAG_COMPLEX:
      return format("({}, {}j)", float_text(v.doubles[0]), float_text(v.doubles[1]));
    case OAR_TAG_STRING:
      return quoted(v.as_string());
    case OAR_TAG_DOUBLES: {
      std::vector<std::string> items;
      for (double d : v.as_doubles()) items.push_back(float_text(d));
      return "[" + join(items, ", ") + "]";
    }
    default:
      return v.str();
  }
}

std::string operand_text(const Program& program, const Operand& operand) {
  if (operand.kind == Operand::One)
    return operand.ids.empty() ? "None" : label_text(program, operand.ids[0]);
  std::vector<std::string> items;
  for (ValueId id : operand.ids) items.push_back(label_text(program, id));
  return "[" + join(items, ", ") + "]";
}

template <class T, class F>
std::string list_text(const std::vector<T>& values, F&& text) {
  if (values.size() == 1) return text(values[0]);
  std::vector<std::string> items;
  for (const T& v : values) items.push_back(text(v));
  return "[" + join(items, ", ") + "]";
}

std::string constant_text(const Tensor& t, int64_t largest) {
  if (!t.defined() || !t.is_dense() || !t.device().is_cpu() || t->numel > largest) return "";
  std::string text;
  if (is_complex(t.dtype()))
    text = list_text(t.to_vector<std::complex<double>>(), [](std::complex<double> v) {
      return format("({}, {}j)", float_text(v.real()), float_text(v.imag()));
    });
  else if (is_floating(t.dtype()) || t.dtype() == DType::Float4E2M1FN)
    text = list_text(t.to_vector<double>(), float_text);
  else
    text = list_text(t.to_vector<int64_t>(), [](int64_t v) { return std::to_string(v); });
  return " = " + text;
}

std::string typed(const Program& program, ValueId id) {
  return label_text(program, id) + ": " + program.type_of(id).str();
}

std::string sizes_text(const Program& program) {
  std::vector<std::string> sizes;
  for (Dim symbol : program.symbols) {
    const int64_t least = least_value_of(symbol);
    sizes.push_back(format("{} ~ {}", symbol.str(), symbol.hint()));
    if (least > 0) sizes.back() += format(" >= {}", least);
  }
  return sizes.empty() ? "" : "<" + join(sizes, ", ") + ">";
}

// A region's sizes are those of the outer program.
std::string header(const Program& program, bool region) {
  std::vector<std::string> parameters, results;
  for (ValueId id : program.inputs) parameters.push_back(typed(program, id));
  for (const State& s : program.states) parameters.push_back("state " + typed(program, s.value));
  for (ValueId id : program.outputs) results.push_back(typed(program, id));
  return format("program {}{}({}) -> ({}) {{\n", name_text(program.name),
                region ? std::string() : sizes_text(program), join(parameters, ", "),
                join(results, ", "));
}

std::string program_text(const Program& program, const PrintOptions& options,
                         const std::string& indent, bool region);
std::string instruction_text(const Program& program, const Instruction& instruction,
                             const PrintOptions& options, const std::string& indent);

// Regions are on separate lines, indented by their nesting.
std::string regions_text(const Value& v, const PrintOptions& options, const std::string& indent) {
  std::vector<std::string> items;
  for_each_program(Args(&v, 1), [&](const Closure& c) {
    items.push_back(indent + "  " + program_text(program_of(c), options, indent + "  ", true));
  });
  const bool list = v.tag == kProgramsTag;
  return format("{}\n{}{}", list ? "[" : "", join(items, ",\n"),
                list ? "\n" + indent + "]" : std::string());
}

std::string attributes_text(const Instruction& instruction, const PrintOptions& options,
                            const std::string& indent) {
  std::vector<std::string> items;
  const std::vector<Parameter>& parameters = instruction.op->schema().parameters;
  for (size_t i = 0; i < instruction.operands.size() && i < parameters.size(); ++i)
    if (instruction.operands[i].kind == Operand::Attribute &&
        !(parameters[i].is_internal() && instruction.attributes[i].is_none()))
      items.push_back(parameters[i].name + "=" +
                      (parameters[i].type == ArgType::Program
                           ? regions_text(instruction.attributes[i], options, indent)
                           : attribute_text(parameters[i], instruction.attributes[i])));
  return join(items, ", ");
}

std::string instruction_text(const Program& program, const Instruction& instruction,
                             const PrintOptions& options, const std::string& indent) {
  std::vector<std::string> results, types, arguments;
  for (ValueId id : instruction.results) {
    results.push_back(label_text(program, id));
    types.push_back(program.type_of(id).str());
  }
  for (const Operand& operand : instruction.operands)
    if (operand.kind != Operand::Attribute) arguments.push_back(operand_text(program, operand));
  if (std::string attributes = attributes_text(instruction, options, indent); !attributes.empty())
    arguments.push_back(std::move(attributes));
  std::string op = instruction.op->name();
  if (const uint32_t version = instruction.op->schema().version; version != 1)
    op += format("@{}", version);
  return format("{} = {}({}) : {}", join(results, ", "), op, join(arguments, ", "),
                join(types, ", "));
}

std::string program_text(const Program& program, const PrintOptions& options,
                         const std::string& indent, bool region) {
  const std::string inside = indent + "  ";
  std::string text = header(program, region);
  for (const DimAssumption& a : program.assumptions)
    text += format("{}assume {}\n", inside, to_string(a));
  for (const Constant& c : program.constants)
    text += format("{}const {}{}\n", inside, typed(program, c.value),
                   constant_text(c.tensor, options.largest_constant));
  for (const Instruction& instruction : program.body.instructions) {
    text += inside + instruction_text(program, instruction, options, inside);
    if (options.locations && !instruction.location.empty()) text += "  # " + instruction.location;
    text += '\n';
  }
  for (const State& s : program.states)
    if (s.written != kNoValue)
      text += format("{}write {} = {}\n", inside, label_text(program, s.value),
                     label_text(program, s.written));
  return text + indent + "}";
}

}  // namespace

std::string attributes_text(const Instruction& instruction) {
  return attributes_text(instruction, {}, {});
}

std::string to_text(const Program& program, const Instruction& instruction) {
  return instruction_text(program, instruction, {}, {});
}

std::string to_text(const Program& program, const PrintOptions& options) {
  return program_text(program, options, {}, false) + "\n";
}

}  // namespace oar
