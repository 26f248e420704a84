#include "oar/autograd/gradient.h"

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/gen/creation.h"

namespace oar {

Gradient Gradient::zeros(Dims shape, DType dtype, Device device) {
  Gradient made;
  made.value_ = Tensor::meta(shape, dtype, device);
  made.zeros_ = true;
  return made;
}

Tensor Gradient::content() const {
  if (!zeros_) return value_;
  const devices::Scope device(value_.device());
  const LayersOff plain(symbolic_ ? 0 : kFunctionalise | kCapture);
  return oar::zeros(value_.dims(), value_.dtype());
}

Tensor Gradient::take() {
  Tensor value = std::move(value_);
  set(Tensor());
  return value;
}

void Gradient::set_to_zeros() {
  if (!is_tensor()) return;
  const bool symbolic = value_.kind() == Kind::Symbolic;
  *this = zeros(value_.dims(), value_.dtype(), value_.device());
  symbolic_ = symbolic;
}

}  // namespace oar
