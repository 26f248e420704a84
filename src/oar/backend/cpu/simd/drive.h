// Takes tensors of any strides to the vectorised loops.
#pragma once

#include <array>

#include "oar/backend/cpu/loops.h"
#include "oar/backend/cpu/simd/table.h"

namespace oar::cpu::simd {

// A result of at least this many bytes is written past the caches: it would be gone from them before
// anybody reads it.
inline constexpr int64_t kStreamedFrom = int64_t{16} << 20;

// One piece of work: calls the loop on runs that lie in order, and collects what does not, or is too
// short, in buffers.
template <size_t N>  // operands
class Piece {
 public:
  using Pointers = std::array<char*, N + 1>;
  using Strides = std::array<int64_t, N + 1>;
  Piece(Function function, const Strides& sizes, const double* numbers, bool stream)
      : function_(function), sizes_(sizes), numbers_(numbers), stream_(stream) {}

  void operator()(const Pointers& p, const Strides& s, int64_t n) {
    if (n == 1 ? filled_ == 0 : n >= kShort && in_order(s)) return call(p, s, n);
    for (int64_t i = 0; i < n;) {
      const int64_t count = std::min(n - i, kRoom - filled_);
      for (size_t k = 1; k <= N; ++k)
        gather(room_[k] + filled_ * sizes_[k], p[k] + i * s[k], s[k], sizes_[k], count);
      segments_[segment_count_++] = {p[0] + i * s[0], s[0], count};
      filled_ += count;
      i += count;
      if (filled_ == kRoom || segment_count_ == kSegments) finish();
    }
  }
  void finish() {
    if (filled_ == 0) return;
    Pointers p;
    for (size_t k = 0; k <= N; ++k) p[k] = room_[k];
    call(p, sizes_, filled_);
    int64_t done = 0;
    for (int64_t i = 0; i < segment_count_; ++i) {
      const Segment& part = segments_[i];
      scatter(part.to, room_[0] + done * sizes_[0], part.stride, sizes_[0], part.count);
      done += part.count;
    }
    filled_ = segment_count_ = 0;
  }

 private:
  static constexpr int64_t kRoom = 512, kSegments = 128, kShort = 24;
  struct Segment {
    char* to;
    int64_t stride, count;
  };

  bool in_order(const Strides& s) const {
    bool ordered = s[0] == sizes_[0];
    for (size_t k = 1; k <= N; ++k) ordered &= s[k] == sizes_[k] || s[k] == 0;
    return ordered;
  }
  void call(const Pointers& p, const Strides& s, int64_t n) const {
    Run run{
        .out = p[0], .in = {}, .repeated = 0, .stream = stream_, .count = n, .numbers = numbers_};
    for (size_t k = 1; k <= N; ++k) {
      run.in[k - 1] = p[k];
      if (s[k] == 0 && n > 1) run.repeated |= 1u << (k - 1);
    }
    function_(run);
  }

  template <class Word>
  static void move(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<Word*>(to + i * to_stride) =
          *reinterpret_cast<const Word*>(from + i * from_stride);
  }
  static void move(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t size,
                   int64_t n) {
    switch (size) {
      case 1:
        return move<uint8_t>(to, to_stride, from, from_stride, n);
      case 2:
        return move<uint16_t>(to, to_stride, from, from_stride, n);
      case 4:
        return move<uint32_t>(to, to_stride, from, from_stride, n);
      default:
        return move<uint64_t>(to, to_stride, from, from_stride, n);
    }
  }
  static void gather(char* to, const char* from, int64_t stride, int64_t size, int64_t n) {
    move(to, size, from, stride, size, n);
  }
  static void scatter(char* to, const char* from, int64_t stride, int64_t size, int64_t n) {
    move(to, stride, from, size, size, n);
  }

  const Function function_;
  const Strides& sizes_;
  const double* const numbers_;
  const bool stream_;
  int64_t filled_ = 0, segment_count_ = 0;
  Segment segments_[kSegments];
  alignas(64) char room_[N + 1][kRoom * 8];
};

inline int64_t bytes_of_element(const oar_tensor& t) {
  return static_cast<int64_t>(size_of(static_cast<DType>(t.dtype)));
}

// The result first, then the operands; all of one shape.
template <size_t N>
void drive(Function function, const std::array<const oar_tensor*, N + 1>& tensors,
           const double* numbers, int64_t grain) {
  std::array<int64_t, N + 1> sizes;
  bool apart = true;
  for (size_t k = 0; k <= N; ++k) {
    sizes[k] = bytes_of_element(*tensors[k]);
    apart &= k == 0 || tensors[k]->data != tensors[0]->data;
  }
  const bool stream = apart && tensors[0]->numel * sizes[0] >= kStreamedFrom;
  StridedLoop<N + 1>(tensors).run_pieces([&] { return Piece<N>(function, sizes, numbers, stream); },
                                         grain);
}

}  // namespace oar::cpu::simd
