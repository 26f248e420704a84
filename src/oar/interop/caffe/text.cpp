#include "oar/interop/caffe/text.h"

#include <charconv>

#include "oar/base/error.h"

namespace oar::caffe {
namespace {

constexpr int kDeepest = 50;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '+';
}

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  TextMessage whole() {
    TextMessage message = fields_until('\0', 0);
    return message;
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    size_t line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n' ? 1 : 0;
    fail(ErrorKind::InvalidArgument, "line {} of the text is wrong: {}.", line, what);
  }

  char peek() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f')
        ++at_;
      else
        return c;
    }
    return '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  std::string word() {
    peek();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) wrong("a name or a value is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }

  char escaped() {
    if (at_ >= text_.size()) wrong("it ends inside of a string");
    const char c = text_[at_++];
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    if (c == 'r') return '\r';
    if (c >= '0' && c <= '7') {
      int code = c - '0';
      for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i)
        code = code * 8 + (text_[at_++] - '0');
      return static_cast<char>(code);
    }
    return c;
  }

  std::string quoted() {
    std::string value;
    while (peek() == '"' || peek() == '\'') {  // strings that follow one another are one
      const char end = text_[at_++];
      while (true) {
        if (at_ >= text_.size() || text_[at_] == '\n') wrong("a string has no end");
        const char c = text_[at_++];
        if (c == end) break;
        value += c == '\\' ? escaped() : c;
      }
    }
    return value;
  }

  std::string scalar() {
    const char c = peek();
    return c == '"' || c == '\'' ? quoted() : word();
  }

  void add_value(TextMessage& to, const std::string& name, int depth) {
    TextMessage::Field field{name, {}, false, {}};
    if (const bool braces = take('{'); braces || take('<')) {
      field.is_message = true;
      field.message = fields_until(braces ? '}' : '>', depth + 1);
    } else {
      field.value = scalar();
    }
    to.fields.push_back(std::move(field));
  }

  TextMessage fields_until(char end, int depth) {
    if (depth > kDeepest) wrong("messages are nested too deeply");
    TextMessage message;
    while (true) {
      if (end != '\0' && take(end)) return message;
      if (peek() == '\0') {
        if (end == '\0' && at_ >= text_.size()) return message;
        wrong("a message has no end");
      }
      const std::string name = word();
      const bool colon = take(':');
      if (colon && take('[')) {
        while (!take(']')) {
          add_value(message, name, depth);
          take(',');
        }
      } else {
        if (!colon && peek() != '{' && peek() != '<') wrong("after a name comes ':' or '{'");
        add_value(message, name, depth);
      }
      if (!take(';')) take(',');
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

template <class T>
T parsed(const TextMessage::Field& field, const char* what) {
  std::string_view text = field.value;
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  user_check(!field.is_message && error == std::errc() && (rest.empty() || rest == "f"),
             ErrorKind::InvalidArgument, "the field '{}' is '{}', which is no {}.", field.name,
             field.value.substr(0, 40), what);
  return value;
}

bool truth(const TextMessage::Field& field) {
  const std::string& v = field.value;
  if (v == "true" || v == "t" || v == "1") return true;
  user_check(v == "false" || v == "f" || v == "0", ErrorKind::InvalidArgument,
             "the field '{}' is '{}', which is neither true nor false.", field.name,
             v.substr(0, 40));
  return false;
}

// Of a field that is given twice the last one holds.
const TextMessage::Field* last(const TextMessage& message, std::string_view name) {
  for (auto field = message.fields.rbegin(); field != message.fields.rend(); ++field)
    if (field->name == name) return &*field;
  return nullptr;
}

}  // namespace

TextMessage parse_text_message(std::string_view text) { return TextReader(text).whole(); }

bool TextMessage::has(std::string_view name) const { return last(*this, name) != nullptr; }

std::string TextMessage::text(std::string_view name, std::string_view otherwise) const {
  const Field* field = last(*this, name);
  return field ? field->value : std::string(otherwise);
}

int64_t TextMessage::integer(std::string_view name, int64_t otherwise) const {
  const Field* field = last(*this, name);
  return field ? parsed<int64_t>(*field, "integer") : otherwise;
}

double TextMessage::number(std::string_view name, double otherwise) const {
  const Field* field = last(*this, name);
  return field ? parsed<double>(*field, "number") : otherwise;
}

bool TextMessage::flag(std::string_view name, bool otherwise) const {
  const Field* field = last(*this, name);
  return field ? truth(*field) : otherwise;
}

std::vector<std::string> TextMessage::texts(std::string_view name) const {
  std::vector<std::string> list;
  for (const Field& field : fields)
    if (field.name == name) list.push_back(field.value);
  return list;
}

std::vector<int64_t> TextMessage::integers(std::string_view name) const {
  std::vector<int64_t> list;
  for (const Field& field : fields)
    if (field.name == name) list.push_back(parsed<int64_t>(field, "integer"));
  return list;
}

std::vector<double> TextMessage::numbers(std::string_view name) const {
  std::vector<double> list;
  for (const Field& field : fields)
    if (field.name == name) list.push_back(parsed<double>(field, "number"));
  return list;
}

std::vector<const TextMessage*> TextMessage::all(std::string_view name) const {
  std::vector<const TextMessage*> list;
  for (const Field& field : fields)
    if (field.name == name && field.is_message) list.push_back(&field.message);
  return list;
}

const TextMessage& TextMessage::message(std::string_view name) const {
  static const TextMessage none;
  const Field* field = last(*this, name);
  return field && field->is_message ? field->message : none;
}

}  // namespace oar::caffe
