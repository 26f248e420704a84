// LU factors and determinants.
#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/lapack/lanes_lu.h"
#include "oar/backend/cpu/lapack/small.h"

namespace oar::cpu {
namespace {

using namespace lapack;

// Columns that the library factors at a time. Matrices of fewer than twice as many are its own altogether.
constexpr int64_t kBlockLu = 128;

// In place, by blocks of columns: only those are turned for the library, and rows are exchanged where they are contiguous.
template <class T>
void factor_blocks(int64_t m, int64_t n, T* a, Int* pivots, Int* info) {
  const int64_t count = std::min(m, n);
  const Scratch<T> block(m * kBlockLu);
  *info = 0;
  for (int64_t first = 0; first < count; first += kBlockLu) {
    const int64_t width = std::min(kBlockLu, count - first), height = m - first;
    const int64_t end = first + width, right = n - end;
    T *corner = a + first * n + first, *beside = corner + width;
    transpose_part(corner, n, height, width, block.data(), height);
    const Int rows = as_int(height), columns = as_int(width), others = as_int(right),
              step = as_int(n);
    Int zero = 0;
    routines<T>().getrf(&rows, &columns, block.data(), &rows, pivots + first, &zero);
    if (zero > 0 && *info == 0) *info = static_cast<Int>(first + zero);
    for (int64_t j = first; j < end; ++j) {
      T* row = a + j * n;
      pivots[j] += static_cast<Int>(first);
      T* other = a + (pivots[j] - 1) * n;
      if (row == other) continue;
      std::swap_ranges(row, row + first, other);
      std::swap_ranges(row + end, row + n, other + end);
    }
    transpose_part(block.data(), height, width, height, corner, n);
    if (right == 0) continue;
    const T one = 1;  // the rows beside the block, seen as columns
    routines<T>().trsm("R", "L", "T", "U", &others, &columns, &one, block.data(), &rows, beside,
                       &step, 1, 1, 1, 1);
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = width; i < height; ++i) block[j * height + i] = -block[j * height + i];
    gemm<T>(height - width, right, width, Matrix<const T>{block.data() + width, 1, height},
            Matrix<const T>{beside, n, 1}, Matrix<T>{beside + width * n, n, 1}, true);
  }
}

// Rows in order, as users see them, and columns in order, as the library does.
template <class T>
void factor_large(const MatrixShape& shape, const T* x, T* a, Int* pivots, Int* infos) {
  const int64_t m = shape.rows, n = shape.columns, count = std::min(m, n);
  const Int rows = as_int(m), columns = as_int(n);
  const bool in_blocks = !kComplex<T> && count >= 2 * kBlockLu;
  over_library_batch(shape.count, static_cast<double>(m * n) * static_cast<double>(count) * 2 / 3,
                     [&](int64_t begin, int64_t end) {
                       const Scratch<T> turned(in_blocks ? 0 : m * n);
                       for (int64_t i = begin; i < end; ++i) {
                         T* factors = a + i * m * n;
                         if (in_blocks) {
                           std::copy_n(x + i * m * n, m * n, factors);
                           factor_blocks(m, n, factors, pivots + i * count, infos + i);
                           continue;
                         }
                         transpose_into(x + i * m * n, m, n, turned.data());
                         routines<T>().getrf(&rows, &columns, turned.data(), &rows,
                                             pivots + i * count, infos + i);
                         transpose_into(turned.data(), n, m, factors);
                       }
                     });
}

template <class T>
void factor_small(const MatrixShape& shape, T* a, Int* pivots, Int* infos) {
  with_size(shape.rows, [&](auto n) {
    over_batch(shape.count, static_cast<double>(n * n * n) + 20, [&](int64_t begin, int64_t end) {
      bool odd = false;
      for (int64_t i = begin; i < end; ++i) {
        infos[i] = static_cast<Int>(small_lu(n, a + i * n * n, pivots + i * n, &odd));
        for (int64_t j = 0; j < n; ++j) ++pivots[i * n + j];
      }
    });
  });
}

// Many matrices: in lanes, which leave factors in the order in which they were computed.
template <class T>
void factor_lanes(const MatrixShape& shape, T* a, Int* pivots, Int* infos) {
  const int64_t n = shape.rows;
  over_groups<T>(shape.count, static_cast<double>(n * n * n), [&](int64_t first, int64_t used) {
    const Scratch<Lanes<T>> group(n * n);
    const Scratch<Mask<T>> rows(n);
    gather_lanes(a + first * n * n, n * n, used, n * n, group.data());
    eliminate<T>(n, n, group.data(), rows.data());
    scatter_lanes(group.data(), n * n, a + first * n * n, n * n, used);
    for (int64_t lane = 0; lane < used; ++lane) {
      T* each = a + (first + lane) * n * n;
      Int zero = 0;
      for (int64_t j = 0; j < n; ++j) {
        const int64_t row = rows[j][lane];
        pivots[(first + lane) * n + j] = static_cast<Int>(row + 1);
        if (row != j) std::swap_ranges(each + j * n, each + j * n + j, each + row * n);
        if (zero == 0 && each[j * n + j] == T(0)) zero = static_cast<Int>(j + 1);
      }
      infos[first + lane] = zero;
    }
  });
}

void lu_factor(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  auto* pivots = static_cast<Int*>(call.out(1).data);
  auto* infos = static_cast<Int*>(call.out(2).data);
  if (shape.size() == 0) {
    std::fill_n(infos, shape.count, 0);
    return;
  }
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Result<T> result(call.out());
    const bool square = shape.rows == shape.columns;
    if (!square || shape.rows > kLanesLu || (shape.rows > kSmall && !fills_lanes<T>(shape.count))) {
      const Flat<T> flat(call.in(0));
      factor_large(shape, flat.data(), result.data(), pivots, infos);
      return result.finish();
    }
    copy_elements(FlatTensor(call.out(), result.data(), dtype_for<T>).get(), call.in(0));
    if (shape.rows >= kLeastLanesLu && fills_lanes<T>(shape.count))
      factor_lanes(shape, result.data(), pivots, infos);
    else
      factor_small(shape, result.data(), pivots, infos);
    result.finish();
  });
}

void pivot_permutation(KernelCall& call) {
  const oar_tensor& given = call.in(0);
  const int64_t count = given.shape[given.ndim - 1], rows = call.arg(1).as_int();
  auto* out = static_cast<int64_t*>(call.out().data);
  if (call.out().numel == 0) return;
  const Flat<int64_t> flat(given);
  for (int64_t i = 0; i < call.out().numel / rows; ++i) {
    int64_t* order = out + i * rows;
    for (int64_t j = 0; j < rows; ++j) order[j] = j;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t other = flat.data()[i * count + j];
      user_check(other >= 1 && other <= rows, ErrorKind::InvalidArgument,
                 "a pivot is {}; it must be the number of a row, from 1 to {}.", other, rows);
      std::swap(order[j], order[other - 1]);
    }
  }
}

// The same as over_pivots, in lanes; body gets the diagonal alone.
template <class T, class Body>
void over_lane_pivots(const MatrixShape& shape, const T* x, Body&& body) {
  const int64_t n = shape.rows;
  over_groups<T>(shape.count, static_cast<double>(n * n * n), [&](int64_t first, int64_t used) {
    const Scratch<Lanes<T>> group(n * n);
    const Scratch<Mask<T>> rows(n);
    T diagonal[kLanesLu];
    gather_lanes(x + first * n * n, n * n, used, n * n, group.data());
    eliminate<T>(n, n, group.data(), rows.data());
    for (int64_t lane = 0; lane < used; ++lane) {
      bool odd = false;
      for (int64_t j = 0; j < n; ++j) {
        odd ^= rows[j][lane] != j;
        diagonal[j] = lane_of<T>(group[j * (n + 1)], lane);
      }
      body(first + lane, diagonal, n, 1, odd);
    }
  });
}

// body(i, diagonal, n, step, odd) on the diagonal of U of each matrix, and whether rows were exchanged an odd number of times.
template <class T, class Body>
void over_pivots(const MatrixShape& shape, const oar_tensor& x, Body&& body) {
  const int64_t n = shape.rows;
  const Flat<T> flat(x);
  if (n >= kLeastLanesDet && n <= kLanesLu && fills_lanes<T>(shape.count))
    return over_lane_pivots<T>(shape, flat.data(), body);
  if (n <= kSmall) {
    with_size(n, [&](auto size) {
      over_batch(shape.count, static_cast<double>(n * n * n) + 20, [&](int64_t begin, int64_t end) {
        T a[kSmall * kSmall];
        Int rows[kSmall];
        bool odd = false;
        for (int64_t i = begin; i < end; ++i) {
          std::copy_n(flat.data() + i * size * size, size * size, a);
          small_lu(size, a, rows, &odd);
          body(i, a, size, n + 1, odd);
        }
      });
    });
    return;
  }
  const Int size = as_int(n);
  over_library_batch(shape.count, 2.0 / 3 * static_cast<double>(n * n * n),
                     [&](int64_t begin, int64_t end) {
                       const Scratch<T> a(n * n);
                       const Scratch<Int> pivots(n);
                       for (int64_t i = begin; i < end; ++i) {
                         std::copy_n(flat.data() + i * n * n, n * n, a.data());
                         Int info = 0;
                         routines<T>().getrf(&size, &size, a.data(), &size, pivots.data(), &info);
                         bool odd = false;
                         for (int64_t j = 0; j < n; ++j) odd ^= pivots[j] != j + 1;
                         body(i, a.data(), n, n + 1, odd);
                       }
                     });
}

void det(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Result<T> result(call.out());
    over_pivots<T>(shape, call.in(0),
                   [&](int64_t i, const T* diagonal, auto n, int64_t step, bool odd) {
                     T value = odd ? T(-1) : T(1);
                     for (int64_t j = 0; j < n; ++j) value = product(value, diagonal[j * step]);
                     result.data()[i] = value;
                   });
    result.finish();
  });
}

void slogdet_parts(KernelCall& call) {
  const MatrixShape shape(call.in(0));
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = real_t<T>;
    const Result<T> signs(call.out(0));
    const Result<R> logarithms(call.out(1));
    over_pivots<T>(shape, call.in(0),
                   [&](int64_t i, const T* diagonal, auto n, int64_t step, bool odd) {
                     T sign = odd ? T(-1) : T(1);
                     R sum = 0;
                     for (int64_t j = 0; j < n; ++j) {
                       const T pivot = diagonal[j * step];
                       const R magnitude = std::abs(pivot);
                       sum += std::log(magnitude);
                       sign = magnitude == 0 ? T(0) : product(sign, pivot / magnitude);
                     }
                     signs.data()[i] = sign;
                     logarithms.data()[i] = sum;
                   });
    signs.finish();
    logarithms.finish();
  });
}

}  // namespace

KernelList lu_kernels() {
  static const oar_kernel list[] = {
      {"lu_factor", 1, "cpu:lapack", nullptr, kernel_entry<lu_factor>},
      {"pivot_permutation", 1, "cpu:generic", nullptr, kernel_entry<pivot_permutation>},
      {"det", 1, "cpu:lapack", nullptr, kernel_entry<det>},
      {"slogdet_parts", 1, "cpu:lapack", nullptr, kernel_entry<slogdet_parts>},
  };
  return list;
}

}  // namespace oar::cpu
