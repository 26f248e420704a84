#include "oar/device/stream.h"

#include <cstring>
#include <vector>

#include "oar/tensor/hooks.h"

namespace oar {
namespace {

// Nothing to destroy: memory may be freed while a thread ends.
thread_local const StreamScope* t_scope = nullptr;

const StreamScope* scope_of(Device device) {
  for (const StreamScope* scope = t_scope; scope; scope = scope->outer())
    if (scope->stream().device() == device) return scope;
  return nullptr;
}

const oar_device_api& api_of(Device device) { return devices::type(device.type).api(); }

void flush_queued_calls() {
  if (const QueueHooks* hooks = queue_hooks()) hooks->before_wait();
}

void wait_for(Device device, oar_stream* stream) {
  flush_queued_calls();
  check_status(api_of(device).stream_synchronize(device.index, stream), {});
  devices::check_asynchronous(device, stream);
}

// The streams of two devices know nothing of each other, so the one that is copied from is waited for.
void copy_between(Device to_device, void* to, Device from_device, const void* from, size_t bytes,
                  oar_stream* stream) {
  devices::synchronize(from_device);
  const oar_device_api& target = api_of(to_device);
  const DeviceType& source = devices::type(from_device.type);
  const int32_t status =
      target.copy_peer(to_device.index, to, source.name(), from_device.index, from, bytes, stream);
  if (status != OAR_UNSUPPORTED) {
    check_status(status, {});
    // Devices of one type see to it that memory outlives the work of both; others do not know each other.
    if (to_device.type != from_device.type) wait_for(to_device, stream);
    return;
  }
  if (source.properties(from_device.index).host_reads)
    return check_status(target.copy(to_device.index, to, from, bytes, OAR_HOST_TO_DEVICE, stream),
                        {});
  std::vector<char> staged(bytes);
  devices::copy(Device{}, staged.data(), from_device, from, bytes, current_stream(from_device));
  devices::copy(to_device, to, Device{}, staged.data(), bytes, stream);
}

}  // namespace

namespace devices {

void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes, oar_stream* stream) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu()) {
    std::memcpy(to, from, bytes);
    return;
  }
  if (!to_device.is_cpu() && !from_device.is_cpu() && to_device != from_device)
    return copy_between(to_device, to, from_device, from, bytes, stream);
  const Device& there = to_device.is_cpu() ? from_device : to_device;
  const oar_copy_kind kind = to_device.is_cpu()     ? OAR_DEVICE_TO_HOST
                             : from_device.is_cpu() ? OAR_HOST_TO_DEVICE
                                                    : OAR_DEVICE_TO_DEVICE;
  check_status(api_of(there).copy(there.index, to, from, bytes, kind, stream), {});
  if (to_device.is_cpu()) {  // the caller reads at once
    check_status(api_of(there).stream_synchronize(there.index, stream), {});
    check_asynchronous(there, stream);
  }
}

void synchronize(Device device) { wait_for(device, current_stream(device)); }

void check_asynchronous(Device device, oar_stream* stream) {
  if (device.is_cpu()) return;
  if (const char* text = api_of(device).stream_take_error(device.index, stream))
    fail(ErrorKind::Runtime, "earlier work on {} failed: {}", to_string(device), text);
}

}  // namespace devices

// Whoever has used the stream is done with it before another one gets its handle.
Stream::Stream(Device device)
    : device_(device), handle_(api_of(device).stream_create(device.index), [device](oar_stream* s) {
        if (!s) return;
        api_of(device).stream_synchronize(device.index, s);
        api_of(device).stream_destroy(s);
      }) {}

Stream Stream::current(Device device) {
  const StreamScope* scope = scope_of(device);
  return scope ? scope->stream() : Stream(device, nullptr);
}

void Stream::synchronize() const { wait_for(device_, handle_.get()); }

Event::Event(Device device)
    : device_(device),
      handle_(api_of(device).event_create(device.index), api_of(device).event_destroy) {}

void Event::record(const Stream& stream) {
  flush_queued_calls();
  check_status(api_of(device_).event_record(handle_.get(), stream.handle()), {});
}

bool Event::reached() const { return api_of(device_).event_query(handle_.get()) == 1; }

void Event::wait(const Stream& stream) const {
  flush_queued_calls();
  check_status(api_of(device_).event_wait(handle_.get(), stream.handle()), {});
}

oar_stream* current_stream(Device device) {
  const StreamScope* scope = scope_of(device);
  return scope ? scope->stream().handle() : nullptr;
}

StreamScope::StreamScope(Stream stream) : stream_(std::move(stream)), outer_(t_scope) {
  t_scope = this;
}
StreamScope::~StreamScope() { t_scope = outer_; }

}  // namespace oar
