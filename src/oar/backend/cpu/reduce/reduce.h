// Reductions over any axes and strides.
//
// The elements of x form rows, one per element of the result. If the elements of a row are
// contiguous, rows are reduced one by one; if instead neighbouring rows are adjacent (a
// sum over the first axis), a block of rows is reduced together, so that memory is read in order
// either way. Sums are pairwise: the error grows with the logarithm of the length. How the work is
// cut depends on the shape only, never on the number of threads.
//
// A reducer defines what is computed:
//   Acc identity() const;
//   Acc step(Acc acc, const T* element, int64_t row) const;
//   Acc join(Acc a, Acc b) const;
//   Acc finish(Acc acc, int64_t row) const;
// It may have its own loops for contiguous elements (class Vectorised):
//   Acc run(const T* p, int64_t n, int64_t step, int64_t repeats, int64_t row) const;
//   void columns(const T* p, int64_t step, int64_t n, int64_t width, int64_t row, Acc* acc) const;
#pragma once

#include "oar/backend/cpu/loops/compact.h"
#include "oar/backend/cpu/reduce/reducers.h"
#include "oar/ops/core/infer.h"

namespace oar::cpu {

// Some axes of a tensor with strides in bytes, adjacent ones merged.
struct AxisList {
  SmallVector<int64_t, 6> shape, strides;
  int64_t count = 1;

  void push(int64_t size, int64_t stride) {
    count *= size;
    if (size == 1) return;
    if (!shape.empty() && strides.back() == stride * size) {
      shape.back() *= size;
      strides.back() = stride;
      return;
    }
    shape.push_back(size);
    strides.push_back(stride);
  }
  int64_t run_length() const { return shape.empty() ? 1 : shape.back(); }
  int64_t run_stride() const { return shape.empty() ? 0 : strides.back(); }
  int64_t offset(int64_t index) const {
    if (shape.size() == 1) return index * strides[0];
    int64_t bytes = 0;
    for (size_t axis = shape.size(); axis-- > 0;) {
      bytes += index % shape[axis] * strides[axis];
      index /= shape[axis];
    }
    return bytes;
  }
};

class ReduceLayout {
 public:
  // `ordered` keeps the elements of a row in logical order, for reductions that return indices.
  ReduceLayout(const oar_tensor& x, Ints axes, bool ordered = false) {
    const auto element = static_cast<int64_t>(size_of(static_cast<DType>(x.dtype)));
    SmallVector<std::pair<int64_t, int64_t>, 6> reduced;
    for (int axis = 0; axis < x.ndim; ++axis) {
      const int64_t size = x.shape[axis], stride = x.strides[axis] * element;
      if (std::find(axes.begin(), axes.end(), axis) != axes.end())
        reduced.push_back({size, stride});
      else
        rows.push(size, stride);
    }
    if (!ordered)
      std::stable_sort(reduced.begin(), reduced.end(), [](const auto& a, const auto& b) {
        return std::abs(a.second) > std::abs(b.second);
      });
    for (const auto& [size, stride] : reduced) inner.push(size, stride);
  }
  // body(pointer, byte stride, count, bytes from run to run, runs) over the elements [begin, end) of
  // a row: as many runs at a time as are equally far apart.
  template <class Body>
  void planes(const char* row, int64_t begin, int64_t end, Body&& body) const {
    const int64_t run = inner.run_length();
    const size_t rank = inner.shape.size();
    while (begin < end) {
      const int64_t at = rank > 1 ? begin % run : begin;
      int64_t count = std::min(end - begin, run - at), repeats = 1;
      if (rank > 1 && at == 0 && count == run) {
        const int64_t across = inner.shape[rank - 2];
        repeats = std::min((end - begin) / run, across - begin / run % across);
      }
      body(row + inner.offset(begin), inner.run_stride(), count,
           rank > 1 ? inner.strides[rank - 2] : 0, repeats);
      begin += count * repeats;
    }
  }
  // body(pointer, byte stride, count) over the runs of elements [begin, end) of a row.
  template <class Body>
  void runs(const char* row, int64_t begin, int64_t end, Body&& body) const {
    const int64_t run = inner.run_length();
    while (begin < end) {
      const int64_t at = inner.shape.size() > 1 ? begin % run : begin;
      const int64_t count = std::min(end - begin, run - at);
      body(row + inner.offset(begin), inner.run_stride(), count);
      begin += count;
    }
  }

  AxisList rows, inner;
};

// Several sums side by side: independent chains keep the adders busy and vectorise, and shorten
// each chain for accuracy.
template <class Acc>
inline constexpr int64_t kLanes = std::max<int64_t>(4, 128 / static_cast<int64_t>(sizeof(Acc)));

template <class T, class Acc, class Reducer>
Acc reduce_run(const Reducer& reducer, const T* p, int64_t n, int64_t row) {
  constexpr int64_t lanes = kLanes<Acc>;
  if (n < lanes) {
    Acc acc = reducer.identity();
    for (int64_t i = 0; i < n; ++i) acc = reducer.step(acc, p + i, row);
    return acc;
  }
  Acc acc[lanes];
  for (int64_t k = 0; k < lanes; ++k) acc[k] = reducer.identity();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t k = 0; k < lanes; ++k) acc[k] = reducer.step(acc[k], p + i + k, row);
  for (int64_t k = 0; i < n; ++i, ++k) acc[k] = reducer.step(acc[k], p + i, row);
  for (int64_t width = lanes / 2; width > 0; width /= 2)
    for (int64_t k = 0; k < width; ++k) acc[k] = reducer.join(acc[k], acc[k + width]);
  return acc[0];
}

template <class T, class Acc, class Reducer>
Acc reduce_strided(const Reducer& reducer, const char* p, int64_t stride, int64_t n, int64_t row) {
  if (stride == static_cast<int64_t>(sizeof(T)))
    return reduce_run<T, Acc>(reducer, reinterpret_cast<const T*>(p), n, row);
  constexpr int64_t lanes = 4;
  Acc acc[lanes];
  for (Acc& a : acc) a = reducer.identity();
  for (int64_t i = 0; i < n; ++i)
    acc[i % lanes] = reducer.step(acc[i % lanes], reinterpret_cast<const T*>(p + i * stride), row);
  return reducer.join(reducer.join(acc[0], acc[1]), reducer.join(acc[2], acc[3]));
}

// leaf(begin, end) on blocks, joined as a balanced tree.
template <class Acc, class Leaf, class Join>
Acc pairwise(int64_t begin, int64_t end, int64_t block, const Leaf& leaf, const Join& join) {
  if (end - begin <= block) return leaf(begin, end);
  const int64_t blocks = (end - begin + block - 1) / block;
  const int64_t middle = begin + blocks / 2 * block;
  return join(pairwise<Acc>(begin, middle, block, leaf, join),
              pairwise<Acc>(middle, end, block, leaf, join));
}

template <class Reducer, class T>
concept HasRun = requires(const Reducer& r, const T* p) { r.run(p, 0, 0, 0, 0); };
template <class Reducer, class T, class Acc>
concept HasColumns =
    requires(const Reducer& r, const T* p, Acc* to) { r.columns(p, 0, 0, 0, 0, to); };

// `load` converts elements to T in blocks; null if they are of that type.
template <class T, class Acc, class Reducer>
class RowReduction {
 public:
  RowReduction(const ReduceLayout& layout, const oar_tensor& x, ConvertRun load,
               const Reducer& reducer, Acc* results)
      : layout_(layout),
        data_(static_cast<const char*>(x.data)),
        element_(static_cast<int64_t>(size_of(static_cast<DType>(x.dtype)))),
        load_(load),
        reducer_(reducer),
        results_(results) {}

  void run() const {
    const int64_t rows = layout_.rows.count, length = layout_.inner.count;
    if (rows == 0) return;
    if (length == 0) {
      for (int64_t row = 0; row < rows; ++row)
        results_[row] = reducer_.finish(reducer_.identity(), row);
    } else if (by_columns()) {
      columns();
    } else if (rows < kFewRows && length > 2 * kChunk) {
      for (int64_t row = 0; row < rows; ++row) long_row(row);
    } else {
      parallel_for(0, rows, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
        if (length < kLanes<Acc> && layout_.inner.shape.size() <= 1) return short_rows(begin, end);
        for (int64_t row = begin; row < end; ++row)
          results_[row] = reducer_.finish(part(row, 0, length), row);
      });
    }
  }

 private:
  static constexpr int64_t kFewRows = 16;
  static constexpr int64_t kChunk = 1 << 16;  // elements of a long row per task
  static constexpr int64_t kBlock = HasRun<Reducer, T> ? 1 << 14 : 1024;  // elements per leaf
  static constexpr int64_t kWidth = 256;       // rows that are reduced together
  static constexpr int64_t kColumnBlock = 64;  // their elements per leaf

  bool by_columns() const {
    return layout_.rows.run_stride() == element_ && layout_.rows.run_length() > 1 &&
           !(layout_.inner.run_stride() == element_ && layout_.inner.run_length() > 1);
  }
  Acc join(Acc a, Acc b) const { return reducer_.join(a, b); }

  Acc part(int64_t row, int64_t begin, int64_t end) const {
    const char* start = data_ + layout_.rows.offset(row);
    if (end - begin <= kBlock && layout_.inner.shape.size() <= 1)
      return plane(start + layout_.inner.offset(begin), layout_.inner.run_stride(), end - begin, 0,
                   1, row);
    const auto leaf = [&](int64_t b, int64_t e) {
      Acc acc = reducer_.identity();
      layout_.planes(start, b, e,
                     [&](const char* p, int64_t stride, int64_t n, int64_t step, int64_t repeats) {
                       acc = join(acc, plane(p, stride, n, step, repeats, row));
                     });
      return acc;
    };
    return pairwise<Acc>(begin, end, kBlock, leaf, [&](Acc a, Acc b) { return join(a, b); });
  }

  // `repeats` runs of n elements; steps and strides in bytes.
  Acc plane(const char* p, int64_t stride, int64_t n, int64_t step, int64_t repeats,
            int64_t row) const {
    if (load_) return converted_plane(p, stride, n, step, repeats, row);
    if constexpr (HasRun<Reducer, T>)
      if (stride == element_)
        return reducer_.run(reinterpret_cast<const T*>(p), n, step / element_, repeats, row);
    Acc acc = reduce_strided<T, Acc>(reducer_, p, stride, n, row);
    for (int64_t i = 1; i < repeats; ++i)
      acc = join(acc, reduce_strided<T, Acc>(reducer_, p + i * step, stride, n, row));
    return acc;
  }
  void load(T* to, const char* from, int64_t stride, int64_t n) const {
    load_({reinterpret_cast<char*>(to), const_cast<char*>(from)}, {sizeof(T), stride}, n);
  }
  Acc converted_plane(const char* p, int64_t stride, int64_t n, int64_t step, int64_t repeats,
                      int64_t row) const {
    constexpr int64_t kConverted = 1024;
    T block[kConverted];
    Acc acc = reducer_.identity();
    for (int64_t r = 0; r < repeats; ++r)
      for (int64_t i = 0; i < n; i += kConverted) {
        const int64_t count = std::min(kConverted, n - i);
        load(block, p + r * step + i * stride, stride, count);
        if constexpr (HasRun<Reducer, T>)
          acc = join(acc, reducer_.run(block, count, 0, 1, row));
        else
          acc = join(acc, reduce_run<T, Acc>(reducer_, block, count, row));
      }
    return acc;
  }

  void short_rows(int64_t begin, int64_t end) const {
    const int64_t length = layout_.inner.count, stride = layout_.inner.run_stride();
    for (int64_t row = begin; row < end; ++row) {
      const char* p = data_ + layout_.rows.offset(row);
      if (load_) {
        results_[row] = reducer_.finish(converted_plane(p, stride, length, 0, 1, row), row);
        continue;
      }
      Acc acc = reducer_.identity();
      for (int64_t i = 0; i < length; ++i, p += stride)
        acc = reducer_.step(acc, reinterpret_cast<const T*>(p), row);
      results_[row] = reducer_.finish(acc, row);
    }
  }

  void long_row(int64_t row) const {
    const int64_t length = layout_.inner.count, chunks = (length + kChunk - 1) / kChunk;
    const Scratch<Acc> partial(chunks);
    parallel_chunks(chunks, [&](int64_t c) {
      partial[c] = part(row, c * kChunk, std::min(length, (c + 1) * kChunk));
    });
    const auto leaf = [&](int64_t i, int64_t) { return partial[i]; };
    results_[row] = reducer_.finish(
        pairwise<Acc>(0, chunks, 1, leaf, [&](Acc a, Acc b) { return join(a, b); }), row);
  }

  // acc[c] = the elements [begin, end) of rows first + c.
  void column_part(const char* start, int64_t first, int64_t width, int64_t begin, int64_t end,
                   Acc* __restrict acc) const {
    if (end - begin > kColumnBlock) {
      Acc right[kWidth];
      const int64_t middle = begin + (end - begin) / kColumnBlock / 2 * kColumnBlock;
      if (middle > begin) {
        column_part(start, first, width, begin, middle, acc);
        column_part(start, first, width, middle, end, right);
        for (int64_t c = 0; c < width; ++c) acc[c] = join(acc[c], right[c]);
        return;
      }
    }
    if constexpr (HasColumns<Reducer, T, Acc>)
      if (layout_.inner.shape.size() == 1 && !load_)
        return reducer_.columns(reinterpret_cast<const T*>(start + layout_.inner.offset(begin)),
                                layout_.inner.run_stride() / element_, end - begin, width, first,
                                acc);
    constexpr int64_t lanes = kLanes<Acc>;
    for (int64_t c = 0; c < width; ++c) acc[c] = reducer_.identity();
    T block[kWidth];
    for (int64_t i = begin; i < end; ++i) {
      const char* from = start + layout_.inner.offset(i);
      if (load_) load(block, from, element_, width);
      const T* __restrict p = load_ ? block : reinterpret_cast<const T*>(from);
      int64_t c = 0;
      for (; c + lanes <= width; c += lanes)
        for (int64_t k = 0; k < lanes; ++k)
          acc[c + k] = reducer_.step(acc[c + k], p + c + k, first + c + k);
      for (; c < width; ++c) acc[c] = reducer_.step(acc[c], p + c, first + c);
    }
  }

  void columns() const {
    const int64_t run = layout_.rows.run_length(), length = layout_.inner.count;
    const int64_t blocks = (run + kWidth - 1) / kWidth;
    const int64_t tasks = layout_.rows.count / run * blocks;
    // Few columns, each long: every task reduces a piece of the length.
    const int64_t wanted = tasks < kFewRows ? length * std::min(run, kWidth) / kChunk : 1;
    const int64_t pieces = std::clamp<int64_t>(wanted, 1, 64);
    const int64_t piece = (length + pieces - 1) / pieces;
    const Scratch<Acc, 16> partial(pieces > 1 ? tasks * pieces * kWidth : 1);
    const auto place = [&](int64_t task, auto&& body) {
      const int64_t first = task / blocks * run + task % blocks * kWidth;
      body(data_ + layout_.rows.offset(first), first,
           std::min(kWidth, run - task % blocks * kWidth));
    };
    const auto store = [&](const Acc* acc, int64_t first, int64_t width) {
      for (int64_t c = 0; c < width; ++c) results_[first + c] = reducer_.finish(acc[c], first + c);
    };
    const int64_t work = std::min(run, kWidth) * piece;
    parallel_for(0, tasks * pieces, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)),
                 [&](int64_t from, int64_t to) {
                   for (int64_t t = from; t < to; ++t)
                     place(t / pieces, [&](const char* start, int64_t first, int64_t width) {
                       Acc own[kWidth];
                       Acc* acc = pieces > 1 ? partial.data() + t * kWidth : own;
                       const int64_t begin = std::min(length, t % pieces * piece);
                       column_part(start, first, width, begin, std::min(length, begin + piece),
                                   acc);
                       if (pieces == 1) store(acc, first, width);
                     });
                 });
    if (pieces == 1) return;
    for (int64_t task = 0; task < tasks; ++task)
      place(task, [&](const char*, int64_t first, int64_t width) {
        Acc* acc = partial.data() + task * pieces * kWidth;
        for (int64_t step = 1; step < pieces; step *= 2)
          for (int64_t i = 0; i + step < pieces; i += 2 * step)
            for (int64_t c = 0; c < width; ++c)
              acc[i * kWidth + c] = join(acc[i * kWidth + c], acc[(i + step) * kWidth + c]);
        store(acc, first, width);
      });
  }

  const ReduceLayout& layout_;
  const char* data_;
  const int64_t element_;  // bytes from an element to the next
  const ConvertRun load_;
  const Reducer& reducer_;
  Acc* results_;
};

// results[row] for every row of x, whose elements are read as T.
template <class T, class Acc, class Reducer>
[[gnu::noinline]] void reduce_rows(const oar_tensor& x, Ints axes, const Reducer& reducer,
                                   Acc* results) {
  const ReduceLayout layout(x, axes);
  const auto dtype = static_cast<DType>(x.dtype);
  const ConvertRun load = dtype == dtype_for<T> ? nullptr : conversion(dtype_for<T>, dtype);
  RowReduction<T, Acc, Reducer>(layout, x, load, reducer, results).run();
}

// The same into a tensor of any dtype.
template <class T, class Acc, class Reducer>
void reduce_into(const oar_tensor& out, const oar_tensor& x, Ints axes, const Reducer& reducer) {
  const Result<Acc> results(out);
  reduce_rows<T, Acc>(x, axes, reducer, results.data());
  results.finish();
}

// The axes of a reduction call: argument `index` holds them, or None.
inline SmallVector<int64_t, 6> reduced_axes(const KernelCall& call, int index) {
  std::optional<Ints> axes;
  if (call.has(index)) axes = call.arg(index).as_ints();
  return normalise_axes(axes, call.in(0).ndim);
}

// f(0) + … + f(n - 1), pairwise.
template <class Acc, class F>
Acc sum_of(int64_t n, F f) {
  constexpr int64_t kBlock = 1024, lanes = kLanes<Acc>;
  const auto leaf = [&](int64_t begin, int64_t end) {
    Acc acc[lanes] = {};
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes)
      for (int64_t k = 0; k < lanes; ++k) acc[k] += f(i + k);
    for (int64_t k = 0; i < end; ++i, ++k) acc[k] += f(i);
    for (int64_t width = lanes / 2; width > 0; width /= 2)
      for (int64_t k = 0; k < width; ++k) acc[k] += acc[k + width];
    return acc[0];
  };
  return pairwise<Acc>(0, n, kBlock, leaf, [](Acc a, Acc b) { return a + b; });
}

}  // namespace oar::cpu
