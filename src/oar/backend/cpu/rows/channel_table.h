// Loops over pixels whose channels are adjacent, compiled for several instruction sets. Which one runs is
// chosen once.
#pragma once

namespace oar::cpu {

// One image, and what slides over it: sizes and strides are (rows, columns).
struct DepthwiseShape {
  long height, width, out_height, out_width, kernel_height, kernel_width, channels;
  long stride[2], before[2], dilation[2];
};

// Everything below is `rows` pixels of n channels each, one after another; numbers per channel are arrays of n.
template <class T>
struct ChannelTable {
  // Joins the mean and the sum of squared distances from it of `before` pixels with those of these.
  void (*moments)(const T* x, long rows, long n, long before, T* mean, T* spread);
  // out = (x - mean) * scale + shift, and with relu 0 for negative results. `stream` bypasses the
  // caches, if the rows start at whole vectors; the caller issues a fence before others read.
  void (*affine)(const T* x, T* out, long rows, long n, const T* mean, const T* scale,
                 const T* shift, bool relu, bool stream);
  // level += grad, slope += grad * (x - mean). If `scale` is not null, only those count for which
  // (x - mean) * scale + shift is positive: a relu follows.
  void (*grad_sums)(const T* grad, const T* x, long rows, long n, const T* mean, const T* scale,
                    const T* shift, T* level, T* slope);
  // to = grad * of_grad + (x - mean) * of_x + of_one, with the same meaning of `scale`.
  void (*affine_grad)(const T* grad, const T* x, T* to, long rows, long n, const T* mean,
                      const T* scale, const T* shift, const T* of_grad, const T* of_x,
                      const T* of_one, bool stream);
  // sums[row][column][channel] += x · grad for a depthwise kernel.
  void (*depthwise_weight_grad)(const DepthwiseShape& s, const T* x, const T* grad, T* sums);
};

extern const ChannelTable<float> kBaseChannelsFloat;
extern const ChannelTable<double> kBaseChannelsDouble;
extern const ChannelTable<float> kAvx512ChannelsFloat;  // empty where the compiler has no AVX-512
extern const ChannelTable<double> kAvx512ChannelsDouble;

// The one for this machine.
template <class T>
const ChannelTable<T>& channel_table();

}  // namespace oar::cpu
