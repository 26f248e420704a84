// QR factors. By rows the library sees x^T, whose LQ factors they are.
#include "oar/backend/cpu/lapack/lanes_qr.h"

namespace oar::cpu {
namespace {

using namespace lapack;

// Rows 0 ... count of a [rows of `stride`] become orthonormal vectors of length m, by the reflections that they hold.
template <class T>
Int vectors_size(int64_t count, int64_t m, int64_t reflections) {
  const Int rows = as_int(count), length = as_int(m), k = as_int(reflections), ask = -1;
  Int info = 0;
  T reported{};
  routines<T>().glq(&rows, &length, &k, nullptr, &rows, nullptr, &reported, &ask, &info);
  return wanted_size(reported);
}

template <class T>
Int factor_size(int64_t n, int64_t m) {
  const Int rows = as_int(n), length = as_int(m), ask = -1;
  Int info = 0;
  T reported{};
  routines<T>().gelqf(&rows, &length, nullptr, &rows, nullptr, &reported, &ask, &info);
  return wanted_size(reported);
}

template <class T>
void fill_identity(T* out, const MatrixShape& shape) {
  for (int64_t i = 0; i < shape.count; ++i)
    for (int64_t j = 0; j < shape.size(); ++j)
      out[i * shape.size() + j] = T(j % (shape.columns + 1) == 0);
}

// Many small matrices, in lanes.
template <class T>
void factor_lanes(const MatrixShape& shape, const MatrixShape& left, const MatrixShape& right,
                  const T* x, T* q, T* r) {
  const int64_t m = shape.rows, n = shape.columns, width = left.columns;
  const double work = 4 * static_cast<double>(m * n) * static_cast<double>(std::min(m, n));
  over_groups<T>(shape.count, work, [&](int64_t first, int64_t used) {
    const Scratch<Lanes<T>> a(m * n), vectors(m * width);
    gather_lanes(x + first * m * n, m * n, used, m * n, a.data());
    factor_qr<T>(m, n, width, a.data(), vectors.data());
    for (int64_t i = 1; i < m; ++i) std::fill_n(a.data() + i * n, std::min(i, n), Lanes<T>{});
    scatter_lanes(a.data(), right.size(), r + first * right.size(), right.size(), used);
    scatter_lanes(vectors.data(), left.size(), q + first * left.size(), left.size(), used);
  });
}

void qr_parts(KernelCall& call) {
  const MatrixShape shape(call.in(0)), left(call.out(0)), right(call.out(1));
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t m = shape.rows, n = shape.columns, k = std::min(m, n), width = left.columns;
    const Flat<T> x(call.in(0));
    const Result<T> q(call.out(0)), r(call.out(1));
    if (shape.size() == 0) {
      fill_identity(q.data(), left);
    } else if (std::max(m, n) <= kLanesQr && fills_lanes<T>(shape.count)) {
      factor_lanes(shape, left, right, x.data(), q.data(), r.data());
    } else if (shape.count > 0) {
      const Int rows = as_int(n), length = as_int(m), vectors = as_int(width), count = as_int(k);
      const double work = 4 * static_cast<double>(m * n) * static_cast<double>(k);
      over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
        const Int size = std::max(factor_size<T>(n, m), vectors_size<T>(width, m, k));
        const Scratch<T> a(m * n), tau(k), space(size);
        Int info = 0;
        for (int64_t i = begin; i < end; ++i) {
          std::copy_n(x.data() + i * m * n, m * n, a.data());
          routines<T>().gelqf(&rows, &length, a.data(), &rows, tau.data(), space.data(), &size,
                              &info);
          T *qi = q.data() + i * left.size(), *ri = r.data() + i * right.size();
          for (int64_t j = 0; j < right.rows; ++j)
            for (int64_t c = 0; c < n; ++c) ri[j * n + c] = c < j ? T(0) : a[j * n + c];
          for (int64_t j = 0; j < m; ++j) std::copy_n(a.data() + j * n, k, qi + j * width);
          routines<T>().glq(&vectors, &length, &count, qi, &vectors, tau.data(), space.data(),
                            &size, &info);
        }
      });
    }
    q.finish();
    r.finish();
  });
}

void householder_product(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  const oar_tensor& factors = call.in(1);
  if (call.out().numel == 0) return;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t m = shape.rows, n = shape.columns, k = factors.shape[factors.ndim - 1];
    const Flat<T> tau(factors);
    const Result<T> result(call.out());
    copy_elements(FlatTensor(call.out(), result.data(), dtype_for<T>).get(), call.in(0));
    const Int rows = as_int(n), length = as_int(m), count = as_int(k);
    const double work = 4 * static_cast<double>(m * n) * static_cast<double>(n);
    over_library_batch(shape.count, work, [&](int64_t begin, int64_t end) {
      const Int size = vectors_size<T>(n, m, k);
      const Scratch<T> space(size), conjugated(k);
      Int info = 0;
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < k; ++j) conjugated[j] = conjugate(tau.data()[i * k + j]);
        routines<T>().glq(&rows, &length, &count, result.data() + i * m * n, &rows,
                          conjugated.data(), space.data(), &size, &info);
      }
    });
    result.finish();
  });
}

}  // namespace

KernelList qr_kernels() {
  static const oar_kernel list[] = {
      {"qr_parts", 1, "cpu:lapack", nullptr, kernel_entry<qr_parts>},
      {"householder_product", 1, "cpu:lapack", nullptr, kernel_entry<householder_product>},
  };
  return list;
}

}  // namespace oar::cpu
