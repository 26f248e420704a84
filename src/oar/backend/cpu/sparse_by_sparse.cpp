// Products of two sparse matrices.
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <vector>

#include "oar/backend/cpu/sparse/positions.h"

namespace oar::cpu {
namespace {

template <class T>
struct CsrMatrix {
  CsrMatrix(const KernelCall& call, int first, int64_t width, const char* name)
      : crows_(call.in(first)),
        cols_(call.in(first + 1)),
        values_(call.in(first + 2)),
        rows(call.in(first).numel - 1),
        count(call.in(first + 1).numel),
        crows(crows_.data()),
        cols(cols_.data()),
        values(values_.data()) {
    check_row_starts(crows, rows, count, name);
    check_positions(cols, count, width, name);
  }

 private:
  Flat<int64_t> crows_, cols_;
  Flat<T> values_;

 public:
  const int64_t rows, count;
  const int64_t *crows, *cols;
  const T* values;
};

// Sums need memory for each column. If a row has far more columns than all matrices have elements, those that occur are numbered.
class Columns {
 public:
  template <class T>
  Columns(int64_t width, std::initializer_list<CsrMatrix<T>*> matrices) : width_(width) {
    int64_t elements = 0;
    for (const CsrMatrix<T>* m : matrices) elements += m->count;
    if (width <= kPlenty || width / 8 <= elements) return;
    for (const CsrMatrix<T>* m : matrices) used_.insert(used_.end(), m->cols, m->cols + m->count);
    std::sort(used_.begin(), used_.end());
    used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
    width_ = static_cast<int64_t>(used_.size());
    numbered_ = true;
    for (CsrMatrix<T>* m : matrices) {
      std::vector<int64_t>& numbers = numbers_.emplace_back(static_cast<size_t>(m->count));
      std::transform(m->cols, m->cols + m->count, numbers.begin(), [&](int64_t col) {
        return std::lower_bound(used_.begin(), used_.end(), col) - used_.begin();
      });
      m->cols = numbers.data();
    }
  }
  int64_t width() const { return width_; }
  void restore(int64_t* cols, int64_t count) const {
    if (numbered_)
      std::transform(cols, cols + count, cols,
                     [&](int64_t number) { return used_[static_cast<size_t>(number)]; });
  }

 private:
  static constexpr int64_t kPlenty = 1 << 16;
  int64_t width_;
  bool numbered_ = false;
  std::vector<int64_t> used_;
  std::vector<std::vector<int64_t>> numbers_;
};

// The columns that a row of the product has, each once, and their sums. One per thread.
template <class T>
class RowSums {
 public:
  explicit RowSums(int64_t width)
      : sums_(static_cast<size_t>(width), T(0)), bits_(static_cast<size_t>(width + 63) / 64, 0) {}

  int64_t count(const CsrMatrix<T>& x, const CsrMatrix<T>& y, int64_t row) {
    if (!is_full(x, y, row)) {
      list_.clear();
      each_part(x, y, row, [&](int64_t col, int64_t, int64_t) { note(col); });
      for (const int64_t col : list_) bits_[static_cast<size_t>(col / 64)] = 0;
      return static_cast<int64_t>(list_.size());
    }
    each_part(x, y, row, [&](int64_t col, int64_t, int64_t) { mark(col); });
    int64_t found = 0;
    for (uint64_t& word : bits_) {
      found += std::popcount(word);
      word = 0;
    }
    return found;
  }
  // Few columns are listed and sorted; many are marked in a set of bits, which is then read in order.
  void sum(const CsrMatrix<T>& x, const CsrMatrix<T>& y, int64_t row, int64_t* cols, T* values) {
    if (!is_full(x, y, row)) {
      list_.clear();
      each_part(x, y, row, [&](int64_t col, int64_t p, int64_t q) {
        sums_[static_cast<size_t>(col)] += x.values[p] * y.values[q];
        note(col);
      });
      std::sort(list_.begin(), list_.end());
      for (const int64_t col : list_) {
        bits_[static_cast<size_t>(col / 64)] = 0;
        *cols++ = col;
        *values++ = take(col);
      }
      return;
    }
    each_part(x, y, row, [&](int64_t col, int64_t p, int64_t q) {
      sums_[static_cast<size_t>(col)] += x.values[p] * y.values[q];
      mark(col);
    });
    int64_t first = 0;
    for (uint64_t& word : bits_) {
      for (uint64_t left = word; left != 0; left &= left - 1) {
        const int64_t col = first + std::countr_zero(left);
        *cols++ = col;
        *values++ = take(col);
      }
      word = 0;
      first += 64;
    }
  }

 private:
  // Are there so many products that reading all bits costs less than sorting?
  bool is_full(const CsrMatrix<T>& x, const CsrMatrix<T>& y, int64_t row) const {
    uint64_t parts = 0;
    for (int64_t p = x.crows[row]; p < x.crows[row + 1]; ++p)
      parts += static_cast<uint64_t>(y.crows[x.cols[p] + 1] - y.crows[x.cols[p]]);
    return parts * static_cast<uint64_t>(std::bit_width(parts)) >= bits_.size();
  }
  void mark(int64_t col) {
    bits_[static_cast<size_t>(col) / 64] |= uint64_t{1} << (static_cast<size_t>(col) % 64);
  }
  void note(int64_t col) {
    const uint64_t bit = uint64_t{1} << (static_cast<size_t>(col) % 64);
    uint64_t& word = bits_[static_cast<size_t>(col) / 64];
    if ((word & bit) == 0) list_.push_back(col);
    word |= bit;
  }
  T take(int64_t col) {
    T& sum = sums_[static_cast<size_t>(col)];
    const T value = sum;
    sum = T(0);
    return value;
  }
  template <class F>
  static void each_part(const CsrMatrix<T>& x, const CsrMatrix<T>& y, int64_t row, F&& body) {
    for (int64_t p = x.crows[row]; p < x.crows[row + 1]; ++p)
      for (int64_t q = y.crows[x.cols[p]]; q < y.crows[x.cols[p] + 1]; ++q) body(y.cols[q], p, q);
  }
  std::vector<T> sums_;         // all zero between rows
  std::vector<uint64_t> bits_;  // all zero between rows
  std::vector<int64_t> list_;
};

int64_t chunk_count(int64_t rows, int64_t work) {
  return std::clamp<int64_t>(work / kGrain, 1,
                             std::min<int64_t>(std::max<int64_t>(rows, 1), num_threads()));
}

void csr_product(KernelCall& call) {
  const int64_t width = call.arg(6).as_ints()[0];
  visit_wide<kNumbers>(call.dtype(2), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const CsrMatrix<T> x(call, 0, call.in(3).numel - 1, "x");
    CsrMatrix<T> y(call, 3, width, "y");
    const Columns columns(width, {&y});
    int64_t work = 0;
    for (int64_t p = 0; p < x.count; ++p) work += y.crows[x.cols[p] + 1] - y.crows[x.cols[p]];
    const int64_t chunks = chunk_count(x.rows, work), starts = x.rows + 1;
    auto* crows = static_cast<int64_t*>(call.allocate(0, Ints(&starts, 1)).data);
    std::vector<RowSums<T>> sums(static_cast<size_t>(chunks), RowSums<T>(columns.width()));
    const auto each_row = [&](auto&& body) {
      parallel_chunks(chunks, [&](int64_t chunk) {
        for (int64_t row = x.rows * chunk / chunks; row < x.rows * (chunk + 1) / chunks; ++row)
          body(sums[static_cast<size_t>(chunk)], row);
      });
    };
    each_row([&](RowSums<T>& part, int64_t row) { crows[row + 1] = part.count(x, y, row); });
    crows[0] = 0;
    for (int64_t row = 0; row < x.rows; ++row) crows[row + 1] += crows[row];
    const int64_t found = crows[x.rows];
    auto* cols = static_cast<int64_t*>(call.allocate(1, Ints(&found, 1)).data);
    const Result<T> values(call.allocate(2, Ints(&found, 1)));
    each_row([&](RowSums<T>& part, int64_t row) {
      part.sum(x, y, row, cols + crows[row], values.data() + crows[row]);
      columns.restore(cols + crows[row], crows[row + 1] - crows[row]);
    });
    values.finish();
  });
}

void csr_dots(KernelCall& call) {
  const int64_t width = call.arg(8).as_ints()[0], count = call.in(0).numel;
  const Flat<int64_t> rows(call.in(0)), cols(call.in(1));
  visit_wide<kNumbers>(call.dtype(4), [&](auto tag) {
    using T = typename decltype(tag)::type;
    CsrMatrix<T> x(call, 2, width, "x"), y(call, 5, width, "y");
    const Columns columns(width, {&x, &y});
    check_positions(rows.data(), count, x.rows, "rows");
    check_positions(cols.data(), count, y.rows, "cols");
    const Result<T> out(call.out());
    const int64_t chunks = chunk_count(count, count * 16 + columns.width());
    parallel_chunks(chunks, [&](int64_t chunk) {
      // A row of x, spread over all columns; zero elsewhere.
      std::vector<T> spread(static_cast<size_t>(columns.width()), T(0));
      int64_t held = -1;
      const auto put = [&](int64_t row, bool set) {
        for (int64_t p = x.crows[row]; p < x.crows[row + 1]; ++p) {
          T& at = spread[static_cast<size_t>(x.cols[p])];
          at = set ? at + x.values[p] : T(0);
        }
      };
      for (int64_t k = count * chunk / chunks; k < count * (chunk + 1) / chunks; ++k) {
        if (rows.data()[k] != held) {
          if (held >= 0) put(held, false);
          put(held = rows.data()[k], true);
        }
        const int64_t row = cols.data()[k];
        T sum = 0;
        for (int64_t q = y.crows[row]; q < y.crows[row + 1]; ++q)
          sum += spread[static_cast<size_t>(y.cols[q])] * y.values[q];
        out.data()[k] = sum;
      }
    });
    out.finish();
  });
}

}  // namespace

KernelList sparse_by_sparse_kernels() {
  static const oar_kernel list[] = {
      {"csr_product", 1, "cpu:generic", nullptr, kernel_entry<csr_product>},
      {"csr_dots", 1, "cpu:generic", nullptr, training_entry<csr_dots>},
  };
  return list;
}

}  // namespace oar::cpu
