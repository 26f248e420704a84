// A plug-in whose hardware is not there.
#include "oar/device/abi.h"

extern "C" const oar_device_api* oar_device_init(const oar_host_api*, const char** why) {
  *why = "there is no such card in this machine";
  return nullptr;
}
