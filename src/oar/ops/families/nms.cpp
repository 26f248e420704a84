// Boxes that remain after those that overlap better ones are dropped.
#include "oar/ops/gen/nms.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

// The number of results, which only the kernel knows: an upper bound, or a symbol in a program.
Dim unknown_rows(const Tensor& any, Dim bound, const char* name) {
  return any.is_dense() ? bound : Dim::symbol(name, bound.hint());
}
TensorMeta rows_of(Dim count, std::initializer_list<Dim> rest, DType dtype) {
  Shape shape{count};
  for (const Dim d : rest) shape.push_back(d);
  return {dtype, shape, true};
}

// How much two boxes overlap, and the boxes that remain of those in an order from the best.
#define OAR_IOU                                                                                  \
  "(lambda a, b, one: (lambda w, h, area: (lambda both: both / (area(a) + area(b) - both))(w * " \
  "h))(max(min(a[2], b[2]) - max(a[0], b[0]) + one, 0), max(min(a[3], b[3]) - max(a[1], b[1]) "  \
  "+ one, 0), lambda c: (c[2] - c[0] + one) * (c[3] - c[1] + one)))"
#define OAR_GREEDY                                                                               \
  "(lambda boxes, order, limit, one: __import__('functools').reduce(lambda kept, i: kept + [i] " \
  "if all(" OAR_IOU "(boxes[k], boxes[i], one) <= limit for k in kept) else kept, order, []))"

const OpDef nms_op = {
    .schema =
        "nms(Tensor boxes, float iou_threshold = 0.3, Tensor? scores = None, Tensor? category_idxs = None, int[]? "
        "categories = None, int? top_k = None) -> Tensor",
    .brief =
        "The numbers of the boxes that overlap no better box by more than iou_threshold, best first: by scores, or in "
        "the order given. With category_idxs only boxes of one category compete, those of other categories than the "
        "given ones are left out, and at most top_k are returned.",
    .infer = [](const args::nms& a) -> Metas {
      user_check(a.boxes.rank() == 2 && same(a.boxes.dim(1), 4), ErrorKind::InvalidArgument,
                 "boxes has shape {}; it must be [count, 4]: left, top, right and bottom of each.",
                 to_string(a.boxes.dims()));
      const auto check = [&](const Tensor& t, const char* argument) {
        user_check(!t.defined() || (t.rank() == 1 && assume_same(t.dim(0), a.boxes.dim(0))),
                   ErrorKind::InvalidArgument, "{} has shape {} for {} boxes.", argument,
                   t.defined() ? to_string(t.dims()) : "", a.boxes.dim(0).str());
      };
      check(a.scores, "scores");
      check(a.category_idxs, "category_idxs");
      user_check(!a.category_idxs.defined() || is_integral(a.category_idxs.dtype()),
                 ErrorKind::InvalidType, "category_idxs has dtype {}; it must be an integer type.",
                 a.category_idxs.defined() ? name_of(a.category_idxs.dtype()) : "");
      user_check(!a.scores.defined() || !a.category_idxs.defined() || a.categories.has_value(),
                 ErrorKind::InvalidArgument,
                 "category_idxs is given without categories.\nhint: Pass the list of all category "
                 "numbers.");
      user_check(!a.scores.defined() || !a.category_idxs.defined() || !a.top_k ||
                     !known_less(a.boxes.dim(0), Dim(*a.top_k)),
                 ErrorKind::InvalidArgument, "top_k is {}, but there are only {} boxes.",
                 a.top_k.value_or(0), a.boxes.dim(0).str());
      user_check(!a.top_k || *a.top_k >= 0, ErrorKind::InvalidArgument,
                 "top_k is {}; it must not be negative.", a.top_k.value_or(0));
      return rows_of(unknown_rows(a.boxes, a.boxes.dim(0), "kept"), {}, DType::Int64);
    },
    .shard = "whole: each box is compared with all others",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "np.array(" OAR_GREEDY
        "(boxes, range(len(boxes)) if scores is None else np.argsort(-scores, kind='stable'), iou_threshold, 0) if scores "
        "is None or category_idxs is None else sorted([i for c in sorted(set(categories)) for i in " OAR_GREEDY
        "(boxes, [i for i in np.argsort(-scores, kind='stable') if category_idxs[i] == c], iou_threshold, 0)], key=lambda "
        "i: (-scores[i], i))[:top_k], dtype='int64')",
    .samples =
        [] {
          const TensorSpec boxes = filled_with(
              {0, 0, 4, 4, 1, 0, 5, 4, 0, 1, 4, 5, 7, 7, 9, 9, 6, 6, 9, 9, 0, 0, 2, 2}, {6, 4});
          return Samples()
              .add(boxes)
              .add(boxes, 0.5, distinct({6}))
              .add(boxes, 0.2, distinct({6}), ints(0, 2, {6}), IntVector{0, 1, 2}, 2)
              .add(boxes, 0.4, distinct({6}), ints(0, 3, {6}), IntVector{0, 2})
              .add(t({0, 4}));
        },
    .python = "oar.vision.ops",
    .onnx = "NonMaxSuppression",
};

// bboxes [n, m, size] with scores [n, classes, m].
void check_class_scores(const Tensor& boxes, const Tensor& scores) {
  user_check(boxes.rank() == 3 && scores.rank() == 3 && assume_same(boxes.dim(0), scores.dim(0)) &&
                 assume_same(boxes.dim(1), scores.dim(2)) && assume_same(boxes.dim(2), 4),
             ErrorKind::InvalidArgument,
             "bboxes has shape {} and scores {}; they must be [batch, count, 4] and [batch, "
             "classes, count].",
             to_string(boxes.dims()), to_string(scores.dims()));
}

Metas kept_boxes(const Tensor& boxes, Dim bound, Dim images) {
  const Dim count = unknown_rows(boxes, bound, "kept");
  return {rows_of(count, {6}, boxes.dtype()), rows_of(count, {1}, DType::Int32),
          TensorMeta{DType::Int32, {images}}};
}

const OpDef matrix_nms_op = {
    .schema =
        "matrix_nms(Tensor bboxes, Tensor scores, float score_threshold, int nms_top_k, int keep_top_k, float "
        "post_threshold = 0.0, bool use_gaussian = False, float gaussian_sigma = 2.0, int background_label = 0, bool "
        "normalized = True) -> (Tensor out, Tensor index, Tensor rois_num)",
    .brief =
        "For each image the boxes whose score, lowered by their overlaps with better boxes of the same class, is above "
        "post_threshold: class, score and box; their numbers among all boxes; and how many each image has.",
    .infer = [](const args::matrix_nms& a) -> Metas {
      check_class_scores(a.bboxes, a.scores);
      return kept_boxes(a.bboxes, a.scores.numel(), a.bboxes.dim(0));
    },
    .shard = "whole: each box is compared with all others",
    .traits = Trait::DataDependent | Trait::NoGrad | Trait::Promote,
    .dtypes = "float",
    .numpy =
        "(lambda per: (np.array([r[0] for p in per for r in p]).reshape(-1, 6), np.array([r[1] for p in per for r in p]"
        ", 'int32').reshape(-1, 1), np.array([len(p) for p in per], 'int32')))([(lambda rows: sorted(rows, key=lambda r: "
        "-r[0][1])[:len(rows) if keep_top_k < 0 else keep_top_k])([((c, v, *b[i]), n * len(b) + i) for c in range(len(s)) "
        "if c != background_label for order in [[i for i in np.argsort(-s[c], kind='stable') if s[c][i] > "
        "score_threshold]] for order in [order if nms_top_k < 0 else order[:nms_top_k]] for iou in [np.array([[" OAR_IOU
        "(b[i], b[j], 0 if normalized else 1) if q < p else 0 for q, j in enumerate(order)] for p, i in "
        "enumerate(order)]).reshape(len(order), len(order))] for most in [iou.max(1) if len(order) else []] for p, i in "
        "enumerate(order) for v in [s[c][i] * min([1.0] + [math.exp((most[q] ** 2 - iou[p, q] ** 2) * gaussian_sigma) if "
        "use_gaussian else (1 - iou[p, q]) / (1 - most[q]) for q in range(p)])] if v > post_threshold]) for n, (b, s) in "
        "enumerate(zip(bboxes, scores))])",
    .samples =
        [] {
          const TensorSpec boxes = filled_with(
              {0, 0, 4, 4, 1, 0, 5, 4, 0, 1, 4, 5, 7, 7, 9, 9, 6, 6, 9, 9, 0, 0, 2, 2}, {1, 6, 4});
          return Samples()
              .add(boxes, distinct({1, 3, 6}), 0.1, 4, 5, 0.05)
              .add(boxes, distinct({1, 2, 6}), -2.0, -1, -1, -3.0, true, 1.5, -1, false)
              .add(boxes, distinct({1, 2, 6}), 100.0, 4, 5)
              .add(t({0, 3, 4}), t({0, 2, 3}), 0.1, 4, 5);
        },
};

const OpDef multiclass_nms3_op = {
    .schema =
        "multiclass_nms3(Tensor bboxes, Tensor scores, Tensor? rois_num = None, float score_threshold = 0.0, int "
        "nms_top_k = -1, int keep_top_k = -1, float nms_threshold = 0.3, bool normalized = True, float nms_eta = 1.0, int "
        "background_label = 0) -> (Tensor out, Tensor index, Tensor nms_rois_num)",
    .brief =
        "For each image the boxes that overlap no better box of the same class by more than nms_threshold, class by "
        "class: class, score and box; their numbers among all boxes; and how many each image has. Boxes and scores are "
        "[batch, count, 4] and [batch, classes, count], or with rois_num [count, classes, 4] and [count, classes].",
    .infer = [](const args::multiclass_nms3& a) -> Metas {
      if (!a.rois_num.defined() || a.scores.rank() == 3) {
        check_class_scores(a.bboxes, a.scores);
        return kept_boxes(a.bboxes, a.scores.numel(), a.bboxes.dim(0));
      }
      user_check(
          a.scores.rank() == 2 && a.bboxes.rank() == 3 && same(a.bboxes.dim(2), 4) &&
              same(a.bboxes.dim(0), a.scores.dim(0)) && same(a.bboxes.dim(1), a.scores.dim(1)),
          ErrorKind::InvalidArgument,
          "bboxes has shape {} and scores {}; with rois_num they must be [count, classes, 4] "
          "and [count, classes].",
          to_string(a.bboxes.dims()), to_string(a.scores.dims()));
      user_check(a.rois_num.rank() == 1 && is_integral(a.rois_num.dtype()),
                 ErrorKind::InvalidArgument,
                 "rois_num has shape {} and dtype {}; it must be a vector of integers.",
                 to_string(a.rois_num.dims()), name_of(a.rois_num.dtype()));
      return kept_boxes(a.bboxes, a.scores.numel(), a.rois_num.dim(0));
    },
    .shard = "whole: each box is compared with all others",
    .traits = Trait::DataDependent | Trait::NoGrad | Trait::Promote,
    .dtypes = "float",
    .promotes = "bboxes scores",
    .numpy =
        "(lambda per: (np.array([r[0] for p in per for r in p]).reshape(-1, 6), np.array([r[1] for p in per for r in p]"
        ", 'int32').reshape(-1, 1), np.array([len(p) for p in per], 'int32')))([(lambda rows: rows if keep_top_k < 0 or "
        "len(rows) <= keep_top_k else sorted(sorted(rows, key=lambda r: -r[0][1])[:keep_top_k], key=lambda r: r[0][0]))(["
        "((c, s[c][i], *b[c][i]), at(c, i)) for c in range(len(s)) if c != background_label for order in [[i for i in "
        "np.argsort(-s[c], kind='stable') if s[c][i] > score_threshold]] for kept in [" OAR_GREEDY
        "(b[c], order if nms_top_k < 0 else order[:nms_top_k], nms_threshold, 0 if normalized else 1)] for i in (kept if "
        "scores.ndim == 3 else sorted(kept))]) for b, s, at in ([(np.stack([b] * len(s)), s, lambda c, i, n=n: n * len(b) "
        "+ i) for n, (b, s) in enumerate(zip(bboxes, scores))] if scores.ndim == 3 else [(bboxes[f:t].transpose(1, 0, 2)"
        ", scores[f:t].T, lambda c, i, f=f: (f + i) * scores.shape[1] + c) for f, t in zip(np.cumsum(rois_num) - rois_num"
        ", np.cumsum(rois_num))])])",
    .samples =
        [] {
          const TensorSpec boxes = filled_with(
              {0, 0, 4, 4, 1, 0, 5, 4, 0, 1, 4, 5, 7, 7, 9, 9, 6, 6, 9, 9, 0, 0, 2, 2}, {1, 6, 4});
          const TensorSpec by_class = filled_with(
              {0, 0, 4, 4, 1, 0, 5, 4, 0, 1, 4, 5, 7, 7, 9, 9, 6, 6, 9, 9, 0, 0, 2, 2}, {3, 2, 4});
          return Samples()
              .add(boxes, distinct({1, 3, 6}), std::nullopt, 0.1, 4, 3)
              .add(boxes, distinct({1, 2, 6}), std::nullopt, -9.0, -1, -1, 0.2, false, 1.0, -1)
              .add(by_class, distinct({3, 2}), fixed_values({1, 2}, {2}, DType::Int32), -9.0, -1,
                   -1, 0.3, true, 1.0, -1)
              .add(t({0, 3, 4}), t({0, 2, 3}));
        },
};

}  // namespace

OAR_FAMILY(nms, &nms_op, &matrix_nms_op, &multiclass_nms3_op)

}  // namespace oar
