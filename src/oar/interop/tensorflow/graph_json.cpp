// A GraphDef as JSON, as files of TensorFlow.js have it.
#include <charconv>
#include <limits>

#include "oar/base/error.h"
#include "oar/interop/tensorflow/graph_def.h"

namespace oar::tensorflow {
namespace {

// Protocol Buffers write integers of 64 bits as texts.
int64_t integer_of(const JsonValue& value) {
  if (!value.is_text()) return value.is_flag() ? int64_t{value.flag()} : value.integer();
  const std::string& text = value.text();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  user_check(error == std::errc() && end == text.data() + text.size() && !text.empty(),
             ErrorKind::InvalidArgument, "the file is damaged: '{}' is no integer.", text);
  return number;
}

double number_of(const JsonValue& value) {
  if (!value.is_text()) return value.number();
  if (value.text() == "Infinity") return std::numeric_limits<double>::infinity();
  if (value.text() == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

int64_t type_of(const JsonValue& value) {
  return value.is_text() ? type_named(value.text()) : value.integer();
}

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  return c == '/' || c == '_' ? 63 : -1;
}

// Bytes are texts in base 64.
std::string bytes_of_text(const std::string& text) {
  std::string made;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int digit = digit_of(c);
    user_check(digit >= 0, ErrorKind::InvalidArgument,
               "the file is damaged: '{}' is not in base 64.", text);
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xffffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    made += static_cast<char>(bits >> count & 0xff);
  }
  return made;
}

// Writers differ in how they spell names: unknownRank, unknown_rank.
const JsonValue* either(const JsonValue& object, std::string_view a, std::string_view b) {
  const JsonValue* found = object.find(a);
  return found ? found : object.find(b);
}

void read_list(const JsonValue& list, Attribute& a) {
  for (const auto& [key, entries] : list.object()) {
    if (!entries.is_list()) continue;
    for (const JsonValue& entry : entries.list()) {
      if (key == "i" || key == "b") a.integers.push_back(integer_of(entry));
      if (key == "type") a.integers.push_back(type_of(entry));
      if (key == "f") a.numbers.push_back(number_of(entry));
      if (key == "s") a.texts.push_back(bytes_of_text(entry.text()));
      if (key == "func") a.texts.push_back(entry.at("name").text());
    }
  }
}

Attribute attribute_of(const JsonValue& json) {
  Attribute a;
  for (const auto& [key, value] : json.object()) {
    if (key == "s") a.text = bytes_of_text(value.text());
    if (key == "i" || key == "b") a.integer = integer_of(value);
    if (key == "f") a.number = number_of(value);
    if (key == "type") a.integer = type_of(value);
    if (key == "shape") a.shape = shape_from_json(value);
    if (key == "func") a.text = value.at("name").text();
    if (key == "list") read_list(value, a);
  }
  return a;
}

Node node_of(const JsonValue& json, const Weights& weights) {
  Node node;
  node.name = json.at("name").text();
  node.op = json.at("op").text();
  if (const JsonValue* inputs = json.find("input"))
    for (const JsonValue& input : inputs->list()) node.inputs.push_back(input.text());
  if (const JsonValue* attributes = json.find("attr"))
    for (const auto& [key, value] : attributes->object())
      if (!key.empty() && key[0] != '_') node.attributes.emplace(key, attribute_of(value));
  if (node.op != "Const") return node;
  const auto found = weights.find(node.name);
  if (found != weights.end()) node.attributes["value"].constant = found->second;
  return node;
}

void read_arguments(const JsonValue* list, std::vector<std::string>& names) {
  if (list)
    for (const JsonValue& argument : list->list()) names.push_back(argument.at("name").text());
}

Graph function_of(const JsonValue& json, const Weights& weights) {
  Graph f;
  f.is_function = true;
  const JsonValue& signature = json.at("signature");
  f.name = signature.at("name").text();
  read_arguments(either(signature, "inputArg", "input_arg"), f.arguments);
  read_arguments(either(signature, "outputArg", "output_arg"), f.results);
  if (const JsonValue* nodes = either(json, "nodeDef", "node_def"))
    for (const JsonValue& node : nodes->list()) f.add(node_of(node, weights));
  if (const JsonValue* sources = json.find("ret"))
    for (const auto& [name, source] : sources->object()) f.sources.emplace(name, source.text());
  return f;
}

}  // namespace

OpenShape shape_from_json(const JsonValue& shape) {
  const JsonValue* open = either(shape, "unknownRank", "unknown_rank");
  if (open && open->flag()) return std::nullopt;
  std::vector<int64_t> sizes;
  if (const JsonValue* dims = shape.find("dim"))
    for (const JsonValue& dim : dims->list()) {
      const JsonValue* size = dim.find("size");
      sizes.push_back(size ? integer_of(*size) : 0);
      user_check(sizes.back() >= -1 && sizes.size() <= 32, ErrorKind::InvalidArgument,
                 "the file is damaged: a shape has the size {}, or too many axes.", sizes.back());
    }
  return sizes;
}

GraphDef graph_from_json(const JsonValue& topology, const Weights& weights) {
  GraphDef graph;
  for (const JsonValue& node : topology.at("node").list()) graph.main.add(node_of(node, weights));
  if (const JsonValue* library = topology.find("library"))
    if (const JsonValue* functions = library->find("function"))
      for (const JsonValue& json : functions->list()) {
        Graph f = function_of(json, weights);
        graph.functions.emplace(f.name, std::move(f));
      }
  return graph;
}

}  // namespace oar::tensorflow
