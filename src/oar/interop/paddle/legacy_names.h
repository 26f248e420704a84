// What legacy files call the ops of PIR, their operands, results and attributes.
#pragma once

#include <string_view>
#include <vector>

namespace oar::paddle {

struct LegacyOp {
  std::string_view name, op;
  // In the order of PIR. `*X` is a list of variables; of `A|*B` one is given at most. What PIR has as an operand and a
  // legacy file as an attribute comes last; the attribute is used if none is given.
  std::string_view inputs, outputs;
  std::string_view attributes;  // "legacy=new", if they differ
};

// Null if there is none.
const LegacyOp* find_legacy(std::string_view name);

// What today's legacy files call an op of PIR. Null if there is none.
const LegacyOp* legacy_of(std::string_view op);

std::vector<std::string_view> words_of(std::string_view text, char separator = ' ');

}  // namespace oar::paddle
