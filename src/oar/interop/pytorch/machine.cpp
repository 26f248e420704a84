#include "oar/interop/pytorch/machine.h"

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/runtime/region_runs.h"

namespace oar::pytorch {
namespace {

constexpr int kDeepest = 8;

void collect_tensors(const Value& value, std::vector<interop::Value>& found, int depth = 0) {
  if (value.is_tensor()) found.push_back({value.tensor, value.known});
  if (!value.is_list() || depth == kDeepest) return;
  for (const Value& item : value.box->items) collect_tensors(item, found, depth + 1);
}

std::string described(const Value& value) {
  return value.is_tensor() ? value.tensor.describe() : value.kind_name();
}

void write_result(const Call& call, const Tensor& target, const Value& result) {
  if (!result.is_tensor()) call.refuse("it has no result that could be written");
  if (!same(result.tensor.shape(), target.shape()))
    call.refuse("it changes the shape of its tensor in place");
  copy_into(target, result.tensor);
}

// Numbers and tensors of one number: what sizes are made of.
bool is_number_like(const Value& value, int depth = 0) {
  if (value.is_tensor()) return value.tensor.rank() == 0;
  if (!value.is_list() || depth == kDeepest) return !value.box;
  for (const Value& item : value.box->items)
    if (!is_number_like(item, depth + 1)) return false;
  return true;
}

void run_step(const std::string& name, const std::function<std::vector<Tensor>()>& convert) {
  const FreshLayers fresh;
  try {
    convert();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted || error.text().find(name) != std::string::npos)
      throw;
    fail(error.kind(), "{}: {}", name, error.what());
  }
}

}  // namespace

Value Machine::input(const std::string& name, const Tensor& like) {
  if (graph_) return graph_->input(name, like).tensor;
  Value given(assign(like));  // writes in place are not for the caller's tensor
  given.known = true;
  return given;
}

Value Machine::constant(const std::string& name, const Tensor& tensor, bool fixed) {
  if (graph_) interop::GraphCapture::constant(name, tensor);
  Value made(tensor);
  made.known = mode_ == Steps ||
               (fixed && (mode_ == FoldsAll || (mode_ == FoldsNumbers && tensor.rank() == 0)));
  return made;
}

Value Machine::call(std::string_view op, const std::string& name,
                    const std::vector<Argument>& arguments) {
  for (const Signature& signature : signatures_of(op))
    if (auto values = bound(signature, arguments))
      return apply(signature, op, name, std::move(*values), false);
  if (op.ends_with('_')) {
    const std::string_view function = op.substr(0, op.size() - 1);
    for (const Signature& signature : signatures_of(function))
      if (auto values = bound(signature, arguments))
        return apply(signature, function, name, std::move(*values), true);
  }
  std::vector<std::string> given;
  for (const Argument& a : arguments)
    given.push_back(a.name.empty() ? described(a.value)
                                   : format("{}={}", a.name, described(a.value)));
  fail(ErrorKind::Unsupported, "{} cannot be imported: Oar has no form of it for ({}).", name,
       join(given, ", "));
}

// In which case the op runs at once.
bool Machine::is_known(const Converter& converter,
                       const std::vector<interop::Value>& tensors) const {
  if (mode_ == FoldsNothing || converter.kind == Converter::Writes ||
      converter.kind == Converter::Random)
    return false;
  for (const interop::Value& t : tensors)
    if (t.tensor.defined() && (!t.known || (mode_ == FoldsNumbers && t.tensor.rank() > 0)))
      return false;
  return true;
}

Value Machine::apply(const Signature& signature, std::string_view op, const std::string& name,
                     std::vector<Value> values, bool in_place) {
  const Converter& converter = *signature.converter;
  const bool writes = in_place || converter.kind == Converter::Writes;
  if (writes && !steps() && values[0].is_tensor() && values[0].known) throw WritesConstant{};
  std::vector<interop::Value> tensors;
  for (const Value& value : values) collect_tensors(value, tensors);
  const bool known = !in_place && is_known(converter, tensors);
  Value target = in_place ? values[0] : Value();
  const Call call(name, std::string(op), signature, std::move(values), heap);
  if (converter.kind == Converter::Plain) return converter.convert(call);
  Value result;
  const auto convert = [&]() -> std::vector<Tensor> {
    result = converter.convert(call);
    if (in_place) write_result(call, call.tensor("self"), result);
    return {};
  };
  // A new tensor has no input that would be captured: its copy makes a new one in each run, which may be written.
  const auto capture = [&]() -> std::vector<Tensor> {
    convert();
    if (tensors.empty() && result.is_tensor()) result = assign(result.tensor);
    return {};
  };
  if (steps()) {
    run_step(name, convert);
    if (in_place) return target;
    mark_known(result);
    return result;
  }
  if (converter.kind == Converter::Counts && refuses_counts && !known)
    call.refuse("how many results it has depends on what the model computes");
  if (known) graph_->call(name, tensors, convert);
  const bool folded = known && (mode_ != FoldsNumbers || is_number_like(result));
  if (folded)
    mark_known(result);
  else
    graph_->call(name, tensors, capture, true);
  return in_place ? target : result;
}

void Machine::write(const std::string& name, const Value& target, const Value& value) {
  graph_->call(
      name, {},
      [&]() -> std::vector<Tensor> {
        copy_into(target.tensor, value.tensor);
        return {};
      },
      true);
}

Value Machine::number_as_tensor(const Value& number) {
  user_check(number.is_number(), ErrorKind::Unsupported,
             "an output of the model is {}, not a tensor.", number.kind_name());
  const DType dtype = number.kind == Value::Float ? DType::Float32
                      : number.kind == Value::Int ? DType::Int64
                                                  : DType::Bool;
  const Scalar content =
      number.kind == Value::Float ? Scalar(number.number) : Scalar(number.integer);
  if (!graph_) return full({}, content, dtype);
  Value made;
  graph_->call(
      "an output", {},
      [&]() -> std::vector<Tensor> {
        made = full({}, content, dtype);
        return {};
      },
      true);
  return made;
}

std::vector<Tensor> Machine::results(const std::vector<Value>& outputs) {
  std::vector<Tensor> tensors;
  for (const Value& value : outputs)
    tensors.push_back(value.is_tensor() ? value.tensor : number_as_tensor(value).tensor);
  return tensors;
}

Program Machine::finish(const std::vector<Value>& outputs) {
  std::vector<interop::Value> tensors;
  for (const Tensor& tensor : results(outputs)) tensors.push_back({tensor, false});
  return graph_->finish(tensors);
}

Program imported(const std::function<Program(Machine&)>& import) {
  for (const Machine::Mode mode : {Machine::FoldsAll, Machine::FoldsNumbers}) {
    try {
      Machine machine(mode);
      return import(machine);
    } catch (const WritesConstant&) {
      continue;
    }
  }
  Machine machine(Machine::FoldsNothing);
  return import(machine);
}

}  // namespace oar::pytorch
