// SavedModels: a graph with functions, signatures, and variables in a checkpoint beside it.
#include <algorithm>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/interop/protobuf.h"
#include "oar/interop/tensorflow/signature.h"

namespace oar::tensorflow {
namespace {

struct MetaGraph {
  std::vector<std::string> tags;
  std::string_view graph;
  std::string restore_node;
  std::map<std::string, Signature> signatures;
};

Described parse_tensor_info(std::string_view message) {
  Described d;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) d.tensor = r.text();
    if (r.field() == 3) d.shape = parse_shape(r.bytes());
  }
  user_check(!d.tensor.empty(), ErrorKind::Unsupported,
             "a signature has a tensor that is sparse or made of several.");
  return d;
}

template <class F>
void parse_map_entry(std::string_view message, F&& take) {
  std::string key;
  std::string_view value;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) key = r.text();
    if (r.field() == 2) value = r.bytes();
  }
  take(key, value);
}

Signature parse_signature(std::string_view message) {
  Signature signature;
  for (ProtoReader r(message); r.next();) {
    if (r.field() != 1 && r.field() != 2) continue;
    auto& ends = r.field() == 1 ? signature.inputs : signature.outputs;
    parse_map_entry(r.bytes(), [&](const std::string& key, std::string_view value) {
      ends.emplace(key, parse_tensor_info(value));
    });
  }
  return signature;
}

MetaGraph parse_meta_graph(std::string_view message) {
  MetaGraph meta;
  for (ProtoReader r(message); r.next();) switch (r.field()) {
      case 1:
        for (ProtoReader info(r.bytes()); info.next();)
          if (info.field() == 4) meta.tags.push_back(info.text());
        break;
      case 2:
        meta.graph = r.bytes();
        break;
      case 3:
        for (ProtoReader saver(r.bytes()); saver.next();)
          if (saver.field() == 3) meta.restore_node = saver.text();
        break;
      case 5:
        parse_map_entry(r.bytes(), [&](const std::string& key, std::string_view value) {
          // What initialises a model is no use of it.
          if (!key.starts_with("__saved_model")) meta.signatures[key] = parse_signature(value);
        });
        break;
      default:
        break;
    }
  return meta;
}

MetaGraph parse_file(std::string_view file) {
  std::vector<MetaGraph> all;
  for (ProtoReader r(file); r.next();)
    if (r.field() == 2) all.push_back(parse_meta_graph(r.bytes()));
  user_check(!all.empty(), ErrorKind::InvalidArgument, "the SavedModel has no graph.");
  for (const MetaGraph& meta : all)
    if (std::find(meta.tags.begin(), meta.tags.end(), "serve") != meta.tags.end()) return meta;
  return all[0];
}

Signature signature_of(const MetaGraph& meta, const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& [name, signature] : meta.signatures) names.push_back(name);
  std::string name = wanted.empty() ? "serving_default" : wanted;
  if (wanted.empty() && names.size() == 1) name = names[0];
  const auto found = meta.signatures.find(name);
  user_check(found != meta.signatures.end(), ErrorKind::InvalidArgument,
             "the SavedModel has no signature '{}'; it has: {}.", name,
             names.empty() ? "none" : join(names, ", "));
  return found->second;
}

bool has_variables(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op == "VarHandleOp" || node.op == "VariableV2" || node.op == "Variable";
  });
}

}  // namespace

interop::GraphModel read_saved_model(std::string_view file, const ReadFile& read,
                                     const Wanted& wanted) {
  const MetaGraph meta = parse_file(file);
  auto network = std::make_shared<Network>();
  network->graph = parse_graph_def(meta.graph);
  const bool named = !wanted.inputs.empty() && !wanted.outputs.empty();
  choose_ends(*network, named ? Signature{} : signature_of(meta, wanted.signature), wanted);
  check_operators(*network);
  if (has_variables(network->graph.main)) {
    user_check(network->graph.main.find(place_of(meta.restore_node).node),
               ErrorKind::InvalidArgument,
               "the SavedModel does not say how its variables are restored.");
    Checkpoint checkpoint(
        [&](const std::string& ending) { return read("variables/variables" + ending); });
    restore(*network, place_of(meta.restore_node).node, checkpoint);
  }
  return model_of(std::move(network));
}

}  // namespace oar::tensorflow
