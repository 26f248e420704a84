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

// Whether the last axis of an operand goes from line to line while the one before it goes along a
// line: a transposed matrix. Row by row, each of its lines would be fetched once per element.
inline bool is_transposed(const oar_tensor& t) {
  if (t.ndim < 2) return false;
  const int64_t along = t.strides[t.ndim - 1], across = t.strides[t.ndim - 2];
  return across == 1 && along * bytes_of_element(t) >= 64 && t.shape[t.ndim - 2] >= 16 &&
         t.shape[t.ndim - 1] >= 16;
}

// The last two axes in strips of some columns, each from top to bottom.
template <size_t N>
class Strips {
 public:
  explicit Strips(const std::array<const oar_tensor*, N + 1>& tensors) : tensors_(tensors) {
    const oar_tensor& first = *tensors[0];
    rows_ = first.shape[first.ndim - 2];
    columns_ = first.shape[first.ndim - 1];
    per_matrix_ = (columns_ + kWidth - 1) / kWidth;
    strips_ = first.numel / (rows_ * columns_) * per_matrix_;
  }
  template <class Make>
  void run_pieces(Make&& make, int64_t grain) const {
    parallel_for(0, strips_, std::max<int64_t>(1, grain / (rows_ * kWidth)),
                 [&](int64_t begin, int64_t end) {
                   auto piece = make();
                   for (int64_t i = begin; i < end; ++i) strip(i, piece);
                   piece.finish();
                 });
  }

 private:
  static constexpr int64_t kWidth = 32;
  template <class Body>
  void strip(int64_t i, Body& body) const {
    const int last = tensors_[0]->ndim - 1;
    const int64_t column = i % per_matrix_ * kWidth;
    std::array<char*, N + 1> start;
    std::array<int64_t, N + 1> down, along;
    for (size_t k = 0; k <= N; ++k) {
      const oar_tensor& t = *tensors_[k];
      const int64_t size = bytes_of_element(t);
      along[k] = t.strides[last] * size;
      down[k] = t.strides[last - 1] * size;
      start[k] = static_cast<char*>(t.data) + column * along[k];
      int64_t rest = i / per_matrix_;
      for (int axis = last - 1; axis-- > 0;) {
        start[k] += rest % t.shape[axis] * t.strides[axis] * size;
        rest /= t.shape[axis];
      }
    }
    const int64_t width = std::min(kWidth, columns_ - column);
    for (int64_t row = 0; row < rows_; ++row) {
      body(start, along, width);
      for (size_t k = 0; k <= N; ++k) start[k] += down[k];
    }
  }
  const std::array<const oar_tensor*, N + 1>& tensors_;
  int64_t rows_, columns_, per_matrix_, strips_;
};

// The result first, then the operands; all of one shape.
template <size_t N>
void drive(Function function, const std::array<const oar_tensor*, N + 1>& tensors,
           const double* numbers, int64_t grain) {
  std::array<int64_t, N + 1> sizes;
  bool apart = true, transposed = false;
  for (size_t k = 0; k <= N; ++k) {
    sizes[k] = bytes_of_element(*tensors[k]);
    apart &= k == 0 || tensors[k]->data != tensors[0]->data;
    transposed |= is_transposed(*tensors[k]);
  }
  const bool stream = apart && tensors[0]->numel * sizes[0] >= kStreamedFrom;
  if (transposed && tensors[0]->numel > 0)
    return Strips<N>(tensors).run_pieces([&] { return Piece<N>(function, sizes, numbers, false); },
                                         grain);
  StridedLoop<N + 1>(tensors).run_pieces([&] { return Piece<N>(function, sizes, numbers, stream); },
                                         grain);
}

}  // namespace oar::cpu::simd
