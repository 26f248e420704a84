// Devices in C++: the registry, streams, events, copies, kernels by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/error.h"
#include "oar/device/abi.h"
#include "oar/tensor/value.h"

namespace oar {

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
};

// Turns `void f(KernelCall&)`, which may throw, into the ABI's function.
int32_t report_exception(oar_kernel_call* call);
template <void (*kFunction)(KernelCall&)>
int32_t kernel_entry(oar_kernel_call* call) {
  try {
    kFunction(*static_cast<KernelCall*>(call));
    return OAR_OK;
  } catch (...) {
    return report_exception(call);
  }
}

const oar_host_api& host_api();
// Turns a status and the text given to set_error into an Error.
void check_status(int32_t status, const std::string& text);

class DeviceType {
 public:
  DeviceType(uint8_t id, const oar_device_api& api);
  uint8_t id() const { return id_; }
  const char* name() const { return api_.type_name; }
  int count() const { return api_.device_count(); }
  const oar_device_api& api() const { return api_; }
  // Candidates for an op in order of preference.
  std::vector<const oar_kernel*> kernels(std::string_view op, uint32_t version) const;

 private:
  uint8_t id_;
  oar_device_api api_;
};

namespace devices {
// Adds a device type; the copy of `api` is kept. An InvalidArgument if the name is taken or the
// ABI version differs.
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
// While alive, this thread's tensors are created on the device, whatever is set: tensors that a rule
// creates belong on the device of its operands.
class Scope {
 public:
  explicit Scope(Device device);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  int32_t outer_;
};

void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes, oar_stream* stream = nullptr);
void synchronize(Device device);
// Throws the failure of earlier asynchronous work, if there was one.
void check_asynchronous(Device device, oar_stream* stream = nullptr);
}  // namespace devices

// A queue of work on a device. The default stream is the one without an object.
class Stream {
 public:
  explicit Stream(Device device);
  void synchronize() const;
  Device device() const { return device_; }
  oar_stream* handle() const { return handle_.get(); }

 private:
  Device device_;
  std::shared_ptr<oar_stream> handle_;
};

class Event {
 public:
  explicit Event(Device device);
  void record(const Stream& stream);
  bool reached() const;
  // Later work in the stream starts after this event.
  void wait(const Stream& stream) const;

 private:
  Device device_;
  std::shared_ptr<oar_event> handle_;
};

// The stream of this thread's calls.
oar_stream* current_stream(Device device);
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
};

}  // namespace oar
