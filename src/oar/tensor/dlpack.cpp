#include "oar/tensor/dlpack.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "oar/base/error.h"
#include "oar/base/scope_guard.h"
#include "oar/tensor/byte_count.h"
#include "oar/tensor/exposed.h"
#include "oar/tensor/hooks.h"

namespace oar {
namespace {

// The layout is an agreement between libraries that were compiled separately.
static_assert(sizeof(void*) != 8 ||
              (sizeof(dlpack::DLTensor) == 48 && offsetof(dlpack::DLTensor, shape) == 24 &&
               sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80 &&
               offsetof(DLManagedTensorVersioned, dl_tensor) == 32));

constexpr int32_t kMaxRank = 64;

dlpack::DataType type_of(DType dtype) {
  const auto bits = static_cast<uint8_t>(bits_of(dtype));
  const auto with = [&](dlpack::TypeCode code) { return dlpack::DataType{code, bits, 1}; };
  switch (dtype) {
    case DType::Bool:
      return with(dlpack::kBool);
    case DType::UInt8:
    case DType::UInt32:
    case DType::UInt64:
    case DType::
        UInt4:  // packed, with the first of two elements in the low half of a byte, as of DLPack
      return with(dlpack::kUInt);
    case DType::Int4:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
      return with(dlpack::kInt);
    case DType::Float16:
    case DType::Float32:
    case DType::Float64:
      return with(dlpack::kFloat);
    case DType::BFloat16:
      return with(dlpack::kBfloat);
    case DType::Complex64:
    case DType::Complex128:
      return with(dlpack::kComplex);
    case DType::Float8E4M3FN:
      return with(dlpack::kFloat8E4M3FN);
    case DType::Float8E5M2:
      return with(dlpack::kFloat8E5M2);
    case DType::Float4E2M1FN:
      return with(dlpack::kFloat4E2M1FN);
  }
  fail(ErrorKind::Internal, "dtype {} has no DLPack code.", static_cast<int>(dtype));
}

DType dtype_of(dlpack::DataType type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const dlpack::DataType known = type_of(dtype);
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return dtype;
  }
  static constexpr const char* kNames[] = {"int",    "uint",    "float", "handle",
                                           "bfloat", "complex", "bool"};
  fail(ErrorKind::InvalidType,
       "the DLPack tensor has elements of type {}{} with {} lanes, which Oar does not have.\nhint: "
       "Convert it in the library it comes from.",
       type.code < std::size(kNames) ? kNames[type.code]
                                     : format("code {}, bits ", type.code).c_str(),
       type.bits, type.lanes);
}

// What an exported tensor keeps alive. The sizes are copies, because the tensor may be reshaped.
template <class Managed>
struct Handout {
  explicit Handout(StoragePtr of) : storage(std::move(of)) { lend(*storage); }
  ~Handout() { conceal(storage->data()); }
  Handout(const Handout&) = delete;
  Handout& operator=(const Handout&) = delete;

  Managed managed{};
  StoragePtr storage;
  SmallVector<int64_t, 6> shape, strides;
};

template <class Managed>
std::unique_ptr<Handout<Managed>> hand_out(const Tensor& t) {
  user_check(t.defined(), ErrorKind::InvalidType, "None cannot be exported by DLPack.");
  user_check(t.is_dense(), ErrorKind::Unsupported,
             "{} has no memory that another library could use.\nhint: Only dense tensors do, "
             "outside capture, jvp and vmap.",
             t.describe());
  user_check(t.device().is_cpu(), ErrorKind::Unsupported,
             "a tensor on a device other than the CPU cannot be exported by DLPack.\nhint: Copy it "
             "first: x.cpu().");
  note_read(t);
  auto handout = std::make_unique<Handout<Managed>>(t->storage);
  handout->shape.assign(t->shape, t->shape + t.rank());
  handout->strides.assign(t->strides, t->strides + t.rank());
  Managed& managed = handout->managed;
  managed.manager_ctx = handout.get();
  managed.deleter = [](Managed* self) { delete static_cast<Handout<Managed>*>(self->manager_ctx); };
  managed.dl_tensor = {t->data,
                       {dlpack::kCpu, 0},
                       t.rank(),
                       type_of(t.dtype()),
                       handout->shape.data(),
                       handout->strides.data(),
                       0};
  return handout;
}

// Where the elements are: bytes from the first element to the lowest and beyond the highest one.
struct Extent {
  int64_t low = 0, high = 0;
};

Extent extent_of(Ints shape, Ints strides, DType dtype) {
  if (is_packed(dtype)) {  // contiguous, which view_of checks
    Count elements = 1;
    for (const int64_t size : shape) elements = elements * size;
    return {0, byte_count(elements.value(), dtype)};
  }
  const auto size = static_cast<int64_t>(size_of(dtype));
  Extent extent{0, size};
  bool overflow = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach = 0;
    int64_t& end = strides[i] < 0 ? extent.low : extent.high;
    overflow = overflow || __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
               __builtin_mul_overflow(reach, size, &reach) ||
               __builtin_add_overflow(end, reach, &end);
  }
  int64_t whole = 0;
  user_check(!overflow && !__builtin_sub_overflow(extent.high, extent.low, &whole),
             ErrorKind::InvalidArgument, "the DLPack tensor's strides {} reach beyond any memory.",
             to_string(strides));
  return extent;
}

// The sizes, checked: their product, and so every row-major stride, fits into 64 bits.
bool is_empty_shape(Ints shape) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    user_check(size >= 0 && !__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count),
               ErrorKind::InvalidArgument, "the DLPack tensor's shape {} cannot be.",
               to_string(shape));
    empty = empty || size == 0;
  }
  return empty;
}

template <class Managed>
Tensor take_over(Managed* managed, bool readonly) {
  // Until a storage owns it, an error has to release it.
  const auto give_back = [](void* context, void* data, size_t) {
    auto* self = static_cast<Managed*>(context);
    conceal(data);
    if (self->deleter != nullptr) self->deleter(self);
  };
  ScopeGuard on_error([&] { give_back(managed, nullptr, 0); });

  const dlpack::DLTensor& source = managed->dl_tensor;
  user_check(
      source.device.device_type == dlpack::kCpu, ErrorKind::Unsupported,
      "the DLPack tensor is on a device of type {}; Oar accepts the CPU (1) only.\nhint: Copy "
      "it to the CPU in the library it comes from.",
      source.device.device_type);
  user_check(
      source.ndim >= 0 && source.ndim <= kMaxRank && (source.ndim == 0 || source.shape != nullptr),
      ErrorKind::InvalidArgument, "the DLPack tensor has {} axes, or no shape.", source.ndim);
  const DType dtype = dtype_of(source.dtype);
  const auto rank = static_cast<size_t>(source.ndim);
  const Ints shape = rank == 0 ? Ints() : Ints(source.shape, rank);
  const bool empty = is_empty_shape(shape);
  SmallVector<int64_t, 6> strides = contiguous_strides(as_dims(shape));
  if (source.strides != nullptr && !empty) strides.assign(source.strides, source.strides + rank);

  char* data =
      source.data == nullptr ? nullptr : static_cast<char*>(source.data) + source.byte_offset;
  user_check(empty || data != nullptr, ErrorKind::InvalidArgument,
             "the DLPack tensor has no memory.");
  // Complex numbers are aligned as their parts.
  user_check(
      reinterpret_cast<uintptr_t>(data) %
              static_cast<uintptr_t>(byte_count(1, real_type_of(dtype))) ==
          0,
      ErrorKind::InvalidArgument,
      "the DLPack tensor's memory is not aligned to its elements.\nhint: Copy it in the library "
      "it comes from.");
  const Ints steps(strides.data(), strides.size());
  const Extent extent = empty ? Extent{} : extent_of(shape, steps, dtype);
  void* const begin = data == nullptr ? nullptr : data + extent.low;
  StoragePtr storage = Storage::adopt(begin, static_cast<size_t>(extent.high - extent.low),
                                      Device{}, give_back, managed);
  on_error.dismiss();
  expose(storage->data());
  if (readonly) storage->set_readonly();
  return Tensor::view_of(storage, as_dims(shape), steps, data, dtype);
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& t) {
  auto handout = hand_out<DLManagedTensor>(t);
  user_check(
      !t->storage->is_readonly(), ErrorKind::InvalidArgument,
      "the tensor's memory is read-only, which DLPack can express only from version 1 on.\nhint: "
      "Request a versioned capsule, or export a copy: x.clone().");
  return &handout.release()->managed;
}

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& t) {
  auto handout = hand_out<DLManagedTensorVersioned>(t);
  DLManagedTensorVersioned& managed = handout->managed;
  managed.version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  managed.flags = t->storage->is_readonly() ? uint64_t{dlpack::kReadOnly} : 0;
  return &handout.release()->managed;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  user_check(managed != nullptr, ErrorKind::InvalidArgument, "the DLPack tensor is null.");
  return take_over(managed, false);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  user_check(managed != nullptr, ErrorKind::InvalidArgument, "the DLPack tensor is null.");
  if (managed->version.major != dlpack::kMajorVersion) {
    // With another major version only the fields up to the deleter can be relied on.
    const uint32_t major = managed->version.major;
    if (managed->deleter != nullptr) managed->deleter(managed);
    fail(ErrorKind::Unsupported,
         "the DLPack tensor has version {}; Oar knows version {}.\nhint: Ask its library for that "
         "version: __dlpack__(max_version=(1, 0)).",
         major, dlpack::kMajorVersion);
  }
  return take_over(managed, (managed->flags & dlpack::kReadOnly) != 0);
}

}  // namespace oar
