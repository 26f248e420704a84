#include "oar/interop/pytorch/call.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "oar/base/error.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/copy.h"

namespace oar::pytorch {
namespace {

// ---- signatures --------------------------------------------------------------------------------

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Value default_in(std::string_view text) {
  if (text == "None") return {};
  if (text == "True" || text == "False") return Value::flag(text == "True");
  if (text.front() == '\'') return Value::of(std::string(text.substr(1, text.size() - 2)));
  const std::string digits(text);
  if (text.find_first_of(".e") != std::string_view::npos) return Value::of(std::stod(digits));
  return Value::of(static_cast<int64_t>(std::stoll(digits)));
}

Signature parse_signature(const Converter& converter) {
  Signature made{&converter, {}};
  const size_t open = converter.signature.find('(');
  std::string_view rest = converter.signature.substr(open + 1);
  rest.remove_suffix(1);
  bool by_name = false;
  while (!trimmed(rest).empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view one = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    by_name = by_name || one == "*";
    if (one == "*") continue;
    Parameter p;
    p.by_name = by_name;
    if (const size_t at = one.find('='); at != std::string_view::npos) {
      p.otherwise = default_in(one.substr(at + 1));
      one = one.substr(0, at);
    }
    if (const size_t at = one.find(':'); at != std::string_view::npos) {
      p.type = one.substr(at + 1);
      one = one.substr(0, at);
    }
    p.name = one;
    made.parameters.push_back(std::move(p));
  }
  return made;
}

using Table = std::map<std::string, std::vector<Signature>, std::less<>>;

const Table& table() {
  static const Table made = [] {
    Table all;
    for (const auto rows :
         {activation_converters(), elementwise_converters(), reduction_converters(),
          product_converters(), network_converters(), resize_converters(), shape_converters(),
          creation_converters(), selection_converters(), recurrent_converters(), loss_converters(),
          scalar_converters(), container_converters(), text_converters(), script_converters()})
      for (const Converter& c : rows)
        all[std::string(c.signature.substr(0, c.signature.find('(')))].push_back(
            parse_signature(c));
    return all;
  }();
  return made;
}

bool fits(const Parameter& parameter, const Value& value) {
  if (parameter.type.empty()) return true;
  if (value.is_none()) return parameter.otherwise && parameter.otherwise->is_none();
  if (parameter.type == "Tensor") return value.is_tensor();
  if (parameter.type == "int") return value.kind == Value::Int || value.kind == Value::Float;
  if (parameter.type == "bool") return value.kind == Value::Bool;
  if (parameter.type == "str") return value.kind == Value::Text;
  if (parameter.type == "list") return value.is_list();
  if (parameter.type == "dict") return value.kind == Value::Dict;
  return value.is_number();
}

}  // namespace

std::span<const Signature> signatures_of(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? std::span<const Signature>() : found->second;
}

bool can_convert(std::string_view name) {
  if (!signatures_of(name).empty()) return true;
  return name.ends_with('_') && !signatures_of(name.substr(0, name.size() - 1)).empty();
}

std::optional<std::vector<Value>> bound(const Signature& signature,
                                        const std::vector<Argument>& arguments) {
  const std::vector<Parameter>& parameters = signature.parameters;
  std::vector<Value> values(parameters.size());
  std::vector<bool> given(parameters.size(), false);
  size_t next = 0;
  for (const Argument& argument : arguments) {
    size_t place = next;
    if (argument.name.empty()) {
      ++next;
    } else {
      place = 0;
      while (place < parameters.size() && parameters[place].name != argument.name) ++place;
    }
    if (place >= parameters.size() || given[place] || !fits(parameters[place], argument.value) ||
        (argument.name.empty() && parameters[place].by_name))
      return std::nullopt;
    values[place] = argument.value;
    given[place] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    if (!parameters[i].otherwise) return std::nullopt;
    values[i] = *parameters[i].otherwise;
  }
  return values;
}

// ---- arguments ---------------------------------------------------------------------------------

bool Call::takes(std::string_view parameter) const {
  for (const Parameter& p : signature_.parameters)
    if (p.name == parameter) return true;
  return false;
}

const Value& Call::value(std::string_view parameter) const {
  for (size_t i = 0; i < values_.size(); ++i)
    if (signature_.parameters[i].name == parameter) return values_[i];
  fail(ErrorKind::Internal, "{} has no parameter '{}'.", signature_.converter->signature,
       parameter);
}

const Tensor& Call::tensor(std::string_view parameter) const {
  const Value& found = value(parameter);
  if (!found.is_tensor()) refuse(format("'{}' is {}, not a tensor", parameter, found.kind_name()));
  return found.tensor;
}

Tensor Call::maybe(std::string_view parameter) const {
  return has(parameter) ? tensor(parameter) : Tensor{};
}

std::vector<Tensor> Call::tensors(std::string_view parameter) const {
  const Value& found = value(parameter);
  if (!found.is_list()) refuse(format("'{}' is {}, not a list", parameter, found.kind_name()));
  std::vector<Tensor> all;
  for (const Value& item : found.box->items) {
    if (!item.is_tensor() && !item.is_none())
      refuse(format("'{}' holds {}, not tensors", parameter, item.kind_name()));
    all.push_back(item.tensor);
  }
  return all;
}

Box& Call::box(std::string_view parameter) const {
  const Value& found = value(parameter);
  if (!found.box) refuse(format("'{}' is {}, not a container", parameter, found.kind_name()));
  return *found.box;
}

Box& Call::changed(std::string_view parameter) const {
  Box& found = box(parameter);
  heap_.check_change(found, name);
  return found;
}

namespace {

// A tensor that is known may stand for a number.
std::optional<double> number_in(const Value& value) {
  if (value.is_number()) return value.as_number();
  if (value.is_tensor() && value.known && value.tensor.numel() == Dim(1) &&
      !is_complex(value.tensor.dtype()))
    return value.tensor.item_double();
  return std::nullopt;
}
std::optional<int64_t> integer_in(const Value& value) {
  if (value.kind == Value::Int || value.kind == Value::Bool) return value.integer;
  if (value.is_tensor() && value.known && value.tensor.numel() == Dim(1) &&
      (is_integral(value.tensor.dtype()) || is_bool(value.tensor.dtype())))
    return value.tensor.item_int();
  if (value.kind == Value::Float && value.number == std::floor(value.number) &&
      std::fabs(value.number) < 9e15)
    return static_cast<int64_t>(value.number);
  return std::nullopt;
}

}  // namespace

int64_t Call::integer(std::string_view parameter) const {
  if (const auto found = integer_in(value(parameter))) return *found;
  refuse(
      format("'{}' is {}, not an integer that is known", parameter, value(parameter).kind_name()));
}
double Call::number(std::string_view parameter) const {
  if (const auto found = number_in(value(parameter))) return *found;
  refuse(format("'{}' is {}, not a number that is known", parameter, value(parameter).kind_name()));
}
bool Call::flag(std::string_view parameter) const {
  return has(parameter) && integer(parameter) != 0;
}
const std::string& Call::text(std::string_view parameter) const {
  const Value& found = value(parameter);
  if (found.kind != Value::Text)
    refuse(format("'{}' is {}, not a text", parameter, found.kind_name()));
  return found.text;
}

std::vector<int64_t> Call::list(std::string_view parameter) const {
  const Value& found = value(parameter);
  if (found.is_none()) return {};
  if (!found.is_list()) return {integer(parameter)};
  std::vector<int64_t> all;
  for (const Value& item : found.box->items) {
    const auto entry = integer_in(item);
    if (!entry)
      refuse(format("'{}' holds {}, not integers that are known", parameter, item.kind_name()));
    all.push_back(*entry);
  }
  return all;
}
std::vector<double> Call::numbers(std::string_view parameter) const {
  const Value& found = value(parameter);
  if (found.is_none()) return {};
  if (!found.is_list()) return {number(parameter)};
  std::vector<double> all;
  for (const Value& item : found.box->items) {
    const auto entry = number_in(item);
    if (!entry)
      refuse(format("'{}' holds {}, not numbers that are known", parameter, item.kind_name()));
    all.push_back(*entry);
  }
  return all;
}
std::vector<int64_t> Call::list(std::string_view parameter, size_t count) const {
  std::vector<int64_t> all = list(parameter);
  if (all.size() == 1) all.resize(count, all[0]);
  if (all.size() != count)
    refuse(format("'{}' has {} entries, not {}", parameter, all.size(), count));
  return all;
}

std::optional<DType> Call::dtype(std::string_view parameter) const {
  if (!has(parameter)) return std::nullopt;
  return dtype_of(integer(parameter));
}

int64_t Call::axis(std::string_view parameter, int64_t rank) const {
  const int64_t given = integer(parameter), room = std::max<int64_t>(rank, 1);
  const int64_t axis = given < 0 ? given + room : given;
  if (axis < 0 || axis >= room) refuse(format("there is no axis {}", given));
  return axis;
}

Tensor Call::operand(std::string_view parameter) const {
  const Value& found = value(parameter);
  switch (found.kind) {
    case Value::Bool:
      return Tensor::scalar(found.integer, DType::Bool, true);
    case Value::Int:
      return Tensor::scalar(found.integer, DType::Int64, true);
    case Value::Float:
      return literal(found.number);
    default:
      return tensor(parameter);
  }
}

// ---- results -----------------------------------------------------------------------------------

Value Call::listed(const std::vector<Tensor>& tensors) const {
  return heap_.make(Value::List, {tensors.begin(), tensors.end()});
}
Value Call::tuple(const std::vector<Tensor>& tensors) const {
  return heap_.make(Value::Tuple, {tensors.begin(), tensors.end()});
}
Value Call::tuple_of(std::vector<Value> values) const {
  return heap_.make(Value::Tuple, std::move(values));
}
Value Call::list_of(std::vector<Value> values) const {
  return heap_.make(Value::List, std::move(values));
}

Value Call::dict_of(std::vector<Value> keys, std::vector<Value> values) const {
  Value made = heap_.make(Value::Dict, std::move(values));
  made.box->keys = std::move(keys);
  return made;
}

void Call::refuse(std::string_view why) const {
  fail(ErrorKind::Unsupported, "{} cannot be imported: {}.", name, why);
}

// ---- dtypes ------------------------------------------------------------------------------------

namespace {

constexpr DType kDTypes[] = {DType::UInt8,   DType::Int8,      DType::Int16,      DType::Int32,
                             DType::Int64,   DType::Float16,   DType::Float32,    DType::Float64,
                             DType::Float16, DType::Complex64, DType::Complex128, DType::Bool};
constexpr int64_t kHalfComplex = 8, kBfloat16 = 15;

int rank_of_kind(DType dtype) {
  if (is_bool(dtype)) return 0;
  if (is_integral(dtype)) return 1;
  return is_floating(dtype) ? 2 : 3;
}

}  // namespace

DType dtype_of(int64_t number) {
  if (number == kBfloat16) return DType::BFloat16;
  user_check(
      number >= 0 && number < static_cast<int64_t>(std::size(kDTypes)) && number != kHalfComplex,
      ErrorKind::Unsupported, "the model has a dtype that Oar does not compute with: {}.", number);
  return kDTypes[number];
}

int64_t number_of(DType dtype) {
  if (dtype == DType::BFloat16) return kBfloat16;
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (kDTypes[i] == dtype) return static_cast<int64_t>(i);
  fail(ErrorKind::Unsupported, "PyTorch has no dtype {}.", name_of(dtype));
}

std::pair<Tensor, Tensor> promoted(const Tensor& x, const Tensor& y) {
  if (x.rank() > 0 && y.rank() == 0 && x.dtype() != y.dtype() &&
      rank_of_kind(y.dtype()) <= rank_of_kind(x.dtype()))
    return {x, cast(y, x.dtype())};
  if (y.rank() > 0 && x.rank() == 0 && x.dtype() != y.dtype() &&
      rank_of_kind(x.dtype()) <= rank_of_kind(y.dtype()))
    return {cast(x, y.dtype()), y};
  return {x, y};
}

}  // namespace oar::pytorch
