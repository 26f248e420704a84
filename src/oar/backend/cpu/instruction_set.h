// Which of the two compiled instruction sets runs.
#pragma once

namespace oar::cpu {

// Whether this machine has all that the AVX-512 units are compiled for, and the flag cpu_isa does not
// keep to AVX2. Asked once by those who keep a table.
bool use_avx512();

}  // namespace oar::cpu
