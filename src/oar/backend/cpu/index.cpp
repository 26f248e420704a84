// Reading and writing by index tensors. Several writes to one position happen in the order of the indices,
// whatever the number of threads: a position belongs to one of them.
#include <cstring>

#include "oar/backend/cpu/loops/apply.h"
#include "oar/backend/cpu/loops/places.h"
#include "oar/backend/cpu/simd/drive.h"
#include "oar/tensor/byte_count.h"

namespace oar::cpu {
namespace {

// Row-major byte steps of a contiguous result of that shape.
SmallVector<int64_t, 6> byte_steps(const Shape& shape, int64_t element) {
  auto steps = contiguous_strides(shape);
  for (int64_t& step : steps) step *= element;
  return steps;
}

// The axes that are not indexed, walked in the tensor (first) and in the result (second).
struct Beside {
  Walk<2> before, after;
  Beside(const Places& places, int64_t tensor_element, Ints result_steps) {
    const IndexLayout& layout = places.layout();
    size_t axis = 0;
    const auto push = [&](Walk<2>& walk, int64_t source) {
      const auto s = static_cast<size_t>(source);
      walk.push(places.sizes()[s].word(),
                {places.strides()[s] * tensor_element, result_steps[axis++]});
    };
    for (int64_t source : layout.before) push(before, source);
    axis += places.index_shape().size();
    for (int64_t source : layout.after) push(after, source);
  }
};

// `rows` rows from base + from[i] on, to contiguous memory.
template <class Word>
void take_some(Word* to, const char* base, const int64_t* from, int64_t rows, const Walk<2>& after,
               bool stream) {
  constexpr int64_t size = sizeof(Word);
  const int64_t length = after.count();
  const auto row = [&](int64_t i) { return reinterpret_cast<const Word*>(base + from[i]); };
  if (length == 1) {
    for (int64_t i = 0; i < rows; ++i) to[i] = *row(i);
  } else if (after.is_run({size, size})) {
    copy_rows(
        reinterpret_cast<char*>(to), [&](int64_t i) { return base + from[i]; }, rows, length * size,
        stream);
  } else {
    for (int64_t i = 0; i < rows; ++i)
      after.runs([&](const auto& at, const auto& steps, int64_t n) {
        for (int64_t k = 0; k < n; ++k)
          to[i * length + (at[1] + k * steps[1]) / size] =
              *reinterpret_cast<const Word*>(base + from[i] + at[0] + k * steps[0]);
      });
  }
}

template <class Word>
void take_rows(const oar_tensor& out, const oar_tensor& x, const Beside& beside,
               const Offsets& from) {
  const auto count = static_cast<int64_t>(from.size());
  const int64_t length = beside.after.count();
  const bool stream = out.numel * static_cast<int64_t>(sizeof(Word)) >= kStreamedFrom;
  parallel_for(
      0, beside.before.count() * count, std::max<int64_t>(1, kGrain / std::max<int64_t>(length, 1)),
      [&](int64_t begin, int64_t end) {
        while (begin < end) {
          const int64_t first = begin % count, rows = std::min(end - begin, count - first);
          take_some(static_cast<Word*>(out.data) + begin * length,
                    static_cast<const char*>(x.data) + beside.before.offsets(begin / count)[0],
                    from.data() + first, rows, beside.after, stream);
          begin += rows;
        }
        if (stream) stream_fence();
      });
}

void index_take(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  const Places places(dims_of(x), strides_of(x), call.arg(1));
  Offsets from = places.offsets(places.strides());
  if (out.numel == 0) return;
  for (int64_t& offset : from) offset *= element_size(x);
  const auto steps = byte_steps(places.result_shape(), element_size(x));
  const Beside beside(places, element_size(x), {steps.data(), steps.size()});
  visit_width(x, [&](auto word) { take_rows<decltype(word)>(out, x, beside, from); });
}

// Calls write(row) for every indexed row; rows with the same position stay on one thread, in order.
template <class Write>
void in_order(const Offsets& to, int64_t work, Write&& write) {
  const auto count = static_cast<int64_t>(to.size());
  // Every thread reads all indices, which only pays if rows are long.
  const int64_t parts = count * work <= kGrain || work < 8 ? 1 : num_threads();
  if (parts == 1) {
    for (int64_t row = 0; row < count; ++row) write(row);
    return;
  }
  parallel_chunks(parts, [&](int64_t part) {
    for (int64_t row = 0; row < count; ++row) {
      const uint64_t mixed =
          static_cast<uint64_t>(to[static_cast<size_t>(row)]) * 0x9e3779b97f4a7c15u;
      if (static_cast<int64_t>((mixed >> 32) * static_cast<uint64_t>(parts) >> 32) == part)
        write(row);
    }
  });
}

template <class T>
struct Add {
  static void one(T& to, const T& from) {
    to = wrapping(to, from, [](auto a, auto b) { return a + b; });
  }
  static void run(T* to, const T* from, int64_t n) {
    for (int64_t k = 0; k < n; ++k) one(to[k], from[k]);
  }
};
template <class T>
struct Assign {
  static void one(T& to, const T& from) { to = from; }
  static void run(T* to, const T* from, int64_t n) { copy_packed(to, from, n); }
};

// Combines elements of type T at (tensor + to[row]) and (value + from[row]).
template <class T, class Combine>
void write_rows(void* tensor, const void* value, const Beside& beside, const Offsets& to,
                const Offsets& from) {
  constexpr int64_t kAhead = 8;  // rows that are prefetched before they are written
  const int64_t outer = beside.before.count(), rows = static_cast<int64_t>(to.size());
  const int64_t length = beside.after.count();
  const int64_t prefetched = std::min<int64_t>(length * static_cast<int64_t>(sizeof(T)), 256);
  const bool packed = beside.after.is_run({sizeof(T), sizeof(T)});
  const bool one_value = beside.after.is_run({sizeof(T), 0});
  const auto write = [&](const std::array<int64_t, 2>& base, int64_t row) {
    char* at_tensor = static_cast<char*>(tensor) + base[0] + to[static_cast<size_t>(row)];
    const char* at_value =
        static_cast<const char*>(value) + base[1] + from[static_cast<size_t>(row)];
    if (row + kAhead < rows) {
      const char* next =
          static_cast<const char*>(tensor) + base[0] + to[static_cast<size_t>(row + kAhead)];
      for (int64_t k = 0; k < prefetched; k += 64) __builtin_prefetch(next + k, 1);
    }
    auto* a = reinterpret_cast<T*>(at_tensor);
    const auto* b = reinterpret_cast<const T*>(at_value);
    if (length == 1) return Combine::one(*a, *b);
    if (packed) return Combine::run(a, b, length);
    if (one_value) {
      const T given = *b;
      for (int64_t k = 0; k < length; ++k) Combine::one(a[k], given);
      return;
    }
    beside.after.runs([&](const auto& at, const auto& steps, int64_t n) {
      for (int64_t k = 0; k < n; ++k)
        Combine::one(*reinterpret_cast<T*>(at_tensor + at[0] + k * steps[0]),
                     *reinterpret_cast<const T*>(at_value + at[1] + k * steps[1]));
    });
  };
  const auto write_all = [&](const std::array<int64_t, 2>& base) {
    if (length != 1) {
      for (int64_t row = 0; row < rows; ++row) write(base, row);
      return;
    }
    char* tensor_base = static_cast<char*>(tensor) + base[0];
    const char* value_base = static_cast<const char*>(value) + base[1];
    const int64_t *to_row = to.data(), *from_row = from.data();
    for (int64_t row = 0; row < rows; ++row)
      Combine::one(*reinterpret_cast<T*>(tensor_base + to_row[row]),
                   *reinterpret_cast<const T*>(value_base + from_row[row]));
  };
  if (outer == 1) return in_order(to, length, [&](int64_t row) { write({0, 0}, row); });
  parallel_for(0, outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * length)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p) write_all(beside.before.offsets(p));
               });
}

// The offset of each indexed row in the (broadcast) value.
Offsets value_rows(const LocalTensor& value, const Places& places) {
  const size_t first = places.layout().before.size(), rank = places.index_shape().size();
  Walk<1> walk;
  for (size_t i = first; i < first + rank; ++i)
    walk.push(value.shape[i], {value.strides[i] * element_size(value)});
  Offsets rows;
  rows.reserve(static_cast<size_t>(walk.count()));
  walk.runs([&](const auto& at, const auto& steps, int64_t n) {
    for (int64_t k = 0; k < n; ++k) rows.push_back(at[0] + k * steps[0]);
  });
  return rows;
}

// `tensor` and `given` have one dtype and share no memory.
void put(const oar_tensor& tensor, const Value& indices, const oar_tensor& given, bool accumulate) {
  const Places places(dims_of(tensor), strides_of(tensor), indices);
  const Shape shape = places.result_shape();
  bool fits = given.ndim <= shape.rank();
  for (int i = 0; fits && i < given.ndim; ++i)
    fits = given.shape[i] == 1 ||
           Dim(given.shape[i]) == shape[static_cast<size_t>(i + shape.rank() - given.ndim)];
  user_check(fits, ErrorKind::InvalidArgument,
             "value has shape {} and does not broadcast to the indexed shape {}.",
             to_string(dims_of(given)), shape.str());
  const int64_t size = element_size(tensor);
  Offsets to = places.offsets(places.strides());
  if (shape.numel() == Dim(0)) return;
  for (int64_t& offset : to) offset *= size;
  const LocalTensor value = LocalTensor::broadcast(given, shape);
  SmallVector<int64_t, 6> steps(value.strides, value.strides + value.ndim);
  for (int64_t& step : steps) step *= size;
  const Beside beside(places, size, {steps.data(), steps.size()});
  const Offsets from = value_rows(value, places);
  if (accumulate)
    visit_dtype(dtype_of(tensor), [&](auto tag) {
      using T = typename decltype(tag)::type;
      write_rows<T, Add<T>>(tensor.data, value.data, beside, to, from);
    });
  else
    visit_width(tensor, [&](auto word) {
      using Word = decltype(word);
      write_rows<Word, Assign<Word>>(tensor.data, value.data, beside, to, from);
    });
}

// One row of x[mask] = value for a mask that has all axes of x: a number, or elements in order.
template <class Word>
void put_run(Word* row, int64_t step, const MaskRun& run, const Word* given, int64_t given_step) {
  for (int64_t i = 0; i < run.last - run.first; ++i) {  // no unpredictable branch
    const bool taken = run.flags[i * run.step];
    const Word* choice[] = {row + i * step, given};
    row[i * step] = *choice[taken];
    given += taken ? given_step : 0;
  }
}

// x[mask] = number for a mask that has all axes of x. Parts without a set element are skipped.
template <class Word>
void put_number(const oar_tensor& x, const oar_tensor& mask, const Word* number) {
  constexpr int64_t kPart = 1024, size = sizeof(Word);
  const simd::Function select = simd::select_for(size);
  StridedLoop<2>({&x, &mask}).run([&](const auto& p, const auto& s, int64_t n) {
    const bool packed = select && s[0] == size && s[1] == 1;
    for (int64_t i = 0; packed && i < n; i += kPart) {
      char* part = p[0] + i * size;
      const char* flags = p[1] + i;
      const int64_t count = std::min(kPart, n - i);
      if (!std::memchr(flags, true, static_cast<size_t>(count))) continue;
      select({.out = part,
              .in = {flags, number, part},
              .repeated = 1u << 1,
              .stream = false,
              .count = count,
              .numbers = nullptr});
    }
    for (int64_t i = 0; !packed && i < n; ++i)
      if (p[1][i * s[1]]) *reinterpret_cast<Word*>(p[0] + i * s[0]) = *number;
  });
}

// x[mask] = value without a list of positions. Returns false if the call is of another kind.
bool put_by_mask(const oar_tensor& tensor, const Value& indices, const oar_tensor& value) {
  const TensorList list = indices.as_tensors();
  if (list.size() != 1 || !is_bool(list[0].dtype()) || list[0].rank() == 0) return false;
  const oar_tensor& given_mask = *list[0].impl();
  const bool in_order = value.ndim == 1 && given_mask.ndim == tensor.ndim;
  if (value.ndim > 0 && !in_order) return false;
  std::optional<TemporaryTensor> own_mask;  // the writes must not change the mask
  if (ranges_meet(tensor, given_mask)) {
    own_mask.emplace(dims_of(given_mask), DType::Bool);
    copy_elements(**own_mask, given_mask);
  }
  const oar_tensor& mask = own_mask ? **own_mask : given_mask;
  if (value.numel == 1 && mask.ndim == tensor.ndim) {
    visit_width(tensor, [&](auto word) {
      put_number(tensor, mask, static_cast<const decltype(word)*>(value.data));
    });
    return true;
  }
  const int64_t size = element_size(tensor);
  const int64_t given_step = in_order && value.shape[0] != 1 ? value.strides[0] : 0;
  Walk<1> after;
  for (int i = mask.ndim; i < tensor.ndim; ++i)
    after.push(tensor.shape[i], {tensor.strides[i] * size});
  const SmallVector<int64_t, 6> steps(tensor.strides, tensor.strides + mask.ndim);
  const auto check_count = [&](int64_t count) {
    user_check(!in_order || value.shape[0] == 1 || value.shape[0] == count,
               ErrorKind::InvalidArgument,
               "value has shape {} and does not broadcast to the indexed shape [{}].",
               to_string(dims_of(value)), count);
  };
  visit_width(tensor, [&](auto word) {
    using Word = decltype(word);
    const auto* given = static_cast<const Word*>(value.data);
    each_mask_run(mask, check_count, [&](const MaskRun& run) {
      Word* row = row_of<Word>(tensor, run, steps);
      if (after.count() == 1)
        return put_run(row, steps.back(), run, given + run.number * given_step, given_step);
      for (int64_t i = 0; i < run.last - run.first; ++i) {
        if (!run.flags[i * run.step]) continue;
        auto* start = reinterpret_cast<char*>(row + i * steps.back());
        after.runs([&](const auto& at, const auto& apart, int64_t n) {
          for (int64_t k = 0; k < n; ++k)
            *reinterpret_cast<Word*>(start + at[0] + k * apart[0]) = *given;
        });
      }
    });
  });
  return true;
}

void put_any(const oar_tensor& tensor, const Value& indices, const oar_tensor& value,
             bool accumulate) {
  const DType dtype = dtype_of(tensor);
  // Sums of small floats are kept in float until the end.
  const bool widens = accumulate && is_floating(dtype) && size_of(dtype) < 4;
  const DType working = widens ? DType::Float32 : dtype;
  std::optional<TemporaryTensor> own_value, own_tensor;
  if (dtype_of(value) != working || ranges_meet(tensor, value)) {
    own_value.emplace(dims_of(value), working);
    copy_elements(**own_value, value);
  }
  if (widens) {
    own_tensor.emplace(dims_of(tensor), working);
    copy_elements(**own_tensor, tensor);
  }
  const oar_tensor &to = own_tensor ? **own_tensor : tensor,
                   &from = own_value ? **own_value : value;
  if (accumulate || !put_by_mask(to, indices, from)) put(to, indices, from, accumulate);
  if (own_tensor) copy_elements(tensor, **own_tensor);
}

void index_put(KernelCall& call) {
  copy_elements(call.out(), call.in(0));
  put_any(call.out(), call.arg(1), call.in(2), call.arg(3).as_bool());
}

void index_put_inplace(KernelCall& call) {
  put_any(call.in(0), call.arg(1), call.in(2), call.arg(3).as_bool());
}

void last_writes(KernelCall& call) {
  const Ints shape = call.arg(1).as_ints();
  const SmallVector<int64_t, 6> none(shape.size(), 0);
  const Places places(as_dims(shape), {none.data(), none.size()}, call.arg(0));
  SmallVector<int64_t, 6> steps(shape.size(), 0);
  Count total = 1;
  for (int64_t axis : places.layout().taken) {
    steps[static_cast<size_t>(axis)] = total.value();
    total = total * shape[static_cast<size_t>(axis)];
  }
  const Offsets at = places.offsets({steps.data(), steps.size()});
  NamedPlaces named(total.value(), static_cast<int64_t>(at.size()));
  auto* out = static_cast<bool*>(call.out().data);
  for (size_t i = at.size(); i-- > 0;) out[i] = named.add(at[i]);
}

}  // namespace

KernelList index_kernels() {
  static const oar_kernel list[] = {
      {"index_take", 1, "cpu:generic", nullptr, kernel_entry<index_take>},
      {"index_put", 1, "cpu:generic", nullptr, kernel_entry<index_put>},
      {"index_put_", 1, "cpu:generic", nullptr, kernel_entry<index_put_inplace>},
      {"last_writes", 1, "cpu:generic", nullptr, kernel_entry<last_writes>},
  };
  return list;
}

}  // namespace oar::cpu
