#include "oar/interop/onnx/heads.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {

Tensor split_heads(const Tensor& x, int64_t heads) {
  const Dim size = floor_div(x.dim(2), heads);
  return transpose(reshape(x, {x.dim(0), x.dim(1), Dim(heads), size}), {0, 2, 1, 3});
}
Tensor join_heads(const Tensor& x) {
  return reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Tensor counted(Dim count) {
  return cumsum_along(full({count}, 1.0, DType::Float32), 0, true, false);
}

namespace {

Tensor as_bias(const Tensor& allowed, DType dtype) {
  const Tensor zero = zeros({}, dtype);
  return where(allowed, zero, full({}, -std::numeric_limits<double>::infinity(), dtype));
}
Tensor mask_bias(const Tensor& mask, DType dtype) {
  return mask.dtype() == DType::Bool ? as_bias(mask, dtype) : cast(mask, dtype);
}
void add_to(Tensor& bias, const Tensor& more) { bias = bias.defined() ? bias + more : more; }

// What positions alone allow: not the future, not beyond a window, not beyond the length.
void add_positions(AttentionCall& a) {
  const Dim queries = a.query.dim(2), keys = a.key.dim(2);
  const DType dtype = a.query.dtype();
  const bool window = a.left >= 0 || a.right >= 0;
  const Tensor key = reshape(counted(keys), {1, keys});
  if (a.causal || window) {
    Tensor query = reshape(counted(queries), {queries, 1});
    if (a.first.defined())
      query = query + reshape(cast(a.first, DType::Float32), {-1, 1, 1, 1});
    else if (a.lengths.defined())
      query = query + reshape(cast(a.lengths, DType::Float32), {-1, 1, 1, 1}) -
              product_of({queries}, DType::Float32);
    else
      query = query + product_of({a.offset}, DType::Float32);
    if (a.causal) add_to(a.bias, as_bias(less_equal(key, query), dtype));
    if (a.left >= 0)
      add_to(a.bias,
             as_bias(less_equal(query - key, full({}, static_cast<double>(a.left), DType::Float32)),
                     dtype));
    if (a.right >= 0)
      add_to(a.bias, as_bias(less_equal(key - query,
                                        full({}, static_cast<double>(a.right), DType::Float32)),
                             dtype));
  }
  if (a.lengths.defined()) {
    const Tensor length = reshape(cast(a.lengths, DType::Float32), {-1, 1, 1, 1});
    add_to(a.bias, as_bias(less_than(key, length), dtype));
  }
}

// softmax with zeros for a row of nothing but -inf.
Tensor safe_softmax(const Tensor& x, const Tensor& sink) {
  Tensor most = max(x, IntArgs({-1}), true);
  if (sink.defined()) most = maximum(most, sink);
  const Tensor finite = where(isneginf(most), zeros_like(most), most);
  const Tensor e = exp(x - finite);
  Tensor total = sum(e, IntArgs({-1}), x.dtype(), true);
  if (sink.defined()) total = total + exp(sink - finite);
  return e / where(equal(total, zeros_like(total)), ones_like(total), total);
}

}  // namespace

Attended attend(AttentionCall a) {
  const int64_t heads = a.query.dim(1).value(), own = a.key.dim(1).value();
  if (heads != own) {
    a.key = repeat_interleave(a.key, heads / own, 1);
    a.value = repeat_interleave(a.value, heads / own, 1);
  }
  add_positions(a);
  Attended made;
  const double root = std::sqrt(a.scale);  // each operand carries half, as the standard computes it
  made.scores = matmul(a.query * root, a.key * root, false, true);
  made.capped = a.softcap > 0
                    ? tanh(made.scores / full({}, a.softcap, made.scores.dtype())) * a.softcap
                    : made.scores;
  made.biased = a.bias.defined() ? made.capped + a.bias : made.capped;
  made.weights = safe_softmax(made.biased, a.sink);
  made.out = matmul(made.weights, a.value);
  return made;
}

Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
  const Tensor c = unsqueeze(cos, {2}), s = unsqueeze(sin, {2});
  const int64_t size = x.dim(3).value(), turned = 2 * cos.dim(-1).value();
  const Tensor part = slice(x, {3}, {0}, {turned});
  Tensor first, second;
  if (interleaved) {
    first = strided_slice(part, {3}, {0}, {turned}, {2});
    second = strided_slice(part, {3}, {1}, {turned}, {2});
  } else {
    first = slice(part, {3}, {0}, {turned / 2});
    second = slice(part, {3}, {turned / 2}, {turned});
  }
  const Tensor real = c * first - s * second, imaginary = s * first + c * second;
  Tensor made = interleaved ? reshape(stack({real, imaginary}, -1), part.shape())
                            : concat({real, imaginary}, -1);
  return turned == size ? made : concat({made, slice(x, {3}, {turned}, {size})}, 3);
}

namespace {

Values attention_node(const Call& c) {
  AttentionCall a;
  const bool flat = c.tensor(0).rank() == 3;
  const int64_t heads = c.integer("q_num_heads", 0), own = c.integer("kv_num_heads", 0);
  if (flat && (heads <= 0 || own <= 0)) c.refuse("it does not say how many heads it has");
  a.query = flat ? split_heads(c.tensor(0), heads) : c.tensor(0);
  a.key = flat ? split_heads(c.tensor(1), own) : c.tensor(1);
  a.value = flat ? split_heads(c.tensor(2), own) : c.tensor(2);
  const DType dtype = a.query.dtype();
  if (c.has(4)) {
    a.offset = c.tensor(4).dim(2);
    a.key = concat({c.tensor(4), a.key}, 2);
    a.value = concat({c.tensor(5), a.value}, 2);
  }
  if (c.has(6)) a.lengths = c.tensor(6);
  a.left = c.integer("left_window_size", -1);
  a.right = c.integer("right_window_size", -1);
  const Tensor present_key = a.key, present_value = a.value;
  a.scale = c.number("scale", 1 / std::sqrt(static_cast<double>(a.query.dim(3).value())));
  a.softcap = c.number("softcap", 0);
  a.causal = c.flag("is_causal");
  if (c.has(3)) {
    Tensor mask = c.tensor(3);
    const Dim keys = a.key.dim(2), given = mask.dim(-1);
    if (!(keys == given)) {  // keys that the mask does not reach are hidden
      std::vector<int64_t> pads(2 * static_cast<size_t>(mask.rank()));
      pads.back() = keys.value() - given.value();
      mask = mask.dtype() == DType::Bool
                 ? cast(pad_constant(cast(mask, DType::Int32), pads, 0.0), DType::Bool)
                 : pad_constant(mask, pads, -std::numeric_limits<double>::infinity());
    }
    a.bias = mask_bias(mask, dtype);
  }
  const Attended made = attend(std::move(a));
  const int64_t mode = c.integer("qk_matmul_output_mode", 0);
  const Tensor& shown = mode == 0   ? made.scores
                        : mode == 3 ? made.weights
                        : mode == 2 ? made.biased
                                    : made.capped;
  return {flat ? join_heads(made.out) : made.out, present_key, present_value, shown};
}

Values rotary_node(const Call& c) {
  Tensor x = c.tensor(0);
  const bool flat = x.rank() == 3;
  const Shape shape = x.shape();
  if (flat) {
    const int64_t heads = c.integer("num_heads", 0);
    if (heads <= 0) c.refuse("it does not say how many heads it has");
    x = reshape(x, {x.dim(0), x.dim(1), Dim(heads), floor_div(x.dim(2), heads)});
  } else {
    x = transpose(x, {0, 2, 1, 3});
  }
  const auto of = [&](size_t i) {
    const Tensor& cache = c.tensor(i);
    if (!c.has(3)) return cache;
    const Tensor& place = c.tensor(3);
    return reshape(index_select(cache, reshape(place, {-1}), 0),
                   {place.dim(0), place.dim(1), cache.dim(1)});
  };
  const Tensor made = rotated(x, of(1), of(2), c.flag("interleaved"));
  return {flat ? reshape(made, shape) : transpose(made, {0, 2, 1, 3})};
}

// A cache with new rows from `write_indices` on, one for each batch.
Values tensor_scatter(const Call& c) {
  const Tensor &past = c.tensor(0), &update = c.tensor(1);
  const int64_t rank = past.rank(), given = c.integer("axis", -2),
                axis = given < 0 ? given + rank : given;
  const Dim steps = update.dim(axis);
  std::vector<Dim> along(static_cast<size_t>(rank), 1), batch = along;
  along[static_cast<size_t>(axis)] = steps;
  batch[0] = past.dim(0);
  Tensor place = reshape(range(0, steps.value(), 1, DType::Int64), along);
  if (c.has(2)) place = place + reshape(cast(c.tensor(2), DType::Int64), batch);
  if (c.text("mode", "linear") == "circular")
    place = remainder(place, full({}, past.dim(axis).value(), DType::Int64));
  return {put_along_axis(past, broadcast_to(place, update.shape()), update, axis, "assign", true,
                         false)};
}

constexpr Converter kConverters[] = {
    {"Attention", attention_node},
    {"RotaryEmbedding", rotary_node},
    {"TensorScatter", tensor_scatter},
};

}  // namespace

std::span<const Converter> attention_converters() { return kConverters; }

}  // namespace oar::onnx
