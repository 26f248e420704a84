// Loops over rows for the oldest machine that is supported, and the choice between the sets.
#include <type_traits>

#include "oar/backend/cpu/instruction_set.h"
#include "oar/backend/cpu/rows/row_micro.h"

namespace oar::cpu {

const RowTable<float> kBaseRowsFloat = Rows<float, 32>::table();
const RowTable<double> kBaseRowsDouble = Rows<double, 32>::table();

template <class T>
const RowTable<T>& row_table() {
  static const bool avx512 = use_avx512();
  if constexpr (std::is_same_v<T, float>)
    return avx512 && kAvx512RowsFloat.max ? kAvx512RowsFloat : kBaseRowsFloat;
  else
    return avx512 && kAvx512RowsDouble.max ? kAvx512RowsDouble : kBaseRowsDouble;
}
template const RowTable<float>& row_table<float>();
template const RowTable<double>& row_table<double>();

}  // namespace oar::cpu
