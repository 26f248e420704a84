#include "oar/interop/paddle/call.h"

#include <algorithm>
#include <cmath>

#include "oar/base/error.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/reduction.h"

namespace oar::paddle {

Item Item::of_list(std::vector<Item> items) {
  Item made;
  made.is_list = true;
  made.known = std::all_of(items.begin(), items.end(), [](const Item& i) { return i.known; });
  made.list = std::move(items);
  return made;
}

const Item& Call::item(size_t i) const {
  if (!has(i)) refuse(format("its operand {} is missing", i));
  return inputs_[i];
}

const Tensor& Call::tensor(size_t i) const {
  if (item(i).is_list) refuse(format("its operand {} is a list", i));
  return inputs_[i].tensor;
}

std::vector<Item> Call::items(size_t i) const {
  const Item& found = item(i);
  return found.is_list ? found.list : std::vector<Item>{found};
}

std::vector<Tensor> Call::tensors(size_t i) const {
  std::vector<Tensor> all;
  for (const Item& each : items(i)) {
    if (each.is_list) refuse(format("its operand {} is a list of lists", i));
    all.push_back(each.tensor);
  }
  return all;
}

std::optional<std::vector<Dim>> Call::maybe_sizes(size_t i) const {
  if (!has(i)) return std::nullopt;
  std::vector<Dim> all;
  for (const Item& each : items(i)) {
    if (!each.sizes) return std::nullopt;
    all.insert(all.end(), each.sizes->begin(), each.sizes->end());
  }
  return all;
}

std::vector<Dim> Call::sizes(size_t i, std::string_view attribute) const {
  std::vector<Dim> found;
  if (!has(i)) {
    const Attribute* a = node.find(attribute);
    if (a && !a->is_list && a->integer) return {Dim(*a->integer)};
    for (const int64_t size : list(attribute)) found.emplace_back(size);
    return found;
  }
  if (const auto known = maybe_sizes(i)) return *known;
  refuse(format("its operand {} is computed from values; it must be a constant or a size", i));
}

std::vector<int64_t> Call::integers(size_t i, std::string_view attribute) const {
  std::vector<int64_t> found;
  for (const Dim d : sizes(i, attribute)) {
    if (d.is_symbolic()) refuse(format("its operand {} depends on the sizes of a run", i));
    found.push_back(d.value());
  }
  return found;
}

int64_t Call::integer(size_t i, std::string_view attribute, int64_t otherwise) const {
  if (!has(i)) return integer(attribute, otherwise);
  if (item(i).numbers && item(i).numbers->size() == 1)  // axes may be floats
    return static_cast<int64_t>(std::llround(item(i).numbers->front()));
  const std::vector<int64_t> found = integers(i, attribute);
  if (found.size() != 1) refuse(format("its operand {} is not one number", i));
  return found[0];
}

double Call::number(size_t i, std::string_view attribute, double otherwise) const {
  if (!has(i)) return number(attribute, otherwise);
  if (!item(i).numbers || item(i).numbers->size() != 1)
    refuse(format("its operand {} is computed by the model; it must be one constant number", i));
  return item(i).numbers->front();
}

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const Attribute* a = node.find(name);
  return a && a->integer ? *a->integer : otherwise;
}

double Call::number(std::string_view name, double otherwise) const {
  const Attribute* a = node.find(name);
  if (a && a->number) return *a->number;
  return a && a->integer ? static_cast<double>(*a->integer) : otherwise;
}

std::string Call::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = node.find(name);
  return a && a->text ? *a->text : std::string(otherwise);
}

std::vector<int64_t> Call::list(std::string_view name,
                                const std::vector<int64_t>& otherwise) const {
  const Attribute* a = node.find(name);
  if (a && !a->is_list && a->integer) return {*a->integer};
  return a && a->is_list ? a->integers : otherwise;
}

std::vector<double> Call::number_list(std::string_view name) const {
  const Attribute* a = node.find(name);
  if (a && !a->is_list && a->number) return {*a->number};
  return a ? a->numbers : std::vector<double>{};
}

std::optional<DType> Call::dtype(std::string_view name) const {
  const Attribute* a = node.find(name);
  if (!a) return std::nullopt;
  if (a->dtype) return a->dtype;
  if (a->integer && *a->integer >= 0) return dtype_of(*a->integer);
  return std::nullopt;
}

void Call::refuse(std::string_view why) const {
  fail(ErrorKind::Unsupported, "the op {} cannot be imported: {}.", node.str(), why);
}

const Converter* find_converter(std::string_view op) {
  for (const auto table : {elementwise_converters(), shape_converters(), selection_converters(),
                           reduction_converters(), network_converters(), recurrent_converters()})
    for (const Converter& c : table)
      if (c.op == op) return &c;
  return nullptr;
}

Tensor as_tensor(const std::vector<Dim>& sizes, DType dtype) {
  if (sizes.empty()) return zeros({0}, dtype);
  std::vector<Tensor> parts;
  for (const Dim d : sizes) parts.push_back(product_of({d}, dtype));
  return stack(parts);
}

}  // namespace oar::paddle
