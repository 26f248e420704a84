// The asynchronous test device, and the strings by which tests pull it.
#pragma once

#include <dlfcn.h>

#include <string>

#include "oar/base/format.h"
#include "oar/device/stream.h"

namespace oar {

inline std::string plugin_path(const std::string& name) {
  return format("{}/{}.so", OAR_TEST_PLUGINS, name);
}

// Loads the plug-in at first use.
inline Device async_device(int index = 0) {
  static const DeviceType& type = devices::load_plugin(plugin_path("async_device"));
  return {type.id(), static_cast<uint8_t>(index)};
}

// A function that the plug-in exports besides the device interface.
template <class F>
F* async_function(const char* name) {
  async_device();
  static void* library = dlopen(plugin_path("async_device").c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<F*>(dlsym(library, name));
}
inline void async_pause(bool paused) {
  async_function<void(int)>("oar_async_pause")(paused ? 1 : 0);
}
inline void async_fail_next(const char* text) {
  async_function<void(const char*)>("oar_async_fail_next")(text);
}
inline int64_t async_live_blocks() { return async_function<int64_t()>("oar_async_live_blocks")(); }
inline int64_t async_damaged_blocks() {
  return async_function<int64_t()>("oar_async_damaged_blocks")();
}

inline int64_t async_live_plans() { return async_function<int64_t()>("oar_async_live_plans")(); }
inline int64_t async_unknown_streams() {
  return async_function<int64_t()>("oar_async_unknown_streams")();
}
inline int64_t async_peer_copies() { return async_function<int64_t()>("oar_async_peer_copies")(); }

}  // namespace oar
