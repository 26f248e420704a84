// Runs programs, compiled for the sizes that each run is given.
#pragma once

#include "oar/base/api.h"
#include "oar/runtime/runner.h"

namespace OAR_API oar {

// Runs the passes for the device's kernels, then `expand`. All sizes of the program must be known.
void prepare_to_run(Program& program);

class Executor : public Runner {
 public:
  explicit Executor(Program program) : Runner(std::move(program), prepare_to_run) {}

  // As Runner's, but inside a capture or a transform the program's calls take part in it instead.
  std::vector<Tensor> run(TensorList inputs) const {
    return run_on({inputs.begin(), inputs.end()});
  }
  std::vector<Tensor> run_on(std::vector<Tensor> inputs) const;
  // In the place of the captured function: an error where the two would differ.
  std::vector<Tensor> call(TensorList inputs) const {
    check_apart(inputs);
    return run(inputs);
  }
  void check_apart(TensorList inputs) const;
  // An input that lies in memory which a run writes: the program reads it as it was before, the captured function would
  // not. Empty if there is none.
  std::string shared_memory(TensorList inputs) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const { return run(inputs); }
};

// A tensor in a text for the user: its name, else what it is.
std::string shown_name(const Tensor& t);

}  // namespace oar
