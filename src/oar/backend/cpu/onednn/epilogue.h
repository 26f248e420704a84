// Epilogues in oneDNN's terms: what a primitive does to each sum before it writes it.
#pragma once

#include <optional>
#include <string_view>

#include "oar/backend/cpu/onednn/plan.h"

namespace oar::cpu::onednn {

struct Eltwise {
  dnnl_alg_kind_t kind;
  float alpha, beta;
};
// An activation of the fused ops (ops/families/activated.h); none if there is no such name.
std::optional<Eltwise> eltwise_of(std::string_view activation);

// The attributes of a primitive: its epilogue, in the order in which the steps are added.
class Attributes {
 public:
  Attributes() = default;
  ~Attributes();
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  // With an operand of dense float32 of this layout; it is argument `argument_of_step(i)` of the primitive.
  void combine(dnnl_alg_kind_t kind, const Sizes& shape, const Sizes& strides);
  void apply(const Eltwise& e);
  const_dnnl_primitive_attr_t get();

 private:
  void begin();
  dnnl_post_ops_t steps_ = nullptr;
  dnnl_primitive_attr_t own_ = nullptr;
};

inline int argument_of_step(int i) { return DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1; }

}  // namespace oar::cpu::onednn
