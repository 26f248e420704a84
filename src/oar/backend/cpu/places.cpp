#include "oar/backend/cpu/places.h"

#include "oar/ops/infer.h"

namespace oar::cpu {

Places::Places(Dims shape, Ints strides, const Value& indices) {
  size_t source = 0;
  for (const Tensor& entry : indices.as_tensors()) {
    if (entry.defined() && is_bool(entry.dtype())) {
      add_mask(*entry.impl(), shape, strides, source);
      source += static_cast<size_t>(entry.rank());
      continue;
    }
    if (entry.defined()) entries_.push_back({static_cast<int64_t>(sizes_.size()), entry.impl()});
    add_axis(shape[source].word(), strides[source]);
    ++source;
  }
  for (; source < shape.size(); ++source) add_axis(shape[source].word(), strides[source]);
  SmallVector<int64_t, 6> taken;
  for (const Entry& entry : entries_) {
    taken.push_back(entry.axis);
    index_ = broadcast_shapes(index_, Shape(dims_of(*entry.index)));
  }
  layout_ = index_layout(std::move(taken), static_cast<int64_t>(sizes_.size()));
}

void Places::add_mask(const oar_tensor& mask, Dims shape, Ints strides, size_t first) {
  int64_t count = 0;
  std::vector<int64_t> rows;
  find_nonzero(mask, [&](int64_t n) {
    count = n;
    rows.resize(static_cast<size_t>(n * mask.ndim));
    return rows.data();
  });
  const int columns = std::max(mask.ndim, 1);
  for (int k = 0; k < columns; ++k) {
    std::vector<int64_t>& column = positions_.emplace_back(static_cast<size_t>(count), 0);
    for (int64_t i = 0; i < count && mask.ndim > 0; ++i)
      column[static_cast<size_t>(i)] = rows[static_cast<size_t>(i * mask.ndim + k)];
    const Dim size = count;
    const int64_t step = 1;
    tensors_.emplace_back(column.data(), DType::Int64, Dims(&size, 1), Ints(&step, 1));
    entries_.push_back({static_cast<int64_t>(sizes_.size()), &tensors_.back()});
    if (mask.ndim == 0) add_axis(1, 0);
    else add_axis(shape[first + static_cast<size_t>(k)].word(), strides[first + static_cast<size_t>(k)]);
  }
}

std::vector<int64_t> Places::offsets(Ints steps) const {
  std::vector<int64_t> sums(static_cast<size_t>(index_.numel().word()), 0);
  const auto row_major = contiguous_strides(index_);
  const LocalTensor target(sums.data(), DType::Int64, index_, {row_major.data(), row_major.size()});
  for (const Entry& entry : entries_) {
    const int64_t size = sizes_[static_cast<size_t>(entry.axis)].word(), step = steps[static_cast<size_t>(entry.axis)];
    const LocalTensor index = LocalTensor::broadcast(*entry.index, index_);
    visit<kIntegers>(dtype_of(index), [&](auto tag) {
      using T = typename decltype(tag)::type;
      StridedLoop<2>({&target, &index}).run([&](const auto& p, const auto& s, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          const auto given = static_cast<int64_t>(*reinterpret_cast<const T*>(p[1] + i * s[1]));
          const int64_t at = given < 0 ? given + size : given;
          if (at < 0 || at >= size) [[unlikely]]
            fail_out_of_range(given, entry.axis, size);
          *reinterpret_cast<int64_t*>(p[0] + i * s[0]) += at * step;
        }
      });
    });
  }
  return sums;
}

void find_nonzero(const oar_tensor& x, const std::function<int64_t*(int64_t)>& make) {
  constexpr int64_t kChunk = 1 << 15;
  const int64_t chunks = (x.numel + kChunk - 1) / kChunk;
  std::vector<int64_t> starts(static_cast<size_t>(chunks) + 1, 0);
  visit_dtype(dtype_of(x), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* data = static_cast<const T*>(x.data);
    const auto walk = [&](int64_t chunk, auto&& found) {
      Cursor cursor(x, chunk * kChunk);
      for (int64_t i = chunk * kChunk; i < std::min(x.numel, (chunk + 1) * kChunk); ++i, cursor.next())
        if (convert_element<bool>(data[cursor.offset()])) found(cursor);
    };
    parallel_chunks(chunks, [&](int64_t chunk) {
      int64_t count = 0;
      walk(chunk, [&](const Cursor&) { ++count; });
      starts[static_cast<size_t>(chunk) + 1] = count;
    });
    for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    int64_t* out = make(starts.back());
    parallel_chunks(chunks, [&](int64_t chunk) {
      int64_t* row = out + starts[static_cast<size_t>(chunk)] * x.ndim;
      walk(chunk, [&](const Cursor& cursor) {
        for (int64_t i : cursor.index()) *row++ = i;
      });
    });
  });
}

}  // namespace oar::cpu
