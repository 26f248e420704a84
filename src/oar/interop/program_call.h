// A call of a program as the writers of other formats see it: operands and attributes by the names of the schema.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"
#include "oar/tensor/dim_terms.h"

namespace OAR_API oar {

class ProgramCall {
 public:
  ProgramCall(const Program& program, const Instruction& call) : program(program), call(call) {}

  const Program& program;
  const Instruction& call;

  // Operands.
  bool has(std::string_view name) const;
  ValueId value_of(std::string_view name) const;  // kNoValue if it is left out
  std::vector<ValueId> values(std::string_view name) const;
  const ValueType& type(std::string_view name) const;
  int64_t rank(std::string_view name) const { return type(name).shape.rank(); }
  const ValueType& result_type(size_t i = 0) const { return program.type_of(call.results[i]); }
  // The call that made a value; null if none did.
  const Instruction* maker_of(ValueId id) const;
  bool is_read(ValueId id) const;  // by a call or as a result of the program

  // Attributes.
  const Value& value(std::string_view name) const;
  bool given(std::string_view name) const { return !value(name).is_none(); }
  int64_t integer(std::string_view name) const { return value(name).as_int(); }
  double number(std::string_view name) const;
  bool flag(std::string_view name) const { return value(name).as_bool(); }
  std::string text(std::string_view name) const { return std::string(value(name).as_string()); }
  std::vector<int64_t> list(std::string_view name) const;
  std::vector<Dim> sizes(std::string_view name) const;
  bool are_known(std::string_view name) const;
  // An axis, counted from the first.
  int64_t axis(std::string_view name, std::string_view of) const;

 private:
  size_t place(std::string_view name) const;
};

// The items of a call's `index` as one slice along some axes, after which axes are dropped and then added.
struct Cut {
  std::vector<int64_t> axes, steps, dropped, added;
  std::vector<Dim> starts, ends;
};
Cut cut_of(const ProgramCall& call);

// Of a `recurrent` call that has cells: does the program read only that of the last step?
bool reads_last_cell(const ProgramCall& call);

// An equal program for inference, of calls that can be written alone: its states are constants, and other calls are replaced
// by their parts. An error lists those that are left; `format` is what it calls the model.
Program for_writing(const Program& program, std::string_view format,
                    const std::function<bool(const ProgramCall&)>& can_be_written);

// A size as a value of a file. `Ops` computes: number(int64), symbol(Dim), add, multiply, quotient (rounding down),
// remainder, least, most.
template <class Ops>
auto computed_size(Dim size, Ops& ops) -> decltype(ops.number(0)) {
  using Made = decltype(ops.number(0));
  const auto factor = [&](const DimFactor& f) -> Made {
    if (f.kind == DimFactor::Symbol) return ops.symbol(f.self);
    const Made left = ops.size(f.left), right = ops.size(f.right);
    switch (f.kind) {
      case DimFactor::Quotient:
        return ops.quotient(left, right);
      case DimFactor::Remainder:
        return ops.remainder(left, right);
      case DimFactor::Least:
        return ops.least(left, right);
      default:
        return ops.most(left, right);
    }
  };
  Made sum{};
  bool first_term = true;
  for (const DimTerm& term : terms_of(size)) {
    Made product{};
    bool first = true;
    if (term.coefficient != 1 || term.factors.empty()) {
      product = ops.number(term.coefficient);
      first = false;
    }
    for (const DimFactor& f : term.factors) {
      const Made one = factor(f);
      product = first ? one : ops.multiply(product, one);
      first = false;
    }
    sum = first_term ? product : ops.add(sum, product);
    first_term = false;
  }
  return sum;
}

}  // namespace oar
