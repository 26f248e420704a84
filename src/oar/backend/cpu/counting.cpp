// Occurrences of numbers, and different elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/reduce/reducers.h"
#include "oar/backend/cpu/sort/line_sorter.h"
#include "oar/tensor/byte_count.h"

namespace oar::cpu {
namespace {

constexpr unsigned kReals = kIntegers | kFloats;

// Adds weight[i] (or 1) to the bin bin_of(i); a negative one adds nothing. Elements are
// cut into pieces by their number alone, each with its own bins, so that sums do not depend on the
// number of threads.
template <class Sum, class Weight, class BinOf>
void count_bins(Sum* bins, int64_t bin_count, int64_t n, const Weight* weights, BinOf bin_of) {
  const int64_t pieces =
      std::clamp<int64_t>(n / std::max<int64_t>(int64_t{1} << 17, bin_count), 1, 64);
  std::vector<Sum> all(static_cast<size_t>((pieces - 1) * bin_count), Sum(0));
  std::fill_n(bins, bin_count, Sum(0));
  parallel_chunks(pieces, [&](int64_t piece) {
    Sum* own = piece == 0 ? bins : all.data() + (piece - 1) * bin_count;
    const int64_t begin = piece * n / pieces, end = (piece + 1) * n / pieces;
    constexpr int64_t kBlock = 256;
    using Bin = decltype(bin_of(0));
    Bin at[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      for (int64_t k = 0; k < count; ++k) at[k] = bin_of(i + k);
      if (weights)
        for (int64_t k = 0; k < count; ++k) {
          Sum& bin = own[std::max<Bin>(at[k], 0)];
          bin = wrapping_add(bin, at[k] >= 0 ? static_cast<Sum>(weights[i + k]) : Sum(0));
        }
      else
        for (int64_t k = 0; k < count; ++k) own[std::max<Bin>(at[k], 0)] += at[k] >= 0;
    }
  });
  for (int64_t piece = 1; piece < pieces; ++piece)
    for (int64_t b = 0; b < bin_count; ++b)
      bins[b] = wrapping_add(bins[b], all[(piece - 1) * bin_count + b]);
}

// The counts as int64, or sums of weights in the dtype of the weights.
template <class BinOf>
void fill_bins(const oar_tensor& out, const oar_tensor* weights, int64_t n, BinOf bin_of) {
  if (!weights)
    return count_bins<int64_t, int64_t>(static_cast<int64_t*>(out.data), out.numel, n, nullptr,
                                        bin_of);
  const auto weighted = [&](auto zero) {
    using Sum = decltype(zero);
    const Contiguous<Sum> flat(*weights);
    const Result<Sum> sums(out);
    count_bins<Sum>(sums.data(), out.numel, n, flat.data(), bin_of);
    sums.finish();
  };
  if (is_integral(static_cast<DType>(weights->dtype)))
    weighted(int64_t{0});
  else
    weighted(0.0);
}

void bincount(KernelCall& call) {
  const oar_tensor& x = call.in(0);
  const Contiguous<int64_t> flat(x);
  const int64_t* data = flat.data();
  int64_t low = 0, high = 0;
  for (int64_t i = 0; i < x.numel; ++i) {
    low = std::min(low, data[i]);
    high = std::max(high, data[i]);
  }
  user_check(low >= 0, ErrorKind::InvalidArgument,
             "x holds {}; only numbers from 0 on can be counted.", low);
  const Count bins = x.numel == 0 ? Count(0) : Count(high) + 1;
  const int64_t size = std::max(bins.value(), call.arg(2).as_int());
  const oar_tensor& out = call.allocate(0, Ints(&size, 1));
  fill_bins(out, optional_in(call, 1), x.numel, [data](int64_t i) { return data[i]; });
}

// The bin of v among `count` equal ones over [low, high]; the last one holds its upper end too.
template <class C>
void histogram_of(KernelCall& call, const C* data) {
  const int64_t n = call.in(0).numel, bins = call.arg(2).as_int();
  double low = call.arg(3).as_double(), high = call.arg(4).as_double();
  if (low == high && n > 0) {
    const auto [smallest, largest] = std::minmax_element(data, data + n);
    low = static_cast<double>(*smallest), high = static_cast<double>(*largest);
    user_check(
        std::isfinite(low) && std::isfinite(high), ErrorKind::InvalidArgument,
        "input reaches from {} to {}, which cannot be divided into bins.\nhint: Pass a finite "
        "min and max.",
        low, high);
  }
  if (low == high) low -= 1, high += 1;
  const double scale = static_cast<double>(bins) / (high - low);
  const auto fill = [&](auto kind) {
    using Bin = decltype(kind);
    const auto last = static_cast<Bin>(bins - 1);
    fill_bins(call.out(), optional_in(call, 1), n, [=](int64_t i) {
      const auto v = static_cast<double>(data[i]);
      const bool inside = (v >= low) & (v <= high);
      const auto bin = static_cast<Bin>(inside ? (v - low) * scale : -1.0);
      return bin < last ? bin : last;
    });
  };
  // Doubles are converted to 32-bit integers several at a time.
  if (bins < std::numeric_limits<int32_t>::max())
    fill(int32_t{});
  else
    fill(int64_t{});
}

void histogram_counts(KernelCall& call) {
  visit_wide<kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    const Compact<typename decltype(tag)::type> x(call.in(0));
    histogram_of(call, x.data());
  });
}

// The results of unique besides the elements themselves.
struct Wanted {
  bool index, inverse, counts;
};

int64_t* allocate_numbers(KernelCall& call, int i, int64_t size) {
  return static_cast<int64_t*>(call.allocate(i, Ints(&size, 1)).data);
}

// Integers from a narrow range need no sorting: a table records which of them occur.
bool unique_by_table(KernelCall& call, const int64_t* data, int64_t n, Wanted wanted) {
  using T = int64_t;
  const auto [low, high] = std::minmax_element(data, data + n);
  const uint64_t span = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
  if (span >= static_cast<uint64_t>(std::max<int64_t>(4 * n, 4096))) return false;
  const T base = *low;
  const auto slot = [base](T v) {
    return static_cast<size_t>(static_cast<uint64_t>(v) - static_cast<uint64_t>(base));
  };
  std::vector<int64_t> table(span + 1, 0);
  if (wanted.counts) {
    for (int64_t i = 0; i < n; ++i) ++table[slot(data[i])];
  } else {
    for (int64_t i = 0; i < n; ++i) table[slot(data[i])] = 1;
  }
  int64_t found = 0;
  for (const int64_t count : table) found += count != 0;
  const Result<T> values(call.allocate(0, Ints(&found, 1)));
  int64_t* counts = allocate_numbers(call, 3, wanted.counts ? found : 0);
  int64_t rank = 0;
  for (size_t s = 0; s < table.size(); ++s) {
    if (table[s] == 0) continue;
    values.data()[rank] = static_cast<T>(static_cast<uint64_t>(base) + s);
    if (wanted.counts) counts[rank] = table[s];
    table[s] = rank++;
  }
  values.finish();
  int64_t* index = allocate_numbers(call, 1, wanted.index ? found : 0);
  if (wanted.index)
    for (int64_t i = n; i-- > 0;) index[table[slot(data[i])]] = i;
  int64_t* inverse = allocate_numbers(call, 2, wanted.inverse ? n : 0);
  if (wanted.inverse)
    for (int64_t i = 0; i < n; ++i) inverse[i] = table[slot(data[i])];
  return true;
}

// All others by sorting.
template <class T>
void unique_by_order(KernelCall& call, const T* data, int64_t n, Wanted wanted) {
  LineSorter<T> sorter(n, /*descending=*/false);
  const uint32_t* sorted = sorter.first(data, 1, n);
  const auto place = [&](int64_t k) { return static_cast<int64_t>(sorted[k]); };
  const auto fresh = [&](int64_t k) {
    return k == 0 || key_of(data[place(k - 1)], false) != key_of(data[place(k)], false);
  };
  int64_t found = 0;
  for (int64_t k = 0; k < n; ++k) found += fresh(k);
  const Result<T> values(call.allocate(0, Ints(&found, 1)));
  int64_t* index = allocate_numbers(call, 1, wanted.index ? found : 0);
  int64_t* inverse = allocate_numbers(call, 2, wanted.inverse ? n : 0);
  int64_t* counts = allocate_numbers(call, 3, wanted.counts ? found : 0);
  int64_t rank = -1;
  for (int64_t k = 0; k < n; ++k) {
    if (fresh(k)) {
      values.data()[++rank] = data[place(k)];
      if (wanted.index) index[rank] = place(k);  // the order is stable: the first of them
      if (wanted.counts) counts[rank] = 0;
    }
    if (wanted.inverse) inverse[place(k)] = rank;
    if (wanted.counts) ++counts[rank];
  }
  values.finish();
}

void unique_flat(KernelCall& call) {
  const oar_tensor& x = call.in(0);
  const Wanted wanted{call.arg(1).as_bool(), call.arg(2).as_bool(), call.arg(3).as_bool()};
  const int64_t n = x.numel;
  visit_wide<kBools | kReals>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> flat(x);
    if constexpr (std::is_integral_v<T>)
      if (n > 0 && unique_by_table(call, flat.data(), n, wanted)) return;
    unique_by_order(call, flat.data(), n, wanted);
  });
}

// Rows of a matrix that differ, in lexicographic order; or, if consecutive, from the row before.
void unique_rows(KernelCall& call) {
  const oar_tensor& x = call.in(0);
  const int64_t n = x.shape[0], width = x.shape[1];
  visit_wide<kBools | kReals>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> flat(x);
    // -1, 0 or 1; NaN is above every number and equals itself.
    const auto compare = [&](int64_t a, int64_t b) {
      const T *p = flat.data() + a * width, *q = flat.data() + b * width;
      for (int64_t j = 0; j < width; ++j) {
        const T u = p[j], v = q[j];
        if (u == v || (u != u && v != v)) continue;
        return (u < v || v != v) ? -1 : 1;
      }
      return 0;
    };
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    if (!call.arg(1).as_bool())
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
    std::vector<int64_t> starts;
    int64_t* inverse = allocate_numbers(call, 1, n);
    for (int64_t k = 0; k < n; ++k) {
      const auto at = static_cast<size_t>(k);
      if (k == 0 || compare(order[at - 1], order[at]) != 0) starts.push_back(k);
      inverse[order[at]] = static_cast<int64_t>(starts.size()) - 1;
    }
    const auto found = static_cast<int64_t>(starts.size());
    int64_t* index = allocate_numbers(call, 0, found);
    int64_t* counts = allocate_numbers(call, 2, found);
    for (int64_t r = 0; r < found; ++r) {
      const auto at = static_cast<size_t>(r);
      index[r] = order[static_cast<size_t>(starts[at])];
      counts[r] = (r + 1 < found ? starts[at + 1] : n) - starts[at];
    }
  });
}

}  // namespace

KernelList counting_kernels() {
  static const oar_kernel list[] = {
      {"bincount", 1, "cpu:generic", nullptr, kernel_entry<bincount>},
      {"histogram_counts", 1, "cpu:generic", nullptr, kernel_entry<histogram_counts>},
      {"unique_flat", 1, "cpu:generic", nullptr, kernel_entry<unique_flat>},
      {"unique_rows", 1, "cpu:generic", nullptr, kernel_entry<unique_rows>},
  };
  return list;
}

}  // namespace oar::cpu
