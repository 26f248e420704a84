// Images sampled at positions of a grid, and grids of affine maps.
#include "oar/ops/gen/grid_sample.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/window_batch.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/floating_point.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/rounding.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

struct Reading {
  std::string_view mode, padding_mode;
  bool align_corners;
};

void check_sampling(Dims x, const Tensor& grid, const Reading& how) {
  user_check(how.mode == "bilinear" || how.mode == "nearest", ErrorKind::InvalidArgument,
             "mode is '{}'; it can be bilinear or nearest.", how.mode);
  user_check(how.padding_mode == "zeros" || how.padding_mode == "border" ||
                 how.padding_mode == "reflection",
             ErrorKind::InvalidArgument,
             "padding_mode is '{}'; it can be zeros, border or reflection.", how.padding_mode);
  const auto rank = static_cast<int>(x.size());
  user_check((rank == 4 || rank == 5) && grid.rank() == rank && same(grid.dim(-1), rank - 2) &&
                 same(grid.dim(0), x[0]),
             ErrorKind::InvalidArgument,
             "x has shape {} and grid {}; x must be [n, c, h, w] with a grid [n, h', w', 2], or "
             "[n, c, d, h, w] with [n, d', h', w', 3].",
             to_string(x), to_string(grid.dims()));
  for (Dim d : x.subspan(2))
    user_check(!(d == Dim(0)) || grid.numel() == Dim(0), ErrorKind::InvalidArgument,
               "x of shape {} has no pixels to read.", to_string(x));
}

Shape sampled_shape(Dims x, const Tensor& grid) {
  Shape shape{x[0], x[1]};
  for (Dim d : grid.dims().subspan(1, x.size() - 2)) shape.push_back(d);
  return shape;
}

// One of the neighbours along one axis: its index, whether there is one, its weight, and the weight's
// derivative by the grid's coordinate (undefined: zero).
struct Neighbour {
  Tensor index, exists, weight, slope;
};

// A coordinate in pixels, and its derivative by the grid's.
struct Place {
  Tensor at, slope;
};

Place in_pixels(const Tensor& g, const Tensor& size, const Reading& how) {
  const Tensor slope = (how.align_corners ? size - 1 : size) / 2;
  Place p{how.align_corners ? (g + 1) * slope : (g + 1) * slope - 0.5, slope};
  if (how.padding_mode == "zeros") return p;
  const Tensor last = size - 1;
  if (how.padding_mode == "reflection") {
    const double low = how.align_corners ? 0 : -0.5;
    const Tensor range = how.align_corners ? last : size;
    const Tensor flat = less_equal(range, literal(0));  // one pixel: every position is that pixel
    const Tensor span = where(flat, ones_like(range), range);
    const Tensor distance = abs(p.at - low), turns = floor(distance / span);
    const Tensor rest = distance - turns * span;
    const Tensor forward = equal(remainder(turns, full_like(turns, Scalar(2))), literal(0));
    // A position exactly on the mirror still counts forward.
    const Tensor mirrored =
        logical_xor(less_than(p.at, literal(low)),
                    logical_and(logical_not(forward), not_equal(rest, literal(0))));
    p.slope = zero_where(flat, where(mirrored, -p.slope, p.slope));
    p.at = zero_where(flat, where(forward, rest, span - rest) + low);
  }
  p.slope = zero_where(logical_or(less_than(p.at, literal(0)), greater_than(p.at, last)), p.slope);
  p.at = minimum(maximum(p.at, literal(0)), last);
  return p;
}

std::vector<Neighbour> neighbours(const Place& p, const Tensor& size, const Reading& how) {
  const auto make = [&](const Tensor& at, Tensor weight, Tensor slope) {
    const Tensor exists = logical_and(greater_equal(at, literal(0)), less_than(at, size));
    return Neighbour{cast(zero_unless(exists, at), DType::Int64), exists, std::move(weight),
                     std::move(slope)};
  };
  if (how.mode == "nearest") {
    // Half to even.
    const Tensor up = floor(p.at + 0.5);
    const Tensor odd_tie = logical_and(
        equal(up, p.at + 0.5), not_equal(remainder(up, full_like(up, Scalar(2))), literal(0)));
    return {make(where(odd_tie, up - 1, up), ones_like(p.at), Tensor())};
  }
  const Tensor below = floor(p.at), part = p.at - below;
  return {make(below, 1 - part, -p.slope), make(below + 1, part, p.slope)};
}

// A pixel that contributes to the results, all as [n, 1, places].
struct Corner {
  Tensor index, weight;
  std::vector<Tensor> slopes;  // by each of the grid's coordinates; empty for nearest
};

std::vector<Corner> corners_of(Dims x, const Tensor& given, const Reading& how, bool slopes) {
  const Tensor grid = widened(given);
  const size_t axes = x.size() - 2;
  const Dim places = Shape(grid.dims().subspan(1, axes)).numel();
  struct Partial {
    Tensor index, exists;
    std::vector<Neighbour> by_axis;
  };
  std::vector<Partial> partial{{}};
  for (size_t axis = 0; axis < axes; ++axis) {  // from the outermost, which the grid names last
    const Tensor g =
        reshape(slice_view(grid, SliceIndex().rest().at(static_cast<int64_t>(axes - 1 - axis))),
                {x[0], 1, places});
    const Dims size = x.subspan(2 + axis, 1);
    const Tensor count = cast(count_of(size, grid.dtype()), grid.dtype());
    std::vector<Partial> longer;
    for (const Neighbour& n : neighbours(in_pixels(g, count, how), count, how))
      for (const Partial& p : partial) {
        Partial q = p;
        q.index = p.index.defined()
                      ? p.index * cast(count_of(size, DType::Int64), DType::Int64) + n.index
                      : n.index;
        q.exists = p.exists.defined() ? logical_and(p.exists, n.exists) : n.exists;
        q.by_axis.push_back(n);
        longer.push_back(std::move(q));
      }
    partial = std::move(longer);
  }
  std::vector<Corner> corners;
  for (const Partial& p : partial) {
    const auto product = [&](size_t slope_of) {
      Tensor all;
      for (size_t k = 0; k < axes; ++k) {
        const Tensor& factor = k == slope_of ? p.by_axis[k].slope : p.by_axis[k].weight;
        all = all.defined() ? all * factor : factor;
      }
      // Times 0 rather than 0: a position that is NaN reads NaN.
      return how.mode == "nearest" ? zero_unless(p.exists, all) : all * cast(p.exists, all.dtype());
    };
    Corner c{p.index, product(axes), {}};
    if (slopes && how.mode != "nearest")
      for (size_t d = 0; d < axes; ++d) c.slopes.push_back(product(axes - 1 - d));
    corners.push_back(std::move(c));
  }
  return corners;
}

// Which positions are NaN, as [n, 1, places].
Tensor lost_places(const Tensor& grid) {
  const Tensor lost = any(isnan(grid), IntVector{-1}, false);
  return reshape(lost, {grid.dim(0), 1, Shape(lost.dims().subspan(1)).numel()});
}

// [n, c, …] as [n, c, all].
Tensor flat_images(const Tensor& x) {
  return reshape(x, {x.dim(0), x.dim(1), Shape(x.dims().subspan(2)).numel()});
}
Tensor for_channels(const Tensor& index, Dim channels) {
  return broadcast_to(index, {index.dim(0), channels, index.dim(2)});
}

// SciPy's sampling at the same positions; its names for the edges.
#define OAR_SAMPLING_READ "(lambda read, at: "
#define OAR_SAMPLING_WITH                                                                         \
  ")(lambda image, places: __import__('scipy.ndimage', fromlist=['x']).map_coordinates(image, "   \
  "places, order=0 if mode == 'nearest' else 1, mode={'zeros': 'grid-constant', 'border': "       \
  "'nearest', 'reflection': 'mirror' if align_corners else 'reflect'}[padding_mode]), lambda g, " \
  "s: [(g[..., -1 - d] + 1) * (m - 1) / 2 if align_corners else ((g[..., -1 - d] + 1) * m - 1) "  \
  "/ 2 for d, m in enumerate(s)])"

const OpDef grid_sample_op = {
    .schema =
        "grid_sample(Tensor x, Tensor grid, str mode = 'bilinear', str padding_mode = 'zeros', bool align_corners = "
        "True) -> Tensor",
    .brief =
        "The pixels of images [n, c, (d,) h, w] at the places of a grid [n, …, 2 or 3]: (x, y(, z)) from -1 to 1 over "
        "the image. Beyond it there are zeros, the border, or the image mirrored. Between pixels NaN reads as NaN.",
    .infer = [](const args::grid_sample& a) -> Metas {
      check_sampling(a.x.dims(), a.grid, {a.mode, a.padding_mode, a.align_corners});
      return TensorMeta{a.x.dtype(), sampled_shape(a.x.dims(), a.grid)};
    },
    .decompose = [](const args::grid_sample& a) -> Made {
      const Tensor flat = flat_images(widened(a.x));
      Tensor sum;
      for (const Corner& c :
           corners_of(a.x.dims(), a.grid, {a.mode, a.padding_mode, a.align_corners}, false)) {
        const Tensor part = take_along(flat, for_channels(c.index, a.x.dim(1)), 2) * c.weight;
        sum = sum.defined() ? sum + part : part;
      }
      if (a.mode == "bilinear") sum = where(lost_places(a.grid), literal(NAN), sum);
      return narrowed(reshape(sum, sampled_shape(a.x.dims(), a.grid)), a.x.dtype());
    },
    .vjp = [](const vjp::grid_sample& v) -> Grads {
      return {v.needs(0) ? grid_sample_grad_x(v.grad, v.grid, v.x.dims(), v.mode, v.padding_mode,
                                              v.align_corners)
                         : Tensor(),
              v.needs(1) ? grid_sample_grad_grid(v.grad, v.x, v.grid, v.mode, v.padding_mode,
                                                 v.align_corners)
                         : Tensor()};
    },
    .saves = "x grid",
    .batch = [](const BatchCall& c) -> Made {
      const args::grid_sample a(c.args);
      return unfold_batch(
          grid_sample(fold_batch(c, 0), fold_batch(c, 1), a.mode, a.padding_mode, a.align_corners),
          c.size);
    },
    .traits = Trait::Promote,
    .dtypes = "float",
    .numpy = OAR_SAMPLING_READ
    "np.array([[read(x[n, c], at(grid[n], x.shape[2:])) for c in range(x.shape[1])] for n in "
    "range(x.shape[0])]).reshape(x.shape[:2] + grid.shape[1:-1])" OAR_SAMPLING_WITH,
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 4, 5}), uniform_in(-1.3, 1.3, {2, 3, 2, 2}))
              .add(t({1, 2, 4, 5}), uniform_in(-1.3, 1.3, {1, 3, 3, 2}), "nearest", "zeros", false)
              .add(t({1, 3, 4, 3}), uniform_in(-1.5, 1.5, {1, 2, 3, 2}), "bilinear", "border",
                   false)
              .add(t({1, 1, 3, 5}), uniform_in(-2.5, 2.5, {1, 3, 3, 2}), "bilinear", "reflection")
              .add(t({1, 1, 3, 5}), uniform_in(-2.5, 2.5, {1, 3, 3, 2}), "bilinear", "reflection",
                   false)
              .add(t({1, 2, 3, 2, 4}), uniform_in(-1.3, 1.3, {1, 2, 2, 1, 3}), "bilinear", "zeros",
                   false)
              .add(t({1, 1, 3, 2, 2}), uniform_in(-1.3, 1.3, {1, 2, 1, 2, 3}), "nearest", "border")
              .add(t({0, 2, 3, 3}), uniform_in(-1, 1, {0, 2, 2, 2}))
              .add(t({1, 2, 3, 3}), uniform_in(-1, 1, {1, 0, 2, 2}));
        },
    .python = "oar.nn.functional",
    .onnx = "GridSample",
};

const OpDef grid_sample_grad_x_op = {
    .schema =
        "grid_sample_grad_x(Tensor grad, Tensor grid, shape x_shape, str mode = 'bilinear', str padding_mode = "
        "'zeros', bool align_corners = True) -> Tensor",
    .brief =
        "Adds each element of grad, with its weights, to the pixels that grid_sample read for it.",
    .infer = [](const args::grid_sample_grad_x& a) -> Metas {
      check_sampling(a.x_shape, a.grid, {a.mode, a.padding_mode, a.align_corners});
      infer::check_shape(a.grad, "grad", sampled_shape(a.x_shape, a.grid));
      return TensorMeta{a.grad.dtype(), Shape(a.x_shape)};
    },
    .decompose = [](const args::grid_sample_grad_x& a) -> Made {
      const Tensor grad = flat_images(widened(a.grad));
      Tensor sum =
          zeros({a.x_shape[0], a.x_shape[1], Shape(a.x_shape.subspan(2)).numel()}, grad.dtype());
      for (const Corner& c :
           corners_of(a.x_shape, a.grid, {a.mode, a.padding_mode, a.align_corners}, false))
        sum = put_along(sum, for_channels(c.index, a.x_shape[1]), grad * c.weight, 2, "add");
      return narrowed(reshape(sum, a.x_shape), a.grad.dtype());
    },
    .localise = sharding::result_shape("x_shape"),
    .traits = Trait::Promote,
    .dtypes = "float",
    .numpy = OAR_SAMPLING_READ
    "(lambda s: np.array([[np.array([read(e.reshape(s), at(grid[n], s)).ravel() for e in np.eye(int(np.prod(s)))]"
    ") @ grad[n, c].ravel() for c in range(x_shape[1])] for n in range(x_shape[0])]).reshape(x_shape))"
    "(x_shape[2:])" OAR_SAMPLING_WITH,
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 3, 2}), uniform_in(-1.3, 1.3, {2, 3, 2, 2}), IntVector{2, 2, 4, 5})
              .add(t({1, 1, 2, 3}), uniform_in(-2, 2, {1, 2, 3, 2}), IntVector{1, 1, 3, 4},
                   "bilinear", "reflection", false)
              .add(t({1, 2, 2, 1, 2}), uniform_in(-1.3, 1.3, {1, 2, 1, 2, 3}),
                   IntVector{1, 2, 2, 3, 2}, "nearest", "border")
              .add(t({0, 2, 2, 2}), uniform_in(-1, 1, {0, 2, 2, 2}), IntVector{0, 2, 3, 3});
        },
};

const OpDef grid_sample_grad_grid_op = {
    .schema =
        "grid_sample_grad_grid(Tensor grad, Tensor x, Tensor grid, str mode = 'bilinear', str padding_mode = 'zeros', "
        "bool align_corners = True) -> Tensor",
    .brief =
        "The derivative of grid_sample by its grid: how fast the pixels change along each axis, by grad.",
    .infer = [](const args::grid_sample_grad_grid& a) -> Metas {
      check_sampling(a.x.dims(), a.grid, {a.mode, a.padding_mode, a.align_corners});
      infer::check_shape(a.grad, "grad", sampled_shape(a.x.dims(), a.grid));
      return infer::like(a.grid);
    },
    .decompose = [](const args::grid_sample_grad_grid& a) -> Made {
      const Tensor x = flat_images(widened(a.x)), grad = flat_images(widened(a.grad));
      std::vector<Tensor> by_axis(static_cast<size_t>(a.x.rank()) - 2);
      for (const Corner& c :
           corners_of(a.x.dims(), a.grid, {a.mode, a.padding_mode, a.align_corners}, true)) {
        if (c.slopes.empty()) return zeros_like(a.grid);
        const Tensor seen = take_along(x, for_channels(c.index, a.x.dim(1)), 2);
        const Tensor along = sum(seen * grad, IntVector{1}, std::nullopt, true);
        for (size_t d = 0; d < by_axis.size(); ++d) {
          const Tensor part = along * c.slopes[d];
          by_axis[d] = by_axis[d].defined() ? by_axis[d] + part : part;
        }
      }
      return narrowed(reshape(stack(by_axis, -1), a.grid.dims()), a.grid.dtype());
    },
    .traits = Trait::Promote,
    .dtypes = "float",
    .numpy = OAR_SAMPLING_READ
    "np.array([[sum((grad[n, c] * (lambda h: (read(x[n, c].astype('float64'), at(grid[n] + h, x.shape[2:])) - "
    "read(x[n, c].astype('float64'), at(grid[n] - h, x.shape[2:]))) / 2e-4)(1e-4 * np.eye(x.ndim - 2)[d]) for c in "
    "range(x.shape[1])), np.zeros(grid.shape[1:-1])) for d in range(x.ndim - 2)] for n in range(x.shape[0])])"
    ".reshape((grid.shape[0], x.ndim - 2) + grid.shape[1:-1]).transpose(0, *range(2, x.ndim), 1)" OAR_SAMPLING_WITH,
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 3, 2}), t({2, 2, 4, 5}), uniform_in(-1.3, 1.3, {2, 3, 2, 2}))
              .add(t({1, 1, 2, 3}), t({1, 1, 3, 4}), uniform_in(-2, 2, {1, 2, 3, 2}), "bilinear",
                   "reflection", false)
              .add(t({1, 2, 2, 1, 2}), t({1, 2, 2, 3, 2}), uniform_in(-1.3, 1.3, {1, 2, 1, 2, 3}),
                   "bilinear", "border")
              .add(t({1, 1, 2, 2}), t({1, 1, 3, 3}), uniform_in(-1, 1, {1, 2, 2, 2}), "nearest")
              .add(t({0, 2, 2, 2}), t({0, 2, 3, 3}), uniform_in(-1, 1, {0, 2, 2, 2}));
        },
};

// The centres of n pixels between -1 and 1, or with the outermost two on -1 and 1.
Tensor pixel_places(Dim n, DType dtype, bool align_corners) {
  const Tensor i = n.is_known() ? range(Scalar(0), Scalar(n.value()), Scalar(1), dtype)
                                : cumsum(ones({n}, dtype), 0) - 1;
  const Dims size(&n, 1);
  if (!align_corners) return (i * 2 + 1) / count_of(size, dtype) - 1;
  const Tensor last = count_of(size, dtype) - 1;
  return zero_where(equal(last, literal(0)), i * 2 / maximum(last, literal(1)) - 1);
}

// The places of all pixels, [places, axes + 1]: x, y(, z) and 1.
Tensor all_places(Dims sizes, DType dtype, bool align_corners) {
  std::vector<Tensor> columns;
  for (size_t k = sizes.size(); k-- > 0;) {
    Shape own(sizes.size(), Dim(1));
    own[k] = sizes[k];
    columns.push_back(
        broadcast_to(reshape(pixel_places(sizes[k], dtype, align_corners), own), sizes));
  }
  columns.push_back(ones(sizes, dtype));
  return reshape(stack(columns, -1),
                 {Shape(sizes).numel(), static_cast<int64_t>(sizes.size()) + 1});
}

const OpDef affine_grid_op = {
    .schema = "affine_grid(Tensor theta, shape out_shape, bool align_corners = True) -> Tensor",
    .brief =
        "A grid for grid_sample: each place of an image of out_shape, mapped by the matrices theta [n, 2, 3] or "
        "[n, 3, 4].",
    .infer = [](const args::affine_grid& a) -> Metas {
      const auto rank = static_cast<int64_t>(a.out_shape.size());
      user_check(
          (rank == 4 || rank == 5) && a.theta.rank() == 3 && same(a.theta.dim(1), rank - 2) &&
              same(a.theta.dim(2), rank - 1) && same(a.theta.dim(0), a.out_shape[0]),
          ErrorKind::InvalidArgument,
          "theta has shape {} and out_shape is {}; they must be [n, 2, 3] and [n, c, h, w], or "
          "[n, 3, 4] and [n, c, d, h, w].",
          to_string(a.theta.dims()), to_string(a.out_shape));
      Shape shape{a.out_shape[0]};
      for (Dim d : a.out_shape.subspan(2)) shape.push_back(d);
      shape.push_back(rank - 2);
      return TensorMeta{a.theta.dtype(), shape};
    },
    .decompose = [](const args::affine_grid& a) -> Made {
      const Tensor theta = widened(a.theta);
      const Dims sizes = a.out_shape.subspan(2);
      Shape around(sizes.size() + 1, Dim(1));
      const auto column = [&](size_t k) {  // [n, 1, …, 1, axes]
        Shape shape = around;
        shape[0] = theta.dim(0);
        shape.push_back(theta.dim(1));
        return reshape(slice_view(theta, SliceIndex().rest().at(static_cast<int64_t>(k))), shape);
      };
      Tensor grid = column(sizes.size());
      for (size_t k = 0; k < sizes.size(); ++k) {  // theta's columns are for x, y, z
        const size_t axis = sizes.size() - 1 - k;
        Shape shape = around;
        shape[axis + 1] = sizes[axis];
        shape.push_back(1);
        grid = grid + reshape(pixel_places(sizes[axis], theta.dtype(), a.align_corners), shape) *
                          column(k);
      }
      Shape shape{theta.dim(0)};
      for (Dim d : sizes) shape.push_back(d);
      shape.push_back(theta.dim(1));
      return narrowed(broadcast_to(grid, shape), a.theta.dtype());
    },
    .vjp = [](const vjp::affine_grid& v) -> Grads {
      const Tensor grad = widened(v.grad);
      const Tensor flat =
          reshape(grad, {grad.dim(0), Shape(v.out_shape.subspan(2)).numel(), grad.dim(-1)});
      return narrowed(matmul(transpose(flat, {0, 2, 1}),
                             all_places(v.out_shape.subspan(2), grad.dtype(), v.align_corners)),
                      v.grad.dtype());
    },
    .localise =
        [](const PieceCall& piece) {
          Shape shape(args::affine_grid(piece.frame.args()).out_shape);
          shape[0] = piece.frame[0].as_tensor().dim(0);
          piece.frame.set(1, Value(Dims(shape)));
        },
    .dtypes = "float",
    .numpy =
        "(lambda s: np.einsum('...j,nij->n...i', np.stack([*np.meshgrid(*[(lambda i: i * 2 / max(m - 1, 1) - (m > 1) if "
        "align_corners else (2 * i + 1) / m - 1)(np.arange(m)) for m in s], indexing='ij')[::-1], np.ones(s)], -1), "
        "theta))(tuple(out_shape[2:]))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 3}), IntVector{2, 3, 4, 5})
              .add(t({1, 2, 3}), IntVector{1, 1, 3, 1}, false)
              .add(t({1, 2, 3}), IntVector{1, 1, 3, 1}, true)
              .add(t({2, 3, 4}), IntVector{2, 1, 2, 3, 2}, false)
              .add(t({0, 2, 3}), IntVector{0, 3, 2, 2});
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(grid_sample, &grid_sample_op, &grid_sample_grad_x_op, &grid_sample_grad_grid_op,
           &affine_grid_op)

}  // namespace oar
