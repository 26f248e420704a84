// Plans of transforms by length, kept for the next call. Safe with threads.
#pragma once

#include <cstdint>
#include <memory>

#include "oar/backend/cpu/fft/line.h"
#include "oar/backend/cpu/fft/passes.h"

namespace oar::cpu::fft {

// Roots for the first and the last step of a transform of n real numbers as one of n / 2 complex ones: e^(-2 pi i k / n) for
// k <= n / 4, as pairs, with room for one more packet.
template <class T>
class HalfRoots {
 public:
  explicit HalfRoots(int64_t n);
  const T* data() const { return roots_.data(); }
  size_t bytes() const { return roots_.size() * sizeof(T); }

 private:
  std::vector<T> roots_;
};
extern template class HalfRoots<float>;
extern template class HalfRoots<double>;

// Plan is Passes, Line or HalfRoots of float or double.
template <class Plan>
std::shared_ptr<const Plan> plan_for(int64_t n);

}  // namespace oar::cpu::fft
