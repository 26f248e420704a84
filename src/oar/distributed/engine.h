// What the libraries of the engines share. Compiled into each of them.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "oar/distributed/backend.h"

#define OAR_ENGINE_API extern "C" __attribute__((visibility("default")))

namespace oar::distributed {

// `make()`, or null with the reason in *why.
template <class F>
Backend* made_or_why(F&& make, char** why) {
  try {
    return make();
  } catch (const std::exception& e) {
    *why = strdup(e.what());
    return nullptr;
  }
}

inline const std::byte* part(const void* data, size_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}
inline std::byte* part(void* data, size_t offset) { return static_cast<std::byte*>(data) + offset; }

}  // namespace oar::distributed
