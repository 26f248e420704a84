// What the public forms of pooling share.
#pragma once

#include <optional>

#include "oar/ops/families/window.h"

namespace oar {

using Numbers = SmallVector<int64_t, 6>;

inline void check_rank(const Tensor& x, size_t spatial) {
  user_check(
      x.rank() == static_cast<int>(spatial) + 2, ErrorKind::InvalidArgument,
      "x must have {} axes, but its shape is {}.\nhint: unsqueeze(0) adds a batch to a single "
      "image.",
      spatial + 2, to_string(x.dims()));
}
// Of ops that take any number of spatial axes.
inline size_t spatial_of(const Tensor& x) { return axes_of_rank(x.rank(), false).spatial; }

inline Numbers stride_of(const std::optional<Ints>& stride, const Numbers& window) {
  return stride && !stride->empty() ? expand_ints(*stride, window.size(), "stride") : window;
}

// The public forms of the arguments, resolved.
struct ResolvedWindows {
  ImageAxes axes;
  Numbers window, stride;
  Shape padding;

  template <class A>
  ResolvedWindows(const A& a, size_t spatial) : axes(axes_of(a.data_format, spatial)) {
    check_rank(a.x, spatial);
    window = expand_ints(a.kernel_size, spatial, "kernel_size");
    stride = stride_of(a.stride, window);
    check_windows(Ints(window), spatial, "kernel_size");
    check_windows(Ints(stride), spatial, "stride");
    user_check(a.padding_algorithm != "VALID" || !a.ceil_mode, ErrorKind::InvalidArgument,
               "ceil_mode adds windows at the edge, which padding 'VALID' excludes.\nhint: Pass "
               "ceil_mode=False, or padding as numbers.");
    padding = resolve_padding(a.padding_algorithm, a.padding, axes.sizes(a.x.dims()),
                              Shape(Ints(window)), Ints(stride));
  }
};

}  // namespace oar
