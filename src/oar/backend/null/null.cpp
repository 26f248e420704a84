// A device that computes nothing: every op exists, every result is zeros. Planning, compiling and
// shape tests run on it at the speed of memset, and a new backend starts as a copy of this file.
#include "oar/backend/null/null.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include "oar/device/device.h"

namespace oar::null {
namespace {

// ---- Memory. A device with its own memory returns addresses that only it may dereference; the host
// does arithmetic on them (views), never reads them.

void* allocate(int32_t /*index*/, size_t bytes, oar_stream* /*stream*/) {
  constexpr size_t kAlignment = 64;
  return std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
}
void release(int32_t /*index*/, void* data, size_t /*bytes*/, oar_stream* /*stream*/) {
  std::free(data);
}

int32_t copy(int32_t /*index*/, void* to, const void* from, size_t bytes, oar_copy_kind /*kind*/,
             oar_stream* /*stream*/) {
  std::memcpy(to, from, bytes);
  return OAR_OK;
}

// ---- Streams and events. Work is done when a call returns: their functions are left out, which says so.

// ---- What the device is.

int32_t query(int32_t /*index*/, int32_t key, oar_value* value) {
  static constexpr char kName[] = "a device that computes nothing";
  switch (key) {
    case OAR_KEY_NAME:
      *value = {OAR_TAG_STRING, sizeof(kName) - 1, {.string = kName}};
      return OAR_OK;
    case OAR_KEY_ASYNCHRONOUS:
      *value = {OAR_TAG_BOOL, 0, {.integer = 0}};
      return OAR_OK;
    default:
      return OAR_UNSUPPORTED;
  }
}

// ---- Kernels.

void clear(const oar_tensor& t) {
  if (t.numel > 0)
    std::memset(t.data, 0, static_cast<size_t>(byte_count(t.numel, static_cast<DType>(t.dtype))));
}

// Outputs are contiguous and allocated, unless their size depends on the data: then `data` is
// null and the kernel sets their size. This one sets 0.
void zeros(KernelCall& call) {
  for (int32_t i = 0; i < call.output_count; ++i) {
    oar_tensor& out = call.out(i);
    if (static_cast<Kind>(out.kind) == Kind::Meta) {
      SmallVector<int64_t, 6> shape;
      for (int axis = 0; axis < out.ndim; ++axis)
        shape.push_back(Dim::from_word(out.shape[axis]).is_known() && axis > 0 ? out.shape[axis]
                                                                               : 0);
      clear(call.allocate(i, {shape.data(), shape.size()}));
    } else {
      clear(out);
    }
  }
}

// Called once per op. Null means yes.
const char* supports(const char* op, uint32_t /*version*/) {
  return std::strcmp(op, "copy_to_device") == 0 ? "the host moves tensors between devices"
                                                : nullptr;
}

// A real device lists the ops it knows by name, several candidates for one op in order of preference.
// "*" is for tools: it matches every op of the version.
constexpr size_t kVersions = 8;
std::array<oar_kernel, kVersions> kernels() {
  std::array<oar_kernel, kVersions> list;
  for (uint32_t i = 0; i < kVersions; ++i)
    list[i] = {"*", i + 1, "null:zeros", nullptr, kernel_entry<zeros>};
  return list;
}

}  // namespace

void register_device() {
  static const std::array<oar_kernel, kVersions> list = kernels();
  static const bool once = [] {
    oar_device_api api{};
    api.struct_size = sizeof(api);
    api.abi_version = OAR_ABI_VERSION;
    api.type_name = "null";
    api.query = query;
    api.allocate = allocate;
    api.free = release;
    api.copy = copy;
    api.supports = supports;
    api.kernels = list.data();
    api.kernel_count = static_cast<int32_t>(list.size());
    api.kernel_size = sizeof(oar_kernel);
    devices::add(api);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace oar::null
