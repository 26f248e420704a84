// What processes compute together. The kernels are registered by distributed/; `group` is the number of a group there, and `ranks`
// the number of its processes, which the sizes of results depend on. A process that stands alone is a group of one.
#include "oar/ops/gen/collective.h"

#include <cstdint>
#include <limits>
#include <span>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// One part for each process, in front.
Metas with_ranks(const Tensor& x, int64_t ranks) {
  user_check(ranks >= 1, ErrorKind::InvalidArgument,
             "ranks is {}, but a group has at least one process.", ranks);
  Shape shape = x.shape();
  shape.insert(shape.begin(), Dim(ranks));
  return TensorMeta{x.dtype(), shape, false};
}

// … removed.
Metas without_ranks(const Tensor& x, int64_t ranks) {
  user_check(
      x.rank() >= 1 && same(x.dim(0), Dim(ranks)), ErrorKind::InvalidArgument,
      "x has shape {}, but its first axis must have one part for each of the {} processes.\nhint: "
      "Reshape it to [{}, ...].",
      to_string(x.dims()), ranks, ranks);
  Shape shape = x.shape();
  shape.erase(shape.begin());
  return TensorMeta{x.dtype(), shape, false};
}

Metas as_given(const Tensor& x, int64_t ranks) {
  without_ranks(x, ranks);
  return infer::like(x);
}

// Of the bytes of the tensor: those that pass the links of one process, beside the reads and writes.
Cost cost_of(const Tensor& x, double passes) {
  const double bytes = static_cast<double>(byte_count(x.numel().hint(), x.dtype()));
  return {.flops = 0, .bytes = bytes * (2 + passes)};
}

// The batch of vmap is axis 0, and becomes axis 1 behind the parts.
Tensor batch_behind(const Tensor& x) { return swapaxes(x, 0, 1); }

bool averages(std::string_view op) { return op == "avg"; }

// Each process that has the extreme value gets an equal share.
Tensor extreme_gradient(const vjp::all_reduce& v, const Tensor& arrived) {
  const Tensor chosen = cast(equal(v.x, v.out), v.x.dtype());
  return arrived * chosen / all_reduce(chosen, "sum", v.group, v.ranks);
}

Tensor all_reduce_gradient(const vjp::all_reduce& v) {
  user_check(
      v.op != "prod", ErrorKind::Unsupported,
      "the product of what processes have has no gradient.\nhint: Use all_gather, then prod.");
  if (averages(v.op))
    return v.shared ? v.grad / static_cast<double>(v.ranks)
                    : all_reduce(v.grad, "avg", v.group, v.ranks);
  const Tensor arrived = v.shared ? v.grad : all_reduce(v.grad, "sum", v.group, v.ranks);
  return v.op == "sum" ? arrived : extreme_gradient(v, arrived);
}

constexpr const char* kWhole = "whole: the processes of the group cut it already";

Samples same_shape_samples() { return Samples().add(t({2, 3})).add(t({})).add(t({0, 2})); }
Samples part_samples() { return Samples().add(t({1, 2, 3})).add(t({1})).add(t({1, 0, 2})); }

const OpDef all_reduce_op = {
    .schema =
        "all_reduce(Tensor x, str op = 'sum', int group = 0, int ranks = 1, bool shared = False) -> Tensor",
    .brief =
        "The sum of x over the processes of a group, or with op its maximum (max), minimum (min), product (prod) or "
        "average (avg). The losses of the processes are added up, so the gradient is the sum of their gradients; with "
        "`shared` they all compute one loss, and it is their own.",
    .infer = infer::same_as_first,
    .cost = [](const CostCall& c) { return cost_of(c.args[0].as_tensor(), 2); },
    .vjp = [](const vjp::all_reduce& v) -> Grads { return all_reduce_gradient(v); },
    .saves = "x out",
    .batch = [](const BatchCall& c) -> Made {
      const args::all_reduce a(c.args);
      return all_reduce(a.x, a.op, a.group, a.ranks, a.shared);
    },
    .shard = kWhole,
    .traits = Trait::Exchanges,
    .numpy = "x.copy()",
    .samples =
        [] {
          return same_shape_samples()
              .add(t({2, 3}), "max")
              .add(t({2, 3}), "avg")
              .add(t({2}), "sum", 0, 1, true);
        },
};

const OpDef join_gradients_op = {
    .schema = "join_gradients(Tensor x, int group = 0, int ranks = 1) -> Tensor",
    .brief =
        "x itself, which all processes of a group have. Its gradient is the sum of the gradients of all of them: each uses x in "
        "a part of one computation.",
    .infer = infer::same_as_first,
    .decompose = [](const args::join_gradients& a) -> Made { return assign(a.x); },
    .vjp = [](const vjp::join_gradients& v) -> Grads {
      return all_reduce(v.grad, "sum", v.group, v.ranks, true);
    },
    .shard = "... -> ...",
    .traits = Trait::Linear,
    .numpy = "x.copy()",
    .samples = same_shape_samples,
};

const OpDef broadcast_from_op = {
    .schema = "broadcast_from(Tensor x, int root = 0, int group = 0, int ranks = 1) -> Tensor",
    .brief =
        "x of the process root, in all processes of a group. What the others pass tells the shape and the dtype alone.",
    .infer = infer::same_as_first,
    .cost = [](const CostCall& c) { return cost_of(c.args[0].as_tensor(), 1); },
    .vjp = [](const vjp::broadcast_from& v) -> Grads {
      return reduce_to(v.grad, v.root, "sum", v.group, v.ranks);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::broadcast_from a(c.args);
      return broadcast_from(a.x, a.root, a.group, a.ranks);
    },
    .shard = kWhole,
    .traits = Trait::Linear | Trait::Exchanges,
    .numpy = "x.copy()",
    .samples = same_shape_samples,
};

const OpDef reduce_to_op = {
    .schema =
        "reduce_to(Tensor x, int root = 0, str op = 'sum', int group = 0, int ranks = 1) -> Tensor",
    .brief = "As all_reduce, but the result is in the process root alone; the others get zeros.",
    .infer = infer::same_as_first,
    .cost = [](const CostCall& c) { return cost_of(c.args[0].as_tensor(), 1); },
    .vjp = [](const vjp::reduce_to& v) -> Grads {
      user_check(v.op == "sum" || averages(v.op), ErrorKind::Unsupported,
                 "reduce_to has a gradient for op sum and avg, not {}.\nhint: Use all_reduce.",
                 v.op);
      const Tensor arrived = broadcast_from(v.grad, v.root, v.group, v.ranks);
      return averages(v.op) ? arrived / static_cast<double>(v.ranks) : arrived;
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::reduce_to a(c.args);
      return reduce_to(a.x, a.root, a.op, a.group, a.ranks);
    },
    .shard = kWhole,
    .traits = Trait::Exchanges,
    .numpy = "x.copy()",
    .samples = [] { return same_shape_samples().add(t({2, 3}), 0, "avg"); },
};

const OpDef all_gather_op = {
    .schema = "all_gather(Tensor x, int group = 0, int ranks = 1, bool shared = False) -> Tensor",
    .brief =
        "The tensors x of all processes of a group, along a new first axis. The losses of the processes are added up, so the "
        "gradient is the sum of their gradients; with `shared` they all compute one loss, and it is the part of their own.",
    .infer = [](const args::all_gather& a) -> Metas { return with_ranks(a.x, a.ranks); },
    .cost = [](const CostCall& c) { return cost_of(c.results[0], 1); },
    .vjp = [](const vjp::all_gather& v) -> Grads {
      return v.shared ? own_part(v.grad, v.group, v.ranks)
                      : reduce_scatter(v.grad, "sum", v.group, v.ranks);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::all_gather a(c.args);
      return batch_behind(all_gather(a.x, a.group, a.ranks, a.shared));
    },
    .shard = kWhole,
    .traits = Trait::Linear | Trait::Exchanges,
    .numpy = "x[None].copy()",
    .samples = [] { return same_shape_samples().add(t({2}), 0, 1, true); },
};

// Nothing is sent, but what the kernel returns depends on the process: it is one program for all of them.
const OpDef own_part_op = {
    .schema = "own_part(Tensor x, int group = 0, int ranks = 1) -> Tensor",
    .brief =
        "The part of x of this process; x, which all processes of a group have, has one for each along its first axis. They all "
        "compute one loss: the gradient joins the parts again.",
    .infer = [](const args::own_part& a) -> Metas { return without_ranks(a.x, a.ranks); },
    .cost = [](const CostCall& c) { return cost_of(c.results[0], 0); },
    .vjp = [](const vjp::own_part& v) -> Grads {
      return all_gather(v.grad, v.group, v.ranks, true);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::own_part a(c.args);
      return own_part(batch_behind(a.x), a.group, a.ranks);
    },
    .shard = kWhole,
    .traits = Trait::Linear | Trait::Exchanges,
    .numpy = "x[0].copy()",
    .samples = part_samples,
};

const OpDef reduce_scatter_op = {
    .schema = "reduce_scatter(Tensor x, str op = 'sum', int group = 0, int ranks = 1) -> Tensor",
    .brief =
        "The sum of x over the processes of a group, of which each gets its part: x has one for each along its first axis.",
    .infer = [](const args::reduce_scatter& a) -> Metas { return without_ranks(a.x, a.ranks); },
    .cost = [](const CostCall& c) { return cost_of(c.args[0].as_tensor(), 1); },
    .vjp = [](const vjp::reduce_scatter& v) -> Grads {
      user_check(v.op == "sum" || averages(v.op), ErrorKind::Unsupported,
                 "reduce_scatter has a gradient for op sum and avg, not {}.\nhint: Use all_reduce.",
                 v.op);
      const Tensor arrived = all_gather(v.grad, v.group, v.ranks);
      return averages(v.op) ? arrived / static_cast<double>(v.ranks) : arrived;
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::reduce_scatter a(c.args);
      return reduce_scatter(batch_behind(a.x), a.op, a.group, a.ranks);
    },
    .shard = kWhole,
    .traits = Trait::Exchanges,
    .numpy = "x[0].copy()",
    .samples = [] { return part_samples().add(t({1, 3}), "avg"); },
};

const OpDef all_to_all_op = {
    .schema = "all_to_all(Tensor x, int group = 0, int ranks = 1) -> Tensor",
    .brief =
        "Part i of x goes to process i of a group; the result has what the processes sent to this one, in their order.",
    .infer = [](const args::all_to_all& a) -> Metas { return as_given(a.x, a.ranks); },
    .cost = [](const CostCall& c) { return cost_of(c.args[0].as_tensor(), 1); },
    .vjp = [](const vjp::all_to_all& v) -> Grads { return all_to_all(v.grad, v.group, v.ranks); },
    .batch = [](const BatchCall& c) -> Made {
      const args::all_to_all a(c.args);
      return batch_behind(all_to_all(batch_behind(a.x), a.group, a.ranks));
    },
    .shard = kWhole,
    .traits = Trait::Linear | Trait::Exchanges,
    .numpy = "x.copy()",
    .samples = part_samples,
};

int64_t total_rows(std::span<const int64_t> counts, const char* name) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  int64_t total = 0;
  for (const int64_t rows : counts) {
    user_check(rows >= 0 && rows <= kMost - total, ErrorKind::InvalidArgument,
               "{} holds {}; it must hold numbers of rows.", name, rows);
    total += rows;
  }
  return total;
}

const OpDef all_to_all_rows_op = {
    .schema = "all_to_all_rows(Tensor x, int[] in_rows, int[] out_rows, int group = 0) -> Tensor",
    .brief =
        "As all_to_all, with parts of different sizes: the next in_rows[i] rows of x go to process i, which sends "
        "out_rows[i] rows.",
    .infer = [](const args::all_to_all_rows& a) -> Metas {
      const int64_t given = total_rows(a.in_rows, "in_rows"),
                    made = total_rows(a.out_rows, "out_rows");
      user_check(
          a.x.rank() >= 1 && same(a.x.dim(0), Dim(given)) && a.in_rows.size() == a.out_rows.size(),
          ErrorKind::InvalidArgument,
          "x has shape {}, in_rows has {} numbers with the sum {}, and out_rows has {} numbers.\nhint: Pass one "
          "number for each process; those of in_rows add up to the rows of x.",
          to_string(a.x.dims()), a.in_rows.size(), given, a.out_rows.size());
      Shape shape = a.x.shape();
      shape[0] = Dim(made);
      return TensorMeta{a.x.dtype(), shape, false};
    },
    .cost = [](const CostCall& c) { return cost_of(c.args[0].as_tensor(), 1); },
    .vjp = [](const vjp::all_to_all_rows& v) -> Grads {
      return all_to_all_rows(v.grad, v.out_rows, v.in_rows, v.group);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::all_to_all_rows a(c.args);
      return batch_behind(all_to_all_rows(batch_behind(a.x), a.in_rows, a.out_rows, a.group));
    },
    .shard = kWhole,
    .traits = Trait::Linear | Trait::Exchanges,
    .numpy = "x.copy()",
    .samples =
        [] {
          return Samples()
              .add(t({3, 2}), IntVector{3}, IntVector{3})
              .add(t({0, 2}), IntVector{0}, IntVector{0});
        },
};

const OpDef gather_to_op = {
    .schema = "gather_to(Tensor x, int root = 0, int group = 0, int ranks = 1) -> Tensor",
    .brief = "As all_gather, but the result is in the process root alone; the others get zeros.",
    .infer = [](const args::gather_to& a) -> Metas { return with_ranks(a.x, a.ranks); },
    .cost = [](const CostCall& c) { return cost_of(c.results[0], 1); },
    .vjp = [](const vjp::gather_to& v) -> Grads {
      return scatter_from(v.grad, v.root, v.group, v.ranks);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::gather_to a(c.args);
      return batch_behind(gather_to(a.x, a.root, a.group, a.ranks));
    },
    .shard = kWhole,
    .traits = Trait::Linear | Trait::Exchanges,
    .numpy = "x[None].copy()",
    .samples = same_shape_samples,
};

const OpDef scatter_from_op = {
    .schema = "scatter_from(Tensor x, int root = 0, int group = 0, int ranks = 1) -> Tensor",
    .brief =
        "Part i of x of the process root, in process i of a group. What the others pass tells the shape and the dtype alone.",
    .infer = [](const args::scatter_from& a) -> Metas { return without_ranks(a.x, a.ranks); },
    .cost = [](const CostCall& c) { return cost_of(c.args[0].as_tensor(), 1); },
    .vjp = [](const vjp::scatter_from& v) -> Grads {
      return gather_to(v.grad, v.root, v.group, v.ranks);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::scatter_from a(c.args);
      return scatter_from(batch_behind(a.x), a.root, a.group, a.ranks);
    },
    .shard = kWhole,
    .traits = Trait::Linear | Trait::Exchanges,
    .numpy = "x[0].copy()",
    .samples = part_samples,
};

}  // namespace

OAR_FAMILY(collective, &all_reduce_op, &join_gradients_op, &broadcast_from_op, &reduce_to_op,
           &all_gather_op, &own_part_op, &reduce_scatter_op, &all_to_all_op, &all_to_all_rows_op, &gather_to_op,
           &scatter_from_op)

}  // namespace oar
