#include "oar/device/device_table.h"

#include <algorithm>
#include <cstring>

#include "oar/device/added_kernels.h"
#include "oar/device/device.h"

namespace oar {
namespace {

// As much of a table as its author knew; the rest is null.
template <class T>
T read_table(const void* table, size_t size) {
  T copy{};
  std::memcpy(&copy, table, std::min(size, sizeof(T)));
  return copy;
}

template <class F, class G>
void set_default(F*& function, G otherwise) {
  if (!function) function = otherwise;
}

// A device whose work is done when a call returns need not say so in nine functions.
oar_device_api with_defaults(oar_device_api api) {
  set_default(api.device_count, [] { return int32_t{1}; });
  set_default(api.query, [](int32_t, int32_t, oar_value*) { return int32_t{OAR_UNSUPPORTED}; });
  set_default(api.copy_peer, [](int32_t, void*, const char*, int32_t, const void*, size_t,
                                oar_stream*) { return int32_t{OAR_UNSUPPORTED}; });
  set_default(api.stream_create, [](int32_t) -> oar_stream* { return nullptr; });
  set_default(api.stream_destroy, [](oar_stream*) {});
  set_default(api.stream_synchronize, [](int32_t, oar_stream*) { return int32_t{OAR_OK}; });
  set_default(api.stream_take_error, [](int32_t, oar_stream*) -> const char* { return nullptr; });
  set_default(api.event_create, [](int32_t) -> oar_event* { return nullptr; });
  set_default(api.event_destroy, [](oar_event*) {});
  set_default(api.event_record, [](oar_event*, oar_stream*) { return int32_t{OAR_OK}; });
  set_default(api.event_query, [](oar_event*) { return int32_t{1}; });
  set_default(api.event_wait, [](oar_event*, oar_stream*) { return int32_t{OAR_OK}; });
  set_default(api.supports, [](const char*, uint32_t) -> const char* { return nullptr; });
  set_default(api.compile_cluster,
              [](int32_t, const oar_cluster_source*, const char** why) -> const oar_cluster* {
                *why = "the device has no compiler";
                return nullptr;
              });
  return api;
}

std::vector<oar_kernel> read_kernels(const oar_device_api& api) {
  std::vector<oar_kernel> list;
  const auto* at = reinterpret_cast<const char*>(api.kernels);
  for (int32_t i = 0; i < api.kernel_count; ++i, at += api.kernel_size)
    list.push_back(read_table<oar_kernel>(at, api.kernel_size));
  return list;
}

}  // namespace

namespace devices {

void check_table(const oar_device_api& table) {
  user_check(
      table.struct_size >= offsetof(oar_device_api, device_count) && table.type_name != nullptr,
      ErrorKind::InvalidArgument,
      "a device's table has no struct_size or no type_name.\nhint: Set struct_size to "
      "sizeof(oar_device_api).");
  user_check(table.abi_version == OAR_ABI_VERSION, ErrorKind::InvalidArgument,
             "the device {} was built for version {} of the device interface; this is version {}."
             "\nhint: Rebuild the plug-in against the headers of this release.",
             table.type_name, table.abi_version, OAR_ABI_VERSION);
  const auto api = read_table<oar_device_api>(&table, table.struct_size);
  user_check(api.allocate && api.free && api.copy, ErrorKind::InvalidArgument,
             "the device {} has no allocate, free or copy.\nhint: These three have no default.",
             api.type_name);
  user_check(
      api.kernel_count == 0 || (api.kernels && api.kernel_size >= offsetof(oar_kernel, context)),
      ErrorKind::InvalidArgument,
      "the device {} has {} kernels of {} bytes.\nhint: Set kernel_size to "
      "sizeof(oar_kernel).",
      api.type_name, api.kernel_count, api.kernel_size);
}

}  // namespace devices

DeviceType::DeviceType(uint8_t id, const oar_device_api& table) : id_(id) {
  const auto known = read_table<oar_device_api>(&table, table.struct_size);
  compiles_clusters_ = known.compile_cluster != nullptr;
  api_ = with_defaults(known);
  kernels_ = read_kernels(known);
}

std::vector<const oar_kernel*> DeviceType::kernels(std::string_view op, uint32_t version) const {
  std::vector<const oar_kernel*> found;
  if (api_.supports(std::string(op).c_str(), version)) return found;
  for (const oar_kernel& k : kernels_)
    if (k.op_version == version && (op == k.op || std::strcmp(k.op, "*") == 0)) found.push_back(&k);
  if (id_ == 0) devices::added_kernels(op, found);
  return found;
}

DeviceProperties DeviceType::properties(int32_t index) const {
  DeviceProperties made;
  made.name = name();
  const auto ask = [&](oar_device_key key, auto&& answer) {
    oar_value value{};
    if (api_.query(index, key, &value) == OAR_OK) answer(value);
  };
  ask(OAR_KEY_NAME,
      [&](const oar_value& v) { made.name.assign(v.string, static_cast<size_t>(v.count)); });
  ask(OAR_KEY_MEMORY_BYTES, [&](const oar_value& v) { made.memory_bytes = v.integer; });
  ask(OAR_KEY_FREE_BYTES, [&](const oar_value& v) { made.free_bytes = v.integer; });
  ask(OAR_KEY_ALIGNMENT, [&](const oar_value& v) { made.alignment = v.integer; });
  ask(OAR_KEY_HOST_READS, [&](const oar_value& v) { made.host_reads = v.integer != 0; });
  ask(OAR_KEY_ASYNCHRONOUS, [&](const oar_value& v) { made.asynchronous = v.integer != 0; });
  return made;
}

}  // namespace oar
