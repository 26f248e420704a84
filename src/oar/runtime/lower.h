// Lowering: a program at concrete sizes as launches of kernels on places in memory.
#pragma once

#include <optional>

#include "oar/device/device.h"
#include "oar/ir/program.h"

namespace oar {

// One piece of memory. Views of it are places in the same root.
struct Root {
  enum Kind : uint8_t { Arena, Input, State, Constant, Output };
  Kind kind = Arena;
  int32_t index = 0;  // of the input, state or constant; of the output that is made of it
  int64_t bytes = 0;
};

// A value: a root, and the layout of its elements in it. Kernels see the layout with its data set.
struct Place {
  int32_t root = -1;
  int64_t offset = 0;  // in bytes
  Tensor layout;       // dense; its data pointer must not be used
};

struct Launch {
  const Op* op = nullptr;
  const oar_kernel* kernel = nullptr;  // none: a call of the op, whose results are copied
  std::vector<Operand> operands;       // ids are places
  Frame attributes;
  std::vector<int32_t> results;  // places
  std::string location;
  const char* called = nullptr;  // by the user
  double time = 0;               // estimated, in nanoseconds on one thread
  bool sums_by_threads = false;  // other bits on another number of threads
};

struct Lowered {
  std::vector<Root> roots;
  std::vector<Place> places;
  std::vector<Launch> launches;
  std::vector<Tensor> constants;  // by index
  std::vector<int32_t> outputs;   // places
  std::vector<int32_t> written;   // states that launches write
};

// Whether the place is all of its root.
bool fills_root(const Lowered& lowered, int32_t place);

// Rejects a call whose results do not have the program's types: what inference could not decide while sizes were open is decided when
// they are known, and kernels do not check again.
void check_types(const Program& program, const Instruction& call);

// Calls that no kernel accepts are calls of the op's function; the compiler's pass `expand` leaves none that has a decomposition.
// None if the program cannot be laid out before its runs: a size depends on data, or a device is
// not the CPU. A launch that writes a state comes after every launch that may fail.
std::optional<Lowered> lower(const Program& program);

}  // namespace oar
