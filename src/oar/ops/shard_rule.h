// Sharding rules in index notation. One rule serves distribution, vmap and the proof by cutting.
//
//   "...ik, ...kj -> ...ij"            matmul: k is of operands only, hence summed
//   "... -> ..."                       elementwise
//   "...a... -> ...a... ; a@axis whole"  softmax: the axis named by the attribute is not cut
//   "...a... -> ...... ; a@axis sum"   a reduction over the attribute's axis (keepdim or not)
//   "..., vd -> ...d ; v masked sum"   embedding with a cut vocabulary
//   "nc..., oc..., o -> no... ; ... whole"  convolution: what `...` stands for is not cut
//
// A letter names a factor; `...` is any number of leading (or, behind a factor, trailing) axes that
// pass through. Behind the semicolon: the attribute a factor is bound to, and how it combines: whole,
// sum, max, min, mean, masked sum. Operands are the op's tensor parameters in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/ops/schema.h"

namespace oar {

struct ShardTerm {
  std::string before;     // factors in front of the leading ellipsis: none, so far always empty
  bool leading = false;   // starts with ...
  std::string factors;    // letters behind it
  bool trailing = false;  // ... behind the factors
};

struct ShardFactor {
  char letter;
  std::string attribute;  // bound axis, or empty
  std::string combine;    // "", "whole", "sum", …
};

struct ShardRule {
  std::vector<ShardTerm> operands, results;
  std::vector<ShardFactor> factors;

  static ShardRule parse(std::string_view text, const Schema& schema);
  // Every operand and result starts with `...`: an extra leading axis passes through, provided the
  // bound attributes are shifted.
  bool batches() const;
  const ShardFactor* factor(char letter) const;
};

}  // namespace oar
