// Cholesky factors.
#include "oar/backend/cpu/lapack/small.h"

namespace oar::cpu {
namespace {

using namespace lapack;

// The triangle that is not part of the factor.
template <class T>
void clear_other_half(T* a, int64_t n, bool upper) {
  for (int64_t i = 0; i < n; ++i)
    upper ? std::fill(a + i * n, a + i * n + i, T(0))
          : std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
}

// In place; the other half of `a` keeps its content. What is lower in rows is upper in columns.
template <class T>
bool factor(T* a, int64_t n, bool upper) {
  const Int size = as_int(n);
  Int info = 0;
  routines<T>().potrf(upper ? "L" : "U", &size, a, &size, &info, 1);
  return info == 0;
}

// Our own loop factors the lower half; an upper factor of a is the conjugate transpose of the lower one of a^H.
template <class T, class N>
bool factor_small(N n, T* a, bool upper) {
  if (!upper) return small_cholesky(n, a);
  const auto turn = [&] {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < i; ++j) {
        const T below = a[i * n + j];
        a[i * n + j] = conjugate(a[j * n + i]);
        a[j * n + i] = conjugate(below);
      }
  };
  turn();
  const bool done = small_cholesky(n, a);
  turn();
  return done;
}

void cholesky(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  const bool upper = call.arg(1).as_bool();
  if (call.out().numel == 0) return;
  Failure failure;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Result<T> result(call.out());
    T* out = result.data();
    copy_elements(FlatTensor(call.out(), out, dtype_for<T>).get(), call.in(0));
    const int64_t n = shape.rows;
    const double work = static_cast<double>(n * n * n) / 3;
    if (n <= kSmall)
      with_size(n, [&](auto size) {
        over_batch(shape.count, work + 20, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            if (!factor_small(size, out + i * size * size, upper)) failure.report(i);
            clear_other_half(out + i * size * size, size, upper);
          }
        });
      });
    else
      over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (!factor(out + i * n * n, n, upper)) failure.report(i);
          clear_other_half(out + i * n * n, n, upper);
        }
      });
    result.finish();
  });
  failure.raise(
      shape.count,
      "is not positive definite.\nhint: Add a small multiple of the identity to x, or use "
      "oar.linalg.eigh, which takes any Hermitian matrix.");
}

}  // namespace

KernelList cholesky_kernels() {
  static const oar_kernel list[] = {
      {"cholesky", 1, "cpu:lapack", nullptr, kernel_entry<cholesky>},
  };
  return list;
}

}  // namespace oar::cpu
