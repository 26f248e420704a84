// The counter-based stream of random numbers inside kernels: an element takes the numbers of its index in the
// whole tensor, however the work and the tensor are cut.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/vector.h"
#include "oar/base/small_vector.h"
#include "oar/device/generator.h"
#include "oar/tensor/byte_count.h"

namespace oar::cpu {

using Block = std::array<uint32_t, 4>;

inline constexpr int64_t kGroup = 16;  // blocks that are computed together

// The same numbers as philox, for several blocks together that are `step` blocks apart.
// Eight blocks at once.
struct PhiloxEight {
  Word8 a, b, c{}, d{};

  PhiloxEight(uint64_t offset, uint64_t step) {
    for (uint64_t k = 0; k < 8; ++k) {
      a[k] = static_cast<uint32_t>(offset + k * step);
      b[k] = static_cast<uint32_t>((offset + k * step) >> 32);
    }
  }
  void round(uint32_t key0, uint32_t key1) {
    Word8 high0, low0, high1, low1;
    multiply_wide(a, 0xD2511F53, high0, low0);
    multiply_wide(c, 0xCD9E8D57, high1, low1);
    a = high1 ^ b ^ key0;
    c = high0 ^ d ^ key1;
    b = low1;
    d = low0;
  }
  // Blocks {a, b, c, d}: pairs of them first, one in each half.
  void store(Block* made) const {
    const Word8 ab0 = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13),
                ab1 = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15),
                cd0 = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13),
                cd1 = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
    const Word8 pair[] = {__builtin_shufflevector(ab0, cd0, 0, 1, 8, 9, 4, 5, 12, 13),
                          __builtin_shufflevector(ab0, cd0, 2, 3, 10, 11, 6, 7, 14, 15),
                          __builtin_shufflevector(ab1, cd1, 0, 1, 8, 9, 4, 5, 12, 13),
                          __builtin_shufflevector(ab1, cd1, 2, 3, 10, 11, 6, 7, 14, 15)};
    for (size_t k = 0; k < 4; ++k) {
      std::memcpy(made + k, &pair[k], 16);
      std::memcpy(made + 4 + k, reinterpret_cast<const char*>(&pair[k]) + 16, 16);
    }
  }
};
// Two times eight, since each round depends on the one before it.
inline void philox_group(uint64_t seed, uint64_t offset, Block* made, uint64_t step = 1) {
  static_assert(kGroup == 16);
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  PhiloxEight first(offset, step), second(offset + 8 * step, step);
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
    first.round(key0, key1);
    second.round(key0, key1);
  }
  first.store(made);
  second.store(made + 8);
}

// A place in the stream; blocks of four numbers follow it.
struct Stream {
  uint64_t seed = 0, offset = 0;
  Block block(uint64_t i) const { return philox(seed, offset + i); }
  // body(i, block) for i in [begin, end).
  template <class Body>
  void blocks(int64_t begin, int64_t end, Body&& body) const {
    Block made[kGroup];
    for (int64_t i = begin; i < end; i += kGroup) {
      philox_group(seed, offset + static_cast<uint64_t>(i), made);
      for (int64_t k = 0; k < std::min(kGroup, end - i); ++k) body(i + k, made[k]);
    }
  }
};

// The next `numbers` of the device's stream, or the start of the stream of a seed.
inline Stream take(KernelCall& call, uint64_t numbers, int64_t seed = 0) {
  if (seed != 0) return {static_cast<uint64_t>(seed), 0};
  Stream stream;
  call.reserve_random(numbers, &stream.seed, &stream.offset);
  return stream;
}

// In [0, 1), with as many bits as the type holds.
inline float unit_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
inline double unit_double(uint32_t low, uint32_t high) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}
inline uint64_t joined(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

// Elements that one block yields: 64-bit types take two numbers each.
template <class C>
inline constexpr int64_t kPerBlock = sizeof(C) == 8 ? 2 : 4;

// Which part of a larger tensor a result is: the op's last argument, `_part`, holds where it begins along
// each axis, then the sizes of the whole; None means the whole itself.
class Part {
 public:
  explicit Part(const KernelCall& call) : whole_(call.out().numel) {
    const int last = call.input_count - 1;
    if (call.has(last)) read(call.out(), call.arg(last).as_ints());
  }

  bool is_whole() const { return is_whole_; }
  int64_t whole_numel() const { return whole_; }
  // The index in the whole tensor of an element.
  int64_t index(int64_t i) const { return is_whole_ ? i : begin_of(i / run_) + i % run_; }
  // body(first element, its index in the whole, count) over neighbours in both, for elements [begin, end).
  template <class Body>
  void runs(int64_t begin, int64_t end, Body&& body) const {
    while (begin < end) {
      const int64_t count = is_whole_ ? end - begin : std::min(end - begin, run_ - begin % run_);
      body(begin, index(begin), count);
      begin += count;
    }
  }

 private:
  static constexpr int64_t kBytes = 8;  // of the largest element
  struct Axis {
    int64_t size, begin, stride;  // stride: of the whole
  };

  void read(const oar_tensor& out, Ints part) {
    const auto rank = static_cast<size_t>(out.ndim);
    user_check(
        part.size() == 2 * rank, ErrorKind::InvalidArgument,
        "_part has {} numbers; a result with {} axes needs {}: where the part begins, and the sizes "
        "of the whole.",
        part.size(), rank, 2 * rank);
    is_whole_ = false;
    run_ = 1;
    Count inner = kBytes;  // of the axes so far, in bytes: indices in the whole then never wrap
    bool full = true, empty = false;  // full: so far every axis of the whole is in the part
    for (size_t i = rank; i-- > 0;) {
      const int64_t size = out.shape[i], begin = part[i], whole = part[rank + i];
      user_check(begin >= 0 && size <= whole && begin <= whole - size, ErrorKind::InvalidArgument,
                 "_part begins at {} of axis {} and has {} elements, but the whole has {}.", begin,
                 i, size, whole);
      const int64_t stride = inner.value() / kBytes;
      inner = inner * std::max<int64_t>(whole, 1);
      empty = empty || whole == 0;
      if (full) {
        run_ *= size;
        first_ = begin * stride;
        full = size == whole;
      } else {
        outer_.push_back({size, begin, stride});
      }
    }
    whole_ = empty ? 0 : inner.value() / kBytes;
  }

  // Where a run begins in the whole.
  int64_t begin_of(int64_t run) const {
    int64_t at = first_;
    for (const Axis& axis : outer_) {
      at += (run % axis.size + axis.begin) * axis.stride;
      run /= axis.size;
    }
    return at;
  }

  bool is_whole_ = true;
  int64_t whole_, run_ = 1, first_ = 0;
  SmallVector<Axis, 6> outer_;  // the innermost first
};

// body(element, which of the block's numbers, block) for every element, where a block serves `per` elements.
template <int64_t per, class Body>
void each_block(const oar_tensor& out, const Part& part, const Stream& stream, int64_t grain,
                Body&& body) {
  parallel_for(0, out.numel, grain, [&](int64_t begin, int64_t end) {
    part.runs(begin, end, [&](int64_t first, int64_t at, int64_t count) {
      stream.blocks(at / per, (at + count - 1) / per + 1, [&](int64_t b, const Block& bits) {
        const int64_t i = first + (b * per - at);  // the element of the block's first number
        if (b * per >= at && (b + 1) * per <= at + count) {
          for (int64_t k = 0; k < per; ++k) body(i + k, static_cast<size_t>(k), bits);
          return;
        }
        for (int64_t k = 0; k < per; ++k)  // the run begins or ends inside the block
          if (b * per + k >= at && b * per + k < at + count)
            body(i + k, static_cast<size_t>(k), bits);
      });
    });
  });
}

// A part of the elements of fill_blocks: groups across its ends are computed whole.
template <class T, class C, int64_t per, class Values>
void fill_part(const oar_tensor& out, const Part& part, const Stream& stream, Values&& values) {
  constexpr int64_t group = kGroup * per;
  auto* o = static_cast<T*>(out.data);
  parallel_for(0, out.numel, kGrain, [&](int64_t begin, int64_t end) {
    Block bits[kGroup];
    C made[group];
    int64_t ready = -1;  // the group that is computed: short runs share it
    part.runs(begin, end, [&](int64_t first, int64_t at, int64_t count) {
      T* const to = o + first;
      for (int64_t g = at / group; g * group < at + count; ++g) {
        if (g != ready) {
          philox_group(stream.seed, stream.offset + static_cast<uint64_t>(g * kGroup), bits);
          values(bits, made);
          ready = g;
        }
        const int64_t from = std::max(at, g * group), until = std::min(at + count, (g + 1) * group);
        for (int64_t k = from; k < until; ++k) to[k - at] = convert_element<T>(made[k - g * group]);
      }
    });
  });
}

// values(blocks, made) computes the elements of kGroup blocks as C; they are stored as T.
template <class T, class C, int64_t per = kPerBlock<C>, class Values>
void fill_blocks(const oar_tensor& out, const Part& part, const Stream& stream, Values&& values) {
  if (!part.is_whole()) return fill_part<T, C, per>(out, part, stream, values);
  constexpr int64_t group = kGroup * per;
  auto* o = static_cast<T*>(out.data);
  parallel_for(0, (out.numel + group - 1) / group, kGrain / 64, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      Block bits[kGroup];
      C made[group];
      philox_group(stream.seed, stream.offset + static_cast<uint64_t>(g * kGroup), bits);
      values(bits, made);
      T* to = o + g * group;
      const int64_t count = out.numel - g * group;
      if (count >= group)
        for (int64_t k = 0; k < group; ++k) to[k] = convert_element<T>(made[k]);
      else
        for (int64_t k = 0; k < count; ++k) to[k] = convert_element<T>(made[k]);
    }
  });
}

// Uniform numbers of [0, 1) for a group of blocks.
template <class C>
void units_of(const Block* bits, C* made) {
  for (size_t b = 0; b < kGroup; ++b)
    for (size_t k = 0; k < kPerBlock<C>; ++k) {
      const size_t at = b * kPerBlock<C> + k;
      if constexpr (sizeof(C) == 8)
        made[at] = unit_double(bits[b][2 * k], bits[b][2 * k + 1]);
      else
        made[at] = unit_float(bits[b][k]);
    }
}

// Numbers one after the other for an element that needs an unknown number of them: each element
// has its own part of the stream.
class Supply {
 public:
  Supply(const Stream& stream, uint64_t first, uint64_t blocks)
      : stream_(stream), next_(first), end_(first + blocks) {}
  double unit() {
    if (half_ == 0) block_ = stream_.block(next_ < end_ ? next_++ : end_ - 1);
    half_ = 2 - half_;
    const size_t at = half_ == 2 ? 0 : 2;
    return unit_double(block_[at], block_[at + 1]);
  }

 private:
  const Stream& stream_;
  uint64_t next_, end_;
  Block block_{};
  size_t half_ = 0;
};

}  // namespace oar::cpu
