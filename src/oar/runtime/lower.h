// Lowering: a program at concrete sizes as launches of kernels on places in memory.
#pragma once

#include <optional>

#include "oar/base/api.h"
#include "oar/device/device.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

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
  std::shared_ptr<oar_plan> plan;      // what the kernel prepared, for all runs
  std::shared_ptr<const oar_kernel>
      compiled;                   // the kernel, where it is the program's own: a cluster
  std::vector<Operand> operands;  // ids are places
  Frame attributes;
  std::vector<int32_t> results;  // places
  std::string location;
  LayerPath layer = 0;
  const char* called = nullptr;  // by the user
  double time = 0;               // estimated, in nanoseconds on one thread
  bool sums_by_threads = false;  // other bits on another number of threads
};

struct Lowered {
  Device device;
  std::vector<Root> roots;
  std::vector<Place> places;
  std::vector<Launch> launches;
  std::vector<Tensor> constants;  // by index
  std::vector<int32_t> outputs;   // places
  std::vector<int32_t> written;   // states that launches write
};

// The operands that an update's kernel gets as its outputs: what the schema calls results are the first of the written
// parameters again.
std::vector<ValueId> written_results(const Instruction& update);

// Whether the place is all of its root.
bool fills_root(const Lowered& lowered, int32_t place);

// Rejects a call whose results do not have the program's types: what inference could not decide while sizes were open is decided when
// they are known, and kernels do not check again.
void check_types(const Program& program, const Instruction& call);

// Calls that no kernel takes are calls of the op's function; the compiler's pass `expand` leaves none that could be taken apart.
// Returns none if the program cannot be laid out before it runs: a size depends on data, or its values are on several
// devices. Numbers on the CPU may be inputs, constants or states that are only read. A launch that writes a state comes
// after every launch that may fail.
std::optional<Lowered> lower(const Program& program);

}  // namespace oar
