// A plug-in whose hardware is not there.
#include "oar/device/abi.h"

extern "C" int32_t oar_plugin_init(const oar_host_api*, oar_device_api*) { return 7; }
