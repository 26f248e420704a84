// Images sampled at the positions of a grid. Positions are processed in blocks: their pixels and weights
// are computed once and used for all channels.
#include <cmath>
#include <vector>

#include "oar/backend/cpu/loops/compact.h"
#include "oar/backend/cpu/vector.h"

namespace oar::cpu {
namespace {

constexpr int64_t kBlock = 1024;

struct Reading {
  bool nearest, align_corners;
  enum { Zeros, Border, Reflection } beyond;
  int axes;
  std::array<int64_t, 3> sizes{1, 1, 1};  // of the image, from the outermost
  int64_t images, channels, places;

  int64_t plane() const { return sizes[0] * sizes[1] * sizes[2]; }
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

// The coordinate in pixels of g in [-1, 1]; `slope` is its derivative.
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
    // A position exactly on the mirror still counts forward.
    slope *= (at < low ? C(-1) : C(1)) * (forward || rest == 0 ? C(1) : C(-1));
    at = (forward ? rest : span - rest) + low;
  }
  if (at < 0 || at > last) slope = 0;
  return at > last ? last : at > 0 ? at : at != at ? at : C(0);
}

// Half to even.
template <class C>
C rounded(C v) {
  return std::nearbyint(v);
}

// Up to kBlock positions: for corner k of position p the pixel's number and weight. A missing pixel
// has weight 0 and number 0, or weight NaN if the position is NaN.
template <class C, int kAxes, bool kNearest>
struct Block {
  static constexpr int kCorners = kNearest ? 1 : 1 << kAxes;
  int64_t count = 0;
  int32_t pixel[kCorners][kBlock], there[kCorners][kBlock];
  C weight[kCorners][kBlock];
  C part[kAxes][kBlock], slope[kAxes][kBlock];  // between the two neighbours along an axis

  Block(const Reading& r, const C* grid, int64_t n) : count(n) {
    int32_t below[kAxes][kBlock];
    for (int axis = 0; axis < kAxes; ++axis) place(r, axis, grid + (kAxes - 1 - axis), below[axis]);
    for (int k = 0; k < kCorners; ++k) corner(r, below, k);
  }

  // The neighbour of corner k along an axis is the upper one.
  static bool upper(int k, int axis) { return k >> (kAxes - 1 - axis) & 1; }

 private:
  void place(const Reading& r, int axis, const C* grid, int32_t* below) {
    const int64_t size = r.sizes[static_cast<size_t>(axis)];
    C at[kBlock];
    if (r.beyond == Reading::Zeros) {
      const C half = static_cast<C>(r.align_corners ? size - 1 : size) / 2,
              shift = r.align_corners ? C(0) : C(-0.5);
      for (int64_t p = 0; p < count; ++p) at[p] = (grid[p * kAxes] + 1) * half + shift;
      std::fill(slope[axis], slope[axis] + count, half);
    } else {
      for (int64_t p = 0; p < count; ++p)
        at[p] = in_pixels(grid[p * kAxes], size, r, slope[axis][p]);
    }
    const auto end = static_cast<C>(size);
    for (int64_t p = 0; p < count; ++p) {
      const C floor = kNearest ? rounded(at[p]) : std::floor(at[p]);
      part[axis][p] = std::isinf(at[p]) ? C(0) : at[p] - floor;
      // NaN and positions far outside count as outside; between pixels, NaN is a weight too.
      below[p] = static_cast<int32_t>(floor >= -1 && floor <= end ? floor : C(-2));
    }
  }

  void corner(const Reading& r, const int32_t (*below)[kBlock], int k) {
    std::array<int32_t, kAxes> size;
    for (int axis = 0; axis < kAxes; ++axis)
      size[static_cast<size_t>(axis)] = static_cast<int32_t>(r.sizes[static_cast<size_t>(axis)]);
    for (int64_t p = 0; p < count; ++p) {
      int32_t number = 0, exists = 1;
      C w = 1;
      for (int axis = 0; axis < kAxes; ++axis) {
        const int32_t n = size[static_cast<size_t>(axis)], at = below[axis][p] + upper(k, axis);
        exists &= static_cast<int32_t>(at >= 0) & static_cast<int32_t>(at < n);
        number = number * n + at;
        if (!kNearest) w *= upper(k, axis) ? part[axis][p] : 1 - part[axis][p];
      }
      there[k][p] = exists;
      pixel[k][p] = exists ? number : 0;
      weight[k][p] = exists || w != w ? w : C(0);
    }
  }
};

// The corners of a block in pairs that lie side by side in memory, at most shifted by one at either end of a plane.
template <class Places>
struct Pairs {
  static constexpr int kPairs = Places::kCorners / 2;
  int64_t count = 0;  // a multiple of 8: places that are missing weigh nothing
  int32_t first[kPairs][kBlock];
  float weight[kPairs][2 * kBlock];

  Pairs(const Places& block, int64_t plane) : count((block.count + 7) / 8 * 8) {
    const auto last = static_cast<int32_t>(plane - 2);
    for (int k = 0; k < kPairs; ++k) {
      const int low = 2 * k, high = low + 1;
      for (int64_t p = 0; p < block.count; ++p) {
        const bool has_low = block.there[low][p], has_high = block.there[high][p];
        const int32_t at = has_low ? block.pixel[low][p] : block.pixel[high][p] - int32_t{has_high};
        const float before = block.weight[low][p], after = block.weight[high][p];
        first[k][p] = at < 0 ? 0 : at > last ? last : at;
        weight[k][2 * p] = at < 0 ? after : at > last ? 0.0F : before;
        weight[k][2 * p + 1] = at < 0 ? 0.0F : at > last ? before : after;
      }
      for (int64_t p = block.count; p < count; ++p)
        first[k][p] = 0, weight[k][2 * p] = weight[k][2 * p + 1] = 0;
    }
  }

  void read(const float* plane, float* out, int64_t n) const {
    for (int64_t p = 0; p < n; p += 8) {
      Float8 low{}, high{};
      for (int k = 0; k < kPairs; ++k) {
        low += weighted(plane, k, p);
        high += weighted(plane, k, p + 4);
      }
      const Float8 sums = sums_of_pairs(low, high);
      std::memcpy(out + p, &sums, static_cast<size_t>(std::min<int64_t>(8, n - p)) * sizeof(float));
    }
  }

 private:
  Float8 weighted(const float* plane, int k, int64_t p) const {
    const Float8 w = load8<Float8>(weight[k] + 2 * p);
    return where_not_zero(w, gather_pairs(plane, first[k] + p) * w);
  }
};

template <class C, class Places>
void read_channel(const Places& block, const C* __restrict plane, C* __restrict out) {
  for (int64_t p = 0; p < block.count; ++p) {
    C sum = 0;
    for (int k = 0; k < Places::kCorners; ++k) {
      const C w = block.weight[k][p], v = plane[block.pixel[k][p]];
      sum += w != 0 ? v * w : C(0);
    }
    out[p] = sum;
  }
}

// Reads a block of places in each of the channels, which are planes.
template <class C, class Places>
void read_channels(const Reading& r, const Places& block, const C* planes, C* out) {
  if constexpr (std::is_same_v<C, float> && Places::kCorners > 1)
    if (r.plane() > 1) {
      const Pairs<Places> pairs(block, r.plane());
      for (int64_t c = 0; c < r.channels; ++c)
        pairs.read(planes + c * r.plane(), out + c * r.places, block.count);
      return;
    }
  for (int64_t c = 0; c < r.channels; ++c)
    read_channel<C>(block, planes + c * r.plane(), out + c * r.places);
}

template <class C, class Places>
void add_channel(const Places& block, const C* __restrict grad, C* __restrict plane) {
  for (int64_t p = 0; p < block.count; ++p)
    for (int k = 0; k < Places::kCorners; ++k) {
      C& to = plane[block.pixel[k][p]];
      to = to + (block.there[k][p] ? block.weight[k][p] * grad[p] : C(0));
    }
}

// body(a type of blocks).
template <class C, class Body>
void with_blocks(const Reading& r, Body&& body) {
  const auto by_axes = [&](auto axes) {
    if (r.nearest)
      body(std::type_identity<Block<C, axes(), true>>());
    else
      body(std::type_identity<Block<C, axes(), false>>());
  };
  if (r.axes == 2) return by_axes(std::integral_constant<int, 2>());
  by_axes(std::integral_constant<int, 3>());
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
    with_blocks<C>(r, [&](auto kind) {
      using Places = typename decltype(kind)::type;
      each_block(r, [&](int64_t image, int64_t first, int64_t count) {
        const Places block(r, grid.data() + (image * r.places + first) * r.axes, count);
        read_channels<C>(r, block, x.data() + image * r.channels * r.plane(),
                         out.data() + image * r.channels * r.places + first);
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
    with_blocks<C>(r, [&](auto kind) {
      using Places = typename decltype(kind)::type;
      parallel_for(0, r.images * groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) {
          const int64_t image = g / groups, from = image * r.channels + g % groups * kChannels,
                        to = std::min((image + 1) * r.channels, from + kChannels);
          std::fill(out.data() + from * r.plane(), out.data() + to * r.plane(), C(0));
          for (int64_t first = 0; first < r.places; first += kBlock) {
            const Places block(r, grid.data() + (image * r.places + first) * r.axes,
                               std::min(kBlock, r.places - first));
            for (int64_t c = from; c < to; ++c)
              add_channel<C>(block, grad.data() + c * r.places + first, out.data() + c * r.plane());
          }
        }
      });
    });
    out.finish();
  });
}

// The weight of corner k without the axis, times the sign with which that axis enters it.
template <class C, int kAxes>
C weight_beside(const Block<C, kAxes, false>& block, int k, int axis, int64_t p) {
  C w = block.upper(k, axis) ? C(1) : C(-1);
  for (int other = 0; other < kAxes; ++other)
    if (other != axis) w *= block.upper(k, other) ? block.part[other][p] : 1 - block.part[other][p];
  return w;
}

// For each corner the sum over channels of pixel times gradient; partial sums keep it exact.
template <class C, class Places>
void correlate(const Places& block, const Reading& r, const C* x, const C* grad,
               C (*sums)[kBlock]) {
  constexpr int64_t kPart = 32;
  for (int k = 0; k < Places::kCorners; ++k) {
    std::fill(sums[k], sums[k] + block.count, C(0));
    for (int64_t from = 0; from < r.channels; from += kPart) {
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
}

// The gradient of a block of places.
template <class C, int kAxes>
void grid_gradient(const Block<C, kAxes, false>& block, const Reading& r, const C* x, const C* grad,
                   C* out) {
  C sums[1 << kAxes][kBlock];
  correlate<C>(block, r, x, grad, sums);
  for (int axis = 0; axis < kAxes; ++axis)
    for (int64_t p = 0; p < block.count; ++p) {
      C sum = 0;
      for (int k = 0; k < block.kCorners; ++k) sum += sums[k][p] * weight_beside(block, k, axis, p);
      out[p * kAxes + (kAxes - 1 - axis)] = sum * block.slope[axis][p];
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
    with_blocks<C>(r, [&](auto kind) {
      using Places = typename decltype(kind)::type;
      if constexpr (Places::kCorners > 1)
        each_block(r, [&](int64_t image, int64_t first, int64_t count) {
          const int64_t place = (image * r.places + first) * r.axes;
          grid_gradient(Places(r, grid.data() + place, count), r,
                        x.data() + image * r.channels * r.plane(),
                        grad.data() + image * r.channels * r.places + first, out.data() + place);
        });
    });
    out.finish();
  });
}

// The centres of n pixels between -1 and 1, or with the outermost two on -1 and 1.
template <class C>
std::vector<C> pixel_places(int64_t n, bool align_corners) {
  std::vector<C> places;
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(i), count = static_cast<double>(n);
    places.push_back(static_cast<C>(!align_corners ? (2 * x + 1) / count - 1
                                    : n == 1       ? 0
                                                   : 2 * x / (count - 1) - 1));
  }
  return places;
}

// One row of a grid: the part of the outer coordinates, plus that of the column.
template <class C, int kAxes>
void affine_row(const C* base, const C* step, const std::vector<C>& columns, C* out) {
  for (size_t i = 0; i < columns.size(); ++i)
    for (size_t d = 0; d < kAxes; ++d) out[i * kAxes + d] = base[d] + step[d] * columns[i];
}

// theta: [n, axes, axes + 1]; its columns are for x, y, z, 1. The sizes are depth (or 1), height, width.
template <class C, int kAxes>
void affine_rows(const C* theta, int64_t images, const std::array<int64_t, 3>& sizes, bool align,
                 C* out) {
  const std::vector<C> depth = pixel_places<C>(sizes[0], align),
                       height = pixel_places<C>(sizes[1], align),
                       width = pixel_places<C>(sizes[2], align);
  const int64_t rows = sizes[0] * sizes[1];
  parallel_for(0, images * rows, std::max<int64_t>(1, kGrain / sizes[2]),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const C* matrix = theta + r / rows * (kAxes * (kAxes + 1));
                   C base[kAxes], step[kAxes];
                   for (int d = 0; d < kAxes; ++d) {
                     const C* line = matrix + d * (kAxes + 1);
                     step[d] = line[0];
                     base[d] = line[kAxes] + line[1] * height[static_cast<size_t>(r % sizes[1])];
                     if (kAxes == 3)
                       base[d] += line[2] * depth[static_cast<size_t>(r % rows / sizes[1])];
                   }
                   affine_row<C, kAxes>(base, step, width, out + r * sizes[2] * kAxes);
                 }
               });
}

void affine_grid(KernelCall& call) {
  const oar_tensor& out = call.out();
  if (out.numel == 0) return;
  const bool align = call.arg(2).as_bool(), volumes = out.ndim == 5;
  const std::array<int64_t, 3> sizes{volumes ? out.shape[1] : 1, out.shape[out.ndim - 3],
                                     out.shape[out.ndim - 2]};
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> theta(call.in(0));
    const Result<T> result(call.out());
    const auto rows = volumes ? affine_rows<compute_t<T>, 3> : affine_rows<compute_t<T>, 2>;
    rows(theta.data(), out.shape[0], sizes, align, result.data());
    result.finish();
  });
}

}  // namespace

KernelList grid_sample_kernels() {
  static const oar_kernel list[] = {
      {"affine_grid", 1, "cpu:generic", nullptr, kernel_entry<affine_grid>},
      {"grid_sample", 1, "cpu:generic", nullptr, kernel_entry<grid_sample>},
      {"grid_sample_grad_x", 1, "cpu:generic", nullptr, training_entry<grid_sample_grad_x>},
      {"grid_sample_grad_grid", 1, "cpu:generic", nullptr, training_entry<grid_sample_grad_grid>},
  };
  return list;
}

}  // namespace oar::cpu
