// Index vectors of sparse tensors.
#include <algorithm>
#include <numeric>
#include <vector>

#include "oar/backend/cpu/sparse/positions.h"

namespace oar::cpu {
namespace {

int64_t* numbers_of(const oar_tensor& t) { return static_cast<int64_t*>(t.data); }

// Positions at a time, which stay in the first cache while all axes are visited.
constexpr int64_t kPositions = 512;

// out = out * size + coordinate. In unsigned numbers: a bad coordinate may overflow, and is reported.
void next_axis(const int64_t* coordinates, int64_t n, uint64_t size, bool narrow, int64_t* out) {
  const auto in = [](int64_t k) { return static_cast<uint64_t>(k); };
  if (narrow) {  // one multiplication of half the width
    for (int64_t k = 0; k < n; ++k)
      out[k] = static_cast<int64_t>((in(out[k]) & 0xffffffff) * (size & 0xffffffff) +
                                    in(coordinates[k]));
  } else {
    for (int64_t k = 0; k < n; ++k)
      out[k] = static_cast<int64_t>(in(out[k]) * size + in(coordinates[k]));
  }
}

void ravel_indices(KernelCall& call) {
  const oar_tensor& indices = call.in(0);
  const Flat<int64_t> flat(indices);
  const Ints shape = call.arg(1).as_ints();
  const int64_t n = indices.shape[1], axes = indices.shape[0];
  int64_t* out = numbers_of(call.out());
  for (int64_t first = 0; first < n; first += kPositions) {
    const int64_t count = std::min(kPositions, n - first);
    if (axes == 0) std::fill(out + first, out + first + count, 0);
    double reach = 1;  // of the positions so far
    for (int64_t axis = 0; axis < axes; ++axis) {
      const int64_t *row = flat.data() + axis * n + first, size = shape[static_cast<size_t>(axis)];
      if (!in_range(row, count, size))
        for (int64_t k = 0; k < count; ++k)
          user_check(
              row[k] >= 0 && row[k] < size, ErrorKind::OutOfRange,
              "indices holds {} along axis {}, which has size {}.\nhint: Coordinates are from 0 "
              "to {}; pass a larger shape if they are right.",
              row[k], axis, size, size - 1);
      const bool narrow = reach < 0x1p32 && size < INT64_C(0x100000000);
      if (axis == 0)
        std::copy_n(row, count, out + first);
      else
        next_axis(row, count, static_cast<uint64_t>(size), narrow, out + first);
      reach *= static_cast<double>(size);
    }
  }
}

// The quotients and remainders of numbers below 2^31 by multiplication. The error of a double is less than the distance of a quotient
// from the next integer, so only one that is an integer may come out one too low.
void divide_narrow(int32_t* numbers, int64_t n, int32_t size, int64_t* remainders) {
  const double inverse = 1.0 / size;
  for (int64_t k = 0; k < n; ++k) {
    const auto near = static_cast<int32_t>(numbers[k] * inverse);
    const int32_t rest = numbers[k] - near * size;
    const int32_t low = rest == size ? 1 : 0;
    numbers[k] = near + low;
    remainders[k] = rest - low * size;
  }
}

void divide_wide(int64_t* numbers, int64_t n, int64_t size, int64_t* remainders) {
  const auto by = static_cast<uint64_t>(size);
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t number = static_cast<uint64_t>(numbers[k]), quotient = number / by;
    remainders[k] = static_cast<int64_t>(number - quotient * by);
    numbers[k] = static_cast<int64_t>(quotient);
  }
}

// Coordinates along the axes from the last one on; what then remains are those along the first.
template <class I, class Divide>
void split_positions(const int64_t* flat, int64_t n, Ints shape, int64_t* out, Divide&& divide) {
  I rest[kPositions];
  for (int64_t first = 0; first < n; first += kPositions) {
    const int64_t count = std::min(kPositions, n - first);
    for (int64_t k = 0; k < count; ++k) rest[k] = static_cast<I>(flat[first + k]);
    for (size_t axis = shape.size() - 1; axis > 0; --axis)
      divide(rest, count, static_cast<I>(shape[axis]),
             out + static_cast<int64_t>(axis) * n + first);
    for (int64_t k = 0; k < count; ++k) out[first + k] = rest[k];
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
  if (n == 0 || shape.empty()) return;
  if (total <= std::numeric_limits<int32_t>::max())
    split_positions<int32_t>(flat.data(), n, shape, numbers_of(call.out()), divide_narrow);
  else
    split_positions<int64_t>(flat.data(), n, shape, numbers_of(call.out()), divide_wide);
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
      T* sums = out.data();
      const T* each = values.data();
      const int64_t* place_of = places.data();
      for (int64_t k = 0; k < n; ++k) sums[place_of[k]] += each[k];
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

// The places that the numbers of a stretch have after it was merged with the same stretch of another sequence. A branch on which
// number is less would be predicted wrong every other time, and without one each step waits for the one before: so four stretches
// take turns. As each takes the same number of steps, they share the count and stay in registers.
struct Stretch {
  int64_t i, x_end, j, y_end;
  int64_t count = 0;
};

struct Merge {
  const int64_t *x, *y;
  int64_t *x_places, *y_places;

  void step(int64_t& i, int64_t& j, int64_t count) const {
    const int64_t a = x[i], b = y[j];
    x_places[i] = count;
    y_places[j] = count;  // the larger one's is written again
    i += a <= b;
    j += b <= a;
  }
  void finish(Stretch& s) const {
    while (s.i < s.x_end && s.j < s.y_end) step(s.i, s.j, s.count++);
    while (s.i < s.x_end) x_places[s.i++] = s.count++;
    while (s.j < s.y_end) y_places[s.j++] = s.count++;
  }
};

constexpr int64_t kTurns = 4, kMerged = 8192;  // numbers of a thread, at least

void merge_in_turns(const Merge merge, Stretch* parts) {
  int64_t i[kTurns], j[kTurns], count = 0;
  for (int64_t t = 0; t < kTurns; ++t) i[t] = parts[t].i, j[t] = parts[t].j;
  for (;;) {
    int64_t steps = std::numeric_limits<int64_t>::max();  // that all have
    for (int64_t t = 0; t < kTurns; ++t)
      steps = std::min({steps, parts[t].x_end - i[t], parts[t].y_end - j[t]});
    if (steps == 0) break;
    for (const int64_t end = count + steps; count < end; ++count)
#pragma GCC unroll 4
      for (int64_t t = 0; t < kTurns; ++t) merge.step(i[t], j[t], count);
  }
  for (int64_t t = 0; t < kTurns; ++t) {
    parts[t].i = i[t], parts[t].j = j[t], parts[t].count = count;
    merge.finish(parts[t]);
  }
}

// Places count from the beginning of the stretch, before which there are so many numbers.
void put_merged(const int64_t* numbers, int64_t begin, int64_t end, int64_t before, int64_t* places,
                int64_t* __restrict out) {
  for (int64_t k = begin; k < end; ++k) out[places[k] += before] = numbers[k];
}

void merge_sorted(KernelCall& call) {
  const Flat<int64_t> left(call.in(0)), right(call.in(1));
  const int64_t n = call.in(0).numel, m = call.in(1).numel;
  const int64_t *x = left.data(), *y = right.data();
  int64_t *x_places = numbers_of(call.allocate(1, Ints(&n, 1))),
          *y_places = numbers_of(call.allocate(2, Ints(&m, 1)));
  const int64_t chunks = std::clamp<int64_t>(std::min(n, m) / kMerged, 1, num_threads());
  std::vector<Stretch> parts;
  for (int64_t part = 1, i = 0, j = 0; part <= chunks * kTurns; ++part) {
    const int64_t x_end = n * part / (chunks * kTurns);
    const int64_t y_end = x_end == n ? m : std::lower_bound(y + j, y + m, x[x_end]) - y;
    parts.push_back({i, x_end, j, y_end});
    i = x_end;
    j = y_end;
  }
  const Merge merge{x, y, x_places, y_places};
  parallel_chunks(chunks, [&](int64_t chunk) {
    merge_in_turns(merge, &parts[static_cast<size_t>(chunk * kTurns)]);
  });
  int64_t count = 0;
  for (const Stretch& part : parts) count += part.count;
  int64_t* out = numbers_of(call.allocate(0, Ints(&count, 1)));
  int64_t before = 0, i = 0, j = 0;
  for (const Stretch& part : parts) {
    put_merged(x, i, part.x_end, before, x_places, out);
    put_merged(y, j, part.y_end, before, y_places, out);
    i = part.x_end;
    j = part.y_end;
    before += part.count;
  }
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
