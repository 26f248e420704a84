// DLPack: exchange of tensors between libraries in one process, without a copy.
//
// The structs are those of DLPack 1 (github.com/dmlc/dlpack, dlpack.h), declared here so that
// nothing has to be installed and a program may include the original header as well.
#pragma once

#include <cstdint>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace dlpack {

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 1;

enum DeviceTypeCode : int32_t { kCpu = 1 };

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E5M2 = 12,
  kFloat4E2M1FN = 17,
};

enum Flag : uint64_t { kReadOnly = 1u << 0, kIsCopied = 1u << 1 };

struct Device {
  int32_t device_type;
  int32_t device_id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null for row-major
  uint64_t byte_offset;
};

}  // namespace dlpack

// Before version 1. It cannot mark memory as read-only.
struct DLManagedTensor {
  dlpack::DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  dlpack::DLTensor dl_tensor;
};

// A view of a dense CPU tensor for another library. It keeps the memory alive until its deleter is
// called, which the receiver must do once. The tensor's version does not count writes by the other
// library.
DLManagedTensor* to_dlpack(const Tensor& t);
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& t);

// A tensor on another library's memory. The deleter is called when the last view of it is freed; on
// an error, before the error is thrown. Takes ownership of `managed` in either case.
Tensor from_dlpack(DLManagedTensor* managed);
Tensor from_dlpack(DLManagedTensorVersioned* managed);

}  // namespace oar
