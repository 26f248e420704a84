// What the ops of TensorFlow and TFLite mean: images with channels last, padding "SAME", slices with masks.
#pragma once

#include <cstdint>
#include <vector>

#include "oar/tensor/tensor.h"

namespace oar::interop {

struct Window {
  std::vector<int64_t> kernel, stride, dilation = {1, 1};  // height, width; or depth, height, width
  bool same = false;                                       // else VALID
  std::vector<int64_t> padding = {};  // (before, after) for each, if it is explicit
};

// `filter` is [out, in / groups, height, width].
Tensor convolve_last(const Tensor& x, const Tensor& filter, const Tensor& bias,
                     const Window& window, int64_t groups);
Tensor max_pool_last(const Tensor& x, const Window& window);
Tensor avg_pool_last(const Tensor& x, const Window& window);  // padding does not count
// The gradient of a convolution as a layer; `filter` is [in, out, height, width], `sizes` those of the result.
Tensor convolve_transposed_last(const Tensor& x, const Tensor& filter, const Window& window,
                                int64_t height, int64_t width);

struct Resizing {
  int64_t height = 0, width = 0;
  bool nearest = false, align_corners = false, half_pixel = false;
};
Tensor resize_last(const Tensor& x, const Resizing& to);

// Bits say which axes begin or end at their ends, are new, or are dropped.
struct SliceMasks {
  int64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink = 0;
};
Tensor slice_with_masks(const Tensor& x, const std::vector<int64_t>& begin,
                        const std::vector<int64_t>& end, const std::vector<int64_t>& stride,
                        const SliceMasks& masks);

// (before, after) for each axis. Reflected: without the edge; else with it.
Tensor mirror_pad(const Tensor& x, const std::vector<int64_t>& paddings, bool reflected);
Tensor depth_to_space_last(const Tensor& x, int64_t block);
Tensor space_to_depth_last(const Tensor& x, int64_t block);
// Blocks along the axes after the first one move to the batch, which is what a dilated convolution is made of, and back.
// `paddings` and `crops` are (before, after) for each block axis.
Tensor space_to_batch(const Tensor& x, const std::vector<int64_t>& block,
                      const std::vector<int64_t>& paddings);
Tensor batch_to_space(const Tensor& x, const std::vector<int64_t>& block,
                      const std::vector<int64_t>& crops);

}  // namespace oar::interop
