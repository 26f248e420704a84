// Costs that records of several families share.
#pragma once

#include <algorithm>
#include <cmath>

#include "oar/ops/core/work.h"

namespace oar {

// A window of the kernel's size for each element of `of`.
inline Cost window_cost(const Tensor& of, Ints kernel) {
  double taps = 1;
  for (int64_t size : kernel) taps *= static_cast<double>(size);
  return {.flops = elements(of) * taps};
}

// `steps` comparisons or more, each of which halves the rest of `among`.
inline Cost halving_cost(double steps, double among) {
  return {.flops = steps * std::max(1.0, std::log2(std::max(1.0, among)))};
}

// Only the elements that are looked up are read, not the whole table; the rest of the operands are numbers of elements.
inline Cost lookup_cost(const CostCall& c, size_t table) {
  const double width = static_cast<double>(bits_of(c.results[0].dtype())) / 8;
  Cost cost{.bytes = 2 * elements(c.results[0]) * width};
  for (size_t i = 0; i < c.args.size(); ++i)
    if (i != table)
      for_each_tensor(c.args.subspan(i, 1), [&](const Tensor& t) {
        cost.bytes += elements(t) * static_cast<double>(bits_of(t.dtype())) / 8;
      });
  return cost;
}

}  // namespace oar
