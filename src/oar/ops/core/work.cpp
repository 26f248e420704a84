#include "oar/ops/core/work.h"

#include <algorithm>

namespace oar {
namespace {

// Measured on AVX-512 machines, rounded: a call by itself, an element that is read or written, one of a row that is gone over several
// times or of an op that nothing is known of, a multiply-add of a product.
constexpr double kCall = 500, kElement = 0.25, kDearElement = 1, kMultiplyAdd = 0.025;

struct Sizes {
  double elements = 0, results = 0;
};

Sizes sizes_of(Args args, TensorList results) {
  Sizes s;
  const auto add = [&](const Tensor& t) {
    if (t.defined()) s.elements += static_cast<double>(t->numel);
  };
  for (const Value& v : args) {
    if (v.is_tensor()) add(v.as_tensor());
    if (v.is_tensors()) std::for_each(v.as_tensors().begin(), v.as_tensors().end(), add);
  }
  for (const Tensor& t : results) {
    add(t);
    s.results += static_cast<double>(t->numel);
  }
  return s;
}

double size(const Tensor& t, int axis) {
  return static_cast<double>(t->shape[axis < 0 ? t.rank() + axis : axis]);
}

// Of ops that are sums of products; 0 for the others.
double multiply_adds(const Op& op, Args args, double results) {
  const std::string& name = op.name();
  const auto tensor = [&](size_t i) -> const Tensor& { return args[i].as_tensor(); };
  const auto of_matmul = [&](size_t flag) {
    const Tensor& x = tensor(0);
    return results * size(x, x.rank() > 1 && args[flag].as_bool() ? -2 : -1);
  };
  if (name == "matmul") return of_matmul(2);
  if (name == "matmul_fused") return of_matmul(4);
  if (name == "linear" || name == "matmul_core") return results * size(tensor(0), -1);
  const auto taps = [](const Tensor& weight) {
    return static_cast<double>(weight->numel) / std::max(1.0, size(weight, 0));
  };
  if (name == "conv" || name == "conv_fused") return results * taps(tensor(1));
  if (name == "conv_input_grad") return static_cast<double>(tensor(1)->numel) * taps(tensor(0));
  return 0;
}

// A product's left factor whose rows are not dense, by a flag or by its strides.
bool is_turned(const Tensor& x, bool flag) {
  return x.rank() > 1 && (flag || x->strides[x.rank() - 1] != 1);
}

}  // namespace

bool sums_by_threads(const Op& op, Args args) {
  const std::string& name = op.name();
  if (name == "conv" || name == "conv_fused") return false;
  if (name == "matmul") return is_turned(args[0].as_tensor(), args[2].as_bool());
  if (name == "matmul_fused") return is_turned(args[0].as_tensor(), args[4].as_bool());
  if (name == "linear" || name == "matmul_core") return is_turned(args[0].as_tensor(), false);
  return true;
}

double guessed_time(const Op& op, Args args, TensorList results) {
  const Sizes s = sizes_of(args, results);
  const double products = multiply_adds(op, args, s.results);
  if (products > 0) return kCall + std::max(products * kMultiplyAdd, s.elements * kElement);
  return kCall + s.elements * (op.has(Trait::Elementwise) ? kElement : kDearElement);
}

}  // namespace oar
