// Convolution of sparse images: rules say which element of the input meets which element of the result at which tap of
// the kernel; the sums over rules are ordinary, differentiable ops.
#include "oar/ops/gen/sparse_conv.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/work.h"
#include "oar/ops/families/sparse_rules.h"
#include "oar/ops/gen/complex.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

void check_window(Ints given, size_t axes, const char* name, int64_t least) {
  user_check(given.size() == axes, ErrorKind::InvalidArgument,
             "{} has {} entries; there must be one for each of {} spatial axes.", name,
             given.size(), axes);
  for (int64_t v : given)
    user_check(v >= least && v < (int64_t{1} << 31), ErrorKind::InvalidArgument,
               "{} holds {}; it must be at least {}.", name, v, least);
}

const OpDef conv_rules_op = {
    .schema =
        "conv_rules(Tensor indices, shape sizes, int[] kernel, int[] stride, int[] padding, int[] dilation, bool subm "
        "= False) -> (Tensor out_indices, Tensor inputs, Tensor outputs, Tensor taps)",
    .brief =
        "Which elements of sparse images meet in a convolution: element inputs[k] contributes to element outputs[k] of "
        "the result through tap taps[k] of the kernel; taps rise. indices has a row for the image and one for each "
        "spatial axis, whose sizes are `sizes`. With subm the result has the elements of the input; of several with one "
        "place, the first.",
    .infer = [](const args::conv_rules& a) -> Metas {
      check_integers(a.indices, "indices", 2);
      const size_t axes = a.sizes.size();
      user_check(same(a.indices.dim(0), Dim(static_cast<int64_t>(axes) + 1)),
                 ErrorKind::InvalidArgument,
                 "indices of shape {} must have a row for the image and one for each of {} sizes.",
                 to_string(a.indices.dims()), axes);
      check_window(a.kernel, axes, "kernel", 1);
      check_window(a.stride, axes, "stride", 1);
      check_window(a.padding, axes, "padding", 0);
      check_window(a.dilation, axes, "dilation", 1);
      const bool known = a.indices.is_dense();
      const Dim n = a.indices.dim(1);
      const Dim found = known || a.subm ? n : Dim::symbol("elements", n.hint());
      const Dim rules = known ? n : Dim::symbol("rules", n.hint());
      const auto numbers = [](Shape shape) {
        return TensorMeta{DType::Int64, std::move(shape), true};
      };
      return {numbers({a.indices.dim(0), found}), numbers({rules}), numbers({rules}),
              numbers({rules})};
    },
    .shard = "whole: an element of the result meets elements anywhere in the list",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .dtypes = "int",
    .numpy =
        "(lambda it, P: (lambda hits: (lambda outs: (np.array(outs, 'int64').reshape(-1, len(indices)).T, "
        "*np.array([(k, outs.index(o), t) for t, k, o in hits if o in outs], 'int64').reshape(-1, 3).T[[0, 1, 2]]))("
        "[tuple(c) for c in indices.T.tolist()] if subm else sorted({o for _, _, o in hits})))([(t, k, (int(c[0]), *["
        "int(v) for v in q])) for t, tap in enumerate(it.product(*map(range, kernel))) for k, c in "
        "enumerate(indices.T) for p in [[c[i + 1] + P[i] - tap[i] * dilation[i] for i in range(len(sizes))]] for q in "
        "[[p[i] // (1 if subm else stride[i]) for i in range(len(sizes))]] if all(subm or p[i] % stride[i] == 0 for i "
        "in range(len(sizes))) and all(0 <= q[i] < (sizes[i] if subm else (sizes[i] + 2 * padding[i] - dilation[i] * "
        "(kernel[i] - 1) - 1) // stride[i] + 1) for i in range(len(sizes)))]))(__import__('itertools'), [d * (k // 2) "
        "for d, k in zip(dilation, kernel)] if subm else padding)",
    .samples =
        [] {
          const IntVector ones{1, 1};
          const TensorSpec at =
              fixed_values({0, 0, 0, 1, 0, 1, 2, 3, 0, 3, 2, 1}, {3, 4}, DType::Int64);
          return Samples()
              .add(at, IntVector{4, 5}, IntVector{3, 3}, ones, IntVector{0, 1}, ones)
              .add(at, IntVector{4, 5}, IntVector{3, 3}, ones, IntVector{0, 0}, ones, true)
              .add(at, IntVector{4, 5}, IntVector{2, 2}, IntVector{2, 1}, IntVector{1, 0},
                   IntVector{1, 2})
              .add(ints(0, 1, {2, 0}), IntVector{4}, IntVector{3}, IntVector{1}, IntVector{1},
                   IntVector{1});
        },
};

void check_rules(const Tensor& inputs, const Tensor& outputs, const Tensor& taps) {
  check_integers(inputs, "inputs", 1);
  check_integers(outputs, "outputs", 1);
  check_integers(taps, "taps", 1);
  check_count(outputs, "outputs", inputs, "inputs");
  check_count(taps, "taps", inputs, "inputs");
}

Tensor rows_at(const Tensor& x, const Tensor& numbers) { return index_take(x, {numbers}); }

const OpDef rule_matmul_op = {
    .schema =
        "rule_matmul(Tensor x, Tensor weight, Tensor inputs, Tensor outputs, Tensor taps, shape size) -> Tensor",
    .brief =
        "Row outputs[k] of the result is the sum of row inputs[k] of x times matrix taps[k] of weight [taps, in, out]. "
        "`size` is the number of rows.",
    .infer = [](const args::rule_matmul& a) -> Metas {
      check_rank(a.x, "x", 2);
      check_rank(a.weight, "weight", 3);
      check_rules(a.inputs, a.outputs, a.taps);
      infer::check_dtype(a.weight, "weight", a.x.dtype());
      user_check(same(a.x.dim(1), a.weight.dim(1)), ErrorKind::InvalidArgument,
                 "x of shape {} has {} channels, and weight of shape {} takes {}.",
                 to_string(a.x.dims()), a.x.dim(1).str(), to_string(a.weight.dims()),
                 a.weight.dim(1).str());
      return TensorMeta{a.x.dtype(), Shape{one_size(a.size), a.weight.dim(2)}};
    },
    .decompose = [](const args::rule_matmul& a) -> Made {
      const Tensor rows = rows_at(a.x, a.inputs);  // [rules, in]
      const Tensor terms =
          sum(reshape(rows, {rows.dim(0), rows.dim(1), 1}) * rows_at(a.weight, a.taps),
              IntVector{1}, a.x.dtype());
      return index_add(zeros({one_size(a.size), a.weight.dim(2)}, a.x.dtype()), a.outputs, 0,
                       terms);
    },
    .cost =
        [](const CostCall& c) {
          const args::rule_matmul a(c.args);
          return Cost::of_products(2 * elements(a.inputs) * extent(a.weight, 1) *
                                   extent(a.weight, 2));
        },
    .vjp = [](const vjp::rule_matmul& v) -> Grads {
      Grads grads;
      grads.resize(5);
      if (v.needs(0))
        grads[0] = rule_matmul(v.grad, transpose(v.weight, {0, 2, 1}), v.outputs, v.inputs, v.taps,
                               Shape{v.x.dim(0)});
      if (v.needs(1))
        grads[1] = rule_outer(v.x, v.grad, v.inputs, v.outputs, v.taps, Shape{v.weight.dim(0)});
      return grads;
    },
    .saves = "x>weight weight>x inputs outputs taps",
    .plan = [](const PlanCall& c) { c.plan.pass(c.plan.operands[1], 2, c.plan.results[0], 1); },
    .linear_in = "x weight",
    .dtypes = "float",
    .numpy =
        "(lambda m: (np.add.at(m, outputs, np.einsum('ki,kio->ko', x[inputs], weight[taps])), m)[1])("
        "np.zeros((size[0], weight.shape[2]), x.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 2}), t({3, 2, 3}), ints(0, 4, {6}), ints(0, 5, {6}),
                   fixed_values({0, 0, 1, 2, 2, 2}, {6}, DType::Int64), IntVector{5})
              .add(t({3, 1}), t({1, 1, 1}), ints(0, 3, {0}), ints(0, 2, {0}), ints(0, 1, {0}),
                   IntVector{2});
        },
};

const OpDef rule_outer_op = {
    .schema =
        "rule_outer(Tensor x, Tensor y, Tensor inputs, Tensor outputs, Tensor taps, shape size) -> Tensor",
    .brief =
        "Matrix taps[k] of the result is the sum of the outer products of row inputs[k] of x and row outputs[k] of y. "
        "`size` is the number of matrices.",
    .infer = [](const args::rule_outer& a) -> Metas {
      check_rank(a.x, "x", 2);
      check_rank(a.y, "y", 2);
      check_rules(a.inputs, a.outputs, a.taps);
      infer::check_dtype(a.y, "y", a.x.dtype());
      return TensorMeta{a.x.dtype(), Shape{one_size(a.size), a.x.dim(1), a.y.dim(1)}};
    },
    .decompose = [](const args::rule_outer& a) -> Made {
      const Tensor left = rows_at(a.x, a.inputs), right = rows_at(a.y, a.outputs);
      const Tensor terms = reshape(left, {left.dim(0), left.dim(1), 1}) *
                           reshape(right, {right.dim(0), 1, right.dim(1)});
      return index_add(zeros({one_size(a.size), a.x.dim(1), a.y.dim(1)}, a.x.dtype()), a.taps, 0,
                       terms);
    },
    .cost =
        [](const CostCall& c) {
          const args::rule_outer a(c.args);
          return Cost::of_products(2 * elements(a.inputs) * extent(a.x, 1) * extent(a.y, 1));
        },
    .vjp = [](const vjp::rule_outer& v) -> Grads {
      Grads grads;
      grads.resize(5);
      if (v.needs(0))
        grads[0] = rule_matmul(v.y, transpose(v.grad, {0, 2, 1}), v.outputs, v.inputs, v.taps,
                               Shape{v.x.dim(0)});
      if (v.needs(1))
        grads[1] = rule_matmul(v.x, v.grad, v.inputs, v.outputs, v.taps, Shape{v.y.dim(0)});
      return grads;
    },
    .saves = "x>y y>x inputs outputs taps",
    .plan =
        [](const PlanCall& c) {
          c.plan.pass(c.plan.operands[0], 1, c.plan.results[0], 1);
          c.plan.pass(c.plan.operands[1], 1, c.plan.results[0], 2);
        },
    .linear_in = "x y",
    .dtypes = "float",
    .numpy =
        "(lambda m: (np.add.at(m, taps, np.einsum('ki,ko->kio', x[inputs], y[outputs])), m)[1])(np.zeros((size[0], "
        "x.shape[1], y.shape[1]), x.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 2}), t({5, 3}), ints(0, 4, {6}), ints(0, 5, {6}),
                   fixed_values({0, 0, 1, 2, 2, 2}, {6}, DType::Int64), IntVector{3})
              .add(t({3, 1}), t({2, 1}), ints(0, 3, {0}), ints(0, 2, {0}), ints(0, 1, {0}),
                   IntVector{2});
        },
};

}  // namespace

OAR_FAMILY(sparse_conv, &conv_rules_op, &rule_matmul_op, &rule_outer_op)

}  // namespace oar
