#include "oar/interop/pytorch/torchscript/lexer.h"

#include "oar/base/error.h"

namespace oar::pytorch {
namespace {

constexpr size_t kMostTokens = size_t{1} << 23;
constexpr size_t kMostBlocks = 100;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& path) : source_(source), path_(path) {}

  std::vector<Token> all() {
    while (at_ < source_.size()) {
      if (starts_line_ && open_ == 0) {
        take_indent();
        continue;
      }
      take_one();
    }
    add(Token::NewLine);
    for (; !indents_.empty(); indents_.pop_back()) add(Token::End);
    add(Token::NewLine);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return ahead < source_.size() - at_ ? source_[at_ + ahead] : '\0';
  }

  void add(Token::Kind kind, std::string text = {}) {
    if (tokens_.size() > kMostTokens) refuse_source(path_, line_, "the source is too long");
    tokens_.push_back({kind, std::move(text), line_});
  }

  // Empty lines and comments do not begin or end a block.
  void take_indent() {
    size_t width = 0;
    while (peek(width) == ' ') ++width;
    const char first = peek(width);
    if (first == '\n' || first == '\r' || first == '#') {
      at_ += width;
      starts_line_ = false;
      return;
    }
    at_ += width;
    starts_line_ = false;
    const size_t outer = indents_.empty() ? 0 : indents_.back();
    if (width > outer) {
      if (indents_.size() >= kMostBlocks)
        refuse_source(path_, line_, "blocks are nested too deeply");
      indents_.push_back(width);
      add(Token::Begin);
    }
    while (!indents_.empty() && width < indents_.back()) {
      indents_.pop_back();
      add(Token::End);
    }
    if (width != (indents_.empty() ? 0 : indents_.back()))
      refuse_source(path_, line_, "a line is indented in a way that fits no block");
  }

  void take_one() {
    const char c = peek();
    if (c == '\n') {
      if (open_ == 0 && !tokens_.empty() && tokens_.back().kind != Token::NewLine)
        add(Token::NewLine);
      ++line_;
      ++at_;
      starts_line_ = open_ == 0;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < source_.size() && peek() != '\n') ++at_;
    } else if (is_letter(c)) {
      const size_t from = at_;
      while (is_letter(peek()) || is_digit(peek())) ++at_;
      add(Token::Word, std::string(source_.substr(from, at_ - from)));
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      take_number();
    } else if (c == '"' || c == '\'') {
      take_text(c);
    } else {
      take_sign(c);
    }
  }

  void take_number() {
    const size_t from = at_;
    const auto is_exponent = [&](size_t at) { return source_[at] == 'e' || source_[at] == 'E'; };
    while (is_letter(peek()) || is_digit(peek()) || peek() == '.' ||
           ((peek() == '-' || peek() == '+') && at_ > from && is_exponent(at_ - 1)))
      ++at_;
    add(Token::Number, std::string(source_.substr(from, at_ - from)));
  }

  char escaped() {
    const char c = peek();
    ++at_;
    static constexpr std::string_view kNames = "ntrabfv", kMeanings = "\n\t\r\a\b\f\v";
    if (const size_t found = kNames.find(c); found != std::string_view::npos)
      return kMeanings[found];
    int value = 0, digits = 0;
    if (c >= '0' && c <= '7') {
      for (--at_; digits < 3 && peek() >= '0' && peek() <= '7'; ++digits, ++at_)
        value = value * 8 + (peek() - '0');
      return static_cast<char>(value);
    }
    if (c != 'x') return c;
    const auto hex = [](char d) {
      if (is_digit(d)) return d - '0';
      const char low = static_cast<char>(d | 0x20);
      return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
    };
    for (; digits < 2 && hex(peek()) >= 0; ++digits, ++at_) value = value * 16 + hex(peek());
    return static_cast<char>(value);
  }

  void take_text(char quote) {
    std::string text;
    for (++at_; peek() != quote;) {
      if (at_ >= source_.size() || peek() == '\n')
        refuse_source(path_, line_, "a text does not end");
      const char c = peek();
      ++at_;
      text += c == '\\' ? escaped() : c;
    }
    ++at_;
    add(Token::Text, std::move(text));
  }

  void take_sign(char c) {
    if (c == '(' || c == '[' || c == '{') ++open_;
    if ((c == ')' || c == ']' || c == '}') && open_ > 0) --open_;
    const std::string_view two = source_.substr(at_, 2);
    const bool arrow = two == "->";
    static constexpr std::string_view kSigns = "()[]{},:.=-+*/<>!%&|^~@";
    if (kSigns.find(c) == std::string_view::npos)
      refuse_source(path_, line_,
                    format("the character {} has no meaning here",
                           static_cast<int>(static_cast<unsigned char>(c))));
    add(Token::Sign, std::string(arrow ? two : source_.substr(at_, 1)));
    at_ += arrow ? 2 : 1;
  }

  const std::string_view source_;
  const std::string& path_;
  size_t at_ = 0, open_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
  std::vector<size_t> indents_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, const std::string& path) {
  return Lexer(source, path).all();
}

void refuse_source(const std::string& path, int line, std::string_view what) {
  fail(ErrorKind::InvalidArgument, "{}, line {}: {}.", path, line, what);
}

}  // namespace oar::pytorch
