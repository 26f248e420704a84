// Buffers in which totals of a loop are joined.
#pragma once

#include <cstdint>
#include <vector>

#include "oar/base/small_vector.h"
#include "oar/compiler/fusion/loop.h"

namespace oar::fusion {

class TotalBuffers {
 public:
  // `sizes` are the elements of each total.
  TotalBuffers(const std::vector<TotalOutput>& totals, const std::vector<int64_t>& sizes,
               const Kernel& kernel);

  int64_t largest() const;  // elements of the largest
  // What joins nothing: 0 for a sum.
  void clear();
  void join(const TotalBuffers& other);
  // Makes the kernel write to these buffers; ports of outputs come after `inputs` others.
  void redirect(SmallVector<char*, 12>& ports, size_t inputs);
  // Writes the results.
  void finish(const SmallVector<char*, 12>& ports, size_t inputs) const;

 private:
  struct Buffer {
    TotalOutput total;
    ScalarFn joins = ScalarFn::Add;
    DType type = DType::Float32;  // Float32, Float64 or Int64
    int64_t size = 0;
    std::vector<char> bytes;
  };
  std::vector<Buffer> buffers_;
};

}  // namespace oar::fusion
