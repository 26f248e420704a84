// Scalar bodies as typed steps of a kernel.
#pragma once

#include <optional>

#include "oar/compiler/fusion/kernel.h"
#include "oar/ops/core/registry.h"

namespace oar::fusion {

// Why something cannot be part of a kernel. Caught in this folder.
struct NotFusible {
  std::string why;
};

// Appends steps; an equal one that is there already is used again.
class StepList {
 public:
  uint16_t add(const Step& step);
  uint16_t load(uint16_t port, DType dtype);
  uint16_t number(DType type, double real, int64_t integer);
  uint16_t cast(uint16_t step, DType to);
  uint16_t rounded(uint16_t step, DType to);
  uint16_t apply(ScalarFn fn, DType type, std::initializer_list<uint16_t> operands);
  uint16_t fold(ScalarFn fn, uint16_t step);
  // Are the next steps parts of a decomposition?
  void set_loose(bool loose) { loose_ = loose; }
  const Step& at(uint16_t step) const { return steps_[step]; }
  std::vector<Step> take() { return std::move(steps_); }

 private:
  std::vector<Step> steps_;
  bool loose_ = false;
};

// A reduction whose elements are joined outside the kernel's rows.
struct Total {
  ScalarFn joins = ScalarFn::Add;
  bool is_mean = false;
};

// The type in which elements of a dtype are computed; NotFusible if there is none.
DType computed_as(DType dtype);

// The results of a call: `operands` has a step per tensor parameter, `made` the dtypes of the results. With `rounds`, results of
// 16 bits have that precision. With `total`, the result of a reduction is what it joins, and `total` says how.
std::vector<uint16_t> apply_body(StepList& steps, const Op& op, Args attributes,
                                 const std::vector<uint16_t>& operands,
                                 const std::vector<DType>& made, bool rounds,
                                 Total* total = nullptr);

}  // namespace oar::fusion
