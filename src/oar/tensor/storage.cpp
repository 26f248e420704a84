#include "oar/tensor/storage.h"

#include <array>
#include <cstdlib>
#include <new>

#include "oar/base/error.h"
#include "oar/tensor/allocator.h"

namespace oar {
namespace {

// A small tensor's data follows its header in one block: one malloc and one cache miss less. The
// size keeps blocks within malloc's thread cache; aligned_alloc would bypass it.
constexpr size_t kInlineBytes = 512;
constexpr size_t kHeader = (sizeof(Storage) + cpu_allocator::kAlignment - 1) /
                           cpu_allocator::kAlignment * cpu_allocator::kAlignment;

std::array<MemorySource, 256> g_sources{};

void free_inline(void*, void*, size_t bytes) { cpu_allocator::count(-static_cast<int64_t>(bytes)); }

void free_cpu(void*, void* data, size_t bytes) { cpu_allocator::free(data, bytes); }

void free_device(void* context, void* data, size_t bytes) {
  const auto packed = reinterpret_cast<uintptr_t>(context);
  const Device device{static_cast<uint8_t>(packed >> 8), static_cast<uint8_t>(packed & 0xff)};
  g_sources[device.type].free(data, bytes, device);
}

}  // namespace

void set_memory_source(uint8_t device_type, MemorySource source) {
  g_sources[device_type] = source;
}

StoragePtr Storage::allocate(size_t bytes, Device device) {
  if (!device.is_cpu()) {
    const MemorySource& source = g_sources[device.type];
    internal_check(source.allocate != nullptr, "device type {} has no memory source", device.type);
    void* data = source.allocate(bytes, device);
    auto* context =
        reinterpret_cast<void*>(static_cast<uintptr_t>(device.type << 8 | device.index));
    return StoragePtr::adopt(new Storage(data, bytes, device, free_device, context));
  }
  if (bytes <= kInlineBytes && cpu_allocator::limit() == 0) {
    void* block = std::malloc(cpu_allocator::kAlignment + kHeader + bytes);
    if (!block) throw std::bad_alloc();
    const auto header = (reinterpret_cast<uintptr_t>(block) + cpu_allocator::kAlignment - 1) &
                        ~uintptr_t{cpu_allocator::kAlignment - 1};
    cpu_allocator::count(static_cast<int64_t>(bytes));
    auto* data = reinterpret_cast<char*>(header) + kHeader;
    return StoragePtr::adopt(new (reinterpret_cast<void*>(header))
                                 Storage(data, bytes, device, free_inline, block));
  }
  void* data = cpu_allocator::allocate(bytes);
  return StoragePtr::adopt(new Storage(data, bytes, device, free_cpu, nullptr));
}

StoragePtr Storage::adopt(void* data, size_t bytes, Device device, Deleter deleter, void* context) {
  return StoragePtr::adopt(new Storage(data, bytes, device, deleter, context));
}

void Storage::release() const {
  if (!drop_reference()) return;
  auto* self = const_cast<Storage*>(this);
  if (deleter_) deleter_(context_, data_, bytes_);
  if (deleter_ == free_inline) {
    void* block = context_;
    self->~Storage();
    std::free(block);
  } else {
    delete self;
  }
}

}  // namespace oar
