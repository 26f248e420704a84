// Devices in C++: the registry, copies, kernels by name. stream.h has streams and events.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/error.h"
#include "oar/device/abi.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

// A kernel call as kernels written in C++ see it. Nothing is added: only typed access.
class KernelCall : public oar_kernel_call {
 public:
  const Value& arg(int i) const { return static_cast<const Value&>(inputs[i]); }
  const oar_tensor& in(int i) const { return *inputs[i].tensor; }
  bool has(int i) const { return inputs[i].tag != OAR_TAG_NONE; }
  oar_tensor& out(int i = 0) const { return *outputs[i]; }
  DType dtype(int i = 0) const { return static_cast<DType>(in(i).dtype); }
  oar_tensor& allocate(int i, Ints shape);
  void reserve_random(uint64_t count, uint64_t* seed, uint64_t* offset) {
    api->next_random(this, count, seed, offset);
  }
  bool is_unchanged(int i) const { return (unchanged >> i & 1) != 0; }
  // What the kernel's own `prepare` made.
  template <class P>
  P& plan_as() const {
    return *reinterpret_cast<P*>(plan);
  }
};

// Turns `void f(KernelCall&)`, which may throw, into the ABI's function.
int32_t report_exception();
template <void (*kFunction)(KernelCall&)>
int32_t kernel_entry(oar_kernel_call* call) {
  try {
    kFunction(*static_cast<KernelCall*>(call));
    return OAR_OK;
  } catch (...) {
    return report_exception();
  }
}

// … and `std::unique_ptr<P> f(const KernelCall&)` into `prepare`, with the function that destroys the plan.
template <auto kMake>
int32_t prepare_entry(const oar_kernel_call* call, oar_plan** plan) {
  try {
    *plan = reinterpret_cast<oar_plan*>(kMake(*static_cast<const KernelCall*>(call)).release());
    return OAR_OK;
  } catch (...) {
    return report_exception();
  }
}
template <class P>
void destroy_entry(void* /*context*/, oar_plan* plan) {
  delete reinterpret_cast<P*>(plan);
}

// A plan, destroyed by the kernel that prepared it. A kernel without `prepare` has none: it is null.
struct PlanDeleter {
  const oar_kernel* kernel = nullptr;
  void operator()(oar_plan* plan) const;
};
using PlanPtr = std::unique_ptr<oar_plan, PlanDeleter>;
PlanPtr prepare_plan(const oar_kernel& kernel, const oar_kernel_call& call);

const oar_host_api& host_api();
// Turns a status and the text given to set_error into an Error.
void check_status(int32_t status, const std::string& text);

// What a device says of itself.
struct DeviceProperties {
  std::string name;
  int64_t memory_bytes = 0, free_bytes = 0;  // 0: not known
  int64_t alignment = 64;                    // of every buffer
  bool host_reads = false;                   // its memory, once the stream is synchronised
  bool asynchronous = true;                  // work goes on after a call has returned
};

class DeviceType {
 public:
  // Copies what the table has; functions that it leaves out get their defaults.
  DeviceType(uint8_t id, const oar_device_api& table);
  uint8_t id() const { return id_; }
  const char* name() const { return api_.type_name; }
  int count() const { return api_.device_count(); }
  // No function is null.
  const oar_device_api& api() const { return api_; }
  // Candidates for an op in order of preference.
  std::vector<const oar_kernel*> kernels(std::string_view op, uint32_t version) const;
  DeviceProperties properties(int32_t index) const;
  bool compiles_clusters() const { return compiles_clusters_; }

 private:
  uint8_t id_;
  bool compiles_clusters_;
  oar_device_api api_;
  std::vector<oar_kernel> kernels_;
};

namespace devices {
// Adds a device type; its table is copied. An InvalidArgument where the name is taken, the ABI version differs or what
// no device can do without is missing.
const DeviceType& add(const oar_device_api& api);
// Loads a plug-in library and adds what it offers.
const DeviceType& load_plugin(const std::string& path);
const DeviceType& type(uint8_t id);
const DeviceType* find(std::string_view name);
std::vector<const DeviceType*> all();
// Counts registrations, so that caches of kernels notice a new device.
uint32_t generation();

// "cpu", "npu:1". The device of new tensors.
Device parse(std::string_view text);
std::string to_string(Device device);
Device current();
void set_current(Device device);
DeviceProperties properties(Device device);
// While alive, this thread creates tensors on the device, whatever `set_current` says: a tensor that a rule creates
// must be on the device of its operands.
class Scope {
 public:
  explicit Scope(Device device);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  int32_t outer_;
};

// `stream` belongs to the device that is not the CPU; of two, to the one that is copied to. A copy to the CPU is done when
// it returns. Between two devices: directly where the one copied to can, otherwise through the host.
void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes, oar_stream* stream = nullptr);
// Waits for this thread's stream; throws the failure of its earlier work, if there was one.
void synchronize(Device device);
void check_asynchronous(Device device, oar_stream* stream = nullptr);
}  // namespace devices

// The stream that calls of this thread go to.
oar_stream* current_stream(Device device);

}  // namespace oar
