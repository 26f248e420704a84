/* Version 1 of the device interface, as it was: what plug-ins that are older than version 2 were built with. Never changed. */
#ifndef OAR_TESTS_ABI_VERSION1_H_
#define OAR_TESTS_ABI_VERSION1_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OAR_ABI_VERSION 1

/* Element types. The numbers are part of the ABI. */
enum oar_dtype {
  OAR_BOOL = 0,
  OAR_UINT8 = 1,
  OAR_INT8 = 2,
  OAR_INT16 = 3,
  OAR_INT32 = 4,
  OAR_INT64 = 5,
  OAR_FLOAT16 = 6,
  OAR_BFLOAT16 = 7,
  OAR_FLOAT32 = 8,
  OAR_FLOAT64 = 9,
  OAR_COMPLEX64 = 10,
  OAR_COMPLEX128 = 11,
  OAR_FLOAT8_E4M3FN = 12,
  OAR_FLOAT8_E5M2 = 13,
  /* Packed below a byte. A packed tensor is contiguous and begins at a whole byte: element i is in byte
   * i / 2, in the low half if i is even; the half after an odd number of elements is 0. */
  OAR_INT4 = 14,
  OAR_UINT4 = 15,
  OAR_FLOAT4_E2M1FN = 16,
  OAR_DTYPE_COUNT = 17
};

/* Scales of a quantised tensor: value = (element - zero_point) * scale. Both have the rank of the tensor,
 * and each of their sizes divides the tensor's: size 1 is one scale for the whole axis, the full size one
 * per channel, anything between one per block of neighbours. */
typedef struct oar_scales {
  const struct oar_tensor* scale;
  const struct oar_tensor* zero_point; /* null: 0 */
} oar_scales;

typedef struct oar_tensor {
  void* data;             /* first element of this view; null while zero-size or not dense */
  const int64_t* shape;   /* ndim entries */
  const int64_t* strides; /* ndim entries, counted in elements */
  int64_t numel;
  int32_t ndim;
  uint8_t dtype; /* enum oar_dtype */
  uint8_t kind;  /* how the content is held; kernels only ever see dense (0) */
  uint8_t device_type;
  uint8_t device_index;
  uint32_t flags;           /* the host's; a kernel neither reads nor writes them */
  const oar_scales* scales; /* null: the elements are the values */
} oar_tensor;

/* What an argument holds. */
enum oar_tag {
  OAR_TAG_NONE = 0,
  OAR_TAG_TENSOR = 1,
  OAR_TAG_TENSORS = 2, /* entries may be null where the schema says Tensor?[] */
  OAR_TAG_BOOL = 3,
  OAR_TAG_INT = 4,
  OAR_TAG_DOUBLE = 5,
  OAR_TAG_COMPLEX = 6, /* doubles[0] + i doubles[1] */
  OAR_TAG_STRING = 7,
  OAR_TAG_INTS = 8,
  OAR_TAG_DOUBLES = 9,
  OAR_TAG_DTYPE = 10
};

typedef struct oar_value {
  int32_t tag;   /* enum oar_tag */
  int32_t count; /* length of a list or string */
  union {
    int64_t integer;
    double real;
    const oar_tensor* tensor;
    const oar_tensor* const* tensors;
    const int64_t* integers;
    const double* doubles;
    const char* string;
  };
} oar_value;

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
  /* For ops whose output size depends on the data: makes output `index` and answers it, or null. */
  oar_tensor* (*allocate_output)(oar_kernel_call* call, int32_t index, int32_t ndim,
                                 const int64_t* shape);
  /* Reserves `count` numbers of the random stream; the same whatever the number of threads. */
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
  /* Null means yes; otherwise why this call is not for this kernel. May itself be null: always. */
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

  oar_stream* (*stream_create)(int32_t index); /* null stream: the default one, always there */
  void (*stream_destroy)(oar_stream* stream);
  int32_t (*stream_synchronize)(int32_t index, oar_stream* stream);
  /* A failure of work that was queued earlier: its text, once, or null. */
  const char* (*stream_take_error)(int32_t index, oar_stream* stream);

  oar_event* (*event_create)(int32_t index);
  void (*event_destroy)(oar_event* event);
  int32_t (*event_record)(oar_event* event, oar_stream* stream);
  int32_t (*event_query)(oar_event* event); /* 1 reached, 0 not yet */
  int32_t (*event_wait)(oar_event* event, oar_stream* stream);

  /* Null means yes; otherwise why the op cannot run here. Asked once per op, before any call. */
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
