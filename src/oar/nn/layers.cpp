#include "oar/nn/layers.h"

#include "oar/autograd/node.h"
#include "oar/nn/fresh.h"
#include "oar/ops/gen/dropout.h"
#include "oar/ops/gen/embedding.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/shape.h"

namespace oar::nn {
namespace {

double checked_probability(double p) {
  user_check(p >= 0 && p <= 1, ErrorKind::InvalidArgument, "p must be in [0, 1], but is {}.", p);
  return p;
}

}  // namespace

Linear::Linear(int64_t in_features, int64_t out_features, bool has_bias) {
  check_positive("in_features", in_features);
  check_positive("out_features", out_features);
  weight = register_parameter("weight", drawn_xavier({in_features, out_features}));
  if (has_bias) bias = register_parameter("bias", filled({out_features}, 0), Role::Bias);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim,
                     std::optional<int64_t> padding_idx, bool sparse)
    : padding_idx_(padding_idx), sparse_(sparse) {
  check_positive("num_embeddings", num_embeddings);
  check_positive("embedding_dim", embedding_dim);
  weight = register_parameter("weight", drawn_xavier({num_embeddings, embedding_dim}));
  if (!padding_idx) return;
  user_check(*padding_idx >= -num_embeddings && *padding_idx < num_embeddings,
             ErrorKind::InvalidArgument, "padding_idx {} is outside a table of {} rows.",
             *padding_idx, num_embeddings);
  padding_idx_ = *padding_idx < 0 ? *padding_idx + num_embeddings : *padding_idx;
  const int64_t strides[] = {1};
  char* row = static_cast<char*>(weight->data) +
              *padding_idx_ * embedding_dim * static_cast<int64_t>(size_of(weight.dtype()));
  init::constant(
      Tensor::view_of(weight->storage, Shape{embedding_dim}, strides, row, weight.dtype()), 0);
}

Tensor Embedding::forward(const Tensor& ids) {
  return embedding(ids, weight, padding_idx_, std::nullopt, 2.0, sparse_);
}

Dropout::Dropout(double p, std::string mode) : p_(checked_probability(p)), mode_(std::move(mode)) {}

Tensor Dropout::forward(const Tensor& x) {
  return dropout(x, p_, std::nullopt, is_training(), mode_);
}

Dropout2D::Dropout2D(double p, std::string data_format)
    : p_(checked_probability(p)), data_format_(std::move(data_format)) {}

Tensor Dropout2D::forward(const Tensor& x) { return dropout2d(x, p_, is_training(), data_format_); }

Dropout3D::Dropout3D(double p, std::string data_format)
    : p_(checked_probability(p)), data_format_(std::move(data_format)) {}

Tensor Dropout3D::forward(const Tensor& x) { return dropout3d(x, p_, is_training(), data_format_); }

Tensor Flatten::forward(const Tensor& x) { return flatten(x, start_axis_, stop_axis_); }

PReLU::PReLU(int64_t num_parameters, double init, std::string data_format)
    : data_format_(std::move(data_format)) {
  check_positive("num_parameters", num_parameters);
  weight = register_parameter("_weight", filled({num_parameters}, init));
}

Tensor PReLU::forward(const Tensor& x) { return prelu(x, weight, data_format_); }

}  // namespace oar::nn
