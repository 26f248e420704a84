// Sizes along the spatial axes of a layer: of its window, its steps, its border.
#pragma once

#include <array>
#include <concepts>
#include <string>

#include "oar/base/api.h"
#include "oar/tensor/dim.h"

namespace OAR_API oar {
namespace nn {

// One number for all axes, or one for each.
template <int N>
class Sizes {
 public:
  Sizes(int64_t all) { values_.fill(all); }  // 3 means (3, 3)
  template <std::convertible_to<int64_t>... T>
    requires(N > 1 && sizeof...(T) == N)
  Sizes(T... each) : values_{static_cast<int64_t>(each)...} {}

  Ints list() const { return values_; }
  int64_t product() const {
    int64_t all = 1;
    for (const int64_t size : values_) all *= size;
    return all;
  }
  int64_t smallest() const {
    int64_t least = values_[0];
    for (const int64_t size : values_) least = size < least ? size : least;
    return least;
  }

 private:
  std::array<int64_t, N> values_;
};
using Size2 = Sizes<2>;

// The border around an image: numbers, or "SAME" or "VALID".
template <int N>
class Padding {
 public:
  Padding(int64_t all) : sizes_(all) {}
  template <std::convertible_to<int64_t>... T>
    requires(N > 1 && sizeof...(T) == N)
  Padding(T... each) : sizes_(each...) {}
  template <size_t L>
  Padding(const char (&name)[L]) : sizes_(0), algorithm_(name) {}

  const Sizes<N>& sizes() const { return sizes_; }
  Ints list() const { return sizes_.list(); }
  const std::string& algorithm() const { return algorithm_; }
  bool is_named() const { return algorithm_ != "EXPLICIT"; }

 private:
  Sizes<N> sizes_;
  std::string algorithm_ = "EXPLICIT";
};

// The order of the axes: channels second, as layers expect by default, or last. (Variables, since GCC 12 crashes on a call in the
// default of a member of options that are written in the default of another member.)
inline constexpr const char* kChannelsFirst[] = {"", "NCL", "NCHW", "NCDHW"};
inline constexpr const char* kChannelsLast[] = {"", "NLC", "NHWC", "NDHWC"};

}  // namespace nn
}  // namespace oar
