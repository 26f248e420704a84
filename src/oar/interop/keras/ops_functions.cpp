// Functions of keras.ops and of TensorFlow that stand in a model as if they were layers.
#include <algorithm>

#include "oar/interop/keras/call.h"
#include "oar/interop/keras/resize.h"
#include "oar/interop/tensorflow_math.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

using List = std::vector<int64_t>;

// ---- arguments ---------------------------------------------------------------------------------

// A value by any of its names, in the configuration or the call, or by its place. Null if there is none.
const JsonValue* value_of(const Call& c, std::initializer_list<std::string_view> names,
                          size_t place = ~size_t{0}) {
  for (const std::string_view name : names) {
    if (const JsonValue* found = c.find(name)) return found;
    if (const Given* given = c.named(name);
        given && given->items.empty() && !given->value.is_none())
      return &given->value;
  }
  if (place >= c.arguments().size()) return nullptr;
  const Given& given = c.arguments()[place];
  return given.items.empty() && !given.value.is_none() ? &given.value : nullptr;
}

const JsonValue::List* list_in(const JsonValue* value) {
  if (value && value->is_object()) value = value->find("items");
  return value && value->is_list() ? &value->list() : nullptr;
}

int64_t integer_of(const JsonValue* value, int64_t otherwise) {
  return value ? value->integer() : otherwise;
}

List list_of(const JsonValue* value) {
  if (!value) return {};
  if (value->is_number()) return {value->integer()};
  List made;
  if (const JsonValue::List* list = list_in(value))
    for (const JsonValue& item : *list) made.push_back(item.is_none() ? -1 : item.integer());
  return made;
}

DType dtype_named(const Call& c, const std::string& name) {
  if (name == "float16" || name == "float32" || name == "bfloat16") return DType::Float32;
  if (name == "float64") return DType::Float64;
  if (name == "int64") return DType::Int64;
  if (name == "int32") return DType::Int32;
  if (name == "int8") return DType::Int8;
  if (name == "uint8") return DType::UInt8;
  if (name == "bool") return DType::Bool;
  c.refuse(format("its dtype is '{}'", name));
}

// A number of the configuration as a tensor.
Tensor as_tensor(const Call& c, const JsonValue& value) {
  if (value.is_flag()) return full({}, value.flag() ? 1.0 : 0.0, DType::Bool);
  if (value.is_number()) return literal(value.number());
  if (!value.is_list()) c.refuse("an argument of it is no number");
  std::vector<double> numbers;
  for (const JsonValue& item : value.list()) numbers.push_back(item.number());
  return cast(
      Tensor::from_vector(numbers, Shape{static_cast<int64_t>(numbers.size())}, DType::Float64),
      DType::Float32);
}

// An operand by its place, or by any of its names.
Tensor operand(const Call& c, size_t place, std::initializer_list<std::string_view> names) {
  if (place < c.arguments().size()) {
    const Given& given = c.arguments()[place];
    return given.items.empty() ? as_tensor(c, given.value) : given.items[0].tensor;
  }
  for (const std::string_view name : names)
    if (const Given* given = c.named(name))
      return given->items.empty() ? as_tensor(c, given->value) : given->items[0].tensor;
  c.refuse(format("its argument {} is missing", place));
}

Tensor first(const Call& c) {
  return operand(c, 0, {"x", "input", "features", "tensor", "a", "input_tensor"});
}
Tensor second(const Call& c) { return operand(c, 1, {"y", "x2", "b", "other"}); }

// ---- functions of elements ---------------------------------------------------------------------

template <Tensor (*Function)(const Tensor&)>
Items of_one(const Call& c) {
  return {Function(first(c))};
}
template <Tensor (*Function)(const Tensor&, const Tensor&)>
Items of_two(const Call& c) {
  return {Function(first(c), second(c))};
}

// The table of activations has it under this name.
Items activation_by_name(const Call& c) {
  std::string name = c.layer.type;
  if (const JsonValue* function = c.find("function")) name = function->text();
  name.erase(0, name.rfind('.') + 1);
  std::string plain;
  for (size_t i = 0; i < name.size(); ++i) {
    const char letter = name[i];
    const bool upper = letter >= 'A' && letter <= 'Z';
    if (upper && i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z') plain += '_';
    plain += upper ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  if (plain == "elu" || plain == "leaky_relu" || plain == "gelu" || plain == "softmax" ||
      plain == "log_softmax") {
    const Tensor x = first(c);
    const JsonValue* slope = value_of(c, {"negative_slope", "alpha"}, 1);
    if (plain == "leaky_relu") return {leaky_relu(x, slope ? slope->number() : 0.2)};
    if (plain == "elu") return {elu(x, slope ? slope->number() : 1)};
    const JsonValue* approximate = value_of(c, {"approximate"}, 1);
    if (plain == "gelu")
      return {gelu(x, approximate ? approximate->flag() : c.layer.type != "TFOpLambda")};
    const int64_t axis = integer_of(value_of(c, {"axis"}, 1), -1);
    return {plain == "softmax" ? softmax(x, axis) : log_softmax(x, axis)};
  }
  return {activate_function(c, first(c), plain)};
}

Items clipped(const Call& c) {
  const JsonValue *low = value_of(c, {"x_min", "clip_value_min", "min_value"}, 1),
                  *high = value_of(c, {"x_max", "clip_value_max", "max_value"}, 2);
  std::optional<Scalar> least, most;
  if (low) least = Scalar(low->number());
  if (high) most = Scalar(high->number());
  return {clip(first(c), least, most)};
}

Items casted(const Call& c) {
  const JsonValue* dtype = value_of(c, {"dtype"}, 1);
  if (!dtype || !dtype->is_text()) c.refuse("it has no dtype");
  return {cast(first(c), dtype_named(c, dtype->text()))};
}

Items chosen(const Call& c) {
  const Tensor a = operand(c, 1, {"x1", "x"}), b = operand(c, 2, {"x2", "y"});
  const Tensor condition = cast(operand(c, 0, {"condition"}), DType::Bool);
  return {where(condition, a.rank() == 0 ? zeros_like(b) + a : a,
                b.rank() == 0 ? zeros_like(a) + b : b)};
}

// ---- reductions --------------------------------------------------------------------------------

template <class F>
Items reduced(const Call& c, F&& function) {
  const JsonValue* axis = value_of(c, {"axis"}, 1);
  const JsonValue* keep = value_of(c, {"keepdims"}, 2);
  const List list = list_of(axis);
  const std::optional<IntArgs> axes = axis ? std::optional<IntArgs>(list) : std::nullopt;
  return {function(first(c), axes, keep && keep->flag())};
}
Items summed(const Call& c) {
  return reduced(c, [](const Tensor& x, const auto& axes, bool keep) {
    return sum(x, axes, std::nullopt, keep);
  });
}
Items averaged(const Call& c) {
  return reduced(c,
                 [](const Tensor& x, const auto& axes, bool keep) { return mean(x, axes, keep); });
}
Items largest(const Call& c) {
  return reduced(c,
                 [](const Tensor& x, const auto& axes, bool keep) { return max(x, axes, keep); });
}
Items smallest(const Call& c) {
  return reduced(c,
                 [](const Tensor& x, const auto& axes, bool keep) { return min(x, axes, keep); });
}
Items multiplied(const Call& c) {
  return reduced(c,
                 [](const Tensor& x, const auto& axes, bool keep) { return prod(x, axes, keep); });
}
Items variance(const Call& c) {
  return reduced(
      c, [](const Tensor& x, const auto& axes, bool keep) { return var(x, axes, false, keep); });
}
Items deviation(const Call& c) {
  return reduced(c, [](const Tensor& x, const auto& axes, bool keep) {
    return sqrt(var(x, axes, false, keep));
  });
}
Items any_of(const Call& c) {
  return reduced(c,
                 [](const Tensor& x, const auto& axes, bool keep) { return any(x, axes, keep); });
}
Items all_of(const Call& c) {
  return reduced(c,
                 [](const Tensor& x, const auto& axes, bool keep) { return all(x, axes, keep); });
}
Items largest_place(const Call& c) {
  const JsonValue* axis = value_of(c, {"axis"}, 1);
  return {argmax(first(c), axis ? std::optional<int64_t>(axis->integer()) : std::nullopt)};
}
Items unit_length(const Call& c) {
  const Tensor x = first(c);
  const List axes = list_of(value_of(c, {"axis", "dim"}, 1));
  const Tensor squares =
      sum(square(x), IntArgs(axes.empty() ? List{-1} : axes), std::nullopt, true);
  return {x * rsqrt(clip(squares, Scalar(1e-12)))};
}

// ---- shapes ------------------------------------------------------------------------------------

Items reshaped(const Call& c) {
  const Tensor x = first(c);
  const JsonValue* sizes = value_of(c, {"newshape", "shape"}, 1);
  if (!list_in(sizes)) c.refuse("its shape is computed by the model");
  std::vector<Dim> shape;
  for (const int64_t size : list_of(sizes)) shape.emplace_back(size);
  return {reshape(x, shape)};
}

Items transposed(const Call& c) {
  const Tensor x = first(c);
  List order = list_of(value_of(c, {"axes", "perm"}, 1));
  if (order.empty())
    for (int64_t axis = x.rank(); axis-- > 0;) order.push_back(axis);
  return {transpose(x, order)};
}

Items expanded(const Call& c) {
  return {unsqueeze(first(c), IntArgs(list_of(value_of(c, {"axis"}, 1))))};
}

Items squeezed(const Call& c) {
  const List axes = list_of(value_of(c, {"axis"}, 1));
  return {axes.empty() ? squeeze(first(c)) : squeeze(first(c), IntArgs(axes))};
}

std::vector<Tensor> listed(const Call& c) {
  if (c.count() == 0) c.refuse("it has no inputs");
  return c.tensors();
}
Items concatenated(const Call& c) {
  return {concat(listed(c),
                 integer_of(value_of(c, {"axis"}, 1), c.layer.type == "TFOpLambda" ? 0 : -1))};
}
Items stacked(const Call& c) { return {stack(listed(c), integer_of(value_of(c, {"axis"}, 1), 0))}; }

Items split_up(const Call& c) {
  const JsonValue* parts = value_of(c, {"indices_or_sections", "num_or_size_splits"}, 1);
  const int64_t axis = integer_of(value_of(c, {"axis"}, 2), 0);
  if (!parts) c.refuse("it does not say how many parts it makes");
  const Tensor x = first(c);
  Items made;
  if (parts->is_number()) {
    for (Tensor& part : chunk(x, parts->integer(), axis)) made.emplace_back(std::move(part));
  } else if (c.layer.type == "TFOpLambda") {
    for (Tensor& part : split_sections(x, list_of(parts), axis)) made.emplace_back(std::move(part));
  } else {
    for (Tensor& part : tensor_split_at(x, list_of(parts), axis))
      made.emplace_back(std::move(part));
  }
  return made;
}

Items tiled(const Call& c) {
  std::vector<Dim> times;
  for (const int64_t n : list_of(value_of(c, {"repeats", "multiples"}, 1))) times.emplace_back(n);
  return {tile(first(c), times)};
}
Items repeated(const Call& c) {
  const int64_t times = integer_of(value_of(c, {"repeats"}, 1), 1);
  return {repeat_interleave(first(c), times, integer_of(value_of(c, {"axis"}, 2), 0))};
}
Items flipped(const Call& c) {
  return {flip(first(c), IntArgs(list_of(value_of(c, {"axis"}, 1))))};
}

Items padded(const Call& c) {
  const JsonValue* widths = value_of(c, {"pad_width", "paddings"}, 1);
  const JsonValue* mode = value_of(c, {"mode"}, 2);
  const JsonValue* fill = value_of(c, {"constant_values"}, 3);
  const JsonValue::List* sides = list_in(widths);
  if (!sides) c.refuse("its borders are computed by the model");
  List paddings;
  for (const JsonValue& side : *sides)
    for (const int64_t width : list_of(&side)) paddings.push_back(width);
  std::string how = mode ? mode->text() : "constant";
  std::transform(how.begin(), how.end(), how.begin(), [](char l) {
    return l >= 'A' && l <= 'Z' ? static_cast<char>(l - 'A' + 'a') : l;
  });
  const Tensor x = first(c);
  if (paddings.size() != 2 * static_cast<size_t>(x.rank())) c.refuse("its borders do not fit");
  if (how == "reflect" || how == "symmetric")
    return {interop::mirror_pad(x, paddings, how == "reflect")};
  if (how != "constant") c.refuse(format("its mode is '{}'", how));
  for (const int64_t p : paddings)
    if (p < 0 || p > (1 << 24)) c.refuse(format("its border is {}", p));
  return {pad_constant(x, paddings, Scalar(fill ? fill->number() : 0.0))};
}

// x[…] by numbers, slices, None and an ellipsis.
Items taken(const Call& c) {
  const JsonValue* key = value_of(c, {"slice_spec", "key"}, 1);
  if (!key) c.refuse("its places are computed by the model");
  JsonValue::List single{*key};
  const JsonValue::List* parts = list_in(key);
  if (!parts) parts = &single;
  List begin, end, stride;
  interop::SliceMasks masks;
  for (size_t i = 0; i < parts->size() && i < 32; ++i) {
    const JsonValue& part = (*parts)[i];
    const int64_t bit = int64_t{1} << i;
    const JsonValue* type = part.is_object() ? part.find("class_name") : nullptr;
    begin.push_back(0);
    end.push_back(0);
    stride.push_back(1);
    if (part.is_none()) {
      masks.new_axis |= bit;
    } else if (part.has_integer()) {
      begin.back() = part.integer();
      end.back() = part.integer() + 1;
      masks.shrink |= bit;
    } else if (type && type->text() == "__ellipsis__") {
      masks.ellipsis |= bit;
    } else if (part.is_object()) {
      const JsonValue* config = part.find("config");
      const JsonValue& slice = config ? *config : part;
      const auto number = [&](const char* name, int64_t& into, int64_t& mask) {
        const JsonValue* found = slice.find(name);
        if (found && found->has_integer())
          into = found->integer();
        else
          mask |= bit;
      };
      int64_t unused = 0;
      number("start", begin.back(), masks.begin);
      number("stop", end.back(), masks.end);
      number("step", stride.back(), unused);
    } else {
      c.refuse("its places are computed by the model");
    }
  }
  if (parts->size() > 31) c.refuse("it has too many places");
  return {interop::slice_with_masks(first(c), begin, end, stride, masks)};
}

// ---- products and images -----------------------------------------------------------------------

Items product(const Call& c) {
  const auto turned = [&](const char* name, size_t place) {
    const JsonValue* found = value_of(c, {name}, place);
    return found && found->is_flag() && found->flag();
  };
  return {matmul(first(c), second(c), turned("transpose_a", 2), turned("transpose_b", 3))};
}

Items einsum_of(const Call& c) {
  const JsonValue* equation = value_of(c, {"subscripts", "equation"}, 0);
  if (!equation || !equation->is_text()) c.refuse("it has no equation");
  return {einsum(equation->text(), c.tensors())};
}

Items gathered(const Call& c) {
  const Tensor x = first(c), indices = cast(operand(c, 1, {"indices"}), DType::Int64);
  const int64_t given = integer_of(value_of(c, {"axis"}, 2), 0), axis = c.axis(given, x);
  std::vector<Dim> shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != axis) {
      shape.push_back(x.dim(i));
      continue;
    }
    for (int64_t k = 0; k < indices.rank(); ++k) shape.push_back(indices.dim(k));
  }
  return {reshape(index_select(x, reshape(indices, {-1}), axis), shape)};
}

Items image_resized(const Call& c) {
  const List size = list_of(value_of(c, {"size"}, 1));
  const JsonValue *mode = value_of(c, {"interpolation", "method"}),
                  *layout = value_of(c, {"data_format"});
  if (size.size() != 2) c.refuse("its size is computed by the model");
  for (const char* unusual :
       {"antialias", "crop_to_aspect_ratio", "pad_to_aspect_ratio", "preserve_aspect_ratio"})
    if (const JsonValue* found = value_of(c, {unusual}); found && found->is_flag() && found->flag())
      c.refuse(format("it has '{}'", unusual));
  const Tensor x = first(c);
  const bool front = layout && layout->is_text() && layout->text() == "channels_first";
  const int64_t height = x.rank() - (front ? 2 : 3);
  const std::string how = mode && mode->is_text() ? mode->text() : "bilinear";
  return {resize_axis(c, resize_axis(c, x, height, size[0], how), height + 1, size[1], how)};
}

Items space_of_depth(const Call& c) {
  return {interop::depth_to_space_last(first(c), integer_of(value_of(c, {"block_size"}, 1), 2))};
}
Items depth_of_space(const Call& c) {
  return {interop::space_to_depth_last(first(c), integer_of(value_of(c, {"block_size"}, 1), 2))};
}

Items same(const Call& c) { return {first(c)}; }

Tensor plus(const Tensor& a, const Tensor& b) { return a + b; }
Tensor minus(const Tensor& a, const Tensor& b) { return a - b; }
Tensor times(const Tensor& a, const Tensor& b) { return a * b; }
Tensor over(const Tensor& a, const Tensor& b) { return a / b; }
Tensor raised(const Tensor& a, const Tensor& b) { return pow(a, b); }
Tensor larger(const Tensor& a, const Tensor& b) { return maximum(a, b); }
Tensor smaller(const Tensor& a, const Tensor& b) { return minimum(a, b); }
Tensor squared_difference(const Tensor& a, const Tensor& b) { return square(a - b); }
Tensor like_zeros(const Tensor& x) { return zeros_like(x); }
Tensor like_ones(const Tensor& x) { return ones_like(x); }
Tensor rounded(const Tensor& x) { return round(x); }

constexpr Converter kConverters[] = {
    {"add", of_two<plus>},
    {"subtract", of_two<minus>},
    {"sub", of_two<minus>},
    {"multiply", of_two<times>},
    {"mul", of_two<times>},
    {"divide", of_two<over>},
    {"truediv", of_two<over>},
    {"truedivide", of_two<over>},
    {"realdiv", of_two<over>},
    {"power", of_two<raised>},
    {"pow", of_two<raised>},
    {"maximum", of_two<larger>},
    {"minimum", of_two<smaller>},
    {"squareddifference", of_two<squared_difference>},
    {"greater", of_two<greater_than>},
    {"greaterequal", of_two<greater_equal>},
    {"less", of_two<less_than>},
    {"lessequal", of_two<less_equal>},
    {"equal", of_two<equal>},
    {"notequal", of_two<not_equal>},
    {"logicaland", of_two<logical_and>},
    {"logicalor", of_two<logical_or>},
    {"logicalnot", of_one<logical_not>},
    {"negative", of_one<neg>},
    {"neg", of_one<neg>},
    {"abs", of_one<abs>},
    {"absolute", of_one<abs>},
    {"square", of_one<square>},
    {"sqrt", of_one<sqrt>},
    {"rsqrt", of_one<rsqrt>},
    {"exp", of_one<exp>},
    {"log", of_one<log>},
    {"log1p", of_one<log1p>},
    {"sin", of_one<sin>},
    {"cos", of_one<cos>},
    {"tanh", of_one<tanh>},
    {"erf", of_one<erf>},
    {"floor", of_one<floor>},
    {"ceil", of_one<ceil>},
    {"round", of_one<rounded>},
    {"sign", of_one<sign>},
    {"reciprocal", of_one<reciprocal>},
    {"sigmoid", activation_by_name},
    {"relu", activation_by_name},
    {"relu6", activation_by_name},
    {"silu", activation_by_name},
    {"swish", activation_by_name},
    {"gelu", activation_by_name},
    {"elu", activation_by_name},
    {"selu", activation_by_name},
    {"leakyrelu", activation_by_name},
    {"softplus", activation_by_name},
    {"softsign", activation_by_name},
    {"softmax", activation_by_name},
    {"logsoftmax", activation_by_name},
    {"logsigmoid", activation_by_name},
    {"hardsigmoid", activation_by_name},
    {"hardsilu", activation_by_name},
    {"hardswish", activation_by_name},
    {"mish", activation_by_name},
    {"clip", clipped},
    {"clipbyvalue", clipped},
    {"cast", casted},
    {"where", chosen},
    {"sum", summed},
    {"reducesum", summed},
    {"mean", averaged},
    {"reducemean", averaged},
    {"max", largest},
    {"amax", largest},
    {"reducemax", largest},
    {"min", smallest},
    {"amin", smallest},
    {"reducemin", smallest},
    {"prod", multiplied},
    {"reduceprod", multiplied},
    {"var", variance},
    {"reducevariance", variance},
    {"std", deviation},
    {"reducestd", deviation},
    {"any", any_of},
    {"all", all_of},
    {"zeroslike", of_one<like_zeros>},
    {"oneslike", of_one<like_ones>},
    {"argmax", largest_place},
    {"l2normalize", unit_length},
    {"reshape", reshaped},
    {"transpose", transposed},
    {"expanddims", expanded},
    {"squeeze", squeezed},
    {"concatenate", concatenated},
    {"concat", concatenated},
    {"stack", stacked},
    {"split", split_up},
    {"tile", tiled},
    {"repeat", repeated},
    {"flip", flipped},
    {"reverse", flipped},
    {"pad", padded},
    {"getitem", taken},
    {"matmul", product},
    {"einsum", einsum_of},
    {"take", gathered},
    {"gather", gathered},
    {"resize", image_resized},
    {"depthtospace", space_of_depth},
    {"spacetodepth", depth_of_space},
    {"identity", same},
    {"stopgradient", same},
    {"converttotensor", same},
};

}  // namespace

std::span<const Converter> function_converters() { return kConverters; }

}  // namespace oar::keras
