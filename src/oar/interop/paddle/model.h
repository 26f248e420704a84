// Paddle's inference models as plain structs: one form for both formats, in the words of the newer one (PIR).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/formats/safetensors.h"
#include "oar/tensor/tensor.h"

namespace oar::paddle {

struct Attribute {
  std::string name;
  std::optional<int64_t> integer;  // of flags, too
  std::optional<double> number;
  std::optional<std::string> text;
  std::optional<DType> dtype;
  bool is_list = false;
  std::vector<int64_t> integers;
  std::vector<double> numbers;  // of lists of integers, too
};

// One operand or result of an op. In legacy files it may be a list of variables.
struct Slot {
  std::vector<std::string> names;  // none: it is left out
  bool is_list = false;
};

struct Block;

struct Node {
  std::string op;       // without the mark of in-place ops
  std::string written;  // as the file says
  std::vector<Slot> inputs, outputs;
  std::vector<Attribute> attributes;
  std::vector<Block> blocks;

  const Attribute* find(std::string_view attribute) const;
  std::string str() const;  // "conv2d of 'conv2d_0.tmp_0'"
};

struct Block {
  std::vector<std::string> arguments;
  std::vector<Node> nodes;
};

struct Port {
  std::string name, value;  // in legacy files both are the same
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;  // -1: open
};

struct Parameter {
  std::string name, value;
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
};

struct ModelFile {
  bool legacy = false;  // variables may be assigned again
  Block main;
  std::vector<Parameter> parameters;
  std::vector<Port> inputs, outputs;
  std::map<std::string, Tensor> weights;  // by `value`
};

// Are these the first bytes of a model that Paddle wrote?
bool is_legacy_program(std::string_view file);
bool is_pir_program(std::string_view file);

// Either format. The parameters are bound to the records of the other file.
ModelFile parse_model(std::string_view program, std::string_view parameters);
ModelFile parse_legacy(std::string_view file);
ModelFile parse_pir(std::string_view file);
void bind_parameters(ModelFile& model, std::string_view file);
// … and the way back: the record of a tensor, appended to the file of parameters.
void append_record(std::string& file, const Tensor& tensor);

// Paddle's number of a dtype in legacy files, or an error that names it.
DType dtype_of(int64_t number);
int64_t number_of(DType dtype);

}  // namespace oar::paddle
