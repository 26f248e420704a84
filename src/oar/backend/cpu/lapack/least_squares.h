// Least squares by LAPACK, and by the singular vectors of a small matrix.
#pragma once

#include "oar/backend/cpu/lapack/batch.h"

namespace oar::cpu::lapack {

// One routine with its working memory, for matrices of one size.
template <class T>
class LeastSquaresSolver {
 public:
  using R = real_t<T>;
  LeastSquaresSolver(const MatrixShape& shape, int64_t columns, double rcond)
      : m_(as_int(shape.rows)),
        n_(as_int(shape.columns)),
        columns_(as_int(columns)),
        longest_(std::max(m_, n_)),
        rcond_(static_cast<R>(rcond)),
        sizes_(wanted()),
        a_(shape.size()),
        b_(int64_t{longest_} * columns),
        work_(sizes_.work),
        reals_(sizes_.reals),
        integers_(sizes_.integers) {}

  // x[m, n], y[m, columns] and z[n, columns] by rows; false if the iteration did not converge.
  bool run(const T* x, const T* y, R* s, T* z) {
    transpose_into(x, m_, n_, a_.data());
    for (int64_t i = 0; i < m_; ++i)
      for (int64_t j = 0; j < columns_; ++j) b_[j * longest_ + i] = y[i * columns_ + j];
    const Int info =
        call(a_.data(), b_.data(), s, work_.data(), sizes_.work, reals_.data(), integers_.data());
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t j = 0; j < columns_; ++j) z[i * columns_ + j] = b_[j * longest_ + i];
    return info == 0;
  }

 private:
  struct Sizes {
    Int work, reals, integers;
  };
  Int call(T* a, T* b, R* s, T* work, Int size, [[maybe_unused]] R* reals, Int* integers) {
    Int info = 0, rank = 0;
    if constexpr (kComplex<T>)
      routines<T>().gelsd(&m_, &n_, &columns_, a, &m_, b, &longest_, s, &rcond_, &rank, work, &size,
                          reals, integers, &info);
    else
      routines<T>().gelsd(&m_, &n_, &columns_, a, &m_, b, &longest_, s, &rcond_, &rank, work, &size,
                          integers, &info);
    return info;
  }
  Sizes wanted() {
    T work{};
    R reals{};
    Int integers = 0;
    call(nullptr, nullptr, nullptr, &work, -1, &reals, &integers);
    return {wanted_size(work), wanted_size(reals), std::max<Int>(1, integers)};
  }

  const Int m_, n_, columns_, longest_;
  const R rcond_;
  const Sizes sizes_;
  const Scratch<T> a_, b_, work_;
  const Scratch<R> reals_;
  const Scratch<Int> integers_;
};

// z[n, columns] = v s^-1 u^H y, without the values up to rcond times the largest.
template <class T>
void solve_by_vectors(const MatrixShape& shape, const T* u, const real_t<T>* s, const T* vh,
                      const T* y, int64_t columns, double rcond, T* z) {
  const int64_t m = shape.rows, n = shape.columns, k = std::min(m, n);
  std::fill_n(z, n * columns, T(0));
  const real_t<T> limit = s[0] * static_cast<real_t<T>>(rcond);
  for (int64_t r = 0; r < k && s[r] > limit; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      T sum = 0;
      for (int64_t i = 0; i < m; ++i) sum += product(conjugate(u[i * k + r]), y[i * columns + c]);
      sum /= s[r];
      for (int64_t j = 0; j < n; ++j) z[j * columns + c] += product(conjugate(vh[r * n + j]), sum);
    }
}

}  // namespace oar::cpu::lapack
