// Loops over rows for the oldest machine that is supported, and the choice between the sets.
#include <type_traits>

#include "oar/backend/cpu/row_micro.h"
#include "oar/base/flags.h"

namespace oar::cpu {

const RowTable<float> kBaseRowsFloat = Rows<float, 32>::table();
const RowTable<double> kBaseRowsDouble = Rows<double, 32>::table();

namespace {
bool use_avx512() {
#if defined(__x86_64__)
  return kAvx512RowsFloat.max && flag<std::string>("cpu_isa") != "avx2" &&
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}
}  // namespace

template <class T>
const RowTable<T>& row_table() {
  static const bool avx512 = use_avx512();
  if constexpr (std::is_same_v<T, float>)
    return avx512 ? kAvx512RowsFloat : kBaseRowsFloat;
  else
    return avx512 ? kAvx512RowsDouble : kBaseRowsDouble;
}
template const RowTable<float>& row_table<float>();
template const RowTable<double>& row_table<double>();

}  // namespace oar::cpu
