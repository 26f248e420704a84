// Functions of matrices.
#include <array>
#include <cmath>

#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/lapack/batch.h"

namespace oar::cpu {
namespace {

using namespace lapack;

// Taylor polynomials of the exponential with few products, by Bader, Blanes and Casas (2019): the last product is that of
// p + c and q + d with c d = 1. The constants are multiplied out, so that the identity in the sum is exact. The digits solve the
// equations of the coefficients and are near the published ones.
namespace degree4 {  // sum = 1 + a + p a^2
constexpr std::array kP = {1.0 / 2, 1.0 / 6, 1.0 / 24};
}  // namespace degree4

namespace degree8 {
constexpr std::array kFourth = {0.10836465678522780852, 0.027091164196306952131};  // of a, a^2
constexpr std::array kP = {0.66666666666666666667, 1.0};                           // of a^2, a^4
constexpr std::array kQ = {0.16112557339541759283, 0.014090917158378207731,
                           0.033792797010870504141};  // of a, a^2, a^4
constexpr std::array kSum = {1.0, 0.13549236135285063166, 0.54676145797072405251};  // of a, a^2, p
}  // namespace degree8

namespace degree12 {  // of a, a^2, a^3, then q, p
constexpr std::array kRoot = {-0.13181061013830184016, -0.020278555405892590793,
                              -0.0067595184686308635978};
constexpr std::array kQ = {0.055027984399284298049, 0.093515907705364473734,
                           0.0061070052889837800147};
constexpr std::array kP = {1.1992679041713716908, 0.01179296240992624371, 0.011088445285190924976,
                           1.0};
constexpr std::array kSum = {0.46932117595431469071, -0.20099424927044302003,
                             -0.046239461340633654949, 5.4978676574203220830,
                             0.18188869982170765134};
}  // namespace degree12

namespace degree18 {  // of a, a^2, a^3, a^6, then q, p
constexpr std::array kLeft = {-0.10036558103014462765, -0.0080292464824115702118,
                              -0.00089213849804573002353};
constexpr std::array kRight = {-0.092336461936711852254, -0.016936493900208170431,
                               -0.000014008679818203614914};  // of a^2, a^3, a^6
constexpr std::array kQ = {-0.067640451907138190756, 0.067596130177045964608,
                           0.029555257042931552743, -0.000013918025751606070112};
constexpr std::array kP = {1.6801581387890619718, 0.05717798464788655127, -0.0069821012248805208429,
                           0.000033497501708607053831, 1.0};
constexpr std::array kSum = {0.39784974949964507615, 1.3678377846041171992,
                             0.49828962252538267756, -0.00063789819459472330924,
                             -11.058071288535287315, -0.090431683239081056197};
}  // namespace degree18

// Up to these sizes, terms that a polynomial leaves out change the matrix by less than its rounding does.
template <class R>
struct Reach;
template <>
struct Reach<double> {
  static constexpr double four = 3.3971e-4, eight = 0.049912, twelve = 0.29961, eighteen = 1.0908;
};
template <>
struct Reach<float> {
  static constexpr float four = 0.051166F, eight = 0.58005F, twelve = 1.4616F, eighteen = 3.01F;
};

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

// A polynomial of a matrix scaled by a power of two, which is then squared again.
template <class T>
class Exponential {
 public:
  explicit Exponential(int64_t n) : n_(n), size_(n * n), memory_(7 * n * n) {}

  void run(const T* x, T* out) {
    const R norm = row_norm(x, n_);
    if (!std::isfinite(norm)) {
      std::fill_n(out, size_, T(std::numeric_limits<R>::quiet_NaN()));
      return;
    }
    // The squares of the largest numbers would overflow.
    constexpr int kLargest = std::numeric_limits<R>::max_exponent / 2 - 8;
    const int shift = norm > 0 ? std::max(0, std::ilogb(norm) - kLargest) : 0;
    scale(x, -shift, a_);
    multiply(a_, a_, a2_);
    // |a^k| <= |a^2|^((k-1)/2) |a|, so this may stand for |a| in a bound on the terms left out, divided by |a|. It is often
    // much less, and fewer squarings also lose fewer digits.
    R growth = std::ldexp(std::sqrt(row_norm(a2_, n_)), shift);
    const int squarings = growth > Reach<R>::eighteen
                              ? static_cast<int>(std::ceil(std::log2(growth / Reach<R>::eighteen)))
                              : 0;
    if (squarings != shift) {
      scale(a_, shift - squarings, a_);
      scale(a2_, 2 * (shift - squarings), a2_);
    }
    growth = std::ldexp(growth, -squarings);
    T *sum = squarings % 2 == 0 ? out : other_, *next = squarings % 2 == 0 ? other_ : out;
    if (growth <= Reach<R>::four)
      four(sum);
    else if (growth <= Reach<R>::eight)
      eight(sum);
    else if (growth <= Reach<R>::twelve)
      twelve(sum);
    else
      eighteen(sum);
    for (int k = 0; k < squarings; ++k) {
      multiply(sum, sum, next);
      std::swap(sum, next);
    }
  }

 private:
  using R = real_t<T>;

  void four(T* sum) {
    over_blocks([&](int64_t begin, int64_t end) {
      combine(std::array{degree4::kP[1], degree4::kP[2]}, {a_, a2_}, begin, end, p_);
      combine(std::array{1.0, degree4::kP[0]}, {a_, a2_}, begin, end, sum);
    });
    add_product(p_, a2_, sum);
  }

  void eight(T* sum) {
    over_blocks(
        [&](int64_t begin, int64_t end) { combine(degree8::kFourth, {a_, a2_}, begin, end, p_); });
    T *a4 = a3_, *q = a6_;
    multiply(a2_, p_, a4);
    over_blocks([&](int64_t begin, int64_t end) {
      combine(degree8::kP, {a2_, a4}, begin, end, p_);
      combine(degree8::kQ, {a_, a2_, a4}, begin, end, q);
      combine(degree8::kSum, {a_, a2_, p_}, begin, end, sum);
    });
    add_product(p_, q, sum);
  }

  void twelve(T* sum) {
    multiply(a2_, a_, a3_);
    over_blocks([&](int64_t begin, int64_t end) {
      combine(degree12::kRoot, {a_, a2_, a3_}, begin, end, p_);
      combine(degree12::kQ, {a_, a2_, a3_}, begin, end, q_);
    });
    multiply(p_, p_, q_, true);
    over_blocks([&](int64_t begin, int64_t end) {
      combine(degree12::kP, {a_, a2_, a3_, q_}, begin, end, p_);
      combine(degree12::kSum, {a_, a2_, a3_, q_, p_}, begin, end, sum);
    });
    add_product(p_, q_, sum);
  }

  void eighteen(T* sum) {
    multiply(a2_, a_, a3_);
    multiply(a3_, a3_, a6_);
    over_blocks([&](int64_t begin, int64_t end) {
      combine(degree18::kLeft, {a_, a2_, a3_}, begin, end, p_);
      combine(degree18::kRight, {a2_, a3_, a6_}, begin, end, sum);
      combine(degree18::kQ, {a_, a2_, a3_, a6_}, begin, end, q_);
    });
    multiply(p_, sum, q_, true);
    over_blocks([&](int64_t begin, int64_t end) {
      combine(degree18::kP, {a_, a2_, a3_, a6_, q_}, begin, end, p_);
      combine(degree18::kSum, {a_, a2_, a3_, a6_, q_, p_}, begin, end, sum);
    });
    add_product(p_, q_, sum);
  }

  // Parts of all matrices that stay in the cache while several sums are formed.
  void over_blocks(FunctionRef<void(int64_t, int64_t)> body) const {
    constexpr int64_t kBlock = 512;
    parallel_for(0, size_, kGrain, [&](int64_t begin, int64_t end) {
      for (; begin < end; begin += kBlock) body(begin, std::min(begin + kBlock, end));
    });
  }

  // to = the sum of factors[k] terms[k] within [begin, end).
  template <size_t N>
  static void combine(const std::array<double, N>& factors,
                      const std::type_identity_t<std::array<const T*, N>>& terms, int64_t begin,
                      int64_t end, T* __restrict to) {
    for (int64_t i = begin; i < end; ++i) {
      T sum = terms[0][i] * static_cast<R>(factors[0]);
      for (size_t k = 1; k < N; ++k) sum += terms[k][i] * static_cast<R>(factors[k]);
      to[i] = sum;
    }
  }

  // sum += 1 + p q
  void add_product(const T* p, const T* q, T* sum) const {
    for (int64_t i = 0; i < n_; ++i) sum[i * (n_ + 1)] += R(1);
    multiply(p, q, sum, true);
  }

  void scale(const T* from, int exponent, T* to) const {
    const R factor = std::ldexp(R(1), exponent);
    for (int64_t i = 0; i < size_; ++i) to[i] = from[i] * factor;
  }

  void multiply(const T* x, const T* y, T* to, bool add = false) const {
    gemm<T>(n_, n_, n_, Matrix<const T>{x, n_, 1}, Matrix<const T>{y, n_, 1}, Matrix<T>{to, n_, 1},
            add);
  }

  T* part(int64_t i) const { return memory_.data() + i * size_; }

  const int64_t n_, size_;
  const Scratch<T> memory_;
  T *const a_ = part(0), *const a2_ = part(1), *const a3_ = part(2), *const a6_ = part(3),
           *const p_ = part(4), *const q_ = part(5), *const other_ = part(6);
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
