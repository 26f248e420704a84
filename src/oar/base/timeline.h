// What happened when: the events of all threads, while a profile runs. Every thread writes to a buffer of its own, and all
// buffers together keep a limited number of events.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/error.h"

namespace OAR_API oar {

// The layer of a network that runs, such as "net.blocks.1.fc"; 0: none. Python sets it while something watches layers.
using LayerPath = uint32_t;
LayerPath layer_path(std::string_view path);
const char* to_string(LayerPath path);

namespace detail {
OAR_FAST_TLS inline constinit thread_local LayerPath current_layer_path = 0;
}  // namespace detail

inline LayerPath current_layer() { return detail::current_layer_path; }

// While alive, this thread runs a part of the layer.
class InLayer {
 public:
  explicit InLayer(LayerPath path) : outer_(detail::current_layer_path) {
    detail::current_layer_path = path;
  }
  ~InLayer() { detail::current_layer_path = outer_; }
  InLayer(const InLayer&) = delete;
  InLayer& operator=(const InLayer&) = delete;

 private:
  const LayerPath outer_;
};

namespace timeline {

enum class Kind : uint8_t {
  Op,      // a call of an op
  Kernel,  // a kernel that computes it
  Range,   // whatever has a beginning and an end: a step, a layer, a range of the user
  Work,    // the part of a kernel that a thread of the pool did
  Memory,  // memory was allocated or freed
};

// What a range is. The numbers are Paddle's, and files have them.
enum class RangeType : uint8_t {
  UserDefined = 7,
  Forward = 9,
  Backward = 10,
  PythonOp = 13,
};

struct Event {
  const char* name = "";             // lives for ever
  const char* operands = "";         // "float32[4, 4], float32[4]"
  int64_t begin_ns = 0, end_ns = 0;  // since the start
  int64_t bytes = 0;                 // Memory: the change
  int64_t live = 0;                  // Memory: bytes in use after it
  double flops = 0;
  LayerPath layer = 0;
  uint32_t thread = 0;  // numbered by first use
  uint32_t depth = 0;   // calls of ops that it is inside of
  Kind kind = Kind::Op;
  uint8_t range_type = 0;
};

struct Recording {
  std::vector<Event> events;  // by thread, each in the order in which they ended
  uint64_t dropped = 0;       // events beyond the limit
  int64_t start_ns = 0;       // of the system's clock since 1970, to relate it to other files
};

namespace detail {
enum : uint8_t { kRunning = 1, kMemory = 2 };
inline constinit std::atomic<uint8_t> state{0};
}  // namespace detail

inline bool is_running() {
  return (detail::state.load(std::memory_order_relaxed) & detail::kRunning) != 0;
}
inline bool keeps_memory() {
  return (detail::state.load(std::memory_order_relaxed) & detail::kMemory) != 0;
}

// Drops what was recorded before. A forked child does not go on recording.
void start(bool memory, size_t most_events);
Recording stop();
// Changes with every start.
uint64_t generation();
int64_t now_ns();

// A string that lives for ever. Names and shapes are few.
const char* kept(std::string_view text);

void add(Event event);
void add_memory(int64_t change, int64_t live);

// How many calls of ops this thread is inside of.
uint32_t& depth();

// Adds an event that lasts as long as the object, even if an error ends it.
class Span {
 public:
  Span(Kind kind, const char* name, RangeType type = RangeType::UserDefined);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  Event event;

 private:
  const uint64_t generation_;
};

}  // namespace timeline
}  // namespace oar
