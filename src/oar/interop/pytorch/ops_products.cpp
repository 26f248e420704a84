// Products of matrices, attention.
#include <cmath>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

using List = std::vector<int64_t>;

Tensor flipped(const Tensor& x) { return swapaxes(x, -1, -2); }

Value product(const Call& c) { return matmul(c.tensor("self"), c.tensor("other")); }
Value matrix_product(const Call& c) { return matmul(c.tensor("self"), c.tensor("mat2")); }
Value vector_product(const Call& c) { return matmul(c.tensor("self"), c.tensor("vec")); }
Value dots(const Call& c) { return matmul(c.tensor("self"), c.tensor("tensor")); }
Value outer_product(const Call& c) { return outer(c.tensor("self"), c.tensor("vec2")); }

Tensor times(const Call& c, const Tensor& x, const char* by) {
  return c.number(by) == 1 ? x : x * c.operand(by);
}
Value plus_matrix_product(const Call& c) {
  const char* x = c.takes("mat1") ? "mat1" : c.takes("batch1") ? "batch1" : "mat";
  const char* y = c.takes("mat2") ? "mat2" : c.takes("batch2") ? "batch2" : "vec";
  const Tensor made = times(c, matmul(c.tensor(x), c.tensor(y)), "alpha");
  return c.number("beta") == 0 ? made : made + times(c, c.tensor("self"), "beta");
}
Value linear_of(const Call& c) {
  const Tensor& weight = c.tensor("weight");
  const Tensor made = matmul(c.tensor("input"), weight, false, weight.rank() > 1);
  return c.has("bias") ? made + c.tensor("bias") : made;
}
Value bilinear_of(const Call& c) {
  const Tensor made =
      einsum("...i,oij,...j->...o",
             std::vector<Tensor>{c.tensor("input1"), c.tensor("weight"), c.tensor("input2")});
  return c.has("bias") ? made + c.tensor("bias") : made;
}
Value einsum_of(const Call& c) { return einsum(c.text("equation"), c.tensors("tensors")); }
Value tensordot_of(const Call& c) {
  return tensordot_axes(c.tensor("self"), c.tensor("other"), c.list("dims_self"),
                        c.list("dims_other"));
}
Value chain(const Call& c) {
  const std::vector<Tensor> matrices = c.tensors("tensors");
  if (matrices.empty()) c.refuse("it has no matrices");
  Tensor made = matrices[0];
  for (size_t i = 1; i < matrices.size(); ++i) made = matmul(made, matrices[i]);
  return made;
}
Value cross_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  return cross(x, c.tensor("other"), c.has("dim") ? c.axis("dim", x.rank()) : 9);
}

// ---- attention ---------------------------------------------------------------------------------

// Queries, keys and values are [..., heads, length, width]; Oar has heads after the lengths.
Tensor attended(const Call& c, const Tensor& mask) {
  const Tensor &q = c.tensor("query"), &k = c.tensor("key"), &v = c.tensor("value");
  if (c.has("dropout_p") && c.number("dropout_p") != 0)
    c.refuse("it drops weights; call eval() before the export");
  const std::optional<double> scale =
      c.has("scale") ? std::optional(c.number("scale")) : std::nullopt;
  const bool causal = c.flag("is_causal");
  const bool grouped = c.takes("enable_gqa") && c.flag("enable_gqa");
  if (q.rank() == 4 && k.rank() == 4) {
    const List order{0, 2, 1, 3};
    const Tensor of_heads = mask.defined() && mask.rank() == 3 ? unsqueeze(mask, {0}) : mask;
    return transpose(
        scaled_dot_product_attention(transpose(q, order), transpose(k, order), transpose(v, order),
                                     of_heads, 0.0, causal, false, std::nullopt, scale),
        order);
  }
  if (grouped) c.refuse("its heads are in groups, and it has not four axes");
  const auto width = static_cast<double>(q.dim(-1).value());
  Tensor weights = matmul(q, flipped(k)) * scale.value_or(1 / std::sqrt(width));
  if (causal) {
    const Tensor seen = tril(ones({q.dim(-2), k.dim(-2)}, DType::Bool));
    weights = where(seen, weights, full_like(weights, Scalar(-INFINITY)));
  }
  if (mask.defined())
    weights = is_bool(mask.dtype()) ? where(mask, weights, full_like(weights, Scalar(-INFINITY)))
                                    : weights + mask;
  return matmul(softmax(weights, -1), v);
}
Value attention_of(const Call& c) { return attended(c, c.maybe("attn_mask")); }
// What a decomposed program has: the second result is used by derivatives alone.
Value core_attention(const Call& c) {
  const Tensor made = attended(c, c.maybe(c.takes("attn_mask") ? "attn_mask" : "attn_bias"));
  const Tensor& q = c.tensor("query");
  return c.tuple({made, zeros({q.dim(0), q.dim(1), q.dim(2)}, DType::Float32)});
}

Tensor split_heads(const Tensor& x, int64_t heads) {  // [batch, length, heads, width]
  return reshape(x, {x.dim(0), x.dim(1), heads, floor_div(x.dim(2), heads)});
}
Tensor self_attended(const Tensor& x, const Tensor& mask, int64_t heads, const Tensor& weight,
                     const Tensor& bias, const Tensor& out_weight, const Tensor& out_bias) {
  const std::vector<Tensor> parts = chunk(matmul(x, weight, false, true) + bias, 3, -1);
  const Tensor made =
      scaled_dot_product_attention(split_heads(parts[0], heads), split_heads(parts[1], heads),
                                   split_heads(parts[2], heads), mask, 0.0, false, false);
  return matmul(reshape(made, x.shape()), out_weight, false, true) + out_bias;
}
// True in PyTorch's masks is what must not be seen; for keys they are [batch, length].
Tensor seen_of(const Call& c, const char* name, bool of_keys) {
  if (!c.has(name)) return {};
  const Tensor& mask = c.tensor(name);
  const Tensor shaped = of_keys ? reshape(mask, {mask.dim(0), 1, 1, mask.dim(1)}) : mask;
  return is_bool(mask.dtype()) ? logical_not(shaped) : shaped;
}
// The fast path of nn.TransformerEncoderLayer, which a trace may have.
Value encoder_layer(const Call& c) {
  const Tensor& x = c.tensor("src");
  const Tensor mask = seen_of(c, "mask", c.has("mask_type") && c.integer("mask_type") == 1);
  const auto normed = [&](const Tensor& t, const char* weight, const char* bias) {
    return layer_norm(t, {t.dim(-1)}, c.tensor(weight), c.tensor(bias), c.number("eps"));
  };
  const auto attention = [&](const Tensor& t) {
    return self_attended(t, mask, c.integer("num_heads"), c.tensor("qkv_weight"),
                         c.tensor("qkv_bias"), c.tensor("proj_weight"), c.tensor("proj_bias"));
  };
  const auto feed = [&](const Tensor& t) {
    const Tensor inner = matmul(t, c.tensor("ffn_weight_1"), false, true) + c.tensor("ffn_bias_1");
    return matmul(c.flag("use_gelu") ? gelu(inner) : relu(inner), c.tensor("ffn_weight_2"), false,
                  true) +
           c.tensor("ffn_bias_2");
  };
  if (c.flag("norm_first")) {
    const Tensor y = x + attention(normed(x, "norm_weight_1", "norm_bias_1"));
    return y + feed(normed(y, "norm_weight_2", "norm_bias_2"));
  }
  const Tensor y = normed(x + attention(x), "norm_weight_1", "norm_bias_1");
  return normed(y + feed(y), "norm_weight_2", "norm_bias_2");
}
Value multi_head(const Call& c) {
  if (c.flag("need_weights")) c.refuse("its weights are asked for");
  const Tensor mask = seen_of(c, "mask", c.has("mask_type") && c.integer("mask_type") == 1);
  const Tensor made =
      self_attended(c.tensor("query"), mask, c.integer("num_head"), c.tensor("qkv_weight"),
                    c.tensor("qkv_bias"), c.tensor("proj_weight"), c.tensor("proj_bias"));
  return c.tuple_of({made, Value()});
}

constexpr Converter kConverters[] = {
    {"matmul(self, other)", product},
    {"mm(self, mat2)", matrix_product},
    {"bmm(self, mat2)", matrix_product},
    {"mv(self, vec)", vector_product},
    {"dot(self, tensor)", dots},
    {"outer(self, vec2)", outer_product},
    {"addmm(self, mat1, mat2, beta=1, alpha=1)", plus_matrix_product},
    {"baddbmm(self, batch1, batch2, beta=1, alpha=1)", plus_matrix_product},
    {"addmv(self, mat, vec, beta=1, alpha=1)", plus_matrix_product},
    {"linear(input, weight, bias=None)", linear_of},
    {"bilinear(input1, input2, weight, bias=None)", bilinear_of},
    {"einsum(equation, tensors, path=None)", einsum_of},
    {"tensordot(self, other, dims_self, dims_other)", tensordot_of},
    {"linalg_multi_dot(tensors)", chain},
    {"cross(self, other, dim=None)", cross_of},
    {"linalg_cross(self, other, dim=-1)", cross_of},
    {"scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, "
     "enable_gqa=False)",
     attention_of},
    {"_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, "
     "scale=None)",
     core_attention},
    {"_scaled_dot_product_efficient_attention(query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, "
     "is_causal=False, scale=None)",
     core_attention},
    {"_scaled_dot_product_attention_math(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, "
     "dropout_mask=None, scale=None, enable_gqa=False)",
     core_attention},
    {"_transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, "
     "norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, "
     "ffn_bias_2, mask=None, mask_type=None)",
     encoder_layer},
    {"_native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, "
     "proj_bias, mask=None, need_weights=True, average_attn_weights=True, mask_type=None)",
     multi_head},
};

}  // namespace

std::span<const Converter> product_converters() { return kConverters; }

}  // namespace oar::pytorch
