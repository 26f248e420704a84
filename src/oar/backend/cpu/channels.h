// Images with channels last, seen and written with channels after the batch.
#pragma once

#include <algorithm>

#include "oar/backend/cpu/compact.h"

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

// A result computed as a flat array of compute_t<T>, and put in its place at the end.
template <class T>
class Placed {
 public:
  using Element = compute_t<T>;
  explicit Placed(const oar_tensor& out)
      : out_(out),
        buffer_(copies() ? out.numel : 0),
        data_(copies() ? buffer_.data() : static_cast<Element*>(out.data)) {}
  Element* data() const { return data_; }
  void finish() const {
    if (copies())
      convert_elements<T, Element>(out_, FlatTensor(out_, data_, dtype_of<Element>).get());
  }

 private:
  bool copies() const { return !std::is_same_v<T, Element> || !is_contiguous(out_); }
  const oar_tensor& out_;
  Scratch<Element, 64> buffer_;
  Element* data_;
};

}  // namespace oar::cpu
