#include "oar/interop/program_call.h"

#include <algorithm>
#include <set>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/compiler/deploy.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"

namespace oar {
namespace {

using CanBeWritten = std::function<bool(const ProgramCall&)>;

void collect_unwritable(const Program& program, const CanBeWritten& can_be_written,
                        std::set<std::string>& missing) {
  for (const Instruction& call : program.body.instructions) {
    if (!can_be_written(ProgramCall(program, call))) missing.insert(call.op->name());
    for_each_program(call.attributes.args(), [&](const Closure& inner) {
      collect_unwritable(program_of(inner), can_be_written, missing);
    });
  }
}

}  // namespace

size_t ProgramCall::place(std::string_view name) const {
  const auto& parameters = call.op->schema().parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name) return i;
  fail(ErrorKind::Internal, "{} has no parameter {}.", call.op->name(), name);
}

bool ProgramCall::has(std::string_view name) const { return value_of(name) != kNoValue; }

ValueId ProgramCall::value_of(std::string_view name) const {
  const Operand& operand = call.operands[place(name)];
  return operand.kind == Operand::Attribute || operand.ids.empty() ? kNoValue : operand.ids[0];
}

std::vector<ValueId> ProgramCall::values(std::string_view name) const {
  const Operand& operand = call.operands[place(name)];
  return {operand.ids.begin(), operand.ids.end()};
}

const ValueType& ProgramCall::type(std::string_view name) const {
  return program.type_of(call.operands[place(name)].ids[0]);
}

const Instruction* ProgramCall::maker_of(ValueId id) const {
  for (const Instruction& made : program.body.instructions)
    if (std::find(made.results.begin(), made.results.end(), id) != made.results.end()) return &made;
  return nullptr;
}

bool ProgramCall::is_read(ValueId id) const {
  bool found =
      std::find(program.outputs.begin(), program.outputs.end(), id) != program.outputs.end();
  for (const Instruction& reader : program.body.instructions)
    for_each_operand(reader, [&](ValueId operand) { found |= operand == id; });
  return found;
}

const Value& ProgramCall::value(std::string_view name) const {
  return call.attributes[place(name)];
}

double ProgramCall::number(std::string_view name) const {
  const Value& v = value(name);
  return v.tag == OAR_TAG_DOUBLE ? v.as_double() : v.as_scalar().to_double();
}

std::vector<int64_t> ProgramCall::list(std::string_view name) const {
  const Ints ints = value(name).as_ints();
  return {ints.begin(), ints.end()};
}

std::vector<Dim> ProgramCall::sizes(std::string_view name) const {
  const Dims dims = value(name).as_dim_list();
  return {dims.begin(), dims.end()};
}

bool ProgramCall::are_known(std::string_view name) const {
  const std::vector<Dim> dims = sizes(name);
  return std::all_of(dims.begin(), dims.end(), [](Dim d) { return d.is_known(); });
}

int64_t ProgramCall::axis(std::string_view name, std::string_view of) const {
  const int64_t given = integer(name);
  return given < 0 ? given + rank(of) : given;
}

Cut cut_of(const ProgramCall& c) {
  Cut cut;
  const std::vector<int64_t> index = c.list("index");
  const Shape& shape = c.type("x").shape;
  int64_t axis = 0, result = 0, named = 0;
  for (size_t i = 0; i < index.size(); i += 4)
    named += index[i] == kSliceItem || index[i] == kIntegerItem;
  for (size_t i = 0; i < index.size(); i += 4) {
    const Dim start = Dim::from_word(index[i + 1]), stop = Dim::from_word(index[i + 2]);
    if (index[i] == kNewAxisItem) cut.added.push_back(result++);
    if (index[i] == kEllipsisItem) {
      axis += c.rank("x") - named;
      result += c.rank("x") - named;
    }
    if (index[i] == kIntegerItem) {
      const Dim size = shape[static_cast<size_t>(axis)];
      const bool is_last = start == size - 1 || start == Dim(-1);
      cut.axes.push_back(axis);
      cut.starts.push_back(is_last ? Dim(-1) : start);
      cut.ends.push_back(is_last ? Dim(INT64_MAX) : start + 1);
      cut.steps.push_back(1);
      cut.dropped.push_back(axis++);
    }
    if (index[i] == kSliceItem) {
      const int64_t step = index[i + 3];
      if (!(start == Dim(0) && stop == Dim(kOpenHigh) && step == 1)) {
        cut.axes.push_back(axis);
        cut.starts.push_back(start);
        cut.ends.push_back(stop == Dim(kOpenLow) ? Dim(kOpenLow) : stop);
        cut.steps.push_back(step);
      }
      ++axis;
      ++result;
    }
  }
  return cut;
}

bool reads_last_cell(const ProgramCall& c) {
  const ValueId cells = c.call.results[1];
  const Dim steps = c.result_type(1).shape[0], last = c.flag("reverse") ? Dim(0) : steps - Dim(1);
  const auto& outputs = c.program.outputs;
  if (std::find(outputs.begin(), outputs.end(), cells) != outputs.end()) return false;
  for (const Instruction& reader : c.program.body.instructions)
    for (const Operand& operand : reader.operands) {
      if (std::find(operand.ids.begin(), operand.ids.end(), cells) == operand.ids.end()) continue;
      if (reader.op != &get_op("slice_view")) return false;
      const std::vector<Dim> index = ProgramCall(c.program, reader).sizes("index");
      if (index.size() < 2 || index[0] != Dim(kIntegerItem)) return false;
      if (index[1] != last && !(last != Dim(0) && index[1] == Dim(-1))) return false;
    }
  return true;
}

Program for_writing(const Program& program, std::string_view format,
                    const CanBeWritten& can_be_written) {
  for (const State& s : program.states)
    user_check(
        s.written == kNoValue, ErrorKind::Unsupported,
        "the program writes '{}' when it runs, which a model of {} cannot.\nhint: Export a layer after eval().",
        program.label(s.value), format);
  Program made =
      expanded_until(for_inference(program), [&](const Program& inner, const Instruction& call) {
        return can_be_written(ProgramCall(inner, call));
      });
  put_channels_first(made);
  std::set<std::string> missing;
  collect_unwritable(made, can_be_written, missing);
  user_check(missing.empty(), ErrorKind::Unsupported,
             "the program has ops that {} has no counterpart for: {}.", format,
             join(std::vector<std::string>(missing.begin(), missing.end()), ", "));
  return made;
}

}  // namespace oar
