// Cofactors: the derivatives of a determinant, which exist for singular matrices too.
#include <limits>

#include "oar/backend/cpu/lapack/small.h"

namespace oar::cpu {
namespace {

using namespace lapack;

// P x Q = L U with the largest pivot of all that is left, so that zeros of a singular matrix come last.
template <class T>
struct Elimination {
  Elimination(int64_t n, T* a) : n(n), a(a), rows(n), columns(n) {
    for (int64_t j = 0; j < n; ++j) {
      exchange(j);
      const T pivot = a[j * n + j];
      if (pivot == T(0)) continue;
      const T inverse = T(1) / pivot;
      for (int64_t i = j + 1; i < n; ++i) {
        const T factor = a[i * n + j] = product(a[i * n + j], inverse);
        for (int64_t k = j + 1; k < n; ++k) a[i * n + k] -= product(factor, a[j * n + k]);
      }
    }
  }

  void exchange(int64_t j) {
    int64_t row = j, column = j;
    for (int64_t i = j; i < n; ++i)
      for (int64_t k = j; k < n; ++k)
        if (pivot_size(a[i * n + k]) > pivot_size(a[row * n + column])) row = i, column = k;
    rows[j] = row;
    columns[j] = column;
    odd ^= (row != j) != (column != j);
    for (int64_t k = 0; k < n; ++k) std::swap(a[j * n + k], a[row * n + k]);
    for (int64_t k = 0; k < n; ++k) std::swap(a[k * n + j], a[k * n + column]);
  }

  const int64_t n;
  T* const a;
  const Scratch<int64_t> rows, columns;
  bool odd = false;
};

// The adjugate of any matrix, out of its factors: adj(U) L^-1 with rows and columns in the order of x. If U is U1 with a
// last column u and a last pivot e, then adj(U) = det(U1) (e U1^-1, -U1^-1 u; 0, 1).
template <class T>
void adjugate(int64_t n, T* a, T* out) {
  Elimination<T> made(n, a);
  T leading = made.odd ? T(-1) : T(1);
  for (int64_t j = 0; j + 1 < n; ++j) leading = product(leading, a[j * (n + 1)]);
  std::fill_n(out, n * n, T(0));
  if (n > 1 && a[(n - 2) * (n + 1)] == T(0)) return;  // two ranks are missing
  for (int64_t i = 0; i < n; ++i) {                   // L^-1
    out[i * n + i] = T(1);
    for (int64_t j = 0; j < i; ++j)
      for (int64_t k = 0; k <= j; ++k) out[i * n + k] -= product(a[i * n + j], out[j * n + k]);
  }
  const T last = a[n * n - 1];
  const T* below = out + (n - 1) * n;
  for (int64_t i = n - 2; i >= 0; --i) {
    T* row = out + i * n;
    const T inverse = T(1) / a[i * (n + 1)];
    for (int64_t k = 0; k < n; ++k)
      row[k] = product(last, row[k]) - product(a[i * n + n - 1], below[k]);
    for (int64_t j = i + 1; j + 1 < n; ++j)
      for (int64_t k = 0; k < n; ++k) row[k] -= product(a[i * n + j], out[j * n + k]);
    for (int64_t k = 0; k < n; ++k) row[k] = product(row[k], inverse);
  }
  for (int64_t k = 0; k < n * n; ++k) out[k] = product(out[k], leading);
  for (int64_t j = n - 1; j >= 0; --j) {
    for (int64_t k = 0; k < n; ++k) std::swap(out[k * n + j], out[k * n + made.rows[j]]);
    for (int64_t k = 0; k < n; ++k) std::swap(out[j * n + k], out[made.columns[j] * n + k]);
  }
}

// det(x) x^-1 by the library, in place; false if x is close to singular. It sees x^T, whose inverse is the transpose.
template <class T>
bool scaled_inverse(int64_t n, T* a, Int* pivots, T* work, Int length) {
  using R = real_t<T>;
  const Int size = as_int(n);
  Int info = 0;
  routines<T>().getrf(&size, &size, a, &size, pivots, &info);
  if (info != 0) return false;
  T determinant = 1;
  R smallest = std::abs(a[0]), largest = smallest;
  for (int64_t j = 0; j < n; ++j) {
    const R pivot = std::abs(a[j * (n + 1)]);
    smallest = std::min(smallest, pivot);
    largest = std::max(largest, pivot);
    determinant = product(pivots[j] == j + 1 ? determinant : -determinant, a[j * (n + 1)]);
  }
  if (!(smallest > largest * std::numeric_limits<R>::epsilon())) return false;
  routines<T>().getri(&size, a, &size, pivots, work, &length, &info);
  for (int64_t k = 0; k < n * n; ++k) a[k] = product(a[k], determinant);
  return info == 0;
}

template <class T>
void large_cofactors(int64_t n, const T* x, T* out, int64_t begin, int64_t end) {
  const Scratch<T> a(n * n), made(n * n), work(64 * n);
  const Scratch<Int> pivots(n);
  for (int64_t i = begin; i < end; ++i) {
    std::copy_n(x + i * n * n, n * n, a.data());
    const bool regular = scaled_inverse(n, a.data(), pivots.data(), work.data(), as_int(64 * n));
    if (!regular) {
      std::copy_n(x + i * n * n, n * n, a.data());
      adjugate(n, a.data(), made.data());
    }
    transpose_into(regular ? a.data() : made.data(), n, n, out + i * n * n);
  }
}

void cofactors(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  if (call.out().numel == 0) return;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> flat(call.in(0));
    const Result<T> result(call.out());
    const int64_t n = shape.rows;
    const double work = 2 * static_cast<double>(n * n * n) + 20;
    if (n > kSmall)
      over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
        large_cofactors(n, flat.data(), result.data(), begin, end);
      });
    else
      over_batch(shape.count, work, [&](int64_t begin, int64_t end) {
        T a[kSmall * kSmall], made[kSmall * kSmall];
        for (int64_t i = begin; i < end; ++i) {
          std::copy_n(flat.data() + i * n * n, n * n, a);
          adjugate(n, a, made);
          transpose_into(made, n, n, result.data() + i * n * n);
        }
      });
    result.finish();
  });
}

}  // namespace

KernelList cofactors_kernels() {
  static const oar_kernel list[] = {
      {"cofactors", 1, "cpu:lapack", nullptr, training_entry<cofactors>},
  };
  return list;
}

}  // namespace oar::cpu
