// Random arguments for ops: a sample of the op's record, changed in a few places.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "oar/ops/core/registry.h"

namespace fuzz {

class Random {
 public:
  Random(uint64_t seed, uint64_t number) : engine_(seed * 0x9E3779B97F4A7C15ull + number) {}
  uint64_t word() { return engine_(); }
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(engine_() % n); }
  bool chance(double p) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < p; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 engine_;
};

oar::DType random_dtype(Random& random);
oar::Shape random_shape(Random& random);
// Numbers that are zero, small, ordinary or extreme, in memory of exactly the tensor's size, which may
// be transposed, strided or broadcast.
oar::Tensor random_tensor(Random& random, const oar::Shape& shape, oar::DType dtype);

// Ops that can be called with random arguments: those without regions.
const std::vector<const oar::Op*>& callable_ops();

// Arguments of a call of the op.
oar::Frame random_call(Random& random, const oar::Op& op);
// "add(float32[2, 3], None, axis=4)"
std::string describe_call(const oar::Op& op, oar::Args args);

// The number, list, string or dtype of one parameter, changed.
void change_attribute(Random& random, const oar::Op& op, oar::Frame& frame, size_t parameter);

int64_t random_integer(Random& random);

}  // namespace fuzz
