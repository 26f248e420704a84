// Reading and writing along one axis by an index tensor of the same rank. Lines along the axis are
// independent, so they are what is cut between threads.
#include "oar/backend/cpu/loops/places.h"

namespace oar::cpu {
namespace {

inline int64_t checked(int64_t index, int64_t axis, int64_t size) {
  const int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) [[unlikely]]
    fail_out_of_range(index, axis, size);
  return at;
}

// The lines that `index` covers: body(byte offsets of the line's start in each operand).
template <size_t N, class Body>
void each_line(const oar_tensor& index, int64_t axis,
               const std::array<const oar_tensor*, N>& operands, Body&& body) {
  Walk<N> lines;
  for (int i = 0; i < index.ndim; ++i) {
    if (i == axis) continue;
    std::array<int64_t, N> steps;
    for (size_t k = 0; k < N; ++k) steps[k] = operands[k]->strides[i] * element_size(*operands[k]);
    lines.push(index.shape[i], steps);
  }
  if (index.numel == 0) return;
  parallel_for(0, lines.count(), std::max<int64_t>(1, kGrain / index.shape[axis]),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line) body(lines.offsets(line));
               });
}

// body(index as int64).
template <class Body>
void with_index(const oar_tensor& index, Body&& body) {
  if (dtype_of(index) == DType::Int64) return body(index);
  const TemporaryTensor wide(dims_of(index), DType::Int64);
  copy_elements(*wide, index);
  body(*wide);
}

template <class T>
T& element(const oar_tensor& t, int64_t bytes) {
  return *reinterpret_cast<T*>(static_cast<char*>(t.data) + bytes);
}
int64_t step_of(const oar_tensor& t, int64_t axis) { return t.strides[axis] * element_size(t); }

// to[i] = from[i * step + index[i] * axis_step]; the steps of packed lines are known to the compiler.
template <class Word>
struct Take {
  using I = int64_t;
  int64_t axis, size, axis_step;

  void operator()(const std::array<char*, 3>& p, const std::array<int64_t, 3>& s, int64_t n) const {
    constexpr std::integral_constant<int64_t, sizeof(Word)> word{};
    constexpr std::integral_constant<int64_t, sizeof(I)> given{};
    constexpr std::integral_constant<int64_t, 0> none{};
    const bool packed = s[0] == word && s[1] == given;
    if (packed && s[2] == none && axis_step == word)
      run(p, n, word, given, none, word);
    else if (packed && s[2] == word)
      run(p, n, word, given, word, axis_step);
    else
      run(p, n, s[0], s[1], s[2], axis_step);
  }

 private:
  static constexpr int64_t kBlock = 128;
  // The positions of indices. All are read before an error is raised: a branch for each of
  // them would cost more than reading the element.
  void resolve(const char* given, auto step, int64_t n, int64_t* places) const {
    const auto index = [&](int64_t i) {
      return static_cast<int64_t>(*reinterpret_cast<const I*>(given + i * step));
    };
    uint64_t outside = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = index(i) + (index(i) < 0 ? size : 0);
      places[i] = at;
      const uint64_t after = static_cast<uint64_t>(size) - 1 - static_cast<uint64_t>(at);
      outside |= static_cast<uint64_t>(at) | after;  // the sign bits
    }
    if (static_cast<int64_t>(outside) < 0) [[unlikely]]
      for (int64_t i = 0; i < n; ++i) checked(index(i), axis, size);
  }
  void run(const std::array<char*, 3>& p, int64_t n, auto to, auto index, auto from,
           auto along) const {
    char* const target = p[0];  // p itself would be read again after every write
    const char* const source = p[2];
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t end = std::min(n, begin + kBlock);
      int64_t places[kBlock];
      resolve(p[1] + begin * index, index, end - begin, places);
      for (int64_t i = begin; i < end; ++i)
        *reinterpret_cast<Word*>(target + i * to) =
            *reinterpret_cast<const Word*>(source + i * from + places[i - begin] * along);
    }
  }
};

void take_along(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  const int64_t axis = normalise_axis(call.arg(2).as_int(), x.ndim), size = x.shape[axis];
  SmallVector<int64_t, 6> beside(x.strides, x.strides + x.ndim);
  beside[static_cast<size_t>(axis)] = 0;
  const LocalTensor lines(x.data, dtype_of(x), dims_of(out), {beside.data(), beside.size()});
  with_index(call.in(1), [&](const oar_tensor& index) {
    visit_width(x, [&](auto word) {
      StridedLoop<3>({&out, &index, &lines})
          .run(Take<decltype(word)>{axis, size, step_of(x, axis)});
    });
  });
}

template <class T, class Combine>
void put_packed(const int64_t* index, const T* value, T* to, int64_t n, int64_t axis, int64_t size,
                Combine combine) {
  for (int64_t j = 0; j < n; ++j) {
    const int64_t at = checked(index[j], axis, size);
    to[at] = static_cast<T>(combine(to[at], value[j]));
  }
}

template <class T, class Combine>
void put_lines(const oar_tensor& index, const oar_tensor& value, const oar_tensor& out,
               int64_t axis, bool include_self, Combine combine) {
  const int64_t size = out.shape[axis], count = index.shape[axis];
  const int64_t index_step = step_of(index, axis), value_step = step_of(value, axis),
                out_step = step_of(out, axis);
  const bool packed = include_self && index_step == sizeof(int64_t) && value_step == sizeof(T) &&
                      out_step == sizeof(T);
  each_line<3>(index, axis, {&out, &index, &value}, [&](const std::array<int64_t, 3>& start) {
    const auto* at_index = static_cast<const char*>(index.data) + start[1];
    const auto* at_value = static_cast<const char*>(value.data) + start[2];
    if (packed)
      return put_packed(reinterpret_cast<const int64_t*>(at_index),
                        reinterpret_cast<const T*>(at_value), &element<T>(out, start[0]), count,
                        axis, size, combine);
    Scratch<bool, 1024> touched(include_self ? 0 : size);
    if (!include_self) std::fill_n(touched.data(), size, false);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at =
          checked(*reinterpret_cast<const int64_t*>(at_index + j * index_step), axis, size);
      const T given = *reinterpret_cast<const T*>(at_value + j * value_step);
      const bool fresh = !include_self && !touched[at];
      if (fresh) touched[at] = true;
      T& to = element<T>(out, start[0] + at * out_step);
      to = fresh ? given : static_cast<T>(combine(to, given));
    }
  });
}

// Sums are accumulated in the types of visit_wide; a tensor of another dtype is copied for the call.
template <class Types, class Choose>
void put_kind(KernelCall& call, Choose&& choose) {
  const oar_tensor &x = call.in(0), &value = call.in(2);
  const int64_t axis = normalise_axis(call.arg(3).as_int(), x.ndim);
  const std::string_view reduce = call.arg(4).as_string();
  const bool include_self = call.arg(5).as_bool();
  with_index(call.in(1), [&](const oar_tensor& index) {
    visit_wide<Types::value>(call.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto put_into = [&](const oar_tensor& out, const oar_tensor& from) {
        copy_elements(out, x);
        choose([&](auto combine) { put_lines<T>(index, from, out, axis, include_self, combine); },
               reduce);
      };
      if (call.dtype() == dtype_for<T>) return put_into(call.out(), value);
      const TemporaryTensor wide(dims_of(x), dtype_for<T>),
          wide_value(dims_of(value), dtype_for<T>);
      copy_elements(*wide_value, value);
      put_into(*wide, *wide_value);
      copy_elements(call.out(), *wide);
    });
  });
}

void put_along(KernelCall& call) {
  put_kind<std::integral_constant<unsigned, kAllTypes>>(
      call, [](const auto& put, std::string_view reduce) {
        if (reduce == "assign")
          put([](auto, auto b) { return b; });
        else if (reduce == "add")
          put([](auto a, auto b) { return a + b; });
        else
          put([](auto a, auto b) { return a * b; });
      });
}

void put_along_extreme(KernelCall& call) {
  put_kind<std::integral_constant<unsigned, kIntegers | kFloats>>(
      call, [](const auto& put, std::string_view reduce) {
        // NaN wins, as in NumPy.
        if (reduce == "amin")
          put([](auto a, auto b) { return a < b || a != a ? a : b; });
        else
          put([](auto a, auto b) { return a > b || a != a ? a : b; });
      });
}

void last_writes_along(KernelCall& call) {
  const oar_tensor& out = call.out();
  const int64_t axis = normalise_axis(call.arg(1).as_int(), out.ndim), size = call.arg(2).as_int();
  with_index(call.in(0), [&](const oar_tensor& index) {
    using I = int64_t;
    each_line<2>(index, axis, {&out, &index}, [&](const std::array<int64_t, 2>& start) {
      NamedPlaces named(size, index.shape[axis]);
      for (int64_t j = index.shape[axis]; j-- > 0;) {
        const int64_t at =
            checked(element<I>(index, start[1] + j * step_of(index, axis)), axis, size);
        element<bool>(out, start[0] + j * step_of(out, axis)) = named.add(at);
      }
    });
  });
}

}  // namespace

KernelList along_axis_kernels() {
  static const oar_kernel list[] = {
      {"take_along", 1, "cpu:generic", nullptr, kernel_entry<take_along>},
      {"put_along", 1, "cpu:generic", nullptr, kernel_entry<put_along>},
      {"put_along_extreme", 1, "cpu:generic", nullptr, kernel_entry<put_along_extreme>},
      {"last_writes_along", 1, "cpu:generic", nullptr, kernel_entry<last_writes_along>},
  };
  return list;
}

}  // namespace oar::cpu
