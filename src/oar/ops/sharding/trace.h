// The calls of a decomposition, as the planning layer sees them. Plans and costs are derived from them.
#pragma once

#include <unordered_map>

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/sharding/plan.h"

namespace OAR_API oar {

// Gets the calls of this thread, which are not run.
class CallReader {
 public:
  virtual Outputs call(const Op& op, Args args) = 0;

 protected:
  ~CallReader() = default;
};

// While alive, `reader` gets every call of this thread.
class ReadingCalls {
 public:
  explicit ReadingCalls(CallReader& reader);
  ~ReadingCalls();
  ReadingCalls(const ReadingCalls&) = delete;
  ReadingCalls& operator=(const ReadingCalls&) = delete;

 private:
  CallReader* outer_;
  LayersOn planning_;
};

// Results of a call that is not run.
Outputs inferred_results(const Op& op, Args args);

// One call of an op that states a plan. Values are numbered.
struct TracedCall {
  const Op* op;
  Frame frame;
  ShardPlan plan;
  std::vector<int> operands, results;  // in the order of the plan's
};

// Runs one op on tensors without content and records the calls of its decomposition.
class ShardTrace final : public CallReader {
 public:
  // The operands are the values 0, 1, …
  ShardTrace(const Op& op, Args args);

  const std::vector<TracedCall>& calls() const { return calls_; }
  size_t value_count() const { return tensors_.size(); }
  const Tensor& tensor(int value) const { return tensors_[static_cast<size_t>(value)]; }
  const std::vector<int>& operands() const { return operands_; }
  const std::vector<int>& results() const { return results_; }
  // The final values of the operands that the op writes.
  const std::vector<int>& written() const { return written_; }
  // Not computed by a call: the op's own constants.
  bool is_constant(int value) const { return constant_[static_cast<size_t>(value)]; }

  // Of the planning layer.
  Outputs call(const Op& op, Args args) override;

 private:
  int add_value(const Tensor& t, bool constant);
  int value_of(const Tensor& t);
  void rename_written(const TracedCall& call, Args args);

  std::vector<TracedCall> calls_;
  std::vector<Tensor> tensors_;  // kept, so that no address is used twice
  std::vector<bool> constant_;
  std::unordered_map<const TensorImpl*, int> values_;
  std::vector<int> operands_, results_, written_;
};

}  // namespace oar
