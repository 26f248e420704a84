// Sharding rules in index notation. One rule serves distribution, vmap and the proof by cutting.
//
//   "...ik, ...kj -> ...ij"            matmul: k is in operands only, hence summed
//   "... -> ..."                       elementwise
//   "...a... -> ...a... ; a@axis whole # an element needs the sum over all first"
//                                      softmax: the axis named by the attribute is not cut, and why
//   "...a... -> ...... ; a@axis sum"   a reduction over the attribute's axis (keepdim or not)
//   "..., vd -> ...d ; v masked sum"   embedding with a cut vocabulary
//   "nc... -> nc... ; c@channels_last, ... whole # windows reach across a cut"
//                                      pooling: the axes of `...` are not cut
//   "whole: how many are kept depends on all of them"   nothing may be cut, and why
//
// A letter names a factor; `...` is any number of leading (or, after a factor, trailing) axes that
// pass through. After the semicolon: the attribute a factor is bound to, and how results without it
// are joined from the pieces: sum (the default), max, min, mean, again
// (the op itself, over the pieces), same (each piece has all of it), masked sum by x (x holds positions
// along the factor), sum/same (one for each result); or whole, for a factor that is not cut. A factor
// that is bound to a bool moves to the end if that is true. Operands are the op's tensor parameters
// in order; a list has one term for all its tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/schema.h"

namespace OAR_API oar {

struct ShardTerm {
  bool leading = false;   // starts with ...
  std::string factors;    // letters after it
  bool trailing = false;  // ... after the factors
};

struct ShardFactor {
  char letter;            // '.' for the ellipses
  std::string attribute;  // bound axis, or empty
  std::string combine;    // "", "whole", "sum", …
  std::string positions;  // the operand with positions along it, of a masked sum
};

struct ShardRule {
  std::vector<ShardTerm> operands, results;
  std::vector<ShardFactor> factors;
  std::string whole;  // why nothing may be cut; empty if something may
  std::string why;    // … why the factors marked whole may not: the text after #

  static ShardRule parse(std::string_view text, const Schema& schema);
  // Every operand and result starts with `...`: an extra leading axis passes through, provided the
  // bound attributes are shifted.
  bool batches() const;
  const ShardFactor* factor(char letter) const;
};

}  // namespace oar
