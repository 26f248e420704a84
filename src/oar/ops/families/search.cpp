// Positions in sorted rows, and membership.
#include "oar/ops/gen/search.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/families/count.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/sort.h"

namespace oar {
namespace {

Metas infer_places(const Tensor& sequence, const Tensor& values, bool narrow) {
  user_check(sequence.rank() >= 1, ErrorKind::InvalidArgument,
             "sorted_sequence is 0-d; it must have an axis to search along.");
  if (sequence.rank() > 1) {
    bool fits = sequence.rank() == values.rank();
    for (int i = 0; fits && i + 1 < sequence.rank(); ++i)
      fits = same(sequence.dim(i), values.dim(i));
    user_check(
        fits, ErrorKind::InvalidArgument,
        "sorted_sequence of shape {} has rows for other values than those of shape {}.\nhint: "
        "Both need the same sizes before the last axis, or sorted_sequence one axis only.",
        to_string(sequence.dims()), to_string(values.dims()));
  }
  user_check(!narrow || !known_less(Dim(INT32_MAX), sequence.dim(-1)), ErrorKind::InvalidArgument,
             "sorted_sequence of shape {} has places that int32 cannot hold.\nhint: Leave out "
             "out_int32.",
             to_string(sequence.dims()));
  return TensorMeta{narrow ? DType::Int32 : DType::Int64, values.shape()};
}

TensorSpec rising(const Shape& shape) {
  const auto n = static_cast<size_t>(shape.numel().word());
  std::vector<double> values;
  for (size_t i = 0; i < n; ++i) {
    const size_t twice_each = (i + 1) / 2;
    values.push_back(static_cast<double>(twice_each));
  }
  return fixed_values(values, shape);
}

const OpDef searchsorted_op = {
    .schema =
        "searchsorted(Tensor sorted_sequence, Tensor values, bool out_int32 = False, bool right = False) "
        "-> Tensor",
    .brief =
        "Where each value would be inserted into a sorted row: before equal elements, or with `right` "
        "after them.",
    .infer =
        [](const args::searchsorted& a) {
          return infer_places(a.sorted_sequence, a.values, a.out_int32);
        },
    .cost =
        [](const CostCall& c) {
          const args::searchsorted a(c.args);
          return halving_cost(elements(a.values), extent(a.sorted_sequence, -1));
        },
    .plan =
        [](const PlanCall& c) {
          PlanTensor &rows = c.plan.operands[0], &values = c.plan.operands[1];
          for (size_t i = 0; i < values.axes.size(); ++i) {
            c.plan.pass(values, i, c.plan.results[0], i);
            if (i + 1 < rows.axes.size()) c.plan.put(rows, i, values.axes[i].factor);
          }
        },
    .traits = Trait::Promote | Trait::NoGrad,
    .dtypes = "int float",
    .numpy =
        "(lambda side: np.searchsorted(sorted_sequence, values, side) if sorted_sequence.ndim == 1 else "
        "np.reshape([np.searchsorted(s, v, side) for s, v in zip(sorted_sequence.reshape(-1, "
        "sorted_sequence.shape[-1]), values.reshape(-1, values.shape[-1]))], values.shape))('right' if right "
        "else 'left').astype('int32' if out_int32 else 'int64')",
    .samples =
        [] {
          return Samples()
              .add(rising({7}), t({4, 5}))
              .add(rising({7}), ints(-1, 6, {3}), true, true)
              .add(rising({1}), ints(0, 3, {}))
              .add(rising({2, 9}), ints(-1, 6, {2, 20}), false, true)
              .add(rising({2, 1, 4}), t({2, 1, 3}))
              .add(rising({0}), t({3}))
              .add(rising({4}), t({0, 3}));
        },
    .python = "oar Tensor",
};

const OpDef bucketize_op = {
    .schema =
        "bucketize(Tensor x, Tensor sorted_sequence, bool out_int32 = False, bool right = False) -> Tensor",
    .brief = "The number of the bucket between sorted bounds that each element falls into.",
    .decompose = [](const args::bucketize& a) -> Made {
      user_check(a.sorted_sequence.rank() == 1, ErrorKind::InvalidArgument,
                 "sorted_sequence of shape {} must have one axis.",
                 to_string(a.sorted_sequence.dims()));
      return searchsorted(a.sorted_sequence, a.x, a.out_int32, a.right);
    },
    .traits = Trait::Promote | Trait::NoGrad,
    .dtypes = "int float",
    .numpy =
        "np.asarray(np.searchsorted(sorted_sequence, x, 'right' if right else 'left')).astype('int32' if "
        "out_int32 else 'int64')",
    .samples =
        [] {
          return Samples()
              .add(ints(-1, 6, {4, 5}), rising({7}))
              .add(t({3}), rising({7}), true, true)
              .add(t({}), rising({2}))
              .add(t({0, 3}), rising({2}));
        },
    .python = "oar Tensor",
};

const OpDef isin_op = {
    .schema =
        "isin(Tensor x, Tensor test_x, bool assume_unique = False, bool invert = False) -> Tensor",
    .brief = "Whether each element of x is among those of test_x; with `invert` whether it is not.",
    .decompose = [](const args::isin& a) -> Made {
      const Tensor tests = reshape(a.test_x, {a.test_x.numel()});
      if (tests.dim(0) == Dim(0)) return full(a.x.dims(), Scalar(a.invert), DType::Bool);
      const Tensor sorted = sort(tests, 0);
      const Tensor last = cast(count_of(tests.dims(), DType::Int64) - 1, DType::Int64);
      const Tensor places = minimum(searchsorted(sorted, a.x), last);
      const Tensor found = equal(take(sorted, places), a.x);
      return a.invert ? logical_not(found) : found;
    },
    .traits = Trait::Promote | Trait::NoGrad,
    .dtypes = "int float",
    .numpy = "np.isin(x, test_x, invert=invert)",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 9, {4, 5}), ints(0, 9, {4}))
              .add(ints(0, 9, {5}), ints(0, 9, {2, 2}), false, true)
              .add(t({3}), t({0}))
              .add(t({}), t({3}), true)
              .add(t({0, 3}), t({3}));
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(search, &searchsorted_op, &bucketize_op, &isin_op)

}  // namespace oar
