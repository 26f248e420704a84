// Calls ops on tensors that are captured: what both kinds of files of PyTorch share.
#pragma once

#include <functional>
#include <optional>
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
  // What runs at once, as it depends on no input. In steps, everything does, and no program is made.
  enum Mode : uint8_t { FoldsAll, FoldsNumbers, FoldsNothing, Steps };

  explicit Machine(Mode mode) : mode_(mode) {
    if (mode != Steps) graph_.emplace();
  }

  bool steps() const { return mode_ == Steps; }

  Value input(const std::string& name, const Tensor& like);
  // A weight. One that the program writes itself is not `fixed`.
  Value constant(const std::string& name, const Tensor& tensor, bool fixed = true);
  // `op` is the name in the tables, `name` that of the node for errors.
  Value call(std::string_view op, const std::string& name, const std::vector<Argument>& arguments);
  // Writes a tensor of the caller, such as a buffer.
  void write(const std::string& name, const Value& target, const Value& value);
  Program finish(const std::vector<Value>& outputs);
  // The outputs as tensors, of numbers too.
  std::vector<Tensor> results(const std::vector<Value>& outputs);
  // Ops with a number of results that depends on tensors are an error then: with steps they are none.
  bool refuses_counts = false;

  Heap heap;

 private:
  Value apply(const Signature& signature, std::string_view op, const std::string& name,
              std::vector<Value> values, bool in_place);

  bool is_known(const Converter& converter, const std::vector<interop::Value>& tensors) const;
  Value number_as_tensor(const Value& number);

  const Mode mode_;
  std::optional<interop::GraphCapture> graph_;
};

// Runs `import` with constants folded, and again with fewer if that is not possible.
Program imported(const std::function<Program(Machine&)>& import);

}  // namespace oar::pytorch
