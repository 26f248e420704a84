#include "oar/interop/pytorch/machine.h"

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"

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

}  // namespace

Value Machine::input(const std::string& name, const Tensor& like) {
  return graph_.input(name, like).tensor;
}

Value Machine::call(std::string_view op, const std::string& name,
                    const std::vector<Argument>& arguments) {
  std::span<const Signature> rows = signatures_of(op);
  const bool in_place = rows.empty() && op.ends_with('_');
  if (in_place) op.remove_suffix(1);
  if (in_place) rows = signatures_of(op);
  for (const Signature& signature : rows)
    if (auto values = bound(signature, arguments))
      return apply(signature, op, name, std::move(*values), in_place);
  std::vector<std::string> given;
  for (const Argument& a : arguments)
    given.push_back(a.name.empty() ? described(a.value)
                                   : format("{}={}", a.name, described(a.value)));
  fail(ErrorKind::Unsupported, "{} cannot be imported: Oar has no form of it for ({}).", name,
       join(given, ", "));
}

Value Machine::apply(const Signature& signature, std::string_view op, const std::string& name,
                     std::vector<Value> values, bool in_place) {
  const bool writes = in_place || signature.converter->kind == Converter::Writes;
  if (writes && folds_ && values[0].is_tensor() && values[0].known) throw WritesConstant{};
  std::vector<interop::Value> tensors;
  for (const Value& value : values) collect_tensors(value, tensors);
  bool known = folds_ && !writes && signature.converter->kind != Converter::Random;
  for (const interop::Value& t : tensors) known = known && (t.known || !t.tensor.defined());
  Value target = in_place ? values[0] : Value();
  const Call call(name, std::string(op), signature, std::move(values), heap);
  Value result;
  graph_.call(
      name, tensors,
      [&]() -> std::vector<Tensor> {
        result = signature.converter->convert(call);
        if (in_place) write_result(call, call.tensor("self"), result);
        return {};
      },
      !known);
  if (in_place) return target;
  if (known) mark_known(result);
  return result;
}

void Machine::write(const std::string& name, const Value& target, const Value& value) {
  graph_.call(
      name, {},
      [&]() -> std::vector<Tensor> {
        copy_into(target.tensor, value.tensor);
        return {};
      },
      true);
}

Program Machine::finish(const std::vector<Value>& outputs) {
  std::vector<interop::Value> tensors;
  for (const Value& value : outputs) {
    if (value.is_tensor()) {
      tensors.push_back({value.tensor, value.known});
      continue;
    }
    user_check(value.is_number(), ErrorKind::Unsupported,
               "an output of the model is {}, not a tensor.", value.kind_name());
    const DType dtype = value.kind == Value::Float ? DType::Float32
                        : value.kind == Value::Int ? DType::Int64
                                                   : DType::Bool;
    const Scalar number = value.kind == Value::Float ? Scalar(value.number) : Scalar(value.integer);
    Value made;
    graph_.call(
        "an output", {},
        [&]() -> std::vector<Tensor> {
          made = full({}, number, dtype);
          return {};
        },
        true);
    tensors.push_back({made.tensor, false});
  }
  return graph_.finish(tensors);
}

Program imported(const std::function<Program(Machine&)>& import) {
  try {
    Machine machine(true);
    return import(machine);
  } catch (const WritesConstant&) {
    Machine machine(false);
    return import(machine);
  }
}

}  // namespace oar::pytorch
