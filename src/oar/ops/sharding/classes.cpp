#include "oar/ops/sharding/classes.h"

#include <numeric>

namespace oar {

std::optional<Dim> common_multiple(Dim a, Dim b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  if (a.is_known() && b.is_known()) return Dim(std::lcm(a.word(), b.word()));
  if (floor_mod(a, b) == Dim(0)) return a;
  if (floor_mod(b, a) == Dim(0)) return b;
  return std::nullopt;
}

}  // namespace oar
