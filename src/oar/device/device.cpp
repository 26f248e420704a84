#include "oar/device/device.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "oar/base/fork_mutex.h"
#include "oar/base/parallel.h"
#include "oar/base/string_util.h"
#include "oar/device/added_kernels.h"
#include "oar/device/generator.h"

namespace oar {
namespace {

// What `oar_kernel_call::host` points to begins with this.
thread_local std::string t_error_text;

void set_error(oar_kernel_call*, const char* text) { t_error_text = text ? text : ""; }

oar_tensor* allocate_output(oar_kernel_call* call, int32_t index, int32_t ndim,
                            const int64_t* shape) {
  try {
    auto* impl = static_cast<TensorImpl*>(call->outputs[index]);
    Tensor fresh =
        Tensor::empty(as_dims({shape, static_cast<size_t>(ndim)}), static_cast<DType>(impl->dtype),
                      {impl->device_type, impl->device_index});
    impl->become(*fresh.impl());
    return impl;
  } catch (...) {
    report_exception(call);
    return nullptr;
  }
}

void next_random(oar_kernel_call* call, uint64_t count, uint64_t* seed, uint64_t* offset) {
  const oar_tensor& drawn = *call->outputs[0];
  const RandomState start = generator::reserve(count, {drawn.device_type, drawn.device_index});
  *seed = start.seed;
  *offset = start.offset;
}

void host_parallel_for(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t),
                       void* context) {
  parallel_for(0, n, grain, [&](int64_t begin, int64_t end) { body(context, begin, end); });
}

constexpr oar_host_api kHost = {OAR_ABI_VERSION, set_error, allocate_output, next_random,
                                host_parallel_for};

ErrorKind kind_of(int32_t status) {
  switch (status) {
    case OAR_INVALID_ARGUMENT:
      return ErrorKind::InvalidArgument;
    case OAR_OUT_OF_MEMORY:
      return ErrorKind::OutOfMemory;
    case OAR_UNSUPPORTED:
      return ErrorKind::Unsupported;
    case OAR_INDEX_OUT_OF_RANGE:
      return ErrorKind::OutOfRange;
    default:
      return ErrorKind::Runtime;
  }
}

struct Registry {
  ForkMutex mutex;
  std::vector<std::unique_ptr<DeviceType>> types;
  std::atomic<uint32_t> generation{0};
  // Never removed: kernels point into the texts.
  std::vector<std::unique_ptr<std::pair<devices::AddedKernel, oar_kernel>>> added;
};
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

std::atomic<uint16_t> g_current{0};
thread_local int32_t t_scope = -1;  // a packed device, or none
thread_local std::vector<std::pair<Device, oar_stream*>> t_streams;

void* allocate_on(size_t bytes, Device device) {
  const DeviceType& type = devices::type(device.type);
  void* data = type.api().allocate(device.index, bytes);
  user_check(data || bytes == 0, ErrorKind::OutOfMemory, "{} cannot allocate {} bytes.",
             devices::to_string(device), bytes);
  return data;
}

void free_on(void* data, size_t bytes, Device device) {
  devices::type(device.type).api().free(device.index, data, bytes);
}

}  // namespace

const oar_host_api& host_api() { return kHost; }

int32_t report_exception(oar_kernel_call*) {
  try {
    throw;
  } catch (const Error& error) {
    t_error_text = error.text() + (error.hint().empty() ? "" : "\nhint: " + error.hint());
    switch (error.kind()) {
      case ErrorKind::InvalidArgument:
      case ErrorKind::InvalidType:  // the interface has no word for it
        return OAR_INVALID_ARGUMENT;
      case ErrorKind::OutOfMemory:
        return OAR_OUT_OF_MEMORY;
      case ErrorKind::Unsupported:
        return OAR_UNSUPPORTED;
      case ErrorKind::OutOfRange:
        return OAR_INDEX_OUT_OF_RANGE;
      default:
        return OAR_FAILED;
    }
  } catch (const std::bad_alloc&) {
    t_error_text = "the system has no memory left.";
    return OAR_OUT_OF_MEMORY;
  } catch (const std::length_error&) {
    t_error_text = "the call needs more memory than can be addressed.";
    return OAR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    t_error_text = error.what();
    return OAR_FAILED;
  } catch (...) {
    t_error_text = "the kernel threw something that is not a std::exception.";
    return OAR_FAILED;
  }
}

void check_status(int32_t status, const std::string& text) {
  if (status == OAR_OK) [[likely]]
    return;
  std::string message = text.empty() ? std::exchange(t_error_text, {}) : text;
  fail(kind_of(status), "{}", message.empty() ? "the device reported a failure." : message);
}

oar_tensor& KernelCall::allocate(int i, Ints shape) {
  oar_tensor* made =
      api->allocate_output(this, i, static_cast<int32_t>(shape.size()), shape.data());
  user_check(made != nullptr, ErrorKind::OutOfMemory, "{}", t_error_text);
  return *made;
}

DeviceType::DeviceType(uint8_t id, const oar_device_api& api) : id_(id), api_(api) {}

std::vector<const oar_kernel*> DeviceType::kernels(std::string_view op, uint32_t version) const {
  std::vector<const oar_kernel*> found;
  if (api_.supports && api_.supports(std::string(op).c_str(), version)) return found;
  for (int32_t i = 0; i < api_.kernel_count; ++i) {
    const oar_kernel& k = api_.kernels[i];
    if (k.op_version == version && (op == k.op || std::strcmp(k.op, "*") == 0)) found.push_back(&k);
  }
  if (id_ != 0) return found;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (const auto& added : r.added)
    if (op == added->first.op) found.push_back(&added->second);
  return found;
}

namespace devices {

const DeviceType& add(const oar_device_api& api) {
  user_check(api.abi_version == OAR_ABI_VERSION, ErrorKind::InvalidArgument,
             "the device {} was built for version {} of the device interface; this is version {}."
             "\nhint: Rebuild the plug-in against the headers of this release.",
             api.type_name, api.abi_version, OAR_ABI_VERSION);
  user_check(find(api.type_name) == nullptr, ErrorKind::InvalidArgument,
             "a device called {} is registered already.", api.type_name);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  user_check(r.types.size() < 255, ErrorKind::InvalidArgument, "there are too many device types.");
  const auto id = static_cast<uint8_t>(r.types.size());
  r.types.push_back(std::make_unique<DeviceType>(id, api));
  if (id != 0) set_memory_source(id, {allocate_on, free_on});
  r.generation.fetch_add(1);
  return *r.types.back();
}

void add_kernel(AddedKernel kernel) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto& added = *r.added.emplace_back(
      std::make_unique<std::pair<AddedKernel, oar_kernel>>(std::move(kernel), oar_kernel{}));
  const AddedKernel& k = added.first;
  added.second = {k.op.c_str(), 1, k.name.c_str(), k.accepts, k.run};
  r.generation.fetch_add(1);
}

const DeviceType& load_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  user_check(library != nullptr, ErrorKind::NotFound, "the plug-in cannot be loaded: {}.",
             library ? "" : dlerror());
  auto init = reinterpret_cast<oar_plugin_init_fn>(dlsym(library, OAR_PLUGIN_INIT));
  user_check(init != nullptr, ErrorKind::InvalidArgument,
             "{} is not a device plug-in: it does not export {}.", path, OAR_PLUGIN_INIT);
  oar_device_api api{};
  const int32_t status = init(&kHost, &api);
  user_check(status == 0, ErrorKind::Runtime, "the plug-in {} refused to start (status {}).", path,
             status);
  return add(api);
}

const DeviceType& type(uint8_t id) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  internal_check(id < r.types.size(), "device type {} is not registered", id);
  return *r.types[id];
}

const DeviceType* find(std::string_view name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (const auto& type : r.types)
    if (name == type->name()) return type.get();
  return nullptr;
}

std::vector<const DeviceType*> all() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<const DeviceType*> types;
  for (const auto& type : r.types) types.push_back(type.get());
  return types;
}

uint32_t generation() { return registry().generation.load(std::memory_order_acquire); }

Device parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string name(text.substr(0, colon));
  const DeviceType* type = find(name);
  if (!type) {
    std::string known;
    for (const DeviceType* t : all()) known += (known.empty() ? "" : ", ") + std::string(t->name());
    fail(ErrorKind::InvalidArgument,
         "there is no device '{}'.\nhint: Known devices: {}. A plug-in adds others.", text, known);
  }
  int index = 0;
  if (colon != std::string_view::npos) {
    const std::string digits(text.substr(colon + 1));
    user_check(!digits.empty() && digits.size() < 4 &&
                   digits.find_first_not_of("0123456789") == std::string::npos,
               ErrorKind::InvalidArgument, "'{}' does not name a device; write it as '{}:0'.", text,
               name);
    index = std::stoi(digits);
  }
  user_check(index < type->count(), ErrorKind::InvalidArgument,
             "there are {} devices of type {}, so '{}' does not exist.", type->count(), name, text);
  return {type->id(), static_cast<uint8_t>(index)};
}

std::string to_string(Device device) {
  const DeviceType& t = type(device.type);
  return device.is_cpu() ? t.name() : format("{}:{}", t.name(), device.index);
}

Device current() {
  const int32_t scope = t_scope;
  const auto packed =
      scope >= 0 ? static_cast<uint16_t>(scope) : g_current.load(std::memory_order_relaxed);
  return {static_cast<uint8_t>(packed >> 8), static_cast<uint8_t>(packed)};
}

void set_current(Device device) {
  g_current.store(static_cast<uint16_t>(device.type << 8 | device.index));
}

Scope::Scope(Device device) : outer_(t_scope) { t_scope = device.type << 8 | device.index; }
Scope::~Scope() { t_scope = outer_; }

void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes, oar_stream* stream) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const Device& there = to_device.is_cpu() ? from_device : to_device;
  const oar_copy_kind kind = to_device.is_cpu()     ? OAR_DEVICE_TO_HOST
                             : from_device.is_cpu() ? OAR_HOST_TO_DEVICE
                                                    : OAR_DEVICE_TO_DEVICE;
  const DeviceType& t = type(there.type);
  check_status(t.api().copy(there.index, to, from, bytes, kind, stream), {});
  if (to_device.is_cpu()) {  // the caller reads at once
    check_status(t.api().stream_synchronize(there.index, stream), {});
    check_asynchronous(there, stream);
  }
}

void synchronize(Device device) {
  const DeviceType& t = type(device.type);
  oar_stream* stream = current_stream(device);
  check_status(t.api().stream_synchronize(device.index, stream), {});
  check_asynchronous(device, stream);
}

void check_asynchronous(Device device, oar_stream* stream) {
  if (device.is_cpu()) return;
  if (const char* text = type(device.type).api().stream_take_error(device.index, stream))
    fail(ErrorKind::Runtime, "earlier work on {} failed: {}", to_string(device), text);
}

}  // namespace devices

Stream::Stream(Device device) : device_(device) {
  const oar_device_api& api = devices::type(device.type).api();
  handle_ = std::shared_ptr<oar_stream>(api.stream_create(device.index), api.stream_destroy);
}

void Stream::synchronize() const {
  check_status(devices::type(device_.type).api().stream_synchronize(device_.index, handle_.get()),
               {});
  devices::check_asynchronous(device_, handle_.get());
}

Event::Event(Device device) : device_(device) {
  const oar_device_api& api = devices::type(device.type).api();
  handle_ = std::shared_ptr<oar_event>(api.event_create(device.index), api.event_destroy);
}

void Event::record(const Stream& stream) {
  check_status(devices::type(device_.type).api().event_record(handle_.get(), stream.handle()), {});
}

bool Event::reached() const {
  return devices::type(device_.type).api().event_query(handle_.get()) == 1;
}

void Event::wait(const Stream& stream) const {
  check_status(devices::type(device_.type).api().event_wait(handle_.get(), stream.handle()), {});
}

oar_stream* current_stream(Device device) {
  for (auto it = t_streams.rbegin(); it != t_streams.rend(); ++it)
    if (it->first == device) return it->second;
  return nullptr;
}

StreamScope::StreamScope(const Stream& stream) {
  t_streams.emplace_back(stream.device(), stream.handle());
}
StreamScope::~StreamScope() { t_streams.pop_back(); }

}  // namespace oar
