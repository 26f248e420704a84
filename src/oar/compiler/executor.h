// Runs programs, compiled for the sizes that each run is given.
#pragma once

#include "oar/runtime/runner.h"

namespace oar {

// Passes for the kernels at hand; then ops that no kernel takes are taken apart. The sizes of the program are known.
void prepare_to_run(Program& program);

class Executor : public Runner {
 public:
  explicit Executor(Program program) : Runner(std::move(program), prepare_to_run) {}

  // As Runner's, but inside a capture or a transform the program's calls take part in it instead.
  std::vector<Tensor> run(TensorList inputs) const {
    return run_on({inputs.begin(), inputs.end()});
  }
  std::vector<Tensor> run_on(std::vector<Tensor> inputs) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const { return run(inputs); }
};

}  // namespace oar
