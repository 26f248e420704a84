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

struct FusedLoop : RegionCode {
  // At the lie of each port when all inputs are contiguous; a call may have others.
  Kernel kernel;
  Shape domain;       // the elements of the loop
  size_t folded = 0;  // the last axes of the domain that folds join
  std::vector<Source> sources;
  std::vector<Shape> made;  // of the outputs

  int64_t rows() const;  // numbers of a fold
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
};

// Are all elements the same, to the bit? Looks at no more than 64 Ki of them.
bool is_one_number(const Tensor& t);

// Null where the region cannot be a loop; `why` says so.
std::shared_ptr<const FusedLoop> loop_of(const Program& region, std::string* why = nullptr);
// The region's own, made at the first call.
std::shared_ptr<const FusedLoop> loop_of(const Region& region);

}  // namespace fusion
}  // namespace oar
