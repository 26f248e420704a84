// The loss of a YOLO network: which predictions stand for which objects, and how far they are off.
#include "oar/ops/gen/yolo_loss.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

template <class A>
void check_yolo(const A& a) {
  user_check(a.x.rank() == 4, ErrorKind::InvalidArgument,
             "x has shape {}; it must be [batch, channels, height, width].", to_string(a.x.dims()));
  user_check(!a.anchors.empty() && a.anchors.size() % 2 == 0 &&
                 std::ranges::all_of(a.anchors, [](int64_t v) { return v > 0; }),
             ErrorKind::InvalidArgument,
             "anchors must be the positive width and height of each anchor, but has {} numbers.",
             a.anchors.size());
  const auto count = static_cast<int64_t>(a.anchors.size() / 2);
  user_check(!a.anchor_mask.empty() &&
                 std::ranges::all_of(a.anchor_mask, [&](int64_t v) { return v >= 0 && v < count; }),
             ErrorKind::InvalidArgument,
             "anchor_mask must name some of the {} anchors, by numbers from 0 to {}.", count,
             count - 1);
  user_check(a.class_num > 0 && a.class_num < int64_t{1} << 31, ErrorKind::InvalidArgument,
             "class_num is {}; it must be positive.", a.class_num);
  user_check(a.downsample_ratio > 0 && a.downsample_ratio < int64_t{1} << 31,
             ErrorKind::InvalidArgument, "downsample_ratio is {}; it must be positive.",
             a.downsample_ratio);
  const Dim channels = Dim(static_cast<int64_t>(a.anchor_mask.size())) * Dim(a.class_num + 5);
  user_check(same(a.x.dim(1), channels), ErrorKind::InvalidArgument,
             "x has {} channels; {} masked anchors with {} classes need {}.", a.x.dim(1).str(),
             a.anchor_mask.size(), a.class_num, channels.str());
  user_check(a.gt_box.rank() == 3 && assume_same(a.gt_box.dim(0), a.x.dim(0)) &&
                 assume_same(a.gt_box.dim(2), 4),
             ErrorKind::InvalidArgument,
             "gt_box has shape {} for {} images; it must be [batch, objects, 4]: centre x, centre "
             "y, width and height, as parts of the image.",
             to_string(a.gt_box.dims()), a.x.dim(0).str());
  user_check(is_integral(a.gt_label.dtype()), ErrorKind::InvalidType,
             "gt_label has dtype {}; it must be an integer type.", name_of(a.gt_label.dtype()));
  const auto each = [&](const Tensor& t) {
    return t.rank() == 2 && same(t.dim(0), a.gt_box.dim(0)) && same(t.dim(1), a.gt_box.dim(1));
  };
  user_check(each(a.gt_label), ErrorKind::InvalidArgument,
             "gt_label has shape {}, but gt_box {}; it must be [batch, objects].",
             to_string(a.gt_label.dims()), to_string(a.gt_box.dims()));
  user_check(!a.gt_score.defined() || each(a.gt_score), ErrorKind::InvalidArgument,
             "gt_score has shape {}, but gt_box {}; it must be [batch, objects].",
             a.gt_score.defined() ? to_string(a.gt_score.dims()) : "", to_string(a.gt_box.dims()));
}

// Centre and size of each object as the network should predict them, for one image:
// (place or -1, box, weight of the box, score), and the objectness of each prediction.
#define OAR_YOLO_MATCH                                                                             \
  "(lambda n, h, w, an, size, sg, ov: (lambda px: [(lambda gts, pred: (lambda obj, found: ([obj."  \
  "__setitem__((f[0] // (h * w), f[0] % (h * w) // w, f[0] % w), f[3]) for f in found if f[0] >= " \
  "0], obj, found)[1:])(np.array([[[-1.0 if max([0.0] + [ov(pred(m, y, x), g) for g in gts if "    \
  "min(g[2:]) >= 1e-6]) > ignore_thresh else 0.0 for x in range(w)] for y in range(h)] for m in "  \
  "range(len(anchor_mask))]).reshape(len(anchor_mask), h, w), [(lambda k: (lambda at: (at, "       \
  "[g[0] * h - int(g[0] * w), g[1] * h - int(g[1] * h), math.log(g[2] * size / an[k][0]), "        \
  "math.log(g[3] * size / an[k][1])] if at >= 0 else [0.0] * 4, (2 - g[2] * g[3]) * s if at >= 0 " \
  "else 0.0, s if at >= 0 else 0.0))(list(anchor_mask).index(k) * h * w + int(g[1] * h) * w + "    \
  "int(g[0] * w) if k in anchor_mask and min(g[2:]) >= 1e-6 else -1))(int(np.argmax([ov((0, 0, "   \
  "a / size, b / size), (0, 0, g[2], g[3])) for a, b in an])) if min(g[2:]) >= 1e-6 else -1) for " \
  "g, s in zip(gts, np.ones(len(gts)) if gt_score is None else gt_score[i])]))(gt_box[i].astype("  \
  "'float64'), lambda m, y, x: ((x + sg(px[i, m, 0, y, x]) * scale_x_y - (scale_x_y - 1) / 2) / "  \
  "h, (y + sg(px[i, m, 1, y, x]) * scale_x_y - (scale_x_y - 1) / 2) / h, math.exp(px[i, m, 2, y, " \
  "x]) * an[anchor_mask[m]][0] / size, math.exp(px[i, m, 3, y, x]) * an[anchor_mask[m]][1] / "     \
  "size)) for i in range(n)])(x.astype('float64').reshape(n, len(anchor_mask), 5 + class_num, h, " \
  "w)))(x.shape[0], *x.shape[2:], np.reshape(anchors, (-1, 2)), downsample_ratio * x.shape[2], "   \
  "lambda v: 1 / (1 + math.exp(-v)), lambda a, b: (lambda w, h: (lambda both: both / (a[2] * "     \
  "a[3] + b[2] * b[3] - both))(0 if w < 0 or h < 0 else w * h))(min(a[0] + a[2] / 2, b[0] + b[2] " \
  "/ 2) - max(a[0] - a[2] / 2, b[0] - b[2] / 2), min(a[1] + a[3] / 2, b[1] + b[3] / 2) - "         \
  "max(a[1] - a[3] / 2, b[1] - b[3] / 2)))"

Samples yolo_samples(bool differentiated) {
  const auto boxes = fixed_values({0.3, 0.4, 0.3, 0.5, 0.7, 0.2, 0.1, 0.2, 0.5, 0.9, 0.6, 0.7,
                                   0.2, 0.2, 0.0, 0.3, 0.9, 0.6, 0.5, 0.4, 0.1, 0.8, 0.2, 0.3},
                                  {2, 3, 4});
  const TensorSpec labels = ints(0, 2, {2, 3}, DType::Int32);
  const TensorSpec scores = fixed_values({0.5, 1, 0.75, 1, 0.25, 1}, {2, 3});
  const IntVector anchors{10, 13, 16, 30, 33, 23}, mask{0, 2};
  const TensorSpec x = differentiated ? t({2, 14, 3, 3}) : fixed(t({2, 14, 3, 3}));
  return Samples()
      .add(x, boxes, labels, anchors, mask, 2, 0.7, 16)
      .add(x, boxes, labels, anchors, mask, 2, 0.3, 16, scores, false, 1.2)
      .add(t({0, 7, 2, 2}), t({0, 3, 4}), ints(0, 2, {0, 3}), IntVector{10, 13}, IntVector{0}, 2,
           0.7, 8);
}

const OpDef yolo_targets_op = {
    .schema =
        "yolo_targets(Tensor x, Tensor gt_box, Tensor gt_label, int[] anchors, int[] anchor_mask, int class_num, float "
        "ignore_thresh, int downsample_ratio, Tensor? gt_score = None, bool use_label_smooth = True, float scale_x_y = "
        "1.0) -> (Tensor objectness, Tensor place, Tensor box, Tensor weight, Tensor label)",
    .brief =
        "What a YOLO network should predict. objectness: for each prediction the score of its object, 0 for background, "
        "-1 if it does not count. For each object: the prediction that stands for it, or -1; centre and size; weights of "
        "box and score; the classes.",
    .infer = [](const args::yolo_targets& a) -> Metas {
      check_yolo(a);
      const Dim n = a.x.dim(0), objects = a.gt_box.dim(1);
      const DType dtype = a.x.dtype();
      return {
          TensorMeta{dtype,
                     {n, Dim(static_cast<int64_t>(a.anchor_mask.size())), a.x.dim(2), a.x.dim(3)}},
          TensorMeta{DType::Int64, {n, objects}}, TensorMeta{dtype, {n, objects, 4}},
          TensorMeta{dtype, {n, objects, 2}}, TensorMeta{dtype, {n, objects, Dim(a.class_num)}}};
    },
    .shard =
        "nchw, nbf, nb, nb -> nahw, nb, nbf, nbg, nbk ; c whole, h whole, w whole, b whole, f whole, a whole, g whole, "
        "k whole # boxes lie anywhere in the map",
    .traits = Trait::Promote | Trait::NoGrad,
    .dtypes = "float",
    .promotes = "x gt_box gt_score",
    .numpy =
        "(lambda all, low: (np.array([o for o, _ in all]).reshape(x.shape[0], len(anchor_mask), *x.shape[2:]), np.array([["
        "f[0] for f in found] for _, found in all], 'int64').reshape(gt_label.shape), np.array([[f[1] for f in found] for "
        "_, found in all]).reshape(gt_box.shape), np.array([[f[2:] for f in found] for _, found in all]).reshape(*"
        "gt_label.shape, 2), np.where(gt_label[..., None] == np.arange(class_num), 1 - low, low)))(" OAR_YOLO_MATCH
        ", min(1 / class_num, 1 / 40) if use_label_smooth else 0.0)",
    .samples = [] { return yolo_samples(false); },
};

// max(z, 0) - z * target + log(1 + exp(-|z|))
Tensor cross_entropy_of(const Tensor& z, const Tensor& target) {
  return -log_sigmoid(-z) - z * target;
}

const OpDef yolo_loss_op = {
    .schema =
        "yolo_loss(Tensor x, Tensor gt_box, Tensor gt_label, int[] anchors, int[] anchor_mask, int class_num, float "
        "ignore_thresh, int downsample_ratio, Tensor? gt_score = None, bool use_label_smooth = True, float scale_x_y = "
        "1.0) -> Tensor",
    .brief =
        "The loss of a YOLO network for each image: of the boxes and classes that stand for objects, and of the "
        "confidence of all predictions but those that overlap an object by more than ignore_thresh. Only x gets a "
        "gradient.",
    .infer = [](const args::yolo_loss& a) -> Metas {
      check_yolo(a);
      return TensorMeta{a.x.dtype(), {a.x.dim(0)}};
    },
    .decompose = [](const args::yolo_loss& a) -> Made {
      const Tensor x = widened(a.x);
      const auto [objectness, place, box, weight, label] =
          yolo_targets(without_tape(x), without_tape(widened(a.gt_box)), a.gt_label, a.anchors,
                       a.anchor_mask, a.class_num, a.ignore_thresh, a.downsample_ratio,
                       a.gt_score.defined() ? without_tape(widened(a.gt_score)) : Tensor(),
                       a.use_label_smooth, a.scale_x_y);
      const Dim n = a.x.dim(0), anchors(static_cast<int64_t>(a.anchor_mask.size())),
                entries(a.class_num + 5), cells = a.x.dim(2) * a.x.dim(3), objects = place.dim(1);
      const Tensor by_anchor = reshape(x, {n, anchors, entries, cells});
      const Tensor rows =
          reshape(transpose(by_anchor, {0, 1, 3, 2}), {n, anchors * cells, entries});
      const Tensor index = maximum(place, full({}, Scalar(0), DType::Int64));
      const Tensor found =
          take_along(rows, broadcast_to(reshape(index, {n, objects, 1}), {n, objects, entries}), 1);
      const auto part = [](const Tensor& t, int64_t from, int64_t to) {
        return slice_view(t, SliceIndex().all().all().range(from, to));
      };
      const auto total = [](const Tensor& t) { return sum(t, IntVector{1, 2}); };
      const Tensor centres = cross_entropy_of(part(found, 0, 2), part(box, 0, 2)),
                   sizes = abs(part(found, 2, 4) - part(box, 2, 4)),
                   classes = cross_entropy_of(part(found, 5, a.class_num + 5), label);
      const Tensor boxes = (centres + sizes) * part(weight, 0, 1);
      const Tensor confidence = reshape(slice_view(by_anchor, SliceIndex().all().all().at(4).all()),
                                        {n, anchors, a.x.dim(2), a.x.dim(3)});
      const Tensor positive = greater_than(objectness, literal(1e-5)),
                   counts = cast(greater_than(objectness, literal(-0.5)), x.dtype());
      const Tensor objects_loss = cross_entropy_of(confidence, cast(positive, x.dtype())) *
                                  where(positive, objectness, counts);
      return narrowed(total(boxes) + total(classes * part(weight, 1, 2)) +
                          sum(objects_loss, IntVector{1, 2, 3}),
                      a.x.dtype());
    },
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "x gt_box gt_score",
    .numpy =
        "(lambda all, low, ce, v: np.array([sum((f[2] * (ce(e[0], f[1][0]) + ce(e[1], f[1][1]) + abs(e[2] - f[1][2]) + "
        "abs(e[3] - f[1][3])) + f[3] * sum(ce(e[5 + c], 1 - low if c == gt_label[i, j] else low) for c in range(class_num"
        ")) for j, f in enumerate(found) for e in [v[i, f[0] // v.shape[3], :, f[0] % v.shape[3]]] if f[0] >= 0), 0.0) + "
        "sum(ce(z, o > 1e-5) * (o if o > 1e-5 else 1) for z, o in zip(v[i, :, 4].ravel(), obj.ravel()) if o > -0.5) for "
        "i, (obj, found) in enumerate(all)]))(" OAR_YOLO_MATCH
        ", min(1 / class_num, 1 / 40) if use_label_smooth else 0.0, lambda z, t: max(z, 0) - z * t + math.log1p(math.exp("
        "-abs(z))), x.astype('float64').reshape(x.shape[0], len(anchor_mask), 5 + class_num, x.shape[2] * x.shape[3]))",
    .samples = [] { return yolo_samples(true); },
};

}  // namespace

OAR_FAMILY(yolo_loss, &yolo_targets_op, &yolo_loss_op)

}  // namespace oar
