// Canonical rules: how an op's record simplifies calls of the op inside a program. `canonicalise` runs them; this
// interface is all that a rule sees of the program, because ops/ does not know programs.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "oar/base/api.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

class Op;

// A value of the program, by its number.
using GraphValue = int32_t;

// One call in a program. Functions of a value ("of") concern the call that computes the value.
class CanonicalCall {
 public:
  virtual ~CanonicalCall() = default;

  // The call's first result.
  virtual GraphValue result() const = 0;

  // The op that computes the value; null for inputs, states and constants.
  virtual const Op* op_of(GraphValue value) const = 0;
  virtual std::span<const GraphValue> operands_of(GraphValue value,
                                                  std::string_view parameter) const = 0;
  virtual Value attribute_of(GraphValue value, std::string_view parameter) const = 0;

  virtual Dims shape(GraphValue value) const = 0;
  // Equal dtype, shape and device?
  virtual bool same_type(GraphValue a, GraphValue b) const = 0;
  // The real number that every element is known to equal.
  virtual std::optional<double> number(GraphValue value) const = 0;
  // Does the program return the value? Then it needs its own memory: the caller may write it.
  virtual bool is_returned(GraphValue value) const = 0;

  // The call's result is this value, so the call can be removed.
  virtual void replace_by(GraphValue value) const = 0;
  // The call computes the same from another operand or attribute.
  virtual void set_operand(std::string_view parameter, GraphValue value) const = 0;
  virtual void set_attribute(std::string_view parameter, const Value& value) const = 0;

  // Of the call itself.
  const Op& op() const { return *op_of(result()); }
  GraphValue operand(std::string_view parameter) const {
    return operands_of(result(), parameter)[0];
  }
  Value attribute(std::string_view parameter) const { return attribute_of(result(), parameter); }
};

}  // namespace oar
