// A plug-in that was built for a later version of the device interface.
#include "oar/device/abi.h"

extern "C" const oar_device_api* oar_device_init(const oar_host_api*, const char**) {
  static oar_device_api device{};
  device.struct_size = sizeof(device);
  device.abi_version = OAR_ABI_VERSION + 1;
  device.type_name = "next";
  return &device;
}
