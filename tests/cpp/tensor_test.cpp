#include "oar/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "oar/base/error.h"
#include "oar/tensor/value.h"

namespace oar {
namespace {

template <class F>
Error error_of(F&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::Internal, "nothing was thrown"};
}

// ---- Element types -----------------------------------------------------------------------------

TEST(DType, PromotesAsPaddle) {
  using enum DType;
  const auto expect = [](DType a, DType b, DType result) {
    EXPECT_EQ(promote(a, b), result) << name_of(a) << ", " << name_of(b);
    EXPECT_EQ(promote(b, a), result) << name_of(b) << ", " << name_of(a);
  };
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    expect(t, t, t);
    if (is_stored(t)) continue;  // no op computes in it
    expect(Bool, t, t);
    expect(t, Complex128, Complex128);
    if (!is_complex(t) && t != Float64) expect(t, Complex64, Complex64);
    if (is_bool(t) || is_integral(t))
      for (DType f : {Float8E4M3FN, Float8E5M2, Float16, BFloat16, Float32, Float64})
        expect(t, f, f);
  }
  expect(UInt8, Int8, Int16);
  expect(UInt8, Int16, Int16);
  expect(UInt8, Int32, Int32);
  expect(UInt8, Int64, Int64);
  expect(Int8, Int16, Int16);
  expect(Int16, Int32, Int32);
  expect(Int32, Int64, Int64);
  expect(Float16, BFloat16, Float32);
  expect(Float16, Float32, Float32);
  expect(BFloat16, Float32, Float32);
  expect(Float32, Float64, Float64);
  expect(Float8E4M3FN, Float8E5M2, Float32);
  expect(Float8E4M3FN, Float16, Float16);
  expect(Float8E5M2, BFloat16, BFloat16);
  expect(Float64, Complex64, Complex128);
  expect(Complex64, Complex128, Complex128);
}

TEST(DType, IsFoundByItsNames) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(t)), t);
    EXPECT_EQ(dtype_from_name(std::string("paddle.") + name_of(t)), t);
  }
  EXPECT_EQ(dtype_from_name("half"), DType::Float16);
  EXPECT_EQ(dtype_from_name("bf16"), DType::BFloat16);
  EXPECT_EQ(dtype_from_name("double"), DType::Float64);
  EXPECT_FALSE(dtype_from_name("quad"));
  EXPECT_FALSE(dtype_from_name(""));
}

TEST(DType, DefaultIsAFloat) {
  EXPECT_EQ(default_dtype(), DType::Float32);
  set_default_dtype(DType::Float64);
  EXPECT_EQ(Scalar(1.5).natural_dtype(), DType::Float64);
  EXPECT_EQ(Scalar(std::complex<double>(0, 1)).natural_dtype(), DType::Complex128);
  set_default_dtype(DType::Float32);
  EXPECT_EQ(error_of([] { set_default_dtype(DType::Int32); }).kind(), ErrorKind::InvalidType);
  EXPECT_EQ(default_dtype(), DType::Float32);
}

// ---- Tensors -----------------------------------------------------------------------------------

TEST(Tensor, HasShapeStridesAndValues) {
  const Tensor t =
      Tensor::from_vector(std::vector<double>{1, 2, 3, 4, 5, 6}, Shape{2, 3}, DType::Float32);
  EXPECT_EQ(t.rank(), 2);
  EXPECT_EQ(t.shape(), (Shape{2, 3}));
  EXPECT_EQ(t.dim(-1), Dim(3));
  EXPECT_EQ(t.numel(), Dim(6));
  EXPECT_EQ(t.strides()[0], 3);
  EXPECT_EQ(t.strides()[1], 1);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t.describe(), "float32[2, 3]");
  EXPECT_EQ(t.to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t->data) % 64, 0U);
}

TEST(Tensor, ZeroDimAndZeroSize) {
  const Tensor scalar = Tensor::scalar(2.5, DType::Float64);
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.numel(), Dim(1));
  EXPECT_EQ(scalar.item_double(), 2.5);
  EXPECT_EQ(scalar.describe(), "float64[]");
  const Tensor none = Tensor::empty({3, 0, 2}, DType::Int32);
  EXPECT_EQ(none.numel(), Dim(0));
  EXPECT_TRUE(none.to_vector<double>().empty());
  EXPECT_TRUE(none.is_contiguous());
  EXPECT_EQ(Tensor::scalar(int64_t{(int64_t{1} << 53) + 1}, DType::Int64).item_int(),
            (int64_t{1} << 53) + 1);
  EXPECT_EQ(error_of([&] { none.item_double(); }).kind(), ErrorKind::InvalidArgument);
}

TEST(Tensor, ViewsShareMemory) {
  const Tensor base =
      Tensor::from_vector(std::vector<int64_t>{0, 1, 2, 3, 4, 5}, Shape{2, 3}, DType::Int64);
  const int64_t strides[] = {1, 3};
  const Tensor turned =
      Tensor::view_of(base->storage, Shape{3, 2}, strides, base->data, DType::Int64);
  EXPECT_FALSE(turned.is_contiguous());
  EXPECT_EQ(turned.to_vector<int64_t>(), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  const int64_t back[] = {-1};
  const Tensor reversed =
      Tensor::view_of(base->storage, Shape{3}, back, base.data<int64_t>() + 2, DType::Int64);
  EXPECT_EQ(reversed.to_vector<int64_t>(), (std::vector<int64_t>{2, 1, 0}));
  const int64_t repeat[] = {0, 1};
  const Tensor repeated =
      Tensor::view_of(base->storage, Shape{2, 2}, repeat, base->data, DType::Int64);
  EXPECT_EQ(repeated.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 0, 1}));
  base.data<int64_t>()[1] = 77;
  EXPECT_EQ(turned.to_vector<int64_t>()[2], 77);
  const StoragePtr storage = base->storage;
  EXPECT_EQ(storage->reference_count(), 5U);
}

TEST(Tensor, ContiguityIgnoresStridesThatAreNotUsed) {
  const Tensor base = Tensor::empty({6}, DType::Float32);
  const int64_t odd[] = {99, 1};
  EXPECT_TRUE(
      Tensor::view_of(base->storage, Shape{1, 6}, odd, base->data, DType::Float32).is_contiguous());
  const int64_t gaps[] = {5, 2};
  EXPECT_TRUE(Tensor::view_of(base->storage, Shape{0, 3}, gaps, base->data, DType::Float32)
                  .is_contiguous());
  EXPECT_FALSE(Tensor::view_of(base->storage, Shape{2, 1}, gaps, base->data, DType::Float32)
                   .is_contiguous());
}

TEST(Tensor, HoldsMoreAxesThanFitInline) {
  Shape shape(12, 1);
  shape[0] = 2;
  shape[11] = 3;
  const Tensor t = Tensor::empty(shape, DType::UInt8);
  EXPECT_EQ(t.shape(), shape);
  EXPECT_EQ(t.strides()[0], 3);
  const Tensor copy(t->alias());
  EXPECT_EQ(copy.shape(), shape);
  EXPECT_EQ(copy->data, t->data);
  EXPECT_EQ(t->storage->reference_count(), 2U);
}

TEST(Tensor, BecomesAnother) {
  const Tensor t = Tensor::scalar(1.0, DType::Float32);
  t->flags |= kParameter;
  const Tensor other = Tensor::from_vector(std::vector<double>{1, 2}, Shape{2}, DType::Float64);
  t->become(*other.impl());
  EXPECT_EQ(t.describe(), "float64[2]");
  EXPECT_EQ(t->storage, other->storage);
  EXPECT_TRUE(t.has(kParameter)) << "what it is stays";
}

TEST(Tensor, MetaTensorsHaveSymbolicShapes) {
  const Dim n = Dim::symbol("n", 4);
  const Tensor t = Tensor::meta(Shape{n, 3}, DType::Float16);
  EXPECT_EQ(t.numel(), 3 * n);
  EXPECT_EQ(t.describe(), "float16[n, 3]");
  EXPECT_EQ(error_of([&] { t.to_vector<double>(); }).kind(), ErrorKind::Runtime);
  EXPECT_EQ(error_of([&] { Tensor::empty(Shape{n}, DType::Float32); }).kind(),
            ErrorKind::Unsupported);
}

TEST(Tensor, ImpossibleSizesAreErrors) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(error_of([] { Tensor::empty({2, -1}, DType::Float32); }).kind(),
            ErrorKind::InvalidArgument);
  EXPECT_EQ(error_of([&] { Tensor::empty({large, large}, DType::Float32); }).kind(),
            ErrorKind::InvalidArgument);
  EXPECT_EQ(error_of([] { Tensor::empty({int64_t{1} << 62}, DType::Float64); }).kind(),
            ErrorKind::InvalidArgument);
  // Strides are products too, even where there are no elements.
  EXPECT_EQ(error_of([&] { Tensor::empty({0, large, large}, DType::Float32); }).kind(),
            ErrorKind::InvalidArgument);
  EXPECT_EQ(error_of([&] { Tensor::empty({large, large, 0}, DType::Float32); }).kind(),
            ErrorKind::InvalidArgument);
  EXPECT_EQ(Tensor::empty({0, large}, DType::Float32).numel(), Dim(0));
  const auto wrong = [] {
    Tensor::from_vector(std::vector<double>{1, 2}, Shape{3}, DType::Float32);
  };
  EXPECT_EQ(error_of(wrong).kind(), ErrorKind::InvalidArgument);
}

TEST(Tensor, AxesCountFromBothEnds) {
  EXPECT_EQ(normalise_axis(-1, 3), 2);
  EXPECT_EQ(normalise_axis(2, 3), 2);
  const Error error = error_of([] { normalise_axis(3, 3); });
  EXPECT_EQ(error.text(), "axis 3 does not fit a tensor of rank 3.");
  EXPECT_EQ(error.hint(), "Pass a value from -3 to 2.");
  EXPECT_EQ(error_of([] { normalise_axis(0, 0); }).kind(), ErrorKind::OutOfRange);
}

// ---- Storage -----------------------------------------------------------------------------------

TEST(Storage, AdoptedMemoryIsGivenBackOnce) {
  static int given_back = 0;
  given_back = 0;
  double memory[4] = {1, 2, 3, 4};
  int context = 5;
  {
    const StoragePtr storage = Storage::adopt(
        memory, sizeof(memory), Device{},
        [](void* c, void* data, size_t bytes) {
          ++given_back;
          EXPECT_EQ(*static_cast<int*>(c), 5);
          EXPECT_EQ(static_cast<double*>(data)[3], 4);
          EXPECT_EQ(bytes, 32U);
        },
        &context);
    const int64_t strides[] = {1};
    Tensor a = Tensor::view_of(storage, Shape{4}, strides, memory, DType::Float64);
    const Tensor b = a;
    a = Tensor();
    EXPECT_EQ(given_back, 0);
    EXPECT_EQ(b.to_vector<double>()[2], 3);
  }
  EXPECT_EQ(given_back, 1);
}

TEST(Storage, CountsVersions) {
  const Tensor t = Tensor::empty({2}, DType::Float32);
  const uint32_t before = t->storage->version();
  t->storage->bump_version();
  EXPECT_EQ(t->storage->version(), before + 1);
  EXPECT_FALSE(t->storage->is_readonly());
}

// ---- Arguments ---------------------------------------------------------------------------------

TEST(Frame, OwnsWhatItsValuesPointTo) {
  Frame frame;
  {
    const Tensor t = Tensor::scalar(3.0, DType::Float32);
    const std::vector<Tensor> list = {t, Tensor()};
    const std::vector<int64_t> ints = {1, 2, 3};
    const std::vector<double> reals = {0.5};
    const std::string text = "mode";
    const Scalar number(std::complex<double>(1, 2));
    const Value values[] = {Value(t),
                            Value(TensorList(list)),
                            Value(Ints(ints)),
                            Value(std::span<const double>(reals)),
                            Value(std::string_view(text)),
                            Value(number),
                            Value(DType::Int8),
                            Value()};
    frame = Frame(Args(values, 8));
  }
  EXPECT_EQ(frame[0].as_tensor().item_double(), 3);
  EXPECT_EQ(frame[1].as_tensors().size(), 2U);
  EXPECT_FALSE(frame[1].as_tensors()[1].defined());
  EXPECT_EQ(frame[2].as_ints()[2], 3);
  EXPECT_EQ(frame[3].as_doubles()[0], 0.5);
  EXPECT_EQ(frame[4].as_string(), "mode");
  EXPECT_EQ(frame[5].as_scalar().to_complex(), std::complex<double>(1, 2));
  EXPECT_EQ(frame[6].as_dtype(), DType::Int8);
  EXPECT_TRUE(frame[7].is_none());
  const Frame copy = frame.clone();
  EXPECT_EQ(copy[4].as_string(), "mode");
  EXPECT_NE(static_cast<const void*>(copy[4].string), static_cast<const void*>(frame[4].string));
  int count = 0;
  for_each_tensor(frame.args(), [&](const Tensor&) { ++count; });
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace oar
