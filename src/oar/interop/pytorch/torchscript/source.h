// The source of TorchScript as archives have it, a small part of Python: classes, functions, branches, loops, and calls.
//
//   const SourceFile file = parse_source(text, "code/__torch__.py");
//   const Function* forward = file.classes[0].method("forward");
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace oar::pytorch {

struct Expression {
  enum Kind : uint8_t {
    None,
    Bool,
    Int,
    Float,
    Text,
    Name,
    Attribute,  // items[0].text
    Call,       // items[0](items[1], …), with `keywords`
    Item,       // items[0][items[1]]
    Tuple,
    List,
    Dict,      // keys and values in turn
    Not,       // of items[0]
    Negative,  // of items[0]
    Choice,    // items[0] if items[1] else items[2]
  };
  Kind kind = None;
  int line = 0;
  int64_t integer = 0;  // of a flag, too
  double number = 0;
  std::string text;
  std::vector<Expression> items;
  std::vector<std::string> keywords;  // of the arguments; empty for those without

  // "torch.nn.relu" for names and attributes of names, else nothing.
  std::string dotted() const;
};

struct Statement {
  enum Kind : uint8_t { Pass, Value, Assign, Return, If, While, For, With, Break, Continue };
  Kind kind = Pass;
  int line = 0;
  bool unpacks = false;  // "a, = …"
  std::vector<Expression>
      targets;       // of an assignment, the variable of a loop, the name of `with … as`
  Expression value;  // what is assigned, returned, iterated or tested
  std::vector<Statement> body, otherwise;
};

// "Dict[str, List[Tensor]]" has the arguments "str" and "List[Tensor]".
struct Type {
  std::string name;
  std::vector<Type> arguments;

  std::string str() const;
  bool is(std::string_view n) const { return name == n; }
};
Type type_of(const Expression& written);

struct Field {
  std::string name;
  Type type;
  bool has_value = false;
  Expression value;  // of a constant, or the default of a parameter
};

struct Function {
  std::string name;
  std::string path;  // of its file, for errors
  std::vector<Field> parameters;
  Type result;
  std::vector<Statement> body;
};

struct Class {
  std::string name, base;
  std::vector<Field> fields;
  std::vector<std::string> parameters, buffers;
  bool lists_buffers = false;  // older archives do not say what a buffer is
  std::vector<Function> methods;

  const Function* method(std::string_view wanted) const;
  const Field* field(std::string_view wanted) const;
};

struct SourceFile {
  std::string path;
  std::vector<Class> classes;
  std::vector<Function> functions;
};

// `path` is for errors.
SourceFile parse_source(std::string_view text, const std::string& path);

}  // namespace oar::pytorch
