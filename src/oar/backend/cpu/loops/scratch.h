// Working memory of a kernel: on the stack if it is small, else from the caching allocator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oar/tensor/allocator.h"

namespace oar::cpu {

template <class T, size_t kInlineBytes = 8192>
class Scratch {
 public:
  explicit Scratch(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(T)) {
    data_ = static_cast<T*>(bytes_ <= kInlineBytes ? static_cast<void*>(inline_)
                                                   : cpu_allocator::allocate(bytes_));
  }
  ~Scratch() {
    if (bytes_ > kInlineBytes) cpu_allocator::free(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  size_t bytes_;
  T* data_;
  alignas(64) char inline_[kInlineBytes];
};

}  // namespace oar::cpu
