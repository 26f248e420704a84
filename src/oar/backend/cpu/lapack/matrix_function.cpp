// Functions of matrices.
#include <array>
#include <cmath>

#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/lapack/batch.h"

namespace oar::cpu {
namespace {

using namespace lapack;

// Up to this norm the terms of the series that are left out are below the rounding of the sum.
template <class R>
constexpr R kSeriesNorm = R(0.7);
template <>
constexpr float kSeriesNorm<float> = 2.0F;

// The largest sum of magnitudes in a row.
template <class T>
real_t<T> row_norm(const T* a, int64_t n) {
  real_t<T> largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    real_t<T> sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::abs(a[i * n + j]);
    if (!(sum <= largest)) largest = sum;  // NaN stays
  }
  return largest;
}

// The sum of a^k / k! up to k = 16 of a matrix scaled by a power of two, which is then squared again.
template <class T>
class Exponential {
 public:
  explicit Exponential(int64_t n) : n_(n), memory_(6 * n * n) {}

  void run(const T* x, T* out) {
    using R = real_t<T>;
    const int64_t size = n_ * n_;
    const R norm = row_norm(x, n_);
    if (!std::isfinite(norm)) {
      std::fill_n(out, size, T(std::numeric_limits<R>::quiet_NaN()));
      return;
    }
    int squarings = 0;
    if (norm > kSeriesNorm<R>)
      squarings = static_cast<int>(std::ceil(std::log2(norm / kSeriesNorm<R>)));
    const R scale = std::ldexp(R(1), -squarings);
    T *a = part(0), *a2 = part(1), *a3 = part(2), *a4 = part(3), *sum = part(4), *other = part(5);
    for (int64_t i = 0; i < size; ++i) a[i] = x[i] * scale;
    multiply(a, a, a2);
    multiply(a2, a, a3);
    multiply(a2, a2, a4);
    // Four terms at a time, from the highest power on.
    double factorial = 1;
    std::array<R, 17> c;
    for (int k = 0; k <= 16; ++k) {
      if (k > 0) factorial *= k;
      c[static_cast<size_t>(k)] = static_cast<R>(1 / factorial);
    }
    for (int64_t i = 0; i < size; ++i) sum[i] = a4[i] * c[16];
    for (size_t block = 4; block-- > 0;) {
      const size_t k = 4 * block;
      for (int64_t i = 0; i < size; ++i)
        sum[i] += a[i] * c[k + 1] + a2[i] * c[k + 2] + a3[i] * c[k + 3];
      for (int64_t i = 0; i < n_; ++i) sum[i * (n_ + 1)] += c[k];
      if (block == 0) break;
      multiply(sum, a4, other);
      std::swap(sum, other);
    }
    for (; squarings > 0; --squarings) {
      multiply(sum, sum, other);
      std::swap(sum, other);
    }
    std::copy_n(sum, size, out);
  }

 private:
  T* part(int64_t i) const { return memory_.data() + i * n_ * n_; }
  void multiply(const T* x, const T* y, T* to) const {
    gemm<T>(n_, n_, n_, Matrix<const T>{x, n_, 1}, Matrix<const T>{y, n_, 1}, Matrix<T>{to, n_, 1});
  }

  const int64_t n_;
  const Scratch<T> memory_;
};

void matrix_exp(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  if (call.out().numel == 0) return;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t n = shape.rows;
    const Flat<T> x(call.in(0));
    const Result<T> result(call.out());
    const auto some = [&](int64_t begin, int64_t end) {
      Exponential<T> exponential(n);
      for (int64_t i = begin; i < end; ++i)
        exponential.run(x.data() + i * n * n, result.data() + i * n * n);
    };
    // Few large matrices: the product itself uses the threads.
    if (shape.count < num_threads() && n >= 64)
      some(0, shape.count);
    else
      over_batch(shape.count, 16 * static_cast<double>(n * n * n), some);
    result.finish();
  });
}

}  // namespace

KernelList matrix_function_kernels() {
  static const oar_kernel list[] = {
      {"matrix_exp", 1, "cpu:gemm", nullptr, kernel_entry<matrix_exp>},
  };
  return list;
}

}  // namespace oar::cpu
