#include "oar/backend/cpu/gemm/gemm.h"

#include <algorithm>

#include "oar/backend/cpu/gemm/gemm_table.h"
#include "oar/backend/cpu/gemm/gemm_tiles.h"
#include "oar/backend/cpu/gemm/pack.h"
#include "oar/backend/cpu/instruction_set.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/base/parallel.h"

namespace oar::cpu {

template <class T>
const MicroTable<T>& micro_table() {
  static const bool avx512 = kAvx512Float.lanes > 0 && use_avx512();
  if constexpr (std::is_same_v<T, float>)
    return avx512 ? kAvx512Float : kBaseFloat;
  else
    return avx512 ? kAvx512Double : kBaseDouble;
}
template const MicroTable<float>& micro_table<float>();
template const MicroTable<double>& micro_table<double>();

namespace {

// Multiply-adds below which packing, or another thread, costs more than it gains.
constexpr int64_t kTinyWork = 512;
constexpr int64_t kThreadWork = int64_t{1} << 18;

// A block of k. It affects the results: sums are stored and reloaded between blocks.
constexpr int64_t kDepth = kMaxPanelRows;

// In floating point: broadcast operands have sizes whose product no integer holds.
double work_of(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
// The largest even share of n in pieces of at most `most`, as a multiple of `unit`.
int64_t even_share(int64_t n, int64_t most, int64_t unit) {
  return round_up(ceil_div(n, ceil_div(n, most)), unit);
}

// How C is cut into pieces of work: small enough for the caches, enough of them for the threads.
struct Cut {
  int64_t rows, columns;
};
Cut cut_of(int64_t m, int64_t n, int64_t k, int64_t unit_rows, int64_t unit_columns) {
  constexpr int64_t kRows = 256, kColumns = 768;
  static_assert(kColumns + 48 <= kMaxPanelColumns);
  Cut cut{even_share(m, kRows, unit_rows), even_share(n, kColumns, unit_columns)};
  const int64_t threads = in_parallel() ? 1 : num_threads();
  const auto wanted =
      static_cast<int64_t>(std::min(static_cast<double>(threads), work_of(m, n, k) / kThreadWork));
  while (ceil_div(m, cut.rows) * ceil_div(n, cut.columns) < wanted) {
    if (cut.columns >= 2 * unit_columns && cut.columns >= cut.rows)
      cut.columns = round_up(cut.columns / 2, unit_columns);
    else if (cut.rows >= 2 * unit_rows)
      cut.rows = round_up(cut.rows / 2, unit_rows);
    else
      break;
  }
  return cut;
}

// One product of float or double matrices; `work` does one piece of C.
template <class T>
class Product {
 public:
  Product(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<T> c, bool accumulate)
      : m_(m),
        n_(n),
        k_(k),
        a_(a),
        c_(c),
        accumulate_(accumulate),
        widest_(kMicroVectors * table_.lanes),
        cut_(cut_of(m, n, k, table_.rows, widest_)) {}

  // `direct` is B in place, its rows contiguous; null data if it has to be packed.
  void run(PanelSource<T> source, Matrix<const T> direct) const {
    const int64_t across = ceil_div(n_, cut_.columns);
    const int64_t pieces = ceil_div(m_, cut_.rows) * across;
    if (pieces == 1) return work(0, 0, source, direct);
    parallel_chunks(pieces, [&](int64_t piece) {
      work(piece / across * cut_.rows, piece % across * cut_.columns, source, direct);
    });
  }
  // Is B read too seldom, or too small, for packing to pay?
  bool reads_directly() const {
    return m_ <= 2 * table_.rows || k_ * n_ * static_cast<int64_t>(sizeof(T)) <= 48 << 10;
  }

 private:
  void work(int64_t i0, int64_t j0, PanelSource<T> source, Matrix<const T> direct) const {
    const int64_t rows = std::min(cut_.rows, m_ - i0), columns = std::min(cut_.columns, n_ - j0);
    const int64_t depth = std::min(k_, kDepth);
    const int64_t height = even_share(rows, table_.rows, 1);
    const int64_t width = even_share(columns, widest_, table_.lanes);
    // Only the last panel of a B that is read in place may need a copy: the padded one.
    const int64_t packed_from =
        direct.data ? columns / table_.lanes * table_.lanes / width * width : 0;
    const bool packs_a =
        columns > 2 * width && rows * k_ * static_cast<int64_t>(sizeof(T)) > 128 << 10;
    const int64_t packed_columns = direct.data && columns % table_.lanes == 0
                                       ? 0
                                       : round_up(columns - packed_from, table_.lanes);
    Scratch<T> b(packed_columns * depth);
    Scratch<T> a(packs_a ? rows * depth : 0);
    for (int64_t p = 0; p < k_; p += kDepth) {
      Panels<T> panels{p,
                       std::min(kDepth, k_ - p),
                       j0 + packed_from,
                       columns - packed_from,
                       width,
                       table_.lanes,
                       b.data()};
      if (packed_columns > 0) source(panels);
      if (packs_a) pack_a(i0, rows, height, p, panels.rows, a.data());
      for (int64_t j = 0; j < columns; j += width) {
        const bool packed = packed_columns > 0 && j >= packed_from;
        const int64_t w = packed ? panels.width_at(j - packed_from) : std::min(width, columns - j);
        MicroTile<T> tile{panels.rows, nullptr, 0, 0, nullptr, 0, nullptr, 0, accumulate_ || p > 0};
        tile.b = packed ? panels.panel(j - packed_from) : direct.data + p * direct.row + (j0 + j);
        tile.b_step = packed ? w : direct.row;
        for (int64_t i = 0; i < rows; i += height) {
          const int64_t h = std::min(height, rows - i);
          tile.a =
              packs_a ? a.data() + i * panels.rows : a_.data + (i0 + i) * a_.row + p * a_.column;
          tile.a_row = packs_a ? 1 : a_.row;
          tile.a_step = packs_a ? h : a_.column;
          store(tile, i0 + i, j0 + j, h, w, std::min(w, columns - j));
        }
      }
    }
    if (k_ == 0 && !accumulate_) clear(i0, j0, rows, columns);
  }

  void pack_a(int64_t i0, int64_t rows, int64_t height, int64_t p, int64_t depth, T* to) const {
    for (int64_t i = 0; i < rows; i += height) {
      const int64_t h = std::min(height, rows - i);
      pack_strided(a_.data + (i0 + i) * a_.row + p * a_.column, a_.row, a_.column, h, depth,
                   to + i * depth, h);
    }
  }

  // Runs the micro kernel into C, or, if C has no room for whole vectors, into a buffer.
  void store(MicroTile<T>& tile, int64_t i, int64_t j, int64_t h, int64_t w, int64_t filled) const {
    const auto run = table_.run[h - 1][w / table_.lanes - 1];
    T* to = c_.data + i * c_.row + j * c_.column;
    if (c_.column == 1 && filled == w) {
      tile.c = to;
      tile.c_row = c_.row;
      return run(tile);
    }
    alignas(64) T buffer[8 * kMicroVectors * 16];
    const bool accumulate = std::exchange(tile.accumulate, false);
    tile.c = buffer;
    tile.c_row = w;
    run(tile);
    tile.accumulate = accumulate;
    for (int64_t r = 0; r < h; ++r)
      for (int64_t s = 0; s < filled; ++s) {
        T& element = to[r * c_.row + s * c_.column];
        element = accumulate ? element + buffer[r * w + s] : buffer[r * w + s];
      }
  }

  void clear(int64_t i0, int64_t j0, int64_t rows, int64_t columns) const {
    for (int64_t i = i0; i < i0 + rows; ++i)
      for (int64_t j = j0; j < j0 + columns; ++j) c_.data[i * c_.row + j * c_.column] = T(0);
  }

  const MicroTable<T>& table_ = micro_table<T>();
  int64_t m_, n_, k_;
  Matrix<const T> a_;
  Matrix<T> c_;
  bool accumulate_;
  int64_t widest_;
  Cut cut_;
};

// A row times a matrix whose columns are contiguous: scalar products. Lanes are added up in a fixed
// order.
template <class T>
T dot(const T* x, const T* y, int64_t n) {
  constexpr int kLanes = 32;
  T sums[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (int l = 0; l < kLanes; ++l) sums[l] += x[k + l] * y[k + l];
  for (int l = 0; k < n; ++k, ++l) sums[l] += x[k] * y[k];
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) sums[l] += sums[l + width];
  return sums[0];
}

template <class T>
void row_times_columns(int64_t n, int64_t k, const T* x, Matrix<const T> b, Matrix<T> c,
                       bool accumulate) {
  parallel_for(0, n, std::max<int64_t>(1, kThreadWork / 2 / std::max<int64_t>(k, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t j = begin; j < end; ++j) {
                   T& element = c.data[j * c.column];
                   const T value = dot(x, b.data + j * b.column, k);
                   element = accumulate ? element + value : value;
                 }
               });
}

// No packing, no allocation: for calls that are over before packing would have started.
template <class T>
void gemm_tiny(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
               bool accumulate) {
  typedef T Vector __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  constexpr int64_t kLanes = 16 / sizeof(T);
  const int64_t wide = b.column == 1 && c.column == 1 ? n / kLanes * kLanes : 0;
  for (int64_t i = 0; i < m; ++i) {
    const T* left = a.data + i * a.row;
    T* to = c.data + i * c.row;
    for (int64_t j = 0; j < wide; j += kLanes) {
      Vector sum = accumulate ? *reinterpret_cast<Unaligned*>(to + j) : Vector{};
      for (int64_t p = 0; p < k; ++p)
        sum += *reinterpret_cast<const Unaligned*>(b.data + p * b.row + j) * left[p * a.column];
      *reinterpret_cast<Unaligned*>(to + j) = sum;
    }
    for (int64_t j = wide; j < n; ++j) {
      T sum = accumulate ? to[j * c.column] : T(0);
      const T* right = b.data + j * b.column;
      for (int64_t p = 0; p < k; ++p) sum += left[p * a.column] * right[p * b.row];
      to[j * c.column] = sum;
    }
  }
}

template <class T>
void gemm_real(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
               bool accumulate) {
  if (work_of(m, n, k) <= (b.column == 1 ? kTinyWork : kTinyWork / 4))
    return gemm_tiny(m, n, k, a, b, c, accumulate);
  if (n == 1 && m > 1)
    return gemm_real<T>(n, m, k, b.transposed(), a.transposed(), c.transposed(), accumulate);
  if (m == 1 && b.row == 1 && b.column != 1 && a.column == 1)
    return row_times_columns(n, k, a.data, b, c, accumulate);
  const Product<T> product(m, n, k, a, c, accumulate);
  const auto source = [&](const Panels<T>& panels) { pack_matrix(b, panels); };
  product.run(source,
              b.column == 1 && product.reads_directly() ? b : Matrix<const T>{nullptr, 0, 0});
}

// 8- and 16-bit floats: both factors as float, the sums too, one rounding at the end.
template <class T>
void gemm_small_float(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b,
                      Matrix<T> c, bool accumulate) {
  Scratch<float> wide_a(m * k), sums(m * n);
  parallel_for(
      0, m, std::max<int64_t>(1, 32768 / std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          pack_strided(a.data + i * a.row, a.column, a.row, k, 1, wide_a.data() + i * k, 1);
      });
  const auto source = [&](const Panels<float>& panels) { pack_matrix(b, panels); };
  gemm_panels<float>(m, n, k, {wide_a.data(), k, 1}, source, {sums.data(), n, 1}, false);
  parallel_for(0, m, std::max<int64_t>(1, 32768 / std::max<int64_t>(n, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   for (int64_t j = 0; j < n; ++j) {
                     T& element = c.data[i * c.row + j * c.column];
                     const float sum = sums[i * n + j];
                     element = T(accumulate ? static_cast<float>(element) + sum : sum);
                   }
               });
}

// Complex numbers are stored as pairs, so A with k columns is a real matrix with 2k and C one with
// 2n, if each element (x + iy) of B is spread into the square (x, y; -y, x).
template <class R>
void gemm_complex(int64_t m, int64_t n, int64_t k, Matrix<const std::complex<R>> a,
                  Matrix<const std::complex<R>> b, Matrix<std::complex<R>> c, bool accumulate) {
  using T = std::complex<R>;
  Scratch<R> compact_a(a.column == 1 ? 0 : 2 * m * k);
  if (a.column != 1) {
    auto* to = reinterpret_cast<T*>(compact_a.data());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p) to[i * k + p] = a.data[i * a.row + p * a.column];
    a = {to, k, 1};
  }
  const auto source = [&](const Panels<R>& panels) {
    R line[kMaxPanelColumns];
    for (int64_t r = 0; r < panels.rows; ++r) {
      const int64_t p = (panels.first_row + r) / 2;
      const bool lower = (panels.first_row + r) % 2 != 0;
      for (int64_t s = 0; s < panels.padded(); s += 2) {
        const bool inside = s < panels.columns;
        const T v = inside ? b.data[p * b.row + (panels.first_column + s) / 2 * b.column] : T(0);
        line[s] = lower ? -v.imag() : v.real();
        line[s + 1] = lower ? v.real() : v.imag();
      }
      panels.store_row(r, line);
    }
  };
  gemm_panels<R>(m, 2 * n, 2 * k, {reinterpret_cast<const R*>(a.data), 2 * a.row, 1}, source,
                 {reinterpret_cast<R*>(c.data), 2 * c.row, 1}, accumulate);
}

// The type of sums: integers wrap, so they are added as unsigned words.
template <class T>
using carrier_t =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, compute_t<T>>;

}  // namespace

template <class T>
void gemm_reference(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b,
                    Matrix<T> c, bool accumulate) {
  using Sum = carrier_t<T>;
  const auto rows = [&](int64_t begin, int64_t end) {
    constexpr int64_t kColumns = 64;
    Sum sums[kColumns];
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j0 = 0; j0 < n; j0 += kColumns) {
        const int64_t columns = std::min(kColumns, n - j0);
        for (int64_t j = 0; j < columns; ++j)
          sums[j] = accumulate ? static_cast<Sum>(c.data[i * c.row + (j0 + j) * c.column]) : Sum(0);
        for (int64_t p = 0; p < k; ++p) {
          const auto factor = static_cast<Sum>(a.data[i * a.row + p * a.column]);
          const T* line = b.data + p * b.row + j0 * b.column;
          if (b.column == 1)
            for (int64_t j = 0; j < columns; ++j)
              sums[j] = static_cast<Sum>(sums[j] + factor * static_cast<Sum>(line[j]));
          else
            for (int64_t j = 0; j < columns; ++j)
              sums[j] = static_cast<Sum>(sums[j] + factor * static_cast<Sum>(line[j * b.column]));
        }
        for (int64_t j = 0; j < columns; ++j)
          c.data[i * c.row + (j0 + j) * c.column] = static_cast<T>(sums[j]);
      }
  };
  const int64_t per_row = std::max<int64_t>(n * k, 1);
  if (m * per_row <= kTinyWork) return rows(0, m);
  parallel_for(0, m, std::max<int64_t>(1, kThreadWork / 4 / per_row), rows);
}

template <class T>
void gemm_panels(int64_t m, int64_t n, int64_t k, Matrix<const T> a, PanelSource<T> b, Matrix<T> c,
                 bool accumulate) {
  if (m == 0 || n == 0) return;
  Product<T>(m, n, k, a, c, accumulate).run(b, {nullptr, 0, 0});
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
          bool accumulate) {
  if (m == 0 || n == 0) return;
  if constexpr (std::is_floating_point_v<T>) return gemm_real<T>(m, n, k, a, b, c, accumulate);
  if (std::is_integral_v<T> || work_of(m, n, k) <= kTinyWork)
    return gemm_reference<T>(m, n, k, a, b, c, accumulate);
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>)
    if (gemm_tiles<T>(m, n, k, a, b, c, accumulate)) return;
  if constexpr (is_small_float<T>) gemm_small_float<T>(m, n, k, a, b, c, accumulate);
  if constexpr (is_complex_type<T>)
    gemm_complex<typename T::value_type>(m, n, k, a, b, c, accumulate);
}

template void gemm_panels<float>(int64_t, int64_t, int64_t, Matrix<const float>, PanelSource<float>,
                                 Matrix<float>, bool);
template void gemm_panels<double>(int64_t, int64_t, int64_t, Matrix<const double>,
                                  PanelSource<double>, Matrix<double>, bool);
#define OAR_INSTANTIATE(T)                                                                      \
  template void gemm<T>(int64_t, int64_t, int64_t, Matrix<const T>, Matrix<const T>, Matrix<T>, \
                        bool);                                                                  \
  template void gemm_reference<T>(int64_t, int64_t, int64_t, Matrix<const T>, Matrix<const T>,  \
                                  Matrix<T>, bool);
OAR_INSTANTIATE(uint8_t)
OAR_INSTANTIATE(int8_t)
OAR_INSTANTIATE(int16_t)
OAR_INSTANTIATE(int32_t)
OAR_INSTANTIATE(int64_t)
OAR_INSTANTIATE(float16)
OAR_INSTANTIATE(bfloat16)
OAR_INSTANTIATE(float8_e4m3fn)
OAR_INSTANTIATE(float8_e5m2)
OAR_INSTANTIATE(float)
OAR_INSTANTIATE(double)
OAR_INSTANTIATE(std::complex<float>)
OAR_INSTANTIATE(std::complex<double>)
#undef OAR_INSTANTIATE

}  // namespace oar::cpu
