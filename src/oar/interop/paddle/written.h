// A model as it is written, in the words of PIR: one form for both formats.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "oar/tensor/tensor.h"

namespace oar::paddle {

using FileId = int64_t;  // the number of a value; 0: left out

struct FileType {
  DType dtype;
  std::vector<int64_t> shape;  // -1: open
};

// Numbers are of 32 or 64 bits as the definition of the op says.
using FileNumber = std::variant<bool, int32_t, int64_t, float, std::string, std::vector<int32_t>,
                                std::vector<int64_t>, std::vector<float>, DType>;
struct FileAttribute {
  std::string name;
  FileNumber value;
  bool operator==(const FileAttribute&) const = default;
};

// Values, or a constant that PIR has as an operand and a legacy file as an attribute.
struct FileOperand {
  FileOperand(FileId id) : ids{id} {}  // what most operands are
  static FileOperand list(std::vector<FileId> ids) {
    FileOperand made(0);
    made.ids = std::move(ids);
    made.is_list = true;
    return made;
  }
  static FileOperand constant(std::string_view attribute, std::vector<int64_t> values) {
    FileOperand made(0);
    made.attribute = attribute;
    made.integers = std::move(values);
    return made;
  }
  static FileOperand constant(std::string_view attribute, double value, DType dtype) {
    FileOperand made(0);
    made.attribute = attribute;
    made.number = value;
    made.dtype = dtype;
    made.is_number = true;
    return made;
  }

  bool is_constant() const { return !attribute.empty(); }
  bool operator==(const FileOperand&) const = default;

  std::vector<FileId> ids;
  bool is_list = false;
  std::string attribute;
  std::vector<int64_t> integers;
  bool is_number = false;
  double number = 0;
  DType dtype = DType::Int64;
};

struct FileNode;

struct FileBlock {
  std::vector<FileId> arguments, results;
  std::vector<FileNode> nodes;
};

struct FileNode {
  std::string op;
  std::vector<FileOperand> operands;
  std::vector<std::vector<FileId>> results;
  std::vector<bool> lists;  // of the results
  std::vector<FileAttribute> attributes;
  std::vector<FileBlock> blocks;
};

struct WrittenModel {
  struct Value {
    FileType type;
    std::string name;  // of inputs and parameters
  };
  std::vector<Value> values;                 // of id - 1
  std::map<std::string, Tensor> parameters;  // sorted as the file has them
  std::vector<FileId> parameter_ids, inputs, outputs;
  FileBlock main;

  const Value& value(FileId id) const { return values[static_cast<size_t>(id) - 1]; }
};

std::string output_name(size_t i);

// The files of programs.
std::string pir_text(const WrittenModel& model);
std::string legacy_program(const WrittenModel& model);

}  // namespace oar::paddle
