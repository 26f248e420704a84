#include "oar/backend/cpu/onednn/epilogue.h"

namespace oar::cpu::onednn {

std::optional<Eltwise> eltwise_of(std::string_view activation) {
  if (activation == "relu") return Eltwise{dnnl_eltwise_relu, 0, 0};
  if (activation == "hardswish") return Eltwise{dnnl_eltwise_hardswish, 1.0F / 6, 0.5F};
  if (activation == "silu") return Eltwise{dnnl_eltwise_swish, 1, 0};
  if (activation == "sigmoid") return Eltwise{dnnl_eltwise_logistic, 0, 0};
  if (activation == "tanh") return Eltwise{dnnl_eltwise_tanh, 0, 0};
  return std::nullopt;
}

Attributes::~Attributes() {
  if (steps_ != nullptr) api().dnnl_post_ops_destroy(steps_);
  if (own_ != nullptr) api().dnnl_primitive_attr_destroy(own_);
}

void Attributes::begin() {
  if (steps_ == nullptr) check(api().dnnl_post_ops_create(&steps_), "post-ops");
}

void Attributes::combine(dnnl_alg_kind_t kind, const Sizes& shape, const Sizes& strides) {
  begin();
  const Desc operand = strided(shape, dnnl_f32, strides);
  check(api().dnnl_post_ops_append_binary(steps_, kind, operand.get()), "a post-op");
}

void Attributes::apply(const Eltwise& e) {
  begin();
  check(api().dnnl_post_ops_append_eltwise(steps_, e.kind, e.alpha, e.beta), "a post-op");
}

const_dnnl_primitive_attr_t Attributes::get() {
  if (steps_ == nullptr) return api().attributes;
  if (own_ != nullptr) return own_;
  check(api().dnnl_primitive_attr_create(&own_), "attributes");
  check(api().dnnl_primitive_attr_set_scratchpad_mode(own_, dnnl_scratchpad_mode_user),
        "attributes");
  check(api().dnnl_primitive_attr_set_post_ops(own_, steps_), "attributes");
  return own_;
}

}  // namespace oar::cpu::onednn
