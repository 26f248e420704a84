#include "oar/interop/tensorflow/call.h"

#include <unordered_map>

#include "oar/base/error.h"
#include "oar/interop/constants.h"

namespace oar::tensorflow {

const Item& Call::item(size_t i) const {
  if (i >= inputs_.size()) refuse(format("its input {} is missing", i));
  return inputs_[i];
}

const Tensor& Call::tensor(size_t i) const {
  if (!item(i).tensor.defined()) refuse(format("its input {} is no tensor of numbers", i));
  return inputs_[i].tensor;
}

std::vector<Tensor> Call::tensors(size_t first, size_t less) const {
  std::vector<Tensor> all;
  for (size_t i = first; i + less < inputs_.size(); ++i) all.push_back(tensor(i));
  if (all.empty()) refuse("it has no inputs");
  return all;
}

const Tensor& Call::constant(size_t i) const {
  if (!tensor(i).defined() || !inputs_[i].known)
    refuse(format("its input {} is computed by the model; it must be a constant or a size", i));
  return tensor(i);
}

std::vector<int64_t> Call::integers(size_t i) const { return interop::integers_in(constant(i)); }
std::vector<double> Call::numbers(size_t i) const { return interop::numbers_in(constant(i)); }

int64_t Call::integer(size_t i) const {
  const std::vector<int64_t> list = integers(i);
  if (list.size() != 1) refuse(format("its input {} is no single number", i));
  return list[0];
}

double Call::number(size_t i) const {
  const std::vector<double> list = numbers(i);
  if (list.size() != 1) refuse(format("its input {} is no single number", i));
  return list[0];
}

int64_t Call::axis(int64_t given, size_t input) const {
  const int64_t rank = tensor(input).rank(), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) refuse(format("it has no axis {}", given));
  return axis;
}

std::vector<int64_t> Call::axes(size_t i, size_t input) const {
  std::vector<int64_t> axes;
  for (const int64_t given : integers(i)) axes.push_back(axis(given, input));
  return axes;
}

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const Attribute* a = node.find(name);
  return a ? a->integer : otherwise;
}

double Call::number(std::string_view name, double otherwise) const {
  const Attribute* a = node.find(name);
  return a ? a->number : otherwise;
}

std::string Call::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = node.find(name);
  return a && !a->text.empty() ? a->text : std::string(otherwise);
}

std::vector<int64_t> Call::list(std::string_view name) const {
  const Attribute* a = node.find(name);
  return a ? a->integers : std::vector<int64_t>{};
}

DType Call::dtype(std::string_view name) const {
  const Attribute* a = node.find(name);
  if (!a) refuse(format("it has no attribute '{}'", name));
  return dtype_of(a->integer, format("the result of {}", node.str()));
}

DType Call::dtype(std::string_view name, DType otherwise) const {
  return node.find(name) ? dtype(name) : otherwise;
}

void Call::refuse(std::string_view why) const {
  fail(ErrorKind::Unsupported, "{} cannot be imported: {}.", node.str(), why);
}

void Call::need_steps(std::string_view why) const {
  if (!around.steps()) refuse(why);
}

std::vector<Dim> dims_of(const Call& c, const std::vector<int64_t>& sizes) {
  std::vector<Dim> dims;
  for (const int64_t size : sizes) {
    if (size < -1) c.refuse(format("a size is {}", size));
    dims.push_back(size);
  }
  return dims;
}

const Converter* find_converter(std::string_view op) {
  static const auto kAll = [] {
    std::unordered_map<std::string_view, const Converter*> all;
    for (const auto& table :
         {elementwise_converters(), reduction_converters(), network_converters(),
          shape_converters(), selection_converters(), control_converters(), list_converters()})
      for (const Converter& converter : table) all.emplace(converter.op, &converter);
    return all;
  }();
  const auto found = kAll.find(op);
  return found == kAll.end() ? nullptr : found->second;
}

}  // namespace oar::tensorflow
