// Tensors of any float dtypes and strides, worked on as blocks of float or double: for fused
// kernels that read several tensors and write some of them in one pass. A formula is then compiled
// for two types only, as a loop of constant length.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "oar/backend/cpu/loops/axis.h"

namespace oar::cpu {

inline constexpr int64_t kBlock = 256;

// Elements of any float dtype to and from a block of C; strides in bytes.
template <class C>
struct Transfer {
  void (*load)(const char* from, int64_t stride, int64_t n, C* to);
  void (*store)(char* to, int64_t stride, int64_t n, const C* from);
};

template <class C, class T>
void load_block(const char* from, int64_t stride, int64_t n, C* __restrict to) {
  if (stride == sizeof(T) && n == kBlock) {
    const auto* __restrict p = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < kBlock; ++i) to[i] = convert_element<C>(p[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    to[i] = convert_element<C>(*reinterpret_cast<const T*>(from + i * stride));
}
template <class C, class T>
void store_block(char* to, int64_t stride, int64_t n, const C* __restrict from) {
  if (stride == sizeof(T) && n == kBlock) {
    auto* __restrict p = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < kBlock; ++i) p[i] = convert_element<T>(from[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(to + i * stride) = convert_element<T>(from[i]);
}

template <class C>
Transfer<C> transfer_of(const oar_tensor& t) {
  Transfer<C> transfer{};
  visit<kFloats>(static_cast<DType>(t.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    transfer = {load_block<C, T>, store_block<C, T>};
  });
  return transfer;
}

// work(blocks, count) changes blocks of kBlock elements of N tensors of one shape; the first
// `kWritten` of them are written back, and the first `kFresh` of those are not read before. After
// the `count` elements of a block there may be anything.
template <size_t kWritten, size_t kFresh, class C, size_t N, class Work>
void in_blocks(const std::array<const oar_tensor*, N>& tensors, Work&& work) {
  std::array<Transfer<C>, N> transfer;
  for (size_t k = 0; k < N; ++k) transfer[k] = transfer_of<C>(*tensors[k]);
  StridedLoop<N>(tensors).run([&](const auto& p, const auto& s, int64_t n) {
    C blocks[N][kBlock] = {};
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t count = std::min(kBlock, n - at);
      for (size_t k = kFresh; k < N; ++k)
        transfer[k].load(p[k] + at * s[k], s[k], count, blocks[k]);
      work(blocks, count);
      for (size_t k = 0; k < kWritten; ++k)
        transfer[k].store(p[k] + at * s[k], s[k], count, blocks[k]);
    }
  });
}

// Every block is changed in place, the first `kWritten` are written back.
template <size_t kWritten, class C, size_t N, class Update>
void update_blocks(const std::array<const oar_tensor*, N>& tensors, Update&& update) {
  in_blocks<kWritten, 0, C>(tensors, [&](C(*blocks)[kBlock], int64_t) { update(blocks); });
}

// step(pointers) changes kBlock elements of N tensors, the first `kWritten` of them to stay changed.
// Contiguous tensors of C are changed in place, without blocks.
template <size_t kWritten, class C, size_t N, class Step>
void update_in_place(const std::array<const oar_tensor*, N>& tensors, Step&& step) {
  const auto through = [&](C(*blocks)[kBlock]) {
    std::array<C*, N> at;
    for (size_t k = 0; k < N; ++k) at[k] = blocks[k];
    step(at);
  };
  const bool dense = std::all_of(tensors.begin(), tensors.end(), [](const oar_tensor* t) {
    return is_contiguous(*t) && static_cast<DType>(t->dtype) == dtype_for<C>;
  });
  const int64_t n = tensors[0]->numel, whole = n / kBlock;
  if (!dense || whole == 0) return update_blocks<kWritten, C>(tensors, through);
  const auto pointers = [&](int64_t at) {
    std::array<C*, N> made;
    for (size_t k = 0; k < N; ++k) made[k] = static_cast<C*>(tensors[k]->data) + at;
    return made;
  };
  parallel_for(0, whole, kGrain / kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) step(pointers(i * kBlock));
  });
  if (const int64_t rest = n - whole * kBlock; rest > 0) {
    const std::array<C*, N> last = pointers(whole * kBlock);
    C blocks[N][kBlock] = {};
    for (size_t k = 0; k < N; ++k) std::copy_n(last[k], rest, blocks[k]);
    through(blocks);
    for (size_t k = 0; k < kWritten; ++k) std::copy_n(blocks[k], rest, last[k]);
  }
}

// A tensor's elements in order, read in blocks of C.
template <class C>
class BlockSource {
 public:
  explicit BlockSource(const oar_tensor& t) {
    if (is_contiguous(t)) {
      data_ = static_cast<const char*>(t.data);
      size_ = static_cast<int64_t>(size_of(static_cast<DType>(t.dtype)));
      load_ = transfer_of<C>(t).load;
    } else {
      copy_.emplace(&t);
      data_ = reinterpret_cast<const char*>(copy_->data());
    }
  }
  void load(int64_t at, int64_t n, C* to) const { load_(data_ + at * size_, size_, n, to); }

 private:
  std::optional<Converted<C>> copy_;
  const char* data_ = nullptr;
  int64_t size_ = sizeof(C);
  void (*load_)(const char*, int64_t, int64_t, C*) = load_block<C, C>;
};

// The sum of term(blocks, made) over every block of N tensors of one shape. It is added
// pairwise, in pieces that depend on the size only.
template <class C, size_t N, class Term>
C block_sum(const std::array<const oar_tensor*, N>& tensors, Term&& term) {
  constexpr int64_t kPiece = 16 * kBlock, kLanes = 16;
  const auto sources = [&]<size_t... k>(std::index_sequence<k...>) {
    return std::array<BlockSource<C>, N>{BlockSource<C>(*tensors[k])...};
  }(std::make_index_sequence<N>());
  const int64_t n = tensors[0]->numel, pieces = (n + kPiece - 1) / kPiece;
  if (pieces == 0) return 0;
  const Scratch<C> sums(pieces);
  parallel_for(0, pieces, kGrain / kPiece, [&](int64_t begin, int64_t end) {
    C blocks[N][kBlock] = {}, made[kBlock];
    for (int64_t piece = begin; piece < end; ++piece) {
      C lanes[kLanes] = {};
      const int64_t stop = std::min(n, (piece + 1) * kPiece);
      for (int64_t at = piece * kPiece; at < stop; at += kBlock) {
        const int64_t count = std::min(kBlock, stop - at);
        for (size_t k = 0; k < N; ++k) sources[k].load(at, count, blocks[k]);
        term(blocks, made);
        for (int64_t i = count; i < kBlock; ++i) made[i] = 0;
        for (int64_t i = 0; i < kBlock; i += kLanes)
          for (int64_t k = 0; k < kLanes; ++k) lanes[k] += made[i + k];
      }
      for (int64_t width = kLanes / 2; width > 0; width /= 2)
        for (int64_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
      sums[piece] = lanes[0];
    }
  });
  for (int64_t count = pieces; count > 1; count = (count + 1) / 2)
    for (int64_t k = 0; k < count / 2; ++k) sums[k] += sums[(count + 1) / 2 + k];
  return sums[0];
}

// Double if the tensor is, else float.
template <class Body>
void in_precision_of(DType dtype, Body&& body) {
  if (dtype == DType::Float64)
    body(double{});
  else
    body(float{});
}

inline double scalar_of(const oar_tensor& t) {
  return load_element(t.data, static_cast<DType>(t.dtype)).real();
}

}  // namespace oar::cpu
