// A program inside a program: the branch of a cond, the body of a loop. It is an attribute of an
// instruction, has no states, and shares the open sizes of the outer program.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "oar/base/api.h"
#include "oar/base/fork_mutex.h"
#include "oar/ir/program.h"
#include "oar/ops/core/program_args.h"

namespace OAR_API oar {

// What a compiler has made of a region.
struct RegionCode {
  RegionCode() = default;
  RegionCode(const RegionCode&) = delete;
  RegionCode& operator=(const RegionCode&) = delete;
  virtual ~RegionCode() = default;
};

class Region final : public Closure {
 public:
  explicit Region(Program program);

  const Program& program() const { return program_; }

  // Have all passes run on it until nothing changed?
  bool is_optimised() const { return optimised_.load(std::memory_order_relaxed); }
  void mark_optimised() const { optimised_.store(true, std::memory_order_relaxed); }

  // The code that `make` makes of it, at the first call; null stays null.
  using Compile = std::shared_ptr<const RegionCode> (*)(const Region&);
  std::shared_ptr<const RegionCode> code(Compile make) const;

  const std::vector<Tensor>& inputs() const override { return inputs_; }
  const std::vector<Tensor>& outputs() const override { return outputs_; }
  std::vector<Tensor> operator()(TensorList inputs) const override;
  Function prepared() const override;
  ClosurePtr vjp(const std::vector<bool>& wanted, TensorList cotangents) const override;
  ClosurePtr jvp(const std::vector<bool>& active) const override;
  bool has_open_sizes() const override { return !program_.symbols.empty(); }
  ClosurePtr resized(const std::function<Dim(Dim)>& size_of_dim) const override;
  bool draws_random() const override;
  std::string str() const override;

 private:
  template <class F>
  ClosurePtr derived(char kind, const std::vector<bool>& mask, F&& derive) const;

  const Program program_;
  std::vector<Tensor> inputs_, outputs_;
  mutable ForkMutex mutex_;
  mutable std::map<std::pair<char, std::vector<bool>>, ClosurePtr> derived_;
  static constexpr size_t kMostSizes = 16;
  mutable std::map<std::vector<int64_t>, ClosurePtr> resized_;
  mutable std::shared_ptr<const Runner> executor_;
  mutable std::atomic<bool> optimised_{false};
  mutable ForkMutex code_mutex_;
  mutable bool compiled_ = false;
  mutable std::shared_ptr<const RegionCode> code_;
};

inline const Region& region_of(const Closure& closure) {
  return static_cast<const Region&>(closure);  // there is no other kind
}
inline const Program& program_of(const Closure& closure) { return region_of(closure).program(); }

// Does the call, or a call inside its regions, take random numbers?
bool draws_random(const Instruction& instruction);
bool draws_random(const Program& program);
// Is the call, or a call inside its regions, one that all processes of a group make, in the same order?
bool exchanges(const Instruction& instruction);
bool has_regions(const Instruction& instruction);

// Replaces every region by the result of `changed`; null keeps it.
// Returns whether any was replaced.
bool replace_regions(Instruction& instruction,
                     const std::function<ClosurePtr(const Region&)>& changed);

}  // namespace oar
