// Roots of unity, correctly rounded but for one case in a thousand.
#pragma once

#include <cstdint>
#include <vector>

namespace oar::cpu::fft {

struct Root {
  long double re, im;
};

// e^(-2 pi i k / n) for one n and many k. A root is the product of a coarse and a fine one, in long double; these come from the
// first eighth of the circle, where sine and cosine are exact to the last bit.
class Roots {
 public:
  explicit Roots(int64_t n);
  Root operator()(int64_t k) const;

 private:
  int64_t n_, step_;
  std::vector<Root> coarse_, fine_;
};

}  // namespace oar::cpu::fft
