#include "oar/interop/onnx/call.h"

#include "oar/base/error.h"

namespace oar::onnx {

const Item& Call::item(size_t i) const {
  if (!has_item(i)) refuse(format("its input {} is missing", i));
  return inputs_[i];
}

const Values& Call::sequence(size_t i) const {
  if (!item(i).sequence) refuse(format("its input {} is no sequence", i));
  return *item(i).sequence;
}

const Graph& Call::graph(std::string_view name) const {
  const Attribute* a = node.find(name);
  if (!a || a->graphs.empty()) refuse(format("it has no {}", name));
  return a->graphs[0];
}

std::vector<Tensor> Call::tensors() const {
  std::vector<Tensor> all;
  for (size_t i = 0; i < inputs_.size(); ++i) all.push_back(tensor(i));
  return all;
}

std::vector<int64_t> Call::integers(size_t i) const {
  std::vector<int64_t> list;
  for (const Dim d : sizes(i)) {
    if (d.is_symbolic()) refuse(format("its input {} depends on the sizes of a run", i));
    list.push_back(d.value());
  }
  return list;
}

std::vector<double> Call::numbers(size_t i) const {
  if (!item(i).numbers)
    refuse(format("its input {} is computed by the model; it must be a constant", i));
  return *item(i).numbers;
}

std::vector<Dim> Call::sizes(size_t i) const {
  const std::optional<std::vector<Dim>> found = maybe_sizes(i);
  if (!found)
    refuse(format("its input {} is computed by the model; it must be a constant or a size", i));
  return *found;
}

std::optional<std::vector<Dim>> Call::maybe_sizes(size_t i) const { return item(i).sizes; }

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const Attribute* a = node.find(name);
  return a && a->integer ? *a->integer : otherwise;
}

double Call::number(std::string_view name, double otherwise) const {
  const Attribute* a = node.find(name);
  return a && a->number ? *a->number : otherwise;
}

std::string Call::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = node.find(name);
  return a && a->text ? *a->text : std::string(otherwise);
}

std::vector<int64_t> Call::list(std::string_view name,
                                const std::vector<int64_t>& otherwise) const {
  const Attribute* a = node.find(name);
  return a ? a->integers : otherwise;
}

std::vector<double> Call::number_list(std::string_view name) const {
  const Attribute* a = node.find(name);
  return a ? std::vector<double>(a->numbers.begin(), a->numbers.end()) : std::vector<double>{};
}

std::optional<std::vector<int64_t>> Call::axes(size_t input) const {
  if (given("axes")) return list("axes");
  if (has(input)) return integers(input);
  return std::nullopt;
}

void Call::refuse(std::string_view why) const {
  fail(ErrorKind::Unsupported, "the node {} cannot be imported: {}.", node.str(), why);
}

const Converter* find_converter(std::string_view domain, std::string_view op) {
  for (const auto table :
       {elementwise_converters(), shape_converters(), reduction_converters(), network_converters(),
        recurrent_converters(), resize_converters(), selection_converters(), control_converters(),
        sequence_converters(), attention_converters(), signal_converters(), detection_converters(),
        training_converters(), contrib_converters(), contrib_attention_converters(),
        contrib_quantised_converters(), tree_converters()})
    for (const Converter& c : table)
      if (c.op == op && c.domain == domain) return &c;
  return nullptr;
}

}  // namespace oar::onnx
