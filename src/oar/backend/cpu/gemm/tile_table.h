// Products of 16-bit floats on tiles, blocks of 16 rows of 64 bytes, as a table of one instruction
// set: AMX has registers for them, AVX-512 instructions for pairs of bfloat16. bfloat16 is multiplied as it is and added up in float; numbers below the least
// normal float count as zero.
#pragma once

#include <cstdint>

namespace oar::cpu {

// A tile of the left factor is 16 rows of 32 elements; one of the right factor holds 32 rows of 16
// columns, two rows in each of its own: element (k, j) is at 32 * (k / 2) + 2 * j + k % 2.
inline constexpr int64_t kTileRows = 16, kTileDepth = 32, kTileSize = kTileRows * kTileDepth;

// Up to 32 x 32 sums. Second tiles are null if there are no more rows or columns.
struct TileTask {
  const uint16_t *a[2], *b[2];  // where step 0 would be
  int64_t a_row, b_row;         // bytes between rows of a tile
  const int64_t *a_at, *b_at;   // elements from there to each step's tiles
  int64_t steps;
  float* c;  // whole tiles, whatever the product's size
  int64_t c_row;
  bool accumulate;
  int64_t rows;  // of C that are used; tiles may write more
};

// How 16 zmm registers of memory become a tile: rows of memory as they are or two interleaved, and
// then transposed or not.
enum class TileFrom { Rows, Pairs, RowsTurned, PairsTurned };

struct TileTable {
  void (*begin)();  // this thread multiplies from here …
  void (*end)();    // … to here
  void (*multiply)(const TileTask&);
  // A tile from `rows` lines of `count` elements that are `row` apart; zeros elsewhere.
  void (*pack)(TileFrom how, const uint16_t* from, int64_t row, int64_t rows, int64_t count,
               uint16_t* to);
  // The same of float16, as two tiles of bfloat16 whose sum it is, the second kTileSize after the
  // first. Infinities and NaN have no such sum.
  void (*pack_half)(TileFrom how, const uint16_t* from, int64_t row, int64_t rows, int64_t count,
                    uint16_t* to);
  bool (*finite_half)(const uint16_t* from, int64_t count);
  // A row rounded to bfloat16, or float16; and two rows as bfloat16, alternating.
  void (*narrow)(const float* from, int64_t count, uint16_t* to);
  void (*narrow_half)(const float* from, int64_t count, uint16_t* to);
  void (*narrow_pair)(const float* even, const float* odd, int64_t count, uint16_t* to);
  // Whether the four products that one of float16 becomes are faster than one of float.
  bool fast_half;
};

extern const TileTable kAmxTiles, kAvx512Tiles;  // empty where the compiler has none

// Null if this machine has none, or the flag cpu_isa selects older instructions.
const TileTable* tile_table();

// While alive, this thread may multiply.
class Tiles {
 public:
  explicit Tiles(const TileTable& table) : table_(table) { table_.begin(); }
  ~Tiles() { table_.end(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  const TileTable& table_;
};

}  // namespace oar::cpu
