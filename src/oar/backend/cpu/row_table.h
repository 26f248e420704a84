// Loops over rows of numbers, compiled for several instruction sets. Which one runs is chosen once.
#pragma once

namespace oar::cpu {

// Sums have 32 lanes whatever the width of the vectors, so results do not depend on the machine.
template <class T>
struct RowTable {
  // The largest element, NaN if there is one; -infinity for none.
  T (*max)(const T* x, long n);
  // out[i] = exp(x[i] - shift), and their sum. `out` may be x, or null where only the sum counts.
  T (*exp_sum)(const T* x, T* out, long n, T shift);
  void (*scale)(T* x, long n, T factor);
  // p[i] = exp(p[i] - lse), then dp[i] = p[i] * (dp[i] - delta): a row of attention's derivative.
  void (*attention_grad)(T* p, T* dp, long n, T lse, T delta);
};

extern const RowTable<float> kBaseRowsFloat;
extern const RowTable<double> kBaseRowsDouble;
extern const RowTable<float> kAvx512RowsFloat;  // empty where the compiler has no AVX-512
extern const RowTable<double> kAvx512RowsDouble;

// The one for this machine.
template <class T>
const RowTable<T>& row_table();

}  // namespace oar::cpu
