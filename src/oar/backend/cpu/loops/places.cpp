#include "oar/backend/cpu/loops/places.h"

#include <bit>
#include <cstring>

#include "oar/ops/core/infer.h"

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
  const auto columns = static_cast<size_t>(std::max(mask.ndim, 1));
  std::vector<Offsets> found(columns);
  each_mask_run(
      mask,
      [&](int64_t count) {
        for (Offsets& column : found) column.resize(static_cast<size_t>(count));
      },
      [&](const MaskRun& run) {
        auto at = static_cast<size_t>(run.number);
        for (size_t k = 0; k < run.row.index().size(); ++k)
          std::fill_n(found[k].data() + at, run.count, run.row.index()[k]);
        const size_t end = at + static_cast<size_t>(run.count);
        for (int64_t i = run.first; at < end; ++i) {  // written over unless it counts
          found.back()[at] = i;
          at += run.flags[(i - run.first) * run.step];
        }
      });
  for (size_t k = 0; k < columns; ++k) {
    Offsets& column = positions_.emplace_back(std::move(found[k]));
    const Dim size = static_cast<int64_t>(column.size());
    const int64_t step = 1;
    tensors_.emplace_back(column.data(), DType::Int64, Dims(&size, 1), Ints(&step, 1));
    entries_.push_back({static_cast<int64_t>(sizes_.size()), &tensors_.back()});
    if (mask.ndim == 0)
      add_axis(1, 0);
    else
      add_axis(shape[first + k].word(), strides[first + k]);
  }
}

Offsets Places::offsets(Ints steps) const {
  Offsets sums(static_cast<size_t>(index_.numel().word()), 0);
  const auto row_major = contiguous_strides(index_);
  const LocalTensor target(sums.data(), DType::Int64, index_, {row_major.data(), row_major.size()});
  for (const Entry& entry : entries_) {
    const int64_t size = sizes_[static_cast<size_t>(entry.axis)].word(),
                  step = steps[static_cast<size_t>(entry.axis)];
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

void each_mask_run(const oar_tensor& mask, FunctionRef<void(int64_t)> start,
                   FunctionRef<void(const MaskRun&)> body) {
  constexpr int64_t kPiece = 1 << 16;
  const auto leading = static_cast<size_t>(std::max(mask.ndim - 1, 0));
  const int64_t length = mask.ndim > 0 ? mask.shape[leading] : 1,
                step = mask.ndim > 0 ? mask.strides[leading] : 1;
  const LocalTensor rows(mask.data, DType::Bool, dims_of(mask).first(leading),
                         strides_of(mask).first(leading));
  const int64_t pieces = (mask.numel + kPiece - 1) / kPiece;
  const auto walk = [&](int64_t piece, auto&& run) {
    int64_t at = piece * kPiece;
    const int64_t end = std::min(mask.numel, at + kPiece);
    for (Cursor row(rows, at / length); at < end; row.next()) {
      const int64_t first = at % length, last = std::min(length, first + end - at);
      run(row, first, last, static_cast<const bool*>(mask.data) + row.offset() + first * step);
      at += last - first;
    }
  };
  const auto count_of = [step](const bool* flags, int64_t n) {
    int64_t count = 0, i = 0;
    for (; step == 1 && i + 8 <= n; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, flags + i, 8);
      count += std::popcount(eight);
    }
    for (; i < n; ++i) count += flags[i * step];
    return count;
  };
  std::vector<int64_t> starts(static_cast<size_t>(pieces) + 1, 0);
  parallel_chunks(pieces, [&](int64_t piece) {
    int64_t& count = starts[static_cast<size_t>(piece) + 1];
    walk(piece, [&](const Cursor&, int64_t first, int64_t last, const bool* flags) {
      count += count_of(flags, last - first);
    });
  });
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  start(starts.back());
  parallel_chunks(pieces, [&](int64_t piece) {
    int64_t number = starts[static_cast<size_t>(piece)];
    walk(piece, [&](const Cursor& row, int64_t first, int64_t last, const bool* flags) {
      const int64_t count = count_of(flags, last - first);
      if (count > 0) body({number, count, row, first, last, flags, step});
      number += count;
    });
  });
}

void find_nonzero(const oar_tensor& x, FunctionRef<int64_t*(int64_t)> make) {
  if (dtype_of(x) != DType::Bool) {
    const TemporaryTensor mask(dims_of(x), DType::Bool);
    copy_elements(*mask, x);
    return find_nonzero(*mask, make);
  }
  int64_t* out = nullptr;
  each_mask_run(
      x, [&](int64_t count) { out = make(count); },
      [&](const MaskRun& run) {
        if (x.ndim == 0) return;
        const int64_t leading = x.ndim - 1;
        int64_t* to = out + run.number * x.ndim;
        int64_t* const end = to + run.count * x.ndim;
        for (int64_t i = run.first; to < end; ++i) {  // written over unless it counts
          for (int64_t k = 0; k < leading; ++k) to[k] = run.row.index()[static_cast<size_t>(k)];
          to[leading] = i;
          to += run.flags[(i - run.first) * run.step] ? x.ndim : 0;
        }
      });
}

}  // namespace oar::cpu
