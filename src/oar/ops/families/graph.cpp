// Graphs: rows of a segment reduced to one, neighbours drawn at random, and nodes numbered anew.
#include "oar/ops/gen/graph.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/random_rules.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/rules.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

void check_vector(const Tensor& t, const char* argument) {
  user_check(is_integral(t.dtype()), ErrorKind::InvalidType,
             "{} has dtype {}; it must be an integer type.", argument, name_of(t.dtype()));
  user_check(t.rank() == 1, ErrorKind::InvalidArgument, "{} of shape {} must have one axis.",
             argument, to_string(t.dims()));
}

// One number for each row of x, as a column that is broadcast along the other axes.
Tensor by_row(const Tensor& numbers, const Tensor& x) {
  Shape column{numbers.dim(0)};
  for (int i = 1; i < x.rank(); ++i) column.push_back(1);
  return reshape(numbers, column);
}

void check_segments(const Tensor& x, const Tensor& ids, std::string_view pooltype) {
  user_check(is_integral(ids.dtype()), ErrorKind::InvalidType,
             "segment_ids must be int32 or int64, not {}.", name_of(ids.dtype()));
  user_check(ids.rank() == 1 && x.rank() >= 1 && assume_same(ids.dim(0), x.dim(0)),
             ErrorKind::InvalidArgument,
             "segment_ids of shape {} must have one number for each row of data, which has shape "
             "{}.",
             to_string(ids.dims()), to_string(x.dims()));
  user_check(pooltype == "sum" || pooltype == "mean" || pooltype == "max" || pooltype == "min",
             ErrorKind::InvalidArgument, "pooltype is '{}'; it can be sum, mean, max or min.",
             pooltype);
}

TensorMeta segments_of(const Tensor& x, Dim count, bool unknown) {
  Shape shape = x.shape();
  shape[0] = count;
  return {x.dtype(), shape, unknown};
}

template <class V>
Grads segment_gradients(const V& v) {
  const Tensor arrived = gather(v.grad, v.segment_ids, 0);
  if (v.pooltype == "sum") return {arrived, Tensor()};
  if (v.pooltype == "mean") {
    const Tensor one = ones({v.segment_ids.dim(0)}, v.grad.dtype());
    const Tensor counts = segment_rows(one, v.segment_ids, v.grad.dim(0).word());
    return {arrived / by_row(gather(counts, v.segment_ids, 0), v.x), Tensor()};
  }
  return {zero_unless(equal(v.x, gather(v.out, v.segment_ids, 0)), arrived), Tensor()};
}

// The rows of x are cut with their numbers if they are summed. For a mean every piece has all numbers, and
// sums its rows divided by the number of rows in their segment. The largest and smallest are not joined: a
// segment that has no rows in a piece is zero there.
void plan_segments(const PlanCall& c, std::string_view pooltype) {
  PlanTensor &x = c.plan.operands[0], &ids = c.plan.operands[1], &out = c.plan.results[0];
  for (size_t i = 1; i < x.axes.size(); ++i) c.plan.pass(x, i, out, i);
  const bool mean = pooltype == "mean" && is_floating(c.args[0].as_tensor().dtype());
  if (pooltype != "sum" && !mean) return;
  const int rows = c.plan.add(x.shape[0], Join::Sum);
  c.plan.put(x, 0, rows);
  if (!mean) c.plan.put(ids, 0, rows);
}

void localise_segments(const PieceCall& piece, std::string_view pooltype, size_t at) {
  const PlanTensor& place = piece.plan.operands[0];
  if (pooltype != "mean" || place.axes[0].factor != static_cast<int>(piece.factor)) return;
  const Tensor x = piece.frame[0].as_tensor(), ids = piece.frame[1].as_tensor();
  const Tensor alike = equal(reshape(ids, {-1, 1}), reshape(ids, {1, -1}));
  const auto own = [&](const Tensor& t) {
    return slice_view(t, SliceIndex().range(piece.start, piece.start + piece.size));
  };
  const Tensor counts = own(cast(sum(alike, IntArgs{1}), x.dtype()));
  piece.frame.set_tensor(0, x / by_row(counts, x));
  piece.frame.set_tensor(1, own(ids));
  piece.frame.set(at, Value(std::string_view("sum")));
}

#define OAR_SEGMENTS(COUNT)                                                                       \
  "np.array([{'sum': np.sum, 'mean': lambda r, axis: np.mean(r, axis) if r.dtype.kind == 'f' "    \
  "else np.sum(r, axis) // len(r), 'max': np.max, 'min': np.min}[pooltype](x[segment_ids == i], " \
  "axis=0) if (segment_ids == i).any() else np.zeros_like(x, shape=x.shape[1:]) for i in "        \
  "range(" COUNT ")]).reshape(" COUNT ", *x.shape[1:]).astype(x.dtype)"

const OpDef segment_rows_op = {
    .schema =
        "segment_rows(Tensor x, Tensor segment_ids, int size, str pooltype = 'sum') -> Tensor",
    .brief =
        "Row i of `size` rows is the sum, mean, max or min of the rows of x whose number in segment_ids is i, and zero if "
        "there are none. If several elements are the largest, each gets the whole gradient.",
    .infer = [](const args::segment_rows& a) -> Metas {
      check_segments(a.x, a.segment_ids, a.pooltype);
      const Dim size = Dim::from_word(a.size);
      user_check(size.is_symbolic() || a.size >= 0, ErrorKind::InvalidArgument,
                 "size is {}; it must not be negative.", a.size);
      return segments_of(a.x, size, false);
    },
    .vjp = [](const vjp::segment_rows& v) -> Grads { return segment_gradients(v); },
    .saves = "x segment_ids out",
    .plan =
        [](const PlanCall& c) {
          plan_segments(c, args::segment_rows(c.args).pooltype);
          PlanTensor& out = c.plan.results[0];
          c.plan.put(out, 0, c.plan.add(out.shape[0]));
          c.plan.factors.back().positions = 1;
        },
    .localise =
        [](const PieceCall& piece) {
          localise_segments(piece, args::segment_rows(piece.frame.args()).pooltype, 3);
          piece.frame.set(2, sharding::local_size(piece, piece.plan.results[0], 0).word());
        },
    .dtypes = "int float",
    .numpy = OAR_SEGMENTS("size"),
    .samples =
        [] {
          const auto ids = fixed_values({0, 0, 1, 3, 3, 3}, {6}, DType::Int64);
          return Samples()
              .add(t({6, 2, 3}), ids, 4)
              .add(t({6}), ids, 5, "mean")
              .add(distinct({6, 4}), ids, 4, "max")
              .add(distinct({6, 1}), fixed_values({2, 0, 2, 1, 1, 0}, {6}, DType::Int32), 4, "min")
              .add(t({0, 3}), fixed_values({}, {0}, DType::Int64), 2, "max");
        },
};

const OpDef segment_pool_op = {
    .schema = "segment_pool(Tensor x, Tensor segment_ids, str pooltype = 'sum') -> Tensor",
    .brief = "segment_rows, with as many rows as the largest number in segment_ids says.",
    .infer = [](const args::segment_pool& a) -> Metas {
      check_segments(a.x, a.segment_ids, a.pooltype);
      const Dim count = a.x.is_dense() ? a.x.dim(0) : Dim::symbol("segments", a.x.dim(0).hint());
      return segments_of(a.x, count, true);
    },
    .vjp = [](const vjp::segment_pool& v) -> Grads { return segment_gradients(v); },
    .saves = "x segment_ids out",
    .plan = [](const PlanCall& c) { plan_segments(c, args::segment_pool(c.args).pooltype); },
    .localise =
        [](const PieceCall& piece) {
          localise_segments(piece, args::segment_pool(piece.frame.args()).pooltype, 2);
        },
    .traits = Trait::DataDependent,
    .dtypes = "int float",
    .numpy = OAR_SEGMENTS("segment_ids.max(initial=-1) + 1"),
    .samples =
        [] {
          const auto ids = fixed_values({0, 0, 1, 3, 3, 3}, {6}, DType::Int64);
          return Samples()
              .add(t({6, 2, 3}), ids)
              .add(t({6}), ids, "mean")
              .add(distinct({6, 4}), ids, "max")
              .add(distinct({6, 1}), fixed_values({2, 0, 2, 1, 1, 0}, {6}, DType::Int32), "min")
              .add(t({0, 3}), fixed_values({}, {0}, DType::Int64), "mean");
        },
};

const OpDef reindex_nodes_op = {
    .schema =
        "reindex_nodes(Tensor x, Tensor neighbors, Tensor count) -> (Tensor reindex_src, Tensor reindex_dst, Tensor "
        "out_nodes)",
    .brief =
        "Edges from neighbors to nodes x, with nodes numbered anew: those of x first, then the neighbors in the order of "
        "their first occurrence. count says how many neighbors each node has, once for each type of edges.",
    .infer = [](const args::reindex_nodes& a) -> Metas {
      check_vector(a.x, "x");
      check_vector(a.neighbors, "neighbors");
      check_vector(a.count, "count");
      user_check(a.x.dtype() == a.neighbors.dtype(), ErrorKind::InvalidType,
                 "x has dtype {} and neighbors {}; they must be equal.", name_of(a.x.dtype()),
                 name_of(a.neighbors.dtype()));
      const Dim all = a.x.dim(0) + a.neighbors.dim(0);
      const Dim nodes = a.x.is_dense() ? all : Dim::symbol("nodes", all.hint());
      const TensorMeta edges{a.x.dtype(), a.neighbors.shape()};
      return {edges, edges, TensorMeta{a.x.dtype(), {nodes}, true}};
    },
    .shard = "whole: nodes are numbered over the whole graph",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .dtypes = "int",
    .numpy =
        "(lambda nodes: (np.array([nodes.index(v) for v in neighbors], x.dtype), np.array([nodes.index(x[i % len(x)]) for "
        "i, c in enumerate(count) for _ in range(c)], x.dtype), np.array(nodes, x.dtype)))(list(dict.fromkeys([*x.tolist()"
        ", *neighbors.tolist()])))",
    .samples =
        [] {
          const auto numbers = [](const std::vector<double>& v, DType dtype) {
            return fixed_values(v, {static_cast<int64_t>(v.size())}, dtype);
          };
          return Samples()
              .add(numbers({0, 1, 2}, DType::Int64), numbers({8, 9, 0, 4, 7, 8}, DType::Int64),
                   numbers({2, 2, 2}, DType::Int32))
              .add(numbers({5, 3}, DType::Int32), numbers({3, 4, 5, 4}, DType::Int32),
                   numbers({1, 1, 1, 1}, DType::Int32))
              .add(numbers({5, 3}, DType::Int64), numbers({}, DType::Int64),
                   numbers({0, 0}, DType::Int32));
        },
};

const OpDef sample_edges_op = {
    .schema =
        "sample_edges(Tensor colptr, Tensor nodes, Tensor? edge_weight = None, int sample_size = -1) -> (Tensor place, "
        "Tensor count)",
    .brief =
        "For each node up to sample_size of its edges, drawn without replacement: evenly, or with probabilities like the "
        "weights. The edges of node i are those from colptr[i] to colptr[i + 1]. Returns the places of the edges, and how "
        "many each node has.",
    .infer = [](const args::sample_edges& a) -> Metas {
      check_vector(a.colptr, "colptr");
      check_vector(a.nodes, "input_nodes");
      user_check(!a.edge_weight.defined() ||
                     (a.edge_weight.rank() == 1 && is_floating(a.edge_weight.dtype())),
                 ErrorKind::InvalidArgument, "edge_weight must be a vector of floats.");
      const Dim edges = a.nodes.is_dense() ? a.nodes.dim(0) : Dim::symbol("edges", 8);
      return {TensorMeta{DType::Int64, {edges}, true}, TensorMeta{DType::Int32, a.nodes.shape()}};
    },
    .shard = "whole: how many edges there are depends on all nodes",
    .traits = kRandom | Trait::DataDependent,
    .dtypes = "int",
    .samples =
        [] {
          const auto colptr = fixed_values({0, 2, 7, 7, 13}, {5}, DType::Int64);
          return Samples()
              .add(colptr, fixed_values({0, 3, 1}, {3}, DType::Int64))
              .add(colptr, fixed_values({3, 1, 2}, {3}, DType::Int64), std::nullopt, 3)
              .add(colptr, fixed_values({3, 1, 2}, {3}, DType::Int64),
                   of_dtype(positive({13}), DType::Float32), 2)
              .add(colptr, fixed_values({}, {0}, DType::Int64));
        },
};

}  // namespace

OAR_FAMILY(graph, &segment_rows_op, &segment_pool_op, &reindex_nodes_op, &sample_edges_op)

}  // namespace oar
