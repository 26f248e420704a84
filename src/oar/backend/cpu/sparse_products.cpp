// Products with sparse matrices.
#include <algorithm>
#include <cmath>

#include "oar/backend/cpu/sparse/row_products.h"

namespace oar::cpu {
namespace {

// Index vectors of one type: int32 if both are, else int64.
template <class F>
void visit_indices(const oar_tensor& a, const oar_tensor& b, F&& body) {
  const auto narrow = [](const oar_tensor& t) {
    return static_cast<DType>(t.dtype) == DType::Int32;
  };
  if (narrow(a) && narrow(b))
    body(TypeTag<int32_t>{});
  else
    body(TypeTag<int64_t>{});
}

void csr_matmul(KernelCall& call) {
  const oar_tensor& dense = call.in(3);
  visit_wide<kNumbers>(call.dtype(2), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> values(call.in(2)), y(dense);
    const Result<T> out(call.out());
    visit_indices(call.in(0), call.in(1), [&](auto index) {
      using I = typename decltype(index)::type;
      const Flat<I> crows(call.in(0)), cols(call.in(1));
      const int64_t rows = call.in(0).numel - 1;
      check_row_starts(crows.data(), rows, call.in(1).numel);
      multiply_rows(crows.data(), rows, cols.data(), values.data(), y.data(), dense.shape[0],
                    dense.shape[1], out.data());
    });
    out.finish();
  });
}

// Rows in any order: each thread has some columns of the result.
template <class T, class I>
void scatter_products(const I* rows, const I* cols, const T* values, int64_t count, const T* y,
                      int64_t width, T* out, int64_t size) {
  const int64_t parts =
      count * width <= kGrain ? 1 : std::clamp<int64_t>(width / 8, 1, num_threads());
  parallel_chunks(parts, [&](int64_t part) {
    const int64_t first = width * part / parts, last = width * (part + 1) / parts;
    for (int64_t row = 0; row < size; ++row)
      std::fill(out + row * width + first, out + row * width + last, T(0));
    for (int64_t k = 0; k < count; ++k) {
      const T value = values[k];
      const T* from = y + static_cast<int64_t>(cols[k]) * width;
      T* __restrict to = out + static_cast<int64_t>(rows[k]) * width;
      for (int64_t j = first; j < last; ++j) to[j] += value * from[j];
    }
  });
}

// The starts of rows by the row of each element, if these do not fall. They are checked, too.
template <class I>
bool compress_in_order(const I* rows, int64_t count, int64_t size, I* crows) {
  std::fill(crows, crows + size + 1, I(0));
  constexpr int64_t kBlock = 512;  // stays in the first cache
  I last = 0;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t end = std::min(first + kBlock, count);
    I falls = static_cast<I>(rows[first] < last);  // no branch for each element
    for (int64_t k = first + 1; k < end; ++k) falls |= static_cast<I>(rows[k] < rows[k - 1]);
    last = rows[end - 1];
    if (falls != 0 || last >= size) return false;
    // The last element of a row is stored last; rows without any get the end of the one before.
    for (int64_t k = first; k < end; ++k) crows[rows[k] + 1] = static_cast<I>(k + 1);
  }
  for (int64_t row = 0; row < size; ++row) crows[row + 1] = std::max(crows[row + 1], crows[row]);
  return true;
}

void coo_matmul(KernelCall& call) {
  const oar_tensor &dense = call.in(3), &result = call.out();
  const int64_t count = call.in(0).numel, size = result.shape[0], width = dense.shape[1];
  visit_wide<kNumbers>(call.dtype(2), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> values(call.in(2)), y(dense);
    const Result<T> out(result);
    visit_indices(call.in(0), call.in(1), [&](auto index) {
      using I = typename decltype(index)::type;
      const Flat<I> rows(call.in(0)), cols(call.in(1));
      Scratch<I> crows(size + 1);
      if (!compress_in_order(rows.data(), count, size, crows.data())) {
        check_positions(rows.data(), count, size, "rows");
        check_positions(cols.data(), count, dense.shape[0], "cols");
        scatter_products(rows.data(), cols.data(), values.data(), count, y.data(), width,
                         out.data(), size);
        return;
      }
      multiply_rows(crows.data(), size, cols.data(), values.data(), y.data(), dense.shape[0], width,
                    out.data());
    });
    out.finish();
  });
}

// Four products of vectors of n elements each.
template <class T>
void dot_four(const T* const* a, const T* const* b, int64_t n, T* out) {
  int64_t j = 0;
  T sums[4] = {};
  if constexpr (std::is_floating_point_v<T>) {
    using V = typename Vectors<T>::Values;
    constexpr int64_t kWidth = 32 / static_cast<int64_t>(sizeof(T));
    V p{}, q{}, r{}, s{};  // by name: so they stay in registers
    for (; j + kWidth <= n; j += kWidth) {
      p += load8<V>(a[0] + j) * load8<V>(b[0] + j);
      q += load8<V>(a[1] + j) * load8<V>(b[1] + j);
      r += load8<V>(a[2] + j) * load8<V>(b[2] + j);
      s += load8<V>(a[3] + j) * load8<V>(b[3] + j);
    }
    V all = sums_of_pairs(sums_of_pairs(p, q), sums_of_pairs(r, s));
    if constexpr (kWidth == 8) all = sums_of_pairs(all, all);
    for (int i = 0; i < 4; ++i) sums[i] = all[i];
  }
  for (; j < n; ++j)
    for (int i = 0; i < 4; ++i) sums[i] += a[i][j] * b[i][j];
  for (int i = 0; i < 4; ++i) out[i] = sums[i];
}

void sampled_matmul(KernelCall& call) {
  const oar_tensor &left = call.in(2), &right = call.in(3);
  const int64_t count = call.in(0).numel, width = left.shape[1];
  const Flat<int64_t> rows(call.in(0)), cols(call.in(1));
  check_positions(rows.data(), count, left.shape[0], "rows");
  check_positions(cols.data(), count, right.shape[0], "cols");
  visit_wide<kNumbers>(call.dtype(2), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> x(left), y(right);
    const Result<T> out(call.out());
    parallel_for(0, count, std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t k = begin; k < end; k += 4) {
                     const T *a[4], *b[4];
                     T four[4];
                     const int64_t used = std::min<int64_t>(4, end - k);
                     for (int64_t i = 0; i < 4; ++i) {
                       const int64_t at = k + std::min(i, used - 1);
                       a[i] = x.data() + rows.data()[at] * width;
                       b[i] = y.data() + cols.data()[at] * width;
                     }
                     dot_four(a, b, width, four);
                     std::copy_n(four, used, out.data() + k);
                   }
                 });
    out.finish();
  });
}

void csr_softmax(KernelCall& call) {
  const Flat<int64_t> crows(call.in(0));
  const int64_t rows = call.in(0).numel - 1;
  check_row_starts(crows.data(), rows, call.in(1).numel);
  visit_wide<kFloats>(call.dtype(1), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> values(call.in(1));
    const Result<T> out(call.out());
    const int64_t per_row = std::max<int64_t>(1, call.in(1).numel / std::max<int64_t>(rows, 1));
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / 16 / per_row),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     const int64_t first = crows.data()[row], last = crows.data()[row + 1];
                     if (first == last) continue;
                     const T* from = values.data();
                     T* to = out.data();
                     const T largest = *std::max_element(from + first, from + last);
                     T sum = 0;
                     for (int64_t k = first; k < last; ++k)
                       sum += to[k] = std::exp(from[k] - largest);
                     for (int64_t k = first; k < last; ++k) to[k] /= sum;
                   }
                 });
    out.finish();
  });
}

}  // namespace

KernelList sparse_products_kernels() {
  static const oar_kernel list[] = {
      {"csr_matmul", 1, "cpu:generic", nullptr, kernel_entry<csr_matmul>},
      {"coo_matmul", 1, "cpu:generic", nullptr, kernel_entry<coo_matmul>},
      {"sampled_matmul", 1, "cpu:generic", nullptr, kernel_entry<sampled_matmul>},
      {"csr_softmax", 1, "cpu:generic", nullptr, kernel_entry<csr_softmax>},
  };
  return list;
}

}  // namespace oar::cpu
