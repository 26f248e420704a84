// The device that a program runs on: that of the tensors of a run.
#pragma once

#include <optional>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// The device of some tensors. Numbers of the CPU, which have no axes, go along with tensors of any device.
class DeviceOfTensors {
 public:
  void add(const Tensor& t) {
    if (t.device().is_cpu())
      cpu_ |= t.rank() > 0;
    else
      add_other(t.device());
  }
  // Of tensors on several devices: none.
  bool is_one() const { return !several_ && !(cpu_ && other_); }
  // Of numbers alone: what is said.
  Device get(Device otherwise) const { return other_ ? *other_ : cpu_ ? Device{} : otherwise; }

 private:
  void add_other(Device device) {
    several_ |= other_ && *other_ != device;
    other_ = device;
  }
  std::optional<Device> other_;
  bool cpu_ = false, several_ = false;
};

// The device that the program's values are on, by their types. Numbers of the CPU go along.
Device device_of(const Program& program);

// Says of all values where they will be in a run on these inputs, on the device.
void place_on(Program& program, TensorList inputs, Device device);

}  // namespace oar
