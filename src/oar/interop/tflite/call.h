// What a converter of a TFLite operator sees, and the tables of converters. Quantised tensors are given as the real numbers that they
// stand for; results are rounded to what the file's tensor can hold.
//
//   Tensors square_of(const Call& c) { return {square(c.tensor(0))}; }
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "oar/interop/graph_model.h"
#include "oar/interop/tflite/model.h"

namespace oar::tflite {

using Tensors = std::vector<Tensor>;

class Call {
 public:
  Call(const ModelFile& file, const Op& op, std::vector<interop::Value> inputs)
      : op(op), file_(file), inputs_(std::move(inputs)) {}

  const Op& op;

  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].tensor.defined(); }
  const Tensor& tensor(size_t i) const;
  Tensor maybe(size_t i) const { return has(i) ? tensor(i) : Tensor{}; }
  Tensors tensors() const;
  // The content of an input that must be known before a run.
  std::vector<int64_t> integers(size_t i) const;
  std::vector<double> numbers(size_t i) const;
  int64_t integer(size_t i) const;
  const Tensor& constant(size_t i) const;
  // An axis of an input, from 0 on.
  int64_t axis(int64_t given, size_t i = 0) const;
  const FlatTable& options() const { return op.options; }
  const TensorInfo& result(size_t i) const;
  // The function that a node has at its end, by its number.
  Tensor activated(const Tensor& x, int function) const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  const ModelFile& file_;
  std::vector<interop::Value> inputs_;
};

struct Converter {
  int32_t code;
  Tensors (*convert)(const Call&);
  enum Kind : uint8_t {
    Computes,
    Moves,  // its results have elements of its inputs
    Sizes,  // its result depends on the sizes of its inputs alone
  } kind = Computes;
};

std::span<const Converter> elementwise_converters();
std::span<const Converter> network_converters();
std::span<const Converter> shape_converters();
// Null if no table has the operator.
const Converter* find_converter(int32_t code);

}  // namespace oar::tflite
