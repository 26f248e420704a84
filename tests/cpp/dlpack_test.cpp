#include "oar/tensor/dlpack.h"

#include <gtest/gtest.h>

#include <vector>

#include "oar/base/error.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// A tensor of "another library": counts the calls of its deleter.
template <class Managed>
struct Foreign {
  std::vector<float> memory = {0, 1, 2, 3, 4, 5};
  std::vector<int64_t> shape = {2, 3};
  std::vector<int64_t> strides = {3, 1};
  Managed managed{};
  int deleted = 0;

  Foreign() {
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    managed.dl_tensor = {memory.data(), {dlpack::kCpu, 0}, 2, {dlpack::kFloat, 32, 1},
                         shape.data(),  strides.data(),    0};
    if constexpr (requires { managed.version; })
      managed.version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  }
  dlpack::DLTensor& tensor() { return managed.dl_tensor; }
};
using Legacy = Foreign<DLManagedTensor>;
using Versioned = Foreign<DLManagedTensorVersioned>;

TEST(DLPack, HandsOutWithoutACopy) {
  const Tensor t =
      Tensor::from_vector(std::vector<double>{1, 2, 3, 4, 5, 6}, Shape{2, 3}, DType::Float32);
  const StoragePtr storage = t->storage;
  DLManagedTensor* managed = to_dlpack(t);
  EXPECT_EQ(managed->dl_tensor.data, t->data);
  EXPECT_EQ(managed->dl_tensor.ndim, 2);
  EXPECT_EQ(managed->dl_tensor.shape[1], 3);
  EXPECT_EQ(managed->dl_tensor.strides[0], 3);
  EXPECT_EQ(managed->dl_tensor.byte_offset, 0U);
  EXPECT_EQ(managed->dl_tensor.device.device_type, dlpack::kCpu);
  EXPECT_EQ(managed->dl_tensor.dtype.code, dlpack::kFloat);
  EXPECT_EQ(managed->dl_tensor.dtype.bits, 32);
  EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1);
  EXPECT_EQ(storage->reference_count(), 3U);
  managed->deleter(managed);
  EXPECT_EQ(storage->reference_count(), 2U);
}

TEST(DLPack, KeepsTheMemoryAlive) {
  DLManagedTensorVersioned* managed = nullptr;
  {
    const Tensor t = Tensor::scalar(7.0, DType::Float64);
    managed = to_dlpack_versioned(t);
  }
  EXPECT_EQ(managed->version.major, 1U);
  EXPECT_EQ(managed->flags, 0U);
  EXPECT_EQ(managed->dl_tensor.ndim, 0);
  EXPECT_EQ(*static_cast<double*>(managed->dl_tensor.data), 7.0);
  managed->deleter(managed);
}

TEST(DLPack, EveryDTypeRoundTrips) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Tensor t = Tensor::from_vector(std::vector<double>{0, 1, 1}, Shape{3}, dtype);
    for (const Tensor& back : {from_dlpack(to_dlpack(t)), from_dlpack(to_dlpack_versioned(t))}) {
      EXPECT_EQ(back.dtype(), dtype);
      EXPECT_EQ(back->data, t->data);
      EXPECT_EQ(back.to_vector<double>(), t.to_vector<double>()) << name_of(dtype);
    }
    EXPECT_EQ(t->storage->reference_count(), 1U);
  }
  const Tensor complex = Tensor::scalar(1.0, DType::Complex64);
  DLManagedTensor* managed = to_dlpack(complex);
  EXPECT_EQ(managed->dl_tensor.dtype.code, 5);
  EXPECT_EQ(managed->dl_tensor.dtype.bits, 64);
  managed->deleter(managed);
  const std::pair<DType, int> codes[] = {
      {DType::Bool, 6},          {DType::UInt8, 1},       {DType::BFloat16, 4},
      {DType::Float8E4M3FN, 10}, {DType::Float8E5M2, 12}, {DType::Int64, 0},
      {DType::Int4, 0},          {DType::UInt4, 1},       {DType::Float4E2M1FN, 17},
      {DType::UInt32, 1},        {DType::UInt64, 1}};
  for (const auto& [dtype, code] : codes) {
    managed = to_dlpack(Tensor::empty({2}, dtype));
    EXPECT_EQ(managed->dl_tensor.dtype.code, code) << name_of(dtype);
    managed->deleter(managed);
  }
}

TEST(DLPack, StridedViewsRoundTrip) {
  const Tensor base =
      Tensor::from_vector(std::vector<double>{0, 1, 2, 3, 4, 5}, Shape{2, 3}, DType::Float32);
  const Tensor turned = transpose(base, {1, 0});
  const Tensor back = from_dlpack(to_dlpack(turned));
  EXPECT_EQ(back->data, base->data);
  EXPECT_EQ(back.shape(), (Shape{3, 2}));
  EXPECT_EQ(back.to_vector<double>(), turned.to_vector<double>());
  EXPECT_FALSE(back.is_contiguous());
  const Tensor none = from_dlpack(to_dlpack(Tensor::empty({0, 4}, DType::Int32)));
  EXPECT_EQ(none.shape(), (Shape{0, 4}));
}

TEST(DLPack, TakesOverAndGivesBackOnce) {
  Legacy foreign;
  {
    const Tensor t = from_dlpack(&foreign.managed);
    EXPECT_EQ(t->data, foreign.memory.data());
    const Tensor copy = t;
    const Tensor view = reshape(t, {3, 2});
    EXPECT_EQ(view->data, t->data);
    EXPECT_EQ((t + t).to_vector<double>(), (std::vector<double>{0, 2, 4, 6, 8, 10}));
    foreign.memory[0] = 9;
    EXPECT_EQ(t.to_vector<double>()[0], 9);
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DLPack, UnderstandsOffsetsMissingStridesAndNegativeOnes) {
  Legacy offset;
  offset.tensor().byte_offset = 4;
  offset.tensor().strides = nullptr;
  offset.shape = {1, 5};
  EXPECT_EQ(from_dlpack(&offset.managed).to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(offset.deleted, 1);

  Legacy backwards;
  backwards.tensor().data = backwards.memory.data() + 5;
  backwards.shape = {2, 3};
  backwards.strides = {-3, -1};
  {
    const Tensor t = from_dlpack(&backwards.managed);
    EXPECT_EQ(t.to_vector<double>(), (std::vector<double>{5, 4, 3, 2, 1, 0}));
    EXPECT_EQ(t->storage->data(), backwards.memory.data());
    EXPECT_EQ(t->storage->bytes(), 24U);
    EXPECT_EQ((t * 2).to_vector<double>(), (std::vector<double>{10, 8, 6, 4, 2, 0}));
  }
  EXPECT_EQ(backwards.deleted, 1);

  Legacy without_deleter;
  without_deleter.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&without_deleter.managed).rank(), 2);

  Legacy scalar;
  scalar.tensor().ndim = 0;
  scalar.tensor().shape = nullptr;
  scalar.tensor().strides = nullptr;
  EXPECT_EQ(from_dlpack(&scalar.managed).item_double(), 0);
}

TEST(DLPack, ReadOnlyMemoryIsNotWritten) {
  Versioned foreign;
  foreign.managed.flags = dlpack::kReadOnly;
  const Tensor t = from_dlpack(&foreign.managed);
  EXPECT_TRUE(t->storage->is_readonly());
  EXPECT_THROW(copy_into(t, Tensor::scalar(1.0, DType::Float32)), Error);
  EXPECT_EQ(foreign.memory[0], 0);
  EXPECT_NO_THROW(t + t);
  EXPECT_THROW(to_dlpack(t), Error) << "the old struct cannot say it";
  DLManagedTensorVersioned* again = to_dlpack_versioned(t);
  EXPECT_EQ(again->flags, uint64_t{dlpack::kReadOnly});
  again->deleter(again);
}

// Each must be rejected, with the tensor released exactly once.
template <class F>
void expect_refused(ErrorKind kind, const F& spoil) {
  Versioned foreign;
  spoil(foreign);
  try {
    from_dlpack(&foreign.managed);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DLPack, RefusesWhatItCannotHold) {
  expect_refused(ErrorKind::Unsupported, [](Versioned& f) { f.managed.version.major = 2; });
  expect_refused(ErrorKind::Unsupported, [](Versioned& f) { f.tensor().device = {2, 0}; });
  expect_refused(ErrorKind::InvalidType,
                 [](Versioned& f) { f.tensor().dtype = {dlpack::kUInt, 16, 1}; });
  expect_refused(ErrorKind::InvalidType,
                 [](Versioned& f) { f.tensor().dtype = {dlpack::kFloat, 32, 4}; });
  expect_refused(ErrorKind::InvalidType, [](Versioned& f) { f.tensor().dtype = {16, 6, 1}; });
  expect_refused(ErrorKind::InvalidType,
                 [](Versioned& f) { f.tensor().dtype = {dlpack::kComplex, 32, 1}; });
  expect_refused(ErrorKind::InvalidArgument, [](Versioned& f) { f.tensor().ndim = -1; });
  expect_refused(ErrorKind::InvalidArgument, [](Versioned& f) { f.tensor().ndim = 1000; });
  expect_refused(ErrorKind::InvalidArgument, [](Versioned& f) { f.tensor().shape = nullptr; });
  expect_refused(ErrorKind::InvalidArgument, [](Versioned& f) { f.tensor().data = nullptr; });
  expect_refused(ErrorKind::InvalidArgument, [](Versioned& f) { f.tensor().byte_offset = 2; });
  expect_refused(ErrorKind::InvalidArgument, [](Versioned& f) { f.shape = {2, -3}; });
  expect_refused(ErrorKind::InvalidArgument,
                 [](Versioned& f) { f.shape = {int64_t{1} << 40, int64_t{1} << 40}; });
  expect_refused(ErrorKind::InvalidArgument,
                 [](Versioned& f) { f.strides = {int64_t{1} << 62, 1}; });
  expect_refused(ErrorKind::InvalidArgument, [](Versioned& f) { f.strides = {INT64_MIN, 1}; });
}

TEST(DLPack, HandsOutDenseCpuTensorsOnly) {
  EXPECT_THROW(to_dlpack(Tensor()), Error);
  EXPECT_THROW(to_dlpack(Tensor::meta(Shape{2}, DType::Float32)), Error);
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), Error);
}

}  // namespace
}  // namespace oar
