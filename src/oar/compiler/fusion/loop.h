// A region as one loop over its elements: what a kernel computes, and where the operands' elements are.
#pragma once

#include <memory>
#include <string>

#include "oar/base/api.h"
#include "oar/compiler/fusion/typed.h"
#include "oar/ir/region.h"

namespace OAR_API oar {
namespace fusion {

// An operand as the kernel reads it: an input of the region behind views.
struct Source {
  size_t input = 0;
  std::vector<Instruction> views;
};

// An output whose elements are joined over axes of the domain: its port has the type in which they are joined.
struct TotalOutput {
  size_t output = 0;
  DType dtype = DType::Float32;  // of the result
  int64_t count = 1;             // elements that become one
  bool is_mean = false;
};

struct FusedLoop : RegionCode {
  // At the lie of each port when all inputs are contiguous; a call may have others.
  Kernel kernel;
  Shape domain;       // the elements of the loop
  size_t folded = 0;  // the last axes of the domain that folds join
  std::vector<Source> sources;
  std::vector<Shape> made;                   // of the outputs
  std::vector<std::vector<int64_t>> places;  // … by axis of the domain, in elements
  std::vector<TotalOutput> totals;

  int64_t rows() const;  // numbers of a fold
  // Is it as fast as the kernels that cut a row over threads?
  bool is_worth() const;
  // How a port lies whose elements along a row are this many apart.
  static Lie lie_of(int64_t stride) {
    return stride == 0 ? Lie::Single : stride == 1 ? Lie::Dense : Lie::Strided;
  }
  // Where the elements of the domain are in a tensor of a shape that fits it: strides in elements, 0 where the tensor has one
  // element for all. None if it does not fit.
  std::optional<std::vector<int64_t>> over_domain(const Shape& shape, Ints strides) const;
  // … in the operand, behind the source's views; with the place of the first.
  struct Spread {
    std::vector<int64_t> strides;
    int64_t offset = 0;
  };
  std::optional<Spread> spread(size_t source, const Tensor& input) const;

 private:
  // Totals are joined in buffers of each thread, element by element of a row. Are these small, and rows not too short?
  bool totals_fit() const;
};

// Can the last `folded` axes be summed by one thread for each row? Not if rows are long, or few.
bool are_good_rows(const Shape& shape, size_t folded);
// Are all elements the same, to the bit? Looks at no more than 64 Ki of them.
bool is_one_number(const Tensor& t);

// Null where the region cannot be a loop; `why` says so.
std::shared_ptr<const FusedLoop> loop_of(const Program& region, std::string* why = nullptr);
// The region's own, made at the first call.
std::shared_ptr<const FusedLoop> loop_of(const Region& region);

}  // namespace fusion
}  // namespace oar
