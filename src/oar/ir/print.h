// Programs as text, for people and for tests.
//
//   program step<B ~ 16>(%x: float32[B, 8], state %w: float32[8, 4]) -> (%5: float32[]) {
//     assume B != 1
//     const %c0: float32[] = 2.0
//     %3 = matmul(%x, %w, transpose_x=False, transpose_y=False) : float32[B, 4]
//     …
//     %6 = switch_case(%p, [%3], branches=[
//       program no(%x: float32[B, 4]) -> (%x: float32[B, 4]) {
//       },
//       …
//     ]) : float32[B, 4]
//     write %w = %7
//   }
//
// Open sizes are declared with their value at capture and, if there is one, a lower bound
// (`B ~ 16 >= 1`). Tensors are in the order of the schema, attributes have names. The values of
// large constants are omitted; `parse.h` reads everything else back.
#pragma once

#include <string>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

struct PrintOptions {
  bool locations = false;        // "  # file.py:12" after an instruction
  int64_t largest_constant = 8;  // elements; larger ones are shown by their type only
};

std::string to_text(const Program& program, const PrintOptions& options = {});
std::string to_text(const Program& program, const Instruction& instruction);
// "axis=1, keepdim=False"
std::string attributes_text(const Instruction& instruction);

}  // namespace oar
