#include "oar/interop/tensorflow/signature.h"

#include <set>

#include "oar/base/error.h"
#include "oar/interop/tensorflow/frames.h"

namespace oar::tensorflow {
namespace {

bool is_placeholder(const Node& node) {
  return node.inputs.empty() && node.find("dtype") && !node.find("value") &&
         node.op.starts_with("Placeholder");
}

const Node& node_at(const Network& network, const Place& place, std::string_view what) {
  const Node* node = network.graph.main.find(place.node);
  user_check(node, ErrorKind::InvalidArgument, "the graph has no node '{}', which is to be an {}.",
             place.node, what);
  return *node;
}

// In two steps: where the place of a braced list throws, GCC 12 destroys the port before it twice.
Entry entry_of(const std::string& name, const std::string& tensor) {
  Entry entry;
  entry.port.name = name;
  entry.place = place_of(tensor);
  return entry;
}

Entry input_entry(const Network& network, const std::string& name, const std::string& tensor,
                  const OpenShape* described) {
  Entry entry = entry_of(name, tensor);
  const Node& node = node_at(network, entry.place, "input");
  const Attribute* type = nullptr;
  for (const char* attribute : {"dtype", "DstT", "T"})
    if (!type) type = node.find(attribute);
  user_check(type, ErrorKind::Unsupported, "{} does not say its dtype, so it cannot be an input.",
             node.str());
  user_check(
      type->integer % 100 != kString, ErrorKind::Unsupported,
      "the input '{}' is a text, which Oar cannot take.\nhint: Name the tensors after it as inputs.",
      name);
  entry.port.dtype = dtype_of(type->integer, format("the input '{}'", name));
  OpenShape shape = described ? *described : std::nullopt;
  const Attribute* own = node.find("shape");
  // In old files no axes mean that nothing is known.
  if (!shape && is_placeholder(node) && own && own->shape && !own->shape->empty())
    shape = own->shape;
  entry.port.shape = shape;
  return entry;
}

Entry output_entry(const Network& network, const std::string& name, const std::string& tensor) {
  Entry entry = entry_of(name, tensor);
  node_at(network, entry.place, "output");
  return entry;
}

bool computes(const Node& node) {
  const Converter* converter = find_converter(node.op);
  return !converter ||
         (converter->kind != Converter::Notes && converter->kind != Converter::Writes);
}

// What nothing reads is a result, unless it reads nothing itself.
std::vector<std::string> ends_of(const Graph& graph) {
  std::set<std::string> read;
  for (const Node& node : graph.nodes)
    for (const std::string& input : node.inputs) {
      const bool control = input.starts_with('^');
      if (!control) read.insert(place_of(input).node);
      if (control && computes(node)) read.insert(input.substr(1));
    }
  std::vector<std::string> ends;
  for (const Node& node : graph.nodes)
    if (computes(node) && !node.inputs.empty() && !read.contains(node.name))
      ends.push_back(node.name);
  return ends;
}

// The placeholders that the outputs need, in the order of the file.
std::vector<std::string> placeholders_of(const Network& network) {
  const Graph& graph = network.graph.main;
  std::set<std::string> seen;
  std::vector<std::string> waiting;
  for (const Entry& entry : network.outputs) waiting.push_back(entry.place.node);
  while (!waiting.empty()) {
    const std::string name = std::move(waiting.back());
    waiting.pop_back();
    const Node* node = graph.find(name);
    if (!node || !seen.insert(name).second) continue;
    for (const std::string& input : node->inputs)
      if (!input.empty() && input[0] != '^') waiting.push_back(place_of(input).node);
  }
  std::vector<std::string> inputs;
  for (const Node& node : graph.nodes)
    if (is_placeholder(node) && seen.contains(node.name)) inputs.push_back(node.name);
  return inputs;
}

}  // namespace

void choose_ends(Network& network, const Signature& signature, const Wanted& wanted) {
  const std::vector<std::string> ends = ends_of(network.graph.main);
  turn_frames_into_loops(network.graph);
  turn_switches_into_branches(network.graph);
  for (const std::string& name : wanted.outputs)
    network.outputs.push_back(output_entry(network, name, name));
  if (wanted.outputs.empty())
    for (const auto& [name, described] : signature.outputs)
      network.outputs.push_back(output_entry(network, name, described.tensor));
  if (network.outputs.empty())
    for (const std::string& name : ends)
      if (network.graph.main.find(name))  // not inside of a loop
        network.outputs.push_back(output_entry(network, name, name));
  user_check(!network.outputs.empty(), ErrorKind::InvalidArgument, "the graph computes nothing.");

  for (const std::string& name : wanted.inputs)
    network.inputs.push_back(input_entry(network, name, name, nullptr));
  if (!wanted.inputs.empty()) return;
  for (const auto& [name, described] : signature.inputs)  // one that nothing reads may be gone
    if (network.graph.main.find(place_of(described.tensor).node))
      network.inputs.push_back(input_entry(network, name, described.tensor, &described.shape));
  if (!signature.inputs.empty()) return;
  for (const std::string& name : placeholders_of(network))
    network.inputs.push_back(input_entry(network, name, name, nullptr));
}

interop::GraphModel model_of(const std::shared_ptr<const Network>& network) {
  check_operators(*network);
  std::vector<interop::Port> inputs;
  std::vector<std::string> outputs;
  for (const Entry& entry : network->inputs) inputs.push_back(entry.port);
  for (const Entry& entry : network->outputs) outputs.push_back(entry.port.name);
  return {std::move(inputs), std::move(outputs),
          [network](const std::vector<Tensor>& like) { return program_for(*network, like); },
          [network](const std::vector<Tensor>& given) { return run_steps(*network, given); }};
}

}  // namespace oar::tensorflow
