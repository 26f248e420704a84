#include "oar/ops/families/activated.h"

#include <span>

#include "oar/base/string_util.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/relu.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {

Tensor activated(const Tensor& x, std::string_view name) {
  if (name.empty()) return x;
  if (name == "relu") return relu(x);
  if (name == "hardswish") return hardswish(x);
  if (name == "silu") return silu(x);
  if (name == "sigmoid") return sigmoid(x);
  if (name == "tanh") return tanh(x);
  fail(ErrorKind::InvalidArgument, "activation is '{}'; it can be one of '{}'.", name,
       join(std::span(kActivations), "', '"));
}

}  // namespace oar
