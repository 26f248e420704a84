// Attention: values weighted by how well queries match keys.
//
// Layouts are Paddle's: query [batch, length, heads, width], key and value with their own length, and
// perhaps fewer heads. Kernels see one primitive and its derivative.
#include "oar/ops/gen/attention.h"

#include <cmath>
#include <limits>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/norm_rules.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/diagonals.h"
#include "oar/ops/gen/dropout.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/softmax.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHidden = -1e30;

// The sizes of a call; all checks are here.
struct AttentionShape {
  Dim batch, queries, heads, width, keys, key_heads, value_width;

  AttentionShape(const Tensor& query, const Tensor& key, const Tensor& value) {
    user_check(query.rank() == 4 && key.rank() == 4 && value.rank() == 4,
               ErrorKind::InvalidArgument,
               "query, key and value have shapes {}, {} and {}; each must be [batch, length, "
               "heads, width].",
               to_string(query.dims()), to_string(key.dims()), to_string(value.dims()));
    batch = query.dim(0);
    queries = query.dim(1);
    heads = query.dim(2);
    width = query.dim(3);
    keys = key.dim(1);
    key_heads = key.dim(2);
    value_width = value.dim(3);
    user_check(assume_same(key.dim(0), batch) && assume_same(value.dim(0), batch) &&
                   assume_same(value.dim(1), keys) && assume_same(value.dim(2), key_heads) &&
                   assume_same(key.dim(3), width),
               ErrorKind::InvalidArgument,
               "query of shape {}, key of shape {} and value of shape {} do not fit: batches must "
               "be equal, the widths of query and key, and the lengths and heads of key and value.",
               to_string(query.dims()), to_string(key.dims()), to_string(value.dims()));
    infer::check_dtype(key, "key", query.dtype());
    infer::check_dtype(value, "value", query.dtype());
    user_check(same(heads, key_heads) || same(floor_mod(heads, key_heads), Dim(0)),
               ErrorKind::InvalidArgument,
               "query has {} heads, which is not a multiple of the {} heads of key and value.",
               heads.str(), key_heads.str());
  }
  Shape scores() const { return {batch, heads, queries, keys}; }
  TensorMeta out(DType dtype) const { return {dtype, {batch, queries, heads, value_width}}; }
  TensorMeta lse(DType dtype) const { return {wide_type(dtype), {batch, heads, queries}}; }

  void check_mask(const Tensor& mask, const char* name) const {
    if (!mask.defined()) return;
    const Shape full = scores();
    bool fits = mask.rank() <= 4;
    for (int i = 1; fits && i <= mask.rank(); ++i)
      fits = same(mask.dim(-i), Dim(1)) || same(mask.dim(-i), full[static_cast<size_t>(4 - i)]);
    user_check(fits, ErrorKind::InvalidArgument,
               "{} has shape {}, which does not broadcast to [batch, heads, queries, keys], here "
               "{}.",
               name, to_string(mask.dims()), full.str());
    user_check(mask.dtype() == DType::Bool || is_floating(mask.dtype()), ErrorKind::InvalidType,
               "{} has dtype {}; it must be bool (True: may be seen) or a float that is added.",
               name, name_of(mask.dtype()));
  }
};

void check_keep(const AttentionShape& shape, const Tensor& keep, double dropout) {
  shape.check_mask(keep, "keep");
  user_check(!keep.defined() || keep.dtype() == DType::Bool, ErrorKind::InvalidType,
             "keep has dtype {}; it must be bool.", keep.defined() ? name_of(keep.dtype()) : "");
  user_check(dropout >= 0 && dropout <= 1, ErrorKind::InvalidArgument,
             "the dropout is {}; a probability is between 0 and 1.", dropout);
}

// ---- the op as parts -----------------------------------------------------------------------------

// [batch, length, heads, width] <-> [batch, heads, length, width].
Tensor heads_first(const Tensor& x) { return transpose(x, {0, 2, 1, 3}); }

// Each head of keys or values, with the heads first, for every query head that shares it.
Tensor spread_heads(const Tensor& x, const AttentionShape& s) {
  if (s.heads == s.key_heads) return x;
  const Dim group = floor_div(s.heads, s.key_heads), length = x.dim(2), width = x.dim(3);
  const Tensor one = reshape(x, {s.batch, s.key_heads, 1, length, width});
  return reshape(broadcast_to(one, {s.batch, s.key_heads, group, length, width}),
                 {s.batch, s.heads, length, width});
}
Tensor gather_heads(const Tensor& grad, const AttentionShape& s) {
  if (s.heads == s.key_heads) return grad;
  const Dim group = floor_div(s.heads, s.key_heads), length = grad.dim(2), width = grad.dim(3);
  return sum(reshape(grad, {s.batch, s.key_heads, group, length, width}), IntArgs{2});
}

// Scores with masked ones far below the rest, and which ones are (undefined: none). In a fully masked row all
// keys have equal weight; what causality hides is lower still and has no weight there either.
// Infinities would turn such rows into NaN.
struct Scores {
  Tensor values, hidden;
};
Scores scores_of(const Tensor& query, const Tensor& key, const Tensor& mask, double scale,
                 bool causal) {
  Tensor scores = matmul(query * scale, key, false, true);
  Tensor hidden;
  const auto hide = [&](const Tensor& more, double score) {
    const Tensor all = broadcast_to(more, scores.dims());
    hidden = hidden.defined() ? logical_or(hidden, all) : all;
    scores = where(all, literal(score), scores);
  };
  if (mask.defined() && mask.dtype() == DType::Bool) {
    hide(logical_not(mask), kHidden);
  } else if (mask.defined()) {
    scores = scores + cast(mask, scores.dtype());
    hide(less_equal(scores, literal(kHidden)), kHidden);
  }
  if (causal)
    hide(logical_not(cast(tril(ones({query.dim(2), key.dim(2)}, DType::Float32)), DType::Bool)),
         2 * kHidden);
  return {scores, hidden};
}

Tensor kept(const Tensor& weights, const Tensor& keep, double dropout) {
  if (!keep.defined()) return weights;
  return where(keep, weights * (dropout < 1 ? 1 / (1 - dropout) : 1.0), literal(0.0));
}

Made attention_parts(const args::attention& a) {
  const AttentionShape s(a.query, a.key, a.value);
  const Tensor query = heads_first(widened(a.query));
  const Tensor key = spread_heads(heads_first(widened(a.key)), s);
  const Tensor value = spread_heads(heads_first(widened(a.value)), s);
  const auto [scores, hidden] = scores_of(query, key, a.mask, a.scale, a.causal);
  Tensor lse = reshape(logsumexp(scores, IntArgs{-1}, true), {s.batch, s.heads, s.queries});
  if (hidden.defined()) lse = where(all(hidden, IntArgs{-1}), literal(-kInfinity), lse);
  const Tensor out = matmul(kept(softmax(scores, -1), a.keep, a.dropout), value);
  return {narrowed(heads_first(out), a.query.dtype()), lse};
}

Made attention_grad_parts(const args::attention_grad& a) {
  const AttentionShape s(a.query, a.key, a.value);
  const Shape column{s.batch, s.heads, s.queries, 1};
  const Tensor query = heads_first(widened(a.query)), grad = heads_first(widened(a.grad));
  const Tensor key = spread_heads(heads_first(widened(a.key)), s);
  const Tensor value = spread_heads(heads_first(widened(a.value)), s);
  const auto [scores, hidden] = scores_of(query, key, a.mask, a.scale, a.causal);
  // A logarithm so large that its rounding matters, or infinite, cannot be used as a divisor.
  const Tensor known = less_than(abs(a.lse), literal(1024.0));
  const Tensor lse = zero_unless(known, a.lse);
  const Tensor weights =
      where(reshape(known, column), exp(scores - reshape(lse, column)), softmax(scores, -1));
  const Tensor level = sum(grad * heads_first(widened(a.out)), IntArgs{-1}, std::nullopt, true) -
                       reshape(a.grad_lse, column);
  const Tensor of_weights = kept(matmul(grad, value, false, true), a.keep, a.dropout);
  Tensor of_scores = weights * (of_weights - level);
  if (hidden.defined()) of_scores = zero_where(hidden, of_scores);
  const auto back = [&](const Tensor& t, const Tensor& like) {
    return narrowed(heads_first(t), like.dtype());
  };
  return {back(matmul(of_scores, key) * a.scale, a.query),
          back(gather_heads(matmul(of_scores, query * a.scale, true), s), a.key),
          back(gather_heads(matmul(kept(weights, a.keep, a.dropout), grad, true), s), a.value),
          a.mask_grad ? narrowed(sum_to(of_scores, a.mask.dims()), a.mask.dtype())
                      : zeros({0}, a.query.dtype())};
}

// ---- batching: more batches ------------------------------------------------------------------

Tensor folded(const Tensor& t) {
  Shape shape{t.dim(0) * t.dim(1)};
  for (Dim d : t.dims().subspan(2)) shape.push_back(d);
  return reshape(t, shape);
}
Tensor unfolded(const Tensor& t, Dim size) {
  Shape shape{size, floor_div(t.dim(0), size)};
  for (Dim d : t.dims().subspan(1)) shape.push_back(d);
  return reshape(t, shape);
}
// A mask whose axis of batches, if it has one, agrees with the folded one.
Tensor folded_mask(const BatchCall& c, size_t i, Dim batch) {
  const Tensor& mask = c.args[i].as_tensor();
  if (!mask.defined() || (!c.batched[i] && (mask.rank() < 4 || mask.dim(0) == Dim(1)))) return mask;
  const Tensor full = with_batch(c, i, 4);
  return folded(broadcast_to(full, {c.size, batch, full.dim(2), full.dim(3), full.dim(4)}));
}

Made batch_attention(const BatchCall& c) {
  const args::attention a(c.args);
  const Tensor query = with_batch(c, 0);
  const auto [out, lse] = attention(folded(query), folded(with_batch(c, 1)),
                                    folded(with_batch(c, 2)), folded_mask(c, 3, query.dim(1)),
                                    folded_mask(c, 4, query.dim(1)), a.scale, a.dropout, a.causal);
  return {unfolded(out, c.size), unfolded(lse, c.size)};
}

// ---- records ------------------------------------------------------------------------------------

// ---- Sharding: batches, groups of heads, queries (unless causality counts them) and the width of values
// are cut. A letter per axis; g are the heads of keys, which those of queries are multiples of.
class AttentionFactors {
 public:
  AttentionFactors(ShardPlan& plan, const AttentionShape& s, bool causal)
      : plan_(plan), per_group_(floor_div(s.heads, s.key_heads)), cut_queries_(!causal) {
    batch_ = plan.add(s.batch, Join::Sum);
    heads_ = plan.add(s.key_heads, Join::Sum);
    queries_ = plan.add(s.queries, Join::Sum);
    value_width = static_cast<size_t>(plan.add(s.value_width, Join::Sum));
  }

  void put(size_t parameter, std::string_view letters) const {
    if (PlanTensor* t = plan_.operand(parameter)) place(*t, letters);
  }
  void put_result(size_t result, std::string_view letters) const {
    place(plan_.results[result], letters);
  }

  size_t value_width;
  bool cut_value_width = true;

 private:
  // A mask may lack leading axes.
  void place(PlanTensor& t, std::string_view letters) const {
    letters.remove_prefix(letters.size() - t.axes.size());
    for (size_t i = 0; i < letters.size(); ++i) {
      if (letters[i] == 'b') plan_.put(t, i, batch_);
      if (letters[i] == 'g') plan_.put(t, i, heads_);
      if (letters[i] == 'h') plan_.put(t, i, heads_, per_group_);
      if (letters[i] == 'q' && cut_queries_) plan_.put(t, i, queries_);
      if (letters[i] == 'e' && cut_value_width) plan_.put(t, i, static_cast<int>(value_width));
    }
  }

  ShardPlan& plan_;
  const Dim per_group_;
  const bool cut_queries_;
  int batch_, heads_, queries_;
};

const OpDef attention_op = {
    .schema =
        "attention(Tensor query, Tensor key, Tensor value, Tensor? mask = None, Tensor? keep = "
        "None, float scale = 1.0, float dropout = 0.0, bool causal = False) -> (Tensor out, Tensor "
        "lse)",
    .brief =
        "softmax(scale * query keyᵀ + mask) value for each head, and the logarithm of the divisor of the "
        "softmax. Weights are dropped where `keep` is False, the others divided by 1 - "
        "dropout. A row whose keys are all hidden by the mask is their even mean.",
    .infer = [](const args::attention& a) -> Metas {
      const AttentionShape s(a.query, a.key, a.value);
      s.check_mask(a.mask, "mask");
      check_keep(s, a.keep, a.dropout);
      return {s.out(a.query.dtype()), s.lse(a.query.dtype())};
    },
    .decompose = attention_parts,
    .vjp = [](const vjp::attention& v) -> Grads {
      const bool of_mask = v.mask.defined() && v.mask.dtype() != DType::Bool && v.needs(3);
      const auto [query, key, value, mask] =
          attention_grad(v.query, v.key, v.value, v.mask, v.keep, v.out, v.lse, v.grad_out,
                         v.grad_lse, v.scale, v.dropout, v.causal, of_mask);
      return {query, key, value, of_mask ? mask : Tensor(), Tensor()};
    },
    .saves = "query key value mask keep out lse",
    .batch = batch_attention,
    .plan =
        [](const PlanCall& c) {
          const args::attention a(c.args);
          const AttentionFactors f(c.plan, AttentionShape(a.query, a.key, a.value), a.causal);
          f.put(0, "bqhd"), f.put(1, "bkgd"), f.put(2, "bkge"), f.put(3, "bhqk"), f.put(4, "bhqk");
          f.put_result(0, "bqhe"), f.put_result(1, "bhq");
          c.plan.factors[f.value_width].joins = {Join::Concat, Join::Same};
        },
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "query key value",
    .amp = Amp::Low,
    .numpy =
        "(lambda g, inf: (lambda s: (lambda s: (lambda m: (lambda e: (lambda l: "
        "(np.einsum('bhqk,bkhe->bqhe', np.where(l == 0, (lambda c: c / c.sum(-1, keepdims=True))("
        "np.tri(*s.shape[2:]) if causal else np.ones(s.shape[2:])), e / np.where(l == 0, 1, l)) * (1 if "
        "keep is None else keep / (1 - dropout)), np.repeat(value, g, 2)), (np.log(l) + m)[..., "
        "0].astype('float64')))("
        "e.sum(-1, keepdims=True)))(np.exp(s - m)))(np.where(np.isinf(s).all(-1), 0, np.max(s, "
        "-1, initial=-inf))[..., None]))(np.where(np.tri(*s.shape[2:], dtype=bool) if causal else "
        "True, s, -inf)))((lambda s: s if mask is None else np.where(mask, s, -inf) if mask.dtype "
        "== bool else s + mask)(np.einsum('bqhd,bkhd->bhqk', query, np.repeat(key, g, 2)) * "
        "scale)))(query.shape[2] // key.shape[2], np.inf)",
    .samples =
        [] {
          const auto none = std::nullopt;
          return Samples()
              .add(t({2, 3, 2, 4}), t({2, 5, 2, 4}), t({2, 5, 2, 3}), none, none, 0.5)
              .add(t({1, 4, 2, 3}), t({1, 4, 1, 3}), t({1, 4, 1, 2}), none, none, 0.7, 0.0, true)
              .add(t({2, 3, 4, 2}), t({2, 2, 2, 2}), t({2, 2, 2, 2}), t({2, 1, 3, 2}), none, 0.4)
              .add(t({2, 2, 2, 3}), t({2, 3, 2, 3}), t({2, 3, 2, 3}), bools({2, 3}), none, 0.5)
              .add(t({1, 2, 2, 2}), t({1, 3, 2, 2}), t({1, 3, 2, 2}), t({3}), bools({1, 2, 2, 3}),
                   1.0, 0.25, true)
              .add(t({0, 2, 1, 3}), t({0, 2, 1, 3}), t({0, 2, 1, 3}))
              .add(t({2, 0, 1, 3}), t({2, 2, 1, 3}), t({2, 2, 1, 3}));
        },
};

const OpDef attention_grad_op = {
    .schema =
        "attention_grad(Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor? keep, "
        "Tensor out, Tensor lse, Tensor grad, Tensor grad_lse, float scale, float dropout, bool "
        "causal, bool mask_grad = False) -> (Tensor grad_query, Tensor grad_key, Tensor "
        "grad_value, Tensor grad_mask)",
    .brief = "The derivative of attention. Without `mask_grad` the last result is empty.",
    .infer = [](const args::attention_grad& a) -> Metas {
      const AttentionShape s(a.query, a.key, a.value);
      s.check_mask(a.mask, "mask");
      check_keep(s, a.keep, a.dropout);
      user_check(!a.mask_grad || (a.mask.defined() && a.mask.dtype() != DType::Bool),
                 ErrorKind::InvalidArgument, "mask_grad needs a mask of floats.");
      const DType dtype = a.query.dtype();
      infer::check_type(a.out, "out", s.out(dtype));
      infer::check_type(a.grad, "grad", s.out(dtype));
      check_statistic(a.lse, "lse", s.lse(dtype).shape, dtype);
      check_statistic(a.grad_lse, "grad_lse", s.lse(dtype).shape, dtype);
      const TensorMeta none{dtype, Shape{0}};
      return {infer::like(a.query), infer::like(a.key), infer::like(a.value),
              a.mask_grad ? infer::like(a.mask) : none};
    },
    .decompose = attention_grad_parts,
    .plan =
        [](const PlanCall& c) {
          const args::attention_grad a(c.args);
          AttentionFactors f(c.plan, AttentionShape(a.query, a.key, a.value), a.causal);
          f.cut_value_width = false;
          f.put(0, "bqhd"), f.put(1, "bkgd"), f.put(2, "bkge"), f.put(3, "bhqk"), f.put(4, "bhqk");
          f.put(5, "bqhe"), f.put(6, "bhq"), f.put(7, "bqhe"), f.put(8, "bhq");
          f.put_result(0, "bqhd"), f.put_result(1, "bkgd"), f.put_result(2, "bkge");
          if (a.mask_grad) f.put_result(3, "bhqk");
        },
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "query key value out grad",
    .numpy =
        "(lambda g, inf, join: (lambda kk, vv: (lambda s: (lambda p, d: (lambda ds: "
        "(np.einsum('bhqk,bkhd->bqhd', ds, kk) * scale, join(np.einsum('bhqk,bqhd->bkhd', ds, "
        "query) * scale, g), join(np.einsum('bhqk,bqhe->bkhe', p * d, grad), g), "
        "(lambda m: np.sum(ds, tuple(i for i in range(4) if m[i] == 1), "
        "keepdims=True).reshape(mask.shape))((1,) * (4 - mask.ndim) + mask.shape) if mask_grad "
        "else np.zeros(0)))(p * (np.einsum('bqhe,bkhe->bhqk', grad, vv) * d - "
        "np.einsum('bqhe,bqhe->bhq', grad, out)[..., None] + grad_lse[..., None])))(np.exp(s - "
        "lse[..., None]), 1 if keep is None else keep / (1 - dropout)))(np.where(np.tri("
        "query.shape[1], key.shape[1], dtype=bool) if causal else True, (lambda s: s if mask is "
        "None else np.where(mask, s, -inf) if mask.dtype == bool else s + mask)("
        "np.einsum('bqhd,bkhd->bhqk', query, kk) * scale), -inf)))(np.repeat(key, g, 2), "
        "np.repeat(value, g, 2)))(query.shape[2] // key.shape[2], np.inf, lambda x, g: "
        "x.reshape(x.shape[:2] + (x.shape[2] // g, g, x.shape[3])).sum(3))",
    .samples =
        [] {
          const auto none = std::nullopt;
          return Samples()
              .add(t({2, 3, 2, 4}), t({2, 2, 2, 4}), t({2, 2, 2, 3}), none, none, t({2, 3, 2, 3}),
                   positive({2, 2, 3}), t({2, 3, 2, 3}), t({2, 2, 3}), 0.5, 0.0, false)
              .add(t({1, 3, 2, 2}), t({1, 3, 1, 2}), t({1, 3, 1, 2}), t({1, 2, 3, 3}), none,
                   t({1, 3, 2, 2}), positive({1, 2, 3}), t({1, 3, 2, 2}), t({1, 2, 3}), 0.7, 0.0,
                   true, true)
              .add(t({1, 2, 2, 2}), t({1, 3, 2, 2}), t({1, 3, 2, 2}), bools({2, 3}),
                   bools({1, 2, 2, 3}), t({1, 2, 2, 2}), positive({1, 2, 2}), t({1, 2, 2, 2}),
                   t({1, 2, 2}), 1.0, 0.25, false)
              .add(t({0, 2, 1, 3}), t({0, 2, 1, 3}), t({0, 2, 1, 3}), none, none, t({0, 2, 1, 3}),
                   t({0, 1, 2}), t({0, 2, 1, 3}), t({0, 1, 2}), 1.0, 0.0, false);
        },
};

// One call of attention with Paddle's arguments; a query of rank 3 is a batch of one.
Tensor attended(const args::scaled_dot_product_attention& a) {
  const bool batched = a.query.rank() != 3;
  const auto in = [&](const Tensor& x) { return batched ? x : unsqueeze(x, {0}); };
  Tensor query = in(a.query);
  const Tensor key = in(a.key), value = in(a.value);
  const AttentionShape s(query, key, value);
  user_check(a.enable_gqa || same(s.heads, s.key_heads), ErrorKind::InvalidArgument,
             "query has {} heads and key {}; with enable_gqa=False they must be equal.",
             s.heads.str(), s.key_heads.str());
  user_check(a.dropout_p >= 0 && a.dropout_p <= 1, ErrorKind::InvalidArgument,
             "dropout_p is {}; a probability is between 0 and 1.", a.dropout_p);
  // An open width is known when the program runs: then the query is scaled beforehand.
  const bool open = !a.scale && s.width.is_symbolic();
  const double scale = a.scale ? *a.scale
                       : open  ? 1.0
                               : 1 / std::sqrt(std::max(s.width.value(), int64_t{1}));
  if (open) query = query * rsqrt(count_of({{s.width}}, query.dtype()));
  // [batch, queries, keys] is the same for all heads.
  const Tensor mask = a.attn_mask.defined() && a.attn_mask.rank() == 3 && batched
                          ? unsqueeze(a.attn_mask, {1})
                          : a.attn_mask;
  const bool drops = a.training && a.dropout_p > 0;
  const Tensor keep = drops ? dropout_mask(s.scores(), a.dropout_p, 1.0, DType::Bool) : Tensor();
  const Tensor out = std::get<0>(
      attention(query, key, value, mask, keep, scale, drops ? a.dropout_p : 0.0, a.is_causal));
  return batched ? out : squeeze(out, IntArgs{0});
}

const OpDef scaled_dot_product_attention_op = {
    .schema =
        "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask = "
        "None, float dropout_p = 0.0, bool is_causal = False, bool training = True, str? backend "
        "= None, float? scale = None, bool enable_gqa = True) -> Tensor",
    .brief =
        "softmax(query keyᵀ / sqrt(width) + attn_mask) value. Shapes are [batch, length, heads, "
        "width]; a bool mask is True where a key may be seen. Causal: query i sees the keys up to "
        "i. Weights are dropped with probability dropout_p in training. A multiple of the heads "
        "of key and value may share each of them. There is one way to compute it: backend is "
        "there for programs that name one.",
    .decompose = [](const args::scaled_dot_product_attention& a) -> Made { return attended(a); },
    .traits = Trait::Promote | Trait::Random,
    .dtypes = "float",
    .promotes = "query key value",
    .amp = Amp::Low,
    .samples =
        [] {
          const auto none = std::nullopt;
          return Samples()
              .add(t({2, 3, 2, 4}), t({2, 5, 2, 4}), t({2, 5, 2, 4}))
              .add(t({2, 3, 4, 4}), t({2, 3, 2, 4}), t({2, 3, 2, 4}), none, 0.0, true)
              .add(t({2, 3, 2, 4}), t({2, 5, 2, 4}), t({2, 5, 2, 4}), t({2, 3, 5}), 0.0, false,
                   true, none, 0.3)
              .add(t({2, 3, 2, 4}), t({2, 5, 2, 4}), t({2, 5, 2, 4}), bools({3, 5}), 0.5)
              .add(t({3, 2, 4}), t({5, 2, 4}), t({5, 2, 4}));
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(attention, &attention_op, &attention_grad_op, &scaled_dot_product_attention_op)

}  // namespace oar
