/* The device interface, as a plug-in in a shared library sees it and as the CPU backend uses it.
 *
 * A plug-in exports `oar_device_init`, which returns an `oar_device_api`. Kernels are keyed by op name and
 * schema version, never by a number that a release could shift. See docs/adding-a-device.md.
 *
 * How it grows: a table begins with its own size, as its author compiled it, and fields are only appended. The
 * reader of a table reads no further than that size; a function that is null or beyond it has the default that its
 * comment states. OAR_ABI_VERSION changes only when a field changes its meaning. */
#ifndef OAR_DEVICE_ABI_H_
#define OAR_DEVICE_ABI_H_

#include <stddef.h>

#include "oar/tensor/c_types.h"

#ifdef __cplusplus
extern "C" {
#define OAR_MAY_BE_LEFT_OUT = nullptr /* in a list of kernels */
#else
#define OAR_MAY_BE_LEFT_OUT
#endif

typedef struct oar_stream oar_stream; /* the device's own; work in one stream is in order */
typedef struct oar_event oar_event;
typedef struct oar_plan oar_plan; /* a kernel's own */
typedef struct oar_kernel_call oar_kernel_call;

/* What functions return; anything but OK comes with a text given to `set_error`. */
enum oar_status {
  OAR_OK = 0,
  OAR_INVALID_ARGUMENT = 1,
  OAR_OUT_OF_MEMORY = 2,
  OAR_UNSUPPORTED = 3,
  OAR_FAILED = 4,
  OAR_INDEX_OUT_OF_RANGE = 5
};

/* What the host offers. */
typedef struct oar_host_api {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t call_size;   /* of its oar_kernel_call */
  uint32_t tensor_size; /* of its oar_tensor */
  /* Why the device's function that this thread is in fails. */
  void (*set_error)(const char* text);
  /* For ops whose output size depends on the data: allocates output `index` and returns it, or null. */
  oar_tensor* (*allocate_output)(oar_kernel_call* call, int32_t index, int32_t ndim,
                                 const int64_t* shape);
  /* Reserves `count` numbers of the device's random stream; the same whatever the number of threads. */
  void (*next_random)(oar_kernel_call* call, uint64_t count, uint64_t* seed, uint64_t* offset);
  /* Runs body(context, begin, end) over pieces of [0, n) on the host's threads. */
  void (*parallel_for)(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t),
                       void* context);
} oar_host_api;

/* One call of a kernel. What it points to lives until the function that gets it returns. */
struct oar_kernel_call {
  const oar_value* inputs; /* one per parameter of the schema */
  oar_tensor* const* outputs;
  int32_t input_count;
  int32_t output_count;
  oar_stream* stream;
  const oar_host_api* api;
  void* context; /* the kernel's */
  /* What `prepare` returned for a call like this one; null where the kernel has no `prepare`. */
  oar_plan* plan;
  /* Inputs, by bit, that hold what they held in the caller's previous call with this plan. A plan may keep something
   * derived from such an input, and drops it in the first call without the bit. */
  uint64_t unchanged;
  int32_t device_index;
};

typedef struct oar_kernel {
  const char* op;
  uint32_t op_version;
  const char* name; /* "cpu:avx512"; shown in traces */
  /* Null means yes; otherwise why this call is not for this kernel. May itself be null: always. Cheap, keeps nothing
   * and reads no data. */
  const char* (*accepts)(const oar_kernel_call* call);
  int32_t (*run)(oar_kernel_call* call); /* enum oar_status */
  void* context OAR_MAY_BE_LEFT_OUT;     /* handed to its functions */
  /* For a call that was accepted: whatever is worth doing once for all calls with the same types, strides, attributes
   * and device. Reads no data. The host owns the plan: several calls, of several threads at once, may use it. Programs
   * prepare once per call in the program, eager mode once per call. */
  int32_t (*prepare)(const oar_kernel_call* call, oar_plan** plan) OAR_MAY_BE_LEFT_OUT;
  /* Queued work may still need it; the device keeps what that work reads. */
  void (*destroy_plan)(void* context, oar_plan* plan) OAR_MAY_BE_LEFT_OUT;
} oar_kernel;

enum oar_copy_kind { OAR_HOST_TO_DEVICE = 0, OAR_DEVICE_TO_HOST = 1, OAR_DEVICE_TO_DEVICE = 2 };

/* What `query` is asked. Numbers come as OAR_TAG_INT, answers yes or no as OAR_TAG_BOOL. */
enum oar_device_key {
  OAR_KEY_NAME = 1,         /* a string, with its length in `count`; default: the type's name */
  OAR_KEY_MEMORY_BYTES = 2, /* in all; default: 0, not known */
  OAR_KEY_FREE_BYTES = 3,   /* default: 0, not known */
  OAR_KEY_ALIGNMENT = 4,    /* a power of 2, of every buffer; default: 64 */
  OAR_KEY_HOST_READS = 5,   /* may the host read its memory, once the stream is synchronised? no */
  OAR_KEY_ASYNCHRONOUS = 6  /* does work go on after a call has returned? default: yes */
};

/* A part of a program, offered to the device's own compiler. */
typedef struct oar_cluster_source {
  uint32_t struct_size;
  const char* text; /* of the program, in the form that `oar inspect` prints */
  /* Types and strides of its inputs and outputs, in the order of the text. They have no data. */
  const oar_tensor* const* inputs;
  const oar_tensor* const* outputs;
  int32_t input_count;
  int32_t output_count;
} oar_cluster_source;

/* … compiled. The host owns it; several threads may run it at once. */
typedef struct oar_cluster {
  uint32_t struct_size;
  void* context; /* handed to its functions */
  /* The first argument is the list of the source's inputs, with data; the outputs are the source's. */
  int32_t (*run)(oar_kernel_call* call);
  void (*destroy)(void* context); /* the cluster too; queued work may still need what it holds */
} oar_cluster;

typedef struct oar_device_api {
  uint32_t struct_size;
  uint32_t abi_version;
  const char* type_name;         /* "cpu", "null", "npu"; what users write in set_device */
  int32_t (*device_count)(void); /* default: 1 */
  /* OAR_OK with the value, or OAR_UNSUPPORTED for the default of the key. Default: always that. */
  int32_t (*query)(int32_t index, int32_t key, oar_value* value);

  /* `stream` is where the memory is used first; other streams wait for an event before they use it. Returns null if there
   * is no memory. */
  void* (*allocate)(int32_t index, size_t bytes, oar_stream* stream);
  /* Work that was queued before, in any stream, may still use the memory: the device keeps it until that is done.
   * `stream` is the current one of the thread that frees. */
  void (*free)(int32_t index, void* data, size_t bytes, oar_stream* stream);
  /* Within one device, or between it and the host. May be queued, but host memory that is copied from has been read
   * when it returns. */
  int32_t (*copy)(int32_t index, void* to, const void* from, size_t bytes, enum oar_copy_kind kind,
                  oar_stream* stream);
  /* From another device, of this or another type, to device `to_index` of this type, in a stream of the latter. The
   * work of `from` has been synchronised; between types the host waits for `stream` afterwards.
   * OAR_UNSUPPORTED, the default: the host copies through its own memory. */
  int32_t (*copy_peer)(int32_t to_index, void* to, const char* from_type, int32_t from_index,
                       const void* from, size_t bytes, oar_stream* stream);

  /* The null stream is the default one and always exists. Default of all: work is done when a call returns. */
  oar_stream* (*stream_create)(int32_t index);
  void (*stream_destroy)(oar_stream* stream); /* after it was synchronised */
  int32_t (*stream_synchronize)(int32_t index, oar_stream* stream);
  /* A failure of work that was queued earlier: its text, once, or null. */
  const char* (*stream_take_error)(int32_t index, oar_stream* stream);

  oar_event* (*event_create)(int32_t index);
  void (*event_destroy)(oar_event* event);
  int32_t (*event_record)(oar_event* event, oar_stream* stream);
  int32_t (*event_query)(oar_event* event); /* 1 reached, 0 not yet */
  int32_t (*event_wait)(oar_event* event, oar_stream* stream);

  /* Null means yes; otherwise why the op cannot run here. Asked once per op, before any call. Default: yes. */
  const char* (*supports)(const char* op, uint32_t op_version);
  const oar_kernel* kernels; /* candidates of one op in order of preference */
  int32_t kernel_count;
  uint32_t kernel_size; /* sizeof(oar_kernel): from one to the next */

  /* Compiles a part of a program, or returns null and says in *why that its kernels shall run. Default: null. */
  const oar_cluster* (*compile_cluster)(int32_t index, const oar_cluster_source* source,
                                        const char** why);
} oar_device_api;

/* What a plug-in exports: returns its table, which lives as long as the process, or null and the reason. */
#define OAR_DEVICE_INIT "oar_device_init"
typedef const oar_device_api* (*oar_device_init_fn)(const oar_host_api* host, const char** why);

#ifdef __cplusplus
}
#endif
#endif
