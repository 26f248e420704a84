// The asynchronous test device below its kernels: memory, streams, events.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "oar/device/abi.h"

namespace {

constexpr int kDevices = 2;

// ---- Memory: malloc with a canary on both sides. Addresses are shifted out of the range that a
// processor can follow, so that a host that reads them crashes at once.

constexpr uint64_t kShift = uint64_t{1} << 62;
constexpr uint64_t kCanary = 0x0a0b0c0d5eed1234;
struct alignas(128) Header {
  uint64_t bytes;
  uint64_t canary;
};
std::atomic<int64_t> g_live_blocks{0};
std::atomic<int64_t> g_damaged_blocks{0};

char* real(const void* address) {
  return address == nullptr ? nullptr
                            : reinterpret_cast<char*>(reinterpret_cast<uint64_t>(address) - kShift);
}

// The size beyond which there is no memory.
constexpr size_t kMemory = size_t{1} << 40;
constexpr size_t kAlignment = 128;

// Live blocks. The host holds shifted addresses only, in which a leak checker sees no pointers.
struct Blocks {
  std::mutex mutex;
  std::set<void*> all;
};
Blocks& blocks() {
  static auto& instance = *new Blocks;  // the host's caches outlive static variables
  return instance;
}

void* allocate_block(size_t bytes) {
  if (bytes > kMemory) return nullptr;
  const size_t all = (sizeof(Header) + bytes + sizeof(kCanary) + kAlignment - 1) / kAlignment;
  auto* block = static_cast<char*>(std::aligned_alloc(kAlignment, all * kAlignment));
  if (block == nullptr) return nullptr;
  const Header header{bytes, kCanary};
  std::memcpy(block, &header, sizeof(header));
  std::memset(block + sizeof(Header), 0xcd, bytes);
  std::memcpy(block + sizeof(Header) + bytes, &kCanary, sizeof(kCanary));
  ++g_live_blocks;
  {
    const std::lock_guard lock(blocks().mutex);
    blocks().all.insert(block);
  }
  return reinterpret_cast<void*>(reinterpret_cast<uint64_t>(block + sizeof(Header)) + kShift);
}

void release_now(char* data, size_t bytes) {
  Header header;
  std::memcpy(&header, data - sizeof(Header), sizeof(header));
  const bool intact = header.canary == kCanary && header.bytes == bytes &&
                      std::memcmp(data + bytes, &kCanary, sizeof(kCanary)) == 0;
  if (!intact) ++g_damaged_blocks;
  --g_live_blocks;
  {
    const std::lock_guard lock(blocks().mutex);
    blocks().all.erase(data - sizeof(Header));
  }
  std::free(data - sizeof(Header));
}

// ---- Streams.

std::mutex g_pause_mutex;
std::condition_variable g_pause_changed;
bool g_paused = false;

// A task returns an error, or nothing.
using Task = std::function<std::string()>;

class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void push(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      ++pending_;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pending_ == 0; });
  }
  const char* take_error() {
    const std::lock_guard lock(mutex_);
    if (error_.empty()) return nullptr;
    taken_ = std::move(error_);
    error_.clear();
    return taken_.c_str();
  }

 private:
  // Now and then work is late, so that whoever does not wait for it is found out.
  void dawdle() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    if (random_ >> 60 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random_ >> 32 & 0xff));
  }

  void run() {
    for (;;) {
      Task task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      {
        std::unique_lock lock(g_pause_mutex);
        g_pause_changed.wait(lock, [] { return !g_paused; });
      }
      dawdle();
      std::string error = task();
      task = nullptr;
      const std::lock_guard lock(mutex_);
      if (error_.empty()) error_ = std::move(error);
      --pending_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  int pending_ = 0;
  bool stopping_ = false;
  std::string error_, taken_;
  uint64_t random_ = reinterpret_cast<uintptr_t>(this);
  std::thread thread_;
};

// All streams, so that memory is freed after the work of all of them.
struct Streams {
  std::mutex mutex;
  std::set<Worker*> all;
  Worker* defaults[kDevices] = {};
};
Streams& streams() {
  static Streams* instance = new Streams;  // its threads may work until the process ends
  return *instance;
}

Worker& worker(int32_t index, oar_stream* stream) {
  if (stream != nullptr) return *reinterpret_cast<Worker*>(stream);
  Streams& s = streams();
  const std::lock_guard lock(s.mutex);
  Worker*& made = s.defaults[index];
  if (made == nullptr) {
    made = new Worker;
    s.all.insert(made);
  }
  return *made;
}

oar_stream* stream_create(int32_t) {
  auto* made = new Worker;
  const std::lock_guard lock(streams().mutex);
  streams().all.insert(made);
  return reinterpret_cast<oar_stream*>(made);
}
void stream_destroy(oar_stream* stream) {
  auto* old = reinterpret_cast<Worker*>(stream);
  {
    const std::lock_guard lock(streams().mutex);
    streams().all.erase(old);
  }
  delete old;
}
int32_t stream_synchronize(int32_t index, oar_stream* stream) {
  worker(index, stream).wait();
  return OAR_OK;
}
const char* stream_take_error(int32_t index, oar_stream* stream) {
  return worker(index, stream).take_error();
}

// Streams that the host named and that do not exist.
std::atomic<int64_t> g_unknown_streams{0};

void check_stream(oar_stream* stream) {
  if (stream == nullptr) return;
  const std::lock_guard lock(streams().mutex);
  if (!streams().all.contains(reinterpret_cast<Worker*>(stream))) ++g_unknown_streams;
}

void* allocate(int32_t, size_t bytes, oar_stream* stream) {
  check_stream(stream);
  return allocate_block(bytes);
}

// Work that is queued may still use the block: it goes when every stream has come past this point.
void release(int32_t, void* address, size_t bytes, oar_stream* stream) {
  check_stream(stream);
  char* data = real(address);
  if (data == nullptr) return;
  const std::shared_ptr<void> last(
      data, [bytes](void* block) { release_now(static_cast<char*>(block), bytes); });
  const std::lock_guard lock(streams().mutex);
  for (Worker* w : streams().all) w->push([last] { return std::string(); });
}

int32_t copy(int32_t index, void* to, const void* from, size_t bytes, oar_copy_kind kind,
             oar_stream* stream) {
  if (kind == OAR_HOST_TO_DEVICE) {  // the host may change its memory as soon as we return
    auto staged = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                      static_cast<const char*>(from) + bytes);
    worker(index, stream).push([=] {
      std::memcpy(real(to), staged->data(), bytes);
      return std::string();
    });
    return OAR_OK;
  }
  char* target = kind == OAR_DEVICE_TO_HOST ? static_cast<char*>(to) : real(to);
  worker(index, stream).push([=] {
    std::memcpy(target, real(from), bytes);
    return std::string();
  });
  return OAR_OK;
}

std::atomic<int64_t> g_peer_copies{0};

// Devices of this type read each other's memory; to others there is no way.
int32_t copy_peer(int32_t to_index, void* to, const char* from_type, int32_t, const void* from,
                  size_t bytes, oar_stream* stream) {
  if (std::strcmp(from_type, "async") != 0) return OAR_UNSUPPORTED;
  ++g_peer_copies;
  worker(to_index, stream).push([=] {
    std::memcpy(real(to), real(from), bytes);
    return std::string();
  });
  return OAR_OK;
}

int32_t query(int32_t index, int32_t key, oar_value* value) {
  static constexpr const char* kNames[kDevices] = {"the first queue", "the second queue"};
  switch (key) {
    case OAR_KEY_NAME:
      *value = {OAR_TAG_STRING,
                static_cast<int32_t>(std::strlen(kNames[index])),
                {.string = kNames[index]}};
      return OAR_OK;
    case OAR_KEY_MEMORY_BYTES:
      *value = {OAR_TAG_INT, 0, {.integer = int64_t{kMemory}}};
      return OAR_OK;
    case OAR_KEY_ALIGNMENT:
      *value = {OAR_TAG_INT, 0, {.integer = int64_t{kAlignment}}};
      return OAR_OK;
    default:
      return OAR_UNSUPPORTED;
  }
}

// ---- Events.

struct Event {
  int32_t device = 0;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;
};
using SharedEvent = std::shared_ptr<Event>;
SharedEvent& event_of(oar_event* event) { return *reinterpret_cast<SharedEvent*>(event); }

oar_event* event_create(int32_t index) {
  auto* event = new SharedEvent(std::make_shared<Event>());
  (*event)->device = index;
  return reinterpret_cast<oar_event*>(event);
}
void event_destroy(oar_event* event) { delete &event_of(event); }
int32_t event_record(oar_event* event, oar_stream* stream) {
  SharedEvent e = event_of(event);
  uint64_t number;
  {
    const std::lock_guard lock(e->mutex);
    number = ++e->recorded;
  }
  worker(e->device, stream).push([e, number] {
    const std::lock_guard lock(e->mutex);
    e->reached = std::max(e->reached, number);
    e->changed.notify_all();
    return std::string();
  });
  return OAR_OK;
}
int32_t event_query(oar_event* event) {
  const SharedEvent& e = event_of(event);
  const std::lock_guard lock(e->mutex);
  return e->reached == e->recorded ? 1 : 0;
}
int32_t event_wait(oar_event* event, oar_stream* stream) {
  SharedEvent e = event_of(event);
  uint64_t number;
  {
    const std::lock_guard lock(e->mutex);
    number = e->recorded;
  }
  worker(e->device, stream).push([e, number] {
    std::unique_lock lock(e->mutex);
    e->changed.wait(lock, [&] { return e->reached >= number; });
    return std::string();
  });
  return OAR_OK;
}

}  // namespace
