// Runs the code of an archive: tensors go to the machine, all else is decided at once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oar/interop/pytorch/machine.h"
#include "oar/interop/pytorch/torchscript/archive.h"

namespace oar::pytorch {

class Interpreter {
 public:
  Interpreter(const Archive& archive, std::vector<Value> constants, Machine& machine);

  // The method of an object; the arguments may have names.
  Value call_method(const Value& object, std::string_view name, std::vector<Argument> arguments);

 private:
  struct Frame {
    const std::string& path;
    std::map<std::string, Value, std::less<>> variables;
    Value result;
    int line = 0;
  };
  enum class After : uint8_t { Goes, Leaves, Repeats, Returns };

  struct Nested;

  Value call_function(const Function& function, std::vector<Argument> arguments);
  void bind(const Function& function, std::vector<Argument> arguments, Frame& frame);

  After run(const std::vector<Statement>& body, Frame& frame);
  After run_one(const Statement& s, Frame& frame);
  After run_while(const Statement& s, Frame& frame);
  After run_for(const Statement& s, Frame& frame);
  After run_with(const Statement& s, Frame& frame);
  void assign(const Statement& s, Frame& frame);
  void assign_to(const Expression& target, Value value, Frame& frame);
  std::vector<Value> unpacked(const Value& value, size_t count, Frame& frame);

  Value value_of(const Expression& e, Frame& frame);
  Value attribute_of(const Expression& e, Frame& frame);
  Value attribute(const Value& object, const std::string& name, Frame& frame);
  Value item_of(const Expression& e, Frame& frame);
  Value dictionary(const Expression& e, Frame& frame);
  Value listed(const Expression& e, Value::Kind kind, Frame& frame);
  bool is_true(const Value& value, Frame& frame);

  Value call_of(const Expression& e, Frame& frame);
  Value call_builtin(const std::string& name, const Expression& e, Frame& frame);
  Value call_op(const std::string& name, const Expression& e, Frame& frame);
  Value call_named(const std::string& name, std::vector<Argument> arguments, Frame& frame);
  Value new_object(const std::string& type) const;
  std::vector<Argument> arguments_of(const Expression& e, Frame& frame, size_t skipped = 0);
  Value op(const std::string& name, const std::vector<Argument>& arguments, Frame& frame);
  Value annotated(const Type& type, Value value, Frame& frame);
  bool is_instance(const Value& value, const Type& type) const;

  [[noreturn]] void refuse(const Frame& frame, std::string_view what) const;
  [[noreturn]] void refuse_op(const std::string& name, const Frame& frame) const;

  const Archive& archive_;
  Machine& machine_;
  std::vector<Value> constants_;
  int depth_ = 0, calls_ = 0;
  int64_t steps_left_;
};

// Ops that code calls, as the tables have them: "relu" for torch.relu and ops.aten.relu, "prim.dtype" for ops.prim.dtype; "" for what
// is no op.
std::string op_name(const std::string& dotted);
// Those that no table has, in code that every run of a function goes through, with the number of their calls.
std::map<std::string, int> unknown_ops_on_path(const Archive& archive, const Function& forward);
// The same of all code, which may have branches that are never taken.
std::vector<std::string> unknown_ops(const Archive& archive);

}  // namespace oar::pytorch
