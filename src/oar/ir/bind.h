// The symbols of a program get their values from the shapes of a run's inputs.
#pragma once

#include <unordered_map>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// A single symbol, not an expression?
bool is_symbol(Dim d);
// The lower bound that a symbol was created with. Rules have relied on it without recording it.
int64_t least_value_of(Dim symbol);

// Values of the symbols in one run. They are numbers, or, if a program is replayed inside a
// capture, dims of that capture.
class SymbolValues {
 public:
  bool has(Dim symbol) const;
  void set(Dim symbol, Dim value) { bound_.emplace_back(symbol, value); }
  // Are all symbols of d known?
  bool covers(Dim d) const;
  Dim evaluate(Dim d);

 private:
  std::vector<std::pair<Dim, Dim>> bound_;
  std::unordered_map<int64_t, Dim> known_;  // by word: evaluation takes a lock
};

// What a program requires of its inputs, prepared once for many runs.
class InputBinder {
 public:
  explicit InputBinder(const Program& program);

  // Checks dtypes and shapes and returns the symbols' values. Errors name the input, what it should
  // be and what it is.
  SymbolValues bind(const Program& program, TensorList inputs) const;
  // A size that was not known before the instruction ran.
  bool binds_results(size_t instruction) const { return unknown_results_[instruction]; }
  void bind_results(const Program& program, size_t instruction, TensorList results,
                    SymbolValues& values) const;

 private:
  void check_assumptions(const Program& program, SymbolValues& values,
                         const SymbolValues* before) const;
  void bind_input(const Program& program, size_t i, const Tensor& t, SymbolValues& values) const;

  std::vector<std::pair<Dim, int64_t>> at_least_;
  std::vector<bool> unknown_results_;
};

}  // namespace oar
