// Runs programs.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/fork_mutex.h"
#include "oar/ir/bind.h"
#include "oar/ir/program.h"
#include "oar/runtime/instance.h"

namespace OAR_API oar {

// A program prepared to run, for any sizes it allows. Runs of a program that writes no state may
// overlap in several threads.
class Runner {
 public:
  // Prepares a program at known sizes for its kernels. The compiler provides it; a program that was prepared before needs nothing.
  using Prepare = void (*)(Program& program);

  explicit Runner(Program program, Prepare prepare = nullptr);

  // Without gradients and layers. States are written at the end: all or, if an instruction fails, none.
  std::vector<Tensor> run(TensorList inputs) const {
    return run_on({inputs.begin(), inputs.end()});
  }
  // … on inputs that the caller no longer needs: the run may reuse their memory.
  std::vector<Tensor> run_on(std::vector<Tensor> inputs) const;

  // One instruction after the other, without preparing an instance for these sizes.
  std::vector<Tensor> interpret(TensorList inputs) const;

  const Program& program() const { return program_; }
  // Why these inputs, or the current states, do not fit this program; empty if they do.
  std::string misfit(TensorList inputs) const;
  // The instance that runs these inputs; null if they are interpreted.
  std::shared_ptr<const Instance> instance(TensorList inputs) const;
  // … of a program without open sizes, on inputs that are where the program says.
  std::shared_ptr<const Instance> instance_at_known_sizes() const;

 private:
  class Run;

  struct Cached {
    std::vector<int64_t> key;
    std::shared_ptr<const Instance> instance;
  };
  static constexpr size_t kMostInstances = 16;

  void check_states() const;
  std::optional<Device> device_of_run(TensorList inputs) const;
  std::vector<int64_t> key_of(SymbolValues& sizes, TensorList inputs, Device device) const;
  std::shared_ptr<const Instance> instance_for(SymbolValues& sizes, TensorList inputs,
                                               std::optional<Device> device) const;

  Program program_;
  Prepare prepare_;
  InputBinder binder_;
  Device device_;                                // that the values are on, by their types
  std::vector<bool> symbolic_;                   // per instruction: attributes to evaluate
  std::vector<std::vector<ValueId>> last_uses_;  // per instruction: values that end there
  mutable ForkMutex mutex_;
  mutable std::vector<Cached> instances_;  // the most recently used last
};

}  // namespace oar
