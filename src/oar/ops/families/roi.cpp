// Regions of images, brought to one size.
#include "oar/ops/gen/roi.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

// Height and width of what each region becomes.
struct Bins {
  int64_t rows, columns;
};

Bins checked_regions(Dims x, const Tensor& boxes, const Tensor& boxes_num, Ints output_size) {
  user_check(x.size() == 4, ErrorKind::InvalidArgument,
             "x has shape {}; it must be [batch, channels, height, width].", to_string(x));
  user_check(boxes.rank() == 2 && same(boxes.dim(1), 4), ErrorKind::InvalidArgument,
             "boxes has shape {}; it must be [count, 4]: left, top, right and bottom of each.",
             to_string(boxes.dims()));
  user_check(is_integral(boxes_num.dtype()), ErrorKind::InvalidType,
             "boxes_num has dtype {}; it must be an integer type.", name_of(boxes_num.dtype()));
  user_check(boxes_num.rank() == 1 && assume_same(boxes_num.dim(0), x[0]),
             ErrorKind::InvalidArgument,
             "boxes_num has shape {} for {} images.\nhint: It has the number of boxes of each "
             "image.",
             to_string(boxes_num.dims()), x[0].str());
  const auto sizes = expand_ints(output_size, 2, "output_size");
  user_check(sizes[0] > 0 && sizes[1] > 0, ErrorKind::InvalidArgument,
             "output_size is [{}, {}]; both sizes must be positive.", sizes[0], sizes[1]);
  return {sizes[0], sizes[1]};
}

Shape pooled_shape(const Tensor& boxes, Dim channels, Bins bins) {
  return {boxes.dim(0), channels, bins.rows, bins.columns};
}

template <class A>
Shape aligned_shape(const A& a, Dims x) {
  constexpr int64_t kMostSamples = 4096;
  user_check(a.sampling_ratio <= kMostSamples, ErrorKind::InvalidArgument,
             "sampling_ratio is {}; it can be at most {}.", a.sampling_ratio, kMostSamples);
  return pooled_shape(a.boxes, x[1], checked_regions(x, a.boxes, a.boxes_num, a.output_size));
}

template <class A>
Shape position_sensitive_shape(const A& a, Dims x) {
  const Bins bins = checked_regions(x, a.boxes, a.boxes_num, a.output_size);
  const Dim each = Dim(bins.rows) * Dim(bins.columns);
  user_check(same(floor_mod(x[1], each), Dim(0)), ErrorKind::InvalidArgument,
             "the {} channels of x are not divisible by the {} bins of a region.", x[1].str(),
             each.str());
  return pooled_shape(a.boxes, floor_div(x[1], each), bins);
}

TensorSpec some_boxes() {
  return fixed_values(
      {0.7, 1.2, 5.3, 4.1, 2.1, 0.4, 3.2, 6.3, -1.7, 2.6, 9.4, 7.2, 1.3, 1.1, 4.6, 3.7}, {4, 4});
}
TensorSpec few(const std::vector<double>& counts) {
  return fixed_values(counts, {static_cast<int64_t>(counts.size())}, DType::Int32);
}

// The image of each box, and the matrix that takes the pixels along one axis to its bins.
#define OAR_ROI_IMAGES "np.repeat(np.arange(len(boxes_num)), boxes_num)"
#define OAR_ROI_WEIGHTS                                                                           \
  "(lambda low, high, bins, size: (lambda length, low: (lambda many: sum((np.array([(lambda p: "  \
  "np.zeros(size) if p < -1 or p > size else np.maximum(0, 1 - abs(np.arange(size) - min(max(p, " \
  "0), size - 1))))(low + length / bins * (b + (s + 0.5) / many)) for b in range(bins)]) for s "  \
  "in range(many)), np.zeros((bins, size))) / max(many, 1))(sampling_ratio if sampling_ratio > "  \
  "0 else math.ceil(length / bins)))((high - low) * spatial_scale if aligned else max((high - "   \
  "low) * spatial_scale, 1), low * spatial_scale - 0.5 * aligned))"

const OpDef roi_align_op = {
    .schema =
        "roi_align(Tensor x, Tensor boxes, Tensor boxes_num, int[] output_size, float spatial_scale = 1.0, int "
        "sampling_ratio = -1, bool aligned = True) -> Tensor",
    .brief =
        "The regions of images [n, c, h, w] inside boxes, as means over bins of pixels that are read bilinearly. x "
        "gets a gradient, boxes do not.",
    .infer = [](const args::roi_align& a) -> Metas {
      return TensorMeta{a.x.dtype(), aligned_shape(a, a.x.dims())};
    },
    .vjp = [](const vjp::roi_align& v) -> Grads {
      return {roi_align_grad(v.grad, v.boxes, v.boxes_num, v.x.dims(), v.output_size,
                             v.spatial_scale, v.sampling_ratio, v.aligned),
              Tensor(), Tensor()};
    },
    .saves = "x:shape boxes boxes_num",
    .shard =
        "nchw, rf, b -> rcpq ; n whole, h whole, w whole, r whole, f whole, b whole, p whole, q whole # boxes lie anywhere in an image, and are counted by image",
    .linear_in = "x",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "x boxes",
    .numpy = "(lambda bins: np.array([np.einsum('py,cyx,qx->cpq', " OAR_ROI_WEIGHTS
             "(b[1], b[3], bins[0], x.shape[2]), x[i], " OAR_ROI_WEIGHTS
             "(b[0], b[2], bins[1], x.shape[3])) for b, i in zip(boxes, " OAR_ROI_IMAGES
             ")]).reshape(len(boxes), x.shape[1], *bins))([*output_size, *output_size][:2])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 6, 7}), some_boxes(), few({2, 2}), IntVector{2, 3})
              .add(t({1, 2, 5, 5}), some_boxes(), few({4}), IntVector{2}, 0.5, 2, false)
              .add(t({2, 1, 4, 4}), some_boxes(), few({2, 2}), IntVector{3, 1}, 0.75, -1, false)
              .add(t({2, 2, 3, 3}), fixed_values({}, {0, 4}), few({0, 0}), IntVector{2});
        },
    .python = "oar.vision.ops",
    .onnx = "RoiAlign",
};

const OpDef roi_align_grad_op = {
    .schema =
        "roi_align_grad(Tensor grad, Tensor boxes, Tensor boxes_num, shape x_shape, int[] output_size, float "
        "spatial_scale = 1.0, int sampling_ratio = -1, bool aligned = True) -> Tensor",
    .brief = "Adds each element of grad to the pixels that roi_align read for it, by its weights.",
    .infer = [](const args::roi_align_grad& a) -> Metas {
      infer::check_shape(a.grad, "grad", aligned_shape(a, a.x_shape));
      return TensorMeta{a.grad.dtype(), Shape(a.x_shape)};
    },
    .vjp = [](const vjp::roi_align_grad& v) -> Grads {
      return {roi_align(v.grad, v.boxes, v.boxes_num, v.output_size, v.spatial_scale,
                        v.sampling_ratio, v.aligned),
              Tensor(), Tensor()};
    },
    .saves = "boxes boxes_num",
    .shard =
        "rcpq, rf, b -> nchw ; n whole, h whole, w whole, r whole, f whole, b whole, p whole, q whole # boxes lie anywhere in an image, and are counted by image",
    .localise = sharding::result_shape("x_shape"),
    .linear_in = "grad",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "grad boxes",
    .numpy = "(lambda bins, out: ([np.add.at(out, i, np.einsum('py,cpq,qx->cyx', " OAR_ROI_WEIGHTS
             "(b[1], b[3], bins[0], x_shape[2]), g, " OAR_ROI_WEIGHTS
             "(b[0], b[2], bins[1], x_shape[3]))) for b, g, i in zip(boxes, grad, " OAR_ROI_IMAGES
             ")], out)[1])([*output_size, *output_size][:2], np.zeros(x_shape, grad.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3, 2, 3}), some_boxes(), few({2, 2}), IntVector{2, 3, 6, 7},
                   IntVector{2, 3})
              .add(t({4, 2, 2, 2}), some_boxes(), few({4}), IntVector{1, 2, 5, 5}, IntVector{2},
                   0.5, 2, false)
              .add(t({0, 2, 2, 2}), fixed_values({}, {0, 4}), few({0, 0}), IntVector{2, 2, 3, 3},
                   IntVector{2});
        },
};

// The channels of one channel of the result, one for each bin, stay together.
void plan_channels(ShardPlan& plan, PlanTensor& x, PlanTensor& out) {
  if (out.shape[1] == Dim(0)) return;
  const int factor = plan.add(out.shape[1]);
  plan.put(x, 1, factor, floor_div(x.shape[1], out.shape[1]));
  plan.put(out, 1, factor);
}

const OpDef psroi_pool_op = {
    .schema =
        "psroi_pool(Tensor x, Tensor boxes, Tensor boxes_num, int[] output_size, float spatial_scale = 1.0) -> Tensor",
    .brief =
        "The regions of images [n, c, h, w] inside boxes, as means over bins. Each bin has channels of its own, so "
        "there are c / bins channels in the result. x gets a gradient, boxes do not.",
    .infer = [](const args::psroi_pool& a) -> Metas {
      return TensorMeta{a.x.dtype(), position_sensitive_shape(a, a.x.dims())};
    },
    .vjp = [](const vjp::psroi_pool& v) -> Grads {
      return {
          psroi_pool_grad(v.grad, v.boxes, v.boxes_num, v.x.dims(), v.output_size, v.spatial_scale),
          Tensor(), Tensor()};
    },
    .saves = "x:shape boxes boxes_num",
    .plan = [](const PlanCall& c) { plan_channels(c.plan, c.plan.operands[0], c.plan.results[0]); },
    .linear_in = "x",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "x boxes",
    .numpy =
        "(lambda bins, up: (lambda span: np.array([[[[(lambda part: part.mean() if part.size else 0)(x[i, (c * bins[0] "
        "+ p) * bins[1] + q][span(b[1], b[3], bins[0], x.shape[2], p), span(b[0], b[2], bins[1], x.shape[3], q)]) for q "
        "in range(bins[1])] for p in range(bins[0])] for c in range(x.shape[1] // bins[0] // bins[1])] for b, i in "
        "zip(boxes.astype('float64'), " OAR_ROI_IMAGES
        ")]).reshape(len(boxes), -1, *bins))(lambda low, high, bins, size, p: (lambda start, bin: "
        "slice(min(max(math.floor(p * bin + start), 0), size), min(max(math.ceil((p + 1) * bin + start), 0), "
        "size)))(up(low) * spatial_scale, max((up(high) + 1 - up(low)) * spatial_scale, 0.1) / bins)) if len(boxes) "
        "else np.zeros((0, x.shape[1] // bins[0] // bins[1], *bins)))([*output_size, *output_size][:2], lambda v: "
        "np.copysign(np.floor(abs(v) + 0.5), v))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 12, 6, 7}), some_boxes(), few({2, 2}), IntVector{2, 3})
              .add(t({1, 8, 5, 5}), some_boxes(), few({4}), IntVector{2}, 0.5)
              .add(t({2, 4, 3, 3}), fixed_values({}, {0, 4}), few({0, 0}), IntVector{2});
        },
    .python = "oar.vision.ops",
};

const OpDef psroi_pool_grad_op = {
    .schema =
        "psroi_pool_grad(Tensor grad, Tensor boxes, Tensor boxes_num, shape x_shape, int[] output_size, float "
        "spatial_scale = 1.0) -> Tensor",
    .brief = "Spreads each element of grad evenly over the pixels that psroi_pool averaged for it.",
    .infer = [](const args::psroi_pool_grad& a) -> Metas {
      infer::check_shape(a.grad, "grad", position_sensitive_shape(a, a.x_shape));
      return TensorMeta{a.grad.dtype(), Shape(a.x_shape)};
    },
    .vjp = [](const vjp::psroi_pool_grad& v) -> Grads {
      return {psroi_pool(v.grad, v.boxes, v.boxes_num, v.output_size, v.spatial_scale), Tensor(),
              Tensor()};
    },
    .saves = "boxes boxes_num",
    .plan = [](const PlanCall& c) { plan_channels(c.plan, c.plan.results[0], c.plan.operands[0]); },
    .localise = sharding::result_shape("x_shape"),
    .linear_in = "grad",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "grad boxes",
    .numpy =
        "(lambda bins, up, out: (lambda span: [[(lambda part: part.__iadd__(grad[k, c, p, q] / max(part.size, "
        "1)))(out[i, (c * bins[0] + p) * bins[1] + q][span(b[1], b[3], bins[0], x_shape[2], p), span(b[0], b[2], "
        "bins[1], x_shape[3], q)]) for p in range(bins[0]) for q in range(bins[1]) for c in range(grad.shape[1])] for "
        "k, (b, i) in enumerate(zip(boxes.astype('float64'), " OAR_ROI_IMAGES
        "))] and out)(lambda low, high, bins, size, p: (lambda start, bin: slice(min(max(math.floor(p * bin + start), "
        "0), size), min(max(math.ceil((p + 1) * bin + start), 0), size)))(up(low) * spatial_scale, max((up(high) + 1 - "
        "up(low)) * spatial_scale, 0.1) / bins)) if len(boxes) else out)([*output_size, *output_size][:2], lambda v: "
        "np.copysign(np.floor(abs(v) + 0.5), v), np.zeros(x_shape))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 2, 2, 3}), some_boxes(), few({2, 2}), IntVector{2, 12, 6, 7},
                   IntVector{2, 3})
              .add(t({0, 1, 2, 2}), fixed_values({}, {0, 4}), few({0, 0}), IntVector{2, 4, 3, 3},
                   IntVector{2});
        },
};

#define OAR_ROI_LARGEST                                                                              \
  "(lambda bins, up, size: (lambda span: [[(lambda rows, columns: (x[i][:, rows, columns].reshape("  \
  "x.shape[1], -1), (np.arange(size[0] * size[1]).reshape(size)[rows, columns]).ravel(), i))(span("  \
  "b[1], b[3], bins[0], size[0], p), span(b[0], b[2], bins[1], size[1], q)) for p in "               \
  "range(bins[0]) for q in range(bins[1])] for b, i in zip(boxes.astype('float64'), " OAR_ROI_IMAGES \
  ")])(lambda low, high, bins, size, p: (lambda start, bin: slice(min(max(math.floor(p * bin) + "    \
  "start, 0), size), min(max(math.ceil((p + 1) * bin) + start, 0), size)))(up(low * "                \
  "spatial_scale), np.float32(max(up(high * spatial_scale) - up(low * spatial_scale) + 1, 1)) / "    \
  "np.float32(bins))))([*output_size, *output_size][:2], lambda v: int(np.copysign(np.floor(abs("    \
  "v) + 0.5), v)), x.shape[2:])"
#define OAR_ROI_LARGEST_VALUES                                                                                                                                  \
  "np.array([[v.max(1) if v.size else np.zeros(len(v)) for v, _, _ in box] for box in "                                                                         \
  "" OAR_ROI_LARGEST                                                                                                                                            \
  "]).reshape(len(boxes), [*output_size, *output_size][0] * [*output_size, *output_size][1], x.shape[1]).transpose(0, 2, 1).reshape(len(boxes), x.shape[1], *[" \
  "*output_size, *output_size][:2])"

const OpDef roi_largest_op = {
    .schema =
        "roi_largest(Tensor x, Tensor boxes, Tensor boxes_num, int[] output_size, float spatial_scale = 1.0) -> "
        "(Tensor out, Tensor place)",
    .brief =
        "The largest element in each bin of the regions inside boxes, and its place among all of x: 0 and -1 if the "
        "bin is outside of the image.",
    .infer = [](const args::roi_largest& a) -> Metas {
      const Shape shape = pooled_shape(
          a.boxes, a.x.dim(1), checked_regions(a.x.dims(), a.boxes, a.boxes_num, a.output_size));
      return {TensorMeta{a.x.dtype(), shape}, TensorMeta{DType::Int64, shape}};
    },
    .vjp = [](const vjp::roi_largest& v) -> Grads {
      const Dim count = v.place.numel();
      const Tensor place = reshape(v.place, {count}), nowhere = full({}, Scalar(0), DType::Int64);
      const Tensor grad = zero_unless(greater_equal(place, nowhere), reshape(v.grad_out, {count}));
      const Tensor spread = put_along(blank(Shape{v.x.numel()}, grad.dtype()),
                                      maximum(place, nowhere), grad, 0, "add");
      return {reshape(spread, v.x.dims()), Tensor(), Tensor()};
    },
    .saves = "x:shape place",
    .shard = "whole: places are numbered over all of x",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "x boxes",
    .numpy =
        "(" OAR_ROI_LARGEST_VALUES
        ", np.array([[[(i * x.shape[1] + c) * x.shape[2] * x.shape[3] + at[v[c].argmax()] if at.size else -1 for c in "
        "range(x.shape[1])] for v, at, i in box] for box in " OAR_ROI_LARGEST
        "], 'int64').reshape(len(boxes), [*output_size, *output_size][0] * [*output_size, *output_size][1], x.shape[1]).transpose(0, 2, 1).reshape(len(boxes), x.shape[1], *[*output_size, "
        "*output_size][:2]))",
    .samples =
        [] {
          return Samples()
              .add(distinct({2, 3, 6, 7}), some_boxes(), few({2, 2}), IntVector{2, 3})
              .add(distinct({1, 2, 5, 5}), some_boxes(), few({4}), IntVector{3}, 0.5)
              .add(distinct({2, 1, 4, 4}), some_boxes(), few({2, 2}), IntVector{2, 1}, 0.75)
              .add(distinct({2, 2, 3, 3}), fixed_values({}, {0, 4}), few({0, 0}), IntVector{2});
        },
};

const OpDef roi_pool_op = {
    .schema =
        "roi_pool(Tensor x, Tensor boxes, Tensor boxes_num, int[] output_size, float spatial_scale = 1.0) -> Tensor",
    .brief =
        "The regions of images [n, c, h, w] inside boxes, as the largest element of each bin; 0 if the bin is outside "
        "of the image. x gets a gradient, boxes do not.",
    .infer = [](const args::roi_pool& a) -> Metas {
      const Bins bins = checked_regions(a.x.dims(), a.boxes, a.boxes_num, a.output_size);
      return TensorMeta{a.x.dtype(), pooled_shape(a.boxes, a.x.dim(1), bins)};
    },
    .decompose = [](const args::roi_pool& a) -> Made {
      return std::get<0>(roi_largest(a.x, a.boxes, a.boxes_num, a.output_size, a.spatial_scale));
    },
    .shard =
        "nchw, rf, b -> rcpq ; n whole, h whole, w whole, r whole, f whole, b whole, p whole, q whole # boxes lie anywhere in an image, and are counted by image",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "x boxes",
    .numpy = OAR_ROI_LARGEST_VALUES,
    .samples =
        [] {
          return Samples()
              .add(distinct({2, 3, 6, 7}), some_boxes(), few({2, 2}), IntVector{2, 3})
              .add(distinct({1, 2, 5, 5}), some_boxes(), few({4}), IntVector{3}, 0.5)
              .add(distinct({2, 2, 3, 3}), fixed_values({}, {0, 4}), few({0, 0}), IntVector{2});
        },
    .python = "oar.vision.ops",
    .onnx = "MaxRoiPool",
};

}  // namespace

OAR_FAMILY(roi, &roi_align_op, &roi_align_grad_op, &psroi_pool_op, &psroi_pool_grad_op,
           &roi_largest_op, &roi_pool_op)

}  // namespace oar
