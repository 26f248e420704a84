// Copies of tensors that are packed below a byte. Such tensors are contiguous; work is cut between bytes, so
// that no two threads write one.
#include <array>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/loops/loops.h"

namespace oar::cpu {
namespace {

constexpr int64_t kPerByte = 2;

template <class T>
std::array<T, 16> values_of(DType dtype) {
  std::array<T, 16> values;
  for (size_t bits = 0; bits < values.size(); ++bits)
    values[bits] = convert_element<T>(packed_value(static_cast<uint8_t>(bits), dtype));
  return values;
}

// `to` is contiguous.
void unpack(const oar_tensor& to, const oar_tensor& from) {
  visit_dtype(dtype_of(to), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto values = values_of<T>(dtype_of(from));
    auto* o = static_cast<T*>(to.data);
    const auto* bytes = static_cast<const uint8_t*>(from.data);
    parallel_for(0, to.numel / kPerByte, kGrain / kPerByte, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        o[kPerByte * i] = values[bytes[i] & 15];
        o[kPerByte * i + 1] = values[bytes[i] >> 4];
      }
    });
    if (to.numel % kPerByte) o[to.numel - 1] = values[bytes[to.numel / kPerByte] & 15];
  });
}

// `from` is contiguous.
void pack(const oar_tensor& to, const oar_tensor& from) {
  visit_dtype(dtype_of(from), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DType dtype = dtype_of(to);
    const auto* x = static_cast<const T*>(from.data);
    const auto bits = [&](int64_t i) {
      if (i >= to.numel) return uint8_t{0};
      if constexpr (std::is_integral_v<T>)  // 64-bit integers need not be doubles
        if (dtype != DType::Float4E2M1FN) return static_cast<uint8_t>(x[i] & 15);
      return packed_bits(convert_element<double>(x[i]), dtype);
    };
    auto* bytes = static_cast<uint8_t*>(to.data);
    parallel_for(0, byte_count(to.numel, dtype), kGrain / 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        bytes[i] = static_cast<uint8_t>(bits(kPerByte * i) | bits(kPerByte * i + 1) << 4);
    });
  });
}

}  // namespace

void copy_quantised(const oar_tensor& to, const oar_tensor& from) {
  if (to.numel == 0) return;
  const bool packs = is_packed(dtype_of(to)), unpacks = is_packed(dtype_of(from));
  if (packs && unpacks && to.dtype == from.dtype) {
    std::memcpy(to.data, from.data, static_cast<size_t>(byte_count(to.numel, dtype_of(to))));
    // The other element of the last byte is not copied.
    if (to.numel % kPerByte) static_cast<uint8_t*>(to.data)[to.numel / kPerByte] &= 15;
    return;
  }
  if (unpacks && !packs && is_contiguous(to)) return unpack(to, from);
  if (packs && !unpacks && is_contiguous(from)) return pack(to, from);
  // Through a contiguous tensor that holds the values of both.
  const TemporaryTensor between(dims_of(to), unpacks ? DType::Float32 : dtype_of(from));
  copy_elements(*between, from);
  copy_elements(to, *between);
}

}  // namespace oar::cpu
