// What reductions compute; see reduce.h.
#pragma once

#include <limits>

#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/reduce/fold_table.h"

namespace oar::cpu {

// Sums of integers wrap, as in NumPy.
template <class Acc>
Acc wrapping_add(Acc a, Acc b) {
  if constexpr (std::is_same_v<Acc, int64_t>)
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class Acc>
Acc wrapping_multiply(Acc a, Acc b) {
  if constexpr (std::is_same_v<Acc, int64_t>)
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

// Uses the loops of fold_table.h, if there are any.
template <Fold kFold, class T, class Acc>
struct Vectorised {};
template <Fold kFold, class T>
  requires std::is_same_v<T, float> || std::is_same_v<T, double>
struct Vectorised<kFold, T, T> {
  T run(const T* p, int64_t n, int64_t step, int64_t repeats, int64_t) const {
    return loops().run(p, n, step, repeats, nullptr);
  }
  void columns(const T* p, int64_t step, int64_t n, int64_t width, int64_t, T* acc) const {
    loops().columns(p, step, n, width, nullptr, acc);
  }
  static const FoldLoops<T>& loops() { return fold_table<T>().loops[static_cast<int>(kFold)]; }
};
template <Fold kFold>
  requires(kFold == Fold::sum || kFold == Fold::count)
struct Vectorised<kFold, int64_t, int64_t> {
  int64_t run(const int64_t* p, int64_t n, int64_t step, int64_t repeats, int64_t) const {
    const auto loop = kFold == Fold::sum ? integer_folds().sum : integer_folds().count;
    uint64_t total = 0;
    for (int64_t i = 0; i < repeats; ++i) total += static_cast<uint64_t>(loop(p + i * step, n));
    return static_cast<int64_t>(total);
  }
};
// The same for folds around a centre per row.
template <Fold kFold, class T, class Acc>
struct VectorisedAround {
  const Acc* centre;
};
template <Fold kFold, class T>
  requires std::is_same_v<T, float> || std::is_same_v<T, double>
struct VectorisedAround<kFold, T, T> {
  const T* centre;
  T run(const T* p, int64_t n, int64_t step, int64_t repeats, int64_t row) const {
    return Vectorised<kFold, T, T>::loops().run(p, n, step, repeats, centre + row);
  }
  void columns(const T* p, int64_t step, int64_t n, int64_t width, int64_t row, T* acc) const {
    Vectorised<kFold, T, T>::loops().columns(p, step, n, width, centre + row, acc);
  }
};

template <class Acc>
struct Adding {
  Acc identity() const { return Acc(0); }
  Acc join(Acc a, Acc b) const { return wrapping_add(a, b); }
  Acc finish(Acc acc, int64_t) const { return acc; }
};

template <class T, class Acc>
struct SumReducer : Adding<Acc>, Vectorised<Fold::sum, T, Acc> {
  Acc step(Acc acc, const T* p, int64_t) const {
    return wrapping_add(acc, convert_element<Acc>(*p));
  }
};

template <class T, class Acc>
struct MeanReducer : SumReducer<T, Acc> {
  int64_t count;
  Acc finish(Acc acc, int64_t) const {
    if constexpr (std::is_integral_v<Acc>)
      return acc / count;
    else if constexpr (is_complex_type<Acc>)
      return acc / static_cast<typename Acc::value_type>(count);
    else
      return acc / static_cast<Acc>(count);
  }
};

// The mean square distance from a known centre.
template <class T, class Acc>
struct SpreadReducer : Adding<Acc>, VectorisedAround<Fold::spread, T, Acc> {
  Acc divisor;
  Acc step(Acc acc, const T* p, int64_t row) const {
    const Acc d = static_cast<Acc>(*p) - this->centre[row];
    return acc + d * d;
  }
  Acc finish(Acc acc, int64_t) const { return acc / divisor; }
};

// NaN wins over every number, as in NumPy.
template <class T, bool kLargest>
struct ExtremeReducer : Vectorised<kLargest ? Fold::max : Fold::min, T, T> {
  using Acc = T;
  Acc identity() const {
    using Limits = std::numeric_limits<Acc>;
    if constexpr (Limits::has_infinity)
      return kLargest ? -Limits::infinity() : Limits::infinity();
    else
      return kLargest ? Limits::lowest() : Limits::max();
  }
  Acc join(Acc a, Acc b) const {
    const bool better = kLargest ? b > a : b < a;
    return better || b != b ? b : a;
  }
  Acc step(Acc acc, const T* p, int64_t) const { return join(acc, static_cast<Acc>(*p)); }
  Acc finish(Acc acc, int64_t) const { return acc; }
};

}  // namespace oar::cpu
