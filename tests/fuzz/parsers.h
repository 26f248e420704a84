// What fuzz targets of parsers share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "oar/base/error.h"
#include "oar/interop/graph_model.h"

// An error of ours is what a damaged file deserves; one of our own making is a fault.
template <class F>
void expect_error_or_nothing(F&& body) {
  try {
    body();
  } catch (const oar::Error& error) {
    if (error.kind() != oar::ErrorKind::Internal) return;
    std::fprintf(stderr, "fuzz: %s\n", error.what());
    std::abort();
  }
}

// Mutated sizes may ask for more memory than there is: only small models are imported.
constexpr int64_t kMostElements = 1 << 12;

inline void import_small(const oar::interop::GraphModel& model) {
  std::vector<oar::Tensor> inputs;
  for (const auto& port : model.inputs()) {
    oar::Shape shape;
    int64_t count = 1;
    for (const int64_t size : port.shape.value_or(std::vector<int64_t>{2})) {
      shape.push_back(size < 0 ? 2 : size);
      if (size > kMostElements) return;
      count *= std::max<int64_t>(size, 2);
      if (count > kMostElements) return;
    }
    inputs.push_back(oar::Tensor::empty(shape, port.likely_dtype()));
  }
  model.program(inputs);
}
