// Running sums, products and recurrences along an axis. Lines are independent: they run in
// parallel, and neighbouring ones together, so that memory is read in order.
#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/reduce/reduce.h"

namespace oar::cpu {
namespace {

// Some lines that are processed together, element by element: their chains of operations are
// independent, and columns vectorise.
struct LineGroup {
  int64_t first;   // the first element of the first line
  int64_t across;  // from a line to the next
  int64_t along;   // from an element of a line to the next
  int64_t length;

  int64_t start(int64_t i, bool reverse = false) const {
    return first + (reverse ? length - 1 - i : i) * along;
  }
  // Whether all lines map to the same few cache sets, and would evict each other if they are
  // processed together in place.
  template <class T>
  bool lines_collide() const {
    return across * static_cast<int64_t>(sizeof(T)) % 4096 == 0;
  }
};
inline constexpr int64_t kColumns = 64, kFewColumns = 8;

// f(0) ... f(kLines - 1), all computed before the first is stored: out may be what f reads.
template <int64_t kLines, class F, class Put>
void each_line(F&& f, Put&& put) {
  constexpr int64_t kGroup = std::min<int64_t>(kLines, 16);
  for (int64_t c = 0; c < kLines; c += kGroup) {
    decltype(f(c)) made[kGroup];
#pragma GCC unroll 16
    for (int64_t k = 0; k < kGroup; ++k) made[k] = f(c + k);
#pragma GCC unroll 16
    for (int64_t k = 0; k < kGroup; ++k) put(c + k, made[k]);
  }
}

// body.template operator()<lines, 0>(group) over all lines; <lines, 1> for columns, whose distance of
// 1 is then known to the compiler.
template <int64_t kRows = 8, class Body>
void for_lines(const AxisSpan& span, Body&& body) {
  if (span.outer == 0 || span.length == 0 || span.inner == 0) return;
  const bool rows = span.inner == 1;
  const int64_t width = rows ? kRows : kColumns;
  const int64_t lines = rows ? span.outer : span.inner, blocks = (lines + width - 1) / width;
  const int64_t across = rows ? span.length : 1, along = rows ? 1 : span.inner;
  const int64_t work = std::min(width, lines) * span.length;
  const auto block = [&](int64_t b) {
    int64_t line = b % blocks * width;
    const int64_t end = std::min(lines, line + width), base = b / blocks * span.length * span.inner;
    const auto group = [&] { return LineGroup{base + line * across, across, along, span.length}; };
    if (rows) {
      if (end - line == kRows) return body.template operator()<kRows, 0>(group());
      for (; line < end; ++line) body.template operator()<1, 0>(group());
    } else {
      if (end - line == kColumns) return body.template operator()<kColumns, 1>(group());
      for (; line + kFewColumns <= end; line += kFewColumns)
        body.template operator()<kFewColumns, 1>(group());
      for (; line < end; ++line) body.template operator()<1, 1>(group());
    }
  };
  parallel_for(0, rows ? blocks : span.outer * blocks, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) block(b);
               });
}

// Parts of lines that collide, copied to contiguous memory.
template <class T, int64_t kLines>
class Parts {
 public:
  static constexpr int64_t kLength = 64;
  void load(const T* from, int64_t across, int64_t n) {
    for (int64_t c = 0; c < kLines; ++c) std::copy_n(from + c * across, n, data_[c]);
  }
  void store(T* to, int64_t across, int64_t n) const {
    for (int64_t c = 0; c < kLines; ++c) std::copy_n(data_[c], n, to + c * across);
  }
  T* operator[](int64_t c) { return data_[c]; }

 private:
  T data_[kLines][kLength];
};

template <class T, class Acc, class Step>
struct Scan {
  const T* in;
  T* out;
  bool exclusive, reverse;
  Acc identity;
  Step step;

  // Known to the compiler, so that the loop over columns vectorises.
  template <int64_t kLines, int64_t kAcross>
  void operator()(const LineGroup& group) const {
    if (exclusive)
      run<kLines, kAcross, true>(group);
    else
      run<kLines, kAcross, false>(group);
  }
  template <int64_t kLines, int64_t kAcross, bool kExclusive>
  void run(const LineGroup& group) const {
    if constexpr (kLines > 1 && kAcross == 0)
      if (group.template lines_collide<T>()) return by_parts<kLines, kExclusive>(group);
    const int64_t across = kAcross ? kAcross : group.across;
    Acc acc[kLines];
    std::fill_n(acc, kLines, identity);
    for (int64_t i = 0; i < group.length; ++i) {
      const T* line = in + group.start(i, reverse);
      T* to = out + group.start(i, reverse);
      each_line<kLines>(
          [&](int64_t c) { return step(acc[c], convert_element<Acc>(line[c * across])); },
          [&](int64_t c, Acc made) {
            to[c * across] = convert_element<T>(kExclusive ? acc[c] : made);
            acc[c] = made;
          });
    }
  }
  template <int64_t kLines, bool kExclusive>
  void by_parts(const LineGroup& group) const {
    Acc acc[kLines];
    std::fill_n(acc, kLines, identity);
    Parts<T, kLines> part;
    for (int64_t done = 0; done < group.length; done += part.kLength) {
      const int64_t n = std::min(part.kLength, group.length - done);
      const int64_t at = group.first + (reverse ? group.length - done - n : done);
      part.load(in + at, group.across, n);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = reverse ? n - 1 - i : i;
        each_line<kLines>([&](int64_t c) { return step(acc[c], convert_element<Acc>(part[c][k])); },
                          [&](int64_t c, Acc made) {
                            part[c][k] = convert_element<T>(kExclusive ? acc[c] : made);
                            acc[c] = made;
                          });
      }
      part.store(out + at, group.across, n);
    }
  }
};

template <class T, class Acc, class Step>
void scan_lines(const oar_tensor& out, const oar_tensor& x, int64_t axis, bool exclusive,
                bool reverse, Acc identity, Step step) {
  const Contiguous<T> in(x);
  const Result<T> result(out);
  for_lines(AxisSpan(x, axis),
            Scan<T, Acc, Step>{in.data(), result.data(), exclusive, reverse, identity, step});
  result.finish();
}

// Complex numbers are rare here: those of 64 bits are copied to 128.
DType scanned(DType dtype) { return dtype == DType::Complex64 ? DType::Complex128 : dtype; }

// float32 accumulates in double: a chain cannot be summed pairwise.
template <class T>
using scan_t =
    std::conditional_t<std::is_integral_v<T>, int64_t,
                       std::conditional_t<is_complex_type<T>, std::complex<double>, double>>;

template <class T>
void running_sums(const AxisSpan& span, const T* in, T* out, bool reverse) {
  const int64_t n = std::max<int64_t>(span.length, 1);
  parallel_for(0, span.outer, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      fold_table<T>().running_sum(in + i * n, out + i * n, span.length, reverse);
  });
}

void cumsum_along(KernelCall& call) {
  visit_wide<kNumbers>(scanned(call.dtype()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = scan_t<T>;
    if constexpr (std::is_floating_point_v<T>) {
      const AxisSpan span(call.in(0), call.arg(1).as_int());
      if (span.inner == 1 && !call.arg(2).as_bool()) {
        const Result<T> result(call.out());
        running_sums(span, Contiguous<T>(call.in(0)).data(), result.data(), call.arg(3).as_bool());
        return result.finish();
      }
    }
    scan_lines<T, Acc>(call.out(), call.in(0), call.arg(1).as_int(), call.arg(2).as_bool(),
                       call.arg(3).as_bool(), Acc(0),
                       [](Acc a, Acc v) { return wrapping_add(a, v); });
  });
}

void cumprod_along(KernelCall& call) {
  visit_wide<kNumbers>(scanned(call.dtype()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    scan_lines<T, T>(call.out(), call.in(0), call.arg(1).as_int(), call.arg(2).as_bool(), false,
                     T(1), [](T a, T v) { return wrapping_multiply(a, v); });
  });
}

// The product of all elements before and after each one; or, if it is a normal number, the product of
// all divided by it.
template <class T>
struct Others {
  using Acc = T;
  const T* in;
  T* out;

  template <int64_t kLines, int64_t kAcross>
  void operator()(const LineGroup& group) const {
    if constexpr (kAcross == 0 && std::is_floating_point_v<T>)
      if (by_division<kLines>(group)) return;
    Scan<T, Acc, Times>{in, out, true, false, Acc(1), {}}.template operator()<kLines, kAcross>(
        group);
    if constexpr (kLines > 1 && kAcross == 0)
      if (group.template lines_collide<T>()) return by_parts<kLines>(group);
    const int64_t across = kAcross ? kAcross : group.across;
    Acc after[kLines];
    std::fill_n(after, kLines, Acc(1));
    for (int64_t i = group.length; i-- > 0;) {
      const T* line = in + group.start(i);
      T* to = out + group.start(i);
      each_line<kLines>(
          [&](int64_t c) { return Times{}(convert_element<Acc>(to[c * across]), after[c]); },
          [&](int64_t c, Acc made) {
            to[c * across] = convert_element<T>(made);
            after[c] = Times{}(after[c], convert_element<Acc>(line[c * across]));
          });
    }
  }

 private:
  struct Times {
    Acc operator()(Acc a, Acc v) const { return wrapping_multiply(a, v); }
  };
  // Returns false, and writes nothing, if a product is 0, not finite or has lost digits.
  template <int64_t kLines>
  bool by_division(const LineGroup& group) const {
    const auto fold = fold_table<T>().loops[static_cast<int>(Fold::product)].run;
    T all[kLines];
    for (int64_t c = 0; c < kLines; ++c) {
      all[c] = fold(in + group.first + c * group.across, group.length, 0, 1, nullptr);
      if (!std::isnormal(all[c])) return false;
    }
    for (int64_t c = 0; c < kLines; ++c) {
      const int64_t first = group.first + c * group.across;
      const T *line = in + first, product = all[c];
      T* to = out + first;
      for (int64_t i = 0; i < group.length; ++i) to[i] = product / line[i];
    }
    return true;
  }
  template <int64_t kLines>
  void by_parts(const LineGroup& group) const {
    Acc after[kLines];
    std::fill_n(after, kLines, Acc(1));
    Parts<T, kLines> x, made;
    for (int64_t end = group.length; end > 0;) {
      const int64_t n = std::min(x.kLength, end), at = group.first + end - n;
      x.load(in + at, group.across, n);
      made.load(out + at, group.across, n);
      for (int64_t i = n; i-- > 0;)
        each_line<kLines>(
            [&](int64_t c) { return Times{}(convert_element<Acc>(made[c][i]), after[c]); },
            [&](int64_t c, Acc product) {
              made[c][i] = convert_element<T>(product);
              after[c] = Times{}(after[c], convert_element<Acc>(x[c][i]));
            });
      made.store(out + at, group.across, n);
      end -= n;
    }
  }
};

void product_of_others(KernelCall& call) {
  visit_wide<kNumbers>(scanned(call.dtype()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> in(call.in(0));
    const Result<T> result(call.out());
    for_lines(AxisSpan(call.in(0), call.arg(1).as_int()), Others<T>{in.data(), result.data()});
    result.finish();
  });
}

void logcumsumexp_along(KernelCall& call) {
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto step = [](double a, double v) {
      const double high = std::max(a, v), low = std::min(a, v);
      if (a != a || v != v) return a + v;
      return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
    };
    scan_lines<T, double>(call.out(), call.in(0), call.arg(1).as_int(), false,
                          call.arg(2).as_bool(), -std::numeric_limits<double>::infinity(), step);
  });
}

// The largest (smallest) element so far and its index, the last of equals; from a NaN on, the last NaN.
template <bool kLargest, class T>
struct ExtremesSoFar {
  using C = T;
  const T* in;
  T* values;
  int64_t* places;

  // A NaN is neither below nor above, so it replaces any number; and only another NaN replaces it.
  static bool replaces(C value, C best) {
    return (!(kLargest ? value < best : value > best) & (best == best)) | (value != value);
  }
  template <int64_t kLines, int64_t kAcross>
  void operator()(const LineGroup& group) const {
    if constexpr (kLines == 1) return line(group);
    C best[kLines];
    int64_t place[kLines] = {};
    for (int64_t c = 0; c < kLines; ++c) best[c] = static_cast<C>(in[group.first + c]);
    for (int64_t i = 0; i < group.length; ++i) {
      const int64_t at = group.start(i);
      for (int64_t c = 0; c < kLines; ++c) {
        const auto value = static_cast<C>(in[at + c]);
        const bool better = replaces(value, best[c]);
        best[c] = better ? value : best[c];
        place[c] = better ? i : place[c];
        values[at + c] = static_cast<T>(best[c]);
        places[at + c] = place[c];
      }
    }
  }
  // A single line: a better element is rare, so a branch costs little, and several are compared
  // at once.
  void line(const LineGroup& group) const {
    constexpr int64_t kAtOnce = 16;
    auto best = static_cast<C>(in[group.first]);
    int64_t place = 0, i = 0;
    const auto step_to = [&](int64_t end) {
      for (; i < end; ++i) {
        const int64_t at = group.start(i);
        const auto value = static_cast<C>(in[at]);
        if (replaces(value, best)) best = value, place = i;
        values[at] = static_cast<T>(best);
        places[at] = place;
      }
    };
    while (group.along == 1 && i + kAtOnce <= group.length) {
      const T* next = in + group.first + i;
      unsigned better = 0;
      for (int64_t k = 0; k < kAtOnce; ++k) better |= replaces(static_cast<C>(next[k]), best);
      if (better) {
        step_to(i + kAtOnce);
        continue;
      }
      std::fill_n(values + group.first + i, kAtOnce, static_cast<T>(best));
      std::fill_n(places + group.first + i, kAtOnce, place);
      i += kAtOnce;
    }
    step_to(group.length);
  }
};

void extreme_along(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(1).as_int());
  if (call.in(0).numel == 0) return;
  visit_wide<kBools | kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> in(call.in(0));
    const Result<T> values(call.out(0));
    auto* places = static_cast<int64_t*>(call.out(1).data);
    if (call.arg(2).as_bool())
      for_lines<1>(span, ExtremesSoFar<true, T>{in.data(), values.data(), places});
    else
      for_lines<1>(span, ExtremesSoFar<false, T>{in.data(), values.data(), places});
    values.finish();
  });
}

template <class T>
struct Recurrence {
  using Acc = scan_t<T>;
  const T *a, *b;
  T* out;
  bool reverse;

  template <int64_t kLines, int64_t kAcross>
  void operator()(const LineGroup& group) const {
    if constexpr (kLines > 1 && kAcross == 0)
      if (group.template lines_collide<T>()) return by_parts<kLines>(group);
    const int64_t across = kAcross ? kAcross : group.across, to_factor = reverse ? group.along : 0;
    Acc h[kLines] = {};
    for (int64_t i = 0; i < group.length; ++i) {
      const int64_t at = group.start(i, reverse);
      const T *factor = a + at + to_factor, *term = b + at;
      // The first one has no predecessor; its coefficient may be anything, even infinite.
      const auto first = [&](int64_t c) { return convert_element<Acc>(term[c * across]); };
      const auto next = [&](int64_t c) {
        return h[c] * convert_element<Acc>(factor[c * across]) + first(c);
      };
      const auto put = [&](int64_t c, Acc made) {
        out[at + c * across] = convert_element<T>(made);
        h[c] = made;
      };
      if (i == 0)
        each_line<kLines>(first, put);
      else
        each_line<kLines>(next, put);
    }
  }

 private:
  template <int64_t kLines>
  void by_parts(const LineGroup& group) const {
    Acc h[kLines] = {};
    Parts<T, kLines> factor, term;
    for (int64_t done = 0; done < group.length; done += term.kLength) {
      const int64_t n = std::min(term.kLength, group.length - done);
      const int64_t at = group.first + (reverse ? group.length - done - n : done);
      if (reverse)
        factor.load(a + at + 1, group.across, done == 0 ? n - 1 : n);
      else
        factor.load(a + at, group.across, n);
      term.load(b + at, group.across, n);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = reverse ? n - 1 - i : i;
        const auto first = [&](int64_t c) { return convert_element<Acc>(term[c][k]); };
        const auto next = [&](int64_t c) {
          return h[c] * convert_element<Acc>(factor[c][k]) + first(c);
        };
        const auto put = [&](int64_t c, Acc made) {
          term[c][k] = convert_element<T>(made);
          h[c] = made;
        };
        if (done + i == 0)
          each_line<kLines>(first, put);
        else
          each_line<kLines>(next, put);
      }
      term.store(out + at, group.across, n);
    }
  }
};

void linear_recurrence(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  visit_wide<kFloats | kComplexes>(scanned(call.dtype()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> a(call.in(0)), b(call.in(1));
    const Result<T> result(call.out());
    for_lines(span, Recurrence<T>{a.data(), b.data(), result.data(), call.arg(3).as_bool()});
    result.finish();
  });
}

void shift_along(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(1).as_int());
  const int64_t by = std::clamp(call.arg(2).as_int(), -span.length, span.length);
  const Packed in(call.in(0));
  auto* out = static_cast<char*>(call.out().data);
  const int64_t line = span.length * span.inner * element_size(call.in(0));
  const int64_t moved = std::abs(by) * span.inner * element_size(call.in(0)), kept = line - moved;
  parallel_for(0, span.outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(line, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const char* from = in.data() + i * line;
                   char* to = out + i * line;
                   if (by >= 0) {
                     std::memset(to, 0, static_cast<size_t>(moved));
                     std::memcpy(to + moved, from, static_cast<size_t>(kept));
                   } else {
                     std::memcpy(to, from + moved, static_cast<size_t>(kept));
                     std::memset(to + kept, 0, static_cast<size_t>(moved));
                   }
                 }
               });
}

}  // namespace

KernelList cumulative_kernels() {
  static const oar_kernel list[] = {
      {"cumsum_along", 1, vector_name(), nullptr, kernel_entry<cumsum_along>},
      {"cumprod_along", 1, "cpu:generic", nullptr, kernel_entry<cumprod_along>},
      {"product_of_others", 1, vector_name(), nullptr, training_entry<product_of_others>},
      {"logcumsumexp_along", 1, "cpu:generic", nullptr, kernel_entry<logcumsumexp_along>},
      {"extreme_along", 1, "cpu:generic", nullptr, kernel_entry<extreme_along>},
      {"linear_recurrence", 1, "cpu:generic", nullptr, training_entry<linear_recurrence>},
      {"shift_along", 1, "cpu:generic", nullptr, kernel_entry<shift_along>},
  };
  return list;
}

}  // namespace oar::cpu
