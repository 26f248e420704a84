// The common layers. Arguments and defaults are those of the Python layers of the same name.
#pragma once

#include <optional>
#include <string>

#include "oar/base/api.h"
#include "oar/nn/activation.h"
#include "oar/nn/conv.h"
#include "oar/nn/module.h"
#include "oar/nn/norm.h"
#include "oar/nn/pooling.h"

namespace OAR_API oar {
namespace nn {

class Identity : public Module {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};

// x @ weight + bias; the weight is [in_features, out_features].
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, bool has_bias = true);
  Tensor forward(const Tensor& x) override;

  Tensor weight;
  Tensor bias;  // undefined without one
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
  explicit Dropout(double p = 0.5, std::string mode = "upscale_in_train");
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
  std::string mode_;
};

// … whole channels of images and volumes.
class Dropout2D : public Module {
 public:
  explicit Dropout2D(double p = 0.5, std::string data_format = "NCHW");
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
  std::string data_format_;
};
class Dropout3D : public Module {
 public:
  explicit Dropout3D(double p = 0.5, std::string data_format = "NCDHW");
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
  std::string data_format_;
};

class Flatten : public Module {
 public:
  explicit Flatten(int64_t start_axis = 1, int64_t stop_axis = -1)
      : start_axis_(start_axis), stop_axis_(stop_axis) {}
  Tensor forward(const Tensor& x) override;

 private:
  int64_t start_axis_, stop_axis_;
};

}  // namespace nn
}  // namespace oar
