#include "oar/tensor/dim.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "oar/base/error.h"
#include "oar/base/fork_mutex.h"
#include "oar/tensor/dim_assume.h"
#include "oar/tensor/dim_terms.h"

namespace oar {

// Expressions are interned in canonical form: a sum of terms, each a coefficient and a sorted
// product of atoms. Equal expressions are therefore the same word. An atom is a symbol or one of
// floor_div, floor_mod, min, max over canonical operands. Nodes live as long as the process; a
// program has a few dozen.
struct DimTable {
  static constexpr int64_t kUnbounded = INT64_MIN;
  enum class Op : char { Symbol = 's', Div = '/', Mod = '%', Min = 'm', Max = 'M' };
  struct Atom {
    Op op;
    std::string name;
    int64_t hint = 0;
    int64_t at_least = 0;         // kUnbounded if no bound is known
    int64_t left = 0, right = 0;  // words
    bool told_by_runs = false;    // of a symbol
    bool left_open = false;       // … by a static program
  };
  using Product = std::vector<int>;        // atom ids, sorted
  using Sum = std::map<Product, int64_t>;  // coefficient by product
  struct Node {
    Sum sum;
    int64_t hint;
  };

  static DimTable& get() {
    static DimTable* table = new DimTable;  // outlives static destructors of users
    return *table;
  }

  ForkRecursiveMutex mutex;
  std::deque<Atom> atoms;
  std::deque<Node> nodes;
  std::unordered_map<std::string, int64_t> interned;
  std::unordered_map<std::string, int> atom_ids;

  static int64_t word_of(int64_t index) { return INT64_MIN + index; }
  Node& node(int64_t word) {
    const auto index = static_cast<size_t>(word - INT64_MIN);
    // A user's number may be as far below zero as the words of symbols.
    user_check(index < nodes.size(), ErrorKind::InvalidArgument, "{} is not a size.", word);
    return nodes[index];
  }

  Sum sum_of(Dim d) {
    if (d.is_symbolic()) return node(d.word()).sum;
    return d.word() == 0 ? Sum{} : Sum{{Product{}, d.word()}};
  }

  int atom(const Atom& a) {
    const std::string key = format("{}{}:{}:{}", static_cast<char>(a.op), a.name, a.left, a.right);
    if (auto it = atom_ids.find(key); it != atom_ids.end() && a.op != Op::Symbol) return it->second;
    atoms.push_back(a);
    const int id = static_cast<int>(atoms.size()) - 1;
    atom_ids[key] = id;
    return id;
  }

  Dim intern(const Sum& raw) {
    Sum sum;
    for (const auto& [product, coefficient] : raw)
      if (coefficient != 0) sum[product] = coefficient;
    if (sum.empty()) return Dim(0);
    if (sum.size() == 1 && sum.begin()->first.empty()) return Dim(sum.begin()->second);
    std::string key;
    for (const auto& [product, coefficient] : sum) {
      key += format("{}*", coefficient);
      for (int a : product) key += format("{},", a);
      key += ';';
    }
    if (auto it = interned.find(key); it != interned.end()) return Dim::from_word(it->second);
    int64_t hint = 0;
    for (const auto& [product, coefficient] : sum) {
      int64_t term = coefficient;
      for (int a : product) term = checked_mul(term, atoms[static_cast<size_t>(a)].hint);
      hint = checked_add(hint, term);
    }
    nodes.push_back({std::move(sum), hint});
    const int64_t word = word_of(static_cast<int64_t>(nodes.size()) - 1);
    interned.emplace(std::move(key), word);
    return Dim::from_word(word);
  }

  Dim of_atom(const Atom& a) { return intern({{Product{atom(a)}, 1}}); }

  // Lower bound over all values of the symbols, if one is known.
  std::optional<int64_t> lower_bound(Dim d) {
    if (d.is_known()) return d.word();
    int64_t bound = 0;
    for (const auto& [product, coefficient] : node(d.word()).sum) {
      int64_t term = coefficient;
      for (int a : product) {
        const int64_t at_least = atoms[static_cast<size_t>(a)].at_least;
        // Nothing is known about a product with a factor of unknown sign, unless it is that factor alone.
        if (coefficient < 0 || at_least == kUnbounded || (at_least < 0 && product.size() > 1))
          return std::nullopt;
        if (__builtin_mul_overflow(term, at_least, &term)) return std::nullopt;
      }
      if (__builtin_add_overflow(bound, term, &bound)) return std::nullopt;
    }
    return bound;
  }

  static int64_t checked_add(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) Dim::throw_overflow(a, '+', b);
    return sum;
  }
  static int64_t checked_mul(int64_t a, int64_t b) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) Dim::throw_overflow(a, '*', b);
    return product;
  }
};

namespace {

thread_local DimAssumptions* t_assumptions = nullptr;

int64_t floor_div_int(int64_t a, int64_t b) {
  user_check(b != 0, ErrorKind::InvalidArgument, "a dimension is divided by zero.");
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

// A hint only guides: a hint of 0 must not make the hint of a quotient an error.
int64_t divisor_hint(Dim d) { return d.hint() == 0 ? 1 : d.hint(); }

}  // namespace

Dim Dim::symbol(std::string_view name, int64_t hint, int64_t at_least) {
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  return t.of_atom({DimTable::Op::Symbol, std::string(name), hint, at_least});
}

Dim size_told_by_runs(std::string_view name, int64_t hint, bool left_open) {
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  DimTable::Atom atom{DimTable::Op::Symbol, std::string(name), hint};
  atom.told_by_runs = true;
  atom.left_open = left_open;
  return t.of_atom(atom);
}

Dim open_size(std::string_view name, int64_t hint) {
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  DimTable::Atom atom{DimTable::Op::Symbol, std::string(name), hint};
  atom.left_open = true;
  return t.of_atom(atom);
}

namespace {

template <class F>
bool any_symbol(Dim d, F&& chosen) {
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  for (const Dim symbol : d.symbols())
    for (const auto& [product, coefficient] : t.sum_of(symbol))
      for (const int id : product)
        if (chosen(t.atoms[static_cast<size_t>(id)])) return true;
  return false;
}

}  // namespace

bool is_told_by_runs(Dim d) {
  return any_symbol(d, [](const DimTable::Atom& atom) { return atom.told_by_runs; });
}

int64_t Dim::hint() const {
  if (is_known()) return word_;
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  return t.node(word_).hint;
}

int64_t Dim::throw_symbolic() const {
  fail(ErrorKind::Unsupported,
       "a number is needed, but the size is the symbolic dimension {}.\nhint: Keep the "
       "computation in terms of shapes, or capture with a fixed size for this dimension.",
       str());
}

void Dim::throw_overflow(int64_t a, char op, int64_t b) {
  fail(ErrorKind::InvalidArgument, "a size overflows: {} {} {}.", a, op, b);
}

Dim Dim::known_mul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product) || product < kSymbolicBelow) throw_overflow(a, '*', b);
  return Dim(product);
}

Dim Dim::symbolic_add(Dim a, Dim b) {
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  DimTable::Sum sum = t.sum_of(a);
  for (const auto& [product, coefficient] : t.sum_of(b)) {
    int64_t& total = sum[product];
    total = DimTable::checked_add(total, coefficient);
  }
  return t.intern(sum);
}

Dim Dim::symbolic_mul(Dim a, Dim b) {
  if (a.is_known() && b.is_known()) return known_mul(a.word_, b.word_);
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  DimTable::Sum sum;
  const DimTable::Sum left = t.sum_of(a), right = t.sum_of(b);
  for (const auto& [pa, ca] : left)
    for (const auto& [pb, cb] : right) {
      DimTable::Product product;
      std::merge(pa.begin(), pa.end(), pb.begin(), pb.end(), std::back_inserter(product));
      int64_t& total = sum[product];
      total = DimTable::checked_add(total, DimTable::checked_mul(ca, cb));
    }
  return t.intern(sum);
}

namespace {

// (k * rest) / k for an integer k or a single atom that divides every term.
std::optional<Dim> exact_quotient(DimTable& t, Dim a, Dim b) {
  const DimTable::Sum divisor = t.sum_of(b);
  if (divisor.size() != 1) return std::nullopt;
  const auto& [by, coefficient] = *divisor.begin();
  DimTable::Sum quotient;
  for (const auto& [product, c] : t.sum_of(a)) {
    if (c % coefficient != 0) return std::nullopt;
    DimTable::Product rest = product;
    for (int atom : by) {
      auto it = std::find(rest.begin(), rest.end(), atom);
      if (it == rest.end()) return std::nullopt;
      rest.erase(it);
    }
    quotient[rest] = c / coefficient;
  }
  return t.intern(quotient);
}

}  // namespace

Dim floor_div(Dim a, Dim b) {
  if (a.is_known() && b.is_known()) return floor_div_int(a.word(), b.word());
  if (b == Dim(1)) return a;
  if (a == Dim(0)) return 0;
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  if (auto exact = exact_quotient(t, a, b)) return *exact;
  const auto numerator = t.lower_bound(a);
  const bool positive = t.lower_bound(b).value_or(0) > 0;
  int64_t bound = DimTable::kUnbounded;
  if (numerator && positive && *numerator >= 0)
    bound = b.is_known() ? *numerator / b.word() : 0;
  else if (numerator && positive)
    bound = *numerator;  // the quotient is nearer to zero
  return t.of_atom(
      {DimTable::Op::Div, {}, floor_div_int(a.hint(), divisor_hint(b)), bound, a.word(), b.word()});
}

Dim ceil_div(Dim a, Dim b) { return floor_div(a + b - 1, b); }

Dim floor_mod(Dim a, Dim b) {
  if (a.is_known() && b.is_known()) return a.word() - floor_div_int(a.word(), b.word()) * b.word();
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  if (exact_quotient(t, a, b)) return 0;
  const int64_t divisor = divisor_hint(b);
  const int64_t bound = t.lower_bound(b).value_or(0) > 0 ? 0 : DimTable::kUnbounded;
  return t.of_atom({DimTable::Op::Mod,
                    {},
                    a.hint() - floor_div_int(a.hint(), divisor) * divisor,
                    bound,
                    a.word(),
                    b.word()});
}

Dim Dim::symbolic_min(Dim a, Dim b) {
  if (a == b) return a;
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  if (t.lower_bound(a - b).value_or(-1) >= 0) return b;
  if (t.lower_bound(b - a).value_or(-1) >= 0) return a;
  const int64_t bound = std::min(t.lower_bound(a).value_or(DimTable::kUnbounded),
                                 t.lower_bound(b).value_or(DimTable::kUnbounded));
  return t.of_atom(
      {DimTable::Op::Min, {}, std::min(a.hint(), b.hint()), bound, a.word(), b.word()});
}

Dim Dim::symbolic_max(Dim a, Dim b) {
  if (a == b) return a;
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  if (t.lower_bound(a - b).value_or(-1) >= 0) return a;
  if (t.lower_bound(b - a).value_or(-1) >= 0) return b;
  const int64_t bound = std::max(t.lower_bound(a).value_or(DimTable::kUnbounded),
                                 t.lower_bound(b).value_or(DimTable::kUnbounded));
  return t.of_atom(
      {DimTable::Op::Max, {}, std::max(a.hint(), b.hint()), bound, a.word(), b.word()});
}

namespace {

// Do the bounds of the symbols decide it?
bool never_equal(Dim a, Dim b) {
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  return t.lower_bound(a - b).value_or(0) > 0 || t.lower_bound(b - a).value_or(0) > 0;
}

}  // namespace

namespace {

// Are all its symbols sizes whose hints say nothing?
bool is_open(Dim d) {
  return !any_symbol(d, [](const DimTable::Atom& a) { return !a.left_open; });
}

// An open size beside a number that cannot be a size to broadcast.
bool open_meets_number(Dim a, Dim number) {
  return number.is_known() && number.word() >= 2 && is_open(a);
}

}  // namespace

bool same_by_hints(Dim a, Dim b) {
  if (a == b || (a.is_known() && b.is_known())) return a == b;
  if (b.is_known() && is_open(a)) return false;  // as -1 is not the number
  if (never_equal(a, b)) return false;
  const bool equal = a.hint() == b.hint();
  if (t_assumptions)
    t_assumptions->add({equal ? DimAssumption::Equal : DimAssumption::NotEqual, a, b});
  return equal;
}

bool Dim::symbolic_same(Dim a, Dim b) {
  if (!open_meets_number(a, b) && !open_meets_number(b, a)) return same_by_hints(a, b);
  if (never_equal(a, b)) return false;
  if (t_assumptions) t_assumptions->add({DimAssumption::Equal, a, b});
  return true;
}

bool assume_same(Dim a, Dim b) {
  if (a == b || (a.is_known() && b.is_known())) return a == b;
  if (never_equal(a, b)) return false;
  if (!t_assumptions) return a.hint() == b.hint() || (is_open(a) && is_open(b));
  t_assumptions->add({DimAssumption::Equal, a, b});
  return true;
}

bool Dim::symbolic_less(Dim a, Dim b) {
  {
    DimTable& t = DimTable::get();
    std::lock_guard lock(t.mutex);
    if (t.lower_bound(b - a).value_or(0) > 0) return true;
    if (t.lower_bound(a - b).value_or(-1) >= 0) return false;
  }
  const bool less = a.hint() < b.hint();
  if (t_assumptions)
    t_assumptions->add({less ? DimAssumption::Less : DimAssumption::NotLess, a, b});
  return less;
}

Dim Dim::substitute(std::span<const std::pair<Dim, Dim>> bindings) const {
  if (is_known()) return *this;
  for (const auto& [symbol, value] : bindings)
    if (symbol == *this) return value;
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  Dim total = 0;
  const DimTable::Sum sum = t.node(word_).sum;
  for (const auto& [product, coefficient] : sum) {
    Dim term = coefficient;
    for (int id : product) {
      const DimTable::Atom atom = t.atoms[static_cast<size_t>(id)];
      const Dim left = Dim::from_word(atom.left), right = Dim::from_word(atom.right);
      Dim value;
      switch (atom.op) {
        case DimTable::Op::Symbol: {
          value = t.intern({{DimTable::Product{id}, 1}});
          for (const auto& [symbol, bound] : bindings)
            if (symbol == value) {
              value = bound;
              break;
            }
          break;
        }
        case DimTable::Op::Div:
          value = floor_div(left.substitute(bindings), right.substitute(bindings));
          break;
        case DimTable::Op::Mod:
          value = floor_mod(left.substitute(bindings), right.substitute(bindings));
          break;
        case DimTable::Op::Min:
          value = min_of(left.substitute(bindings), right.substitute(bindings));
          break;
        case DimTable::Op::Max:
          value = max_of(left.substitute(bindings), right.substitute(bindings));
          break;
      }
      term = term * value;
    }
    total = total + term;
  }
  return total;
}

int64_t Dim::evaluate(std::span<const std::pair<Dim, int64_t>> bindings) const {
  if (is_known()) return word_;
  std::vector<std::pair<Dim, Dim>> exact;
  for (const auto& [symbol, value] : bindings) exact.emplace_back(symbol, Dim(value));
  const Dim result = substitute(exact);
  user_check(result.is_known(), ErrorKind::InvalidArgument,
             "the dimension {} depends on {}, which has no value here.", str(), result.str());
  return result.word_;
}

std::vector<Dim> Dim::symbols() const {
  std::vector<Dim> found;
  if (is_known()) return found;
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  const DimTable::Sum sum = t.node(word_).sum;
  for (const auto& [product, coefficient] : sum)
    for (int id : product) {
      const DimTable::Atom atom = t.atoms[static_cast<size_t>(id)];
      if (atom.op == DimTable::Op::Symbol) {
        found.push_back(t.intern({{DimTable::Product{id}, 1}}));
        continue;
      }
      for (int64_t word : {atom.left, atom.right})
        for (Dim d : Dim::from_word(word).symbols()) found.push_back(d);
    }
  std::sort(found.begin(), found.end(), [](Dim a, Dim b) { return a.word_ < b.word_; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

namespace {

std::string atom_text(const DimTable::Atom& atom) {
  const std::string left = Dim::from_word(atom.left).str(),
                    right = Dim::from_word(atom.right).str();
  switch (atom.op) {
    case DimTable::Op::Symbol:
      return atom.name;
    case DimTable::Op::Div:
      return format("floordiv({}, {})", left, right);
    case DimTable::Op::Mod:
      return format("mod({}, {})", left, right);
    case DimTable::Op::Min:
      return format("min({}, {})", left, right);
    case DimTable::Op::Max:
      return format("max({}, {})", left, right);
  }
  return {};
}

}  // namespace

// In the order of the texts, not of creation: equal programs print equally.
std::string Dim::str() const {
  if (is_known()) return std::to_string(word_);
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  std::vector<std::pair<std::string, int64_t>> terms;
  for (const auto& [product, coefficient] : t.node(word_).sum) {
    std::vector<std::string> factors;
    for (int id : product) factors.push_back(atom_text(t.atoms[static_cast<size_t>(id)]));
    std::sort(factors.begin(), factors.end());
    std::string term;
    for (const std::string& factor : factors) term += (term.empty() ? "" : "*") + factor;
    terms.emplace_back(std::move(term), coefficient);
  }
  std::sort(terms.begin(), terms.end());
  std::string text;
  for (const auto& [term, coefficient] : terms) {
    if (!text.empty()) text += coefficient < 0 ? " - " : " + ";
    const int64_t shown = text.empty() ? coefficient : std::abs(coefficient);
    if (term.empty() || shown != 1) text += std::to_string(shown) + (term.empty() ? "" : "*");
    text += term;
  }
  return text;
}

std::vector<DimTerm> terms_of(Dim d) {
  if (d.is_known()) return {{d.value(), {}}};
  DimTable& t = DimTable::get();
  std::lock_guard lock(t.mutex);
  const auto kind_of = [](DimTable::Op op) {
    switch (op) {
      case DimTable::Op::Div:
        return DimFactor::Quotient;
      case DimTable::Op::Mod:
        return DimFactor::Remainder;
      case DimTable::Op::Min:
        return DimFactor::Least;
      case DimTable::Op::Max:
        return DimFactor::Most;
      default:
        return DimFactor::Symbol;
    }
  };
  std::vector<DimTerm> terms;
  for (const auto& [product, coefficient] : DimTable::Sum(t.node(d.word()).sum)) {
    DimTerm term{coefficient, {}};
    for (const int id : product) {
      const DimTable::Atom& a = t.atoms[static_cast<size_t>(id)];
      term.factors.push_back({kind_of(a.op), t.intern({{DimTable::Product{id}, 1}}), a.name,
                              Dim::from_word(a.left), Dim::from_word(a.right)});
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

DimAssumptions::DimAssumptions() : outer_(t_assumptions) { t_assumptions = this; }
DimAssumptions::~DimAssumptions() { t_assumptions = outer_; }

void DimAssumptions::add(DimAssumption a) {
  for (const DimAssumption& b : learnt_)
    if (a.kind == b.kind && a.left == b.left && a.right == b.right) return;
  learnt_.push_back(a);
}

Dim Shape::numel() const {
  Dim n = 1;
  for (Dim d : *this) n = n * d;
  return n;
}

bool Shape::is_known() const {
  return std::all_of(begin(), end(), [](Dim d) { return d.is_known(); });
}

std::string Shape::str() const { return to_string(Dims(*this)); }

bool Shape::operator==(const Shape& other) const {
  return size() == other.size() && std::equal(begin(), end(), other.begin());
}

bool same(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}

bool assume_same(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!assume_same(a[i], b[i])) return false;
  return true;
}

std::string to_string(Dims dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + dims[i].str();
  return text + "]";
}

std::string to_string(Ints ints) { return to_string(as_dims(ints)); }

}  // namespace oar
