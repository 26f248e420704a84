// Boxes around objects: as differences from given ones, on a grid, and from the output of a YOLO network.
#include "oar/ops/gen/boxes.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/prior_boxes.h"

namespace oar {
namespace {

void check_boxes(const Tensor& t, const char* argument) {
  user_check(t.rank() == 2 && same(t.dim(1), 4), ErrorKind::InvalidArgument,
             "{} has shape {}; it must be [count, 4].", argument, to_string(t.dims()));
}

Shape coded_shape(const args::box_coder& a) {
  check_boxes(a.prior_box, "prior_box");
  user_check(a.axis == 0 || a.axis == 1, ErrorKind::InvalidArgument,
             "axis is {}; it must be 0 or 1.", a.axis);
  const Dims target = a.target_box.dims();
  if (a.code_type == "encode_center_size") {
    check_boxes(a.target_box, "target_box");
    return {target[0], a.prior_box.dim(0), 4};
  }
  user_check(a.code_type == "decode_center_size", ErrorKind::InvalidArgument,
             "code_type is '{}'; it can be encode_center_size or decode_center_size.", a.code_type);
  user_check(target.size() == 3 && same(target[2], 4), ErrorKind::InvalidArgument,
             "target_box has shape {}; to be decoded it must be [rows, columns, 4].",
             to_string(target));
  const auto along = static_cast<size_t>(1 - a.axis);
  user_check(same(target[along], a.prior_box.dim(0)), ErrorKind::InvalidArgument,
             "prior_box has {} boxes, but target_box of shape {} has {} along axis {}.\nhint: With "
             "axis={} there is one prior box for each index of that axis.",
             a.prior_box.dim(0).str(), to_string(target), target[along].str(), along, a.axis);
  return Shape(target);
}

const OpDef box_coder_op = {
    .schema =
        "box_coder(Tensor prior_box, Tensor? prior_box_var, Tensor target_box, str code_type = 'encode_center_size', "
        "bool box_normalized = True, int axis = 0) -> Tensor",
    .brief =
        "Boxes as differences of centre and size from prior boxes, or the boxes that such differences stand for.",
    .infer = [](const args::box_coder& a) -> Metas {
      const Shape shape = coded_shape(a);
      const Tensor& v = a.prior_box_var;
      user_check(!v.defined() || (v.rank() == 1 && same(v.dim(0), 4)) ||
                     (v.rank() == 2 && same(v.shape(), a.prior_box.shape())),
                 ErrorKind::InvalidArgument,
                 "prior_box_var has shape {}; it must be [4], or {} like prior_box.",
                 v.defined() ? to_string(v.dims()) : "", to_string(a.prior_box.dims()));
      return TensorMeta{a.target_box.dtype(), shape};
    },
    .plan =
        [](const PlanCall& c) {
          const args::box_coder a(c.args);
          const bool encodes = a.code_type == "encode_center_size";
          const size_t along =
              encodes ? 1 : static_cast<size_t>(1 - a.axis);  // has the prior boxes
          PlanTensor &target = c.plan.operands.back(), &out = c.plan.results[0];
          c.plan.pass(target, 1 - along, out, 1 - along);
          const int priors = c.plan.add(out.shape[along]);
          c.plan.put(out, along, priors);
          if (!encodes) c.plan.put(target, along, priors);
          for (PlanTensor& t : std::span(c.plan.operands).first(c.plan.operands.size() - 1))
            if (t.axes.size() == 2) c.plan.put(t, 0, priors);
        },
    .traits = Trait::Promote | Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "(lambda p, one, v: (lambda size, mid: (lambda t: np.concatenate([((t[..., :2] + t[..., 2:]) / 2 - mid) / size, "
        "np.log(abs((t[..., 2:] - t[..., :2] + one) / size))], -1) / v)(target_box[:, None]) if code_type[0] == 'e' "
        "else (lambda t, p: (lambda c, s: np.concatenate([c - s / 2, c + s / 2 - one], -1))(p(v[..., :2]) * t[..., :2] * "
        "p(size) + p(mid), np.exp(p(v[..., 2:]) * t[..., 2:]) * p(size)))(target_box, lambda m: m if axis == 0 or m.ndim "
        "< 2 else m[:, None]))(p[:, 2:] - p[:, :2] + one, p[:, :2] + (p[:, 2:] - p[:, :2] + one) / 2))(prior_box, 0 if "
        "box_normalized else 1, np.ones(4, prior_box.dtype) if prior_box_var is None else prior_box_var)",
    .samples =
        [] {
          const TensorSpec priors =
              filled_with({0.1, 0.2, 0.8, 0.9, 0.3, 0.1, 0.7, 0.4, 0.2, 0.2, 0.5, 0.9}, {3, 4});
          const TensorSpec targets = filled_with({0.2, 0.1, 0.6, 0.7, 0.1, 0.3, 0.4, 0.9}, {2, 4});
          return Samples()
              .add(priors, positive({3, 4}), targets)
              .add(priors, std::nullopt, targets, "encode_center_size", false)
              .add(priors, positive({4}), targets)
              .add(priors, positive({3, 4}), t({2, 3, 4}), "decode_center_size")
              .add(priors, positive({3, 4}), t({3, 2, 4}), "decode_center_size", false, 1)
              .add(priors, positive({4}), t({3, 2, 4}), "decode_center_size", true, 1)
              .add(priors, std::nullopt, t({0, 3, 4}), "decode_center_size");
        },
};

const OpDef prior_box_op = {
    .schema =
        "prior_box(Tensor input, Tensor image, float[] min_sizes, float[]? max_sizes = None, float[]? aspect_ratios = "
        "None, float[]? variance = None, bool flip = False, bool clip = False, float[]? steps = None, float offset = "
        "0.5, bool min_max_aspect_ratios_order = False) -> (Tensor box, Tensor variances)",
    .brief =
        "The boxes of several sizes and aspect ratios around each pixel of a feature map, in parts of the image; and the "
        "variances of each.",
    .infer = [](const args::prior_box& a) -> Metas {
      user_check(
          a.input.rank() == 4 && a.image.rank() == 4, ErrorKind::InvalidArgument,
          "input and image must be [batch, channels, height, width], but their shapes are {} "
          "and {}.",
          to_string(a.input.dims()), to_string(a.image.dims()));
      user_check(
          !a.min_sizes.empty() && std::ranges::all_of(a.min_sizes, [](double s) { return s > 0; }),
          ErrorKind::InvalidArgument, "min_sizes must be positive numbers, at least one.");
      user_check(!a.max_sizes || a.max_sizes->empty() || a.max_sizes->size() == a.min_sizes.size(),
                 ErrorKind::InvalidArgument, "there are {} max_sizes for {} min_sizes.",
                 a.max_sizes ? a.max_sizes->size() : 0, a.min_sizes.size());
      for (size_t i = 0; a.max_sizes && i < a.max_sizes->size(); ++i)
        user_check((*a.max_sizes)[i] > a.min_sizes[i], ErrorKind::InvalidArgument,
                   "max_sizes[{}] is {}; it must be greater than min_sizes[{}], which is {}.", i,
                   (*a.max_sizes)[i], i, a.min_sizes[i]);
      user_check(!a.variance || a.variance->size() == 4, ErrorKind::InvalidArgument,
                 "variance has {} numbers; it must have 4.", a.variance ? a.variance->size() : 0);
      user_check(!a.steps || a.steps->size() == 2, ErrorKind::InvalidArgument,
                 "steps has {} numbers; it must have 2: along the width and along the height.",
                 a.steps ? a.steps->size() : 0);
      for (const double ratio : a.aspect_ratios ? *a.aspect_ratios : std::span<const double>())
        user_check(ratio > 0, ErrorKind::InvalidArgument,
                   "aspect_ratios has {}; they must be positive.", ratio);
      const auto ratios = all_ratios(a.aspect_ratios, a.flip);
      const size_t more = a.max_sizes ? a.max_sizes->size() : 0;
      const auto count = static_cast<int64_t>(ratios.size() * a.min_sizes.size() + more);
      const TensorMeta boxes{a.input.dtype(), {a.input.dim(2), a.input.dim(3), count, 4}};
      return {boxes, boxes};
    },
    .shard = "whole: where a box is depends on the size of the whole map",
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "(lambda s, ar, step, more: (lambda one: (lambda sizes: (lambda centres: (lambda b: (np.clip(b, 0, 1) if clip "
        "else b, np.broadcast_to(np.array(variance if variance is not None else [0.1, 0.1, 0.2, 0.2]), b.shape)))(np."
        "concatenate([centres - sizes / 2, centres + sizes / 2], -1) / [*s, *s]))(np.stack(np.meshgrid((np.arange("
        "input.shape[3]) + offset) * step[0], (np.arange(input.shape[2]) + offset) * step[1]), -1)[:, :, None]))(np."
        "array([p for m, x in zip(min_sizes, more) for p in ([(m, m), *one(m, x), *[(m * r ** 0.5, m / r ** 0.5) for r "
        "in ar[1:]]] if min_max_aspect_ratios_order else [*[(m * r ** 0.5, m / r ** 0.5) for r in ar], *one(m, x)])])))("
        "lambda m, x: [((m * x) ** 0.5,) * 2] if x else []))(image.shape[:1:-1], [1.0] + [r for k, a in enumerate("
        "aspect_ratios or []) if a != 1 for r in ([a, 1 / a] if flip else [a])], steps if steps is not None and "
        "all(steps) else [image.shape[3] / max(input.shape[3], 1), image.shape[2] / max(input.shape[2], 1)], max_sizes or [None] * "
        "len(min_sizes))",
    .samples =
        [] {
          using List = std::vector<double>;
          return Samples()
              .add(t({1, 2, 3, 4}), t({1, 3, 12, 20}), List{2, 4})
              .add(t({1, 2, 3, 4}), t({1, 3, 12, 20}), List{2, 4}, List{5, 9}, List{1, 2, 4},
                   List{0.1, 0.2, 0.3, 0.4}, true, true, List{2, 3}, 0.25)
              .add(t({2, 1, 2, 2}), t({2, 3, 9, 9}), List{3}, List{4}, List{2}, std::nullopt, false,
                   false, std::nullopt, 0.5, true)
              .add(t({2, 1, 0, 2}), t({2, 3, 9, 9}), List{3});
        },
};

Shape yolo_sizes(const args::yolo_box& a) {
  user_check(a.x.rank() == 4, ErrorKind::InvalidArgument,
             "x has shape {}; it must be [batch, channels, height, width].", to_string(a.x.dims()));
  user_check(!a.anchors.empty() && a.anchors.size() % 2 == 0, ErrorKind::InvalidArgument,
             "anchors has {} numbers; it must have the width and the height of each anchor.",
             a.anchors.size());
  user_check(a.class_num > 0 && a.class_num < int64_t{1} << 31, ErrorKind::InvalidArgument,
             "class_num is {}; it must be positive.", a.class_num);
  user_check(a.downsample_ratio > 0, ErrorKind::InvalidArgument,
             "downsample_ratio is {}; it must be positive.", a.downsample_ratio);
  user_check(!a.iou_aware || (a.iou_aware_factor >= 0 && a.iou_aware_factor <= 1),
             ErrorKind::InvalidArgument, "iou_aware_factor is {}; it must be between 0 and 1.",
             a.iou_aware_factor);
  user_check(is_integral(a.img_size.dtype()), ErrorKind::InvalidType,
             "img_size has dtype {}; it must be an integer type.", name_of(a.img_size.dtype()));
  user_check(
      a.img_size.rank() == 2 && same(a.img_size.dim(0), a.x.dim(0)) && same(a.img_size.dim(1), 2),
      ErrorKind::InvalidArgument,
      "img_size has shape {} for {} images; it must have the height and width of each.",
      to_string(a.img_size.dims()), a.x.dim(0).str());
  const auto anchors = static_cast<int64_t>(a.anchors.size() / 2);
  const int64_t wanted = anchors * (a.class_num + (a.iou_aware ? 6 : 5));
  user_check(same(a.x.dim(1), wanted), ErrorKind::InvalidArgument,
             "x has {} channels; {} anchors with {} classes{} need {}.", a.x.dim(1).str(), anchors,
             a.class_num, a.iou_aware ? " and overlaps" : "", wanted);
  return {a.x.dim(0), Dim(anchors) * a.x.dim(2) * a.x.dim(3)};
}

const OpDef yolo_box_op = {
    .schema =
        "yolo_box(Tensor x, Tensor img_size, int[] anchors, int class_num, float conf_thresh, int downsample_ratio, bool "
        "clip_bbox = True, float scale_x_y = 1.0, bool iou_aware = False, float iou_aware_factor = 0.5) -> (Tensor "
        "boxes, Tensor scores)",
    .brief =
        "Boxes in pixels of the image, and the scores of their classes, from the output of a YOLO network; zeros where "
        "the confidence is below conf_thresh.",
    .infer = [](const args::yolo_box& a) -> Metas {
      const Shape sizes = yolo_sizes(a);
      return {TensorMeta{a.x.dtype(), {sizes[0], sizes[1], 4}},
              TensorMeta{a.x.dtype(), {sizes[0], sizes[1], Dim(a.class_num)}}};
    },
    .shard =
        "nchw, ns -> nbf, nbk ; c whole, h whole, w whole, s whole, b whole, f whole, k whole # where a box is depends on the size of the whole map",
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "(lambda n, h, w, an, sg: (lambda iou, y: (lambda conf: (lambda keep, cx, cy, bw, bh, ih, iw: (lambda b: (np."
        "where(keep[..., None], b, 0).reshape(n, len(an) * h * w, 4), np.where(keep[..., None], conf[..., None] * np.moveaxis(sg(y[:, "
        ":, 5:]), 2, -1), 0).reshape(n, len(an) * h * w, class_num)))((lambda b: np.stack([np.maximum(b[0], 0), np.maximum(b[1], 0), "
        "np.minimum(b[2], iw - 1), np.minimum(b[3], ih - 1)], -1) if clip_bbox else np.stack(b, -1))([cx - bw / 2, cy - "
        "bh / 2, cx + bw / 2, cy + bh / 2])))(conf >= conf_thresh, *(lambda ih, iw, s: ((np.arange(w) + sg(y[:, :, 0]) * "
        "scale_x_y + s) * iw / w, (np.arange(h)[:, None] + sg(y[:, :, 1]) * scale_x_y + s) * ih / h, np.exp(y[:, :, 2]) "
        "* an[:, 0, None, None] * iw / (downsample_ratio * w), np.exp(y[:, :, 3]) * an[:, 1, None, None] * ih / ("
        "downsample_ratio * h), ih, iw))(img_size[:, 0, None, None, None], img_size[:, 1, None, None, None], -0.5 * ("
        "scale_x_y - 1))))(sg(y[:, :, 4]) ** (1 - iou_aware_factor) * sg(iou) ** iou_aware_factor if iou_aware else "
        "sg(y[:, :, 4])))(x[:, :len(an)], x[:, len(an) * iou_aware:].reshape(n, len(an), 5 + class_num, h, w)))(x.shape["
        "0], *x.shape[2:], np.reshape(anchors, (-1, 2)), lambda v: 1 / (1 + np.exp(-v)))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 14, 3, 2}), ints(20, 90, {2, 2}, DType::Int32), IntVector{10, 13, 16, 30},
                   2, 0.01, 8)
              .add(t({1, 7, 2, 3}), ints(20, 90, {1, 2}), IntVector{10, 13}, 2, 0.5, 16, false, 1.2)
              .add(t({2, 16, 2, 2}), ints(20, 90, {2, 2}, DType::Int32), IntVector{10, 13, 16, 30},
                   2, 0.2, 8, true, 1.0, true, 0.4)
              .add(t({0, 7, 2, 2}), ints(20, 90, {0, 2}, DType::Int32), IntVector{10, 13}, 2, 0.01,
                   8);
        },
};

}  // namespace

OAR_FAMILY(boxes, &box_coder_op, &prior_box_op, &yolo_box_op)

}  // namespace oar
