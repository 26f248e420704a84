#include "oar/ops/core/work.h"

#include <algorithm>

namespace oar {
namespace {

// Measured on AVX-512 machines, rounded: a call by itself, a byte that is read or written, one of a row that is read several
// times or of an unknown op, a flop of a sum of products.
constexpr double kCall = 500, kByte = 0.0625, kDearByte = 0.25, kProductFlop = 0.0125;

}  // namespace

double elements(const Tensor& t) {
  double count = t.defined() ? 1 : 0;
  if (t.defined())
    for (Dim d : t.dims()) count *= static_cast<double>(d.hint());
  return count;
}

double extent(const Tensor& t, int axis) {
  return t.defined() ? static_cast<double>(t.dim(axis).hint()) : 1;
}

double bytes_of(Args args, TensorList results) {
  return sum_over(args, results, [](const Tensor& t) {
    return elements(t) * static_cast<double>(bits_of(t.dtype())) / 8;
  });
}

bool sums_by_threads(const Op& op, Args args) {
  const OrderRule& rule = rules_of(op).def().cuts_sums;
  return !rule || rule(args);
}

double guessed_time(const Op& op, Args args, TensorList results) {
  // Only what the record states: reading a decomposition takes long, and a kernel may do better than its parts.
  const CostRule& rule = rules_of(op).def().cost;
  const Cost cost = rule ? rule({args, results}) : Cost();
  const double bytes = cost.bytes >= 0 ? cost.bytes : bytes_of(args, results);
  if (cost.products > 0) return kCall + std::max(cost.products * kProductFlop, bytes * kByte);
  return kCall + bytes * (op.has(Trait::Elementwise) ? kByte : kDearByte);
}

}  // namespace oar
