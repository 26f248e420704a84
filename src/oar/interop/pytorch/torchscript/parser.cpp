#include <charconv>
#include <limits>

#include "oar/base/error.h"
#include "oar/interop/pytorch/torchscript/lexer.h"
#include "oar/interop/pytorch/torchscript/source.h"

namespace oar::pytorch {
namespace {

constexpr int kDeepest = 120;

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : tokens_(tokens_of(text, path)) {
    file_.path = path;
  }

  SourceFile whole() {
    while (next_ + 1 < tokens_.size()) {
      if (take(Token::NewLine)) continue;
      if (takes_word("class"))
        file_.classes.push_back(class_after());
      else if (takes_word("def"))
        file_.functions.push_back(function_after());
      else
        skip_line();  // what older archives import, and their version
    }
    return std::move(file_);
  }

 private:
  // ---- tokens ----------------------------------------------------------------------------------

  const Token& token() const { return tokens_[std::min(next_, tokens_.size() - 1)]; }
  [[noreturn]] void refuse(std::string_view what) const {
    refuse_source(file_.path, token().line, what);
  }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    refuse(format("'{}' stands where {} is expected", token().text.substr(0, 40), wanted));
  }
  bool take(Token::Kind kind) {
    if (token().kind != kind) return false;
    ++next_;
    return true;
  }
  bool is_sign(std::string_view text) const {
    return token().kind == Token::Sign && token().text == text;
  }
  bool takes_sign(std::string_view text) {
    if (!is_sign(text)) return false;
    ++next_;
    return true;
  }
  void need_sign(std::string_view text) {
    if (!takes_sign(text)) unexpected(format("'{}'", text));
  }
  bool is_word(std::string_view text) const {
    return token().kind == Token::Word && token().text == text;
  }
  bool takes_word(std::string_view text) {
    if (!is_word(text)) return false;
    ++next_;
    return true;
  }
  std::string name() {
    if (token().kind != Token::Word) unexpected("a name");
    return tokens_[next_++].text;
  }
  void end_line() {
    if (!take(Token::NewLine)) unexpected("the end of the line");
  }
  void skip_line() {
    if (token().kind == Token::Begin) refuse("a block begins where none is expected");
    while (token().kind != Token::NewLine) ++next_;
  }

  // Not more of them within each other than the stack bears.
  struct Nested {
    explicit Nested(Parser& p) : parser(p) {
      if (++parser.depth_ > kDeepest) parser.refuse("expressions are nested too deeply");
    }
    ~Nested() { --parser.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    Parser& parser;
  };

  // ---- expressions -----------------------------------------------------------------------------

  Expression made(Expression::Kind kind) const {
    Expression e;
    e.kind = kind;
    e.line = token().line;
    return e;
  }
  Expression with_item(Expression::Kind kind, Expression item) const {
    Expression e = made(kind);
    e.items.push_back(std::move(item));
    return e;
  }

  Expression expression() {
    const Nested nested(*this);
    Expression first = unary();
    if (!takes_word("if")) return first;
    Expression choice = with_item(Expression::Choice, std::move(first));
    choice.items.push_back(unary());
    if (!takes_word("else")) unexpected("'else'");
    choice.items.push_back(expression());
    return choice;
  }

  Expression unary() {
    const Nested nested(*this);
    if (takes_word("not")) return with_item(Expression::Not, unary());
    if (!takes_sign("-")) return with_parts(atom());
    Expression inner = unary();
    if (inner.kind == Expression::Int && inner.integer != std::numeric_limits<int64_t>::min()) {
      inner.integer = -inner.integer;
      return inner;
    }
    if (inner.kind == Expression::Float) {
      inner.number = -inner.number;
      return inner;
    }
    return with_item(Expression::Negative, std::move(inner));
  }

  Expression with_parts(Expression inner) {
    for (int parts = 0;; ++parts) {
      if (parts > kDeepest) refuse("expressions are nested too deeply");
      if (takes_sign(".")) {
        inner = with_item(Expression::Attribute, std::move(inner));
        inner.text = name();
      } else if (takes_sign("(")) {
        inner = with_item(Expression::Call, std::move(inner));
        add_arguments(inner);
      } else if (takes_sign("[")) {
        inner = with_item(Expression::Item, std::move(inner));
        Expression index = expression();
        if (is_sign(",")) {
          index = with_item(Expression::Tuple, std::move(index));
          while (takes_sign(","))
            if (!is_sign("]")) index.items.push_back(expression());
        }
        inner.items.push_back(std::move(index));
        need_sign("]");
      } else {
        return inner;
      }
    }
  }

  void add_arguments(Expression& call) {
    while (!takes_sign(")")) {
      std::string keyword;
      if (token().kind == Token::Word && next_ + 1 < tokens_.size() &&
          tokens_[next_ + 1].kind == Token::Sign && tokens_[next_ + 1].text == "=") {
        keyword = name();
        ++next_;
      }
      call.keywords.push_back(std::move(keyword));
      call.items.push_back(expression());
      if (!is_sign(")")) need_sign(",");
    }
  }

  Expression atom() {
    if (token().kind == Token::Number) return number();
    if (token().kind == Token::Text) {
      Expression e = made(Expression::Text);
      while (token().kind == Token::Text) e.text += tokens_[next_++].text;
      return e;
    }
    if (takes_sign("(")) return parenthesised();
    if (takes_sign("[")) return listed(made(Expression::List), "]");
    if (takes_sign("{")) return dictionary();
    if (token().kind != Token::Word) unexpected("an expression");
    Expression e = made(Expression::Name);
    e.text = name();
    if (e.text == "None") e.kind = Expression::None;
    if (e.text == "True" || e.text == "False") e.kind = Expression::Bool;
    e.integer = e.text == "True" ? 1 : 0;
    if (e.text == "inf" || e.text == "nan") {
      e.kind = Expression::Float;
      e.number = e.text == "inf" ? std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::quiet_NaN();
    }
    return e;
  }

  Expression number() {
    Expression e = made(Expression::Int);
    const std::string text = tokens_[next_++].text;
    const char* end = text.data() + text.size();
    auto read = std::from_chars(text.data(), end, e.integer);
    if (read.ec == std::errc() && read.ptr == end) return e;
    e.kind = Expression::Float;
    read = std::from_chars(text.data(), end, e.number);
    if (read.ptr != end) refuse(format("'{}' is no number", text.substr(0, 40)));
    if (read.ec == std::errc::result_out_of_range)
      e.number =
          text.find("e-") != std::string::npos ? 0.0 : std::numeric_limits<double>::infinity();
    return e;
  }

  Expression listed(Expression list, std::string_view end) {
    while (!takes_sign(end)) {
      list.items.push_back(expression());
      if (!is_sign(end)) need_sign(",");
    }
    return list;
  }

  Expression parenthesised() {
    Expression tuple = made(Expression::Tuple);
    if (takes_sign(")")) return tuple;
    Expression first = expression();
    if (takes_sign(")")) return first;
    need_sign(",");
    tuple.items.push_back(std::move(first));
    return listed(std::move(tuple), ")");
  }

  Expression dictionary() {
    Expression dict = made(Expression::Dict);
    while (!takes_sign("}")) {
      dict.items.push_back(expression());
      need_sign(":");
      dict.items.push_back(expression());
      if (!is_sign("}")) need_sign(",");
    }
    return dict;
  }

  // ---- statements ------------------------------------------------------------------------------

  std::vector<Statement> block() {
    const Nested nested(*this);
    need_sign(":");
    end_line();
    std::vector<Statement> body;
    if (!take(Token::Begin)) return body;
    while (!take(Token::End)) {
      if (take(Token::NewLine)) continue;
      body.push_back(statement());
    }
    return body;
  }

  Statement statement() {
    Statement s;
    s.line = token().line;
    if (takes_word("if")) return branch(std::move(s));
    if (takes_word("while")) return block_of(std::move(s), Statement::While);
    if (takes_word("for")) return loop(std::move(s));
    if (takes_word("with")) return block_of(std::move(s), Statement::With);
    if (takes_word("return")) {
      s.kind = Statement::Return;
      if (token().kind != Token::NewLine) s.value = expressions().first;
    } else if (takes_word("pass")) {
      s.kind = Statement::Pass;
    } else if (takes_word("break")) {
      s.kind = Statement::Break;
    } else if (takes_word("continue")) {
      s.kind = Statement::Continue;
    } else {
      assignment(s);
    }
    end_line();
    return s;
  }

  Statement branch(Statement s) {
    const Nested nested(*this);
    s.kind = Statement::If;
    s.value = expression();
    s.body = block();
    const int line = token().line;
    if (takes_word("elif")) {
      Statement inner;
      inner.line = line;
      s.otherwise.push_back(branch(std::move(inner)));
    } else if (takes_word("else")) {
      s.otherwise = block();
    }
    return s;
  }

  Statement block_of(Statement s, Statement::Kind kind) {
    s.kind = kind;
    s.value = expression();
    if (kind == Statement::With && takes_word("as")) s.targets.push_back(expression());
    s.body = block();
    return s;
  }

  Statement loop(Statement s) {
    s.targets = expressions_apart();
    if (!takes_word("in")) unexpected("'in'");
    return block_of(std::move(s), Statement::For);
  }

  std::vector<Expression> expressions_apart() {
    std::vector<Expression> all{expression()};
    while (takes_sign(",")) {
      if (is_sign("=") || is_word("in") || token().kind == Token::NewLine) break;
      all.push_back(expression());
    }
    return all;
  }
  // Several are a tuple; and whether there was a comma.
  std::pair<Expression, bool> expressions() {
    const size_t from = next_;
    std::vector<Expression> all = expressions_apart();
    const bool comma = tokens_[next_ - 1].text == "," && next_ > from;
    if (all.size() == 1 && !comma) return {std::move(all[0]), false};
    Expression tuple = made(Expression::Tuple);
    tuple.items = std::move(all);
    return {std::move(tuple), true};
  }

  void assignment(Statement& s) {
    auto [first, several] = expressions();
    if (takes_sign(":")) expression();  // the type of a variable
    if (!takes_sign("=")) {
      s.kind = Statement::Value;
      s.value = std::move(first);
      return;
    }
    s.kind = Statement::Assign;
    s.unpacks = several;
    if (several)
      s.targets = std::move(first.items);
    else
      s.targets.push_back(std::move(first));
    s.value = expressions().first;
  }

  // ---- functions and classes -------------------------------------------------------------------

  Field parameter() {
    Field p;
    p.name = name();
    if (takes_sign(":")) p.type = type_of(expression());
    p.has_value = takes_sign("=");
    if (p.has_value) p.value = expression();
    return p;
  }

  Function function_after() {
    Function f;
    f.name = name();
    f.path = file_.path;
    need_sign("(");
    while (!takes_sign(")")) {
      f.parameters.push_back(parameter());
      if (!is_sign(")")) need_sign(",");
    }
    if (takes_sign("->")) f.result = type_of(expression());
    f.body = block();
    return f;
  }

  Class class_after() {
    Class c;
    c.name = name();
    if (takes_sign("(")) {
      if (!is_sign(")")) c.base = expression().dotted();
      need_sign(")");
    }
    need_sign(":");
    end_line();
    if (!take(Token::Begin)) return c;
    while (!take(Token::End)) {
      if (take(Token::NewLine)) continue;
      if (takes_word("def"))
        c.methods.push_back(function_after());
      else
        add_field(c);
    }
    return c;
  }

  static std::vector<std::string> texts_in(const Expression& list) {
    std::vector<std::string> texts;
    for (const Expression& item : list.items) texts.push_back(item.text);
    return texts;
  }

  void add_field(Class& c) {
    if (takes_word("pass")) return end_line();
    const Expression target = expression();
    Field f;
    f.name = target.text;
    // __annotations__["0"] = …: a name that Python could not write
    const bool annotated = target.kind == Expression::Item &&
                           target.items[0].text == "__annotations__" &&
                           target.items[1].kind == Expression::Text;
    if (annotated) f.name = target.items[1].text;
    if (takes_sign(":")) f.type = type_of(expression());
    if (takes_sign("=")) {
      f.has_value = true;
      f.value = expressions().first;
    }
    end_line();
    if (annotated && f.has_value) {
      f.type = type_of(f.value);
      f.has_value = false;
    }
    if (f.name == "__parameters__") {
      c.parameters = texts_in(f.value);
    } else if (f.name == "__buffers__") {
      c.buffers = texts_in(f.value);
      c.lists_buffers = true;
    } else {
      c.fields.push_back(std::move(f));
    }
  }

  const std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
  SourceFile file_;
};

}  // namespace

std::string Expression::dotted() const {
  if (kind == Name) return text;
  if (kind != Attribute) return "";
  const std::string before = items[0].dotted();
  return before.empty() ? "" : before + "." + text;
}

Type type_of(const Expression& written) {
  Type made;
  if (written.kind == Expression::None) made.name = "NoneType";
  if (written.kind != Expression::Item) {
    if (made.name.empty()) made.name = written.dotted();
    return made;
  }
  made.name = written.items[0].dotted();
  const Expression& inner = written.items[1];
  if (inner.kind == Expression::Tuple)
    for (const Expression& item : inner.items) made.arguments.push_back(type_of(item));
  else
    made.arguments.push_back(type_of(inner));
  return made;
}

std::string Type::str() const {
  std::string made = name;
  for (size_t i = 0; i < arguments.size(); ++i) made += (i == 0 ? "[" : ", ") + arguments[i].str();
  return arguments.empty() ? made : made + "]";
}

const Function* Class::method(std::string_view wanted) const {
  for (const Function& f : methods)
    if (f.name == wanted) return &f;
  return nullptr;
}
const Field* Class::field(std::string_view wanted) const {
  for (const Field& f : fields)
    if (f.name == wanted) return &f;
  return nullptr;
}

SourceFile parse_source(std::string_view text, const std::string& path) {
  return Parser(text, path).whole();
}

}  // namespace oar::pytorch
