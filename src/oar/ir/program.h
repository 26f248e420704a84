// A program: what a captured function computes, as values that are assigned once.
//
// It has everything that a run needs: inputs, the tensors it reads (constants, states), the
// instructions in order, what it returns and what it writes back. Nothing in a program writes in
// place; the one effect is the write-back of states at the end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/timeline.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/sharding/placement.h"
#include "oar/tensor/closure.h"

namespace OAR_API oar {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

// What is known about a value before a run.
struct ValueType {
  DType dtype = DType::Float32;
  Shape shape;  // sizes may be symbolic
  Device device;
  std::shared_ptr<const Placement> placement;  // none: on one device

  std::string str() const;  // "float32[B, 4]"
  bool operator==(const ValueType& other) const {
    const bool placed_alike = placement == other.placement ||
                              (placement && other.placement && *placement == *other.placement);
    return dtype == other.dtype && shape == other.shape && device == other.device && placed_alike;
  }
};

struct ProgramValue {
  ValueType type;
  std::string name;  // empty: its number is its name
};

// The argument for one parameter of the op's schema.
struct Operand {
  enum Kind : uint8_t { Attribute, One, List };
  Kind kind = Attribute;
  // One: a single id. List: one each, kNoValue where the list has a gap. Attribute: empty.
  SmallVector<ValueId, 2> ids;
};

// One call of an op. Copies are deep.
struct Instruction {
  Instruction() = default;
  Instruction(const Instruction& other);
  Instruction(Instruction&&) = default;
  Instruction& operator=(const Instruction& other);
  Instruction& operator=(Instruction&&) = default;

  const Op* op = nullptr;
  std::vector<Operand> operands;  // one per parameter
  Frame attributes;               // one per parameter; None for tensors
  std::vector<ValueId> results;
  std::string location;          // the line of the user's code; may be empty
  LayerPath layer = 0;           // the layer that called it, for profiles and errors
  const char* called = nullptr;  // the user's function, of which the op may be a part; static
};

// Instructions in order. Ops with regions have programs of their own as attributes (ir/region.h).
struct Block {
  std::vector<Instruction> instructions;
};

// A tensor outside the program that it reads and never writes.
struct Constant {
  ValueId value = kNoValue;
  Tensor tensor;
};

// A tensor outside the program that persists between runs: a parameter, a buffer, a moment.
struct State {
  ValueId value = kNoValue;  // its content when a run starts
  Tensor tensor;
  ValueId written = kNoValue;  // what is written back when a run ends, if anything
};

class Program {
 public:
  std::string name = "main";
  std::vector<ProgramValue> values;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<State> states;
  std::vector<Constant> constants;
  Block body;
  std::vector<Dim> symbols;
  // What capture assumed about the symbols; a run checks it.
  std::vector<DimAssumption> assumptions;

  ValueId add_value(ValueType type, std::string name = {});
  const ValueType& type_of(ValueId id) const { return values[static_cast<size_t>(id)].type; }
  // "%x", or "%7" if the value has no name.
  std::string label(ValueId id) const;
  // The value of this name, or kNoValue.
  ValueId find(std::string_view name) const;
  // Numbers the values in the order of their definitions and drops undefined ones.
  void renumber();
  // Collects the symbols of all sizes, and renames those that share a name.
  void collect_symbols();
  // … without renaming: the names of a region belong to the outer program.
  void gather_symbols();
};

// Can the integer passed for the parameter be an open size? By the schema, an `int` can. A `Scalar` is a number,
// even if it is so far below zero that it looks like the word of a symbol.
inline bool can_be_size(const Parameter& p, const Value& v) {
  return v.tag == OAR_TAG_INT && p.type != ArgType::Scalar;
}
// Calls body(dim) for every size among a call's attributes; a region names its symbols.
void for_each_size(const Op& op, Args attributes, const std::function<void(Dim)>& body);
// Does an attribute depend on a symbol?
bool has_symbolic_attributes(const Op& op, Args attributes);
// A call's attributes with every symbolic dimension replaced.
template <class F>
Frame replace_dims(const Op& op, Args attributes, F&& size_of_dim) {
  Frame frame(attributes);
  SmallVector<int64_t, 8> words;
  for (size_t i = 0; i < attributes.size(); ++i) {
    const Value& v = attributes[i];
    if (can_be_size(op.schema().parameters[i], v) && Dim::from_word(v.integer).is_symbolic())
      frame.set(i, Value(Dim(size_of_dim(Dim::from_word(v.integer))).word()));
    if (holds_programs(v)) {
      std::vector<ClosurePtr> list;
      for_each_program(Args(&v, 1),
                       [&](const Closure& c) { list.push_back(c.resized(size_of_dim)); });
      frame.set(i,
                v.tag == kProgramTag ? program_value(list[0]) : program_value(ClosureList(list)));
    }
    if (v.tag != OAR_TAG_INTS) continue;
    words.clear();
    for (Dim d : v.as_dim_list())
      words.push_back(d.is_symbolic() ? Dim(size_of_dim(d)).word() : d.word());
    frame.set(i, Value(Ints(words.data(), words.size())));
  }
  return frame;
}

// The arguments of a call of the instruction, with tensor_of(parameter, value) as its operands.
template <class F>
Frame with_operands(Frame attributes, const Instruction& instruction, F&& tensor_of) {
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == Operand::One && operand.ids[0] != kNoValue)
      attributes.set_tensor(i, tensor_of(i, operand.ids[0]));
    if (operand.kind != Operand::List) continue;
    std::vector<Tensor> list;
    for (ValueId id : operand.ids) list.push_back(id == kNoValue ? Tensor() : tensor_of(i, id));
    attributes.set_tensors(i, std::move(list));
  }
  return attributes;
}

// The program at these sizes: every dimension replaced, no assumptions left.
Program specialised(const Program& program, const std::function<Dim(Dim)>& size_of_dim);

// … where some may stay open, with the assumptions about those.
Program with_sizes(const Program& program, const std::function<Dim(Dim)>& size_of_dim);

// Does the op write one of its arguments?
bool writes_arguments(const Op& op);
// An op that returns only what it writes, such as an optimiser's update. As an instruction it reads
// its operands like any other, and its results are their new values, in the order of the parameters.
// Only the executor decides whether they share memory.
bool is_update(const Op& op);
// The arguments that a call of it has written.
Outputs written_arguments(const Op& op, Args args);
// Calls body(id) for every value that an update replaces.
template <class F>
void for_each_updated(const Instruction& update, F&& body) {
  for (size_t i = 0; i < update.operands.size(); ++i)
    if (update.op->schema().parameters[i].written)
      for (ValueId id : update.operands[i].ids)
        if (id != kNoValue) body(id);
}

// Calls body(id) for every value that the instruction reads.
template <class F>
void for_each_operand(const Instruction& instruction, F&& body) {
  for (const Operand& operand : instruction.operands)
    for (ValueId id : operand.ids)
      if (id != kNoValue) body(id);
}

std::string to_string(const DimAssumption& assumption);

}  // namespace oar
