// Attention and transformers. Arguments and defaults are those of the Python layers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/nn/layers.h"

namespace OAR_API oar {
namespace nn {

struct MultiHeadAttentionOptions {
  double dropout = 0;
  std::optional<int64_t> kdim = std::nullopt, vdim = std::nullopt;  // default: embed_dim
};

class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(int64_t embed_dim, int64_t num_heads, MultiHeadAttentionOptions options = {});
  // query is [batch, targets, embed_dim], key and value [batch, sources, ...]. A mask of floats is added to the scores; where one
  // of bools or integers is 0, nothing is attended to.
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value,
                const Tensor& mask = {});
  // Attention of x to itself.
  Tensor forward(const Tensor& x) override { return attend(x, x, x); }

  Linear q_proj, k_proj, v_proj, out_proj;

 private:
  Tensor heads(const Tensor& x) const;

  int64_t num_heads_, head_dim_;
  double dropout_;
};

struct TransformerLayerOptions {
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  // Default: dropout.
  std::optional<double> attn_dropout = std::nullopt, act_dropout = std::nullopt;
  bool normalize_before = false;
  double layer_norm_eps = 1e-5;
};

// Attention of the input to itself, in a decoder then to the memory, then two linear layers. Each adds to what came in.
class TransformerLayer : public Module {
 protected:
  enum class Part { Encoder, Decoder };
  TransformerLayer(Part part, int64_t d_model, int64_t nhead, int64_t dim_feedforward,
                   TransformerLayerOptions options);
  Tensor run(const Tensor& x, const Tensor& mask, const Tensor& memory = {},
             const Tensor& memory_mask = {});

 private:
  template <class M, class... A>
  M& add(const std::string& name, A&&... args) {
    return static_cast<M&>(register_module(name, std::make_unique<M>(std::forward<A>(args)...)));
  }
  Tensor residual(size_t number, const Tensor& x,
                  const std::function<Tensor(const Tensor&)>& step) const;
  Tensor feed_forward(const Tensor& x) const;

  TransformerLayerOptions options_;
  std::vector<MultiHeadAttention*> attentions_;
  Linear *linear1_, *linear2_;
  Dropout* dropout_;
  std::vector<LayerNorm*> norms_;
  std::vector<Dropout*> dropouts_;
};

class TransformerEncoderLayer : public TransformerLayer {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, int64_t dim_feedforward,
                          TransformerLayerOptions options = {})
      : TransformerLayer(Part::Encoder, d_model, nhead, dim_feedforward, std::move(options)) {}
  Tensor encode(const Tensor& source, const Tensor& mask = {}) { return run(source, mask); }
  Tensor forward(const Tensor& source) override { return encode(source); }
};

class TransformerDecoderLayer : public TransformerLayer {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, int64_t dim_feedforward,
                          TransformerLayerOptions options = {})
      : TransformerLayer(Part::Decoder, d_model, nhead, dim_feedforward, std::move(options)) {}
  Tensor decode(const Tensor& target, const Tensor& memory, const Tensor& target_mask = {},
                const Tensor& memory_mask = {}) {
    return run(target, target_mask, memory, memory_mask);
  }
};

struct TransformerStackOptions {
  TransformerLayerOptions layer = {};
  bool norm = false;  // a LayerNorm after the last layer
};

// Layers in sequence, "layers.0", "layers.1", …, then a norm.
template <class Layer>
class TransformerStack : public Module {
 public:
  TransformerStack(int64_t d_model, int64_t nhead, int64_t dim_feedforward, int64_t num_layers,
                   const TransformerStackOptions& options = {});

 protected:
  Tensor normed(const Tensor& x) const { return norm_ ? (*norm_)(x) : x; }
  LayerList<Layer> layers_;

 private:
  std::unique_ptr<LayerNorm> norm_;
};

class TransformerEncoder : public TransformerStack<TransformerEncoderLayer> {
 public:
  using TransformerStack::TransformerStack;
  Tensor encode(const Tensor& source, const Tensor& mask = {});
  Tensor forward(const Tensor& source) override { return encode(source); }
};

class TransformerDecoder : public TransformerStack<TransformerDecoderLayer> {
 public:
  using TransformerStack::TransformerStack;
  Tensor decode(const Tensor& target, const Tensor& memory, const Tensor& target_mask = {},
                const Tensor& memory_mask = {});
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  int64_t dim_feedforward = 2048;
  TransformerLayerOptions layer = {};
};

class Transformer : public Module {
 public:
  explicit Transformer(const TransformerOptions& options = {});
  Tensor transform(const Tensor& source, const Tensor& target, const Tensor& source_mask = {},
                   const Tensor& target_mask = {}, const Tensor& memory_mask = {});
  // -inf above the diagonal: a step of the target sees those before it.
  static Tensor square_subsequent_mask(int64_t length);

  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

extern template class TransformerStack<TransformerEncoderLayer>;
extern template class TransformerStack<TransformerDecoderLayer>;

}  // namespace nn
}  // namespace oar
