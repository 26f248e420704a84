// Runs programs.
#pragma once

#include <vector>

#include "oar/ir/bind.h"
#include "oar/ir/program.h"

namespace oar {

// A program made ready to run, for any sizes it allows. Runs of a program that writes no state may
// overlap in several threads.
class Executor {
 public:
  explicit Executor(Program program);

  // Without gradients. States are written at the end, all or, where an instruction fails, none.
  // Inside a capture or a transform the program's calls take part in it instead.
  std::vector<Tensor> run(TensorList inputs) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const { return run(inputs); }

  const Program& program() const { return program_; }

 private:
  class Run;

  Program program_;
  InputBinder binder_;
  std::vector<bool> symbolic_;                   // per instruction: attributes to evaluate
  std::vector<std::vector<ValueId>> last_uses_;  // per instruction: values that end there
};

}  // namespace oar
