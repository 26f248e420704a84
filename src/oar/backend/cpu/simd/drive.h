// Runs the vectorised loops on tensors of any strides.
#pragma once

#include <array>

#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/transpose.h"
#include "oar/backend/cpu/simd/table.h"

namespace oar::cpu::simd {

// A result of at least this many bytes bypasses the caches: it would be evicted before it is
// read.
inline constexpr int64_t kStreamedFrom = int64_t{16} << 20;

// The loop in which operand 0 chooses between the other two, whose elements have that many bytes; null for wide ones.
Function select_for(int64_t bytes);

// One piece of work: calls the loop on contiguous runs, and collects what is not contiguous, or too
// short, in buffers.
template <size_t N>  // operands
class Piece {
 public:
  using Pointers = std::array<char*, N + 1>;
  using Strides = std::array<int64_t, N + 1>;
  Piece(Function function, const Strides& sizes, const double* numbers, bool stream)
      : function_(function), sizes_(sizes), numbers_(numbers), stream_(stream) {}

  void operator()(Pointers p, const Strides& s, int64_t n, const Strides& across, int64_t rows) {
    if (n == 1 ? filled_ == 0 && rows == 1 : (n >= kShort || n == kStep) && in_order(s))
      return call(p, s, n, across, rows);
    for (int64_t row = 0; row < rows; ++row) {
      collect(p, s, n);
      for (size_t k = 0; k <= N; ++k) p[k] += across[k];
    }
  }
  void finish() {
    if (filled_ == 0) return;
    Pointers p;
    for (size_t k = 0; k <= N; ++k) p[k] = room_[k];
    call(p, sizes_, filled_, {}, 1);
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
  static constexpr int64_t kStep = 16;  // what a loop computes at a time: no rest, so not too short
  struct Segment {
    char* to;
    int64_t stride, count;
  };

  bool in_order(const Strides& s) const {
    bool ordered = s[0] == sizes_[0];
    for (size_t k = 1; k <= N; ++k) ordered &= s[k] == sizes_[k] || s[k] == 0;
    return ordered;
  }
  void collect(const Pointers& p, const Strides& s, int64_t n) {
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
  void call(const Pointers& p, const Strides& s, int64_t n, const Strides& across,
            int64_t rows) const {
    Run run{.out = p[0],
            .in = {},
            .repeated = 0,
            .stream = stream_,
            .count = n,
            .rows = rows,
            .across = {across[0]},
            .numbers = numbers_};
    for (size_t k = 1; k <= N; ++k) {
      run.in[k - 1] = p[k];
      run.across[k] = across[k];
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

// Whether the last axis goes from line to line while the one before it goes along a line: a transposed
// matrix. Row by row, each of its lines would be fetched once per element.
inline bool is_transposed(const oar_tensor& t) {
  if (t.ndim < 2) return false;
  const int64_t along = t.strides[t.ndim - 1], across = t.strides[t.ndim - 2];
  return across == 1 && along * bytes_of_element(t) >= 64 && t.shape[t.ndim - 2] >= 16 &&
         t.shape[t.ndim - 1] >= 16;
}

// Transposes such operands, tile by tile, before the loop. Processes the last two axes in
// strips of some columns, each from top to bottom.
template <size_t N>
class Tiles {
 public:
  Tiles(Function function, const std::array<const oar_tensor*, N + 1>& tensors,
        const double* numbers, bool stream)
      : function_(function), numbers_(numbers), stream_(stream), tensors_(tensors) {
    const oar_tensor& out = *tensors[0];
    // The result is written along its lines: if these are columns, the axes are swapped.
    const int right = out.ndim - 1, down = out.ndim - 2;
    const bool turned = is_transposed(out);
    along_ = turned ? down : right;
    across_ = turned ? right : down;
    rows_ = out.shape[across_];
    columns_ = out.shape[along_];
    per_matrix_ = (columns_ + kWidth - 1) / kWidth;
    for (size_t k = 0; k <= N; ++k) {
      sizes_[k] = bytes_of_element(*tensors[k]);
      turns_[k] = is_transposed(*tensors[k]) != turned && tensors[k]->strides[across_] == 1;
    }
  }
  void run(int64_t grain) const {
    const int64_t strips = tensors_[0]->numel / (rows_ * columns_) * per_matrix_;
    parallel_for(0, strips, std::max<int64_t>(1, grain / (rows_ * kWidth)),
                 [&](int64_t begin, int64_t end) {
                   Room room;
                   for (int64_t i = begin; i < end; ++i) strip(i, room);
                 });
  }

 private:
  static constexpr int64_t kWidth = 256, kRows = 16;
  // A row's width is not a power of two: the lines of a square would share few sets of the cache.
  static constexpr int64_t kPitch = kWidth + 16;
  struct Room {
    alignas(64) char tiles[N][kRows * kPitch * 8];
  };

  void strip(int64_t i, Room& room) const {
    const int64_t column = i % per_matrix_ * kWidth;
    std::array<char*, N + 1> start;
    for (size_t k = 0; k <= N; ++k) {
      const oar_tensor& t = *tensors_[k];
      start[k] = static_cast<char*>(t.data) + column * t.strides[along_] * sizes_[k];
      int64_t rest = i / per_matrix_;
      for (int axis = t.ndim - 2; axis-- > 0;) {
        start[k] += rest % t.shape[axis] * t.strides[axis] * sizes_[k];
        rest /= t.shape[axis];
      }
    }
    const int64_t width = std::min(kWidth, columns_ - column);
    for (int64_t row = 0; row < rows_; row += kRows)
      tile(start, row, std::min(kRows, rows_ - row), width, room);
  }
  void tile(const std::array<char*, N + 1>& start, int64_t row, int64_t rows, int64_t width,
            Room& room) const {
    std::array<char*, N + 1> at;
    std::array<int64_t, N + 1> along, across;
    for (size_t k = 0; k <= N; ++k) {
      const oar_tensor& t = *tensors_[k];
      along[k] = t.strides[along_] * sizes_[k];
      across[k] = t.strides[across_] * sizes_[k];
      at[k] = start[k] + row * across[k];
      if (!turns_[k]) continue;
      turn(room.tiles[k - 1], at[k], t.strides[along_], sizes_[k], rows, width);
      at[k] = room.tiles[k - 1];
      along[k] = sizes_[k];
      across[k] = kPitch * sizes_[k];
    }
    Piece<N> piece(function_, sizes_, numbers_, stream_);
    piece(at, along, width, across, rows);
    piece.finish();
  }
  static void turn(char* to, const char* from, int64_t step, int64_t size, int64_t rows,
                   int64_t width) {
    const auto as = [&](auto word) {
      using Word = decltype(word);
      transpose_tile(Tile<Word>{reinterpret_cast<Word*>(to), reinterpret_cast<const Word*>(from),
                                kPitch, step},
                     rows, width);
    };
    switch (size) {
      case 1:
        return as(uint8_t{});
      case 2:
        return as(uint16_t{});
      case 4:
        return as(uint32_t{});
      default:
        return as(uint64_t{});
    }
  }

  const Function function_;
  const double* const numbers_;
  const bool stream_;
  const std::array<const oar_tensor*, N + 1>& tensors_;
  std::array<int64_t, N + 1> sizes_;
  std::array<bool, N + 1> turns_;
  int along_, across_;
  int64_t rows_, columns_, per_matrix_;
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
    return Tiles<N>(function, tensors, numbers, stream).run(grain);
  StridedLoop<N + 1>(tensors).run_pieces([&] { return Piece<N>(function, sizes, numbers, stream); },
                                         grain);
}

}  // namespace oar::cpu::simd
