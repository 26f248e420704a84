// Attention in the operators that ONNX Runtime adds to the standard (com.microsoft).
#include "oar/interop/onnx/heads.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

Tensor hidden_where(const Call& c, const Tensor& hidden, DType dtype) {
  return cast(hidden, dtype) * c.number("mask_filter_value", -10000.0);
}

// A mask of [batch, keys], [batch, queries, keys] or [batch, 1, queries, keys], whose zeros hide keys; or, of each batch, the number of
// its keys, which [2 * batch] continues with the first of them.
Tensor bias_of_mask(const Call& c, const Tensor& mask, Dim batch, Dim keys, DType dtype) {
  if (mask.rank() == 1) {
    const Tensor key = reshape(counted(keys), {1, 1, 1, keys});
    const Tensor each = reshape(cast(mask, DType::Float32), {-1, 1, 1, 1});
    if (mask.dim(0) == batch) return hidden_where(c, greater_equal(key, each), dtype);
    if (!(mask.dim(0) == batch * 2)) c.refuse("its mask has neither one nor two numbers by batch");
    const std::vector<Tensor> ends = chunk(each, 2, 0);
    return hidden_where(c, logical_or(greater_equal(key, ends[0]), less_than(key, ends[1])), dtype);
  }
  const Tensor hidden = hidden_where(c, equal(mask, zeros_like(mask)), dtype);
  return mask.rank() == 2   ? unsqueeze(hidden, {1, 2})
         : mask.rank() == 3 ? unsqueeze(hidden, {1})
                            : hidden;
}

double scale_of(const Call& c, const Tensor& query) {
  const double given = c.number("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(query.dim(3).value()));
}

// ---- one product for query, key and value --------------------------------------------------------

struct Packed {
  size_t mask, past;
  Tensor bias;  // is added to the scores
};
Values attended_packed(const Call& c, const Tensor& all, const Packed& places) {
  const int64_t heads = c.integer("num_heads", 0);
  if (heads <= 0) c.refuse("it does not say how many heads it has");
  if (c.flag("do_rotary") || c.flag("past_present_share_buffer"))
    c.refuse("it has rotations, or writes its past states");
  std::vector<int64_t> sizes = c.list("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, all.dim(2).value() / 3);
  if (sizes.size() != 3) c.refuse("qkv_hidden_sizes has other than three sizes");
  const std::vector<Tensor> parts = split_sections(all, sizes, -1);
  AttentionCall a{.query = split_heads(parts[0], heads),
                  .key = split_heads(parts[1], heads),
                  .value = split_heads(parts[2], heads),
                  .bias = places.bias};
  if (c.has(places.past)) {
    const std::vector<Tensor> past = chunk(c.tensor(places.past), 2, 0);
    a.offset = past[0].dim(3);
    a.key = concat({squeeze(past[0], IntArgs({0})), a.key}, 2);
    a.value = concat({squeeze(past[1], IntArgs({0})), a.value}, 2);
  }
  Item present;
  if (c.node.outputs.size() > 1) present = stack({a.key, a.value}, 0);
  if (c.has(places.mask)) {
    const Tensor hidden =
        bias_of_mask(c, c.tensor(places.mask), all.dim(0), a.key.dim(2), all.dtype());
    a.bias = a.bias.defined() ? a.bias + hidden : hidden;
  }
  a.causal = c.flag("unidirectional");
  a.scale = scale_of(c, a.query);
  return {join_heads(attend(std::move(a)).out), present};
}
Values packed_attention(const Call& c) {
  Tensor all = matmul(c.tensor(0), c.tensor(1));
  if (c.has(2)) all = all + c.tensor(2);
  return attended_packed(c, all, {3, 4, c.maybe(5)});
}
Values quantised_attention(const Call& c) {
  const auto real = [&](size_t i, size_t scale, size_t point) {
    const Tensor x = cast(c.tensor(i), DType::Float32);
    return (c.has(point) ? x - cast(c.tensor(point), DType::Float32) : x) *
           cast(c.tensor(scale), DType::Float32);
  };
  const Tensor all = matmul(real(0, 3, 6), real(1, 4, 7)) + cast(c.tensor(2), DType::Float32);
  return attended_packed(c, cast(all, c.tensor(3).dtype()), {5, 8, {}});
}

// ---- several products ----------------------------------------------------------------------------

// Query, key and value [batch, heads, steps, size], from tensors of their own or from one that has them beside each other.
struct Three {
  Tensor query, key, value;
};
Three three_of(const Call& c, int64_t heads) {
  const auto unpacked = [](const Tensor& packed) {  // [batch, steps, heads, parts, size]
    std::vector<Tensor> parts;
    for (const Tensor& part : chunk(packed, packed.dim(3).value(), 3))
      parts.push_back(transpose(squeeze(part, IntArgs({3})), {0, 2, 1, 3}));
    return parts;
  };
  if (!c.has(1)) {
    if (c.tensor(0).rank() != 5) c.refuse("it has no key");
    const std::vector<Tensor> all = unpacked(c.tensor(0));
    return {all.at(0), all.at(1), all.at(2)};
  }
  Tensor bias[3];
  if (c.has(3)) {
    const int64_t size = c.tensor(0).dim(2).value(), all = c.tensor(3).dim(0).value();
    const std::vector<Tensor> parts = split_sections(c.tensor(3), {size, size, all - 2 * size}, 0);
    std::copy(parts.begin(), parts.end(), bias);
  }
  const auto split = [&](const Tensor& x, const Tensor& more) {
    return x.rank() == 4 ? x : split_heads(more.defined() ? x + more : x, heads);
  };
  const Tensor query = split(c.tensor(0), bias[0]);
  if (c.tensor(1).rank() == 5) {
    const std::vector<Tensor> both = unpacked(c.tensor(1));
    return {query, both.at(0), both.at(1)};
  }
  return {query, split(c.tensor(1), bias[1]), split(c.tensor(2), bias[2])};
}

Values multi_head(const Call& c) {
  const int64_t heads = c.integer("num_heads", 0);
  if (heads <= 0) c.refuse("it does not say how many heads it has");
  if (c.has(8) || c.has(9)) c.refuse("it shares the buffer of its past states");
  const Three three = three_of(c, heads);
  AttentionCall a{.query = three.query, .key = three.key, .value = three.value, .bias = c.maybe(5)};
  if (c.has(6)) {
    a.offset = c.tensor(6).dim(2);
    a.key = concat({c.tensor(6), a.key}, 2);
    a.value = concat({c.tensor(7), a.value}, 2);
  }
  const Tensor key = a.key, value = a.value;
  if (c.has(4)) {
    const Tensor hidden =
        bias_of_mask(c, c.tensor(4), a.query.dim(0), a.key.dim(2), a.query.dtype());
    a.bias = a.bias.defined() ? a.bias + hidden : hidden;
  }
  a.causal = c.flag("unidirectional");
  a.scale = scale_of(c, a.query);
  const Attended made = attend(std::move(a));
  return {join_heads(made.out), key, value, made.weights};
}

Values rotary(const Call& c) {
  const Tensor &x = c.tensor(0), &place = c.tensor(1), &cos = c.tensor(2);
  const bool flat = x.rank() == 3;
  const int64_t rotated_size = c.integer("rotary_embedding_dim", 0), size = 2 * cos.dim(1).value();
  const int64_t heads = c.integer("num_heads", 0);
  if (flat && rotated_size > 0 && heads == 0) c.refuse("it does not say how many heads it has");
  const Dim count = heads > 0 ? Dim(heads) : flat ? floor_div(x.dim(2), size) : x.dim(1);
  const Tensor heads_last =
      flat ? reshape(x, {x.dim(0), x.dim(1), count, floor_div(x.dim(2), count)})
           : transpose(x, {0, 2, 1, 3});
  const Dim steps = heads_last.dim(1);
  Tensor places = cast(place, DType::Int64);
  if (place.numel() == Dim(1))  // of the first step
    places = reshape(places, {1, 1}) + reshape(cast(counted(steps), DType::Int64), {1, steps});
  const auto of = [&](size_t i) {
    return reshape(index_select(c.tensor(i), reshape(places, {-1}), 0),
                   {places.dim(0), steps, cos.dim(1)});
  };
  const Tensor made = rotated(heads_last, of(2), of(3), c.flag("interleaved"));
  return {flat ? reshape(made, x.shape()) : transpose(made, {0, 2, 1, 3})};
}

// ---- fewer heads of keys and values --------------------------------------------------------------

// Where the rows of this call begin in the cache, for each batch: [batch, 1].
Tensor rows_before(const Call& c, Dim steps) {
  const Tensor total = reshape(cast(c.tensor(5), DType::Int64), {-1, 1}) + 1;
  return maximum(total - product_of({steps}, DType::Int64), zeros({}, DType::Int64));
}

// The cache with the new rows after those that each batch has, and zeros after these.
Tensor cached(const Tensor& past, const Tensor& fresh, const Tensor& before, Dim size) {
  const Dim old = past.dim(2), batch = fresh.dim(0);
  if (old == Dim(0) && size == fresh.dim(2)) return fresh;
  const Tensor all = concat({past, fresh}, 2);
  const Tensor at = reshape(cast(counted(size), DType::Int64), {1, size});
  const Tensor last = product_of({all.dim(2)}, DType::Int64) - 1;
  const Tensor moved = where(less_than(at, before), at + zeros_like(before),
                             at - before + product_of({old}, DType::Int64));
  const Tensor place = reshape(minimum(moved, last), {batch, Dim(1), size, Dim(1)});
  Shape shape = all.shape();
  shape[2] = size;
  const Tensor made = take_along_axis(all, broadcast_to(place, shape), 2, false);
  const Tensor end = before + product_of({fresh.dim(2)}, DType::Int64);
  const Tensor holds = reshape(less_than(at, end), {batch, Dim(1), size, Dim(1)});
  return where(holds, made, zeros({}, made.dtype()));
}

struct Grouped {
  Tensor query, key, value;  // [batch, steps, heads, size]
};
Grouped grouped_of(const Call& c, int64_t heads, int64_t own) {
  const auto split = [](const Tensor& x, int64_t count) {
    return reshape(x, {x.dim(0), x.dim(1), Dim(count), floor_div(x.dim(2), count)});
  };
  if (c.has(1))
    return {split(c.tensor(0), heads), split(c.tensor(1), own), split(c.tensor(2), own)};
  const int64_t size = c.tensor(0).dim(2).value() / (heads + 2 * own);
  const std::vector<Tensor> parts =
      split_sections(c.tensor(0), {heads * size, own * size, own * size}, -1);
  return {split(parts[0], heads), split(parts[1], own), split(parts[2], own)};
}

void check_grouped(const Call& c, int64_t heads, int64_t own) {
  if (heads <= 0 || own <= 0 || heads % own != 0)
    c.refuse("its heads cannot share those of keys and values");
  if (c.integer("qk_output", 0) != 0 || c.flag("sliding_window_cache"))
    c.refuse("it gives its scores, or keeps a window of its cache only");
  if (c.has(12) || c.has(13)) c.refuse("its cache is quantised");
  if (!c.has(5) || !c.has(6)) c.refuse("it does not say how long its sequences are");
}

Values grouped_query(const Call& c) {
  const int64_t heads = c.integer("num_heads", 0), own = c.integer("kv_num_heads", 0);
  check_grouped(c, heads, own);
  Grouped g = grouped_of(c, heads, own);
  const Dim steps = g.query.dim(1);
  const Tensor before = rows_before(c, steps);
  if (c.has(14)) {
    const double epsilon = c.number("qk_norm_epsilon", 1e-6);
    g.query = rms_norm(g.query, Shape{g.query.dim(3)}, c.tensor(14), epsilon);
    g.key = rms_norm(g.key, Shape{g.key.dim(3)}, c.tensor(15), epsilon);
  }
  if (c.flag("do_rotary")) {
    const Tensor places = c.has(9)
                              ? cast(c.tensor(9), DType::Int64)
                              : before + reshape(cast(counted(steps), DType::Int64), {1, steps});
    const auto of = [&](size_t i) {
      return reshape(index_select(c.tensor(i), reshape(places, {-1}), 0),
                     {places.dim(0), steps, c.tensor(i).dim(1)});
    };
    const Tensor cos = of(7), sin = of(8);
    const bool interleaved = c.flag("rotary_interleaved");
    g.query = rotated(g.query, cos, sin, interleaved);
    g.key = rotated(g.key, cos, sin, interleaved);
  }
  AttentionCall a{.query = transpose(g.query, {0, 2, 1, 3}),
                  .key = transpose(g.key, {0, 2, 1, 3}),
                  .value = transpose(g.value, {0, 2, 1, 3}),
                  .bias = c.maybe(10)};
  if (c.has(3)) {
    const Dim size = max_of(c.tensor(3).dim(2), c.sizes(6).at(0));
    a.key = cached(c.tensor(3), a.key, before, size);
    a.value = cached(c.tensor(4), a.value, before, size);
  }
  const Tensor key = a.key, value = a.value;
  a.lengths = reshape(cast(c.tensor(5), DType::Int64), {-1}) + 1;
  a.first = before;
  a.causal = c.flag("causal", true);
  const int64_t window = c.integer("local_window_size", -1);
  if (window > 0) a.left = window - 1;
  a.scale = scale_of(c, a.query);
  a.softcap = c.number("softcap", 0);
  if (c.has(11))
    a.sink = reshape(c.tensor(11), {1, -1, 1, 1});
  else if (c.integer("smooth_softmax", -1) > 0)
    a.sink = zeros({1, 1, 1, 1}, a.query.dtype());
  return {join_heads(attend(std::move(a)).out), key, value};
}

constexpr std::string_view kDomain = "com.microsoft";
constexpr Converter kConverters[] = {
    {"Attention", packed_attention, kDomain},    {"QAttention", quantised_attention, kDomain},
    {"MultiHeadAttention", multi_head, kDomain}, {"GroupQueryAttention", grouped_query, kDomain},
    {"RotaryEmbedding", rotary, kDomain},
};

}  // namespace

std::span<const Converter> contrib_attention_converters() { return kConverters; }

}  // namespace oar::onnx
