// Folds for the oldest machine that is supported, and the choice between the sets.
#include <type_traits>

#include "oar/backend/cpu/instruction_set.h"
#include "oar/backend/cpu/reduce/fold_micro.h"

namespace oar::cpu {

const FoldTable<float> kBaseFoldsFloat = Folds<float, 32>::table();
const FoldTable<double> kBaseFoldsDouble = Folds<double, 32>::table();
const IntegerFolds kBaseFoldsInteger = Integers<uint64_t, 32>::table();

static bool avx512() {
  static const bool answer = kAvx512FoldsInteger.sum && use_avx512();
  return answer;
}
template <class T>
const FoldTable<T>& fold_table() {
  if constexpr (std::is_same_v<T, float>)
    return avx512() ? kAvx512FoldsFloat : kBaseFoldsFloat;
  else
    return avx512() && kAvx512FoldsDouble.softmax_columns ? kAvx512FoldsDouble : kBaseFoldsDouble;
}
const IntegerFolds& integer_folds() { return avx512() ? kAvx512FoldsInteger : kBaseFoldsInteger; }
template const FoldTable<float>& fold_table<float>();
template const FoldTable<double>& fold_table<double>();

}  // namespace oar::cpu
