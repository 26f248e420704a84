// The common layers. Arguments and defaults are those of the Python layers of the same name.
#pragma once

#include <array>
#include <optional>

#include "oar/base/api.h"
#include "oar/nn/module.h"

namespace OAR_API oar {
namespace nn {

// One number for both spatial axes, or one each.
class Size2 {
 public:
  Size2(int64_t both) : values_{both, both} {}  // 3 means (3, 3)
  Size2(int64_t height, int64_t width) : values_{height, width} {}
  int64_t height() const { return values_[0]; }
  int64_t width() const { return values_[1]; }
  Ints list() const { return values_; }

 private:
  std::array<int64_t, 2> values_;
};

// x @ weight + bias; the weight is [in_features, out_features].
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, bool has_bias = true);
  Tensor forward(const Tensor& x) override;

  Tensor weight;
  Tensor bias;  // undefined without one
};

struct Conv2DOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
  bool has_bias = true;
};

// The weight is [out_channels, in_channels / groups, height, width]; x is [N, C, H, W].
class Conv2D : public Module {
 public:
  Conv2D(int64_t in_channels, int64_t out_channels, Size2 kernel_size, Conv2DOptions options = {});
  Tensor forward(const Tensor& x) override;

  Tensor weight;
  Tensor bias;

 private:
  Conv2DOptions options_;
};

struct MaxPool2DOptions {
  std::optional<Size2> stride;  // default: the window's size
  Size2 padding = 0;
  bool ceil_mode = false;
};

class MaxPool2D : public Module {
 public:
  explicit MaxPool2D(Size2 kernel_size, MaxPool2DOptions options = {});
  Tensor forward(const Tensor& x) override;

 private:
  Size2 kernel_size_;
  MaxPool2DOptions options_;
};

// Rows of a table by index. The row `padding_idx` is zero and gets no gradient.
class Embedding : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim,
            std::optional<int64_t> padding_idx = std::nullopt, bool sparse = false);
  Tensor forward(const Tensor& ids) override;

  Tensor weight;

 private:
  std::optional<int64_t> padding_idx_;
  bool sparse_;
};

// Sets elements to zero with probability p while training, and scales up the others.
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

class Flatten : public Module {
 public:
  explicit Flatten(int64_t start_axis = 1, int64_t stop_axis = -1)
      : start_axis_(start_axis), stop_axis_(stop_axis) {}
  Tensor forward(const Tensor& x) override;

 private:
  int64_t start_axis_, stop_axis_;
};

class ReLU : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class GELU : public Module {
 public:
  explicit GELU(bool approximate = false) : approximate_(approximate) {}
  Tensor forward(const Tensor& x) override;

 private:
  bool approximate_;
};

class Sigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Tanh : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Silu : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Softmax : public Module {
 public:
  explicit Softmax(int64_t axis = -1) : axis_(axis) {}
  Tensor forward(const Tensor& x) override;

 private:
  int64_t axis_;
};

}  // namespace nn
}  // namespace oar
