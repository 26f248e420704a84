// Copies between any strides. If both sides run along different axes the copy works by tiles, so that
// neither side touches a cache line more than once.
#include "oar/backend/cpu/loops/copy.h"

#include <algorithm>
#include <cstring>

#include "oar/backend/cpu/loops/groups.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/transpose.h"
#include "oar/backend/cpu/vector.h"

namespace oar::cpu {

void stream_bytes(char* to, const char* from, int64_t n) {
  const int64_t head =
      std::min(n, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kStreamed));
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + kStreamed <= n; i += kStreamed) stream_vector(to + i, from + i);
  std::memcpy(to + i, from + i, static_cast<size_t>(n - i));
}
void stream_fence() { stream_done(); }

bool ranges_meet(const oar_tensor& a, const oar_tensor& b) {
  if (a.numel == 0 || b.numel == 0) return false;
  const auto extent = [](const oar_tensor& t) {
    int64_t low = 0, high = 1;
    for (int i = 0; i < t.ndim; ++i) {
      const int64_t reach = (t.shape[i] - 1) * t.strides[i];
      (reach < 0 ? low : high) += reach;
    }
    auto* data = static_cast<char*>(t.data);
    return std::pair{data + low * element_size(t), data + high * element_size(t)};
  };
  const auto [a_low, a_high] = extent(a);
  const auto [b_low, b_high] = extent(b);
  return a_low < b_high && b_low < a_high;
}

namespace {

// An axis with its steps in elements.
struct Axis {
  int64_t size, to, from;
};

// The axes from the longest step of the target to the shortest, merged where both sides continue.
SmallVector<Axis, 6> axes_of(const oar_tensor& to, const oar_tensor& from) {
  SmallVector<Axis, 6> axes;
  for (int i = 0; i < to.ndim; ++i) {
    if (to.shape[i] == 1) continue;
    axes.push_back({to.shape[i], to.strides[i], from.strides[i]});
    for (size_t k = axes.size() - 1; k > 0 && std::abs(axes[k - 1].to) < std::abs(axes[k].to); --k)
      std::swap(axes[k - 1], axes[k]);
  }
  SmallVector<Axis, 6> joined;
  for (const Axis& axis : axes) {
    if (!joined.empty() && joined.back().to == axis.to * axis.size &&
        joined.back().from == axis.from * axis.size)
      joined.back() = {joined.back().size * axis.size, axis.to, axis.from};
    else
      joined.push_back(axis);
  }
  return joined;
}

template <int kStep, class Word>
void gather_run(Word* to, const Word* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * kStep];
}

// to[i] = from[i * step], the usual steps known to the compiler.
template <class Word>
void copy_run(Word* to, int64_t to_step, const Word* from, int64_t step, int64_t n) {
  if (to_step != 1) {
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * step];
    return;
  }
  switch (step) {
    case 1:
      copy_packed(to, from, n);
      break;
    case 0:
      fill_groups(to, n, [value = *from](int64_t) { return value; });
      break;
    case -1:
      gather_run<-1>(to, from, n);
      break;
    case 2:
      gather_run<2>(to, from, n);
      break;
    case 3:
      gather_run<3>(to, from, n);
      break;
    case 4:
      gather_run<4>(to, from, n);
      break;
    default:
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  }
}

// A few columns: streams that are interleaved.
template <int kColumns, class Word>
void interleave(const Tile<Word>& t, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r)
    for (int c = 0; c < kColumns; ++c) t.to[r * kColumns + c] = t.from[r + c * t.from_step];
}

template <class Word>
class Copy {
 public:
  Copy(const oar_tensor& to, const oar_tensor& from)
      : axes_(axes_of(to, from)),
        to_(static_cast<Word*>(to.data)),
        from_(static_cast<const Word*>(from.data)),
        total_(to.numel) {}

  void run() {
    if (total_ == 0) return;
    if (axes_.empty()) axes_.push_back({1, 1, 1});
    if (!find_rows()) return by_runs();
    if constexpr (kSide<Word> != 0)
      if (fills_lines()) return by_lines();
    by_tiles();
  }

 private:
  static constexpr int64_t kTile = 64;
  static constexpr int64_t kLineBytes = 64, kLine = kLineBytes / static_cast<int64_t>(sizeof(Word));

  // An axis along which the source runs while the target runs along another; it is removed.
  bool find_rows() {
    const Axis& last = axes_.back();
    if (last.to != 1 || std::abs(last.from) <= 1 || last.size < 2) return false;
    for (size_t i = 0; i + 1 < axes_.size(); ++i) {
      if (std::abs(axes_[i].from) != 1 || axes_[i].size < 4) continue;
      rows_ = axes_[i];
      axes_.erase(axes_.begin() + static_cast<std::ptrdiff_t>(i));
      if (rows_.from < 0) {  // from the other end
        to_ += (rows_.size - 1) * rows_.to;
        from_ += (rows_.size - 1) * rows_.from;
        rows_.to = -rows_.to;
      }
      columns_ = axes_.back();
      axes_.pop_back();
      return true;
    }
    return false;
  }

  // The offsets of the n-th combination of the remaining axes.
  struct Offsets {
    int64_t to = 0, from = 0;
  };
  // Iterates over them.
  class Odometer {
   public:
    Odometer(const SmallVector<Axis, 6>& axes, int64_t n) : axes_(axes), index_(axes.size(), 0) {
      for (size_t i = axes.size(); i-- > 0; n /= axes[i].size) {
        index_[i] = n % axes[i].size;
        at.to += index_[i] * axes[i].to;
        at.from += index_[i] * axes[i].from;
      }
    }
    void next() {
      for (size_t i = index_.size(); i-- > 0;) {
        const Axis& axis = axes_[i];
        at.to += axis.to;
        at.from += axis.from;
        if (++index_[i] < axis.size) return;
        at.to -= axis.to * axis.size;
        at.from -= axis.from * axis.size;
        index_[i] = 0;
      }
    }
    Offsets at;

   private:
    const SmallVector<Axis, 6>& axes_;
    SmallVector<int64_t, 6> index_;
  };

  void by_runs() const {
    const Axis& last = axes_.back();
    const int64_t lines = total_ / last.size;
    // A long line is cut, too.
    const int64_t piece = lines > 64 ? last.size : std::min(last.size, kGrain);
    const int64_t pieces = (last.size + piece - 1) / piece;
    constexpr int64_t size = sizeof(Word), kShort = 256;
    const bool stream = last.to == 1 && last.from == 1 && last.size * size >= kShort &&
                        total_ * size >= kStreamedFrom;
    // Lines that bypass the caches may be written in any order: here that of the source.
    SmallVector<Axis, 6> outer(axes_.begin(), axes_.end() - 1);
    if (stream)
      std::stable_sort(outer.begin(), outer.end(), [](const Axis& a, const Axis& b) {
        return std::abs(a.from) > std::abs(b.from);
      });
    const auto copy = [&](Word* to, const Word* from, int64_t n) {
      if (stream)
        stream_bytes(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from), n * size);
      else
        copy_run(to, last.to, from, last.from, n);
    };
    parallel_for(
        0, lines * pieces, std::max<int64_t>(1, kGrain / piece), [&](int64_t begin, int64_t end) {
          Odometer line(outer, begin / pieces);
          int64_t first = begin % pieces * piece;
          for (int64_t k = begin; k < end; ++k) {
            copy(to_ + line.at.to + first * last.to, from_ + line.at.from + first * last.from,
                 std::min(piece, last.size - first));
            first += piece;
            if (first < last.size) continue;
            first = 0;
            line.next();
          }
          if (stream) stream_fence();
        });
  }

  void by_tiles() const {
    const int64_t down = (rows_.size + kTile - 1) / kTile;
    const int64_t outer = total_ / (rows_.size * columns_.size);
    parallel_for(0, outer * down, std::max<int64_t>(1, kGrain / (kTile * columns_.size)),
                 [&](int64_t begin, int64_t end) {
                   Odometer tiles(axes_, begin / down);
                   int64_t row = begin % down * kTile;
                   for (int64_t k = begin; k < end; ++k) {
                     band({to_ + tiles.at.to + row * rows_.to, from_ + tiles.at.from + row,
                           rows_.to, columns_.from},
                          std::min(kTile, rows_.size - row));
                     row += kTile;
                     if (row < rows_.size) continue;
                     row = 0;
                     tiles.next();
                   }
                 });
  }

  // Does a result that the caches cannot hold consist of whole cache lines?
  bool fills_lines() const {
    const auto whole = [](int64_t n) { return n % kLine == 0; };
    return total_ * static_cast<int64_t>(sizeof(Word)) >= kStreamedFrom && rows_.size >= kLine &&
           reinterpret_cast<uintptr_t>(to_) % kLineBytes == 0 && whole(rows_.to) &&
           whole(columns_.size) && std::all_of(axes_.begin(), axes_.end(), [&](const Axis& axis) {
             return whole(axis.to);
           });
  }
  // Lines of the source are read in order, a few at a time; those of the result bypass the caches.
  void by_lines() const {
    const int64_t across = columns_.size / kLine, down = rows_.size / kLine * kLine;
    const int64_t outer = total_ / (rows_.size * columns_.size);
    parallel_for(0, outer * across, std::max<int64_t>(1, kGrain / (kLine * rows_.size)),
                 [&](int64_t begin, int64_t end) {
                   Odometer tiles(axes_, begin / across);
                   int64_t column = begin % across * kLine;
                   for (int64_t k = begin; k < end; ++k) {
                     const Tile<Word> t{to_ + tiles.at.to + column,
                                        from_ + tiles.at.from + column * columns_.from, rows_.to,
                                        columns_.from};
                     for (int64_t r = 0; r < down; r += kLine) stream_lines(from_row(t, r));
                     transpose_tile(from_row(t, down), rows_.size - down, kLine);
                     column += kLine;
                     if (column < columns_.size) continue;
                     column = 0;
                     tiles.next();
                   }
                   stream_fence();
                 });
  }
  static Tile<Word> from_row(const Tile<Word>& t, int64_t row) {
    return {t.to + row * t.to_step, t.from + row, t.to_step, t.from_step};
  }
  static void stream_lines(const Tile<Word>& t) {
    alignas(kLineBytes) Word lines[kLine * kLine];
    transpose_tile(Tile<Word>{lines, t.from, kLine, t.from_step}, kLine, kLine);
    for (int64_t r = 0; r < kLine; ++r)
      for (int64_t byte = 0; byte < kLineBytes; byte += kStreamed)
        stream_vector(reinterpret_cast<char*>(t.to + r * t.to_step) + byte,
                      reinterpret_cast<const char*>(lines + r * kLine) + byte);
  }

  void band(const Tile<Word>& t, int64_t rows) const {
    const int64_t columns = columns_.size;
    if (columns <= 4 && t.to_step == columns) {
      if (columns == 2) return interleave<2>(t, rows);
      if (columns == 3) return interleave<3>(t, rows);
      if (columns == 4) return interleave<4>(t, rows);
    }
    const int64_t width = kSide<Word> != 0 ? columns : kTile;
    for (int64_t c = 0; c < columns; c += width)
      transpose_tile(Tile<Word>{t.to + c, t.from + c * t.from_step, t.to_step, t.from_step}, rows,
                     std::min(width, columns - c));
  }

  SmallVector<Axis, 6> axes_;
  Word* to_;
  const Word* from_;
  int64_t total_;
  Axis rows_{}, columns_{};
};

}  // namespace

void copy_elements(const oar_tensor& to, const oar_tensor& from) {
  if (is_packed(dtype_of(to)) || is_packed(dtype_of(from))) return copy_quantised(to, from);
  if (to.dtype != from.dtype)
    return StridedLoop<2>({&to, &from}).run(*conversion(dtype_of(to), dtype_of(from)));
  visit_width(to, [&](auto word) { Copy<decltype(word)>(to, from).run(); });
}

}  // namespace oar::cpu
