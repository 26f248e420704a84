// Programs as text, for people and for tests.
//
//   program step(%x: float32[B, 8], state %w: float32[8, 4]) -> (%5: float32[]) {
//     assume B != 1
//     const %c0: float32[] = 2.0
//     %2 = matmul(%x, %w, transpose_x=False, transpose_y=False) : float32[B, 4]
//     …
//     write %w = %7
//   }
//
// Tensors stand in the order of the schema, attributes by name. The values of large constants are
// left out.
#pragma once

#include <string>

#include "oar/ir/program.h"

namespace oar {

struct PrintOptions {
  bool locations = false;        // "  # file.py:12" behind an instruction
  int64_t largest_constant = 8;  // elements; larger ones are shown by their type only
};

std::string to_text(const Program& program, const PrintOptions& options = {});
std::string to_text(const Program& program, const Instruction& instruction);

}  // namespace oar
