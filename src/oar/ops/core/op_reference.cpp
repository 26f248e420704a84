#include "oar/ops/core/op_reference.h"

#include "oar/ops/core/registry.h"

namespace oar {

Outputs OpReference::operator()(Args args) {
  const Op* op = op_.load(std::memory_order_acquire);
  if (!op) {
    op = &get_op(name_);
    op_.store(op, std::memory_order_release);
  }
  return dispatch(*op, args);
}

}  // namespace oar
