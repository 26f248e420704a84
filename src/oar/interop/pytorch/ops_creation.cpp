// New tensors, dtypes.
#include <cmath>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

using List = std::vector<int64_t>;

// The programs of hostile files may ask for more memory than there is.
constexpr double kMostElements = 2147483648.0;

DimArgs sized(const Call& c, const List& size) {
  double count = 1;
  for (const int64_t one : size) {
    if (one < 0) c.refuse(format("it makes a tensor of the size {}", one));
    count *= static_cast<double>(one);
  }
  if (count > kMostElements) c.refuse("it makes a tensor that is too large");
  return size;
}
DType type_of(const Call& c, DType otherwise = DType::Float32) {
  return c.dtype("dtype").value_or(otherwise);
}
Scalar scalar_in(const Call& c, const char* name, DType dtype) {
  return is_integral(dtype) || is_bool(dtype) ? Scalar(static_cast<int64_t>(c.number(name)))
                                              : Scalar(c.number(name));
}

Value zeros_of(const Call& c) {
  const List size = c.list("size");
  return zeros(sized(c, size), type_of(c));
}
Value ones_of(const Call& c) {
  const List size = c.list("size");
  return ones(sized(c, size), type_of(c));
}
DType type_of_number(const Call& c, const char* name) {
  const Value& v = c.value(name);
  if (v.is_tensor()) return v.tensor.dtype();
  return v.kind == Value::Float ? DType::Float32
         : v.kind == Value::Int ? DType::Int64
                                : DType::Bool;
}
Value filled(const Call& c) {
  const List size = c.list("size");
  const DType dtype = type_of(c, type_of_number(c, "fill_value"));
  return full(sized(c, size), scalar_in(c, "fill_value", dtype), dtype);
}
Value zeros_like_it(const Call& c) {
  const Tensor& x = c.tensor("self");
  return zeros_like(x, type_of(c, x.dtype()));
}
Value ones_like_it(const Call& c) {
  const Tensor& x = c.tensor("self");
  return ones_like(x, type_of(c, x.dtype()));
}
Value filled_like(const Call& c) {
  const Tensor& x = c.tensor("self");
  const DType dtype = type_of(c, x.dtype());
  return full_like(x, scalar_in(c, "fill_value", dtype), dtype);
}
Value new_zeros(const Call& c) {
  const List size = c.list("size");
  return zeros(sized(c, size), type_of(c, c.tensor("self").dtype()));
}
Value new_ones(const Call& c) {
  const List size = c.list("size");
  return ones(sized(c, size), type_of(c, c.tensor("self").dtype()));
}
Value new_filled(const Call& c) {
  const List size = c.list("size");
  const DType dtype = type_of(c, c.tensor("self").dtype());
  return full(sized(c, size), scalar_in(c, "fill_value", dtype), dtype);
}
Value of_number(const Call& c) {
  const DType dtype = type_of(c, c.takes("s") ? DType::Float32 : type_of_number(c, "data"));
  const char* name = c.takes("s") ? "s" : "data";
  return full({}, scalar_in(c, name, dtype), dtype);
}

Value counted(const Call& c) {
  const Value zero = Value::of(int64_t{0});
  const Value& start = c.takes("start") ? c.value("start") : zero;
  const bool real = start.kind == Value::Float || c.value("end").kind == Value::Float ||
                    (c.takes("step") && c.value("step").kind == Value::Float);
  const DType dtype = type_of(c, real ? DType::Float32 : DType::Int64);
  const double from = c.takes("start") ? c.number("start") : 0, to = c.number("end"),
               step = c.takes("step") ? c.number("step") : 1;
  if (step == 0 || !(std::fabs((to - from) / step) < kMostElements))
    c.refuse("it counts in steps that do not end");
  if (!real)
    return range(Scalar(static_cast<int64_t>(from)), Scalar(static_cast<int64_t>(to)),
                 Scalar(static_cast<int64_t>(step)), dtype);
  return range(Scalar(from), Scalar(to), Scalar(step), dtype);
}
Value evenly_spaced(const Call& c) {
  const double from = c.number("start"), to = c.number("end");
  const int64_t count = c.integer("steps");
  if (count < 0 || count > (1 << 24)) c.refuse(format("it has {} steps", count));
  const bool powers = c.takes("base");
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const double at =
        count == 1 ? from
                   : from + (to - from) * static_cast<double>(i) / static_cast<double>(count - 1);
    values.push_back(powers ? std::pow(c.number("base"), at) : at);
  }
  return Tensor::from_vector(values, Shape{count}, type_of(c));
}
Value identity(const Call& c) {
  const int64_t rows = c.integer("n"), columns = c.takes("m") ? c.integer("m") : rows;
  const List size{rows, columns};
  return cast(triu(tril(ones(sized(c, size), DType::Float32))), type_of(c));
}
Value random_even(const Call& c) {
  const List size = c.list("size");
  return rand(sized(c, size), type_of(c));
}
Value random_normal(const Call& c) {
  const List size = c.list("size");
  return randn(sized(c, size), type_of(c));
}
Value random_even_like(const Call& c) {
  const Tensor& x = c.tensor("self");
  return rand(DimArgs(x.dims()), type_of(c, x.dtype()));
}
Value random_normal_like(const Call& c) {
  const Tensor& x = c.tensor("self");
  return randn(DimArgs(x.dims()), type_of(c, x.dtype()));
}

// ---- dtypes ------------------------------------------------------------------------------------

Value converted(const Call& c) {
  const Tensor& x = c.tensor("self");
  if (!c.has("dtype")) return x;
  const DType dtype = *c.dtype("dtype");
  return dtype == x.dtype() ? x : cast(x, dtype);
}
Value converted_like(const Call& c) {
  const Tensor &x = c.tensor("self"), &other = c.tensor("other");
  return other.dtype() == x.dtype() ? x : cast(x, other.dtype());
}
template <DType dtype>
Value converted_to(const Call& c) {
  const Tensor& x = c.tensor("self");
  return x.dtype() == dtype ? x : cast(x, dtype);
}
// In eight bits and back, as for training with them.
Value faked_quantised(const Call& c) {
  const double scale = c.number("scale"), zero = c.number("zero_point");
  const Tensor steps = clip(round(c.tensor("self") * (1 / scale) + zero),
                            Scalar(c.number("quant_min")), Scalar(c.number("quant_max")));
  return (steps - zero) * scale;
}

constexpr Converter kConverters[] = {
    {"zeros(size, dtype=None, layout=None, device=None, pin_memory=None)", zeros_of},
    {"empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)",
     zeros_of},
    {"empty_permuted(size, physical_layout, dtype=None, layout=None, device=None, pin_memory=None)",
     zeros_of},
    {"empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None)",
     zeros_of},
    {"ones(size, dtype=None, layout=None, device=None, pin_memory=None)", ones_of},
    {"full(size, fill_value, dtype=None, layout=None, device=None, pin_memory=None)", filled},
    {"zeros_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)",
     zeros_like_it},
    {"empty_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)",
     zeros_like_it},
    {"ones_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)",
     ones_like_it},
    {"full_like(self, fill_value, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)",
     filled_like},
    {"new_zeros(self, size, dtype=None, layout=None, device=None, pin_memory=None)", new_zeros},
    {"new_empty(self, size, dtype=None, layout=None, device=None, pin_memory=None)", new_zeros},
    {"new_empty_strided(self, size, stride, dtype=None, layout=None, device=None, pin_memory=None)",
     new_zeros},
    {"new_ones(self, size, dtype=None, layout=None, device=None, pin_memory=None)", new_ones},
    {"new_full(self, size, fill_value, dtype=None, layout=None, device=None, pin_memory=None)",
     new_filled},
    {"scalar_tensor(s, dtype=None, layout=None, device=None, pin_memory=None)", of_number},
    {"arange(end, *, dtype=None, layout=None, device=None, pin_memory=None)", counted},
    {"arange(start, end:int, *, dtype=None, layout=None, device=None, pin_memory=None)", counted},
    {"arange(start, end:int, step:int=1, dtype=None, layout=None, device=None, pin_memory=None)",
     counted},
    {"linspace(start, end, steps, dtype=None, layout=None, device=None, pin_memory=None)",
     evenly_spaced},
    {"logspace(start, end, steps, base=10.0, dtype=None, layout=None, device=None, pin_memory=None)",
     evenly_spaced},
    {"eye(n, *, dtype=None, layout=None, device=None, pin_memory=None)", identity},
    {"eye(n, m:int, *, dtype=None, layout=None, device=None, pin_memory=None)", identity},
    {"rand(size, dtype=None, layout=None, device=None, pin_memory=None)", random_even,
     Converter::Random},
    {"randn(size, dtype=None, layout=None, device=None, pin_memory=None)", random_normal,
     Converter::Random},
    {"rand_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)",
     random_even_like, Converter::Random},
    {"randn_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)",
     random_normal_like, Converter::Random},
    {"to(self, other:Tensor, non_blocking=False, copy=False, memory_format=None)", converted_like},
    {"to(self, dtype:int, non_blocking:bool=False, copy:bool=False, memory_format=None)",
     converted},
    {"to(self, device:str, dtype=None, non_blocking=False, copy=False, memory_format=None)",
     converted},
    {"to(self, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, copy=False, memory_format=None)",
     converted},
    {"to(self, device, dtype:int, non_blocking=False, copy=False, memory_format=None)", converted},
    {"_to_copy(self, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None)",
     converted},
    {"type_as(self, other)", converted_like},
    {"_cast_Float(self, non_blocking=False)", converted_to<DType::Float32>},
    {"float(self:Tensor)", converted_to<DType::Float32>},
    {"double(self:Tensor)", converted_to<DType::Float64>},
    {"half(self:Tensor)", converted_to<DType::Float16>},
    {"bfloat16(self:Tensor)", converted_to<DType::BFloat16>},
    {"long(self:Tensor)", converted_to<DType::Int64>},
    {"int(self:Tensor)", converted_to<DType::Int32>},
    {"bool(self:Tensor)", converted_to<DType::Bool>},
    {"fake_quantize_per_tensor_affine(self, scale, zero_point, quant_min, quant_max)",
     faked_quantised},
};

}  // namespace

std::span<const Converter> creation_converters() { return kConverters; }

}  // namespace oar::pytorch
