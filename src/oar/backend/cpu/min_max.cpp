// The largest and smallest: of two operands, within bounds, along axes, and their indices.
#include <tuple>

#include "oar/backend/cpu/loops/apply.h"
#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/math/integers.h"
#include "oar/backend/cpu/reduce/reduce.h"

namespace oar::cpu {
namespace {

constexpr unsigned kReals = kIntegers | kFloats;
constexpr unsigned kOrdered = kBools | kIntegers | kFloats;

// NaN is the one value that differs from itself.
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};
struct Fmax {
  template <class T>
  T operator()(T a, T b) const {
    return b != b || a >= b ? a : b;
  }
};
struct Fmin {
  template <class T>
  T operator()(T a, T b) const {
    return b != b || a <= b ? a : b;
  }
};

// Bounds of clip as elements; an open side is the end of the dtype's range.
template <class C>
struct Bounds {
  C min, max;
  Bounds(const KernelCall& call, int first) {
    C lowest, highest;
    if constexpr (std::is_integral_v<C>)
      std::tie(lowest, highest) = range_of(call.dtype());
    else
      highest = std::numeric_limits<C>::infinity(), lowest = -highest;
    const auto bound = [&](int i, C open) {
      return call.has(i) ? std::clamp(element(call.arg(i).as_scalar()), lowest, highest) : open;
    };
    min = bound(first, lowest);
    max = bound(first + 1, highest);
  }
  static C element(const Scalar& s) {
    if constexpr (!std::is_integral_v<C>)
      return static_cast<C>(s.to_double());
    else
      return s.kind() > Scalar::Int ? saturated<C>(s.to_double()) : s.to_int();
  }
};

void clip(KernelCall& call) {
  visit_wide<kReals>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Bounds<C> bounds(call, 1);
    map_unary<C, C>(call.out(), call.in(0), [=](C v) {
      const C raised = v < bounds.min ? bounds.min : v;  // NaN passes through both
      return raised > bounds.max ? bounds.max : raised;
    });
  });
}

// An open side passes infinity too, which a comparison with a finite bound would not.
void clip_grad(KernelCall& call) {
  const bool open_below = !call.has(2), open_above = !call.has(3),
             bounds_too = call.arg(4).as_bool();
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Bounds<C> bounds(call, 2);
    map_binary<C, C>(call.out(), call.in(0), call.in(1), [=](C x, C grad) {
      const bool above = open_below || x > bounds.min || (bounds_too && x == bounds.min);
      const bool below = open_above || x < bounds.max || (bounds_too && x == bounds.max);
      return above && below ? grad : C(0);
    });
  });
}

template <bool kLargest>
void extreme(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit_common<kBools | kIntegers | kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    reduce_into<T, T>(call.out(), call.in(0), Ints(axes), ExtremeReducer<T, kLargest>{});
  });
}

// The index of the largest (or smallest) element of each row: the first one; NaN wins.
template <class T, bool kLargest>
class ArgExtreme {
 public:
  using C = T;
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
      // The value first, which vectorises, and only then its index.
      const C best = reduce_strided<T, C>(ExtremeReducer<T, kLargest>{}, p, stride, n, row);
      if (better(best, found.value)) {
        found = {best, index + place_of(best, p, stride, n)};
      }
      index += n;
    });
    return found;
  }

  // The first of n elements that is `best`. Several are compared at once if they are contiguous.
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

  // Indices are as wide as values, if possible.
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
  const bool direct = static_cast<DType>(out.dtype) == DType::Int64;
  const Scratch<int64_t> found(direct ? 1 : out.numel);
  int64_t* where = direct ? static_cast<int64_t*>(out.data) : found.data();
  const auto run = [&](const oar_tensor& t, auto tag) {
    const ReduceLayout layout(t, Ints(axes.data(), axes.size()), /*ordered=*/true);
    ArgExtreme<typename decltype(tag)::type, kLargest>(layout, t.data, where).run();
  };
  visit_common<kBools | kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (call.dtype() == dtype_for<T>) return run(x, tag);
    const Flat<T> wide(x);
    run(FlatTensor(x, const_cast<T*>(wide.data()), dtype_for<T>).get(), tag);
  });
  if (!direct)
    std::transform(where, where + out.numel, static_cast<int32_t*>(out.data),
                   [](int64_t i) { return static_cast<int32_t>(i); });
}

}  // namespace

KernelList min_max_kernels() {
  static const oar_kernel list[] = {
      {"maximum", 1, "cpu:generic", nullptr, kernel_entry<binary<kOrdered, Maximum>>},
      {"minimum", 1, "cpu:generic", nullptr, kernel_entry<binary<kOrdered, Minimum>>},
      {"fmax", 1, "cpu:generic", nullptr, kernel_entry<binary<kOrdered, Fmax>>},
      {"fmin", 1, "cpu:generic", nullptr, kernel_entry<binary<kOrdered, Fmin>>},
      {"clip", 1, "cpu:generic", nullptr, kernel_entry<clip>},
      {"clip_grad", 1, "cpu:generic", nullptr, training_entry<clip_grad>},
      {"max", 1, vector_name(), nullptr, kernel_entry<extreme<true>>},
      {"min", 1, vector_name(), nullptr, kernel_entry<extreme<false>>},
      {"argmax", 1, vector_name(), nullptr, kernel_entry<arg_extreme<true>>},
      {"argmin", 1, vector_name(), nullptr, kernel_entry<arg_extreme<false>>},
  };
  return list;
}

}  // namespace oar::cpu
