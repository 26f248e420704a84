// What records of elementwise ops share: traits and samples.
#pragma once

#include "oar/ops/core/op_def.h"
#include "oar/ops/core/samples.h"

namespace oar {

// Two operands that are promoted; a function of real numbers; a predicate, which has no gradient.
inline constexpr Trait kPair = Trait::Elementwise | Trait::Promote;
inline constexpr Trait kMath = Trait::Elementwise | Trait::FloatMath;
inline constexpr Trait kQuestion = Trait::Elementwise | Trait::NoGrad;
inline constexpr Trait kComparison = kQuestion | Trait::Promote;

// Few different values, so that some are equal.
inline TensorSpec few(SampleShape shape) {
  TensorSpec spec(shape, Fill::Integers);
  spec.low = 0;
  spec.high = 3;
  return spec;
}

inline Samples comparing() {
  return Samples()
      .add(few({4, 7}), few({4, 7}))
      .add(t({2, 1, 5}), t({3, 1}))
      .add(few({5}), few({}))
      .add(t({}), t({}))
      .add(t({0, 3}), t({3}));
}

inline Samples threshold_samples(double threshold) {
  return samples::unary().add(t({9}), threshold).add(uniform_in(-3, 3, {2, 5}), threshold);
}

inline Samples threshold_grad_samples(double threshold) {
  return Samples()
      .add(t({4, 7}), t({4, 7}), threshold)
      .add(t({}), t({}), 0.3)
      .add(t({0, 3}), t({0, 3}), 0.0);
}

}  // namespace oar
