// Regions that may hold objects: chosen from anchors, and distributed over the levels of a pyramid.
#include "oar/ops/gen/proposals.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"

namespace oar {
namespace {

const OpDef generate_proposals_op = {
    .schema =
        "generate_proposals(Tensor scores, Tensor bbox_deltas, Tensor im_shape, Tensor anchors, Tensor variances, int "
        "pre_nms_top_n = 6000, int post_nms_top_n = 1000, float nms_thresh = 0.5, float min_size = 0.1, float eta = 1.0, "
        "bool pixel_offset = True) -> (Tensor rpn_rois, Tensor rpn_roi_probs, Tensor rpn_rois_num)",
    .brief =
        "For each image the best boxes, decoded from anchors and clipped to the image, that are not too small and overlap "
        "no better one by more than nms_thresh; their scores; and how many each image has. An image without any has one "
        "box of zeros.",
    .infer = [](const args::generate_proposals& a) -> Metas {
      const Dims s = a.scores.dims(), d = a.bbox_deltas.dims();
      user_check(s.size() == 4 && d.size() == 4 && same(d[0], s[0]) && same(d[1], s[1] * Dim(4)) &&
                     same(d[2], s[2]) && same(d[3], s[3]),
                 ErrorKind::InvalidArgument,
                 "scores has shape {} and bbox_deltas {}; they must be [batch, anchors, height, "
                 "width] and [batch, 4 * anchors, height, width].",
                 to_string(s), to_string(d));
      user_check(
          a.im_shape.rank() == 2 && same(a.im_shape.dim(0), s[0]) && same(a.im_shape.dim(1), 2),
          ErrorKind::InvalidArgument,
          "img_size has shape {} for {} images; it must have the height and width of each.",
          to_string(a.im_shape.dims()), s[0].str());
      const Dim wanted = s[1] * s[2] * s[3] * Dim(4);
      for (const auto& [t, argument] :
           {std::pair{&a.anchors, "anchors"}, {&a.variances, "variances"}})
        user_check(same(t->numel(), wanted), ErrorKind::InvalidArgument,
                   "{} has shape {}; it must be [height, width, anchors, 4], that is [{}, {}, {}, "
                   "4].",
                   argument, to_string(t->dims()), s[2].str(), s[3].str(), s[1].str());
      const Dim all = a.scores.numel() + s[0];
      const Dim count = a.scores.is_dense() ? all : Dim::symbol("proposals", all.hint());
      return {TensorMeta{a.scores.dtype(), {count, 4}, true},
              TensorMeta{a.scores.dtype(), {count, 1}, true}, TensorMeta{DType::Int32, {s[0]}}};
    },
    .shard = "whole: each box is compared with all others",
    .traits = Trait::DataDependent | Trait::NoGrad | Trait::Promote,
    .dtypes = "float",
    .numpy =
        "(lambda one, iou: (lambda per: (np.concatenate([p[0] for p in per] + [np.zeros((0, 4))]), np.concatenate([p[1] "
        "for p in per] + [np.zeros((0, 1))]), np.array([len(p[0]) for p in per], 'int32')))([(lambda s, d, a, v: (lambda "
        "size, mid: (lambda c, z: (lambda b, top: (lambda order: (lambda kept: (b[kept], s[kept][:, None]) if len(order) "
        "else (np.zeros((1, 4)), np.zeros((1, 1))))((lambda kept: kept[:post_nms_top_n] if post_nms_top_n > 0 else kept)("
        "__import__('functools').reduce(lambda kept, i: kept + [i] if all(iou(b[i], b[k]) <= nms_thresh for k in kept) "
        "else kept, order, [])) if nms_thresh > 0 else order))([i for i in top if (lambda w, h: w >= max(min_size, 1) and "
        "h >= max(min_size, 1) and (not pixel_offset or (b[i, 0] + w / 2 <= im[1] and b[i, 1] + h / 2 <= im[0])))(b[i, 2] "
        "- b[i, 0] + one, b[i, 3] - b[i, 1] + one)]))(np.clip(np.concatenate([c - z / 2, c + z / 2 - one], 1), 0, [im[1] "
        "- one, im[0] - one] * 2), np.argsort(-s, kind='stable')[:pre_nms_top_n if pre_nms_top_n > 0 else None]))(v[:, "
        ":2] * d[:, :2] * size + mid, np.exp(np.minimum(v[:, 2:] * d[:, 2:], math.log(1000 / 16))) * size))(a[:, 2:] - "
        "a[:, :2] + one, a[:, :2] + (a[:, 2:] - a[:, :2] + one) / 2))(scores[n].transpose(1, 2, 0).ravel(), "
        "bbox_deltas[n].transpose(1, 2, 0).reshape(-1, 4), anchors.reshape(-1, 4), variances.reshape(-1, 4)) for n, im in "
        "enumerate(im_shape)]))(1 if pixel_offset else 0, lambda a, b, one=1 if pixel_offset else 0: (lambda w, h, area: "
        "0 if w < 0 or h < 0 else (lambda both: both / (area(a) + area(b) - both))((w + one) * (h + one)))(min(a[2], "
        "b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1]), lambda c: (c[2] - c[0] + one) * (c[3] - c[1] + "
        "one)))",
    .samples =
        [] {
          const TensorSpec anchors =
              filled_with({0, 0, 9, 9,  2, 2, 13, 8,  4, 1, 12, 12, 3, 5, 15, 15,
                           0, 4, 7, 15, 8, 8, 15, 15, 5, 0, 14, 7,  1, 6, 9,  14},
                          {2, 2, 2, 4});
          const auto sizes = [](double h, double w) { return filled_with({h, w}, {1, 2}); };
          return Samples()
              .add(distinct({1, 2, 2, 2}), t({1, 8, 2, 2}), sizes(16, 18), anchors,
                   positive({2, 2, 2, 4}))
              .add(distinct({1, 2, 2, 2}), t({1, 8, 2, 2}), sizes(16, 12), anchors,
                   positive({2, 2, 2, 4}), 5, 3, 0.3, 3.0, 1.0, false)
              .add(distinct({1, 2, 2, 2}), t({1, 8, 2, 2}), sizes(16, 12), anchors,
                   positive({2, 2, 2, 4}), 5, 3, 0.3, 300.0)
              .add(t({0, 2, 2, 2}), t({0, 8, 2, 2}), t({0, 2}), anchors, positive({2, 2, 2, 4}));
        },
};

// One result after the other: the boxes of each level, the counts of each level, the index that restores the order.
const OpDef fpn_levels_op = {
    .schema =
        "fpn_levels(Tensor fpn_rois, Tensor rois_num, int min_level, int max_level, int refer_level, int refer_scale, "
        "bool pixel_offset = False) -> Tensor[]",
    .brief =
        "The boxes of each level of a pyramid, which their size decides; then for each level how many boxes of each image "
        "it has; last where each box is among those of all levels.",
    .infer = [](const args::fpn_levels& a) -> Metas {
      user_check(a.fpn_rois.rank() == 2 && same(a.fpn_rois.dim(1), 4), ErrorKind::InvalidArgument,
                 "fpn_rois has shape {}; it must be [count, 4].", to_string(a.fpn_rois.dims()));
      user_check(a.rois_num.rank() == 1 && is_integral(a.rois_num.dtype()),
                 ErrorKind::InvalidArgument,
                 "rois_num has shape {} and dtype {}; it must be a vector of integers.",
                 to_string(a.rois_num.dims()), name_of(a.rois_num.dtype()));
      user_check(a.min_level > 0 && a.max_level > a.min_level && a.max_level - a.min_level < 99,
                 ErrorKind::InvalidArgument,
                 "min_level is {} and max_level {}; they must be positive, in this order and less "
                 "than 99 apart.",
                 a.min_level, a.max_level);
      user_check(a.refer_scale > 0, ErrorKind::InvalidArgument,
                 "refer_scale is {}; it must be positive.", a.refer_scale);
      Metas metas;
      const int64_t levels = a.max_level - a.min_level + 1;
      for (int64_t i = 0; i < levels; ++i) {
        const Dim count = a.fpn_rois.is_dense() ? a.fpn_rois.dim(0)
                                                : Dim::symbol("level", a.fpn_rois.dim(0).hint());
        metas.push_back({a.fpn_rois.dtype(), {count, 4}, true});
      }
      for (int64_t i = 0; i < levels; ++i) metas.push_back({DType::Int32, a.rois_num.shape()});
      metas.push_back({DType::Int32, {a.fpn_rois.dim(0), 1}});
      return metas;
    },
    .shard = "whole: how many boxes a level has depends on all of them",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "(lambda level, image: [fpn_rois[level == k] for k in range(min_level, max_level + 1)] + [np.bincount(image[level "
        "== k], minlength=len(rois_num)).astype('int32') for k in range(min_level, max_level + 1)] + [np.argsort(np."
        "argsort(level, kind='stable'), kind='stable').astype('int32')[:, None]])(np.clip(np.floor(np.log2(np.sqrt((lambda "
        "w, h: np.where((w < 0) | (h < 0), 0, (w + pixel_offset) * (h + pixel_offset)))(fpn_rois[:, 2] - fpn_rois[:, 0], "
        "fpn_rois[:, 3] - fpn_rois[:, 1])) / refer_scale + 1e-6) + refer_level), min_level, max_level).astype(int), np."
        "repeat(np.arange(len(rois_num)), rois_num))",
    .samples =
        [] {
          const TensorSpec boxes =
              filled_with({0, 0, 9,   9,   2, 2, 130, 80, 4, 1, 12, 12,  3, 5, 1500, 1500,
                           0, 4, 300, 350, 8, 8, 15,  1,  5, 0, 14, 700, 1, 6, 9,    14},
                          {8, 4});
          return Samples()
              .add(boxes, fixed_values({4, 4}, {2}, DType::Int32), 2, 5, 4, 224)
              .add(boxes, fixed_values({8}, {1}, DType::Int32), 3, 4, 3, 100, true)
              .add(t({0, 4}), fixed_values({0}, {1}, DType::Int32), 2, 5, 4, 224);
        },
};

}  // namespace

OAR_FAMILY(proposals, &generate_proposals_op, &fpn_levels_op)

}  // namespace oar
