#include "oar/ir/text_reader.h"

#include <algorithm>
#include <charconv>

#include "oar/base/error.h"

namespace oar {
namespace {

constexpr int kDeepest = 64;  // nesting of sizes: recursion must end

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word_part(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

}  // namespace

void TextReader::fail_here(const std::string& problem) const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? at_ + 1 : at_ - start;
  fail(ErrorKind::InvalidArgument, "program text, line {}, column {}: {}.", line, column, problem);
}

void TextReader::expected(std::string_view what) const {
  std::string_view rest = text_.substr(at_, 20);
  rest = rest.substr(0, rest.find('\n'));
  fail_here(
      format("{} is expected, not {}", what, rest.empty() ? "the end" : format("'{}'", rest)));
}

void TextReader::skip_blanks() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
}

bool TextReader::at_end() { return peek() == 0; }

char TextReader::peek() {
  skip_blanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool TextReader::at_word(std::string_view word) {
  skip_blanks();
  if (!text_.substr(at_).starts_with(word)) return false;
  const size_t after = at_ + word.size();
  return !is_letter(word.front()) || after == text_.size() || !is_word_part(text_[after]);
}

bool TextReader::accept(std::string_view word) {
  if (!at_word(word)) return false;
  at_ += word.size();
  return true;
}

void TextReader::expect(std::string_view word) {
  if (!accept(word)) expected(format("'{}'", word));
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_word_part);
}

std::string TextReader::name() {
  if (!is_letter(peek())) expected("a name");
  const size_t start = at_;
  while (at_ < text_.size() && is_word_part(text_[at_])) ++at_;
  return std::string(text_.substr(start, at_ - start));
}

std::string TextReader::any_name() { return peek() == '"' ? string() : name(); }

std::string TextReader::label() {
  expect("%");
  if (peek() == '"') {
    const std::string quoted = string();
    return is_plain_name(quoted) ? quoted : '"' + quoted;
  }
  const size_t start = at_;
  while (at_ < text_.size() && is_word_part(text_[at_])) ++at_;
  if (at_ == start) expected("the name of a value");
  return std::string(text_.substr(start, at_ - start));
}

int64_t TextReader::number() {
  skip_blanks();
  int64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [after, error] = std::from_chars(text_.data() + at_, end, value);
  if (error == std::errc::invalid_argument) expected("an integer");
  if (error != std::errc{}) fail_here("the integer is too large");
  at_ = static_cast<size_t>(after - text_.data());
  return value;
}

int64_t TextReader::integer() {
  const int64_t value = number();
  // Lower numbers are not sizes but words of symbols.
  if (Dim(value).is_symbolic()) fail_here("the integer is too large");
  return value;
}

std::string TextReader::number_word() {
  skip_blanks();
  const size_t start = at_;
  const auto belongs = [&](char c) {
    const bool sign = c == '-' || c == '+';
    return sign ? at_ == start || text_[at_ - 1] == 'e' : is_digit(c) || is_letter(c) || c == '.';
  };
  while (at_ < text_.size() && belongs(text_[at_])) ++at_;
  if (at_ == start) expected("a number");
  return std::string(text_.substr(start, at_ - start));
}

std::string TextReader::string() {
  expect("\"");
  std::string out;
  for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      ++at_;
      out += text_[at_] == 'n' ? '\n' : text_[at_];
    } else {
      out += text_[at_];
    }
  }
  expect("\"");
  return out;
}

std::string TextReader::comment() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  if (at_ >= text_.size() || text_[at_] != '#') return {};
  const size_t start = std::min(text_.find_first_not_of("# \t", at_), text_.size());
  at_ = std::min(text_.find('\n', at_), text_.size());
  return start < at_ ? std::string(text_.substr(start, at_ - start)) : std::string();
}

Dim TextReader::dim(std::unordered_map<std::string, Dim>& symbols) {
  if (++depth_ > kDeepest) fail_here("the size is nested too deeply");
  Dim sum = term(symbols);
  for (;;) {
    if (accept("+"))
      sum = sum + term(symbols);
    else if (accept("-"))
      sum = sum - term(symbols);
    else
      break;
  }
  --depth_;
  return sum;
}

Dim TextReader::term(std::unordered_map<std::string, Dim>& symbols) {
  Dim product = factor(symbols);
  while (accept("*")) product = product * factor(symbols);
  return product;
}

Dim TextReader::factor(std::unordered_map<std::string, Dim>& symbols) {
  if (is_digit(peek()) || peek() == '-') return integer();
  const std::string word = name();
  if (!accept("(")) {
    const auto [it, fresh] = symbols.emplace(word, Dim());
    if (fresh) it->second = Dim::symbol(word, 2 + static_cast<int64_t>(symbols.size()));
    return it->second;
  }
  const Dim left = dim(symbols);
  expect(",");
  const Dim right = dim(symbols);
  expect(")");
  if (word == "floordiv") return floor_div(left, right);
  if (word == "mod") return floor_mod(left, right);
  if (word == "min") return min_of(left, right);
  if (word == "max") return max_of(left, right);
  fail_here(format("'{}' is not one of floordiv, mod, min, max", word));
}

}  // namespace oar
