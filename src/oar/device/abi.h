/* The device interface, as a plug-in in a shared library sees it and as the CPU backend uses it.
 *
 * A plug-in exports `oar_plugin_init`, fills an `oar_device_api` and returns 0. Kernels are keyed by
 * op name and schema version, never by a number that a release could shift. See
 * docs/adding-a-device.md. */
#ifndef OAR_DEVICE_ABI_H_
#define OAR_DEVICE_ABI_H_

#include <stddef.h>

#include "oar/tensor/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oar_stream oar_stream; /* the device's own; work in one stream is in order */
typedef struct oar_event oar_event;
typedef struct oar_kernel_call oar_kernel_call;

/* What a kernel may return; anything but OK comes with a text given to `set_error`. */
enum oar_status {
  OAR_OK = 0,
  OAR_INVALID_ARGUMENT = 1,
  OAR_OUT_OF_MEMORY = 2,
  OAR_UNSUPPORTED = 3,
  OAR_FAILED = 4,
  OAR_INDEX_OUT_OF_RANGE = 5
};

/* What the host offers to a kernel. */
typedef struct oar_host_api {
  uint32_t abi_version;
  void (*set_error)(oar_kernel_call* call, const char* text);
  /* For ops whose output size depends on the data: allocates output `index`; returns it, or null. */
  oar_tensor* (*allocate_output)(oar_kernel_call* call, int32_t index, int32_t ndim,
                                 const int64_t* shape);
  /* Reserves `count` numbers of the random stream, independent of the number of threads. */
  void (*next_random)(oar_kernel_call* call, uint64_t count, uint64_t* seed, uint64_t* offset);
  /* Runs body(context, begin, end) over pieces of [0, n) on the host's threads. */
  void (*parallel_for)(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t),
                       void* context);
} oar_host_api;

struct oar_kernel_call {
  const oar_value* inputs; /* one per parameter of the schema */
  oar_tensor* const* outputs;
  int32_t input_count;
  int32_t output_count;
  oar_stream* stream;
  const oar_host_api* api;
  void* host; /* the host's bookkeeping */
};

typedef struct oar_kernel {
  const char* op;
  uint32_t op_version;
  const char* name; /* "cpu:avx512"; shown in traces */
  /* Returns null for yes, otherwise why the kernel declines this call. May itself be null: always. */
  const char* (*accepts)(const oar_kernel_call* call);
  int32_t (*run)(oar_kernel_call* call); /* enum oar_status */
} oar_kernel;

enum oar_copy_kind { OAR_HOST_TO_DEVICE = 0, OAR_DEVICE_TO_HOST = 1, OAR_DEVICE_TO_DEVICE = 2 };

typedef struct oar_device_api {
  uint32_t abi_version;
  const char* type_name; /* "cpu", "null", "npu"; what users write in set_device */
  int32_t (*device_count)(void);
  const char* (*describe)(int32_t index);

  void* (*allocate)(int32_t index, size_t bytes); /* null when there is no memory */
  /* Work that is queued may still use the memory; the device keeps it until that is done. */
  void (*free)(int32_t index, void* data, size_t bytes);
  /* May be queued, but host memory that is copied from has been read when it returns. */
  int32_t (*copy)(int32_t index, void* to, const void* from, size_t bytes, enum oar_copy_kind kind,
                  oar_stream* stream);

  oar_stream* (*stream_create)(int32_t index); /* null stream: the default one, always exists */
  void (*stream_destroy)(oar_stream* stream);
  int32_t (*stream_synchronize)(int32_t index, oar_stream* stream);
  /* A failure of work that was queued earlier: its text, once, or null. */
  const char* (*stream_take_error)(int32_t index, oar_stream* stream);

  oar_event* (*event_create)(int32_t index);
  void (*event_destroy)(oar_event* event);
  int32_t (*event_record)(oar_event* event, oar_stream* stream);
  int32_t (*event_query)(oar_event* event); /* 1 reached, 0 not yet */
  int32_t (*event_wait)(oar_event* event, oar_stream* stream);

  /* Null means yes; otherwise why the op cannot run here. Called once per op, before any call. */
  const char* (*supports)(const char* op, uint32_t op_version);
  const oar_kernel* kernels; /* candidates of one op in order of preference */
  int32_t kernel_count;
} oar_device_api;

#define OAR_PLUGIN_INIT "oar_plugin_init"
typedef int32_t (*oar_plugin_init_fn)(const oar_host_api* host, oar_device_api* device);

#ifdef __cplusplus
}
#endif
#endif
