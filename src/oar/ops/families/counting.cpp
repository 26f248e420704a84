// Occurrences of numbers, and different elements.
#include "oar/ops/gen/counting.h"

#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/gather.h"

namespace oar {
namespace {

const OpDef bincount_op = {
    .schema = "bincount(Tensor x, Tensor? weights = None, int minlength = 0) -> Tensor",
    .brief =
        "How often each number from 0 on occurs in a vector, at least minlength of them; with weights, the "
        "sums of those.",
    .infer = [](const args::bincount& a) -> Metas {
      user_check(a.x.rank() == 1, ErrorKind::InvalidArgument,
                 "x of shape {} must have one axis.\nhint: Pass x.flatten().",
                 to_string(a.x.dims()));
      user_check(a.minlength >= 0, ErrorKind::InvalidArgument,
                 "minlength is {}; it must not be negative.", a.minlength);
      const bool weighed = a.weights.defined();
      user_check(!weighed || same(a.weights.shape(), a.x.shape()), ErrorKind::InvalidArgument,
                 "weights has shape {} and x {}; they must be equal.",
                 weighed ? to_string(a.weights.dims()) : "", to_string(a.x.dims()));
      const Dim count = a.x.is_dense() ? a.x.numel() : Dim::symbol("bincount", 8);
      return TensorMeta{weighed ? a.weights.dtype() : DType::Int64, Shape{count}, true};
    },
    .vjp = [](const vjp::bincount& v) -> Grads {
      if (!v.weights.defined()) return {Tensor(), Tensor()};
      return {Tensor(), gather(v.grad, v.x)};
    },
    .saves = "x weights:shape",
    .shard = "a, a -> b ; a sum, b whole # how many bins there are depends on every element",
    .traits = Trait::DataDependent,
    .dtypes = "int",
    .numpy =
        "np.bincount(x, weights, minlength).astype('int64' if weights is None else weights.dtype)",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 9, {20}))
              .add(ints(0, 9, {20}), std::nullopt, 30)
              .add(ints(0, 9, {20}, DType::Int32), of_dtype(t({20}), DType::Float32), 3)
              .add(ints(0, 9, {20}), ints(0, 5, {20}))
              .add(ints(0, 9, {20}), of_dtype(t({20}), DType::Float64))
              .add(ints(0, 9, {0}), std::nullopt, 2);
        },
    .python = "oar Tensor",
};

const OpDef histogram_counts_op = {
    .schema =
        "histogram_counts(Tensor input, Tensor? weight, int bins = 100, float min = 0.0, float max = 0.0) -> "
        "Tensor",
    .brief =
        "How many elements fall into each of so many equal bins between min and max (between the smallest and "
        "the largest element where those are equal); with a weight, the sums of it. Elements outside are left "
        "out.",
    .infer = [](const args::histogram_counts& a) -> Metas {
      user_check(a.bins >= 1, ErrorKind::InvalidArgument, "bins is {}; it must be at least 1.",
                 a.bins);
      user_check(a.max >= a.min && std::isfinite(a.min) && std::isfinite(a.max),
                 ErrorKind::InvalidArgument,
                 "min is {} and max {}; both must be finite and max not the smaller one.", a.min,
                 a.max);
      const bool weighed = a.weight.defined();
      user_check(!weighed || same(a.weight.shape(), a.input.shape()), ErrorKind::InvalidArgument,
                 "weight has shape {} and input {}; they must be equal.",
                 weighed ? to_string(a.weight.dims()) : "", to_string(a.input.dims()));
      return TensorMeta{weighed ? a.weight.dtype() : DType::Int64, Shape{Dim(a.bins)}};
    },
    .plan =
        [](const PlanCall& c) {
          const args::histogram_counts a(c.args);
          if (a.min == a.max) return;  // the bins are between the extremes of the whole
          for (size_t i = 0; i < c.plan.operands[0].axes.size(); ++i) {
            const int factor = c.plan.add(c.plan.operands[0].shape[i], Join::Sum);
            for (PlanTensor& t : c.plan.operands) c.plan.put(t, i, factor);
          }
        },
    .traits = Trait::NoGrad,
    .dtypes = "int float",
    .numpy =
        "np.histogram(input, bins, (min, max) if min != max else ((input.min(), input.max()) if input.size "
        "and input.min() != input.max() else (input.flat[0] - 1, input.flat[0] + 1) if input.size else (-1, "
        "1)), weights=weight)[0].astype('int64' if weight is None else weight.dtype)",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 9, {20}), std::nullopt, 4)
              .add(ints(0, 9, {4, 5}), std::nullopt, 5, 0.0, 10.0)
              .add(ints(3, 4, {4}), std::nullopt, 2)
              .add(ints(0, 9, {20}), of_dtype(t({20}), DType::Float32), 3, -1.0, 5.0)
              .add(ints(0, 9, {0}), std::nullopt, 3);
        },
};

Dim unknown_count(const Tensor& x, const char* name) {
  return x.is_dense() ? x.numel() : Dim::symbol(name, x.numel().hint());
}

const OpDef unique_flat_op = {
    .schema =
        "unique_flat(Tensor x, bool return_index = False, bool return_inverse = False, bool return_counts = "
        "False) -> (Tensor out, Tensor index, Tensor inverse, Tensor counts)",
    .brief =
        "The different elements in order; where each first occurs, which of them every element is, and how "
        "often it occurs. What is not requested is empty.",
    .infer = [](const args::unique_flat& a) -> Metas {
      const Dim found = unknown_count(a.x, "unique");
      const auto places = [](Dim size) { return TensorMeta{DType::Int64, Shape{size}, true}; };
      return {TensorMeta{a.x.dtype(), Shape{found}, true}, places(a.return_index ? found : Dim(0)),
              places(a.return_inverse ? a.x.numel() : Dim(0)),
              places(a.return_counts ? found : Dim(0))};
    },
    .shard = "whole: elements are compared with all others",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .dtypes = "bool int float",
    .numpy =
        "(lambda v, i, r, c: (v, i if return_index else i[:0], np.ravel(r) if return_inverse else i[:0], c if "
        "return_counts else i[:0]))(*np.unique(x, True, True, True))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 5, {4, 5}), true, true, true)
              .add(ints(-500, 5, {20}, DType::Int32), true, false, true)
              .add(t({7}), true, true, true)
              .add(t({3, 2}))
              .add(bools({6}), false, true)
              .add(t({}), true)
              .add(t({0}), true, true, true);
        },
};

const OpDef unique_rows_op = {
    .schema =
        "unique_rows(Tensor x, bool consecutive = False) -> (Tensor index, Tensor inverse, Tensor counts)",
    .brief =
        "Where the different rows of a matrix first occur, in the order of the rows; which of them every row "
        "is, and how often each occurs. If consecutive, rows that differ from the one before.",
    .infer = [](const args::unique_rows& a) -> Metas {
      user_check(a.x.rank() == 2, ErrorKind::InvalidArgument, "x of shape {} is not a matrix.",
                 to_string(a.x.dims()));
      const Dim rows = a.x.dim(0);
      const Dim found = a.x.is_dense() ? rows : Dim::symbol("unique", rows.hint());
      const auto places = [](Dim size) { return TensorMeta{DType::Int64, Shape{size}, true}; };
      return {places(found), places(rows), places(found)};
    },
    .shard = "whole: elements are compared with all others",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .dtypes = "bool int float",
    .numpy =
        "(lambda s: (s, np.searchsorted(s, np.arange(len(x)), 'right') - 1, np.diff(np.append(s, "
        "len(x)))))(np.array([i for i in range(len(x)) if i == 0 or (x[i] != x[i - 1]).any()], dtype='int64')) "
        "if consecutive else (lambda u: (u[1], np.ravel(u[2]), u[3]))(np.unique(x, True, True, True, axis=0))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 2, {8, 2}))
              .add(ints(0, 2, {8, 2}), true)
              .add(ints(0, 2, {9, 1}), true)
              .add(t({3, 2}));
        },
};

}  // namespace

OAR_FAMILY(counting, &bincount_op, &histogram_counts_op, &unique_flat_op, &unique_rows_op)

}  // namespace oar
