// Resampling, and the gradient of padding, by a sparse matrix per axis. Axes are nested: a slab of the result is
// a weighted sum of slabs, each of which is resampled along the later axes. The gradient is the same
// with the matrices transposed.
#include <cmath>
#include <cstring>
#include <vector>

#include "oar/backend/cpu/loops/copy.h"

namespace oar::cpu {
namespace {

// Element i of the result is the sum of weight[t] * x[index[t]], t from start[i] to start[i + 1].
struct Taps {
  int64_t in = 0, out = 0;
  std::vector<int64_t> start{0};
  std::vector<int32_t> index;
  std::vector<double> weight;

  // Indices come in order; those beyond the edge are the edge.
  void add(int64_t at, double w) {
    const auto place = static_cast<int32_t>(std::clamp<int64_t>(at, 0, in - 1));
    const auto begin = static_cast<size_t>(start.back());
    if (index.size() > begin && index.back() == place) {
      weight.back() += w;
    } else if (w != 0) {  // so that an infinite neighbour without weight does not matter
      index.push_back(place);
      weight.push_back(w);
    }
  }
  void close() { start.push_back(static_cast<int64_t>(index.size())); }

  Taps transposed() const {
    Taps t;
    t.in = out;
    t.out = in;
    t.start.assign(static_cast<size_t>(in) + 1, 0);
    for (int32_t i : index) ++t.start[static_cast<size_t>(i) + 1];
    for (size_t i = 1; i < t.start.size(); ++i) t.start[i] += t.start[i - 1];
    t.index.resize(index.size());
    t.weight.resize(index.size());
    std::vector<int64_t> at(t.start.begin(), t.start.end() - 1);
    for (int64_t row = 0; row < out; ++row)
      for (auto k = static_cast<size_t>(start[static_cast<size_t>(row)]);
           k < static_cast<size_t>(start[static_cast<size_t>(row) + 1]); ++k) {
        const auto to = static_cast<size_t>(at[static_cast<size_t>(index[k])]++);
        t.index[to] = static_cast<int32_t>(row);
        t.weight[to] = weight[k];
      }
    return t;
  }
};

double cubic_weight(double distance) {
  constexpr double a = -0.75;
  return distance <= 1 ? ((a + 2) * distance - (a + 3)) * distance * distance + 1
                       : ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
}

struct Mapping {
  std::string_view mode;
  bool align_corners, half_pixels;
  int64_t axes = 0;

  // As in Paddle: an axis of one result takes its beginning, except for linear lines and volumes, which take the middle.
  bool from_beginning(int64_t out) const {
    return out == 1 && (align_corners || axes == 2 || mode != "linear");
  }
};

void add_taps(Taps& taps, const Mapping& map, double ratio, int64_t i) {
  const auto x = static_cast<double>(i);
  if (map.mode == "nearest") {
    // In float, as elsewhere: other rounding would select other pixels.
    taps.add(static_cast<int64_t>(static_cast<float>(ratio) * static_cast<float>(i)), 1.0);
  } else if (map.mode == "linear") {
    const double at = map.half_pixels ? std::max(ratio * (x + 0.5) - 0.5, 0.0) : ratio * x;
    const double below = std::floor(at);
    taps.add(static_cast<int64_t>(below), 1 - (at - below));
    taps.add(static_cast<int64_t>(below) + 1, at - below);
  } else if (map.mode == "cubic") {
    const double at = map.align_corners ? ratio * x : ratio * (x + 0.5) - 0.5;
    const double below = std::floor(at);
    for (int d = -1; d <= 2; ++d)
      taps.add(static_cast<int64_t>(below) + d, cubic_weight(std::abs(at - below - d)));
  } else {
    const int64_t begin = i * taps.in / taps.out,
                  end = ((i + 1) * taps.in + taps.out - 1) / taps.out;
    for (int64_t k = begin; k < end; ++k) taps.add(k, 1.0 / static_cast<double>(end - begin));
  }
}

Taps make_taps(const Mapping& map, int64_t in, int64_t out, double scale) {
  const double ratio = map.from_beginning(out) ? 0
                       : map.align_corners
                           ? static_cast<double>(in - 1) / static_cast<double>(out - 1)
                       : scale > 0 ? 1 / scale
                                   : static_cast<double>(in) / static_cast<double>(out);
  Taps taps;
  taps.in = in;
  taps.out = out;
  for (int64_t i = 0; i < out; ++i) {
    add_taps(taps, map, ratio, i);
    taps.close();
  }
  return taps;
}

// Adjacent results with the same number of taps: tap k of result i is at [k * count + i].
template <class W>
struct Run {
  int64_t begin, count, taps;
  bool straight;  // one tap each, of weight 1, and those are adjacent: a copy
  std::vector<int32_t> index;
  std::vector<W> weight;
};

template <class C>
struct WeightOf {
  using type = C;
};
template <class R>
struct WeightOf<std::complex<R>> {
  using type = R;
};

// kMoves: every result is one element of x, which is only moved (any type of that width).
template <class C, bool kMoves>
class Resampler {
 public:
  using W = std::conditional_t<kMoves, char, typename WeightOf<C>::type>;

  Resampler(std::vector<Taps> axes, int64_t inner) : inner_(inner) {
    int64_t in_step = inner, out_step = inner;
    for (size_t k = axes.size(); k-- > 0;) {
      Level level{std::move(axes[k]), {}, in_step, out_step, 1, 0};
      in_step *= level.taps.in;
      out_step *= level.taps.out;
      level.prepare();
      scratch_ += level.scratch();
      levels_.insert(levels_.begin(), std::move(level));
    }
    if (inner == 1) runs_ = runs_of(levels_.back());
    image_ = in_step;
    result_ = out_step;
  }

  // `count` images one after another.
  void run(const C* x, C* out, int64_t count) const {
    const Level& first = levels_[0];
    const int64_t rows = first.taps.out;
    const int64_t piece = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, first.out_step));
    const int64_t pieces = (rows + piece - 1) / piece;
    parallel_for(0, count * pieces, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, result_)),
                 [&](int64_t begin, int64_t end) {
                   Scratch<C> memory(scratch_);
                   std::vector<int64_t> held(levels_.size() * kSlots);
                   for (int64_t k = begin; k < end; ++k) {
                     const int64_t image = k / pieces, row = k % pieces * piece;
                     State state{memory.data(), held.data()};
                     level(0, x + image * image_, out + image * result_, row,
                           std::min(rows, row + piece), state);
                   }
                 });
  }

 private:
  static constexpr int64_t kSlots = 16;

  struct Level {
    Taps taps;
    std::vector<W> weight;
    int64_t in_step, out_step;  // elements of a slab before and after the resampling
    int64_t span;               // a result's taps are among so many neighbours
    int64_t offset;

    void prepare() {
      for (double w : taps.weight) weight.push_back(static_cast<W>(w));
      for (size_t i = 0; i + 1 < taps.start.size(); ++i)
        if (taps.start[i] < taps.start[i + 1])
          span = std::max<int64_t>(span, taps.index[static_cast<size_t>(taps.start[i + 1]) - 1] -
                                             taps.index[static_cast<size_t>(taps.start[i])] + 1);
    }
    // Resampled slabs are kept for the next results if there are more results than slabs.
    bool keeps() const { return taps.out > taps.in && span <= kSlots; }
    int64_t scratch() const { return keeps() ? span * out_step : in_step; }
  };
  struct State {
    C* memory;
    int64_t* held;  // which slab is kept in which slot
  };

  // dst = the sum over taps of weight * (slab of `step` elements).
  static void combine(const Level& level, int64_t row, const C* from, int64_t step, C* dst,
                      const C* const* slabs) {
    const auto begin = static_cast<size_t>(level.taps.start[static_cast<size_t>(row)]),
               end = static_cast<size_t>(level.taps.start[static_cast<size_t>(row) + 1]);
    const auto slab = [&](size_t k) {
      return slabs ? slabs[k - begin] : from + level.taps.index[k] * step;
    };
    if constexpr (kMoves) {
      std::memcpy(static_cast<void*>(dst), slab(begin), static_cast<size_t>(step) * sizeof(C));
    } else {
      const W* w = level.weight.data();
      size_t k = begin;
      const auto left = end - begin;
      if (left == 0) {
        std::fill(dst, dst + step, C(0));
      } else if (left == 1 && w[k] == W(1)) {
        std::memcpy(static_cast<void*>(dst), slab(k), static_cast<size_t>(step) * sizeof(C));
      } else if (left == 1) {
        weigh<1, false>(dst, step, {slab(k)}, w + k);
      } else if (left == 2) {
        weigh<2, false>(dst, step, {slab(k), slab(k + 1)}, w + k);
      } else if (left == 3) {
        weigh<3, false>(dst, step, {slab(k), slab(k + 1), slab(k + 2)}, w + k);
      } else {
        weigh<4, false>(dst, step, {slab(k), slab(k + 1), slab(k + 2), slab(k + 3)}, w + k);
        for (k += 4; k + 4 <= end; k += 4)
          weigh<4, true>(dst, step, {slab(k), slab(k + 1), slab(k + 2), slab(k + 3)}, w + k);
        for (; k < end; ++k) weigh<1, true>(dst, step, {slab(k)}, w + k);
      }
    }
  }

  template <int kTaps, bool kAdds>
  static void weigh(C* __restrict dst, int64_t count, std::array<const C*, kTaps> from,
                    const W* w) {
    for (int64_t i = 0; i < count; ++i) {
      C sum = from[0][i] * w[0];
      for (int k = 1; k < kTaps; ++k) sum += from[static_cast<size_t>(k)][i] * w[k];
      dst[i] = kAdds ? dst[i] + sum : sum;
    }
  }

  // Rows [begin, end) of an axis and everything after it. `out` is where row 0 would be.
  void level(size_t depth, const C* x, C* out, int64_t begin, int64_t end, State state) const {
    const Level& here = levels_[depth];
    if (depth + 1 == levels_.size()) {
      if (inner_ == 1 && begin == 0 && end == here.taps.out) return line(x, out);
      for (int64_t i = begin; i < end; ++i) combine(here, i, x, inner_, out + i * inner_, nullptr);
      return;
    }
    const State next{state.memory + here.scratch(), state.held + kSlots};
    const int64_t whole = levels_[depth + 1].taps.out;
    if constexpr (kMoves) return moving(depth, x, out, begin, end, next);
    if (here.keeps()) return keeping(depth, x, out, begin, end, state, next);
    for (int64_t i = begin; i < end; ++i) {
      const auto tap = static_cast<size_t>(here.taps.start[static_cast<size_t>(i)]);
      const bool single =
          here.taps.start[static_cast<size_t>(i) + 1] - here.taps.start[static_cast<size_t>(i)] ==
          1;
      const C* slab = state.memory;
      if (single && (kMoves || here.weight[tap] == W(1)))
        slab = x + here.taps.index[tap] * here.in_step;
      else
        combine(here, i, x, here.in_step, state.memory, nullptr);
      level(depth + 1, slab, out + i * here.out_step, 0, whole, next);
    }
  }

  // Each slab of the result is one of x's; a repetition of the previous one is copied from there.
  void moving(size_t depth, const C* x, C* out, int64_t begin, int64_t end, State next) const {
    const Level& here = levels_[depth];
    for (int64_t i = begin; i < end; ++i) {
      const int32_t index = here.taps.index[static_cast<size_t>(i)];
      C* to = out + i * here.out_step;
      if (i > begin && index == here.taps.index[static_cast<size_t>(i - 1)])
        std::memcpy(static_cast<void*>(to), to - here.out_step,
                    static_cast<size_t>(here.out_step) * sizeof(C));
      else
        level(depth + 1, x + index * here.in_step, to, 0, levels_[depth + 1].taps.out, next);
    }
  }

  void keeping(size_t depth, const C* x, C* out, int64_t begin, int64_t end, State state,
               State next) const {
    const Level& here = levels_[depth];
    std::fill(state.held, state.held + here.span, -1);
    std::array<const C*, kSlots> slabs;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = here.taps.start[static_cast<size_t>(i)],
                    last = here.taps.start[static_cast<size_t>(i) + 1];
      for (int64_t k = first; k < last; ++k) {
        const int64_t index = here.taps.index[static_cast<size_t>(k)], slot = index % here.span;
        C* kept = state.memory + slot * here.out_step;
        if (state.held[slot] != index) {
          level(depth + 1, x + index * here.in_step, kept, 0, levels_[depth + 1].taps.out, next);
          state.held[slot] = index;
        }
        slabs[static_cast<size_t>(k - first)] = kept;
      }
      combine(here, i, nullptr, here.out_step, out + i * here.out_step, slabs.data());
    }
  }

  static std::vector<Run<W>> runs_of(const Level& level) {
    const auto& start = level.taps.start;
    const auto taps_at = [&](int64_t i) {
      return start[static_cast<size_t>(i) + 1] - start[static_cast<size_t>(i)];
    };
    std::vector<Run<W>> runs;
    const auto copies = [&](int64_t i) {  // how many results from i on
      const auto tap = [&](int64_t j) {
        return static_cast<size_t>(start[static_cast<size_t>(j)]);
      };
      const auto plain = [&](int64_t j) {
        return taps_at(j) == 1 && level.taps.weight[tap(j)] == 1;
      };
      int64_t n = 0;
      while (i + n < level.taps.out && plain(i + n) &&
             level.taps.index[tap(i + n)] == level.taps.index[tap(i)] + n)
        ++n;
      return n;
    };
    constexpr int64_t kWorthwhile = 16;
    for (int64_t i = 0; i < level.taps.out;) {
      const bool straight = copies(i) >= kWorthwhile;
      int64_t end = straight ? i + copies(i) : i + 1;
      while (!straight && end < level.taps.out && taps_at(end) == taps_at(i) &&
             copies(end) < kWorthwhile)
        ++end;
      Run<W> run{i, end - i, taps_at(i), straight, {}, {}};
      for (int64_t k = 0; k < run.taps; ++k)
        for (int64_t j = i; j < end; ++j) {
          const auto tap = static_cast<size_t>(start[static_cast<size_t>(j)] + k);
          run.index.push_back(level.taps.index[tap]);
          run.weight.push_back(level.weight[tap]);
        }
      runs.push_back(std::move(run));
      i = end;
    }
    return runs;
  }

  template <int kTaps, bool kAdds>
  static void gather(const Run<W>& run, int64_t first, const C* __restrict x, C* __restrict out) {
    const int64_t n = run.count;
    const int32_t* index = run.index.data() + first * n;
    const W* w = run.weight.data() + first * n;
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (kMoves) {
        out[i] = x[index[i]];
      } else {
        C sum = x[index[i]] * w[i];
        for (int k = 1; k < kTaps; ++k) sum += x[index[k * n + i]] * w[k * n + i];
        out[i] = kAdds ? out[i] + sum : sum;
      }
    }
  }

  // The last axis, where results are adjacent.
  void line(const C* x, C* out) const {
    for (const Run<W>& run : runs_) {
      C* to = out + run.begin;
      if (run.straight) {
        std::memcpy(static_cast<void*>(to), x + run.index[0],
                    static_cast<size_t>(run.count) * sizeof(C));
      } else if constexpr (kMoves) {
        gather<1, false>(run, 0, x, to);
      } else {
        switch (run.taps) {
          case 0:
            std::fill(to, to + run.count, C(0));
            break;
          case 1:
            gather<1, false>(run, 0, x, to);
            break;
          case 2:
            gather<2, false>(run, 0, x, to);
            break;
          case 3:
            gather<3, false>(run, 0, x, to);
            break;
          default:
            gather<4, false>(run, 0, x, to);
            for (int64_t k = 4; k < run.taps; ++k) gather<1, true>(run, k, x, to);
        }
      }
    }
  }

  std::vector<Level> levels_;
  std::vector<Run<W>> runs_;
  int64_t inner_, image_ = 0, result_ = 0, scratch_ = 0;
};

// Arguments: axis, size, scale, then if present: mode, align_corners, align_mode.
std::vector<Taps> taps_of(const KernelCall& call, const Mapping& map, bool reverse) {
  const oar_tensor &from = call.in(0), &to = call.out();
  const int64_t axis = normalise_axis(call.arg(1).as_int(), from.ndim);
  std::vector<Taps> axes;
  for (size_t k = 0; k < call.arg(2).as_ints().size(); ++k) {
    const int64_t at = axis + static_cast<int64_t>(k);
    const double scale = call.has(3) ? call.arg(3).as_doubles()[k] : 0;
    user_check(from.shape[at] <= INT32_MAX && to.shape[at] <= INT32_MAX, ErrorKind::InvalidArgument,
               "axis {} has {} elements, more than can be resampled.", at, from.shape[at]);
    axes.push_back(reverse ? make_taps(map, to.shape[at], from.shape[at], scale).transposed()
                           : make_taps(map, from.shape[at], to.shape[at], scale));
  }
  return axes;
}

struct Around {
  int64_t images = 1, inner = 1;
  explicit Around(const KernelCall& call) {
    const oar_tensor& x = call.in(0);
    const int64_t axis = normalise_axis(call.arg(1).as_int(), x.ndim),
                  end = axis + static_cast<int64_t>(call.arg(2).as_ints().size());
    for (int64_t i = 0; i < axis; ++i) images *= x.shape[i];
    for (int64_t i = end; i < x.ndim; ++i) inner *= x.shape[i];
  }
};

template <bool kReverse>
void resample(KernelCall& call) {
  if (call.out().numel == 0) return;
  const bool align_corners = call.arg(5).as_bool();
  const Mapping map{call.arg(4).as_string(), align_corners,
                    !align_corners && call.arg(6).as_int() == 0,
                    static_cast<int64_t>(call.arg(2).as_ints().size())};
  const Around around(call);
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> x(call.in(0));
    const Result<T> result(call.out());
    Resampler<compute_t<T>, false>(taps_of(call, map, kReverse), around.inner)
        .run(x.data(), result.data(), around.images);
    result.finish();
  });
}

void resample_nearest(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Around around(call);
  const Packed x(call.in(0));
  visit_width(call.in(0), [&](auto word) {
    using Word = decltype(word);
    Resampler<Word, true>(taps_of(call, {"nearest", false, false}, false), around.inner)
        .run(x.data<Word>(), static_cast<Word*>(call.out().data), around.images);
  });
}

// The gradient of padding is resampling, too: each element beyond an edge was one of those inside.
Taps edge_taps(std::string_view mode, int64_t size, int64_t before, int64_t after) {
  const int64_t cut = std::max<int64_t>(-before, 0),
                kept = size - cut - std::max<int64_t>(-after, 0);
  Taps taps;
  taps.in = size;
  taps.out = size + before + after;
  for (int64_t i = 0; i < taps.out; ++i) {
    int64_t at = i - std::max<int64_t>(before, 0);
    if (mode == "circular")
      at = at < 0 ? at + kept : at >= kept ? at - kept : at;
    else if (mode == "reflect")
      at = at < 0 ? -at : at >= kept ? 2 * (kept - 1) - at : at;
    else
      at = std::clamp<int64_t>(at, 0, kept - 1);
    taps.add(cut + at, 1);
    taps.close();
  }
  return taps;
}

// The padded axes of x, from the first to the last, in reverse, and the sizes around them.
struct Edges {
  std::vector<Taps> axes;
  int64_t images = 1, inner = 1;
  Edges(const oar_tensor& x, Ints paddings, std::string_view mode) {
    const auto pads = [&](int i) {
      const auto at = 2 * static_cast<size_t>(i);
      return paddings[at] != 0 || paddings[at + 1] != 0;
    };
    int first = 0, end = x.ndim;
    while (first + 1 < end && !pads(first)) images *= x.shape[first++];
    while (end - 1 > first && !pads(end - 1)) inner *= x.shape[--end];
    for (int i = first; i < end; ++i) {
      const auto at = 2 * static_cast<size_t>(i);
      axes.push_back(edge_taps(mode, x.shape[i], paddings[at], paddings[at + 1]).transposed());
    }
  }
};

void pad_edges_grad(KernelCall& call) {
  const oar_tensor& x = call.out();
  if (x.numel == 0) return;
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> grad(call.in(0));
    const Result<T> result(call.out());
    if (x.ndim == 0) {
      *result.data() = *grad.data();
    } else {
      Edges edges(x, call.arg(1).as_ints(), call.arg(2).as_string());
      Resampler<compute_t<T>, false>(std::move(edges.axes), edges.inner)
          .run(grad.data(), result.data(), edges.images);
    }
    result.finish();
  });
}

}  // namespace

KernelList resample_kernels() {
  static const oar_kernel list[] = {
      {"resample", 1, "cpu:generic", nullptr, kernel_entry<resample<false>>},
      {"resample_grad", 1, "cpu:generic", nullptr, training_entry<resample<true>>},
      {"pad_edges_grad", 1, "cpu:generic", nullptr, training_entry<pad_edges_grad>},
      {"resample_nearest", 1, "cpu:generic", nullptr, kernel_entry<resample_nearest>},
  };
  return list;
}

}  // namespace oar::cpu
