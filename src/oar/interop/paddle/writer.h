// What the writers of ops see: the program's call, and the model that is being written.
//
//   void erf_op(const Written& c) { c.give(c.add("erf", {c.in("x")}, c.result())); }
//   constexpr OpWriter kWriters[] = {{"erf", erf_op}, …};
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "oar/interop/paddle/written.h"
#include "oar/interop/program_call.h"

namespace oar::paddle {

using List = std::vector<int64_t>;
using FileAttributes = std::vector<FileAttribute>;

inline FileAttribute flag_of(std::string_view name, bool v) { return {std::string(name), v}; }
inline FileAttribute int_of(std::string_view name, int64_t v) {
  return {std::string(name), static_cast<int32_t>(v)};
}
inline FileAttribute long_of(std::string_view name, int64_t v) { return {std::string(name), v}; }
inline FileAttribute float_of(std::string_view name, double v) {
  return {std::string(name), static_cast<float>(v)};
}
inline FileAttribute text_of(std::string_view name, std::string_view v) {
  return {std::string(name), std::string(v)};
}
inline FileAttribute dtype_of(std::string_view name, DType v) { return {std::string(name), v}; }
inline FileAttribute longs_of(std::string_view name, List v) {
  return {std::string(name), std::move(v)};
}
inline FileAttribute ints_of(std::string_view name, const List& v) {
  return {std::string(name), std::vector<int32_t>(v.begin(), v.end())};
}
inline FileAttribute floats_of(std::string_view name, std::vector<float> v) {
  return {std::string(name), std::move(v)};
}

class Writer {
 public:
  explicit Writer(const Program& program) { frames_.push_back({&program, {}, {}, {}, {}, {}}); }
  WrittenModel run();

  // Appends an op with one result, several results, or a list of them. If an equal op is there, its results are returned:
  // Paddle's predictor merges equal ops, and loses an output if the results of both are outputs.
  FileId add(std::string_view op, std::vector<FileOperand> operands, const FileType& type,
             FileAttributes attributes = {});
  std::vector<FileId> add(std::string_view op, std::vector<FileOperand> operands,
                          const std::vector<FileType>& types, FileAttributes attributes);
  std::vector<FileId> add_list(std::string_view op, std::vector<FileOperand> operands,
                               const std::vector<FileType>& types, FileAttributes attributes);
  FileNode& append(FileNode node);
  FileId new_value(const FileType& type);
  FileId parameter(const Tensor& tensor, std::string_view name);
  // One number as a tensor [1], for operands that no attribute replaces.
  FileId number(double value, DType dtype);

  // Sizes as a constant if they are known, else computed from the sizes of the inputs.
  FileOperand sizes(std::string_view attribute, Dims dims);
  FileId size(Dim d);  // int64 [1]
  FileType type_of(FileId id) const { return model_.value(id).type; }

  // Values of the program that is being written.
  const Program& program() const { return *frames_.back().program; }
  FileId id_of(ValueId value);
  void define(ValueId value, FileId id);
  // … that stand for a value of other sizes, which readers broadcast or index.
  void stand_for(ValueId value, FileId id) { frames_.back().ids[value] = id; }
  FileType type_of_value(ValueId value) const { return file_type(program().type_of(value)); }
  static FileType file_type(const ValueType& type);
  // The content of a constant.
  const Tensor* constant_of(ValueId value) const;
  // Does the call alone, by broadcasting, make up for a value that keeps its own sizes?
  bool only_broadcast(ValueId value) const;

  // A program inside of this one, whose inputs are the given values.
  FileBlock region(const Program& inner, const std::vector<FileId>& inputs);
  // A block whose nodes `write` appends; it takes the block's arguments and returns its results.
  template <class F>
  FileBlock inside(FileBlock block, F&& write) {
    frames_.push_back({&program(), {}, {}, {}, std::move(block), {}});
    std::vector<FileId> results = write(frames_.back().block.arguments);
    FileBlock made = std::move(frames_.back().block);
    frames_.pop_back();
    made.results = std::move(results);
    return made;
  }
  // The results of a program, written here.
  std::vector<FileId> inlined(const Program& inner, const std::vector<FileId>& inputs);

 private:
  struct Source {
    FileId value;
    int64_t axis;
  };
  struct Frame {
    const Program* program;
    std::unordered_map<ValueId, FileId> ids;
    std::unordered_map<int64_t, Source> sources;  // by the word of a symbol
    std::unordered_map<int64_t, FileId> sizes;    // … of an expression
    FileBlock block;
    std::unordered_multimap<std::string, FileNode> added;  // by the op and its values
  };
  struct SizeNodes;
  const Source* source_of(Dim symbol) const;
  bool knows(Dim d) const;
  void write_body(const Program& program, const std::vector<FileId>& inputs);
  std::vector<FileId> add_once(FileNode node, const std::vector<FileType>& types, bool is_list);

  WrittenModel model_;
  std::vector<Frame> frames_;
  std::unordered_map<std::string, FileId> numbers_;
};

// A call of the program.
class Written : public ProgramCall {
 public:
  Written(Writer& writer, const Program& program, const Instruction& call)
      : ProgramCall(program, call), writer(writer) {}

  Writer& writer;

  FileId in(std::string_view parameter) const {  // 0 if it is left out
    return has(parameter) ? writer.id_of(value_of(parameter)) : 0;
  }
  std::vector<FileId> all_in(std::string_view parameter) const;
  FileType type_in(std::string_view parameter) const { return Writer::file_type(type(parameter)); }
  FileType result(size_t i = 0) const { return Writer::file_type(result_type(i)); }
  FileId add(std::string_view op, std::vector<FileOperand> operands, const FileType& type,
             FileAttributes attributes = {}) const {
    return writer.add(op, std::move(operands), type, std::move(attributes));
  }
  void give(FileId id, size_t i = 0) const { writer.define(call.results.at(i), id); }
  void give_all(const std::vector<FileId>& ids) const {
    for (size_t i = 0; i < ids.size(); ++i) give(ids[i], i);
  }

  // What several families need.
  FileId reshaped(FileId x, const List& shape) const;
  FileId transposed(FileId x, const List& perm) const;
  FileId scaled(FileId x, double by, double bias = 0) const;
  FileId cast(FileId x, DType dtype) const;
};

struct OpWriter {
  std::string_view op;
  void (*write)(const Written&);
  // Null: always. Without it a call is written as its parts.
  bool (*accepts)(const ProgramCall&) = nullptr;
  bool broadcasts = false;   // its operands may have smaller sizes
  bool stays_small = false;  // its result may keep the sizes of its operand if readers broadcast
};

// One table per family.
std::span<const OpWriter> elementwise_writers();
std::span<const OpWriter> network_writers();
std::span<const OpWriter> shape_writers();
std::span<const OpWriter> reduction_writers();
std::span<const OpWriter> selection_writers();
std::span<const OpWriter> recurrent_writers();
std::span<const OpWriter> control_writers();
// Null if no table has the op.
const OpWriter* find_writer(std::string_view op);

}  // namespace oar::paddle
