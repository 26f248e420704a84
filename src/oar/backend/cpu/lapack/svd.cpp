// Singular values.
#include <numeric>

#include "oar/backend/cpu/lapack/gauge.h"
#include "oar/backend/cpu/lapack/lanes_jacobi.h"
#include "oar/backend/cpu/lapack/least_squares.h"

namespace oar::cpu {
namespace {

using namespace lapack;

// By rows the library sees x^T = conj(v) s u^T. Its left vectors, one after another, are the rows of v^H, and its right ones by
// columns are u by rows: nothing needs to be turned.
template <class T>
class SingularSolver {
 public:
  using R = real_t<T>;
  // job: "N" values alone, "S" as many vectors as values, "A" all.
  SingularSolver(const MatrixShape& shape, const char* job)
      : rows_(as_int(shape.columns)),
        columns_(as_int(shape.rows)),
        inner_(*job == 'A' ? columns_ : std::min(rows_, columns_)),
        job_(job),
        a_(shape.size()),
        reals_(kComplex<T> ? real_size(*job != 'N') : 1),
        integers_(8 * int64_t{std::min(rows_, columns_)}),
        size_(wanted()),
        work_(size_) {}

  bool run(const T* x, R* s, T* u, T* vh) {
    const int64_t n = int64_t{rows_} * columns_;
    if (!all_finite(x, n)) return false;
    std::copy_n(x, n, a_.data());
    return call(s, vh, u, work_.data(), size_) == 0;
  }

 private:
  Int call(R* s, T* left, T* right, T* work, Int size) {
    Int info = 0;
    if constexpr (kComplex<T>)
      routines<T>().gesdd(job_, &rows_, &columns_, a_.data(), &rows_, s, left, &rows_, right,
                          &inner_, work, &size, reals_.data(), integers_.data(), &info, 1);
    else
      routines<T>().gesdd(job_, &rows_, &columns_, a_.data(), &rows_, s, left, &rows_, right,
                          &inner_, work, &size, integers_.data(), &info, 1);
    return info;
  }
  Int wanted() {
    T reported{};
    call(nullptr, nullptr, nullptr, &reported, -1);
    return wanted_size(reported);
  }
  int64_t real_size(bool vectors) const {
    const int64_t few = std::min(rows_, columns_), many = std::max(rows_, columns_);
    return vectors ? std::max(5 * few * few + 5 * few, 2 * many * few + 2 * few * few + few)
                   : 7 * few;
  }

  const Int rows_, columns_, inner_;
  const char* job_;
  const Scratch<T> a_;
  const Scratch<R> reals_;
  const Scratch<Int> integers_;
  const Int size_;
  const Scratch<T> work_;
};

// Of the pairs that belong to a singular value; the other vectors are fixed alone.
template <class T>
void fix_gauge(T* u, T* vh, int64_t m, int64_t width, int64_t pairs, int64_t n) {
  for (int64_t j = 0; j < width; ++j) {
    const Gauge<T> gauge = gauge_of(u + j, width, m);
    apply(gauge, u + j, width, m);
    if (j >= pairs) continue;
    const T back = conjugate(gauge.factor);
    for (int64_t i = 0; i < n; ++i) vh[j * n + i] = product(vh[j * n + i], back);
  }
}

// A group of small matrices. Wide ones are turned: x^T = u s v^H is x = conj(v) s u^T.
template <class T>
class SingularGroup {
 public:
  using R = real_t<T>;
  explicit SingularGroup(const MatrixShape& shape)
      : wide_(shape.rows < shape.columns),
        m_(std::max(shape.rows, shape.columns)),
        n_(std::min(shape.rows, shape.columns)) {}

  bool run(const T* x, int64_t used, bool vectors) {
    const int64_t size = m_ * n_;
    gather_lanes(x, size, used, size, wide_ ? v_ : a_);
    if (wide_)
      for (int64_t i = 0; i < m_; ++i)
        for (int64_t j = 0; j < n_; ++j) a_[i * n_ + j] = v_[j * m_ + i];
    const Reals<T> back = scale_to_one<T>(a_, size);
    if (!orthogonalise<T>(m_, n_, a_, vectors ? v_ : nullptr)) return false;
    for (int64_t j = 0; j < n_; ++j) {
      Reals<T> all{};
      for (int64_t i = 0; i < m_; ++i) all += squared(a_[i * n_ + j]);
      const Reals<T> length = square_root(all);
      values_[j] = length * back;
      lost_ = j == 0 ? all < SafeSquares<R>::kLow : lost_ | (all < SafeSquares<R>::kLow);
      if (vectors)
        for (int64_t i = 0; i < m_; ++i) a_[i * n_ + j] = a_[i * n_ + j] / length;
    }
    return true;
  }
  // Has the lane a value whose left vector is not known?
  bool lost(int64_t lane) const { return lost_[lane] != 0; }
  void values(int64_t lane, R* s) {
    std::iota(order_, order_ + n_, 0);
    std::stable_sort(order_, order_ + n_,
                     [&](int64_t i, int64_t j) { return values_[i][lane] > values_[j][lane]; });
    for (int64_t j = 0; j < n_; ++j) s[j] = values_[order_[j]][lane];
  }
  // In the order of the values that were read before.
  void vectors(int64_t lane, T* u, T* vh) const {
    for (int64_t j = 0; j < n_; ++j) {
      const int64_t from = order_[j];
      for (int64_t i = 0; i < m_; ++i) {
        const T value = lane_of<T>(a_[i * n_ + from], lane);
        (wide_ ? vh[j * m_ + i] : u[i * n_ + j]) = value;
      }
      for (int64_t i = 0; i < n_; ++i) {
        const T value = conjugate(lane_of<T>(v_[i * n_ + from], lane));
        (wide_ ? u[i * n_ + j] : vh[j * n_ + i]) = value;
      }
    }
  }

 private:
  const bool wide_;
  const int64_t m_, n_;
  Mask<T> lost_;
  Lanes<T> a_[kLanesJacobi * kLanesJacobi], v_[kLanesJacobi * kLanesJacobi];
  Reals<T> values_[kLanesJacobi];
  int64_t order_[kLanesJacobi];
};

// Values, and vectors if u is given. Matrices that rotations do not settle are left to LAPACK.
template <class T>
void singular_lanes(const MatrixShape& shape, const T* x, real_t<T>* s, T* u, T* vh,
                    Failure& failure) {
  const int64_t m = shape.rows, n = shape.columns, k = std::min(m, n);
  const double work = 40 * static_cast<double>(m * n) * static_cast<double>(k);
  over_groups<T>(shape.count, work, [&](int64_t first, int64_t used) {
    SingularGroup<T> group(shape);
    const bool settled = group.run(x + first * m * n, used, u != nullptr);
    for (int64_t lane = 0; lane < used; ++lane) {
      const int64_t i = first + lane;
      T unused{}, *ui = u == nullptr ? &unused : u + i * m * k,
                  *vi = u == nullptr ? &unused : vh + i * k * n;
      if (!all_finite(x + i * m * n, m * n)) {
        failure.report(i);
        continue;
      }
      if (settled && (u == nullptr || !group.lost(lane))) {
        group.values(lane, s + i * k);
        if (u != nullptr) group.vectors(lane, ui, vi);
      } else if (!SingularSolver<T>(shape, u == nullptr ? "N" : "S")
                      .run(x + i * m * n, s + i * k, ui, vi)) {
        failure.report(i);
        continue;
      }
      if (u != nullptr) fix_gauge(ui, vi, m, k, k, n);
    }
  });
}

// What a matrix without elements has: the unit vectors.
template <class T>
void fill_identity(T* out, const MatrixShape& shape) {
  for (int64_t i = 0; i < shape.count; ++i)
    for (int64_t j = 0; j < shape.size(); ++j)
      out[i * shape.size() + j] = T(j % (shape.columns + 1) == 0);
}

void svd(KernelCall& call) {
  const MatrixShape shape(call.in(0)), left(call.out(0)), right(call.out(2));
  const bool full = call.arg(1).as_bool();
  Failure failure;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = real_t<T>;
    const int64_t m = shape.rows, n = shape.columns, k = std::min(m, n);
    const Flat<T> x(call.in(0));
    const Result<T> u(call.out(0)), vh(call.out(2));
    const Result<R> s(call.out(1));
    if (shape.size() == 0) {
      fill_identity(u.data(), left);
      fill_identity(vh.data(), right);
    } else if (takes_rotations<T>(shape) && left.columns == k && right.rows == k) {
      singular_lanes(shape, x.data(), s.data(), u.data(), vh.data(), failure);
    } else if (shape.count > 0) {
      const double work = 14 * static_cast<double>(m * n) * static_cast<double>(k);
      over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
        SingularSolver<T> solver(shape, full ? "A" : "S");
        for (int64_t i = begin; i < end; ++i) {
          T *ui = u.data() + i * left.size(), *vi = vh.data() + i * right.size();
          if (solver.run(x.data() + i * m * n, s.data() + i * k, ui, vi))
            fix_gauge(ui, vi, m, left.columns, k, n);
          else
            failure.report(i);
        }
      });
    }
    u.finish();
    s.finish();
    vh.finish();
  });
  failure.raise(shape.count, kNoConvergence);
}

void svdvals(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  if (shape.count * shape.size() == 0) return;
  Failure failure;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t m = shape.rows, n = shape.columns, k = std::min(m, n);
    const Flat<T> x(call.in(0));
    const Result<real_t<T>> s(call.out(0));
    const double work = 4 * static_cast<double>(m * n) * static_cast<double>(k);
    T* none = nullptr;
    if (takes_rotations<T>(shape))
      singular_lanes(shape, x.data(), s.data(), none, none, failure);
    else
      over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
        SingularSolver<T> solver(shape, "N");
        T unused{};
        for (int64_t i = begin; i < end; ++i)
          if (!solver.run(x.data() + i * m * n, s.data() + i * k, &unused, &unused))
            failure.report(i);
      });
    s.finish();
  });
  failure.raise(shape.count, kNoConvergence);
}

// By singular vectors: small matrices, right sides that are not finite, which LAPACK would scale to zero, and an rcond of
// 1 and more, which cuts all values and LAPACK replaces by its own.
template <class T>
void least_squares_by_vectors(const MatrixShape& shape, const T* x, const T* y, int64_t columns,
                              double rcond, T* z, real_t<T>* s, Failure& failure) {
  const int64_t m = shape.rows, n = shape.columns, k = std::min(m, n);
  const Scratch<T> u(shape.count * m * k), vh(shape.count * k * n);
  if (takes_rotations<T>(shape)) {
    singular_lanes(shape, x, s, u.data(), vh.data(), failure);
  } else {
    SingularSolver<T> solver(shape, "S");
    for (int64_t i = 0; i < shape.count; ++i)
      if (!solver.run(x + i * m * n, s + i * k, u.data() + i * m * k, vh.data() + i * k * n))
        failure.report(i);
  }
  for (int64_t i = 0; i < shape.count; ++i)
    solve_by_vectors(shape, u.data() + i * m * k, s + i * k, vh.data() + i * k * n,
                     y + i * m * columns, columns, rcond, z + i * n * columns);
}

void least_squares(KernelCall& call) {
  const MatrixShape shape(call.in(0)), right(call.in(1));
  const double rcond = std::max(0.0, call.arg(2).as_double());
  Failure failure;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t m = shape.rows, n = shape.columns, k = std::min(m, n), columns = right.columns;
    const Flat<T> x(call.in(0)), y(call.in(1));
    const Result<T> z(call.out(0));
    const Result<real_t<T>> s(call.out(1));
    if (shape.size() == 0) {
      std::fill_n(z.data(), call.out(0).numel, T(0));
    } else if (shape.count > 0 && (takes_rotations<T>(shape) || columns == 0 || rcond >= 1 ||
                                   !all_finite(y.data(), call.in(1).numel))) {
      least_squares_by_vectors(shape, x.data(), y.data(), columns, rcond, z.data(), s.data(),
                               failure);
    } else if (shape.count > 0) {
      const double work = 6 * static_cast<double>(m * n) * static_cast<double>(k);
      over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
        LeastSquaresSolver<T> solver(shape, columns, rcond);
        for (int64_t i = begin; i < end; ++i)
          if (!all_finite(x.data() + i * m * n, m * n) ||
              !solver.run(x.data() + i * m * n, y.data() + i * m * columns, s.data() + i * k,
                          z.data() + i * n * columns))
            failure.report(i);
      });
    }
    z.finish();
    s.finish();
  });
  failure.raise(shape.count, kNoConvergence);
}

}  // namespace

KernelList svd_kernels() {
  static const oar_kernel list[] = {
      {"svd", 1, "cpu:lapack", nullptr, kernel_entry<svd>},
      {"svdvals", 1, "cpu:lapack", nullptr, kernel_entry<svdvals>},
      {"least_squares", 1, "cpu:lapack", nullptr, kernel_entry<least_squares>},
  };
  return list;
}

}  // namespace oar::cpu
