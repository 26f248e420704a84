// Runs programs, compiled for the sizes of each run.
#pragma once

#include "oar/base/api.h"
#include "oar/runtime/runner.h"

namespace OAR_API oar {

// Runs the passes for the device's kernels, then `expand`. All sizes of the program must be known.
void prepare_to_run(Program& program);

class Executor : public Runner {
 public:
  explicit Executor(Program program) : Runner(std::move(program), prepare_to_run) {}

  // As Runner's, but inside a capture or a transform the program's calls are replayed.
  std::vector<Tensor> run(TensorList inputs) const {
    return run_on({inputs.begin(), inputs.end()});
  }
  std::vector<Tensor> run_on(std::vector<Tensor> inputs) const;
  // Replaces a call of the captured function: an error if the two would differ.
  std::vector<Tensor> call(TensorList inputs) const {
    check_apart(inputs);
    return run(inputs);
  }
  void check_apart(TensorList inputs) const;
  // Describes an input in memory that a run writes: the program reads its old content, the captured function would
  // not. Empty if there is none.
  std::string shared_memory(TensorList inputs) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const { return run(inputs); }
};

// A tensor in a message for the user: its name, else its description.
std::string shown_name(const Tensor& t);

}  // namespace oar
