// Where a key belongs, and its random numbers. Saved tables depend on these functions: they never change.
#pragma once

#include <cstdint>

namespace oar::parameter_server {

// The finaliser of splitmix64.
inline uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline uint32_t server_of(uint64_t key, uint32_t servers) {
  return static_cast<uint32_t>(scramble(key) % servers);
}
// Independent of the server, so that the keys of one server spread over all stripes.
inline uint32_t stripe_of(uint64_t key, uint32_t stripes) {
  return static_cast<uint32_t>((scramble(~key) >> 32) % stripes);
}

// The i-th random number in [0, 1) of a key.
inline double uniform_of(uint64_t seed, uint64_t key, uint64_t i) {
  const uint64_t bits = scramble(scramble(scramble(seed) ^ key) ^ i);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace oar::parameter_server
