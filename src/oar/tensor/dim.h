// A dimension: an integer in eager mode, an expression while capturing. One tagged 64-bit word, so
// that an array of dimensions is an array of int64 for kernels and eager mode pays nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/small_vector.h"

namespace OAR_RUNTIME_API oar {

class Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(int64_t value) : word_(value) {}  // a number is a dimension

  // A named unknown. `hint` is a value that was seen; it only guides, never decides.
  static Dim symbol(std::string_view name, int64_t hint = 2, int64_t at_least = 0);

  constexpr bool is_symbolic() const { return word_ < kSymbolicBelow; }
  constexpr bool is_known() const { return !is_symbolic(); }
  // The integer; an Unsupported error with a way out if the dimension is symbolic.
  int64_t value() const { return is_known() ? word_ : throw_symbolic(); }
  int64_t hint() const;
  constexpr int64_t word() const { return word_; }
  static constexpr Dim from_word(int64_t word) { return Dim(word); }

  std::string str() const;
  // Replaces symbols by values: pairs of (symbol, value). All symbols must be listed.
  int64_t evaluate(std::span<const std::pair<Dim, int64_t>> bindings) const;
  Dim substitute(std::span<const std::pair<Dim, Dim>> bindings) const;
  std::vector<Dim> symbols() const;

  friend Dim operator+(Dim a, Dim b) {
    return both_known(a, b) ? known_add(a.word_, b.word_) : symbolic_add(a, b);
  }
  friend Dim operator-(Dim a, Dim b) {
    return both_known(a, b) ? known_sub(a.word_, b.word_) : symbolic_add(a, symbolic_mul(b, -1));
  }
  friend Dim operator*(Dim a, Dim b) {
    return both_known(a, b) ? known_mul(a.word_, b.word_) : symbolic_mul(a, b);
  }
  friend Dim min_of(Dim a, Dim b) {
    return both_known(a, b) ? (a.word_ < b.word_ ? a : b) : symbolic_min(a, b);
  }
  friend Dim max_of(Dim a, Dim b) {
    return both_known(a, b) ? (a.word_ < b.word_ ? b : a) : symbolic_max(a, b);
  }

  // Equal for every value of the symbols, as far as simplification can tell.
  friend constexpr bool operator==(Dim a, Dim b) { return a.word_ == b.word_; }

  // May a rule proceed as if a == b? For known integers, whether they are equal. Symbolic: structurally
  // equal is yes; otherwise the equality is learnt (recorded as an assumption of the capture) if `learn`
  // is on and the hints agree.
  friend bool same(Dim a, Dim b) {
    return a.word_ == b.word_ || (!both_known(a, b) && symbolic_same(a, b));
  }
  // Order with bounds: decided by the bounds of the symbols if possible, else by hint, and recorded.
  friend bool known_less(Dim a, Dim b) {
    return both_known(a, b) ? a.word_ < b.word_ : symbolic_less(a, b);
  }

 private:
  // Concrete values stay far above this; below it the word is an index into the expression table.
  static constexpr int64_t kSymbolicBelow = -(int64_t{1} << 62);
  static constexpr bool both_known(Dim a, Dim b) { return a.is_known() && b.is_known(); }
  // A sum that overflowed could be mistaken for a symbol.
  static Dim known_add(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum) || sum < kSymbolicBelow) [[unlikely]]
      throw_overflow(a, '+', b);
    return Dim(sum);
  }
  static Dim known_sub(int64_t a, int64_t b) {
    int64_t rest;
    if (__builtin_sub_overflow(a, b, &rest) || rest < kSymbolicBelow) [[unlikely]]
      throw_overflow(a, '-', b);
    return Dim(rest);
  }
  static Dim known_mul(int64_t a, int64_t b);
  [[noreturn]] static void throw_overflow(int64_t a, char op, int64_t b);
  static Dim symbolic_add(Dim a, Dim b);
  static Dim symbolic_mul(Dim a, Dim b);
  static Dim symbolic_min(Dim a, Dim b);
  static Dim symbolic_max(Dim a, Dim b);
  static bool symbolic_same(Dim a, Dim b);
  static bool symbolic_less(Dim a, Dim b);
  [[noreturn]] int64_t throw_symbolic() const;
  friend struct DimTable;

  int64_t word_ = 0;
};

Dim floor_div(Dim a, Dim b);
Dim ceil_div(Dim a, Dim b);
Dim floor_mod(Dim a, Dim b);

// What a capture assumed about its symbols; a program checks it when it runs.
struct DimAssumption {
  enum Kind { Equal, NotEqual, Less, NotLess } kind;
  Dim left, right;
};
// While alive, undecided comparisons on this thread follow the hints and are recorded here.
class DimAssumptions {
 public:
  DimAssumptions();
  ~DimAssumptions();
  DimAssumptions(const DimAssumptions&) = delete;
  DimAssumptions& operator=(const DimAssumptions&) = delete;
  const std::vector<DimAssumption>& learnt() const { return learnt_; }
  void add(DimAssumption a);

 private:
  std::vector<DimAssumption> learnt_;
  DimAssumptions* outer_;
};

using Dims = std::span<const Dim>;
using Ints = std::span<const int64_t>;
inline Dims as_dims(Ints ints) { return {reinterpret_cast<const Dim*>(ints.data()), ints.size()}; }
inline Ints as_words(Dims dims) {
  return {reinterpret_cast<const int64_t*>(dims.data()), dims.size()};
}

// The sizes of a tensor.
class Shape : public SmallVector<Dim, 6> {
 public:
  using Base = SmallVector<Dim, 6>;
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) {
    for (Dim d : dims) push_back(d);
  }
  explicit Shape(Dims dims) {
    for (Dim d : dims) push_back(d);
  }
  explicit Shape(Ints dims) : Shape(as_dims(dims)) {}
  Shape(size_t rank, Dim fill) {
    for (size_t i = 0; i < rank; ++i) push_back(fill);
  }

  int rank() const { return static_cast<int>(size()); }
  Dim numel() const;
  bool is_known() const;
  std::string str() const;
  operator Dims() const { return {data(), size()}; }  // a shape is a list of dims
  bool operator==(const Shape& other) const;
};

// Every pair `same`; ranks too.
bool same(const Shape& a, const Shape& b);
std::string to_string(Dims dims);
std::string to_string(Ints ints);

}  // namespace oar
