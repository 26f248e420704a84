// Embedding: rows copied out of a table, and summed back into it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "oar/backend/cpu/loops/places.h"

namespace oar::cpu {
namespace {

// Row numbers, checked. A negative number is an error here, not a count from the end.
class RowNumbers {
 public:
  RowNumbers(const oar_tensor& x, int64_t rows)
      : count_(x.numel), numbers_(static_cast<const int64_t*>(x.data)) {
    const auto packed = contiguous_strides(dims_of(x));
    if (dtype_of(x) != DType::Int64 || !std::equal(packed.begin(), packed.end(), x.strides)) {
      copy_.emplace(dims_of(x), DType::Int64);
      copy_elements(**copy_, x);
      numbers_ = copy_->data<int64_t>();
    }
    const int64_t* numbers = numbers_;
    const int64_t count = count_;
    int64_t good = 0;
    for (int64_t i = 0; i < count; ++i)
      good += static_cast<uint64_t>(numbers[i]) < static_cast<uint64_t>(rows);
    for (int64_t i = 0; good < count && i < count; ++i)
      user_check(numbers[i] >= 0 && numbers[i] < rows, ErrorKind::OutOfRange,
                 "x holds the row number {}; weight has {} rows (0 to {}).", numbers[i], rows,
                 rows - 1);
  }
  int64_t operator[](int64_t i) const { return numbers_[i]; }
  const int64_t* data() const { return numbers_; }
  int64_t count() const { return count_; }

 private:
  int64_t count_;
  std::optional<TemporaryTensor> copy_;
  const int64_t* numbers_;
};

// The elements of one row: `row_axes` axes at the end of each tensor.
Walk<2> row_walk(const oar_tensor& a, const oar_tensor& b, int row_axes) {
  Walk<2> walk;
  for (int i = 0; i < row_axes; ++i) {
    const int ia = a.ndim - row_axes + i, ib = b.ndim - row_axes + i;
    walk.push(a.shape[ia], {a.strides[ia] * element_size(a), b.strides[ib] * element_size(b)});
  }
  return walk;
}

void embedding_lookup(KernelCall& call) {
  const oar_tensor &weight = call.in(1), &out = call.out();
  const int64_t padding = call.arg(2).as_int(), size = element_size(out);
  const RowNumbers rows(call.in(0), weight.shape[0]);
  const Walk<2> row = row_walk(out, weight, weight.ndim - 1);
  const int64_t length = row.count(), stride = weight.strides[0] * size;
  const bool packed = row.is_run({size, size});
  if (length == 0) return;
  parallel_for(
      0, rows.count(), std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
        const int64_t *numbers = rows.data() + begin, bytes = length * size, count = end - begin;
        const auto* table = static_cast<const char*>(weight.data);
        char* to = static_cast<char*>(out.data) + begin * bytes;
        const auto from = [=](int64_t i) { return table + numbers[i] * stride; };
        if (packed && bytes == 4) {
          copy_narrow_rows<4>(to, from, count);
        } else if (packed) {
          copy_rows(to, from, count, bytes, /*stream=*/false);
        } else {
          for (int64_t i = 0; i < count; ++i)
            row.runs([&](const auto& at, const auto& steps, int64_t n) {
              for (int64_t k = 0; k < n; ++k)
                std::memcpy(to + i * bytes + at[0] + k * steps[0], from(i) + at[1] + k * steps[1],
                            static_cast<size_t>(size));
            });
        }
        for (int64_t i = 0; padding >= 0 && i < count; ++i)
          if (numbers[i] == padding) std::memset(to + i * bytes, 0, static_cast<size_t>(bytes));
      });
}

// In pieces of a known length, since most rows are short.
template <class T>
void add_row(T* __restrict sums, const T* __restrict more, int64_t length) {
  constexpr int64_t kPiece = 64 / sizeof(T);
  int64_t k = 0;
  for (; k + kPiece <= length; k += kPiece)
    for (int64_t i = 0; i < kPiece; ++i) sums[k + i] = static_cast<T>(sums[k + i] + more[k + i]);
  for (; k < length; ++k) sums[k] = static_cast<T>(sums[k] + more[k]);
}

// Each thread owns a range of rows of the table, so the order of additions does not depend on them.
template <class T>
void sum_rows(const oar_tensor& out, const RowNumbers& rows, const oar_tensor& value,
              int64_t padding) {
  const Walk<2> row = row_walk(out, value, out.ndim - 1);
  const int64_t total = out.shape[0], length = row.count(),
                stride = length * static_cast<int64_t>(sizeof(T));
  const bool packed = row.is_run({sizeof(T), sizeof(T)});
  constexpr int64_t kAhead = 32, kLine = 64, kMost = 4 * kLine;  // rows and bytes to prefetch
  const int64_t asked = std::min(stride, kMost);
  Walk<1> starts;
  for (int i = 0; i < value.ndim - (out.ndim - 1); ++i)
    starts.push(value.shape[i], {value.strides[i] * static_cast<int64_t>(sizeof(T))});
  const int64_t parts =
      rows.count() * length <= kGrain ? 1 : std::min<int64_t>(num_threads(), total);
  parallel_chunks(parts, [&](int64_t part) {
    const int64_t first = total * part / parts, last = total * (part + 1) / parts;
    // Zeros of all bits: of large tables memset writes past the cache.
    std::memset(static_cast<char*>(out.data) + first * stride, 0,
                static_cast<size_t>((last - first) * stride));
    int64_t i = 0;
    starts.runs([&](const auto& at, const auto& steps, int64_t n) {
      for (int64_t k = 0; k < n; ++k, ++i) {
        if (i + kAhead < rows.count())
          for (int64_t b = 0; b < asked; b += kLine)
            __builtin_prefetch(static_cast<char*>(out.data) + rows[i + kAhead] * stride + b, 1);
        if (rows[i] < first || rows[i] >= last || rows[i] == padding) continue;
        char* to = static_cast<char*>(out.data) + rows[i] * stride;
        const char* from = static_cast<const char*>(value.data) + at[0] + k * steps[0];
        if (packed) {
          add_row(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), length);
          continue;
        }
        row.runs([&](const auto& a, const auto& s, int64_t m) {
          for (int64_t e = 0; e < m; ++e) {
            T& sum = *reinterpret_cast<T*>(to + a[0] + e * s[0]);
            sum = static_cast<T>(sum + *reinterpret_cast<const T*>(from + a[1] + e * s[1]));
          }
        });
      }
    });
  });
}

void embedding_grad(KernelCall& call) {
  const oar_tensor &value = call.in(1), &out = call.out();
  const int64_t padding = call.arg(3).as_int();
  const RowNumbers rows(call.in(0), out.shape[0]);
  if (out.numel == 0) return;
  const DType dtype = dtype_of(out);
  if (is_floating(dtype) && size_of(dtype) < 4) {  // small floats are summed in float
    const TemporaryTensor sums(dims_of(out), DType::Float32), wide(dims_of(value), DType::Float32);
    copy_elements(*wide, value);
    sum_rows<float>(*sums, rows, *wide, padding);
    return copy_elements(out, *sums);
  }
  visit_dtype(dtype,
              [&](auto tag) { sum_rows<typename decltype(tag)::type>(out, rows, value, padding); });
}

template <class T>
void renorm_row(const oar_tensor& weight, int64_t row, double max_norm, double order) {
  const auto at = [&](int64_t i) -> T& {
    return static_cast<T*>(weight.data)[row * weight.strides[0] + i * weight.strides[1]];
  };
  double sum = 0;
  for (int64_t i = 0; i < weight.shape[1]; ++i) {
    const double size = std::abs(static_cast<double>(static_cast<compute_t<T>>(at(i))));
    sum = std::isinf(order) ? std::max(sum, size) : sum + std::pow(size, order);
  }
  const double norm = std::isinf(order) ? sum : std::pow(sum, 1 / order);
  if (!(norm > max_norm)) return;
  const double scale = max_norm / (norm + 1e-7);
  for (int64_t i = 0; i < weight.shape[1]; ++i)
    at(i) = static_cast<T>(
        static_cast<compute_t<T>>(static_cast<double>(static_cast<compute_t<T>>(at(i))) * scale));
}

void embedding_renorm(KernelCall& call) {
  const oar_tensor& weight = call.in(0);
  const RowNumbers numbers(call.in(1), weight.shape[0]);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < numbers.count(); ++i) rows.push_back(numbers[i]);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  visit<kFloats>(dtype_of(weight), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, static_cast<int64_t>(rows.size()),
                 std::max<int64_t>(1, kGrain / std::max<int64_t>(weight.shape[1], 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     renorm_row<T>(weight, rows[static_cast<size_t>(i)], call.arg(2).as_double(),
                                   call.arg(3).as_double());
                 });
  });
}

}  // namespace

KernelList embedding_kernels() {
  static const oar_kernel list[] = {
      {"embedding_lookup", 1, "cpu:generic", nullptr, kernel_entry<embedding_lookup>},
      {"embedding_grad", 1, "cpu:generic", nullptr, training_entry<embedding_grad>},
      {"embedding_renorm_", 1, "cpu:generic", nullptr, training_entry<embedding_renorm>},
  };
  return list;
}

}  // namespace oar::cpu
