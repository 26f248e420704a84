#include "oar/backend/cpu/instruction_set.h"

#include <string>

#include "oar/base/flags.h"

namespace oar::cpu {

bool use_avx512() {
#if defined(__x86_64__) && !defined(OAR_WITHOUT_AVX512_LOOPS)
  return flag<std::string>("cpu_isa") != "avx2" && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
#else
  return false;
#endif
}

}  // namespace oar::cpu
