// What TorchScript has and torch.export does not: numbers by the names of ops, questions about tensors, errors.
#include <cmath>

#include "oar/base/error.h"
#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

constexpr auto kPlain = Converter::Plain;

template <bool value>
Value always(const Call&) {
  return Value::flag(value);
}
Value nothing_done(const Call&) { return {}; }
Value given_back(const Call& c) { return c.value("self"); }
Value dtype_in(const Call& c) { return Value::of(number_of(c.tensor("self").dtype())); }
Value on_cpu(const Call&) { return Value::of(std::string("cpu")); }
Value default_dtype(const Call&) { return Value::of(number_of(DType::Float32)); }
Value complex_numbers(const Call& c) { return Value::flag(is_complex(c.tensor("self").dtype())); }
Value width_of(const Call& c) {
  return Value::of(static_cast<int64_t>(size_of(c.tensor("self").dtype())));
}
Value same_sizes(const Call& c) {
  return Value::flag(same(c.tensor("self").shape(), c.tensor("other").shape()));
}
Value raised_error(const Call& c) {
  fail(ErrorKind::InvalidArgument, "the code of the model raises an error: {} [{}]", c.text("msg"),
       c.name);
}

// ---- numbers -----------------------------------------------------------------------------------

Value rounded(const Call& c) { return Value::of(std::nearbyint(c.number("a"))); }
Value as_real(const Call& c) { return Value::of(c.number("a")); }
bool is_whole(const Call& c, const char* name) { return c.value(name).kind != Value::Float; }
Value quotient_of_numbers(const Call& c) {
  if (c.number("b") == 0) c.refuse("it divides by zero");
  return Value::of(c.number("a") / c.number("b"));
}
Value bits(const Call& c, int64_t (*join)(int64_t, int64_t)) {
  if (!is_whole(c, "a") || !is_whole(c, "b")) c.refuse("its numbers are no integers");
  const int64_t made = join(c.integer("a"), c.integer("b"));
  const bool flags = c.value("a").kind == Value::Bool && c.value("b").kind == Value::Bool;
  return flags ? Value::flag(made != 0) : Value::of(made);
}
Value bits_of_both(const Call& c) {
  return bits(c, [](int64_t a, int64_t b) { return a & b; });
}
Value bits_of_either(const Call& c) {
  return bits(c, [](int64_t a, int64_t b) { return a | b; });
}
Value bits_of_one(const Call& c) {
  return bits(c, [](int64_t a, int64_t b) { return a ^ b; });
}
Value shifted(const Call& c, bool left) {
  const int64_t by = c.integer("b");
  if (by < 0 || by > 62) c.refuse(format("it shifts by {}", by));
  const auto a = static_cast<uint64_t>(c.integer("a"));
  return Value::of(left ? static_cast<int64_t>(a << by) : c.integer("a") >> by);
}
Value shifted_up(const Call& c) { return shifted(c, true); }
Value shifted_down(const Call& c) { return shifted(c, false); }
Value sine(const Call& c) { return Value::of(std::sin(c.number("a"))); }
Value cosine(const Call& c) { return Value::of(std::cos(c.number("a"))); }
Value hyperbolic(const Call& c) { return Value::of(std::tanh(c.number("a"))); }
Value is_infinite(const Call& c) { return Value::flag(std::isinf(c.number("a"))); }
Value is_no_number(const Call& c) { return Value::flag(std::isnan(c.number("a"))); }
Value of_base(const Call& c) {
  return Value::of(std::log(c.number("a")) / std::log(c.number("b")));
}
Value log_of_two(const Call& c) { return Value::of(std::log2(c.number("a"))); }
Value log_of_ten(const Call& c) { return Value::of(std::log10(c.number("a"))); }

// ---- new tensors -------------------------------------------------------------------------------

// The numbers of nested lists, and their sizes.
void collect_numbers(const Call& c, const Value& value, size_t axis, std::vector<int64_t>& shape,
                     std::vector<double>& numbers, DType& dtype) {
  if (!value.is_list()) {
    const bool tensor = value.is_tensor() && value.known && value.tensor.numel() == Dim(1);
    if (!value.is_number() && !tensor) c.refuse("it makes a tensor of numbers that are not known");
    const DType own = tensor                       ? value.tensor.dtype()
                      : value.kind == Value::Float ? DType::Float32
                      : value.kind == Value::Int   ? DType::Int64
                                                   : DType::Bool;
    dtype = numbers.empty() ? own : promote(dtype, own);
    numbers.push_back(tensor ? value.tensor.item_double() : value.as_number());
    return;
  }
  const auto size = static_cast<int64_t>(value.box->items.size());
  if (axis > 16) c.refuse("its lists are nested too deeply");
  if (axis == shape.size() && numbers.empty()) shape.push_back(size);
  if (axis >= shape.size() || shape[axis] != size) c.refuse("its lists have different lengths");
  for (const Value& item : value.box->items)
    collect_numbers(c, item, axis + 1, shape, numbers, dtype);
}
Value tensor_of_data(const Call& c) {
  const Value& data = c.value("data");
  if (data.is_tensor()) {
    const DType dtype = c.dtype("dtype").value_or(data.tensor.dtype());
    return dtype == data.tensor.dtype() ? assign(data.tensor) : cast(data.tensor, dtype);
  }
  std::vector<int64_t> shape;
  std::vector<double> numbers;
  DType dtype = DType::Float32;
  collect_numbers(c, data, 0, shape, numbers, dtype);
  Shape sizes;
  for (const int64_t size : shape) sizes.push_back(size);
  return Tensor::from_vector(numbers, sizes, c.dtype("dtype").value_or(dtype));
}
Value tensor_of_number(const Call& c) {
  const Value& a = c.value("a");
  const DType dtype = a.kind == Value::Float ? DType::Float32
                      : a.kind == Value::Int ? DType::Int64
                                             : DType::Bool;
  if (a.kind == Value::Float) return full({}, Scalar(a.number), dtype);
  return full({}, Scalar(a.integer), dtype);
}
Value sum_to(const Call& c) {
  const Tensor& x = c.tensor("self");
  const std::vector<int64_t> size = c.list("size");
  std::vector<int64_t> axes;
  const int64_t extra = x.rank() - static_cast<int64_t>(size.size());
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i < extra || !(x.dim(i) == Dim(size[static_cast<size_t>(i - extra)]))) axes.push_back(i);
  return reshape(axes.empty() ? x : sum(x, IntArgs(axes)), DimArgs(size));
}

constexpr Converter kConverters[] = {
    {"prim.dtype(self:Tensor)", dtype_in, kPlain},
    {"prim.device(self)", on_cpu, kPlain},
    {"prim.type(self)", given_back, kPlain},
    {"device(self)", given_back, kPlain},
    {"prim.index(self)", nothing_done, kPlain},
    {"prim.layout(self)", nothing_done, kPlain},
    {"prim.data(self)", given_back, kPlain},
    {"prim.requires_grad(self)", always<false>, kPlain},
    {"prim.is_leaf(self)", always<true>, kPlain},
    {"prim.is_cuda(self)", always<false>, kPlain},
    {"prim.is_cpu(self)", always<true>, kPlain},
    {"prim.is_xla(self)", always<false>, kPlain},
    {"prim.is_xpu(self)", always<false>, kPlain},
    {"prim.is_mps(self)", always<false>, kPlain},
    {"prim.is_nested(self)", always<false>, kPlain},
    {"prim.is_sparse(self)", always<false>, kPlain},
    {"prim.is_quantized(self)", always<false>, kPlain},
    {"prim.is_mkldnn(self)", always<false>, kPlain},
    {"prim.is_meta(self)", always<false>, kPlain},
    {"prim.RaiseException(msg, cls=None)", raised_error, kPlain},
    {"prim.NumToTensor(a)", tensor_of_number},
    {"prim.AutogradZero()", nothing_done, kPlain},
    {"is_cuda(self)", always<false>, kPlain},
    {"is_contiguous(self, memory_format=None)", always<true>, kPlain},
    {"is_complex(self)", complex_numbers, kPlain},
    {"is_same_size(self, other)", same_sizes, kPlain},
    {"element_size(self)", width_of, kPlain},
    {"is_grad_enabled()", always<false>, kPlain},
    {"is_inference_mode_enabled()", always<true>, kPlain},
    {"is_autocast_enabled()", always<false>, kPlain},
    {"is_autocast_cpu_enabled()", always<false>, kPlain},
    {"_get_tracing_state()", always<false>, kPlain},
    {"is_scripting()", always<true>, kPlain},
    {"set_grad_enabled(self)", nothing_done, kPlain},
    {"warn(self, stacklevel=2)", nothing_done, kPlain},
    {"manual_seed(self)", nothing_done, kPlain},
    {"get_default_dtype()", default_dtype, kPlain},
    {"Size(self)", given_back, kPlain},
    {"wait(self)", given_back, kPlain},
    {"tensor(data, dtype=None, device=None, requires_grad=False)", tensor_of_data},
    {"as_tensor(data, dtype=None, device=None)", tensor_of_data},
    {"_tensor_to_list(self)", given_back, kPlain},
    {"_size_if_not_equal(self, other)", nothing_done, kPlain},
    {"sum_to_size(self, size)", sum_to},
    {"prim.round(a:number)", rounded},
    {"round(a:number)", rounded},
    {"div(a:number, b:number)", quotient_of_numbers},
    {"__and__(a:number, b:number)", bits_of_both},
    {"__or__(a:number, b:number)", bits_of_either},
    {"__xor__(a:number, b:number)", bits_of_one},
    {"__lshift__(a:number, b:number)", shifted_up},
    {"__rshift__(a:number, b:number)", shifted_down},
    {"sin(a:number)", sine},
    {"cos(a:number)", cosine},
    {"tanh(a:number)", hyperbolic},
    {"isinf(a:number)", is_infinite},
    {"isnan(a:number)", is_no_number},
    {"log(a:number, b:number)", of_base},
    {"log2(a:number)", log_of_two},
    {"log10(a:number)", log_of_ten},
    {"FloatImplicit(a)", as_real},
};

}  // namespace

std::span<const Converter> script_converters() { return kConverters; }

}  // namespace oar::pytorch
