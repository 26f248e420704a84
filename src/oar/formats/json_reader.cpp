#include "oar/formats/json_reader.h"

#include <charconv>
#include <set>

#include "oar/base/error.h"

namespace oar {
namespace {

constexpr int kMaxDepth = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The length of the well-formed UTF-8 character at the start of the text; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  // The second byte's range excludes overlong forms, surrogates and values beyond U+10FFFF.
  const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

void append_code_point(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

void JsonReader::error(std::string_view expected) const {
  fail(ErrorKind::InvalidArgument, "malformed JSON at byte {}: expected {}.", at_, expected);
}

char JsonReader::peek() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::accept(char c) {
  if (peek() != c || at_ == text_.size()) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char c, std::string_view what) {
  if (!accept(c)) error(what);
}

void JsonReader::enter() {
  if (++depth_ > kMaxDepth) error("less nesting");
}

void JsonReader::object(FunctionRef<void(const std::string& key)> member) {
  expect('{', "'{'");
  enter();
  std::set<std::string> seen;
  if (!accept('}')) {
    do {
      const std::string key = string();
      if (!seen.insert(key).second) error("a new key");
      expect(':', "':'");
      member(key);
    } while (accept(','));
    expect('}', "',' or '}'");
  }
  --depth_;
}

void JsonReader::array(FunctionRef<void()> element) {
  expect('[', "'['");
  enter();
  if (!accept(']')) {
    do {
      element();
    } while (accept(','));
    expect(']', "',' or ']'");
  }
  --depth_;
}

uint32_t JsonReader::hex4() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const int digit = is_digit(c)              ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                               : -1;
    if (digit < 0) error("four hexadecimal digits");
    code = code << 4 | static_cast<uint32_t>(digit);
  }
  return code;
}

void JsonReader::append_escape(std::string& out) {
  static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (c != 'u') {
    const std::size_t which = kLetters.find(c);
    if (which == std::string_view::npos || at_ == text_.size()) error("an escape");
    out += kMeant[which];
    ++at_;
    return;
  }
  ++at_;
  uint32_t code = hex4();
  if (code >= 0xDC00 && code < 0xE000) error("no lone surrogate");
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") error("the second surrogate");
    at_ += 2;
    const uint32_t second = hex4();
    if (second < 0xDC00 || second >= 0xE000) error("the second surrogate");
    code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
  }
  append_code_point(out, code);
}

void JsonReader::append_utf8(std::string& out) {
  const std::size_t length = utf8_length(text_.substr(at_));
  if (length == 0) error("UTF-8");
  if (length == 1 && static_cast<unsigned char>(text_[at_]) < 0x20) error("no control character");
  out += text_.substr(at_, length);
  at_ += length;
}

std::string JsonReader::string() {
  expect('"', "a string");
  std::string out;
  for (;;) {
    if (at_ == text_.size()) error("the end of a string");
    if (text_[at_] == '"') {
      ++at_;
      return out;
    }
    if (text_[at_] == '\\') {
      ++at_;
      append_escape(out);
    } else {
      append_utf8(out);
    }
  }
}

int64_t JsonReader::unsigned_integer() {
  peek();
  const std::size_t start = at_;
  int64_t value = 0;
  for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
    if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
        __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value))
      error("a number below 2^63");
  const bool leading_zero = at_ - start > 1 && text_[start] == '0';
  const bool goes_on =
      at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
  if (at_ == start || leading_zero || goes_on) error("an integer of at least 0");
  return value;
}

void JsonReader::literal(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) error("a value");
  at_ += word.size();
}

void JsonReader::skip_number() {
  const auto digits = [&] {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == start) error("a digit");
  };
  const auto next_is = [&](char a, char b) {
    return at_ < text_.size() && (text_[at_] == a || text_[at_] == b);
  };
  if (next_is('-', '-')) ++at_;
  if (next_is('0', '0')) {
    ++at_;
  } else {
    digits();
  }
  if (next_is('.', '.')) {
    ++at_;
    digits();
  }
  if (next_is('e', 'E')) {
    ++at_;
    if (next_is('+', '-')) ++at_;
    digits();
  }
}

JsonReader::Number JsonReader::number() {
  peek();
  const std::size_t start = at_;
  skip_number();
  const std::string_view text = text_.substr(start, at_ - start);
  Number made;
  int64_t integer = 0;
  const char *const begin = text.data(), *const end = begin + text.size();
  if (const auto read = std::from_chars(begin, end, integer);
      read.ec == std::errc() && read.ptr == end)
    made.integer = integer;
  if (std::from_chars(begin, end, made.value).ec == std::errc::invalid_argument) error("a number");
  return made;
}

bool JsonReader::boolean() {
  const bool value = peek() == 't';
  literal(value ? "true" : "false");
  return value;
}

void JsonReader::skip() {
  switch (peek()) {
    case '{':
      return object([&](const std::string&) { skip(); });
    case '[':
      return array([&] { skip(); });
    case '"':
      static_cast<void>(string());
      return;
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    default:
      return skip_number();
  }
}

void JsonReader::end() {
  peek();
  if (at_ != text_.size()) error("the end");
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace oar
