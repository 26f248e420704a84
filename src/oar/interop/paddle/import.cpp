#include "oar/interop/paddle/import.h"

#include <algorithm>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/interop/conversion_error.h"
#include "oar/interop/paddle/importer.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"

namespace oar::paddle {
namespace {

void collect_unknown(const Block& block, std::set<std::string>& unknown) {
  for (const Node& node : block.nodes) {
    if (!is_control(node) && !find_converter(node.op)) unknown.insert(node.written);
    for (const Block& inner : node.blocks) collect_unknown(inner, unknown);
  }
}

void check_converters(const Block& main) {
  std::set<std::string> unknown;
  collect_unknown(main, unknown);
  user_check(unknown.empty(), ErrorKind::Unsupported,
             "the model has ops that Oar cannot import yet: {}.",
             join(std::vector<std::string>(unknown.begin(), unknown.end()), ", "));
}

// Sizes that turn out to be numbers are a constant.
void settle(Item& item) {
  if (item.is_list) {
    for (Item& each : item.list) settle(each);
    return;
  }
  if (!item.sizes) return;
  std::vector<int64_t> numbers;
  for (const Dim d : *item.sizes) {
    if (d.is_symbolic()) return;
    numbers.push_back(d.value());
  }
  const Shape shape = item.tensor.shape();
  item.tensor = cast(Tensor::from_vector(numbers, shape, DType::Int64), item.tensor.dtype());
  make_known(item);
}

}  // namespace

void make_known(Item& item) {
  item.known = true;
  if (item.is_list) {
    for (Item& each : item.list) make_known(each);
    return;
  }
  item.sizes.reset();
  const Tensor& t = item.tensor;
  if (!t.defined() || t.numel().value() > Item::kFew || is_complex(t.dtype())) return;
  const Tensor line = reshape(t, {-1});
  item.numbers = cast(line, DType::Float64).to_vector<double>();
  if (!is_integral(t.dtype())) return;
  item.sizes.emplace();
  for (const int64_t v : cast(line, DType::Int64).to_vector<int64_t>()) item.sizes->push_back(v);
}

Importer::Importer(const ModelFile& model) : model_(model), capture_("main") {
  capture_.follow_outside();  // weights are states, which files keep apart from the program
}

Program Importer::run(const std::vector<Tensor>& like, bool fixed) {
  for (const Parameter& p : model_.parameters) {
    const Tensor& tensor = model_.weights.at(p.value);
    history_of(tensor).name = p.name;
    Item item(tensor);
    make_known(item);
    define(p.value, std::move(item));
  }
  for (size_t i = 0; i < model_.inputs.size(); ++i)
    add_input(model_.inputs[i], i < like.size() ? like[i] : Tensor{}, fixed);
  for (const Node& node : model_.main.nodes) add_node(node);
  std::vector<Tensor> outputs;
  for (const Port& port : model_.outputs) {
    const Item& item = value(port.value, "an output of the model");
    user_check(!item.is_list, ErrorKind::Unsupported, "the output '{}' is a list of tensors.",
               port.name);
    outputs.push_back(item.tensor);
  }
  values_.clear();  // only the program may keep what the ops computed
  return capture_.finish(std::move(outputs));
}

void Importer::add_input(const Port& port, const Tensor& like, bool fixed) {
  InputSpec spec{.dtype = port.dtype, .name = port.name};
  const bool seen = like.defined() && static_cast<size_t>(like.rank()) == port.shape.size();
  for (size_t i = 0; i < port.shape.size(); ++i) {
    if (port.shape[i] >= 0)
      spec.shape.push_back(port.shape[i]);
    else if (fixed && seen)
      spec.shape.push_back(like.dims()[i]);
    else
      spec.shape.push_back(open_size(port, i, seen ? like.dims()[i].value() : -1));
  }
  const Capture::Scope scope(capture_);
  define(port.value, Item(capture_.input(spec)));
}

Dim Importer::open_size(const Port& port, size_t axis, int64_t seen) {
  // Networks halve images several times and join the halves again, which fits for sizes like this one.
  constexpr int64_t kLikelyBatch = 2, kLikelySize = 320;
  return Dim::symbol(format("{}_{}", port.name, axis), seen >= 0   ? seen
                                                       : axis == 0 ? kLikelyBatch
                                                                   : kLikelySize);
}

Item Importer::input_of(const Node& node, const Slot& slot) {
  if (slot.names.empty() && !slot.is_list) return {};
  if (!slot.is_list) {
    if (slot.names[0].empty()) return {};
    return value(slot.names[0], node.str());
  }
  if (slot.names.empty()) return {};
  std::vector<Item> list;
  for (const std::string& name : slot.names) list.push_back(value(name, node.str()));
  return Item::of_list(std::move(list));
}

std::vector<Item> Importer::inputs_of(const Node& node) {
  std::vector<Item> inputs;
  // A parameter that the file of parameters does not have, such as the state of a dropout, is left out.
  for (const Slot& slot : node.inputs) {
    const bool missing = !model_.legacy && slot.names.size() == 1 &&
                         !values_.contains(slot.names[0]) && node.op == "rnn";
    inputs.push_back(missing ? Item() : input_of(node, slot));
  }
  return inputs;
}

void Importer::add_node(const Node& node) {
  if (is_control(node)) return add_control(node);
  std::vector<Item> inputs = inputs_of(node);
  bool known = regions_ == 0;
  for (const Item& input : inputs) known &= !input.given() || input.known;
  const Call call(node, std::move(inputs));
  Values results = known ? convert(call) : captured(call);
  define_results(node, std::move(results), known);
}

void Importer::define_results(const Node& node, Values results, bool known) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Slot& slot = node.outputs[i];
    if (i >= results.size() || slot.names.empty()) continue;  // who reads it gets an error
    if (!results[i].given()) continue;
    if (known)
      make_known(results[i]);
    else if (regions_ == 0)
      settle(results[i]);
    if (!slot.is_list) {
      define(slot.names[0], std::move(results[i]));
      continue;
    }
    user_check(results[i].is_list && results[i].list.size() == slot.names.size(),
               ErrorKind::InvalidArgument, "the op {} has {} results, not {}.", node.str(),
               results[i].list.size(), slot.names.size());
    for (size_t k = 0; k < slot.names.size(); ++k)
      define(slot.names[k], std::move(results[i].list[k]));
  }
}

Values Importer::convert(const Call& call) {
  try {
    return interop::naming_node([&] { return "the op " + call.node.str(); },
                                [&] { return find_converter(call.node.op)->convert(call); });
  } catch (const std::out_of_range&) {  // a list that is shorter than the op needs
    fail(ErrorKind::InvalidArgument, "the op {} cannot be imported: its attributes do not fit.",
         call.node.str());
  }
}

Values Importer::captured(const Call& call) {
  if (regions_ > 0) return convert(call);  // a capture of a region is running
  const Capture::Scope scope(capture_);
  return convert(call);
}

const Item& Importer::value(const std::string& name, const std::string& reader) const {
  const auto found = values_.find(name);
  user_check(found != values_.end(), ErrorKind::InvalidArgument,
             "{} reads '{}', which nothing before it computes.", reader, name);
  return found->second;
}

void Importer::define(const std::string& name, Item item) {
  if (name.empty()) return;
  const bool is_new = values_.insert_or_assign(name, std::move(item)).second;
  user_check(is_new || model_.legacy || regions_ > 0, ErrorKind::InvalidArgument,
             "the value '{}' is computed twice.", name);
}

Program import_program(const ModelFile& model, const std::vector<Tensor>& like, bool fixed) {
  refuse_nested_capture();
  check_converters(model.main);
  return Importer(model).run(like, fixed);
}

}  // namespace oar::paddle
