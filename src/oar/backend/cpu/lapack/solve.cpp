// Systems of linear equations, and inverses.
#include "oar/backend/cpu/lapack/lanes_lu.h"
#include "oar/backend/cpu/lapack/small.h"

namespace oar::cpu {
namespace {

using namespace lapack;

constexpr const char* kSingular =
    "is singular.\nhint: Use oar.linalg.lstsq or oar.linalg.pinv, which take any matrix.";

// b[n, columns] = T^-1 b, in place, where T is a triangle of a (its adjoint, if asked for).
template <class T, class N>
void small_triangular(N n, const T* a, T* b, int64_t columns, bool upper, bool adjoint, bool unit) {
  const bool backwards = upper != adjoint;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = backwards ? n - 1 - step : step;
    for (int64_t done = 0; done < step; ++done) {
      const int64_t j = backwards ? n - 1 - done : done;
      const T factor = adjoint ? conjugate(a[j * n + i]) : a[i * n + j];
      for (int64_t k = 0; k < columns; ++k)
        b[i * columns + k] -= product(factor, b[j * columns + k]);
    }
    if (unit) continue;
    const T inverse = T(1) / (adjoint ? conjugate(a[i * n + i]) : a[i * n + i]);
    for (int64_t k = 0; k < columns; ++k) b[i * columns + k] = product(b[i * columns + k], inverse);
  }
}

void triangular_solve_core(KernelCall& call) {
  const MatrixShape shape(call.in(0)), right(call.in(1));
  const bool upper = call.arg(2).as_bool(), adjoint = call.arg(3).as_bool(),
             unit = call.arg(4).as_bool();
  if (call.out().numel == 0) return;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> flat(call.in(0));
    const Result<T> result(call.out());
    const T* a = flat.data();
    T* b = result.data();
    copy_elements(FlatTensor(call.out(), b, dtype_for<T>).get(), call.in(1));
    const int64_t n = shape.rows, columns = right.columns;
    const double work = static_cast<double>(n * n * columns);
    if (n <= kSmall) {
      with_size(n, [&](auto size) {
        over_batch(shape.count, work + 20, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            small_triangular(size, a + i * size * size, b + i * size * columns, columns, upper,
                             adjoint, unit);
        });
      });
    } else {
      // By rows the matrices are the transposes of what the library sees: z^T T^T = y^T.
      const Int wide = as_int(columns), size = as_int(n);
      const T one = 1;
      over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          routines<T>().trsm("R", upper ? "L" : "U", adjoint ? "C" : "N", unit ? "U" : "N", &wide,
                             &size, &one, a + i * n * n, &size, b + i * n * columns, &wide, 1, 1, 1,
                             1);
      });
    }
    result.finish();
  });
}

// Each matrix of x is factored in its own memory, and the right side is solved in place.
template <class T>
void solve_large(const MatrixShape& shape, int64_t columns, const oar_tensor& x, T* b,
                 Failure& failure) {
  const int64_t n = shape.rows;
  const Flat<T> flat(x);
  const Int size = as_int(n), wide = as_int(columns);
  const double work = static_cast<double>(n * n) *
                      (2.0 / 3 * static_cast<double>(n) + 2 * static_cast<double>(columns));
  over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
    const Scratch<T> factors(n * n), turned(columns == 1 ? 0 : n * columns);
    const Scratch<Int> pivots(n);
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(flat.data() + i * n * n, n * n, factors.data());
      Int info = 0;
      routines<T>().getrf(&size, &size, factors.data(), &size, pivots.data(), &info);
      if (info != 0) {
        failure.report(i);
        continue;
      }
      // The library sees x^T, so it solves with the transpose of what it factored.
      T* right = b + i * n * columns;
      T* by_columns = columns == 1 ? right : turned.data();
      if (columns != 1) transpose_into(right, n, columns, by_columns);
      routines<T>().getrs("T", &size, &wide, factors.data(), &size, pivots.data(), by_columns,
                          &size, &info, 1);
      if (columns != 1) transpose_into(by_columns, columns, n, right);
    }
  });
}

// x z = b in lanes, by elimination of x and b side by side; without b, of x and the identity.
template <class T>
void solve_lanes(const MatrixShape& shape, int64_t columns, const T* x, const T* b, T* out,
                 Failure& failure) {
  const int64_t n = shape.rows, width = n + columns;
  over_groups<T>(shape.count, static_cast<double>(n * n * width), [&](int64_t first, int64_t used) {
    const Scratch<Lanes<T>> both(n * width), part(n * std::max(n, columns));
    const Scratch<Mask<T>> rows(n);
    gather_lanes(x + first * n * n, n * n, used, n * n, part.data());
    for (int64_t i = 0; i < n; ++i) std::copy_n(part.data() + i * n, n, both.data() + i * width);
    if (b != nullptr)
      gather_lanes(b + first * n * columns, n * columns, used, n * columns, part.data());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < columns; ++k)
        both[i * width + n + k] = b != nullptr
                                      ? part[i * columns + k]
                                      : from_real<T>(all_lanes<T>(static_cast<real_t<T>>(i == k)));
    eliminate<T>(n, width, both.data(), rows.data());
    const Mask<T> regular = is_regular<T>(n, width, both.data());
    for (int64_t lane = 0; lane < used; ++lane)
      if (regular[lane] == 0) failure.report(first + lane);
    substitute_back<T>(n, width, both.data());
    for (int64_t i = 0; i < n; ++i)
      std::copy_n(both.data() + i * width + n, columns, part.data() + i * columns);
    scatter_lanes(part.data(), n * columns, out + first * n * columns, n * columns, used);
  });
}

void solve_core(KernelCall& call) {
  const MatrixShape shape(call.in(0)), right(call.in(1));
  if (call.out().numel == 0) return;
  Failure failure;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Result<T> result(call.out());
    T* b = result.data();
    copy_elements(FlatTensor(call.out(), b, dtype_for<T>).get(), call.in(1));
    const int64_t n = shape.rows, columns = right.columns;
    if (n >= kLeastLanesLu && n <= kLanesLu && columns <= 4 * kLanesLu &&
        fills_lanes<T>(shape.count)) {
      const Flat<T> flat(call.in(0));
      solve_lanes<T>(shape, columns, flat.data(), b, b, failure);
    } else if (n > kSmall) {
      solve_large<T>(shape, columns, call.in(0), b, failure);
    } else {
      const Flat<T> flat(call.in(0));
      with_size(n, [&](auto size) {
        over_batch(shape.count, static_cast<double>(n * n * (n + columns)) + 20,
                   [&](int64_t begin, int64_t end) {
                     T factors[kSmall * kSmall];
                     Int rows[kSmall];
                     bool odd = false;
                     for (int64_t i = begin; i < end; ++i) {
                       std::copy_n(flat.data() + i * size * size, size * size, factors);
                       if (small_lu(size, factors, rows, &odd) != 0)
                         failure.report(i);
                       else
                         small_lu_solve(size, factors, rows, b + i * size * columns, columns);
                     }
                   });
      });
    }
    result.finish();
  });
  failure.raise(shape.count, kSingular);
}

// The inverse of x^T, which the library sees, is the transpose of the inverse.
template <class T>
void invert_large(const MatrixShape& shape, T* a, Failure& failure) {
  const int64_t n = shape.rows;
  const Int size = as_int(n);
  over_library_batch(
      shape.count, 2 * static_cast<double>(n * n * n), [&](int64_t begin, int64_t end) {
        const Scratch<Int> pivots(n);
        Int info = 0, ask = -1;
        T wanted{};
        routines<T>().getri(&size, a, &size, pivots.data(), &wanted, &ask, &info);
        const Int length = std::max(wanted_size(wanted), size);
        const Scratch<T> work(length);
        for (int64_t i = begin; i < end; ++i) {
          routines<T>().getrf(&size, &size, a + i * n * n, &size, pivots.data(), &info);
          if (info == 0)
            routines<T>().getri(&size, a + i * n * n, &size, pivots.data(), work.data(), &length,
                                &info);
          if (info != 0) failure.report(i);
        }
      });
}

void inverse(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  if (call.out().numel == 0) return;
  Failure failure;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Result<T> result(call.out());
    T* out = result.data();
    const int64_t n = shape.rows;
    if (n >= kLeastLanesLu && n <= kLanesLu && fills_lanes<T>(shape.count)) {
      const Flat<T> flat(call.in(0));
      solve_lanes<T>(shape, n, flat.data(), nullptr, out, failure);
    } else if (n > kSmall) {
      copy_elements(FlatTensor(call.out(), out, dtype_for<T>).get(), call.in(0));
      invert_large(shape, out, failure);
    } else {
      const Flat<T> flat(call.in(0));
      with_size(n, [&](auto size) {
        over_batch(shape.count, static_cast<double>(2 * n * n * n) + 20,
                   [&](int64_t begin, int64_t end) {
                     T factors[kSmall * kSmall];
                     Int rows[kSmall];
                     bool odd = false;
                     for (int64_t i = begin; i < end; ++i) {
                       T* b = out + i * size * size;
                       std::copy_n(flat.data() + i * size * size, size * size, factors);
                       if (small_lu(size, factors, rows, &odd) != 0) {
                         failure.report(i);
                         continue;
                       }
                       for (int64_t j = 0; j < size * size; ++j) b[j] = T(j % (size + 1) == 0);
                       small_lu_solve(size, factors, rows, b, size);
                     }
                   });
      });
    }
    result.finish();
  });
  failure.raise(shape.count, kSingular);
}

}  // namespace

KernelList solve_kernels() {
  static const oar_kernel list[] = {
      {"triangular_solve_core", 1, "cpu:lapack", nullptr, kernel_entry<triangular_solve_core>},
      {"solve_core", 1, "cpu:lapack", nullptr, kernel_entry<solve_core>},
      {"inverse", 1, "cpu:lapack", nullptr, kernel_entry<inverse>},
  };
  return list;
}

}  // namespace oar::cpu
