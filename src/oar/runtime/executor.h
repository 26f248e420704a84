// Runs programs.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "oar/base/fork_mutex.h"
#include "oar/ir/bind.h"
#include "oar/ir/program.h"
#include "oar/runtime/instance.h"

namespace oar {

// A program made ready to run, for any sizes it allows. Runs of a program that writes no state may
// overlap in several threads.
class Executor {
 public:
  explicit Executor(Program program);

  // Without gradients. States are written at the end, all or, where an instruction fails, none.
  // Inside a capture or a transform the program's calls take part in it instead.
  std::vector<Tensor> run(TensorList inputs) const {
    return run_on({inputs.begin(), inputs.end()});
  }
  // … on inputs that the caller no longer needs: their memory serves the rest of the run.
  std::vector<Tensor> run_on(std::vector<Tensor> inputs) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const { return run(inputs); }

  // One instruction after the other, without making anything ready for the next run at these sizes.
  std::vector<Tensor> interpret(TensorList inputs) const;

  const Program& program() const { return program_; }
  // An input that lies in memory which a run writes: the program reads it as it was before, the captured function would
  // not. Empty if there is none.
  std::string shared_memory(TensorList inputs) const;
  // In the place of the captured function: an error where the two would differ.
  std::vector<Tensor> call(TensorList inputs) const {
    check_apart(inputs);
    return run(inputs);
  }
  void check_apart(TensorList inputs) const;
  // Why these inputs, or the states as they are now, are not for this program; empty if they are.
  std::string misfit(TensorList inputs) const;
  // The instance that runs these inputs; none where they are interpreted.
  std::shared_ptr<const Instance> instance(TensorList inputs) const;
  // … of a program without open sizes.
  std::shared_ptr<const Instance> instance_at_known_sizes() const;

 private:
  class Run;

  struct Cached {
    std::vector<int64_t> key;
    std::shared_ptr<const Instance> instance;
  };
  static constexpr size_t kMostInstances = 16;

  void check_states() const;
  std::shared_ptr<const Instance> instance_for(SymbolValues& sizes) const;

  Program program_;
  InputBinder binder_;
  std::vector<bool> symbolic_;                   // per instruction: attributes to evaluate
  std::vector<std::vector<ValueId>> last_uses_;  // per instruction: values that end there
  mutable ForkMutex mutex_;
  mutable std::vector<Cached> instances_;  // the most recently used last
};

// A tensor in a text for the user: its name, else what it is.
std::string shown_name(const Tensor& t);

}  // namespace oar
