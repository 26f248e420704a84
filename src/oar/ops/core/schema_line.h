// The schema line of an op, parsed. This is the only parser: tools/generate compiles it too, before anything
// else is built, so it needs the standard library alone.
//
//   softmax(Tensor x, int axis = -1) -> Tensor
//   topk(Tensor x, int k, int axis = -1) -> (Tensor values, Tensor indices)
//   add_(Tensor(a!) x, Tensor y) -> Tensor(a!)       writes x
//   reshape(Tensor(a) x, shape shape) -> Tensor(a)   a view of x
//   conv2d@2(...)                                    version 2 of the schema
//
// Types: Tensor, bool, int, float, Scalar, str, dtype, shape (a list of dims), program, each with `?` for
// optional and `[]` for a list (Tensor[], Tensor?[], int[], float[]). A parameter whose name begins with an
// underscore is internal: the last ones, with the default None, and not part of the Python function.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {

// A kernel may be given all but the last.
enum class ArgType : uint8_t { Tensor, Bool, Int, Float, Scalar, String, DType, Shape, Program };

struct Parameter {
  std::string name;
  ArgType type = ArgType::Tensor;
  bool list = false;
  bool optional = false;           // None is accepted
  bool optional_elements = false;  // Tensor?[]
  char alias = 0;                  // 'a' in Tensor(a)
  bool written = false;            // Tensor(a!)
  bool has_default = false;
  std::string default_text;

  // Of the library alone, by its name: "_part". Functions in Python do not have it.
  bool is_internal() const { return name.starts_with('_'); }
  bool is_tensor() const { return type == ArgType::Tensor; }
  std::string type_name() const;  // "int"
  std::string type_text() const;  // "int[]?"
};

struct Result {
  std::string name;  // "out" where the schema gives none
  bool list = false;
  char alias = 0;
  bool written = false;
};

// The line cannot be parsed; the text shows where.
class SchemaMistake : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct SchemaLine {
  std::string name;
  uint32_t version = 1;
  std::vector<Parameter> parameters;
  std::vector<Result> results;

  // Throws SchemaMistake.
  static SchemaLine parse(std::string_view text);
  std::string str() const;
  std::string visible_str() const;                 // without internal parameters
  int index_of(std::string_view parameter) const;  // -1 where there is none
  // Parameters that users see; internal ones follow them.
  size_t visible_count() const { return visible_; }
  bool returns_list() const { return results.size() == 1 && results[0].list; }

 private:
  std::string text(size_t count) const;  // with the first parameters
  size_t visible_ = 0;
};

}  // namespace oar
