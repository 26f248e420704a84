#include "oar/backend/cpu/gemm/gemm_tiles.h"

#include <algorithm>
#include <string>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "oar/backend/cpu/instruction_set.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/base/flags.h"
#include "oar/base/parallel.h"

namespace oar::cpu {
namespace {

#if defined(__x86_64__) && defined(__linux__)
bool processor_has_pairs() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool avx512_bf16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1) != 0;
  return avx512_bf16 && use_avx512();
}
bool processor_has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const bool amx_bf16 = (d >> 22 & 1) != 0, amx_tile = (d >> 24 & 1) != 0;
  if (!amx_bf16 || !amx_tile) return false;
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const bool kept_by_system = (low >> 17 & 3) == 3;
  return kept_by_system;
}
// Linux enables tiles for a process only on request.
bool system_permits_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}
#else
bool processor_has_pairs() { return false; }
bool processor_has_tiles() { return false; }
bool system_permits_tiles() { return false; }
#endif

constexpr int64_t kPanel = 2 * kTileRows;  // rows or columns that are multiplied at once
// Steps whose tiles stay in the first cache. It affects the results: sums are stored and reloaded
// between blocks.
constexpr int64_t kBlockSteps = 16;
constexpr int64_t kTall = 16, kWide = 4;  // panels of a piece of C, whose tiles stay in the second

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How a factor's tiles are read from memory, and the distance of its lines.
struct Source {
  TileFrom how;
  int64_t row;
  bool dense;  // some axis is
  bool along() const { return how == TileFrom::Rows || how == TileFrom::RowsTurned; }
};
Source left_source(int64_t row, int64_t column) {
  return column == 1 ? Source{TileFrom::Rows, row, true}
                     : Source{TileFrom::PairsTurned, column, row == 1};
}
Source right_source(int64_t row, int64_t column) {
  return column == 1 ? Source{TileFrom::Pairs, row, true}
                     : Source{TileFrom::RowsTurned, column, row == 1};
}

// Rows of A, or columns of B, in panels of 32: step by step two tiles, each as the kParts bfloat16 that
// its elements are sums of.
template <class T>
struct Factor {
  static constexpr int64_t kParts = std::is_same_v<T, float16> ? 2 : 1;
  static constexpr int64_t kTile = kParts * kTileSize, kStep = 2 * kTile;

  const TileTable& table;
  const T* data;
  Source source;
  int64_t size, depth;

  int64_t panels() const { return ceil_div(size, kPanel); }
  int64_t steps() const { return ceil_div(depth, kTileDepth); }
  bool has_second(int64_t panel) const { return size - panel * kPanel > kTileRows; }

  // Steps [first, first + count) of a panel.
  void pack(int64_t panel, int64_t first, int64_t count, uint16_t* to) const {
    const int64_t tiles = has_second(panel) ? 2 : 1;
    for (int64_t s = first; s < first + count; ++s, to += kStep)
      for (int64_t half = 0; half < tiles; ++half) {
        const int64_t at = panel * kPanel + half * kTileRows, k = s * kTileDepth;
        const int64_t across = std::min(kTileRows, size - at);
        const int64_t deep = std::min(kTileDepth, depth - k);
        const bool along = source.along();
        const T* from = data + (along ? at * source.row + k : k * source.row + at);
        (kParts == 1 ? table.pack : table.pack_half)(
            source.how, reinterpret_cast<const uint16_t*>(from), source.row, along ? across : deep,
            along ? deep : across, to + half * kTile);
      }
  }
  // Whether each element is a sum of parts.
  bool has_parts() const {
    if (kParts == 1) return true;
    const int64_t lines = source.along() ? size : depth, count = source.along() ? depth : size;
    for (int64_t i = 0; i < lines; ++i)
      if (!table.finite_half(reinterpret_cast<const uint16_t*>(data + i * source.row), count))
        return false;
    return true;
  }
};

// Where the tiles of a block of steps are: every part of A is multiplied with every part of B.
template <class T>
struct BlockSteps {
  static constexpr int64_t kParts = Factor<T>::kParts;
  int64_t a[kBlockSteps * kParts * kParts], b[kBlockSteps * kParts * kParts];
  constexpr BlockSteps() : a(), b() {
    for (int64_t s = 0; s < kBlockSteps; ++s)
      for (int64_t i = 0; i < kParts; ++i)
        for (int64_t j = 0; j < kParts; ++j) {
          const int64_t at = (s * kParts + i) * kParts + j;
          a[at] = s * Factor<T>::kStep + i * kTileSize;
          b[at] = s * Factor<T>::kStep + j * kTileSize;
        }
  }
};

// A is packed as a whole, B when it is needed.
template <class T>
class TileProduct {
 public:
  using F = Factor<T>;
  TileProduct(const F& a, const F& b, Matrix<T> c, bool accumulate)
      : a_(a), b_(b), c_(c), accumulate_(accumulate), packed_(a.panels() * a.steps() * F::kStep) {}

  void run() const {
    const int64_t each = a_.steps() * F::kStep;
    parallel_for(0, a_.panels(), std::max<int64_t>(1, (1 << 15) / each),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     a_.pack(i, 0, a_.steps(), packed_.data() + i * each);
                 });
    int64_t tall = std::min(kTall, a_.panels()), wide = std::min(kWide, b_.panels());
    const auto pieces = [&] { return ceil_div(a_.panels(), tall) * ceil_div(b_.panels(), wide); };
    const int64_t threads = in_parallel() ? 1 : num_threads();
    while (threads > 1 && pieces() < 2 * threads && (tall > 4 || wide > 1))
      (wide > 1 ? wide : tall) = ceil_div(wide > 1 ? wide : tall, 2);
    const int64_t across = ceil_div(b_.panels(), wide);
    const auto one = [&](int64_t piece) {
      work(piece / across * tall, piece % across * wide, tall, wide);
    };
    if (pieces() == 1) return one(0);
    parallel_chunks(pieces(), one);
  }

 private:
  // Panels [i0, i0 + tall) of A against [j0, j0 + wide) of B.
  void work(int64_t i0, int64_t j0, int64_t tall, int64_t wide) const {
    static constexpr BlockSteps<T> kSteps;
    const Tiles tiles(a_.table);
    const int64_t i1 = std::min(i0 + tall, a_.panels()), j1 = std::min(j0 + wide, b_.panels());
    const int64_t total = a_.steps(), most = std::min(total, kBlockSteps);
    const bool keeps = total > kBlockSteps;  // sums from block to block
    const Scratch<float> sums((keeps ? (i1 - i0) * (j1 - j0) : 1) * kPanel * kPanel);
    const Scratch<uint16_t> right(most * F::kStep);
    for (int64_t s = 0; s < total; s += kBlockSteps) {
      const int64_t count = std::min(kBlockSteps, total - s);
      for (int64_t j = j0; j < j1; ++j) {
        b_.pack(j, s, count, right.data());
        for (int64_t i = i0; i < i1; ++i) {
          const uint16_t* left = packed_.data() + (i * total + s) * F::kStep;
          float* to = sums.data() + (keeps ? ((j - j0) * (i1 - i0) + i - i0) * kPanel * kPanel : 0);
          a_.table.multiply({{left, a_.has_second(i) ? left + F::kTile : nullptr},
                             {right.data(), b_.has_second(j) ? right.data() + F::kTile : nullptr},
                             2 * kTileDepth,
                             2 * kTileDepth,
                             kSteps.a,
                             kSteps.b,
                             count * F::kParts * F::kParts,
                             to,
                             kPanel,
                             s > 0,
                             std::min(kPanel, a_.size - i * kPanel)});
          if (s + count == total) store(i * kPanel, j * kPanel, to);
        }
      }
    }
  }

  void store(int64_t i0, int64_t j0, float* from) const {
    const int64_t rows = std::min(kPanel, a_.size - i0), columns = std::min(kPanel, b_.size - j0);
    for (int64_t i = 0; i < rows; ++i, from += kPanel) {
      T* to = c_.data + (i0 + i) * c_.row + j0 * c_.column;
      if (accumulate_)
        for (int64_t j = 0; j < columns; ++j) from[j] += static_cast<float>(to[j * c_.column]);
      if (c_.column == 1)
        (F::kParts == 1 ? a_.table.narrow : a_.table.narrow_half)(from, columns,
                                                                  reinterpret_cast<uint16_t*>(to));
      else
        for (int64_t j = 0; j < columns; ++j) to[j * c_.column] = T(from[j]);
    }
  }

  const F &a_, &b_;
  Matrix<T> c_;
  bool accumulate_;
  Scratch<uint16_t> packed_;
};

}  // namespace

const TileTable* tile_table() {
  static const TileTable* const table = []() -> const TileTable* {
    const auto isa = flag<std::string>("cpu_isa");
    if (kAmxTiles.multiply == nullptr || !processor_has_pairs()) return nullptr;
    const bool amx = isa == "auto" || isa == "amx";
    return amx && processor_has_tiles() && system_permits_tiles() ? &kAmxTiles : &kAvx512Tiles;
  }();
  return table;
}

template <class T>
bool gemm_tiles(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
                bool accumulate) {
  // Multiply-adds below which packing costs more than tiles gain.
  constexpr double kLeastWork = 1 << 14;
  // The right factor is not copied as a whole, so it should be the larger one.
  if (n == 1 && m > 1)
    return gemm_tiles<T>(n, m, k, b.transposed(), a.transposed(), c.transposed(), accumulate);
  if (k < 8 ||
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < kLeastWork)
    return false;
  const TileTable* table = tile_table();
  const Source left = left_source(a.row, a.column), right = right_source(b.row, b.column);
  if (table == nullptr || !left.dense || !right.dense) return false;
  if (std::is_same_v<T, float16> && !table->fast_half) return false;
  const Factor<T> rows{*table, a.data, left, m, k}, columns{*table, b.data, right, n, k};
  if (!rows.has_parts() || !columns.has_parts()) return false;
  TileProduct<T>(rows, columns, c, accumulate).run();
  return true;
}

namespace {

void pack_tiles(const TileTable& table, TileFrom how, const bfloat16* from, int64_t row, bool along,
                int64_t size, int64_t depth, uint16_t* to) {
  for (int64_t i = 0; i < size; i += kTileRows)
    for (int64_t k = 0; k < depth; k += kTileDepth, to += kTileSize) {
      const int64_t across = std::min(kTileRows, size - i), deep = std::min(kTileDepth, depth - k);
      const bfloat16* at = from + (along ? i * row + k : k * row + i);
      table.pack(how, reinterpret_cast<const uint16_t*>(at), row, along ? across : deep,
                 along ? deep : across, to);
    }
}

}  // namespace

void pack_right(const TileTable& table, const bfloat16* from, int64_t row, bool along,
                int64_t columns, int64_t depth, uint16_t* to) {
  pack_tiles(table, along ? TileFrom::RowsTurned : TileFrom::Pairs, from, row, along, columns,
             depth, to);
}
void pack_left(const TileTable& table, const bfloat16* from, int64_t row, bool along, int64_t rows,
               int64_t depth, uint16_t* to) {
  pack_tiles(table, along ? TileFrom::Rows : TileFrom::PairsTurned, from, row, along, rows, depth,
             to);
}

void tile_block(const TileTable& table, int64_t rows, int64_t columns, int64_t depth, TileFactor a,
                TileFactor b, float* c, int64_t c_row, bool accumulate) {
  constexpr int64_t kMost = 64;
  int64_t a_at[kMost], b_at[kMost];
  const int64_t total = tile_steps(depth);
  for (int64_t first = 0; first < total; first += kMost) {
    const int64_t steps = std::min(kMost, total - first);
    for (int64_t s = 0; s < steps; ++s) {
      a_at[s] = (first + s) * a.step;
      b_at[s] = (first + s) * b.step;
    }
    for (int64_t j = 0; j < columns; j += kPanel) {
      const uint16_t* right = b.data + j / kTileRows * b.next;
      for (int64_t i = 0; i < rows; i += kPanel) {
        const uint16_t* left = a.data + i / kTileRows * a.next;
        table.multiply({{left, rows - i > kTileRows ? left + a.next : nullptr},
                        {right, columns - j > kTileRows ? right + b.next : nullptr},
                        a.row,
                        b.row,
                        a_at,
                        b_at,
                        steps,
                        c + i * c_row + j,
                        c_row,
                        accumulate || first > 0,
                        std::min(kPanel, rows - i)});
      }
    }
  }
}

template bool gemm_tiles<bfloat16>(int64_t, int64_t, int64_t, Matrix<const bfloat16>,
                                   Matrix<const bfloat16>, Matrix<bfloat16>, bool);
template bool gemm_tiles<float16>(int64_t, int64_t, int64_t, Matrix<const float16>,
                                  Matrix<const float16>, Matrix<float16>, bool);

}  // namespace oar::cpu
