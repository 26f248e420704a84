// Images read at the places of a grid. Places are taken in blocks: their pixels and weights are found
// once and used for all channels.
#include <cmath>

#include "oar/backend/cpu/compact.h"

namespace oar::cpu {
namespace {

constexpr int64_t kBlock = 128;

struct Reading {
  bool nearest, align_corners;
  enum { Zeros, Border, Reflection } beyond;
  int axes;
  std::array<int64_t, 3> sizes{1, 1, 1};  // of the image, from the outermost
  int64_t images, channels, places;

  int64_t plane() const { return sizes[0] * sizes[1] * sizes[2]; }
  int corners() const { return nearest ? 1 : 1 << axes; }
};

// Arguments from `first` on: mode, padding_mode, align_corners.
Reading reading(const KernelCall& call, const oar_tensor& x, const oar_tensor& grid, int first) {
  const std::string_view beyond = call.arg(first + 1).as_string();
  Reading r{};
  r.nearest = call.arg(first).as_string() == "nearest";
  r.align_corners = call.arg(first + 2).as_bool();
  r.beyond = beyond == "zeros"    ? Reading::Zeros
             : beyond == "border" ? Reading::Border
                                  : Reading::Reflection;
  r.axes = x.ndim - 2;
  for (int k = 0; k < r.axes; ++k) r.sizes[static_cast<size_t>(k)] = x.shape[2 + k];
  r.images = x.shape[0];
  r.channels = x.shape[1];
  r.places = 1;
  for (int k = 1; k < grid.ndim - 1; ++k) r.places *= grid.shape[k];
  return r;
}

// The coordinate in pixels that g in [-1, 1] stands for; `slope` is its derivative.
template <class C>
C in_pixels(C g, int64_t size, const Reading& r, C& slope) {
  const auto n = static_cast<C>(size), last = static_cast<C>(size - 1);
  slope = (r.align_corners ? last : n) / 2;
  C at = r.align_corners ? (g + 1) * slope : (g + 1) * slope - C(0.5);
  if (r.beyond == Reading::Zeros) return at;
  if (r.beyond == Reading::Reflection) {
    const C low = r.align_corners ? C(0) : C(-0.5), span = r.align_corners ? last : n;
    if (span <= 0) {
      slope = 0;
      return 0;
    }
    const C distance = std::abs(at - low), turns = std::floor(distance / span);
    const C rest = distance - turns * span;
    const bool forward = std::fmod(turns, C(2)) == 0;
    slope *= (at < low ? C(-1) : C(1)) * (forward ? C(1) : C(-1));
    at = (forward ? rest : span - rest) + low;
  }
  if (!(at > 0 && at < last)) slope = 0;
  return at > last ? last : at > 0 ? at : at != at ? at : C(0);
}

// Up to kBlock places: for corner k of place p the pixel's number and weight. A pixel that is not there
// has weight 0 and number 0.
template <class C>
struct Block {
  int64_t count = 0;
  int32_t pixel[8][kBlock];
  C weight[8][kBlock];
  C part[3][kBlock], slope[3][kBlock];  // between the two neighbours along an axis
  bool there[8][kBlock];

  Block(const Reading& r, const C* grid, int64_t n) : count(n) {
    int32_t below[3][kBlock];
    for (int axis = 0; axis < r.axes; ++axis)
      for (int64_t p = 0; p < n; ++p) {
        const int64_t size = r.sizes[static_cast<size_t>(axis)];
        const C at = in_pixels(grid[p * r.axes + (r.axes - 1 - axis)], size, r, slope[axis][p]);
        const C floor = r.nearest ? std::round(at) : std::floor(at);
        part[axis][p] = at - floor;
        // NaN and what lies far outside count as outside.
        below[axis][p] =
            floor >= -1 && floor <= static_cast<C>(size) ? static_cast<int32_t>(floor) : -2;
      }
    for (int k = 0; k < r.corners(); ++k)
      for (int64_t p = 0; p < n; ++p) corner(r, below, k, p);
  }

 private:
  void corner(const Reading& r, const int32_t (*below)[kBlock], int k, int64_t p) {
    int64_t number = 0;
    C w = 1;
    bool exists = true;
    for (int axis = 0; axis < r.axes; ++axis) {
      const int up = k >> (r.axes - 1 - axis) & 1;
      const int64_t at = below[axis][p] + up, size = r.sizes[static_cast<size_t>(axis)];
      exists &= at >= 0 && at < size;
      number = number * size + at;
      if (!r.nearest) w *= up ? part[axis][p] : 1 - part[axis][p];
    }
    there[k][p] = exists;
    pixel[k][p] = exists ? static_cast<int32_t>(number) : 0;
    weight[k][p] = exists ? w : C(0);
  }
};

template <class C, int kCorners>
void read_channel(const Block<C>& block, const C* __restrict plane, C* __restrict out) {
  for (int64_t p = 0; p < block.count; ++p) {
    C sum = 0;
    for (int k = 0; k < kCorners; ++k) {
      const C w = block.weight[k][p], v = plane[block.pixel[k][p]];
      sum += w != 0 ? v * w : C(0);
    }
    out[p] = sum;
  }
}

template <class C, int kCorners>
void add_channel(const Block<C>& block, const C* __restrict grad, C* __restrict plane) {
  for (int64_t p = 0; p < block.count; ++p)
    for (int k = 0; k < kCorners; ++k)
      if (block.there[k][p]) plane[block.pixel[k][p]] += block.weight[k][p] * grad[p];
}

// body(std::integral_constant<int, corners>).
template <class Body>
void with_corners(const Reading& r, Body&& body) {
  if (r.nearest) return body(std::integral_constant<int, 1>());
  if (r.axes == 2) return body(std::integral_constant<int, 4>());
  body(std::integral_constant<int, 8>());
}

// body(image, first place, count) over blocks, in parallel.
template <class Body>
void each_block(const Reading& r, Body&& body) {
  const int64_t blocks = (r.places + kBlock - 1) / kBlock;
  parallel_for(0, r.images * blocks, std::max<int64_t>(1, kGrain / 8 / (kBlock * r.channels)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t first = b % blocks * kBlock;
                   body(b / blocks, first, std::min(kBlock, r.places - first));
                 }
               });
}

void check_pixels(const Reading& r) {
  user_check(r.plane() <= INT32_MAX, ErrorKind::InvalidArgument,
             "an image of {} pixels is larger than a grid can read.", r.plane());
}

void grid_sample(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Reading r = reading(call, call.in(0), call.in(1), 2);
  check_pixels(r);
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Compact<T> x(call.in(0)), grid(call.in(1));
    const Result<T> out(call.out());
    with_corners(r, [&](auto corners) {
      each_block(r, [&](int64_t image, int64_t first, int64_t count) {
        const Block<C> block(r, grid.data() + (image * r.places + first) * r.axes, count);
        for (int64_t c = image * r.channels; c < (image + 1) * r.channels; ++c)
          read_channel<C, corners()>(block, x.data() + c * r.plane(),
                                     out.data() + c * r.places + first);
      });
    });
    out.finish();
  });
}

void grid_sample_grad_x(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Reading r = reading(call, call.out(), call.in(1), 3);
  check_pixels(r);
  constexpr int64_t kChannels = 16;  // planes of one image that share a pass over the grid
  const int64_t groups = (r.channels + kChannels - 1) / kChannels;
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Compact<T> grad(call.in(0)), grid(call.in(1));
    const Result<T> out(call.out());
    with_corners(r, [&](auto corners) {
      parallel_for(0, r.images * groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) {
          const int64_t image = g / groups, from = image * r.channels + g % groups * kChannels,
                        to = std::min((image + 1) * r.channels, from + kChannels);
          std::fill(out.data() + from * r.plane(), out.data() + to * r.plane(), C(0));
          for (int64_t first = 0; first < r.places; first += kBlock) {
            const Block<C> block(r, grid.data() + (image * r.places + first) * r.axes,
                                 std::min(kBlock, r.places - first));
            for (int64_t c = from; c < to; ++c)
              add_channel<C, corners()>(block, grad.data() + c * r.places + first,
                                        out.data() + c * r.plane());
          }
        }
      });
    });
    out.finish();
  });
}

// The weight of corner k without the axis, times the sign with which that axis enters it.
template <class C>
C weight_beside(const Block<C>& block, const Reading& r, int k, int axis, int64_t p) {
  C w = k >> (r.axes - 1 - axis) & 1 ? C(1) : C(-1);
  for (int other = 0; other < r.axes; ++other) {
    if (other == axis) continue;
    const bool up = k >> (r.axes - 1 - other) & 1;
    w *= up ? block.part[other][p] : 1 - block.part[other][p];
  }
  return w;
}

// For each corner the sum over channels of pixel times gradient; partial sums keep it exact.
template <class C, int kCorners>
void correlate(const Block<C>& block, const Reading& r, const C* x, const C* grad,
               C (*sums)[kBlock]) {
  constexpr int64_t kPart = 32;
  for (int k = 0; k < kCorners; ++k) std::fill(sums[k], sums[k] + block.count, C(0));
  for (int64_t from = 0; from < r.channels; from += kPart)
    for (int k = 0; k < kCorners; ++k) {
      C part[kBlock];
      std::fill(part, part + block.count, C(0));
      for (int64_t c = from; c < std::min(r.channels, from + kPart); ++c) {
        const C *plane = x + c * r.plane(), *g = grad + c * r.places;
        for (int64_t p = 0; p < block.count; ++p) {
          const C v = plane[block.pixel[k][p]];
          part[p] += block.there[k][p] ? v * g[p] : C(0);
        }
      }
      for (int64_t p = 0; p < block.count; ++p) sums[k][p] += part[p];
    }
}

void grid_sample_grad_grid(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Reading r = reading(call, call.in(1), call.in(2), 3);
  check_pixels(r);
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Compact<T> grad(call.in(0)), x(call.in(1)), grid(call.in(2));
    const Result<T> out(call.out());
    std::fill(out.data(), out.data() + call.out().numel, C(0));
    if (r.nearest) return out.finish();
    with_corners(r, [&](auto corners) {
      each_block(r, [&](int64_t image, int64_t first, int64_t count) {
        const int64_t place = (image * r.places + first) * r.axes;
        const Block<C> block(r, grid.data() + place, count);
        C sums[8][kBlock];
        correlate<C, corners()>(block, r, x.data() + image * r.channels * r.plane(),
                                grad.data() + image * r.channels * r.places + first, sums);
        for (int axis = 0; axis < r.axes; ++axis)
          for (int64_t p = 0; p < count; ++p) {
            C sum = 0;
            for (int k = 0; k < corners(); ++k)
              sum += block.there[k][p] ? sums[k][p] * weight_beside(block, r, k, axis, p) : C(0);
            out.data()[place + p * r.axes + (r.axes - 1 - axis)] = sum * block.slope[axis][p];
          }
      });
    });
    out.finish();
  });
}

}  // namespace

KernelList sampling_kernels() {
  static const oar_kernel list[] = {
      {"grid_sample", 1, "cpu:ref", nullptr, kernel_entry<grid_sample>},
      {"grid_sample_grad_x", 1, "cpu:ref", nullptr, kernel_entry<grid_sample_grad_x>},
      {"grid_sample_grad_grid", 1, "cpu:ref", nullptr, kernel_entry<grid_sample_grad_grid>},
  };
  return list;
}

}  // namespace oar::cpu
