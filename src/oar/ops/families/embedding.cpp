// Embedding: rows of a table by index. Its gradient is dense, or holds the used rows only.
#include "oar/ops/gen/embedding.h"

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

void check_numbers(const Tensor& x) {
  user_check(is_integral(x.dtype()), ErrorKind::InvalidType,
             "x has dtype {}; it must hold row numbers as integers.", name_of(x.dtype()));
}

// The row that stays zero, or -1.
int64_t padding_row(std::optional<int64_t> given, Dim rows) {
  if (!given) return -1;
  const int64_t row = *given < 0 ? (Dim(*given) + rows).word() : *given;
  user_check(
      rows.is_symbolic() || (row >= 0 && row < rows.word()), ErrorKind::InvalidArgument,
      "padding_idx {} is not a row of the weight, which has {}.\nhint: Pass a value from {} to {}.",
      *given, rows.str(), -rows.hint(), rows.hint() - 1);
  return row;
}

// `rows`, one per index in x, without those of the padding.
Tensor without_padding(const Tensor& rows, const Tensor& x, int64_t padding) {
  if (padding == -1) return rows;
  Shape aligned = x.shape();
  for (int i = x.rank(); i < rows.rank(); ++i) aligned.push_back(1);
  return zero_where(equal(reshape(x, aligned), full({}, Scalar(padding), x.dtype())), rows);
}

// A row that was looked up n times has its gradient divided by n.
Tensor shared_by_frequency(const Tensor& grad, const Tensor& x, Dim rows) {
  const Tensor ones = full({}, Scalar(1.0), real_type_of(grad.dtype()));
  const Tensor counts = index_put(zeros({rows}, ones.dtype()), {x}, ones, true);
  Shape aligned = x.shape();
  for (int i = x.rank(); i < grad.rank(); ++i) aligned.push_back(1);
  return grad / reshape(index_take(counts, {x}), aligned);
}

Tensor sparse_gradient(const Tensor& grad, const Tensor& x, const Tensor& weight) {
  Shape values{x.numel()};
  for (Dim d : weight.dims().subspan(1)) values.push_back(d);
  const Tensor rows = reshape(x.dtype() == DType::Int64 ? x : cast(x, DType::Int64), {x.numel()});
  return make_selected_rows(rows, reshape(grad, values), weight.dims());
}

// The batch index of every element, to index a batched table.
Tensor slice_numbers(Dim batch, int rank) {
  Shape shape{batch};
  for (int i = 1; i < rank; ++i) shape.push_back(1);
  return reshape(range(Scalar(0), Scalar(batch.value()), Scalar(1), DType::Int64), shape);
}

Shape looked_up(const Tensor& x, Dims weight) {
  Shape shape = x.shape();
  for (Dim d : weight.subspan(1)) shape.push_back(d);
  return shape;
}

const OpDef embedding_lookup_op = {
    .schema =
        "embedding_lookup(Tensor x, Tensor weight, int padding_idx = -1, bool sparse = False, "
        "bool scale_grad_by_freq = False) -> Tensor",
    .brief = "weight[x], with zeros where x is padding_idx.",
    .infer = [](const args::embedding_lookup& a) -> Metas {
      check_numbers(a.x);
      user_check(a.weight.rank() >= 1, ErrorKind::InvalidArgument,
                 "weight is 0-d and has no rows.");
      return TensorMeta{a.weight.dtype(), looked_up(a.x, a.weight.dims())};
    },
    .decompose = [](const args::embedding_lookup& a) -> Made {
      check_numbers(a.x);
      return without_padding(index_take(a.weight, {a.x}), a.x, a.padding_idx);
    },
    .cost = [](const CostCall& c) { return lookup_cost(c, 1); },
    .vjp = [](const vjp::embedding_lookup& v) -> Grads {
      const Dim rows = v.weight.dim(0);
      const Tensor grad = v.scale_grad_by_freq ? shared_by_frequency(v.grad, v.x, rows) : v.grad;
      // A gradient that is differentiated again, or captured, stays an ordinary tensor.
      if (v.sparse && grad.is_dense() && !grad.has(kRecording))
        return {Tensor(),
                sparse_gradient(without_padding(grad, v.x, v.padding_idx), v.x, v.weight)};
      return {Tensor(), embedding_grad(v.x, grad, rows.word(), v.padding_idx, v.sparse)};
    },
    .saves = "x weight:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::embedding_lookup a(c.args);
      if (!c.batched[1])
        return embedding_lookup(a.x, a.weight, a.padding_idx, a.sparse, a.scale_grad_by_freq);
      const Tensor x = with_batch(c, 0);
      return without_padding(index_take(a.weight, {slice_numbers(c.size, x.rank()), x}), x,
                             a.padding_idx);
    },
    .plan = [](const PlanCall& c) { sharding::looked_up(c.plan, 1, 0, 0); },
    .localise =
        [](const PieceCall& piece) {
          const args::embedding_lookup a(piece.frame.args());
          if (piece.plan.operands[1].axes[0].factor != static_cast<int>(piece.factor)) return;
          const Dim row = Dim(a.padding_idx) - piece.start;
          const bool here = row.value() >= 0 && row.value() < piece.size.value();
          piece.frame.set(2, here ? row.value() : -1);
        },
    .numpy =
        "np.where((x == padding_idx).reshape(x.shape + (1,) * (weight.ndim - 1)), np.zeros_like(weight[:1]), weight[x]) "
        "if padding_idx >= 0 else weight[x]",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 5, {3, 2}), t({5, 4}))
              .add(ints(0, 4, {6}), t({4, 3}), 2)
              .add(ints(0, 3, {}), t({3, 2}))
              .add(ints(0, 3, {0}), t({3, 2}))
              .add(ints(0, 4, {5}, DType::Int32), t({4, 2, 2}), 0);
        },
    .onnx = "Gather",
};

const OpDef embedding_grad_op = {
    .schema =
        "embedding_grad(Tensor x, Tensor value, int num_rows, int padding_idx = -1, bool sparse = False) -> Tensor",
    .brief =
        "The sum of the slices of `value` for each row number in x, but none for padding_idx: the reverse of "
        "embedding_lookup. A program that returns a `sparse` one may return the slices as selected rows.",
    .infer = [](const args::embedding_grad& a) -> Metas {
      check_numbers(a.x);
      user_check(a.value.rank() >= a.x.rank(), ErrorKind::InvalidArgument,
                 "value has shape {}; with x of shape {} it must start with those sizes.",
                 to_string(a.value.dims()), to_string(a.x.dims()));
      Shape shape{Dim::from_word(a.num_rows)};
      for (Dim d : a.value.dims().subspan(static_cast<size_t>(a.x.rank()))) shape.push_back(d);
      user_check(same(looked_up(a.x, shape), a.value.shape()), ErrorKind::InvalidArgument,
                 "value has shape {}; with x of shape {} it must start with those sizes.",
                 to_string(a.value.dims()), to_string(a.x.dims()));
      return TensorMeta{a.value.dtype(), shape};
    },
    .decompose = [](const args::embedding_grad& a) -> Made {
      Shape shape{Dim::from_word(a.num_rows)};
      for (Dim d : a.value.dims().subspan(static_cast<size_t>(a.x.rank()))) shape.push_back(d);
      return index_put(zeros(shape, a.value.dtype()), {a.x},
                       without_padding(a.value, a.x, a.padding_idx), true);
    },
    .vjp = [](const vjp::embedding_grad& v) -> Grads {
      return {Tensor(), embedding_lookup(v.x, v.grad, v.padding_idx)};
    },
    .saves = "x",
    .batch = [](const BatchCall& c) -> Made {
      const args::embedding_grad a(c.args);
      const Tensor x = with_batch(c, 0), value = with_batch(c, 1);
      Shape shape{c.size, Dim::from_word(a.num_rows)};
      for (Dim d : value.dims().subspan(static_cast<size_t>(x.rank()))) shape.push_back(d);
      return index_put(zeros(shape, value.dtype()), {slice_numbers(c.size, x.rank()), x},
                       without_padding(value, x, a.padding_idx), true);
    },
    .plan =
        [](const PlanCall& c) {
          PlanTensor &x = c.plan.operands[0], &value = c.plan.operands[1];
          for (size_t i = 0; i < value.axes.size(); ++i) {
            const int factor = c.plan.add(value.shape[i], Join::Sum);
            c.plan.put(value, i, factor);
            if (i < x.axes.size())
              c.plan.put(x, i, factor);
            else
              c.plan.put(c.plan.results[0], i - x.axes.size() + 1, factor);
          }
          c.plan.put(c.plan.results[0], 0, c.plan.add(c.plan.results[0].shape[0]));
          c.plan.factors.back().positions = 0;
        },
    .localise =
        [](const PieceCall& piece) {
          const PlanTensor& out = piece.plan.results[0];
          if (out.axes[0].factor != static_cast<int>(piece.factor)) return;
          const int64_t padding = args::embedding_grad(piece.frame.args()).padding_idx;
          const int64_t row = padding - piece.start.value();
          piece.frame.set(2, sharding::local_size(piece, out, 0).word());
          piece.frame.set(3, row >= 0 && row < piece.size.value() ? row : int64_t{-1});
        },
    .rows = [](const Args& a) -> std::optional<RowsSpec> {
      if (!a[4].as_bool()) return std::nullopt;
      return RowsSpec{.numbers = 0, .slices = 1, .as_given = a[3].as_int() == -1};
    },
    .numpy =
        "(lambda out: (np.add.at(out, x[x != padding_idx], value[x != padding_idx]), out)[1])("
        "np.zeros((num_rows,) + value.shape[x.ndim:], value.dtype))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 5, {3, 2}), t({3, 2, 4}), 5)
              .add(ints(0, 4, {6}), t({6, 3}), 4, 2)
              .add(ints(0, 3, {}), t({2}), 3)
              .add(ints(0, 4, {3}), t({3, 2}), 4, -1, true)
              .add(ints(0, 3, {0}), t({0, 2}), 3);
        },
};

const OpDef embedding_renorm_op = {
    .schema =
        "embedding_renorm_(Tensor(a!) weight, Tensor x, float max_norm, float norm_type = 2.0) -> Tensor(a!)",
    .brief = "Scales the rows of weight that x names down to max_norm where their norm exceeds it.",
    .infer = [](const args::embedding_renorm_& a) -> Metas {
      check_numbers(a.x);
      user_check(a.weight.rank() == 2 && is_floating(a.weight.dtype()), ErrorKind::InvalidArgument,
                 "weight must be a matrix of floats, not {}.", a.weight.describe());
      user_check(a.max_norm >= 0 && a.norm_type > 0, ErrorKind::InvalidArgument,
                 "max_norm {} must not be negative and norm_type {} must be positive.", a.max_norm,
                 a.norm_type);
      return infer::like(a.weight);
    },
    .shard = "whole: x names rows of the whole table, and a norm is over all of a row",
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "(lambda out, norm: ([out.__setitem__(i, out[i] * (max_norm / (norm(out[i]) + 1e-7) if norm(out[i]) > max_norm else 1)) "
        "for i in set(x.ravel().tolist())], out)[1])(weight.copy(), lambda r: np.sum(np.abs(r) ** norm_type) ** (1 / norm_type))",
    .samples =
        [] {
          return Samples()
              .add(t({5, 3}), ints(0, 5, {4}), 1.0)
              .add(t({5, 3}), ints(0, 5, {2, 2}), 0.5, 1.0);
        },
};

const OpDef embedding_op = {
    .schema =
        "embedding(Tensor x, Tensor weight, int? padding_idx = None, float? max_norm = None, "
        "float norm_type = 2.0, bool sparse = False, bool scale_grad_by_freq = False) -> Tensor",
    .brief =
        "The rows of weight that x names; zeros for padding_idx. With max_norm the rows are first scaled down "
        "to it, in place; with sparse the gradient of weight holds only the rows that were used.",
    .decompose = [](const args::embedding& a) -> Made {
      user_check(a.weight.rank() >= 1, ErrorKind::InvalidArgument,
                 "weight is 0-d and has no rows.");
      if (a.max_norm) {
        const LayersOff no_recording(kRecording);
        embedding_renorm_(a.weight, a.x, *a.max_norm, a.norm_type);
      }
      return embedding_lookup(a.x, a.weight, padding_row(a.padding_idx, a.weight.dim(0)), a.sparse,
                              a.scale_grad_by_freq);
    },
    .plan =
        [](const PlanCall& c) {
          // With max_norm x names rows of the whole table that are written, each by its whole norm.
          if (!args::embedding(c.args).max_norm) sharding::looked_up(c.plan, 1, 0, 0);
        },
    .localise =
        [](const PieceCall& piece) {
          const args::embedding a(piece.frame.args());
          const PlanTensor& weight = piece.plan.operands[1];
          if (!a.padding_idx || weight.axes[0].factor != static_cast<int>(piece.factor)) return;
          const Dim row = Dim(padding_row(a.padding_idx, weight.shape[0])) - piece.start;
          const bool here = row.value() >= 0 && row.value() < piece.size.value();
          piece.frame.set(2, here ? Value(row.value()) : Value());
        },
    .numpy =
        "np.where((x == (padding_idx % len(weight) if padding_idx is not None else -1)).reshape(x.shape + (1,) * "
        "(weight.ndim - 1)), np.zeros_like(weight[:1]), weight[x])",
    .samples =
        [] {
          return Samples().add(ints(0, 5, {3, 2}), t({5, 4})).add(ints(0, 4, {6}), t({4, 3}), -1);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(embedding, &embedding_lookup_op, &embedding_grad_op, &embedding_renorm_op, &embedding_op)

}  // namespace oar
