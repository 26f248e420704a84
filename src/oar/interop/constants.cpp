#include "oar/interop/constants.h"

#include <cstring>
#include <numeric>

#include "oar/base/error.h"

namespace oar::interop {
namespace {

// Calls `element` with the address of each element, in C order of these axes.
template <class F>
void for_each(const Tensor& t, const std::vector<int64_t>& order, F&& element) {
  const size_t rank = order.size(), width = size_of(t.dtype());
  std::vector<int64_t> sizes, steps, at(rank, 0);
  int64_t count = 1;
  for (const int64_t axis : order) {
    sizes.push_back(t.dim(axis).value());
    steps.push_back(t.strides()[static_cast<size_t>(axis)] * static_cast<int64_t>(width));
    count *= sizes.back();
  }
  const char* place = static_cast<const char*>(t->data);
  for (int64_t i = 0; i < count; ++i) {
    element(place);
    for (size_t axis = rank; axis-- > 0;) {
      place += steps[axis];
      if (++at[axis] < sizes[axis]) break;
      place -= steps[axis] * sizes[axis];
      at[axis] = 0;
    }
  }
}

std::vector<int64_t> straight(const Tensor& t) {
  std::vector<int64_t> order(static_cast<size_t>(t.rank()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

template <class To, class From>
std::vector<To> read_as(const Tensor& t) {
  std::vector<To> list;
  for_each(t, straight(t), [&](const char* place) {
    From value;
    std::memcpy(&value, place, sizeof(From));
    list.push_back(static_cast<To>(value));
  });
  return list;
}

template <class To>
std::vector<To> read(const Tensor& t) {
  switch (t.dtype()) {
    case DType::Int8:
      return read_as<To, int8_t>(t);
    case DType::UInt8:
    case DType::Bool:
      return read_as<To, uint8_t>(t);
    case DType::Int16:
      return read_as<To, int16_t>(t);
    case DType::Int32:
      return read_as<To, int32_t>(t);
    case DType::Int64:
      return read_as<To, int64_t>(t);
    case DType::Float32:
      return read_as<To, float>(t);
    case DType::Float64:
      return read_as<To, double>(t);
    default:
      fail(ErrorKind::Unsupported, "a constant of dtype {} cannot be read.", name_of(t.dtype()));
  }
}

}  // namespace

std::vector<double> numbers_in(const Tensor& constant) { return read<double>(constant); }

std::vector<int64_t> integers_in(const Tensor& constant) {
  user_check(is_integral(constant.dtype()) || is_bool(constant.dtype()), ErrorKind::Unsupported,
             "a constant of dtype {} stands where integers are expected.",
             name_of(constant.dtype()));
  return read<int64_t>(constant);
}

Tensor permuted_copy(const Tensor& constant, const std::vector<int64_t>& order) {
  Shape shape;
  for (const int64_t axis : order) shape.push_back(constant.dim(axis));
  const Tensor made = Tensor::empty(shape, constant.dtype());
  const size_t width = size_of(constant.dtype());
  char* to = static_cast<char*>(made->data);
  for_each(constant, order, [&](const char* place) {
    std::memcpy(to, place, width);
    to += width;
  });
  return made;
}

Tensor in_c_order(const Tensor& constant) {
  return constant.is_contiguous() ? constant : permuted_copy(constant, straight(constant));
}

}  // namespace oar::interop
