// Images with channels last, seen and written with channels after the batch.
#pragma once

#include <algorithm>

#include "oar/backend/cpu/loops/compact.h"

namespace oar::cpu {

// A description of the same memory with the channels after the batch.
class ChannelsFirst {
 public:
  ChannelsFirst(const oar_tensor& t, bool channels_last) : tensor_(t) {
    if (!channels_last) return;
    for (int i = 0; i < t.ndim; ++i) {
      const int from = i == 0 ? 0 : i == 1 ? t.ndim - 1 : i - 1;
      shape_.push_back(t.shape[from]);
      strides_.push_back(t.strides[from]);
    }
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
  }
  ChannelsFirst(const ChannelsFirst&) = delete;
  ChannelsFirst& operator=(const ChannelsFirst&) = delete;
  const oar_tensor& get() const { return tensor_; }

 private:
  oar_tensor tensor_;
  SmallVector<int64_t, 6> shape_, strides_;
};

}  // namespace oar::cpu
