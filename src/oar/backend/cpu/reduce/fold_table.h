// Folds of many numbers to one, compiled for several instruction sets. Which one runs is chosen once.
#pragma once

#include <cstdint>

namespace oar::cpu {

// What is folded: numbers as they are, or a function of each.
enum class Fold : int {
  sum,
  product,
  max,        // NaN wins
  min,        // NaN wins
  squares,    // the sum of x²
  numbers,    // the sum of those that are not NaN
  spread,     // the sum of (x - centre)²
  exponents,  // the sum of exp(x - centre)
  count       // of those that are not 0: integers only
};

// The number of lanes does not depend on the width of the vectors, so results do not depend on the machine.
template <class T>
struct FoldLoops {
  // `repeats` runs of n elements each, `step` elements apart, folded to one number.
  T (*run)(const T* x, long n, long step, long repeats, const T* centre);
  // to[c] = x[c], x[c + step], ... x[c + (n - 1) * step] folded; centre[c] belongs to it.
  void (*columns)(const T* x, long step, long n, long width, const T* centre, T* to);
};

template <class T>
struct FoldTable {
  FoldLoops<T> loops[static_cast<int>(Fold::count)];

  // Softmax of columns: n rows, `step` elements apart. The rows of `out` are as far apart.
  void (*softmax_columns)(const T* x, T* out, long step, long n, long width);
  void (*log_softmax_columns)(const T* x, T* out, long step, long n, long width);
  // (grad - sum(grad * out)) * out and grad - exp(out) * sum(grad).
  void (*softmax_columns_grad)(const T* out, const T* grad, T* to, long step, long n, long width);
  void (*log_softmax_columns_grad)(const T* out, const T* grad, T* to, long step, long n,
                                   long width);

  // out[i] = x[0] + ... + x[i], from the end if reverse, carried in double. `out` may be x.
  void (*running_sum)(const T* x, T* out, long n, bool reverse);
};

// Integers: their sum, which wraps, and how many are not 0.
struct IntegerFolds {
  int64_t (*sum)(const int64_t* x, long n);
  int64_t (*count)(const int64_t* x, long n);
};

extern const FoldTable<float> kBaseFoldsFloat;
extern const FoldTable<double> kBaseFoldsDouble;
extern const FoldTable<float> kAvx512FoldsFloat;  // empty where the compiler has no AVX-512
extern const FoldTable<double> kAvx512FoldsDouble;
extern const IntegerFolds kBaseFoldsInteger, kAvx512FoldsInteger;

// The one for this machine.
template <class T>
const FoldTable<T>& fold_table();
const IntegerFolds& integer_folds();

}  // namespace oar::cpu
