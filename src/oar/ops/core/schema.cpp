#include "oar/ops/core/schema.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "oar/base/error.h"
#include "oar/ops/core/program_args.h"

namespace oar {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  [[noreturn]] void error(const char* expected) const {
    fail(ErrorKind::InvalidArgument, "the schema '{}' is malformed at character {}: expected {}.",
         text_, at_, expected);
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
  if (name == "Tensor") return ArgType::Tensor;
  if (name == "bool") return ArgType::Bool;
  if (name == "int") return ArgType::Int;
  if (name == "float") return ArgType::Float;
  if (name == "Scalar") return ArgType::Scalar;
  if (name == "str") return ArgType::String;
  if (name == "dtype") return ArgType::DType;
  if (name == "shape") return ArgType::Shape;
  if (name == "program") return kProgramType;
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

Value default_value(const Parameter& p, std::vector<int64_t>& ints, std::vector<double>& doubles) {
  const std::string& text = p.default_text;
  const auto bad = [&]() {
    fail(ErrorKind::InvalidArgument, "the default '{}' of {} is not a {}.", text, p.name,
         p.type_text());
  };
  if (!p.has_default || text == "None") return {};
  if (text == "True" || text == "False") return text == "True";
  if (text.front() == '\'' || text.front() == '"')
    return std::string_view(text).substr(1, text.size() - 2);
  if (p.type == ArgType::DType) {
    const auto dtype = dtype_from_name(text);
    if (!dtype) bad();
    return *dtype;
  }
  std::vector<std::string> items;
  std::string item;
  for (char c : text) {
    if (c == ',') {
      items.push_back(item);
      item.clear();
    } else if (c != '[' && c != ']' && c != ' ')
      item += c;
  }
  if (!item.empty()) items.push_back(item);
  const bool list = p.list || p.type == ArgType::Shape;
  const bool real = p.type == ArgType::Float || text.find_first_of(".e") != std::string::npos;
  try {
    size_t used = 0;
    const auto number = [&](const std::string& word) {
      const Value value =
          real ? Value(std::stod(word, &used)) : Value(int64_t{std::stoll(word, &used)});
      if (used != word.size() || p.type == ArgType::Bool || p.type == ArgType::String) bad();
      return value;
    };
    if (!list) return number(text);
    for (const std::string& i : items) {
      if (real)
        doubles.push_back(number(i).as_double());
      else
        ints.push_back(number(i).as_int());
    }
  } catch (const std::logic_error&) {  // what stod and stoll throw
    bad();
  }
  return real ? Value(std::span<const double>(doubles)) : Value(Ints(ints));
}

}  // namespace

std::string Parameter::type_text() const {
  static constexpr const char* kNames[] = {"Tensor", "bool",  "int",   "float",  "Scalar",
                                           "str",    "dtype", "shape", "program"};
  std::string text = kNames[static_cast<int>(type)];
  if (alias) text += format("({}{})", alias, written ? "!" : "");
  if (optional_elements) text += "?";
  if (list) text += "[]";
  if (optional) text += "?";
  return text;
}

Schema Schema::parse(std::string_view text) {
  Parser p(text);
  Schema schema;
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
  schema.parse_defaults();
  return schema;
}

void Schema::parse_defaults() {
  defaults_ = std::make_shared<Frame>();
  for (const Parameter& p : parameters) {
    std::vector<int64_t> ints;
    std::vector<double> doubles;
    defaults_->push(default_value(p, ints, doubles));
  }
}

std::string Schema::str() const { return text(parameters.size()); }
std::string Schema::visible_str() const { return text(visible_); }

std::string Schema::text(size_t count) const {
  std::string text = name + (version > 1 ? format("@{}", version) : "") + "(";
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
    if (r.alias) text += format("({}{})", r.alias, r.written ? "!" : "");
    if (r.list) text += "[]";
    if (many) text += " " + r.name;
  }
  return text + (many ? ")" : "");
}

bool takes_programs(const Schema& schema) {
  return std::any_of(schema.parameters.begin(), schema.parameters.end(),
                     [](const Parameter& p) { return p.type == kProgramType; });
}

bool takes_branches(const Schema& schema) {
  return std::any_of(schema.parameters.begin(), schema.parameters.end(),
                     [](const Parameter& p) { return p.type == kProgramType && p.list; });
}

int Schema::index_of(std::string_view parameter) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == parameter) return static_cast<int>(i);
  return -1;
}

}  // namespace oar
