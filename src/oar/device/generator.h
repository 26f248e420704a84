// Random streams: Philox4x32-10, counter based. A number depends on the seed, the position in the stream and the
// element's index in the whole tensor, never on threads, on the instruction set or on how the tensor is cut.
//
// Each device has its own stream, so that devices that run the pieces of one program draw at the same
// positions. `seed` resets all of them. A call takes its position in the stream when it is launched.
#pragma once

#include <array>
#include <cstdint>

#include "oar/base/api.h"
#include "oar/base/small_vector.h"
#include "oar/tensor/storage.h"

namespace OAR_API oar {

struct RandomState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in blocks of four 32-bit numbers
  bool operator==(const RandomState&) const = default;
};

namespace generator {
void seed(uint64_t value);
RandomState state(Device device = {});
void set_state(RandomState state, Device device = {});
// Takes the next blocks that hold `numbers` 32-bit numbers; returns where they start.
RandomState reserve(uint64_t numbers, Device device = {});

// The positions of all devices' streams, to restore after an attempt.
class Places {
 public:
  Places();  // as they are now
  void restore() const;
  bool operator==(const Places& other) const { return states_ == other.states_; }

 private:
  SmallVector<RandomState, 2> states_;
};

// While alive, this thread has its own stream for every device, and the shared streams do not
// advance.
class Detour {
 public:
  explicit Detour(RandomState start);
  ~Detour();
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

 private:
  RandomState own_;
  RandomState* const outer_;
};
}  // namespace generator

// Four 32-bit numbers at a position of the stream (Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", 2011).
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t offset) {
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  std::array<uint32_t, 4> c{static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32), 0,
                            0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return c;
}

}  // namespace oar
