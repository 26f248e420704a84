#include "oar/interop/tensorflow/graph_def.h"

#include "oar/base/error.h"
#include "oar/interop/protobuf.h"

namespace oar::tensorflow {
namespace {

// key = 1, value = 2, as every map of Protocol Buffers.
struct Entry {
  std::string key;
  std::string_view value;
  std::string text_value;
};
Entry parse_entry(std::string_view message, bool text) {
  Entry entry;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) entry.key = r.text();
    if (r.field() == 2) (text ? void(entry.text_value = r.text()) : void(entry.value = r.bytes()));
  }
  return entry;
}

std::string parse_function_name(std::string_view message) {
  std::string name;
  for (ProtoReader r(message); r.next();)
    if (r.field() == 1) name = r.text();
  return name;
}

void parse_list(std::string_view message, Attribute& a) {
  std::vector<float> floats;
  for (ProtoReader r(message); r.next();) switch (r.field()) {
      case 2:
        a.texts.push_back(r.text());
        break;
      case 3:
      case 5:
      case 6:
        r.append(a.integers);
        break;
      case 4:
        r.append(floats);
        break;
      case 9:
        a.texts.push_back(parse_function_name(r.bytes()));
        break;
      default:
        break;
    }
  a.numbers.assign(floats.begin(), floats.end());
}

Attribute parse_attribute(std::string_view message) {
  Attribute a;
  for (ProtoReader r(message); r.next();) switch (r.field()) {
      case 1:
        parse_list(r.bytes(), a);
        break;
      case 2:
        a.text = r.text();
        break;
      case 3:
      case 5:
      case 6:
        a.integer = r.integer();
        break;
      case 4:
        a.number = static_cast<double>(r.float32());
        break;
      case 7:
        a.shape = parse_shape(r.bytes());
        break;
      case 8:
        a.constant = std::make_shared<const Constant>(parse_tensor(r.bytes()));
        break;
      case 10:
        a.text = parse_function_name(r.bytes());
        break;
      default:
        break;
    }
  return a;
}

Node parse_node(std::string_view message) {
  Node node;
  for (ProtoReader r(message); r.next();) switch (r.field()) {
      case 1:
        node.name = r.text();
        break;
      case 2:
        node.op = r.text();
        break;
      case 3:
        node.inputs.push_back(r.text());
        break;
      case 5: {
        const Entry entry = parse_entry(r.bytes(), false);
        // Names that begin with a line are notes of TensorFlow to itself.
        if (!entry.key.empty() && entry.key[0] != '_')
          node.attributes.emplace(entry.key, parse_attribute(entry.value));
        break;
      }
      default:
        break;
    }
  return node;
}

std::string parse_argument_name(std::string_view message) {
  std::string name;
  for (ProtoReader r(message); r.next();)
    if (r.field() == 1) name = r.text();
  return name;
}

void parse_signature(std::string_view message, Graph& f) {
  for (ProtoReader r(message); r.next();) switch (r.field()) {
      case 1:
        f.name = r.text();
        break;
      case 2:
        f.arguments.push_back(parse_argument_name(r.bytes()));
        break;
      case 3:
        f.results.push_back(parse_argument_name(r.bytes()));
        break;
      default:
        break;
    }
}

Graph parse_function(std::string_view message) {
  Graph f;
  f.is_function = true;
  for (ProtoReader r(message); r.next();) switch (r.field()) {
      case 1:
        parse_signature(r.bytes(), f);
        break;
      case 3:
        f.add(parse_node(r.bytes()));
        break;
      case 4: {
        Entry entry = parse_entry(r.bytes(), true);
        f.sources.emplace(std::move(entry.key), std::move(entry.text_value));
        break;
      }
      default:
        break;
    }
  return f;
}

}  // namespace

const Attribute* Node::find(std::string_view attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? nullptr : &found->second;
}

std::string Node::str() const { return format("{} '{}'", op, name); }

void Graph::add(Node node) {
  user_check(places.emplace(node.name, nodes.size()).second, ErrorKind::InvalidArgument,
             "the file is damaged: two nodes have the name '{}'.", node.name);
  nodes.push_back(std::move(node));
}

const Node* Graph::find(const std::string& node) const {
  const auto found = places.find(node);
  return found == places.end() ? nullptr : &nodes[found->second];
}

GraphDef parse_graph_def(std::string_view message) {
  GraphDef graph;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) graph.main.add(parse_node(r.bytes()));
    if (r.field() != 2) continue;
    for (ProtoReader library(r.bytes()); library.next();) {
      if (library.field() != 1) continue;
      Graph f = parse_function(library.bytes());
      graph.functions.emplace(f.name, std::move(f));
    }
  }
  return graph;
}

}  // namespace oar::tensorflow
