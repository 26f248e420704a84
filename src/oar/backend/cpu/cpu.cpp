// The CPU as a device with the same interface as a plug-in. Its one stream is the calling thread.
#include "oar/backend/cpu/cpu.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "oar/backend/cpu/gen/kernel_lists.h"
#include "oar/backend/cpu/instruction_set.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/device/device.h"
#include "oar/tensor/allocator.h"

namespace oar::cpu {
namespace {

// The names of kernels, in the order in which the candidates for an op are tried.
constexpr std::string_view kOrder[] = {
    "cpu:onednn",    // from a library
    "cpu:avx512",    // loops for an instruction set: see vector_name
    "cpu:avx2",      //
    "cpu:simd",      //
    "cpu:tiles",     // products of 16-bit floats on tiles (AMX or AVX-512)
    "cpu:channels",  // channels that are adjacent
    "cpu:gemm",      // by our own matrix product
    "cpu:lapack",    // factors of matrices: small ones by our own loops, others by LAPACK
    "cpu:blocks",    // attention in blocks that stay in the cache
    "cpu:steps",     // recurrent layers step by step
    "cpu:generic",   // loops that take any dtype and strides
};
size_t place_of(const oar_kernel& kernel) {
  const auto* found = std::find(std::begin(kOrder), std::end(kOrder), kernel.name);
  internal_check(found != std::end(kOrder),
                 "the kernel of {} is called {}, which has no place in the order of cpu.cpp",
                 kernel.op, kernel.name);
  return static_cast<size_t>(found - std::begin(kOrder));
}

const std::vector<oar_kernel>& all_kernels() {
  static const std::vector<oar_kernel> list = [] {
    std::vector<oar_kernel> all;
    for (auto family : kKernelLists)
      for (const oar_kernel& kernel : family())
        if (kernel.run) all.push_back(kernel);
    std::stable_sort(all.begin(), all.end(), [](const oar_kernel& a, const oar_kernel& b) {
      return place_of(a) < place_of(b);
    });
    return all;
  }();
  return list;
}

int32_t query(int32_t, int32_t key, oar_value* value) {
  static constexpr char kName[] = "the host's processor";
  if (key == OAR_KEY_NAME) {
    *value = {OAR_TAG_STRING, static_cast<int32_t>(sizeof kName - 1), {.string = kName}};
    return OAR_OK;
  }
  if (key == OAR_KEY_HOST_READS || key == OAR_KEY_ASYNCHRONOUS) {
    *value = {OAR_TAG_BOOL, 0, {.integer = key == OAR_KEY_HOST_READS ? 1 : 0}};
    return OAR_OK;
  }
  return OAR_UNSUPPORTED;
}

// Work is finished when a call returns, so streams and events have their defaults.
oar_device_api make_api() {
  oar_device_api api{};
  api.struct_size = sizeof(api);
  api.abi_version = OAR_ABI_VERSION;
  api.type_name = "cpu";
  api.query = query;
  api.allocate = [](int32_t, size_t bytes, oar_stream*) { return cpu_allocator::allocate(bytes); };
  api.free = [](int32_t, void* data, size_t bytes, oar_stream*) {
    cpu_allocator::free(data, bytes);
  };
  api.copy = [](int32_t, void* to, const void* from, size_t bytes, oar_copy_kind, oar_stream*) {
    std::memcpy(to, from, bytes);
    return int32_t{OAR_OK};
  };
  api.kernels = all_kernels().data();
  api.kernel_count = static_cast<int32_t>(all_kernels().size());
  api.kernel_size = sizeof(oar_kernel);
  return api;
}

}  // namespace

const char* vector_name() {
#if defined(__x86_64__)
  return use_avx512() ? "cpu:avx512" : "cpu:avx2";
#else
  return "cpu:simd";
#endif
}

bool is_onednn(const oar_kernel& kernel) { return std::string_view(kernel.name) == "cpu:onednn"; }

bool is_everywhere(const oar_kernel& kernel) {
  return !is_onednn(kernel) && std::string_view(kernel.name) != "cpu:tiles";
}

void register_device() {
  static const bool once = [] {
    devices::add(make_api());
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace oar::cpu
