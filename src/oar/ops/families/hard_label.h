// What losses of class numbers share.
#pragma once

#include <string_view>

#include "oar/ops/core/operators.h"
#include "oar/ops/families/count.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/reduction.h"
#include "oar/tensor/dim_assume.h"

namespace oar {

// `shape` is the label's, with the axis of classes.
inline void check_hard_label(const Tensor& logits, const Tensor& label, const Shape& shape,
                             int64_t axis) {
  user_check(is_integral(label.dtype()), ErrorKind::InvalidType,
             "label has dtype {}; class numbers are integers.\nhint: Cast it with "
             "label.astype('int64'), or pass soft_label=True for probabilities.",
             name_of(label.dtype()));
  Shape expected = logits.shape();
  expected[static_cast<size_t>(axis)] = 1;
  user_check(shape.rank() == logits.rank() && assume_same(shape, expected),
             ErrorKind::InvalidArgument,
             "label has shape {}; with scores of shape {} and classes along axis {} it must be {}.",
             to_string(label.dims()), to_string(logits.dims()), axis, expected.str());
}

inline void check_hard_label(const Tensor& logits, const Tensor& label, int64_t axis) {
  check_hard_label(logits, label, label.shape(), axis);
}

// Labels with those to be ignored replaced by class 0, and which ones count.
struct HardLabel {
  HardLabel(const Tensor& label, int64_t ignore_index)
      : valid(not_equal(label, literal_index(ignore_index))),
        safe(where(valid, label, literal(0))) {}
  static Tensor literal_index(int64_t i) { return Tensor::scalar(i, DType::Int64, true); }
  Tensor valid, safe;
};

struct Weighted {
  Tensor loss;    // of each sample, before its weight
  Tensor weight;  // of each sample; undefined if classes have none
  Tensor valid;   // which samples count; undefined: all
};

// A sum of weights as a divisor: 1 if no sample counts, since the loss is then 0.
inline Tensor divisor(const Tensor& total) {
  return where(equal(total, literal(0)), literal(1), total);
}

// In 16 bits a loss times its weight may overflow where their mean does not.
inline Tensor reduce_weighted(const Weighted& w, std::string_view reduction, bool count_valid) {
  const Tensor weight = w.weight.defined() ? widened(w.weight) : w.weight;
  const bool counts = weight.defined() || count_valid;
  Tensor loss = counts ? widened(w.loss) : w.loss;
  if (weight.defined()) loss = loss * weight;
  if (reduction == "sum") loss = sum(loss);
  if (reduction == "mean" && !counts) loss = mean(loss);
  if (reduction == "mean" && counts) {
    const Tensor total = weight.defined() ? sum(weight) : cast(sum(w.valid), loss.dtype());
    loss = sum(loss) / divisor(total);
  }
  return narrowed(loss, w.loss.dtype());
}

inline void check_weight(const Tensor& weight, Dim classes) {
  if (!weight.defined()) return;
  user_check(weight.rank() == 1 && assume_same(weight.dim(0), classes), ErrorKind::InvalidArgument,
             "weight has shape {}; it must hold one number for each of the {} classes.",
             to_string(weight.dims()), classes.str());
}

}  // namespace oar
