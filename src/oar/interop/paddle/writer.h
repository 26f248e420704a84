// What the writers of ops see: the program's call, and the model that is being written.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/paddle/write.h"

namespace oar::paddle {

using PirId = int64_t;

// Attributes as PIR writes them.
std::string flag_attribute(std::string_view name, bool value);
std::string int_attribute(std::string_view name, int64_t value);
std::string long_attribute(std::string_view name, int64_t value);
std::string float_attribute(std::string_view name, double value);
std::string text_attribute(std::string_view name, std::string_view value);
std::string ints_attribute(std::string_view name, Ints values);
std::string dtype_attribute(std::string_view name, DType value);

struct PirType {
  DType dtype;
  std::vector<int64_t> shape;      // -1: open
  std::vector<PirType> list = {};  // not empty: a list of these
};

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}
  Files run();

  // Appends an op with one result, which may be that of the call that is being written.
  PirId add(std::string_view op, const std::vector<PirId>& operands, const PirType& type,
            const std::vector<std::string>& attributes = {});
  std::vector<PirId> add(std::string_view op, const std::vector<PirId>& operands,
                         const std::vector<PirType>& types,
                         const std::vector<std::string>& attributes);
  // Constants, which PIR has where others have attributes.
  PirId integers(Ints values);
  PirId number(double value, DType dtype = DType::Float32);

  const Program& program() const { return program_; }
  PirId id_of(ValueId value) const { return ids_.at(value); }
  void define(ValueId value, PirId id) { ids_[value] = id; }
  PirType type_of(ValueId value) const;
  // Does the call alone, by broadcasting, make up for a value that keeps its own sizes?
  bool only_broadcast(ValueId value) const;

 private:
  void check_ops() const;
  void add_parameter(const Tensor& tensor, ValueId value);
  void add_input(ValueId value);
  void add_output(ValueId value, size_t column);

  const Program& program_;
  std::map<ValueId, PirId> ids_;
  std::map<std::string, Tensor> parameters_;  // sorted as the file has them
  std::string ops_;
  PirId next_ = 1;
};

// A call of the program.
class Written {
 public:
  Written(Writer& writer, const Instruction& call) : writer(writer), call_(call) {}

  Writer& writer;

  bool has(std::string_view parameter) const { return value(parameter) != kNoValue; }
  ValueId value(std::string_view parameter) const;
  PirId operand(std::string_view parameter) const { return writer.id_of(value(parameter)); }
  std::vector<ValueId> values(std::string_view parameter) const;
  std::vector<PirId> operands(std::string_view parameter) const;
  PirType type(std::string_view parameter) const { return writer.type_of(value(parameter)); }
  PirType result(size_t i = 0) const { return writer.type_of(call_.results.at(i)); }
  ValueId result_value(size_t i = 0) const { return call_.results.at(i); }
  const Value& attribute(std::string_view parameter) const;
  std::vector<int64_t> list(std::string_view parameter) const;
  bool flag(std::string_view parameter) const { return attribute(parameter).as_bool(); }
  int64_t integer(std::string_view parameter) const { return attribute(parameter).as_int(); }
  double number(std::string_view parameter) const { return attribute(parameter).as_double(); }
  void define(PirId id, size_t i = 0) const { writer.define(call_.results.at(i), id); }

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  size_t place(std::string_view parameter) const;
  const Instruction& call_;
};

struct OpWriter {
  std::string_view op;
  void (*write)(const Written&, std::string_view op);
  std::string_view pir = {};  // empty: the same name
  bool broadcasts = false;    // its operands may have smaller sizes
  bool stays_small = false;   // its result may keep the sizes of its operand if readers broadcast
};
// Null if there is none.
const OpWriter* find_writer(std::string_view op);

}  // namespace oar::paddle
