#include "oar/device/device.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>

#include "oar/base/fork_mutex.h"
#include "oar/base/parallel.h"
#include "oar/base/string_util.h"
#include "oar/device/added_kernels.h"
#include "oar/device/device_table.h"
#include "oar/device/generator.h"

namespace oar {
namespace {

// Why the device's function that this thread is in fails.
thread_local std::string t_error_text;

void set_error(const char* text) { t_error_text = text ? text : ""; }

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
    report_exception();
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

constexpr oar_host_api kHost = {sizeof(oar_host_api), OAR_ABI_VERSION,  sizeof(oar_kernel_call),
                                sizeof(oar_tensor),   set_error,        allocate_output,
                                next_random,          host_parallel_for};

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

constexpr size_t kMostTypes = 255;

struct KnownDevices {
  ForkMutex mutex;                                                 // of additions
  std::array<std::atomic<const DeviceType*>, kMostTypes> types{};  // never removed
  std::atomic<size_t> type_count{0};
  std::atomic<uint32_t> generation{0};
  // Never removed: kernels point into the texts.
  std::vector<std::unique_ptr<std::pair<devices::AddedKernel, oar_kernel>>> added;
};
KnownDevices& known_devices() {
  static KnownDevices* instance = new KnownDevices;
  return *instance;
}

std::atomic<uint16_t> g_current{0};
thread_local int32_t t_scope = -1;  // a packed device, or none

void* allocate_on(size_t bytes, Device device) {
  const DeviceType& type = devices::type(device.type);
  void* data = type.api().allocate(device.index, bytes, current_stream(device));
  user_check(data || bytes == 0, ErrorKind::OutOfMemory, "{} cannot allocate {} bytes.",
             devices::to_string(device), bytes);
  return data;
}

void free_on(void* data, size_t bytes, Device device) {
  devices::type(device.type).api().free(device.index, data, bytes, current_stream(device));
}

}  // namespace

const oar_host_api& host_api() { return kHost; }

int32_t report_exception() {
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

void PlanDeleter::operator()(oar_plan* plan) const {
  if (kernel->destroy_plan) kernel->destroy_plan(kernel->context, plan);
}

PlanPtr prepare_plan(const oar_kernel& kernel, const oar_kernel_call& call) {
  if (!kernel.prepare) return PlanPtr(nullptr, PlanDeleter{&kernel});
  oar_plan* made = nullptr;
  check_status(kernel.prepare(&call, &made), {});
  return PlanPtr(made, PlanDeleter{&kernel});
}

namespace devices {

const DeviceType& add(const oar_device_api& api) {
  check_table(api);
  KnownDevices& r = known_devices();
  std::lock_guard lock(r.mutex);
  user_check(find(api.type_name) == nullptr, ErrorKind::InvalidArgument,
             "a device called {} is registered already.", api.type_name);
  const size_t count = r.type_count.load();
  user_check(count < kMostTypes, ErrorKind::InvalidArgument, "there are too many device types.");
  const auto id = static_cast<uint8_t>(count);
  const auto* made = new DeviceType(id, api);  // as long as the process: tensors may outlive main
  if (id != 0) set_memory_source(id, {allocate_on, free_on});
  r.types[count].store(made, std::memory_order_release);
  r.type_count.store(count + 1, std::memory_order_release);
  r.generation.fetch_add(1);
  return *made;
}

void add_kernel(AddedKernel kernel) {
  KnownDevices& r = known_devices();
  std::lock_guard lock(r.mutex);
  auto& added = *r.added.emplace_back(
      std::make_unique<std::pair<AddedKernel, oar_kernel>>(std::move(kernel), oar_kernel{}));
  const AddedKernel& k = added.first;
  added.second = {k.op.c_str(), 1,       k.name.c_str(), k.accepts,
                  k.run,        nullptr, k.prepare,      k.destroy_plan};
  r.generation.fetch_add(1);
}

void added_kernels(std::string_view op, std::vector<const oar_kernel*>& to) {
  KnownDevices& r = known_devices();
  std::lock_guard lock(r.mutex);
  for (const auto& added : r.added)
    if (op == added->first.op) to.push_back(&added->second);
}

const DeviceType& load_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  user_check(library != nullptr, ErrorKind::NotFound, "the plug-in cannot be loaded: {}.",
             library ? "" : dlerror());
  auto init = reinterpret_cast<oar_device_init_fn>(dlsym(library, OAR_DEVICE_INIT));
  user_check(
      init != nullptr || dlsym(library, "oar_plugin_init") == nullptr, ErrorKind::InvalidArgument,
      "{} was built for version 1 of the device interface; this is version {}.\nhint: Rebuild it "
      "against oar/device/abi.h of this release. The page 'Adding a device' lists the changes "
      "since version 1.",
      path, OAR_ABI_VERSION);
  user_check(init != nullptr, ErrorKind::InvalidArgument,
             "{} is not a device plug-in: it does not export {}.", path, OAR_DEVICE_INIT);
  const char* why = nullptr;
  const oar_device_api* api = init(&kHost, &why);
  user_check(api != nullptr, ErrorKind::Runtime, "the plug-in {} refused to start: {}.", path,
             why ? why : "it gave no reason");
  return add(*api);
}

const DeviceType& type(uint8_t id) {
  const KnownDevices& r = known_devices();
  const DeviceType* found = id < kMostTypes ? r.types[id].load(std::memory_order_acquire) : nullptr;
  internal_check(found != nullptr, "device type {} is not registered", id);
  return *found;
}

std::vector<const DeviceType*> all() {
  const KnownDevices& r = known_devices();
  std::vector<const DeviceType*> types(r.type_count.load(std::memory_order_acquire));
  for (size_t i = 0; i < types.size(); ++i) types[i] = r.types[i].load(std::memory_order_acquire);
  return types;
}

const DeviceType* find(std::string_view name) {
  for (const DeviceType* type : all())
    if (name == type->name()) return type;
  return nullptr;
}

uint32_t generation() { return known_devices().generation.load(std::memory_order_acquire); }

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

DeviceProperties properties(Device device) { return type(device.type).properties(device.index); }

}  // namespace devices
}  // namespace oar
