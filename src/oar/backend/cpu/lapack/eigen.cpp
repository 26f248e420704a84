// Eigenvalues and eigenvectors.
#include <numeric>

#include "oar/backend/cpu/lapack/gauge.h"
#include "oar/backend/cpu/lapack/lanes_schur.h"
#include "oar/backend/cpu/lapack/lanes_tridiagonal.h"
#include "oar/backend/cpu/lapack/two_by_two.h"

namespace oar::cpu {
namespace {

using namespace lapack;

// One routine with its working memory, for matrices of one size.
template <class T>
class HermitianSolver {
 public:
  using R = real_t<T>;
  HermitianSolver(int64_t n, bool vectors, bool upper)
      : n_(as_int(n)), job_(vectors ? "V" : "N"), half_(upper ? "L" : "U") {
    T wanted{};
    R reals{};
    Int integers = 0;
    const Int ask = -1;
    run(nullptr, nullptr, &wanted, ask, &reals, ask, &integers, ask);
    size_ = wanted_size(wanted);
    real_size_ = wanted_size(reals);
    integer_size_ = std::max<Int>(1, integers);
  }
  Int size() const { return size_; }
  Int real_size() const { return real_size_; }
  Int integer_size() const { return integer_size_; }
  // By rows the triangle is the other one than by columns.
  Int run(T* a, R* w, T* work, Int size, R* reals, Int real_size, Int* integers, Int integer_size) {
    Int info = 0;
    if constexpr (kComplex<T>)
      routines<T>().evd(job_, half_, &n_, a, &n_, w, work, &size, reals, &real_size, integers,
                        &integer_size, &info, 1, 1);
    else
      routines<T>().evd(job_, half_, &n_, a, &n_, w, work, &size, integers, &integer_size, &info, 1,
                        1);
    return info;
  }

 private:
  const Int n_;
  const char *job_, *half_;
  Int size_ = 1, real_size_ = 1, integer_size_ = 1;
};

// out[i, j] is element i of vector j. The library sees the conjugate of the matrix, and returns vectors one after another.
template <class T>
void store_vectors(T* found, int64_t n, T* out) {
  for (int64_t j = 0; j < n; ++j) {
    T* vector = found + j * n;
    if constexpr (kComplex<T>)
      for (int64_t i = 0; i < n; ++i) vector[i] = std::conj(vector[i]);
    apply(gauge_of(vector, 1, n), vector, 1, n);
  }
  transpose_into(found, n, n, out);
}

// Matrices begin to end of a batch by the library.
template <class T>
void hermitian_range(int64_t n, bool upper, int64_t begin, int64_t end, const T* x,
                     real_t<T>* values, T* vectors, Failure& failure) {
  HermitianSolver<T> solver(n, vectors != nullptr, upper);
  const Scratch<T> a(n * n), work(solver.size());
  const Scratch<real_t<T>> reals(solver.real_size());
  const Scratch<Int> integers(solver.integer_size());
  for (int64_t i = begin; i < end; ++i) {
    std::copy_n(x + i * n * n, n * n, a.data());
    if (!all_finite(a.data(), n * n) ||
        solver.run(a.data(), values + i * n, work.data(), solver.size(), reals.data(),
                   solver.real_size(), integers.data(), solver.integer_size()) != 0)
      failure.report(i);
    else if (vectors != nullptr)
      store_vectors(a.data(), n, vectors + i * n * n);
  }
}

// The matrices that a triangle of a[n, n] stands for.
template <class T>
void complete(int64_t n, bool upper, Lanes<T>* a) {
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] = from_real<T>(real_part(a[i * n + i]));
    for (int64_t j = 0; j < i; ++j)
      (upper ? a[i * n + j] : a[j * n + i]) = conjugated(upper ? a[j * n + i] : a[i * n + j]);
  }
}

// Small matrices, in lanes: by rotations, or from some size on by way of tridiagonal ones.
template <class T>
void hermitian_lanes(const MatrixShape& shape, bool upper, const T* x, real_t<T>* values,
                     T* vectors, Failure& failure) {
  const int64_t n = shape.rows;
  const double work = 40 * static_cast<double>(n * n * n);
  over_groups<T>(shape.count, work, [&](int64_t first, int64_t used) {
    const Scratch<Lanes<T>> a(n * n), space(vectors == nullptr ? 0 : n * n);
    Lanes<T>* const v = vectors == nullptr ? nullptr : space.data();
    Reals<T> found[kLanesTridiagonal], beside[kLanesTridiagonal];
    gather_lanes(x + first * n * n, n * n, used, n * n, a.data());
    complete<T>(n, upper, a.data());
    const Reals<T> back = scale_to_one<T>(a.data(), n * n);
    bool settled = false;
    if (n <= kLanesHermitianJacobi) {
      settled = diagonalise<T>(n, a.data(), v);
      for (int64_t j = 0; j < n; ++j) found[j] = real_part(a[j * (n + 1)]);
    } else {
      to_tridiagonal<T>(n, a.data(), found, beside, v);
      settled = TridiagonalIteration<T>(n, found, beside, v).run();
    }
    if (!settled)
      return hermitian_range(n, upper, first, first + used, x, values, vectors, failure);
    for (int64_t lane = 0; lane < used; ++lane) {
      const int64_t i = first + lane;
      if (!all_finite(x + i * n * n, n * n)) {
        failure.report(i);
        continue;
      }
      int64_t order[kLanesTridiagonal];
      T vector[kLanesTridiagonal];
      std::iota(order, order + n, 0);
      std::stable_sort(order, order + n, [&](int64_t left, int64_t right) {
        return found[left][lane] < found[right][lane];
      });
      for (int64_t j = 0; j < n; ++j) {
        values[i * n + j] = found[order[j]][lane] * back[lane];
        if (vectors == nullptr) continue;
        for (int64_t row = 0; row < n; ++row) vector[row] = lane_of<T>(v[row * n + order[j]], lane);
        apply(gauge_of(vector, 1, n), vector, 1, n);
        for (int64_t row = 0; row < n; ++row) vectors[(i * n + row) * n + j] = vector[row];
      }
    }
  });
}

void hermitian(KernelCall& call, bool wants_vectors) {
  const MatrixShape shape(call.in(0));
  const bool upper = call.arg(1).as_string() == "U";
  if (shape.count * shape.size() == 0) return;
  Failure failure;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t n = shape.rows;
    const Flat<T> x(call.in(0));
    const Result<real_t<T>> values(call.out(0));
    const Result<T> vectors(call.out(wants_vectors ? 1 : 0));
    T* found = wants_vectors ? vectors.data() : nullptr;
    if (takes_tridiagonal<T>(shape))
      hermitian_lanes(shape, upper, x.data(), values.data(), found, failure);
    else
      over_library_batch(
          shape.count, 9 * static_cast<double>(n * n * n), [&](int64_t begin, int64_t end) {
            hermitian_range(n, upper, begin, end, x.data(), values.data(), found, failure);
          });
    values.finish();
    if (wants_vectors) vectors.finish();
  });
  failure.raise(shape.count, kNoConvergence);
}

void eigh(KernelCall& call) { hermitian(call, true); }
void eigvalsh(KernelCall& call) { hermitian(call, false); }

template <class T>
class GeneralSolver {
 public:
  using R = real_t<T>;
  using C = std::complex<R>;
  GeneralSolver(int64_t n, bool vectors)
      : n_(as_int(n)),
        right_(vectors ? "V" : "N"),
        a_(n * n),
        vectors_(vectors ? n * n : 1),
        reals_(2 * n),
        size_(wanted(n)),
        work_(size_) {}

  // The matrix by rows; values and vectors of C, by rows too.
  bool run(const T* x, C* values, C* vectors) {
    const int64_t n = n_;
    if (!all_finite(x, n * n)) return false;
    transpose_into(x, n, n, a_.data());
    Int info = 0;
    if constexpr (kComplex<T>) {
      routines<T>().geev("N", right_, &n_, a_.data(), &n_, values, nullptr, &n_, vectors_.data(),
                         &n_, work_.data(), &size_, reals_.data(), &info, 1, 1);
    } else {
      R *real = reals_.data(), *imaginary = reals_.data() + n;
      routines<T>().geev("N", right_, &n_, a_.data(), &n_, real, imaginary, nullptr, &n_,
                         vectors_.data(), &n_, work_.data(), &size_, &info, 1, 1);
      for (int64_t j = 0; j < n; ++j) values[j] = {real[j], imaginary[j]};
    }
    if (info != 0) return false;
    if (vectors == nullptr) return true;
    for (int64_t j = 0; j < n; ++j) {
      unpack(j, values[j], vectors + j, n);
      apply(gauge_of(vectors + j, n, n), vectors + j, n, n);
    }
    return true;
  }

 private:
  // Vector j into a column. Of a real matrix the vectors of a conjugate pair are one complex vector, its parts in two columns.
  void unpack(int64_t j, C value, C* to, int64_t step) const {
    const int64_t n = n_;
    const T* column = vectors_.data() + j * n;
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (kComplex<T>)
        to[i * step] = column[i];
      else if (value.imag() == 0)
        to[i * step] = column[i];
      else
        to[i * step] =
            value.imag() > 0 ? C(column[i], column[n + i]) : C(column[i - n], -column[i]);
    }
  }
  Int wanted(int64_t n) {
    const Int size = as_int(n), ask = -1;
    Int info = 0;
    T reported{};
    R one{};
    if constexpr (kComplex<T>) {
      C value{};
      routines<T>().geev("N", right_, &size, nullptr, &size, &value, nullptr, &size, nullptr, &size,
                         &reported, &ask, &one, &info, 1, 1);
    } else {
      routines<T>().geev("N", right_, &size, nullptr, &size, &one, &one, nullptr, &size, nullptr,
                         &size, &reported, &ask, &info, 1, 1);
    }
    return wanted_size(reported);
  }

  const Int n_;
  const char* right_;
  const Scratch<T> a_, vectors_;
  const Scratch<R> reals_;
  const Int size_;
  const Scratch<T> work_;
};

// Values and vectors of one matrix of a group, whose Schur form is t.
template <class R>
void store_eigen(int64_t n, const R* t, const R* z, const R* scales, R back,
                 std::complex<R>* values, std::complex<R>* vectors) {
  using C = std::complex<R>;
  C x[kLanesSchur], made[kLanesSchur];
  R real_x[kLanesSchur], real_made[kLanesSchur];
  for (int64_t k = 0; k < n; ++k) {
    const R value = t[k * (n + 1)];
    if (k + 1 == n || t[(k + 1) * n + k] == 0) {
      values[k] = value * back;
      if (vectors == nullptr) continue;
      SchurVector<R, R>(n, t, k, value, real_x).run();
      store_schur_vector(n, z, scales, kLanes<R>, real_x, k + 1, real_made);
      for (int64_t i = 0; i < n; ++i) vectors[i * n + k] = real_made[i];
      continue;
    }
    const R turn = std::sqrt(std::abs(t[k * n + k + 1])) * std::sqrt(std::abs(t[(k + 1) * n + k]));
    values[k] = C(value * back, turn * back);
    values[k + 1] = std::conj(values[k]);
    ++k;
    if (vectors == nullptr) continue;
    SchurVector<C, R>(n, t, k, C(value, turn), x).run();
    store_schur_vector(n, z, scales, kLanes<R>, x, k + 1, made);
    for (int64_t i = 0; i < n; ++i) {
      vectors[i * n + k - 1] = made[i];
      vectors[i * n + k] = std::conj(made[i]);
    }
  }
}

// Small real matrices, in lanes; those with rows that LAPACK would exchange are left to it.
template <class R>
void general_lanes(const MatrixShape& shape, const R* x, std::complex<R>* values,
                   std::complex<R>* vectors, Failure& failure) {
  using V = Reals<R>;
  const int64_t n = shape.rows, size = n * n;
  constexpr int64_t kWidth = kLanes<R>;
  over_groups<R>(
      shape.count, 25 * static_cast<double>(n * n * n), [&](int64_t first, int64_t used) {
        const Scratch<V> a(size), z(vectors == nullptr ? 0 : size);
        const Scratch<R> t(size * kWidth), turns(vectors == nullptr ? 0 : size * kWidth);
        V scales[kLanesSchur];
        gather_lanes(x + first * size, size, used, size, a.data());
        V zero{};
        for (int64_t i = 0; i < size; ++i) zero += a[i] * 0;
        const Mask<R> finite = zero == 0;
        if (any_lane(~finite))
          for (int64_t i = 0; i < size; ++i) a[i] = where(finite, a[i], V{});
        const V back = scale_to_one<R>(a.data(), size);
        const Mask<R> isolated = balance<R>(n, a.data(), scales);
        V* const transform = vectors == nullptr ? nullptr : z.data();
        to_hessenberg<R>(n, a.data(), transform);
        const bool settled = SchurIteration<R>(n, a.data(), transform).run();
        scatter_lanes(a.data(), size, t.data(), size, kWidth);
        if (vectors != nullptr) scatter_lanes(z.data(), size, turns.data(), size, kWidth);
        for (int64_t lane = 0; lane < used; ++lane) {
          const int64_t i = first + lane;
          std::complex<R>* own = vectors == nullptr ? nullptr : vectors + i * size;
          if (finite[lane] == 0) {
            failure.report(i);
          } else if (settled && isolated[lane] == 0) {
            store_eigen<R>(n, t.data() + lane * size, turns.data() + (own ? lane * size : 0),
                           reinterpret_cast<const R*>(scales) + lane, back[lane], values + i * n,
                           own);
          } else if (!GeneralSolver<R>(n, own != nullptr).run(x + i * size, values + i * n, own)) {
            failure.report(i);
          }
        }
      });
}

void general(KernelCall& call, bool wants_vectors) {
  const MatrixShape shape(call.in(0));
  if (shape.count * shape.size() == 0) return;
  Failure failure;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::complex<real_t<T>>;
    const int64_t n = shape.rows;
    const Flat<T> x(call.in(0));
    const Result<C> values(call.out(0));
    const Result<C> vectors(call.out(wants_vectors ? 1 : 0));
    C* found = wants_vectors ? vectors.data() : nullptr;
    bool done = false;
    if constexpr (!kComplex<T>) {
      done = n > 2 && n <= kLanesSchur && fills_lanes<T>(shape.count);
      if (done) general_lanes(shape, x.data(), values.data(), found, failure);
    }
    if (n == 2)
      over_batch(shape.count, 100, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          if (!all_finite(x.data() + i * 4, 4))
            failure.report(i);
          else
            eigen_two(x.data() + i * 4, values.data() + i * 2, found ? found + i * 4 : nullptr);
      });
    else if (!done)
      over_library_batch(shape.count, 25 * static_cast<double>(n * n * n),
                         [&](int64_t begin, int64_t end) {
                           GeneralSolver<T> solver(n, wants_vectors);
                           for (int64_t i = begin; i < end; ++i)
                             if (!solver.run(x.data() + i * n * n, values.data() + i * n,
                                             found ? found + i * n * n : nullptr))
                               failure.report(i);
                         });
    values.finish();
    if (wants_vectors) vectors.finish();
  });
  failure.raise(shape.count, kNoConvergence);
}

void eig(KernelCall& call) { general(call, true); }
void eigvals(KernelCall& call) { general(call, false); }

}  // namespace

KernelList eigen_kernels() {
  static const oar_kernel list[] = {
      {"eigh", 1, "cpu:lapack", nullptr, kernel_entry<eigh>},
      {"eigvalsh", 1, "cpu:lapack", nullptr, kernel_entry<eigvalsh>},
      {"eig", 1, "cpu:lapack", nullptr, kernel_entry<eig>},
      {"eigvals", 1, "cpu:lapack", nullptr, kernel_entry<eigvals>},
  };
  return list;
}

}  // namespace oar::cpu
