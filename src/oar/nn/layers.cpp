#include "oar/nn/layers.h"

#include <cmath>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/nn/init.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/conv.h"
#include "oar/ops/gen/dropout.h"
#include "oar/ops/gen/embedding.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/max_pool.h"
#include "oar/ops/gen/relu.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/softmax.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar::nn {
namespace {

Tensor unfilled(const Shape& shape) { return Tensor::empty(shape, default_dtype()); }

void check_positive(const char* what, int64_t size) {
  user_check(size > 0, ErrorKind::InvalidArgument, "{} must be greater than 0, but is {}.", what,
             size);
}

}  // namespace

Linear::Linear(int64_t in_features, int64_t out_features, bool has_bias) {
  check_positive("in_features", in_features);
  check_positive("out_features", out_features);
  weight = register_parameter("weight", unfilled({in_features, out_features}));
  init::xavier_uniform(weight);
  if (!has_bias) return;
  bias = register_parameter("bias", unfilled({out_features}));
  init::constant(bias, 0);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

Conv2D::Conv2D(int64_t in_channels, int64_t out_channels, Size2 kernel_size, Conv2DOptions options)
    : options_(options) {
  check_positive("in_channels", in_channels);
  check_positive("out_channels", out_channels);
  check_positive("groups", options_.groups);
  check_positive("kernel_size", std::min(kernel_size.height(), kernel_size.width()));
  user_check(in_channels % options_.groups == 0 && out_channels % options_.groups == 0,
             ErrorKind::InvalidArgument,
             "{} input and {} output channels cannot be split into {} groups.", in_channels,
             out_channels, options_.groups);
  weight = register_parameter("weight", unfilled({out_channels, in_channels / options_.groups,
                                                  kernel_size.height(), kernel_size.width()}));
  const auto window = static_cast<double>(kernel_size.height() * kernel_size.width() * in_channels);
  init::normal(weight, 0, std::sqrt(2.0 / window));
  if (!options_.has_bias) return;
  bias = register_parameter("bias", unfilled({out_channels}));
  init::constant(bias, 0);
}

Tensor Conv2D::forward(const Tensor& x) {
  return conv2d(x, weight, bias, options_.stride.list(), options_.padding.list(),
                options_.dilation.list(), options_.groups);
}

MaxPool2D::MaxPool2D(Size2 kernel_size, MaxPool2DOptions options)
    : kernel_size_(kernel_size), options_(options) {}

Tensor MaxPool2D::forward(const Tensor& x) {
  const Size2& stride = options_.stride ? *options_.stride : kernel_size_;
  return max_pool2d(x, kernel_size_.list(), IntArgs(stride.list()), options_.padding.list(),
                    options_.ceil_mode);
}

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim,
                     std::optional<int64_t> padding_idx, bool sparse)
    : padding_idx_(padding_idx), sparse_(sparse) {
  check_positive("num_embeddings", num_embeddings);
  check_positive("embedding_dim", embedding_dim);
  weight = register_parameter("weight", unfilled({num_embeddings, embedding_dim}));
  init::xavier_uniform(weight);
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

Dropout::Dropout(double p) : p_(p) {
  user_check(p >= 0 && p <= 1, ErrorKind::InvalidArgument, "p must be in [0, 1], but is {}.", p);
}

Tensor Dropout::forward(const Tensor& x) { return dropout(x, p_, std::nullopt, is_training()); }

Tensor Flatten::forward(const Tensor& x) { return flatten(x, start_axis_, stop_axis_); }
Tensor ReLU::forward(const Tensor& x) { return relu(x); }
Tensor GELU::forward(const Tensor& x) { return gelu(x, approximate_); }
Tensor Sigmoid::forward(const Tensor& x) { return sigmoid(x); }
Tensor Tanh::forward(const Tensor& x) { return tanh(x); }
Tensor Silu::forward(const Tensor& x) { return silu(x); }
Tensor Softmax::forward(const Tensor& x) { return softmax(x, axis_); }

}  // namespace oar::nn
