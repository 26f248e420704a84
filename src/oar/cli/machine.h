// Facts about the machine this process runs on, from the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oar::cli {

struct Machine {
  std::string cpu;                    // the model's name, or "unknown"
  std::vector<std::string> features;  // those of the instruction set that matter to kernels
  bool has_avx2 = true;               // with FMA and F16C; true on other architectures
  int processors = 0;                 // of the machine
  int usable = 0;                     // that this process may run on
  double quota = 0;                   // processors' worth of time its container may use; 0: any
  double load = -1;    // programs that ran or wanted to in the last minute; -1: unknown
  int64_t memory = 0;  // bytes
  int64_t memory_available = 0;
  int64_t memory_limit = 0;  // of the container; 0: none
  std::string system;        // kernel name, release and architecture
};

Machine inspect_machine();

// "1.5 GiB"
std::string bytes_text(int64_t bytes);

}  // namespace oar::cli
