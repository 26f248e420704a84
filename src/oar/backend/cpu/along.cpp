// Reading and writing along one axis by an index tensor of the same rank. Lines along the axis are
// independent, so they are what is cut between threads.
#include "oar/backend/cpu/places.h"

namespace oar::cpu {
namespace {

int64_t checked(int64_t index, int64_t axis, int64_t size) {
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

template <class T>
T& element(const oar_tensor& t, int64_t bytes) {
  return *reinterpret_cast<T*>(static_cast<char*>(t.data) + bytes);
}
int64_t step_of(const oar_tensor& t, int64_t axis) { return t.strides[axis] * element_size(t); }

void take_along(KernelCall& call) {
  const oar_tensor &x = call.in(0), &index = call.in(1), &out = call.out();
  const int64_t axis = normalise_axis(call.arg(2).as_int(), x.ndim), size = x.shape[axis];
  visit<kIntegers>(dtype_of(index), [&](auto tag) {
    using I = typename decltype(tag)::type;
    visit_width(x, [&](auto word) {
      using Word = decltype(word);
      each_line<3>(index, axis, {&out, &index, &x}, [&](const std::array<int64_t, 3>& start) {
        for (int64_t j = 0; j < index.shape[axis]; ++j) {
          const int64_t at =
              checked(element<I>(index, start[1] + j * step_of(index, axis)), axis, size);
          element<Word>(out, start[0] + j * step_of(out, axis)) =
              element<Word>(x, start[2] + at * step_of(x, axis));
        }
      });
    });
  });
}

// One line's elements in the type that sums are carried in.
template <class T>
class Line {
 public:
  using C = compute_t<T>;
  Line(const oar_tensor& t, int64_t start, int64_t axis)
      : tensor_(t),
        start_(start),
        step_(step_of(t, axis)),
        wide_(std::is_same_v<T, C> ? 0 : t.shape[axis]) {
    if constexpr (!std::is_same_v<T, C>)
      for (int64_t i = 0; i < t.shape[axis]; ++i) wide_[i] = static_cast<C>(at(i));
    length_ = t.shape[axis];
  }
  ~Line() {
    if constexpr (!std::is_same_v<T, C>)
      for (int64_t i = 0; i < length_; ++i) at(i) = static_cast<T>(wide_[i]);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  C& operator[](int64_t i) {
    if constexpr (std::is_same_v<T, C>)
      return at(i);
    else
      return wide_[i];
  }

 private:
  T& at(int64_t i) { return element<T>(tensor_, start_ + i * step_); }
  const oar_tensor& tensor_;
  int64_t start_, step_, length_ = 0;
  Scratch<C, 1024> wide_;
};

template <class I, class T, class Combine>
void put_lines(KernelCall& call, int64_t axis, bool include_self, Combine combine) {
  const oar_tensor &index = call.in(1), &value = call.in(2), &out = call.out();
  const int64_t size = out.shape[axis];
  each_line<3>(index, axis, {&out, &index, &value}, [&](const std::array<int64_t, 3>& start) {
    Line<T> line(out, start[0], axis);
    Scratch<bool, 1024> touched(include_self ? 0 : size);
    if (!include_self) std::fill_n(touched.data(), size, false);
    for (int64_t j = 0; j < index.shape[axis]; ++j) {
      const int64_t at =
          checked(element<I>(index, start[1] + j * step_of(index, axis)), axis, size);
      const auto given =
          static_cast<compute_t<T>>(element<T>(value, start[2] + j * step_of(value, axis)));
      const bool fresh = !include_self && !touched[at];
      if (fresh) touched[at] = true;
      line[at] = fresh ? given : static_cast<compute_t<T>>(combine(line[at], given));
    }
  });
}

template <class Types, class Choose>
void put_kind(KernelCall& call, Choose&& choose) {
  const oar_tensor& x = call.in(0);
  const int64_t axis = normalise_axis(call.arg(3).as_int(), x.ndim);
  copy_elements(call.out(), x);
  visit<kIntegers>(call.dtype(1), [&](auto index_tag) {
    using I = typename decltype(index_tag)::type;
    visit<Types::value>(call.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto put = [&](auto combine) {
        put_lines<I, T>(call, axis, call.arg(5).as_bool(), combine);
      };
      choose(put, call.arg(4).as_string());
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
  const oar_tensor &index = call.in(0), &out = call.out();
  const int64_t axis = normalise_axis(call.arg(1).as_int(), index.ndim),
                size = call.arg(2).as_int();
  visit<kIntegers>(dtype_of(index), [&](auto tag) {
    using I = typename decltype(tag)::type;
    each_line<2>(index, axis, {&out, &index}, [&](const std::array<int64_t, 2>& start) {
      std::vector<bool> named(static_cast<size_t>(size), false);
      for (int64_t j = index.shape[axis]; j-- > 0;) {
        const auto at = static_cast<size_t>(
            checked(element<I>(index, start[1] + j * step_of(index, axis)), axis, size));
        element<bool>(out, start[0] + j * step_of(out, axis)) = !named[at];
        named[at] = true;
      }
    });
  });
}

}  // namespace

KernelList along_kernels() {
  static const oar_kernel list[] = {
      {"take_along", 1, "cpu:ref", nullptr, kernel_entry<take_along>},
      {"put_along", 1, "cpu:ref", nullptr, kernel_entry<put_along>},
      {"put_along_extreme", 1, "cpu:ref", nullptr, kernel_entry<put_along_extreme>},
      {"last_writes_along", 1, "cpu:ref", nullptr, kernel_entry<last_writes_along>},
  };
  return list;
}

}  // namespace oar::cpu
