// The largest and smallest elements, where they stand, and what is true of all or any.
#include "oar/backend/cpu/reduce.h"

namespace oar::cpu {
namespace {

template <bool kLargest>
void extreme(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit<kBools | kIntegers | kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using Reducer = ExtremeReducer<T, kLargest>;
    reduce_into<T, typename Reducer::Acc>(call.out(), call.in(0), Ints(axes), Reducer{});
  });
}

template <class T, bool kAll>
struct LogicReducer {
  uint8_t identity() const { return kAll; }
  uint8_t join(uint8_t a, uint8_t b) const { return kAll ? a & b : a | b; }
  uint8_t step(uint8_t acc, const T* p, int64_t) const {
    return join(acc, static_cast<uint8_t>(convert_element<bool>(*p)));
  }
  uint8_t finish(uint8_t acc, int64_t) const { return acc; }
};

template <bool kAll>
void logic(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit<kAllTypes>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    // A bool is a byte that holds 0 or 1.
    reduce_rows<T, uint8_t>(call.in(0), Ints(axes), LogicReducer<T, kAll>{},
                            static_cast<uint8_t*>(call.out().data));
  });
}

// Where the largest (or smallest) element of each row stands: the first one; NaN beats all.
template <class T, bool kLargest>
class ArgExtreme {
 public:
  using C = typename ExtremeReducer<T, kLargest>::Acc;
  ArgExtreme(const ReduceLayout& layout, const void* data, int64_t* where)
      : layout_(layout), data_(static_cast<const char*>(data)), where_(where) {}

  void run() const {
    const int64_t rows = layout_.rows.count, length = layout_.inner.count;
    if (rows < 8 && length > 2 * kChunk) {
      for (int64_t row = 0; row < rows; ++row) where_[row] = long_row(row);
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(length, 1));
    const bool side_by_side = layout_.rows.run_stride() == sizeof(T) &&
                              layout_.inner.run_stride() != sizeof(T) &&
                              layout_.rows.shape.size() == 1;
    parallel_for(0, rows, side_by_side ? std::max<int64_t>(grain, 16) : grain,
                 [&](int64_t begin, int64_t end) {
                   if (side_by_side) return columns(begin, end);
                   for (int64_t row = begin; row < end; ++row)
                     where_[row] = part(row, 0, length).index;
                 });
  }

 private:
  static constexpr int64_t kChunk = 1 << 16;
  struct Found {
    C value;
    int64_t index;
  };
  // Without branches, so that loops vectorise.
  static bool better(C v, C best) {
    return (kLargest ? v > best : v < best) | ((v != v) & (best == best));
  }
  C at(const char* p) const { return static_cast<C>(*reinterpret_cast<const T*>(p)); }

  Found part(int64_t row, int64_t begin, int64_t end) const {
    const char* start = data_ + layout_.rows.offset(row);
    Found found{at(start + layout_.inner.offset(begin)), begin};
    int64_t index = begin;
    layout_.runs(start, begin, end, [&](const char* p, int64_t stride, int64_t n) {
      // The value first, which vectorises, and only then its place.
      const C best = reduce_strided<T, C>(ExtremeReducer<T, kLargest>{}, p, stride, n, row);
      if (better(best, found.value)) {
        found = {best, index + place_of(best, p, stride, n)};
      }
      index += n;
    });
    return found;
  }

  // The first of n elements that is `best`. Several are compared at once where they lie side by side.
  int64_t place_of(C best, const char* p, int64_t stride, int64_t n) const {
    constexpr int64_t kAtOnce = 32;
    const bool is_nan = best != best;
    const auto is_best = [&](C v) { return (v == best) | (is_nan & (v != v)); };
    int64_t i = 0;
    if (stride == sizeof(T)) {
      const auto* line = reinterpret_cast<const T*>(p);
      for (; i + kAtOnce <= n; i += kAtOnce) {
        int met = 0;
        for (int64_t k = 0; k < kAtOnce; ++k) met |= is_best(static_cast<C>(line[i + k]));
        if (met) break;
      }
    }
    while (!is_best(at(p + i * stride))) ++i;
    return i;
  }

  int64_t long_row(int64_t row) const {
    const int64_t length = layout_.inner.count, chunks = (length + kChunk - 1) / kChunk;
    std::vector<Found> partial(static_cast<size_t>(chunks));
    parallel_chunks(chunks, [&](int64_t c) {
      partial[static_cast<size_t>(c)] = part(row, c * kChunk, std::min(length, (c + 1) * kChunk));
    });
    Found best = partial[0];
    for (const Found& f : partial)
      if (better(f.value, best.value)) best = f;
    return best.index;
  }

  // Places are as wide as values, where they can be.
  void columns(int64_t begin, int64_t end) const {
    const bool few = layout_.inner.count <= std::numeric_limits<int32_t>::max();
    if (sizeof(C) <= 4 && few)
      columns_as<int32_t>(begin, end);
    else
      columns_as<int64_t>(begin, end);
  }
  template <class Place>
  void columns_as(int64_t begin, int64_t end) const {
    for (; begin + 64 <= end; begin += 64) some_columns<Place, 64>(begin);
    for (; begin + 8 <= end; begin += 8) some_columns<Place, 8>(begin);
    for (; begin < end; ++begin) some_columns<Place, 1>(begin);
  }
  template <class Place, int64_t kCount>
  void some_columns(int64_t first) const {
    const char* start = data_ + layout_.rows.offset(first);
    C best[kCount];
    Place place[kCount] = {};
    for (int64_t c = 0; c < kCount; ++c)
      best[c] = static_cast<C>(reinterpret_cast<const T*>(start)[c]);
    for (int64_t i = 1; i < layout_.inner.count; ++i) {
      const auto* p = reinterpret_cast<const T*>(start + layout_.inner.offset(i));
      for (int64_t c = 0; c < kCount; ++c) {
        const C v = static_cast<C>(p[c]);
        const bool takes = better(v, best[c]);
        best[c] = takes ? v : best[c];
        place[c] = takes ? static_cast<Place>(i) : place[c];
      }
    }
    std::copy_n(place, kCount, where_ + first);
  }

  const ReduceLayout& layout_;
  const char* data_;
  int64_t* where_;
};

template <bool kLargest>
void arg_extreme(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  SmallVector<int64_t, 6> axes;
  if (call.has(1) && x.ndim > 0)
    axes.push_back(normalise_axis(call.arg(1).as_int(), x.ndim));
  else
    for (int i = 0; i < x.ndim; ++i) axes.push_back(i);
  if (out.numel == 0) return;
  const ReduceLayout layout(x, Ints(axes.data(), axes.size()), /*ordered=*/true);
  const bool direct = static_cast<DType>(out.dtype) == DType::Int64;
  const Scratch<int64_t> found(direct ? 1 : out.numel);
  int64_t* where = direct ? static_cast<int64_t*>(out.data) : found.data();
  visit<kBools | kIntegers | kFloats>(call.dtype(), [&](auto in) {
    ArgExtreme<typename decltype(in)::type, kLargest>(layout, x.data, where).run();
  });
  if (!direct)
    std::transform(where, where + out.numel, static_cast<int32_t*>(out.data),
                   [](int64_t i) { return static_cast<int32_t>(i); });
}

}  // namespace

KernelList extremes_kernels() {
  static const oar_kernel list[] = {
      {"max", 1, "cpu:ref", nullptr, kernel_entry<extreme<true>>},
      {"min", 1, "cpu:ref", nullptr, kernel_entry<extreme<false>>},
      {"all", 1, "cpu:ref", nullptr, kernel_entry<logic<true>>},
      {"any", 1, "cpu:ref", nullptr, kernel_entry<logic<false>>},
      {"argmax", 1, "cpu:ref", nullptr, kernel_entry<arg_extreme<true>>},
      {"argmin", 1, "cpu:ref", nullptr, kernel_entry<arg_extreme<false>>},
  };
  return list;
}

}  // namespace oar::cpu
