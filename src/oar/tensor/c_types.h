/* The C types that cross the device interface: what a kernel sees of a tensor and of a call.
 *
 * `TensorImpl` and `Value` derive from these structs, so handing a call to a kernel, built in or in
 * a plug-in, translates nothing. Fields are only appended to oar_tensor; oar_value keeps its size, since
 * calls hold arrays of it. */
#ifndef OAR_TENSOR_C_TYPES_H_
#define OAR_TENSOR_C_TYPES_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OAR_ABI_VERSION 2

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
  OAR_UINT32 = 17,
  OAR_UINT64 = 18,
  OAR_DTYPE_COUNT = 19
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

#ifdef __cplusplus
}
#endif
#endif
