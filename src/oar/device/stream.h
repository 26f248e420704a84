// Streams and events: the order of work on a device.
#pragma once

#include <memory>

#include "oar/base/api.h"
#include "oar/device/device.h"

namespace OAR_API oar {

// A queue of work on a device. Copies share it.
class Stream {
 public:
  explicit Stream(Device device);
  // The one that this thread's calls go to: that of the innermost StreamScope, or the default one.
  static Stream current(Device device);

  void synchronize() const;
  Device device() const { return device_; }
  oar_stream* handle() const { return handle_.get(); }  // null: the default stream

 private:
  Stream(Device device, std::shared_ptr<oar_stream> handle)
      : device_(device), handle_(std::move(handle)) {}

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

// While alive, calls of this thread on the stream's device go to the stream.
class StreamScope {
 public:
  explicit StreamScope(Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

  const Stream& stream() const { return stream_; }
  const StreamScope* outer() const { return outer_; }

 private:
  const Stream stream_;
  const StreamScope* const outer_;
};

}  // namespace oar
