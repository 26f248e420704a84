// Tensors for a person at a terminal, or as JSON.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "oar/tensor/tensor.h"

namespace oar::cli {

struct Statistics {
  double min = 0, mean = 0, max = 0;  // of the finite elements
  int64_t finite = 0, others = 0;     // how many elements are finite, and NaN or infinite
};
Statistics statistics_of(const Tensor& tensor);

struct Score {
  int64_t index;
  double value;
};
// The largest scores of each row, if the tensor could be scores of classes: [classes] or [n, classes] of floats.
std::vector<std::vector<Score>> top_scores(const Tensor& tensor, size_t count = 5);

// A number as JSON: null if it is not finite.
std::string json_number(double value);
std::string json_shape(Dims dims);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
// `labels`: the names of classes, or empty.
void print_tensors(std::ostream& out, bool color, const std::vector<NamedTensor>& tensors,
                   const std::vector<std::string>& labels);
// A list of objects.
std::string json_tensors(const std::vector<NamedTensor>& tensors,
                         const std::vector<std::string>& labels);

}  // namespace oar::cli
