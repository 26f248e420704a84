// A plug-in that was built for another version of the device interface.
#include "oar/device/abi.h"

extern "C" int32_t oar_plugin_init(const oar_host_api*, oar_device_api* device) {
  device->abi_version = OAR_ABI_VERSION + 1;
  device->type_name = "old";
  return 0;
}
