// Attention.
#include <cmath>

#include "oar/interop/keras/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

constexpr double kHidden = -1e9;  // what Keras adds to the scores of steps that do not count

// An argument by its name, or by its place among the tensors.
Item argument(const Call& c, size_t place, std::string_view name) {
  if (const Given* given = c.named(name); given && !given->items.empty()) return given->items[0];
  return place < c.count() ? c.item(place) : Item{};
}

bool flag_of(const Call& c, std::string_view name) {
  const Given* given = c.named(name);
  return given && given->value.is_flag() && given->value.flag();
}

void add_to(Tensor& all, const Tensor& mask) {
  if (!mask.defined()) return;
  const Tensor counts = cast(mask, DType::Bool);
  all = all.defined() ? logical_and(all, counts) : counts;
}

// Not the future: [1, queries, keys].
Tensor causal(const Tensor& query, const Tensor& key) {
  const int64_t queries = query.dim(1).value(), keys = key.dim(1).value();
  const Tensor row = reshape(range(0, queries, 1, DType::Int64), {queries, 1}),
               column = reshape(range(0, keys, 1, DType::Int64), {1, keys});
  return unsqueeze(greater_equal(row, column), {0});
}

Tensor weights_of(const Tensor& scores, const Tensor& counts) {
  if (!counts.defined()) return softmax(scores, -1);
  return softmax(where(counts, scores, scores + kHidden), -1);
}

// ---- several heads -----------------------------------------------------------------------------

// [batch, steps, features] by [features, heads, size]: [batch, heads, steps, size].
Tensor heads_of(const Call& c, const Tensor& x, const std::vector<std::string_view>& names) {
  const Call part = c.part(names);
  const Tensor kernel = part.weight("kernel");
  if (kernel.rank() != 3 || x.rank() != 3) c.refuse("it attends over several axes");
  const Dim heads = kernel.dim(1), size = kernel.dim(2);
  Tensor y = matmul(x, reshape(kernel, {kernel.dim(0), heads * size}));
  if (c.flag("use_bias", true)) y = y + reshape(part.weight("bias"), {-1});
  return transpose(reshape(y, {x.dim(0), x.dim(1), heads, size}), {0, 2, 1, 3});
}

Tensor joined_heads(const Call& c, const Tensor& x) {
  const Call part = c.part(c.layer.weights.by_place()
                               ? std::vector<std::string_view>{"output_dense", "_output_dense"}
                               : std::vector<std::string_view>{"attention_output"});
  const Tensor kernel = part.weight("kernel");
  if (kernel.rank() != 3) c.refuse("its results have several axes");
  const Tensor flat =
      reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
  const Tensor y = matmul(flat, reshape(kernel, {kernel.dim(0) * kernel.dim(1), kernel.dim(2)}));
  return c.flag("use_bias", true) ? y + part.weight("bias") : y;
}

Items multi_head(const Call& c) {
  for (const char* unusual : {"use_gate", "sliding_window"})
    if (const JsonValue* found = c.find(unusual); found && !(found->is_flag() && !found->flag()))
      c.refuse(format("it has '{}'", unusual));
  const Item query = argument(c, 0, "query"), value = argument(c, 1, "value"),
             given_key = argument(c, 2, "key");
  if (!query.tensor.defined() || !value.tensor.defined()) c.refuse("its inputs are missing");
  const Item& key = given_key.tensor.defined() ? given_key : value;
  const bool placed = c.layer.weights.by_place();
  const auto names = [&](std::string_view attribute, std::string_view own, std::string_view name) {
    return placed ? std::vector<std::string_view>{attribute, own}
                  : std::vector<std::string_view>{name};
  };
  const Tensor q = heads_of(c, query.tensor, names("query_dense", "_query_dense", "query"));
  Tensor k = heads_of(c, key.tensor, names("key_dense", "_key_dense", "key"));
  Tensor v = heads_of(c, value.tensor, names("value_dense", "_value_dense", "value"));
  const int64_t heads = q.dim(1).value(), own = k.dim(1).value();
  if (own < 1 || heads % own != 0) c.refuse("its heads do not fit each other");
  if (heads != own) {
    k = repeat_interleave(k, heads / own, 1);
    v = repeat_interleave(v, heads / own, 1);
  }
  Tensor counts;  // [batch, queries, keys]
  add_to(counts, argument(c, 3, "attention_mask").tensor);
  if (counts.defined() && counts.rank() == 2) counts = unsqueeze(counts, {0});
  const auto mask_of = [&](const Item& item, std::string_view name) {
    const Item given = argument(c, ~size_t{0}, name);
    return given.tensor.defined() ? given.tensor : item.mask;
  };
  if (const Tensor m = mask_of(query, "query_mask"); m.defined()) add_to(counts, unsqueeze(m, {2}));
  if (const Tensor m = mask_of(value, "value_mask"); m.defined()) add_to(counts, unsqueeze(m, {1}));
  if (const Tensor m = mask_of(given_key, "key_mask"); m.defined())
    add_to(counts, unsqueeze(m, {1}));
  if (flag_of(c, "use_causal_mask")) add_to(counts, causal(query.tensor, key.tensor));
  if (counts.defined() && counts.rank() == 3) counts = unsqueeze(counts, {1});
  const double scale = 1 / std::sqrt(static_cast<double>(q.dim(3).value()));
  const Tensor weights = weights_of(matmul(q * scale, k, false, true), counts);
  Items made{Item(joined_heads(c, matmul(weights, v)), query.mask)};
  if (flag_of(c, "return_attention_scores")) made.emplace_back(weights);
  return made;
}

// ---- one head, without projections -------------------------------------------------------------

Items attended(const Call& c, Tensor (*score)(const Call&, const Tensor&, const Tensor&)) {
  if (c.count() < 2) c.refuse("it needs a query and a value");
  const Item &query = c.item(0), &value = c.item(1), &key = c.count() > 2 ? c.item(2) : value;
  Tensor counts, query_mask = query.mask;
  const Given* masks = c.named("mask");
  const bool given = masks && masks->items.size() > 1;
  if (given) query_mask = masks->items[0].tensor;
  const Tensor value_mask = given ? masks->items[1].tensor : value.mask;
  if (value_mask.defined()) add_to(counts, unsqueeze(value_mask, {1}));
  if (flag_of(c, "use_causal_mask") || c.flag("causal", false))
    add_to(counts, causal(query.tensor, key.tensor));
  const Tensor weights = weights_of(score(c, query.tensor, key.tensor), counts);
  Tensor y = matmul(weights, value.tensor);
  if (query_mask.defined()) y = y * unsqueeze(cast(query_mask, y.dtype()), {-1});
  Items made{Item(y, query_mask)};
  if (flag_of(c, "return_attention_scores")) made.emplace_back(weights);
  return made;
}

// Each query beside each key: [batch, queries, keys, size].
Tensor sums_of(const Tensor& query, const Tensor& key) {
  return tanh(unsqueeze(query, {2}) + unsqueeze(key, {1}));
}

Tensor product_score(const Call& c, const Tensor& query, const Tensor& key) {
  if (c.text("score_mode", "dot") == "concat") {
    const Tensor scale = c.flag("use_scale", false) ? c.weight("scale") : Tensor{};
    const Tensor weight = c.weight("concat_score_weight");
    const Tensor both = unsqueeze(query, {2}) + unsqueeze(key, {1});
    return weight * sum(tanh(scale.defined() ? scale * both : both), IntArgs({-1}));
  }
  const Tensor scores = matmul(query, key, false, true);
  return c.flag("use_scale", false) ? scores * c.weight("scale") : scores;
}
Tensor sum_score(const Call& c, const Tensor& query, const Tensor& key) {
  const Tensor both = sums_of(query, key);
  return sum(c.flag("use_scale", true) ? both * c.weight("scale") : both, IntArgs({-1}));
}

Items attention(const Call& c) { return attended(c, product_score); }
Items additive_attention(const Call& c) { return attended(c, sum_score); }

constexpr Converter kConverters[] = {
    {"MultiHeadAttention", multi_head, Converter::Own},
    {"GroupedQueryAttention", multi_head, Converter::Own},
    {"GroupQueryAttention", multi_head, Converter::Own},
    {"Attention", attention, Converter::Own},
    {"AdditiveAttention", additive_attention, Converter::Own},
};

}  // namespace

std::span<const Converter> attention_converters() { return kConverters; }

}  // namespace oar::keras
