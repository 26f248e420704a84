// A graph of TensorFlow as plain structs: what a GraphDef says, as Protocol Buffers or, in files of TensorFlow.js, as JSON.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "oar/interop/json_value.h"
#include "oar/tensor/tensor.h"

namespace oar::tensorflow {

// Types as files number them.
enum Type : int32_t { kString = 7, kResource = 20, kVariant = 21 };
// Unsupported, naming `what`, if Oar has no such dtype.
DType dtype_of(int64_t type, std::string_view what);
int32_t type_named(std::string_view name);  // "DT_FLOAT"; 0 if there is none

// -1: open. Nothing: any number of axes.
using OpenShape = std::optional<std::vector<int64_t>>;

// A tensor of numbers, or of texts.
struct Constant {
  Tensor tensor;
  std::vector<std::string> texts;
  std::string problem;  // why Oar cannot read it, which matters only if it is used
};

struct Attribute {
  std::string text;     // or the name of a function
  int64_t integer = 0;  // or a type, or a flag
  double number = 0;
  OpenShape shape;
  std::shared_ptr<const Constant> constant;
  std::vector<int64_t> integers;  // or types
  std::vector<double> numbers;
  std::vector<std::string> texts;  // or names of functions
};

struct Node {
  std::string name, op;
  std::vector<std::string>
      inputs;  // "node", "node:1", in functions "node:output:1"; "^node" comes before it
  std::map<std::string, Attribute, std::less<>> attributes;

  const Attribute* find(std::string_view attribute) const;
  std::string str() const;  // "Conv2D 'block/conv'"
};

// The graph of a file, or of a function.
struct Graph {
  std::string name;
  bool is_function = false;
  std::vector<Node> nodes;
  std::unordered_map<std::string, size_t> places;  // of nodes, by name
  // Of a function: its arguments, its results, and what computes them.
  std::vector<std::string> arguments, results;
  std::map<std::string, std::string> sources;

  void add(Node node);
  const Node* find(const std::string& node) const;
};

struct GraphDef {
  Graph main;
  std::map<std::string, Graph, std::less<>> functions;
};

GraphDef parse_graph_def(std::string_view message);
OpenShape parse_shape(std::string_view message);
Constant parse_tensor(std::string_view message);

// The same as JSON. Constants have no content: `weights` has it, by the name of the node.
using Weights = std::map<std::string, std::shared_ptr<const Constant>>;
GraphDef graph_from_json(const JsonValue& topology, const Weights& weights);
OpenShape shape_from_json(const JsonValue& shape);

// A dense tensor with these bytes, which must be as many as shape and dtype say.
Tensor tensor_of_bytes(std::string_view bytes, const std::vector<int64_t>& shape, DType dtype,
                       std::string_view what);
// The elements of a shape; an error if a size is negative or they are too many.
int64_t elements_of(const std::vector<int64_t>& shape, std::string_view what);

}  // namespace oar::tensorflow
