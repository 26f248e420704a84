// The expression of an open size, for code that writes it in another language.
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/tensor/dim.h"

namespace OAR_API oar {

// A factor: a symbol, or a function of two sizes.
struct DimFactor {
  enum Kind : uint8_t { Symbol, Quotient, Remainder, Least, Most } kind;
  Dim self;  // the factor as a size
  std::string name;
  Dim left, right;
};

// A size is the sum of its terms: coefficient * factors.
struct DimTerm {
  int64_t coefficient;
  std::vector<DimFactor> factors;
};
std::vector<DimTerm> terms_of(Dim d);

}  // namespace oar
