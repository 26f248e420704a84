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

void* allocate(int32_t /*index*/, size_t bytes) { return std::malloc(bytes == 0 ? 1 : bytes); }
void release(int32_t /*index*/, void* data, size_t /*bytes*/) { std::free(data); }

int32_t copy(int32_t /*index*/, void* to, const void* from, size_t bytes, oar_copy_kind /*kind*/,
             oar_stream* /*stream*/) {
  std::memcpy(to, from, bytes);
  return OAR_OK;
}

// ---- Streams and events. Work is done when a call returns, so there is nothing to wait for.

oar_stream* stream_create(int32_t /*index*/) { return nullptr; }
void stream_destroy(oar_stream* /*stream*/) {}
int32_t stream_synchronize(int32_t /*index*/, oar_stream* /*stream*/) { return OAR_OK; }
const char* stream_take_error(int32_t /*index*/, oar_stream* /*stream*/) { return nullptr; }
oar_event* event_create(int32_t /*index*/) { return nullptr; }
void event_destroy(oar_event* /*event*/) {}
int32_t event_record(oar_event* /*event*/, oar_stream* /*stream*/) { return OAR_OK; }
int32_t event_query(oar_event* /*event*/) { return 1; }
int32_t event_wait(oar_event* /*event*/, oar_stream* /*stream*/) { return OAR_OK; }

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
    api.abi_version = OAR_ABI_VERSION;
    api.type_name = "null";
    api.device_count = [] { return int32_t{1}; };
    api.describe = [](int32_t) { return "a device that computes nothing"; };
    api.allocate = allocate;
    api.free = release;
    api.copy = copy;
    api.stream_create = stream_create;
    api.stream_destroy = stream_destroy;
    api.stream_synchronize = stream_synchronize;
    api.stream_take_error = stream_take_error;
    api.event_create = event_create;
    api.event_destroy = event_destroy;
    api.event_record = event_record;
    api.event_query = event_query;
    api.event_wait = event_wait;
    api.supports = supports;
    api.kernels = list.data();
    api.kernel_count = static_cast<int32_t>(list.size());
    devices::add(api);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace oar::null
