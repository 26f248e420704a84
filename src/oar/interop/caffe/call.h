// What a converter of a Caffe layer sees, and the tables of converters.
//
//   Tensors elu_of(const Call& c) { return {elu(c.bottom(0), c.params("elu_param").number("alpha", 1))}; }
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "oar/interop/caffe/net.h"

namespace oar::caffe {

using Tensors = std::vector<Tensor>;

class Call {
 public:
  Call(const Layer& layer, Tensors bottoms, Tensors blobs)
      : layer(layer), bottoms_(std::move(bottoms)), blobs_(std::move(blobs)) {}

  const Layer& layer;

  size_t count() const { return bottoms_.size(); }
  const Tensors& bottoms() const { return bottoms_; }
  const Tensor& bottom(size_t i) const;
  size_t blobs() const { return blobs_.size(); }
  const Tensor& blob(size_t i) const;
  const TextMessage& params(std::string_view name) const { return layer.fields.message(name); }
  // An axis of the first bottom, from 0 on.
  int64_t axis(int64_t given) const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  Tensors bottoms_, blobs_;
};

struct Converter {
  std::string_view type;
  Tensors (*convert)(const Call&);
};

std::span<const Converter> window_converters();
std::span<const Converter> elementwise_converters();
std::span<const Converter> shape_converters();
// Null if no table has the type.
const Converter* find_converter(std::string_view type);

}  // namespace oar::caffe
