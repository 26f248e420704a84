#include "oar/tensor/byte_count.h"

#include <algorithm>

#include "oar/base/error.h"

namespace oar {
namespace {

[[noreturn, gnu::cold]] void refuse(Dims shape, DType dtype) {
  double bytes = static_cast<double>(bits_of(dtype)) / 8;
  for (Dim d : shape) bytes *= std::max(static_cast<double>(d.value()), 1.0);
  fail(ErrorKind::InvalidArgument,
       "a tensor of shape {} and dtype {} takes about {:.2g} bytes, which is more than can be "
       "addressed.\nhint: Use smaller sizes.",
       to_string(shape), name_of(dtype), bytes);
}

}  // namespace

void Count::throw_overflow(int64_t a, char op, int64_t b) {
  fail(ErrorKind::InvalidArgument,
       "{} {} {} elements or bytes overflow 64 bits.\nhint: Use smaller sizes.", a, op, b);
}

Count bytes_of(Dims shape, DType dtype) {
  // Elements that share a byte are counted first.
  int64_t bytes = is_packed(dtype) ? 1 : bits_of(dtype) / 8;
  bool empty = false;
  for (Dim d : shape) {
    const int64_t size = d.value();
    user_check(size >= 0, ErrorKind::InvalidArgument, "the shape {} has a negative size.",
               to_string(shape));
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes)) [[unlikely]]
      refuse(shape, dtype);
  }
  return empty ? 0 : is_packed(dtype) ? byte_count(bytes, dtype) : bytes;
}

}  // namespace oar
