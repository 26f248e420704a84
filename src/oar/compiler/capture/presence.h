// Which gradients a run of the backward half really has.
//
// In eager mode a tensor has no gradient if no differentiated result depends on it. A program computes zeros there, and
// an optimiser would take them for a gradient. So each gradient knows which cotangents lead to it, and through which branches.
#pragma once

#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

struct Presence {
  // Cotangents that lead to the gradient, by number; `flag`: … if this one of the extra outputs, a bool, is true.
  struct Term {
    std::vector<bool> cotangents;
    std::ptrdiff_t flag = -1;
  };
  std::vector<Term> terms;

  // Is there a gradient, if these cotangents are present? `is_true` reads an extra output.
  template <class IsTrue>
  bool holds(const std::vector<bool>& given, IsTrue&& is_true) const {
    for (const Term& term : terms) {
      bool any = false;
      for (size_t k = 0; k < given.size(); ++k) any |= given[k] && term.cotangents[k];
      if (any && (term.flag < 0 || is_true(static_cast<size_t>(term.flag)))) return true;
    }
    return false;
  }
};

// The outputs after the first `outputs` are gradients, the inputs after the first `inputs` are cotangents. Returns the presence of each
// gradient. Appends the flags to the program's outputs and stores their number in `extra`.
std::vector<Presence> find_presence(Program& program, size_t inputs, size_t outputs, size_t* extra);

}  // namespace oar
