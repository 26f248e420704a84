#include "oar/ops/core/schema_line.h"

#include <cctype>
#include <iterator>

namespace oar {
namespace {

// In the order of ArgType.
constexpr const char* kTypeNames[] = {"Tensor", "bool",  "int",   "float",  "Scalar",
                                      "str",    "dtype", "shape", "program"};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  [[noreturn]] void error(const char* expected) const {
    throw SchemaMistake("the schema '" + std::string(text_) + "' is malformed at character " +
                        std::to_string(at_) + ": expected " + expected + ".");
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(const char* token) {
    if (!accept(token)) error(token);
  }
  std::string word(const char* what) {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    if (start == at_ || std::isdigit(static_cast<unsigned char>(text_[start]))) error(what);
    return std::string(text_.substr(start, at_ - start));
  }
  uint32_t number() {
    skip();
    uint32_t value = 0;
    const size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) &&
           value < 100000)
      value = value * 10 + static_cast<uint32_t>(text_[at_++] - '0');
    if (start == at_) error("a number");
    return value;
  }
  // A default: up to the comma or parenthesis that ends the parameter.
  std::string literal() {
    skip();
    const size_t start = at_;
    int depth = 0;
    char quote = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '[' || c == '(') {
        ++depth;
      } else if (c == ']' || (c == ')' && depth > 0)) {
        --depth;
      } else if ((c == ',' || c == ')') && depth == 0) {
        break;
      }
    }
    if (start == at_) error("a default value");
    size_t end = at_;
    while (end > start && std::isspace(static_cast<unsigned char>(text_[end - 1]))) --end;
    return std::string(text_.substr(start, end - start));
  }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  void alias(char* name, bool* written) {
    if (!accept("(")) return;
    *name = word("an alias letter")[0];
    *written = accept("!");
    expect(")");
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

ArgType type_named(const std::string& name, const Parser& parser) {
  for (size_t i = 0; i < std::size(kTypeNames); ++i)
    if (name == kTypeNames[i]) return static_cast<ArgType>(i);
  parser.error("a type: Tensor, bool, int, float, Scalar, str, dtype, shape or program");
}

Parameter parse_parameter(Parser& p) {
  Parameter param;
  param.type = type_named(p.word("a type"), p);
  p.alias(&param.alias, &param.written);
  bool question = p.accept("?");
  if (p.accept("[]")) {
    param.list = true;
    param.optional_elements = question;
    question = p.accept("?");
  }
  param.optional = question;
  param.name = p.word("a parameter name");
  if (p.accept("=")) {
    param.has_default = true;
    param.default_text = p.literal();
  }
  return param;
}

Result parse_result(Parser& p) {
  Result result;
  if (p.word("Tensor") != "Tensor") p.error("Tensor");
  p.alias(&result.alias, &result.written);
  result.list = p.accept("[]");
  return result;
}

std::string alias_text(char alias, bool written) {
  if (!alias) return "";
  return std::string("(") + alias + (written ? "!)" : ")");
}

}  // namespace

std::string Parameter::type_name() const { return kTypeNames[static_cast<size_t>(type)]; }

std::string Parameter::type_text() const {
  std::string text = type_name() + alias_text(alias, written);
  if (optional_elements) text += "?";
  if (list) text += "[]";
  if (optional) text += "?";
  return text;
}

SchemaLine SchemaLine::parse(std::string_view text) {
  Parser p(text);
  SchemaLine schema;
  schema.name = p.word("the op's name");
  if (p.accept("@")) schema.version = p.number();
  p.expect("(");
  while (!p.accept(")")) {
    if (!schema.parameters.empty()) p.expect(",");
    schema.parameters.push_back(parse_parameter(p));
    for (size_t i = 0; i + 1 < schema.parameters.size(); ++i)
      if (schema.parameters[i].name == schema.parameters.back().name)
        p.error("a name not used yet");
    if (!schema.parameters.back().is_internal()) {
      if (schema.visible_ + 1 != schema.parameters.size())
        p.error("internal parameters (_name) at the end");
      ++schema.visible_;
    } else if (schema.parameters.back().default_text != "None") {
      p.error("the default None of an internal parameter (_name)");
    }
  }
  p.expect("->");
  if (p.accept("(")) {
    do {
      schema.results.push_back(parse_result(p));
      schema.results.back().name = p.word("a result name");
    } while (p.accept(","));
    p.expect(")");
  } else {
    schema.results.push_back(parse_result(p));
    schema.results.back().name = "out";
  }
  if (!p.done()) p.error("the end");
  return schema;
}

std::string SchemaLine::str() const { return text(parameters.size()); }
std::string SchemaLine::visible_str() const { return text(visible_); }

std::string SchemaLine::text(size_t count) const {
  std::string text = name + (version > 1 ? "@" + std::to_string(version) : "") + "(";
  for (size_t i = 0; i < count; ++i) {
    const Parameter& p = parameters[i];
    text += (i ? ", " : "") + p.type_text() + " " + p.name;
    if (p.has_default) text += " = " + p.default_text;
  }
  text += ") -> ";
  const bool many = results.size() > 1;
  if (many) text += "(";
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    text += i ? ", Tensor" : "Tensor";
    text += alias_text(r.alias, r.written);
    if (r.list) text += "[]";
    if (many) text += " " + r.name;
  }
  return text + (many ? ")" : "");
}

int SchemaLine::index_of(std::string_view parameter) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == parameter) return static_cast<int>(i);
  return -1;
}

}  // namespace oar
