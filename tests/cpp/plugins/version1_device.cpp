// A plug-in that was built with version 1 of the device interface, and worked with it.
#include <stdlib.h>
#include <string.h>

#include "abi_version1.h"

namespace {

int32_t add(oar_kernel_call* call) {
  const oar_tensor &x = *call->inputs[0].tensor, &y = *call->inputs[1].tensor;
  for (int64_t i = 0; i < call->outputs[0]->numel; ++i)
    static_cast<float*>(call->outputs[0]->data)[i] =
        static_cast<const float*>(x.data)[i] + static_cast<const float*>(y.data)[i];
  return OAR_OK;
}

const oar_kernel kKernels[] = {{"add", 1, "version1:plain", nullptr, add}};

}  // namespace

extern "C" int32_t oar_plugin_init(const oar_host_api* host, oar_device_api* device) {
  if (host->abi_version != OAR_ABI_VERSION) return 1;
  device->abi_version = OAR_ABI_VERSION;
  device->type_name = "version1";
  device->device_count = [] { return int32_t{1}; };
  device->describe = [](int32_t) { return "an old device"; };
  device->allocate = [](int32_t, size_t bytes) { return malloc(bytes + 1); };
  device->free = [](int32_t, void* data, size_t) { free(data); };
  device->copy = [](int32_t, void* to, const void* from, size_t bytes, oar_copy_kind, oar_stream*) {
    memcpy(to, from, bytes);
    return int32_t{OAR_OK};
  };
  device->kernels = kKernels;
  device->kernel_count = 1;
  return 0;
}
