// Which of the two compiled instruction sets runs.
#pragma once

namespace oar::cpu {

// Whether this machine has all that the AVX-512 units are compiled for, and the flag cpu_isa does not
// limit it to AVX2. Call it once and keep the table.
bool use_avx512();

}  // namespace oar::cpu
