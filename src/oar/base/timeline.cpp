#include "oar/base/timeline.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "oar/base/fork_mutex.h"

namespace oar {
namespace {

using Clock = std::chrono::steady_clock;

// Strings that are never freed. A set does not move its strings.
struct Strings {
  ForkMutex mutex;
  std::unordered_set<std::string> all;
};
Strings& strings() {
  static auto* const instance = new Strings;
  return *instance;
}

struct Paths {
  ForkMutex mutex;
  std::unordered_map<std::string, LayerPath> numbers;
  std::vector<const char*> texts{""};
};
Paths& paths() {
  static auto* const instance = new Paths;
  return *instance;
}

}  // namespace

LayerPath layer_path(std::string_view path) {
  if (path.empty()) return 0;
  Paths& p = paths();
  const std::lock_guard lock(p.mutex);
  const auto [it, fresh] = p.numbers.try_emplace(std::string(path), p.texts.size());
  if (fresh) p.texts.push_back(it->first.c_str());
  return it->second;
}

const char* to_string(LayerPath path) {
  Paths& p = paths();
  const std::lock_guard lock(p.mutex);
  return path < p.texts.size() ? p.texts[path] : "";
}

namespace timeline {
namespace {

struct Buffer {
  ForkMutex mutex;
  std::vector<Event> events;
  uint32_t thread = 0;
  bool in_use = true;  // else its thread has ended
};

struct Recorder {
  ForkMutex mutex;  // of what follows; taken before those of buffers
  std::vector<std::unique_ptr<Buffer>> buffers;
  uint32_t threads = 0;
  int64_t start_ns = 0;

  std::atomic<int64_t> start{0};  // of the steady clock
  std::atomic<uint64_t> generation{0};
  std::atomic<size_t> most{0}, count{0};
  std::atomic<uint64_t> dropped{0};
};

// A child has one thread, and what it records is lost with it.
void stop_in_child() { detail::state.store(0, std::memory_order_relaxed); }

Recorder& recorder() {
  static auto* const instance = [] {
    add_fork_step({[] {}, [] {}, stop_in_child});
    return new Recorder;  // threads may end after main
  }();
  return *instance;
}

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

// Leaves its buffer to the recorder when the thread ends.
struct Lease {
  Lease() {
    Recorder& r = recorder();
    const std::lock_guard lock(r.mutex);
    buffer = r.buffers.emplace_back(std::make_unique<Buffer>()).get();
    buffer->thread = r.threads++;
  }
  ~Lease() {
    const std::lock_guard lock(buffer->mutex);
    buffer->in_use = false;
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Buffer* buffer;
};
Buffer& own_buffer() {
  thread_local const Lease lease;
  return *lease.buffer;
}

// With the recorder's mutex held.
void empty_buffers(Recorder& r, std::vector<Event>* into) {
  std::erase_if(r.buffers, [&](const std::unique_ptr<Buffer>& buffer) {
    const std::lock_guard lock(buffer->mutex);
    if (into) into->insert(into->end(), buffer->events.begin(), buffer->events.end());
    buffer->events = {};
    return !buffer->in_use;
  });
  r.count = 0;
}

}  // namespace

const char* kept(std::string_view text) {
  Strings& s = strings();
  const std::lock_guard lock(s.mutex);
  return s.all.emplace(text).first->c_str();
}

uint64_t generation() { return recorder().generation.load(std::memory_order_relaxed); }

int64_t now_ns() { return steady_ns() - recorder().start.load(std::memory_order_relaxed); }

uint32_t& depth() {
  thread_local uint32_t calls = 0;
  return calls;
}

void start(bool memory, size_t most_events) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  empty_buffers(r, nullptr);
  r.dropped = 0;
  r.most = most_events;
  r.start = steady_ns();
  r.start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count();
  ++r.generation;
  detail::state = detail::kRunning | (memory ? detail::kMemory : 0);
}

Recording stop() {
  detail::state = 0;
  Recorder& r = recorder();
  Recording made;
  const std::lock_guard lock(r.mutex);
  ++r.generation;  // what is still open is left out
  empty_buffers(r, &made.events);
  made.dropped = r.dropped;
  made.start_ns = r.start_ns;
  return made;
}

void add(Event event) {
  Recorder& r = recorder();
  if (r.count.fetch_add(1, std::memory_order_relaxed) >= r.most.load(std::memory_order_relaxed)) {
    r.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Buffer& buffer = own_buffer();
  event.thread = buffer.thread;
  const std::lock_guard lock(buffer.mutex);
  buffer.events.push_back(event);
}

void add_memory(int64_t change, int64_t live) {
  const char* const op = current_op();
  Event event;
  event.name = op ? kept(op) : "";
  event.begin_ns = event.end_ns = now_ns();
  event.bytes = change;
  event.live = live;
  event.layer = current_layer();
  event.depth = depth();
  event.kind = Kind::Memory;
  add(event);
}

Span::Span(Kind kind, const char* name, RangeType type) : generation_(timeline::generation()) {
  event.name = name;
  event.begin_ns = now_ns();
  event.layer = current_layer();
  event.depth = depth();
  event.kind = kind;
  event.range_type = static_cast<uint8_t>(type);
}

Span::~Span() {
  if (!is_running() || generation_ != timeline::generation()) return;
  event.end_ns = now_ns();
  add(event);
}

}  // namespace timeline
}  // namespace oar
