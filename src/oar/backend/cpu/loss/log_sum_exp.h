// log(sum(exp(line))), without overflow.
#pragma once

#include <cmath>
#include <cstdint>

#include "oar/backend/cpu/rows/row_table.h"

namespace oar::cpu {

template <class C>
C log_sum_exp(const C* line, int64_t n) {
  const RowTable<C>& table = row_table<C>();
  const C high = table.max(line, n), base = std::isinf(high) ? C(0) : high;
  const C total = table.exp_sum(line, nullptr, n, base);
  const bool overflows = high > 0 && std::isinf(high) && total == total;
  return overflows ? high : base + std::log(total);
}

}  // namespace oar::cpu
