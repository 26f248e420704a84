// Hashes of several values. In-memory only: not stable between runs or versions, so never saved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>

#include "oar/base/api.h"

namespace OAR_API oar {

// Mixes fully (the finaliser of splitmix64): std::hash of an integer is the integer itself, and
// shapes are small integers that would otherwise collide.
inline std::uint64_t hash_mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <class T>
void hash_combine(std::size_t& seed, const T& value) {
  seed = hash_mix(seed + 0x9e3779b97f4a7c15ULL + std::hash<T>{}(value));
}

template <class... T>
std::size_t hash_all(const T&... values) {
  std::size_t seed = 0;
  (hash_combine(seed, values), ...);
  return seed;
}

// The length takes part, so that {1}, {2, 3} and {1, 2}, {3} differ when combined.
template <std::ranges::sized_range Range>
std::size_t hash_range(const Range& values) {
  std::size_t seed = std::ranges::size(values);
  for (const auto& value : values) {
    hash_combine(seed, value);
  }
  return seed;
}

}  // namespace oar
