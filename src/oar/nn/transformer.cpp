#include "oar/nn/transformer.h"

#include <limits>

#include "oar/nn/fresh.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/attention.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/diagonals.h"
#include "oar/ops/gen/shape.h"

namespace oar::nn {
namespace {

// A mask of floats, for bools and integers: 0 where they allow attention, far below elsewhere.
Tensor added_mask(const Tensor& mask, DType dtype) {
  if (!mask.defined() || is_floating(mask.dtype())) return mask;
  return (cast(mask, dtype) - 1.0) * 1e9;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t embed_dim, int64_t num_heads,
                                       MultiHeadAttentionOptions options)
    : q_proj(embed_dim, embed_dim),
      k_proj(options.kdim.value_or(embed_dim), embed_dim),
      v_proj(options.vdim.value_or(embed_dim), embed_dim),
      out_proj(embed_dim, embed_dim),
      num_heads_(num_heads),
      head_dim_(num_heads > 0 ? embed_dim / num_heads : 0),
      dropout_(options.dropout) {
  check_positive("num_heads", num_heads);
  user_check(head_dim_ * num_heads == embed_dim, ErrorKind::InvalidArgument,
             "embed_dim {} must be divisible by num_heads {}.", embed_dim, num_heads);
  register_module("q_proj", q_proj);
  register_module("k_proj", k_proj);
  register_module("v_proj", v_proj);
  register_module("out_proj", out_proj);
}

Tensor MultiHeadAttention::heads(const Tensor& x) const {
  return reshape(x, {0, 0, num_heads_, head_dim_});
}

Tensor MultiHeadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const Tensor& attn_mask) {
  const Tensor q = heads(q_proj(query)), k = heads(k_proj(key)), v = heads(v_proj(value));
  Tensor mask = added_mask(attn_mask, q.dtype());
  if (mask.defined() && mask.rank() == 3) mask = unsqueeze(mask, {0});
  const Tensor out = scaled_dot_product_attention(q, k, v, mask, dropout_, false, is_training());
  return out_proj(flatten(out, 2));
}

TransformerLayer::TransformerLayer(Part part, int64_t d_model, int64_t nhead,
                                   int64_t dim_feedforward, TransformerLayerOptions options)
    : options_(std::move(options)) {
  check_positive("d_model", d_model);
  check_positive("dim_feedforward", dim_feedforward);
  user_check(options_.activation == "relu" || options_.activation == "gelu",
             ErrorKind::InvalidArgument, "the activation is '{}'.\nhint: Pass relu or gelu.",
             options_.activation);
  const MultiHeadAttentionOptions attention{.dropout =
                                                options_.attn_dropout.value_or(options_.dropout)};
  attentions_.push_back(&add<MultiHeadAttention>("self_attn", d_model, nhead, attention));
  if (part == Part::Decoder)
    attentions_.push_back(&add<MultiHeadAttention>("cross_attn", d_model, nhead, attention));
  linear1_ = &add<Linear>("linear1", d_model, dim_feedforward);
  dropout_ = &add<Dropout>("dropout", options_.act_dropout.value_or(options_.dropout));
  linear2_ = &add<Linear>("linear2", dim_feedforward, d_model);
  for (size_t i = 1; i <= attentions_.size() + 1; ++i) {
    norms_.push_back(&add<LayerNorm>(format("norm{}", i), d_model, options_.layer_norm_eps));
    dropouts_.push_back(&add<Dropout>(format("dropout{}", i), options_.dropout));
  }
}

Tensor TransformerLayer::residual(size_t number, const Tensor& x,
                                  const std::function<Tensor(const Tensor&)>& step) const {
  LayerNorm& norm = *norms_[number];
  const Tensor made = step(options_.normalize_before ? norm(x) : x);
  const Tensor sum = x + (*dropouts_[number])(made);
  return options_.normalize_before ? sum : norm(sum);
}

Tensor TransformerLayer::feed_forward(const Tensor& x) const {
  const Tensor inner = (*linear1_)(x);
  return (*linear2_)((*dropout_)(options_.activation == "relu" ? relu(inner) : gelu(inner)));
}

Tensor TransformerLayer::run(const Tensor& input, const Tensor& mask, const Tensor& memory,
                             const Tensor& memory_mask) {
  size_t number = 0;
  Tensor x = residual(number++, input, [&](const Tensor& own) {
    return attentions_[0]->attend(own, own, own, mask);
  });
  if (attentions_.size() > 1)
    x = residual(number++, x, [&](const Tensor& own) {
      return attentions_[1]->attend(own, memory, memory, memory_mask);
    });
  return residual(number, x, [&](const Tensor& own) { return feed_forward(own); });
}

template <class Layer>
TransformerStack<Layer>::TransformerStack(int64_t d_model, int64_t nhead, int64_t dim_feedforward,
                                          int64_t num_layers,
                                          const TransformerStackOptions& options) {
  check_positive("num_layers", num_layers);
  for (int64_t i = 0; i < num_layers; ++i) {
    layers_.append(d_model, nhead, dim_feedforward, options.layer);
    // In Python the norm is an argument, computed after the first layer: so the names of parameters agree.
    if (i == 0 && options.norm) norm_ = std::make_unique<LayerNorm>(d_model);
  }
  register_module("layers", layers_);
  if (norm_) register_module("norm", *norm_);
}

Tensor TransformerEncoder::encode(const Tensor& source, const Tensor& mask) {
  Tensor x = source;
  for (size_t i = 0; i < layers_.size(); ++i) x = layers_[i].encode(x, mask);
  return normed(x);
}

Tensor TransformerDecoder::decode(const Tensor& target, const Tensor& memory,
                                  const Tensor& target_mask, const Tensor& memory_mask) {
  Tensor x = target;
  for (size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i].decode(x, memory, target_mask, memory_mask);
  return normed(x);
}

Transformer::Transformer(const TransformerOptions& options)
    : encoder(options.d_model, options.nhead, options.dim_feedforward, options.num_encoder_layers,
              {.layer = options.layer, .norm = true}),
      decoder(options.d_model, options.nhead, options.dim_feedforward, options.num_decoder_layers,
              {.layer = options.layer, .norm = true}) {
  register_module("encoder", encoder);
  register_module("decoder", decoder);
}

Tensor Transformer::transform(const Tensor& source, const Tensor& target, const Tensor& source_mask,
                              const Tensor& target_mask, const Tensor& memory_mask) {
  return decoder.decode(target, encoder.encode(source, source_mask), target_mask, memory_mask);
}

Tensor Transformer::square_subsequent_mask(int64_t length) {
  return triu(
      full({length, length}, Scalar(-std::numeric_limits<double>::infinity()), default_dtype()), 1);
}

template class TransformerStack<TransformerEncoderLayer>;
template class TransformerStack<TransformerDecoderLayer>;

}  // namespace oar::nn
