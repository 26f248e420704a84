// The memory of tensors. Views share a storage; its version counts in-place writes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "oar/base/api.h"
#include "oar/base/intrusive.h"

namespace OAR_RUNTIME_API oar {

struct Device {
  uint8_t type = 0;  // index into the device registry; 0 is the CPU
  uint8_t index = 0;
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == 0; }
};

class Storage : public RefCounted {
 public:
  using Deleter = void (*)(void* context, void* data, size_t bytes);

  // Memory from the device's allocator, uninitialised.
  static Intrusive<Storage> allocate(size_t bytes, Device device);
  // Memory owned by others; `deleter` (may be null) runs when the last view is freed.
  static Intrusive<Storage> adopt(void* data, size_t bytes, Device device, Deleter deleter,
                                  void* context);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }
  bool is_readonly() const { return readonly_; }
  void set_readonly() { readonly_ = true; }

  void release() const;

 private:
  Storage(void* data, size_t bytes, Device device, Deleter deleter, void* context)
      : data_(data), bytes_(bytes), deleter_(deleter), context_(context), device_(device) {}
  ~Storage() = default;

  void* data_;
  size_t bytes_;
  Deleter deleter_;
  void* context_;
  std::atomic<uint32_t> version_{0};
  Device device_;
  bool readonly_ = false;
};

using StoragePtr = Intrusive<Storage>;

// How a device allocates memory. The registry of devices installs one per device type.
struct MemorySource {
  void* (*allocate)(size_t bytes, Device device);
  void (*free)(void* data, size_t bytes, Device device);
};
void set_memory_source(uint8_t device_type, MemorySource source);

}  // namespace oar
