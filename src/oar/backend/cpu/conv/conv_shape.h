// Convolutions as their kernels see them.
#pragma once

#include "oar/backend/cpu/conv/im2col.h"
#include "oar/backend/cpu/loops/loops.h"

namespace oar::cpu {

// Arguments from `first` on: stride, padding, dilation, groups.
inline ConvShape conv_shape(const KernelCall& call, int first, const oar_tensor& x,
                            const oar_tensor& weight, const oar_tensor& out) {
  const Ints stride = call.arg(first).as_ints(), padding = call.arg(first + 1).as_ints();
  const Ints dilation = call.arg(first + 2).as_ints();
  const int64_t groups = call.arg(first + 3).as_int();
  ConvShape s{x.shape[0], groups, x.shape[1] / groups, out.shape[1] / groups, {}, {}, {}};
  ConvAxis* const axes[] = {&s.z, &s.y, &s.x};
  for (size_t i = 0; i < stride.size(); ++i)
    *axes[3 - stride.size() + i] = {x.shape[2 + i], out.shape[2 + i], weight.shape[2 + i],
                                    stride[i],      dilation[i],      padding[2 * i]};
  return s;
}

// Runs body(image, group) for all of them; with fewer than there are threads, one after the other, so
// that the product inside has the threads.
template <class Body>
void for_each_group(const ConvShape& s, Body&& body) {
  const int64_t count = s.batch * s.groups;
  if (count < num_threads()) {
    for (int64_t i = 0; i < count; ++i) body(i / s.groups, i % s.groups);
    return;
  }
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i / s.groups, i % s.groups);
  });
}

// The gradient of a convolution with stride 1 is a convolution itself.
inline ConvShape reversed(const ConvShape& s) {
  ConvShape r = s;
  std::swap(r.channels, r.out_channels);
  for (ConvAxis* axis : {&r.z, &r.y, &r.x}) {
    std::swap(axis->size, axis->out);
    axis->before = axis->dilation * (axis->kernel - 1) - axis->before;
  }
  return r;
}

}  // namespace oar::cpu
