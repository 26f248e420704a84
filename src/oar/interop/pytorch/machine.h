// Calls ops on tensors that are captured: what both kinds of files of PyTorch share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/graph_model.h"
#include "oar/interop/pytorch/call.h"

namespace oar::pytorch {

// Thrown when a constant is written: then it has to be captured, with what was made of it.
struct WritesConstant {};

class Machine {
 public:
  // Without `folds` nothing runs before the program does.
  explicit Machine(bool folds) : folds_(folds) {}

  Value input(const std::string& name, const Tensor& like);
  // `op` is the name in the tables, `name` that of the node for errors.
  Value call(std::string_view op, const std::string& name, const std::vector<Argument>& arguments);
  // Writes a tensor of the caller, such as a buffer.
  void write(const std::string& name, const Value& target, const Value& value);
  Program finish(const std::vector<Value>& outputs);

  Heap heap;

 private:
  Value apply(const Signature& signature, std::string_view op, const std::string& name,
              std::vector<Value> values, bool in_place);

  const bool folds_;
  interop::GraphCapture graph_;
};

// Runs `import` with constants folded, and again without if that is not possible.
Program imported(const std::function<Program(Machine&)>& import);

}  // namespace oar::pytorch
