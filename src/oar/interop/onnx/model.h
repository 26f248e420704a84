// An ONNX file as plain structs. Nothing is interpreted here but the bytes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/tensor/tensor.h"

namespace oar::onnx {

struct Graph;

struct Attribute {
  std::string name;
  // As the file says; a writer may leave it out.
  std::optional<int64_t> integer;
  std::optional<float> number;
  std::optional<std::string> text;
  std::vector<int64_t> integers;
  std::vector<float> numbers;
  std::vector<std::string> texts;
  Tensor tensor;
  std::vector<Graph> graphs;
  std::string refers_to;  // in a function: the attribute of the call that it is
};

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "" where an optional one is left out
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const;
  std::string str() const;  // "Conv 'stem'"
};

// An input or output of a graph. Its sizes may be names, or not be known at all.
struct Port {
  std::string name;
  enum Kind : uint8_t { Tensor, Sequence, Optional, Other } kind = Tensor;
  std::shared_ptr<const Port> element;  // of a sequence or an optional
  DType dtype = DType::Float32;
  int64_t number = 1;  // ONNX's, of the dtype: Oar holds some as another one
  struct Size {
    int64_t value = -1;  // -1: open
    std::string symbol;
  };
  std::vector<Size> shape;
  bool has_shape = false;  // else even the rank is open
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::map<std::string, Tensor> initializers;
  std::vector<Port> inputs, outputs;
};

// An operator that the file defines by nodes.
struct Function {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<Node> nodes;
  std::vector<Attribute> defaults;
  std::map<std::string, int64_t> opsets;
};

struct ModelFile {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  Graph graph;
  std::vector<Function> functions;

  const Function* find_function(std::string_view domain, std::string_view op) const;
};

// `folder` is where external data is looked for; it never leaves that folder.
ModelFile parse_model(std::string_view file, const std::string& folder);
// A TensorProto, as in the data files of ONNX's own tests.
Tensor parse_tensor(std::string_view message, const std::string& folder = ".");
// The dtype of ONNX's number, or an error that names it. Of computed tensors; those of a file may have others, which are held as a
// wider one: uint16 as int32, and floats of 8 bits without a negative zero as float32.
DType dtype_of(int64_t number);
constexpr int64_t kUInt16 = 4, kFloat8E4M3FNUZ = 18, kFloat8E5M2FNUZ = 20;
// … and back.
int64_t number_of(DType dtype);

}  // namespace oar::onnx
