#include "oar/tensor/dtype.h"

#include <atomic>
#include <utility>

#include "oar/base/error.h"

namespace oar {
namespace {

std::atomic<DType> g_default{DType::Float32};

bool is_float8(DType t) { return t == DType::Float8E4M3FN || t == DType::Float8E5M2; }

DType promote_floats(DType a, DType b) {
  if (a == b) return a;
  if (is_float8(a) && is_float8(b)) return DType::Float32;
  if (is_float8(a)) return b;
  if (is_float8(b)) return a;
  if (size_of(a) == size_of(b)) return DType::Float32;  // float16 with bfloat16
  return size_of(a) > size_of(b) ? a : b;
}

DType promote_integers(DType a, DType b) {
  if (a == b) return a;
  const bool mixed_signs = (a == DType::UInt8) != (b == DType::UInt8);
  const DType wide = size_of(a) >= size_of(b) ? a : b;
  if (mixed_signs && size_of(wide) == 1) return DType::Int16;
  return wide;
}

}  // namespace

void detail::refuse_packed_size(DType t) {
  fail(
      ErrorKind::Unsupported,
      "this operation does not take {}, whose elements share bytes.\nhint: Cast it first, for example "
      "x.astype('{}').",
      name_of(t), t == DType::Float4E2M1FN ? "float32" : "int8");
}

void detail::refuse_packed_offset(DType t, int64_t elements) {
  fail(
      ErrorKind::InvalidArgument,
      "a view of {} elements must begin at a whole byte, but element {} does not.\nhint: Begin at an "
      "even element, or cast first, for example x.astype('{}').",
      name_of(t), elements, t == DType::Float4E2M1FN ? "float32" : "int8");
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  for (DType t : {a, b})
    user_check(!is_stored(t), ErrorKind::InvalidType,
               "{} is for storage only and has no common dtype with {}.\nhint: Cast it first.",
               name_of(t), name_of(t == a ? b : a));
  if (is_complex(a) || is_complex(b)) {
    const bool wide = real_type_of(a) == DType::Float64 || real_type_of(b) == DType::Float64;
    return wide ? DType::Complex128 : DType::Complex64;
  }
  if (is_floating(a) && is_floating(b)) return promote_floats(a, b);
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  return promote_integers(a, b);
}

std::optional<DType> dtype_from_name(std::string_view name) {
  if (const size_t dot = name.rfind('.'); dot != std::string_view::npos)
    name.remove_prefix(dot + 1);
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == detail::kDTypes[i].name) return static_cast<DType>(i);
  static constexpr std::pair<std::string_view, DType> kAliases[] = {
      {"bool_", DType::Bool},         {"uint16", DType::BFloat16},
      {"fp16", DType::Float16},       {"half", DType::Float16},
      {"bf16", DType::BFloat16},      {"fp32", DType::Float32},
      {"float", DType::Float64},      {"fp64", DType::Float64},
      {"double", DType::Float64},     {"int", DType::Int64},
      {"long", DType::Int64},         {"cfloat", DType::Complex64},
      {"cdouble", DType::Complex128}, {"complex", DType::Complex128},
      {"fp4", DType::Float4E2M1FN},   {"float4_e2m1", DType::Float4E2M1FN}};
  for (const auto& [alias, type] : kAliases)
    if (name == alias) return type;
  return std::nullopt;
}

DType default_dtype() { return g_default.load(std::memory_order_relaxed); }

void set_default_dtype(DType t) {
  user_check(is_floating(t) && bits_of(t) >= 16, ErrorKind::InvalidType,
             "the default dtype must be float16, bfloat16, float32 or float64, not {}.",
             name_of(t));
  g_default.store(t, std::memory_order_relaxed);
}

}  // namespace oar
