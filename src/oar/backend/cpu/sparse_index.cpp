// Index vectors of sparse tensors.
#include <algorithm>
#include <numeric>
#include <vector>

#include "oar/backend/cpu/sparse/positions.h"

namespace oar::cpu {
namespace {

int64_t* numbers_of(const oar_tensor& t) { return static_cast<int64_t*>(t.data); }

void ravel_indices(KernelCall& call) {
  const oar_tensor& indices = call.in(0);
  const Flat<int64_t> flat(indices);
  const Ints shape = call.arg(1).as_ints();
  const int64_t n = indices.shape[1], axes = indices.shape[0];
  int64_t* out = numbers_of(call.out());
  std::fill(out, out + n, 0);
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t *row = flat.data() + axis * n, size = shape[static_cast<size_t>(axis)];
    int64_t good = 0;
    for (int64_t k = 0; k < n; ++k) {
      good += static_cast<uint64_t>(row[k]) < static_cast<uint64_t>(size);
      // In unsigned numbers: a bad coordinate may overflow, and is reported below.
      out[k] = static_cast<int64_t>(static_cast<uint64_t>(out[k]) * static_cast<uint64_t>(size) +
                                    static_cast<uint64_t>(row[k]));
    }
    for (int64_t k = 0; good < n && k < n; ++k)
      user_check(row[k] >= 0 && row[k] < size, ErrorKind::OutOfRange,
                 "indices holds {} along axis {}, which has size {}.\nhint: Coordinates are from 0 "
                 "to {}; pass a larger shape if they are right.",
                 row[k], axis, size, size - 1);
  }
}

// Coordinates along the axes from the last one on; what remains of each position is left in `rest`. Narrow numbers are
// divided several times faster.
template <class U>
void split_positions(U* rest, int64_t n, Ints shape, int64_t* out) {
  for (size_t axis = shape.size(); axis-- > 0;) {
    int64_t* row = out + static_cast<int64_t>(axis) * n;
    const U size = static_cast<U>(std::max<int64_t>(shape[axis], 1));
    for (int64_t k = 0; k < n; ++k) {
      const U quotient = rest[k] / size;
      row[k] = static_cast<int64_t>(rest[k] - quotient * size);
      rest[k] = quotient;
    }
  }
}

void unravel_indices(KernelCall& call) {
  const Flat<int64_t> flat(call.in(0));
  const Ints shape = call.arg(1).as_ints();
  const int64_t n = call.in(0).numel;
  int64_t total = 1;
  bool fits = true;
  for (int64_t size : shape) fits &= !__builtin_mul_overflow(total, size, &total);
  user_check(fits, ErrorKind::InvalidArgument, "a tensor of this shape has too many elements.");
  check_positions(flat.data(), n, total, "x");
  int64_t* out = numbers_of(call.out());
  if (total <= INT64_C(0xffffffff)) {
    Scratch<uint32_t, 64> rest(n);
    std::copy_n(flat.data(), n, rest.data());
    split_positions(rest.data(), n, shape, out);
  } else {
    Scratch<uint64_t, 64> rest(n);
    std::copy_n(flat.data(), n, rest.data());
    split_positions(rest.data(), n, shape, out);
  }
}

void expand_rows(KernelCall& call) {
  const Flat<int64_t> crows(call.in(0));
  const int64_t rows = call.in(0).numel - 1, n = call.out().numel;
  check_row_starts(crows.data(), rows, n);
  int64_t* out = numbers_of(call.out());
  for (int64_t row = 0; row < rows; ++row)
    std::fill(out + crows.data()[row], out + crows.data()[row + 1], row);
}

void compress_rows(KernelCall& call) {
  const Flat<int64_t> rows(call.in(0));
  const int64_t n = call.in(0).numel, size = call.out().numel - 1;
  check_positions(rows.data(), n, size, "rows");
  int64_t* out = numbers_of(call.out());
  std::fill(out, out + size + 1, 0);
  const int64_t* row_of = rows.data();
  int64_t falls = 0;  // its sign: a comparison would not vectorise
  for (int64_t k = 1; k < n; ++k) falls |= row_of[k] - row_of[k - 1];
  if (falls >=
      0) {  // the last element of a row tells its end: unlike a count, a write waits for none before it
    for (int64_t k = 0; k < n; ++k) out[row_of[k] + 1] = k + 1;
    for (int64_t row = 0; row < size; ++row) out[row + 1] = std::max(out[row + 1], out[row]);
    return;
  }
  for (int64_t k = 0; k < n; ++k) ++out[row_of[k] + 1];
  for (int64_t row = 0; row < size; ++row) out[row + 1] += out[row];
}

void key_order(KernelCall& call) {
  const Flat<int64_t> keys(call.in(0));
  const int64_t n = call.in(0).numel, size = call.arg(1).as_ints()[0];
  check_positions(keys.data(), n, size, "keys");
  int64_t* out = numbers_of(call.out());
  if (size / 64 > n) {  // a count for each possible key would take longer than a sort
    std::iota(out, out + n, 0);
    std::stable_sort(out, out + n,
                     [&](int64_t a, int64_t b) { return keys.data()[a] < keys.data()[b]; });
    return;
  }
  std::vector<int64_t> next(static_cast<size_t>(size) + 1, 0);
  for (int64_t k = 0; k < n; ++k) ++next[static_cast<size_t>(keys.data()[k]) + 1];
  for (size_t i = 0; i < static_cast<size_t>(size); ++i) next[i + 1] += next[i];
  for (int64_t k = 0; k < n; ++k) out[next[static_cast<size_t>(keys.data()[k])]++] = k;
}

void sums_at(KernelCall& call) {
  const Flat<int64_t> places(call.in(0));
  const oar_tensor &in = call.in(1), &result = call.out();
  const int64_t n = in.shape[0];
  check_positions(places.data(), n, result.shape[0], "places");
  visit_wide<kNumbers>(call.dtype(1), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> values(in);
    const Result<T> out(result);
    const int64_t width = n > 0 ? in.numel / n : 0;
    parallel_for(0, result.numel, kGrain, [&](int64_t begin, int64_t end) {
      std::fill(out.data() + begin, out.data() + end, T(0));
    });
    if (width == 1) {
      for (int64_t k = 0; k < n; ++k) out.data()[places.data()[k]] += values.data()[k];
    } else {
      for (int64_t k = 0; k < n; ++k) {
        T* __restrict sum = out.data() + places.data()[k] * width;
        const T* row = values.data() + k * width;
        for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
      }
    }
    out.finish();
  });
}

void merge_sorted(KernelCall& call) {
  const Flat<int64_t> left(call.in(0)), right(call.in(1));
  const int64_t n = call.in(0).numel, m = call.in(1).numel;
  const int64_t *x = left.data(), *y = right.data();
  int64_t *x_places = numbers_of(call.allocate(1, Ints(&n, 1))),
          *y_places = numbers_of(call.allocate(2, Ints(&m, 1)));
  Scratch<int64_t, 64> merged(n + m);
  int64_t i = 0, j = 0, count = 0;
  while (i < n && j < m) {
    const int64_t a = x[i], b = y[j];
    merged.data()[count] = std::min(a, b);
    if (a <= b) x_places[i++] = count;
    if (b <= a) y_places[j++] = count;
    ++count;
  }
  for (; i < n; ++i, ++count) merged.data()[x_places[i] = count] = x[i];
  for (; j < m; ++j, ++count) merged.data()[y_places[j] = count] = y[j];
  std::copy_n(merged.data(), count, numbers_of(call.allocate(0, Ints(&count, 1))));
}

}  // namespace

KernelList sparse_index_kernels() {
  static const oar_kernel list[] = {
      {"ravel_indices", 1, "cpu:generic", nullptr, kernel_entry<ravel_indices>},
      {"unravel_indices", 1, "cpu:generic", nullptr, kernel_entry<unravel_indices>},
      {"expand_rows", 1, "cpu:generic", nullptr, kernel_entry<expand_rows>},
      {"compress_rows", 1, "cpu:generic", nullptr, kernel_entry<compress_rows>},
      {"key_order", 1, "cpu:generic", nullptr, kernel_entry<key_order>},
      {"sums_at", 1, "cpu:generic", nullptr, kernel_entry<sums_at>},
      {"merge_sorted", 1, "cpu:generic", nullptr, kernel_entry<merge_sorted>},
  };
  return list;
}

}  // namespace oar::cpu
