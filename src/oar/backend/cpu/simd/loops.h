// The loop around a functor, for one instruction set. As in functions.h everything has internal
// linkage and nothing comes from another header: a function compiled for AVX-512 must not become the
// program's only copy.
#pragma once

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "oar/backend/cpu/simd/functions.h"
#include "oar/backend/cpu/simd/table.h"
#include "oar/base/half_bits.h"

namespace oar::cpu::simd {
namespace {

using namespace functions;  // functors call these by name

// ---- Elements ----------------------------------------------------------------------------------

struct Brain {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};
struct Truth {
  uint8_t value;  // 0 or 1
};

inline float widened(Brain v) { return bits_as<float>(static_cast<uint32_t>(v.bits) << 16); }
// To the nearest, of two equally near ones the even. NaN stays NaN.
inline Brain narrowed_to_brain(float v) {
  const auto word = bits_as<uint32_t>(v);
  const uint32_t rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>(v != v ? (word >> 16 | 0x40) : rounded)};
}

// Elements are computed as another type than they are stored in, `kChunk` at a time.
constexpr int kChunk = 16;
template <class S>
struct Stored {
  using Compute = S;
  static constexpr bool kSame = true;  // in memory as in a block
};
template <>
struct Stored<Truth> {
  using Compute = uint8_t;
  static constexpr bool kSame = true;
  template <class T>
  static void store(Truth* to, const T* from) {
    for (int k = 0; k < kChunk; ++k) to[k].value = static_cast<uint8_t>(from[k]);
  }
};
template <>
struct Stored<Brain> {
  using Compute = float;
  static constexpr bool kSame = false;
  static void load(float* to, const Brain* from) {
    for (int k = 0; k < kChunk; ++k) to[k] = widened(from[k]);
  }
  static void store(Brain* to, const float* from) {
    for (int k = 0; k < kChunk; ++k) to[k] = narrowed_to_brain(from[k]);
  }
};
template <>
struct Stored<Half> {
  using Compute = float;
  static constexpr bool kSame = false;
#if defined(__F16C__)
  typedef short Shorts __attribute__((vector_size(16), aligned(2), may_alias));
  typedef float Floats __attribute__((vector_size(32), aligned(4), may_alias));
  static void load(float* to, const Half* from) {
    for (int k = 0; k < kChunk; k += 8)
      *reinterpret_cast<Floats*>(to + k) =
          __builtin_ia32_vcvtph2ps256(*reinterpret_cast<const Shorts*>(from + k));
  }
  static void store(Half* to, const float* from) {
    for (int k = 0; k < kChunk; k += 8)
      *reinterpret_cast<Shorts*>(to + k) =
          __builtin_ia32_vcvtps2ph256(*reinterpret_cast<const Floats*>(from + k), 0);
  }
#else
  static void load(float* to, const Half* from) {
    for (int k = 0; k < kChunk; ++k) to[k] = half_value(from[k].bits);
  }
  static void store(Half* to, const float* from) {
    for (int k = 0; k < kChunk; ++k) to[k].bits = half_bits(from[k]);
  }
#endif
};
template <class S>
using ComputeOf = typename Stored<S>::Compute;

// ---- Operands and results ------------------------------------------------------------------------

// Elements that are worked on at a time; a multiple of the chunk.
constexpr int64_t kBlock = 256;
// … and in one step of the loop, at most: four chunks of bytes are one vector.
constexpr int64_t kStep = 4 * kChunk;
constexpr int64_t round_up(int64_t n) { return (n + kChunk - 1) / kChunk * kChunk; }

// A block of an operand. A single element is repeated often enough for a step of the loop,
// and the block does not advance.
template <class T>
struct Block {
  const T* data;
  int64_t pace;  // 1, or 0
  const T* at(int64_t k) const { return data + k * pace; }
};

// Returns blocks of an operand, in place if possible.
template <class S>
class Operand {
 public:
  using Compute = ComputeOf<S>;
  Operand(const Run& run, int k)
      : data_(static_cast<const S*>(run.in[k])),
        across_(run.across[k + 1]),
        repeated_((run.repeated >> k & 1) != 0) {
    if (repeated_) spread();
  }
  void next_row() {
    if (across_ == 0) return;
    data_ = reinterpret_cast<const S*>(reinterpret_cast<const char*>(data_) + across_);
    if (repeated_) spread();
  }
  // `count` is a multiple of the chunk, or the rest of a run.
  Block<Compute> at(int64_t i, int64_t count) {
    if (repeated_) return {room_, 0};
    const S* from = data_ + i;
    const int64_t whole = count / kChunk * kChunk;
    if constexpr (Stored<S>::kSame)
      if (whole == count) return {reinterpret_cast<const Compute*>(from), 1};
    for (int64_t k = 0; k < whole; k += kChunk) convert(room_ + k, from + k);
    if (whole < count) {  // repeats the last element, which cannot cause new errors
      S padded[kChunk];
      for (int64_t k = 0; k < kChunk; ++k)
        padded[k] = from[whole + k < count ? whole + k : count - 1];
      convert(room_ + whole, padded);
    }
    return {room_, 1};
  }

 private:
  void spread() {
    if constexpr (Stored<S>::kSame) {
      const auto value = __builtin_bit_cast(Compute, *data_);
      for (int64_t i = 0; i < kStep; ++i) room_[i] = value;
    } else {
      S copies[kChunk];
      for (int i = 0; i < kChunk; ++i) copies[i] = *data_;
      for (int64_t i = 0; i < kStep; i += kChunk) convert(room_ + i, copies);
    }
  }
  static void convert(Compute* to, const S* from) {
    if constexpr (Stored<S>::kSame)
      __builtin_memcpy(to, from, kChunk * sizeof(S));
    else
      Stored<S>::load(to, from);
  }
  const S* data_;
  const int64_t across_;
  const bool repeated_;
  alignas(64) Compute room_[kBlock];
};

// Writes bypass the caches in whole lines, if the processor can.
constexpr int64_t kLine = 64;
inline void stream_line(char* to, const char* from) {
#if defined(__AVX__)
  for (int64_t k = 0; k < kLine; k += 32)
    _mm256_stream_ps(reinterpret_cast<float*>(to + k),
                     _mm256_loadu_ps(reinterpret_cast<const float*>(from + k)));
#else
  __builtin_memcpy(to, from, kLine);
#endif
}
inline void stream_fence() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

// Stores blocks of results.
template <class S, class Made>
class Result {
 public:
  explicit Result(const Run& run)
      : data_(static_cast<S*>(run.out)),
        across_(run.across[0]),
        stream_(run.stream && run.count * kSize >= 16 * kLine) {}
  ~Result() {
    if (stream_) stream_fence();
  }
  void next_row() { data_ = reinterpret_cast<S*>(reinterpret_cast<char*>(data_) + across_); }
  // How many elements to compute next, with `left` to go: streamed blocks start at a line.
  int64_t next(int64_t i, int64_t left) const {
    if (stream_) {
      const int64_t past = static_cast<int64_t>(bits_as<uintptr_t>(data_ + i) % kLine);
      if (past != 0) return least(left, (kLine - past + kSize - 1) / kSize);
    }
    if (left >= kBlock) return kBlock;
    return left >= kChunk ? left / kChunk * kChunk : left;
  }
  Made* at(int64_t i, int64_t count) {
    if constexpr (kSame)
      if (!stream_ && count % kChunk == 0) return reinterpret_cast<Made*>(data_ + i);
    return room_;
  }
  void put(int64_t i, int64_t count) {
    S* to = data_ + i;
    if constexpr (kSame) {
      if (!stream_ && count % kChunk == 0) return;
      write(to, reinterpret_cast<const S*>(room_), count);
    } else {
      alignas(64) S packed[kBlock];
      S* direct = stream_ || count % kChunk != 0 ? packed : to;
      for (int64_t k = 0; k < count; k += kChunk) Stored<S>::store(direct + k, room_ + k);
      if (direct == packed) write(to, packed, count);
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(S);
  static constexpr bool kSame = Stored<S>::kSame && sizeof(Made) == sizeof(S);
  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  void write(S* to, const S* from, int64_t count) const {
    if (stream_ && count == kBlock) {
      for (int64_t byte = 0; byte < kBlock * kSize; byte += kLine)
        stream_line(reinterpret_cast<char*>(to) + byte, reinterpret_cast<const char*>(from) + byte);
    } else {
      __builtin_memcpy(to, from, static_cast<unsigned long>(count * kSize));
    }
  }
  S* data_;
  const int64_t across_;
  const bool stream_;
  alignas(64) Made room_[kBlock];
};

// ---- The loop ----------------------------------------------------------------------------------

template <class F>
inline F functor(const double* numbers) {
  if constexpr (requires { F(numbers); })
    return F(numbers);
  else
    return F{};
}

// A functor may leave some arguments to another algorithm: `hard` finds them. If there is one,
// its block goes to `careful`, which is straight-line code too and returns the same for the others,
// or to `slow`, one by one.
template <class F, class... C>
inline bool any_hard(const F& f, int64_t count, const Block<C>&... in) {
  unsigned found = 0;
  const auto chunk = [&](const C*... at) {
    for (int j = 0; j < kChunk; ++j) found |= f.hard(at[j]...) ? 1u : 0u;
  };
  for (int64_t k = 0; k < count; k += kChunk) chunk(in.at(k)...);
  return found != 0;
}

// A functor may compute a chunk at once; hard elements in it are recomputed.
template <class F, class Made, class C>
inline void make_chunk(const F& f, Made* out, const C* in) {
  if constexpr (requires { f.hard(*in); }) {
    unsigned found = 0;
    for (int j = 0; j < kChunk; ++j) found |= f.hard(in[j]) ? 1u : 0u;
    if (found != 0) {
      C kept[kChunk];  // the result may replace the operand
      for (int j = 0; j < kChunk; ++j) kept[j] = in[j];
      f.chunk(out, in);
      for (int j = 0; j < kChunk; ++j) {
        const Made made = f.careful(kept[j]);
        out[j] = f.hard(kept[j]) ? made : out[j];
      }
      return;
    }
  }
  f.chunk(out, in);
}

template <int kCount, class Made, class F, class... C>
inline void make_step(const F& f, Made* out, const C*... in) {
#pragma GCC ivdep
  for (int j = 0; j < kCount; ++j) out[j] = f(in[j]...);
}

// Flattened: a call in the loop, even of the functor, would prevent vectorisation.
template <class F, class Made, class... C>
[[gnu::flatten]] inline void make(const F& f, Made* out, int64_t count, const Block<C>&... in) {
  count = round_up(count);
  if constexpr (requires { f.chunk(out, in.data...); }) {
    for (int64_t k = 0; k < count; k += kChunk) make_chunk(f, out + k, in.at(k)...);
    return;
  }
  if constexpr (requires { f.hard(*in.data...); }) {
    if (any_hard(f, count, in...)) {
      if constexpr (requires { f.careful(*in.data...); }) {
        const auto careful = [&f](C... v) { return f.careful(v...); };
        for (int64_t k = 0; k < count; k += kChunk)
          make_step<kChunk>(careful, out + k, in.at(k)...);
      } else {
        for (int64_t k = 0; k < count; ++k) out[k] = f.slow(*in.at(k)...);
      }
      return;
    }
  }
  int64_t k = 0;
  if constexpr (sizeof(Made) == 1)
    for (; k + kStep <= count; k += kStep) make_step<kStep>(f, out + k, in.at(k)...);
  for (; k < count; k += kChunk) make_step<kChunk>(f, out + k, in.at(k)...);
}

template <class F, class Out, class... In>
inline void run_over(const Run& run, In&&... in) {
  using Made = decltype(functor<F>(nullptr)(*in.at(0, 0).data...));
  const F f = functor<F>(run.numbers);
  Result<Out, Made> result(run);
  for (int64_t row = 0; row < run.rows; ++row) {
    if (row > 0) {
      result.next_row();
      (in.next_row(), ...);
    }
    for (int64_t i = 0; i < run.count;) {
      const int64_t count = result.next(i, run.count - i);
      make(f, result.at(i, count), count, in.at(i, count)...);
      result.put(i, count);
      i += count;
    }
  }
}
template <class F, class Out, class A>
void run1(const Run& run) {
  run_over<F, Out>(run, Operand<A>(run, 0));
}
template <class F, class Out, class A, class B>
void run2(const Run& run) {
  run_over<F, Out>(run, Operand<A>(run, 0), Operand<B>(run, 1));
}
template <class F, class Out, class A, class B, class C>
void run3(const Run& run) {
  run_over<F, Out>(run, Operand<A>(run, 0), Operand<B>(run, 1), Operand<C>(run, 2));
}

// ---- A row of the table ----------------------------------------------------------------------------

struct Row {
  Function by_type[kTypes];
};
template <template <class> class F, int kOperands, bool kAsks, class S>
constexpr Function loop() {
  using Functor = F<ComputeOf<S>>;
  if constexpr (kAsks) {
    if constexpr (kOperands == 1)
      return run1<Functor, Truth, S>;
    else
      return run2<Functor, Truth, S, S>;
  } else if constexpr (kOperands == 1) {
    return run1<Functor, S, S>;
  } else if constexpr (kOperands == 2) {
    return run2<Functor, S, S, S>;
  } else {
    return run3<Functor, S, S, S, S>;
  }
}
#if defined(__AVX512F__)
constexpr unsigned kHere = kAvx512Types;
#else
constexpr unsigned kHere = kNumbersAndBool;
#endif
template <template <class> class F, int kOperands, unsigned kOf, Type kType, class S, bool kAsks>
constexpr Function entry() {
  if constexpr (((kOf & kHere) >> kType & 1) != 0)
    return loop<F, kOperands, kAsks, S>();
  else
    return nullptr;
}
#define OAR_SIMD_ROW_OF(F, operands, types, asks)       \
  {entry<F, operands, types, kFloat32, float, asks>(),  \
   entry<F, operands, types, kFloat64, double, asks>(), \
   entry<F, operands, types, kBFloat16, Brain, asks>(), \
   entry<F, operands, types, kFloat16, Half, asks>(),   \
   entry<F, operands, types, kInt32, int32_t, asks>(),  \
   entry<F, operands, types, kInt64, int64_t, asks>(),  \
   entry<F, operands, types, kBool, Truth, asks>()},
#define OAR_SIMD_ROW(op, F, operands, numbers, types) OAR_SIMD_ROW_OF(F, operands, types, false)
#define OAR_SIMD_ASKING_ROW(op, F, operands, numbers, types) \
  OAR_SIMD_ROW_OF(F, operands, types, true)

}  // namespace
}  // namespace oar::cpu::simd
