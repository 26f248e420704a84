// Singular values.
#include "oar/backend/cpu/lapack/gauge.h"

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

}  // namespace

KernelList svd_kernels() {
  static const oar_kernel list[] = {
      {"svd", 1, "cpu:lapack", nullptr, kernel_entry<svd>},
      {"svdvals", 1, "cpu:lapack", nullptr, kernel_entry<svdvals>},
  };
  return list;
}

}  // namespace oar::cpu
