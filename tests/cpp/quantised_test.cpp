// Tensors that are packed below a byte, and tensors with scales.
#include <gtest/gtest.h>

#include <cmath>

#include "capture_util.h"
#include "oar/ir/parse.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"
#include "oar/ops/sharding/sharded.h"
#include "oar/tensor/byte_count.h"
#include "oar/tensor/element.h"
#include "oar/tensor/scales.h"

namespace oar {
namespace {

constexpr DType kPackedTypes[] = {DType::Int4, DType::UInt4, DType::Float4E2M1FN};

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

void expect_refused(const std::function<void()>& body, const std::string& part) {
  const std::string text = refusal(body);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Packed, SizesAreCountedInBits) {
  for (DType dtype : kPackedTypes) {
    EXPECT_TRUE(is_packed(dtype));
    EXPECT_EQ(bits_of(dtype), 4);
    EXPECT_EQ(byte_count(0, dtype), 0);
    EXPECT_EQ(byte_count(7, dtype), 4);
    EXPECT_EQ(byte_count(8, dtype), 4);
    EXPECT_EQ(byte_offset(6, dtype), 3);
    expect_refused([&] { byte_offset(3, dtype); }, "whole byte");
    expect_refused([&] { size_of(dtype); }, name_of(dtype));
    EXPECT_EQ(bytes_of(Shape{3, 5}, dtype).value(), 8);
    EXPECT_FALSE(is_integral(dtype) || is_floating(dtype) || is_differentiable(dtype));
  }
  EXPECT_EQ(byte_count(7, DType::Complex128), 7 * 16);
  EXPECT_EQ(byte_offset(7, DType::Float16), 14);
}

TEST(Packed, TheFirstElementIsInTheLowHalf) {
  const Tensor t =
      Tensor::from_vector(std::vector<int64_t>{1, -1, 7, -8, 5}, Shape{5}, DType::Int4);
  const auto* bytes = t.data<uint8_t>();
  EXPECT_EQ(bytes[0], 0xf1);
  EXPECT_EQ(bytes[1], 0x87);
  EXPECT_EQ(bytes[2], 0x05);  // nothing in the half that is left
  EXPECT_EQ(t.to_vector<int64_t>(), (std::vector<int64_t>{1, -1, 7, -8, 5}));
  EXPECT_EQ(Tensor::scalar(int64_t{-3}, DType::Int4).item_int(), -3);
  EXPECT_EQ(Tensor::scalar(1.5, DType::Float4E2M1FN).item_double(), 1.5);
}

TEST(Packed, ValuesRoundAndWrap) {
  const auto through = [](double v, DType dtype) {
    return packed_value(packed_bits(v, dtype), dtype);
  };
  for (int v = -8; v < 8; ++v) EXPECT_EQ(through(v, DType::Int4), v);
  for (int v = 0; v < 16; ++v) EXPECT_EQ(through(v, DType::UInt4), v);
  EXPECT_EQ(through(9.7, DType::Int4), -7);
  EXPECT_EQ(through(-9.2, DType::Int4), 7);
  EXPECT_EQ(through(-1, DType::UInt4), 15);
  const std::pair<double, double> floats[] = {{0.25, 0}, {0.75, 1},  {1.25, 1},   {1.75, 2},
                                              {2.5, 2},  {3.5, 4},   {5, 4},      {5.1, 6},
                                              {100, 6},  {-100, -6}, {-0.3, -0.5}};
  for (const auto& [given, wanted] : floats)
    EXPECT_EQ(through(given, DType::Float4E2M1FN), wanted) << given;
  EXPECT_EQ(through(std::nan(""), DType::Float4E2M1FN), 0);
  for (uint8_t bits = 0; bits < 16; ++bits)
    EXPECT_EQ(packed_bits(packed_value(bits, DType::Float4E2M1FN), DType::Float4E2M1FN), bits);
}

TEST(Packed, CastsToAndFromOtherTypes) {
  const int64_t n = 100003;  // more than one thread's share, and odd
  std::vector<int64_t> values(n);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = i * 7 % 16 - 8;
  for (DType wide : {DType::Int8, DType::Int64, DType::Float32, DType::BFloat16}) {
    const Tensor x = Tensor::from_vector(values, Shape{n}, wide);
    const Tensor packed = cast(x, DType::Int4);
    EXPECT_EQ(packed->storage->bytes(), static_cast<size_t>((n + 1) / 2));
    EXPECT_EQ(cast(packed, wide).to_vector<int64_t>(), values) << name_of(wide);
    EXPECT_EQ(assign(packed).to_vector<int64_t>(), values);
    const auto wrapped = cast(packed, DType::UInt4).to_vector<int64_t>();
    EXPECT_EQ(wrapped[0], values[0] & 15);
  }
  const Tensor turned = transpose(
      Tensor::from_vector(std::vector<double>{1, 2, 3, -4, 6, 0.5}, Shape{2, 3}, DType::Float32),
      {1, 0});
  EXPECT_EQ(cast(turned, DType::Float4E2M1FN).to_vector<double>(),
            (std::vector<double>{1, -4, 2, 6, 3, 0.5}));
}

TEST(Packed, ViewsStayWithinBytes) {
  const Tensor x =
      cast(reshape(range(Scalar(0), Scalar(24), Scalar(1), DType::Int64), {4, 6}), DType::UInt4);
  EXPECT_EQ(reshape(x, {8, 3}).to_vector<int64_t>(), x.to_vector<int64_t>());
  const Tensor rows = slice(x, {0}, {1}, {3});
  EXPECT_EQ(rows->data, static_cast<char*>(x->data) + 3);
  EXPECT_EQ(rows.to_vector<int64_t>()[0], 6);
  const Tensor odd = reshape(x, {8, 3});
  expect_refused([&] { slice(odd, {0}, {1}, {3}); }, "whole byte");
  expect_refused([&] { slice(x, {1}, {0}, {2}); }, "contiguous");
  expect_refused([&] { transpose(x, {1, 0}); }, "contiguous");
}

TEST(Packed, OpsThatDoNotTakeThemSaySo) {
  const Tensor x =
      cast(Tensor::from_vector(std::vector<int64_t>{1, 2}, Shape{2}, DType::Int64), DType::Int4);
  const Tensor f = Tensor::from_vector(std::vector<double>{1, 2}, Shape{2}, DType::Float32);
  expect_refused([&] { x + x; }, "int4");
  expect_refused([&] { f + x; }, "y has dtype int4");
  expect_refused([&] { sum(x); }, "[sum]");
  expect_refused([&] { concat({x, x}); }, "int4");
  expect_refused(
      [&] { where(Tensor::from_vector(std::vector<double>{1, 0}, Shape{2}, DType::Bool), x, x); },
      "int4");
  expect_refused([&] { zeros({3}, DType::Int4); }, "int4");
  expect_refused([&] { zeros_like(x); }, "int4");
}

TEST(Packed, BitcastReinterpretsBytes) {
  const Tensor bytes =
      Tensor::from_vector(std::vector<int64_t>{0x21, 0xf3}, Shape{2}, DType::UInt8);
  const Tensor halves = bitcast(bytes, DType::UInt4);
  EXPECT_EQ(halves.describe(), "uint4[4]");
  EXPECT_EQ(halves.to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, 15}));
  EXPECT_EQ(bitcast(halves, DType::UInt8).to_vector<int64_t>(), bytes.to_vector<int64_t>());
  EXPECT_EQ(bitcast(halves, DType::Int4).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, -1}));
}

TEST(Packed, ProgramsHoldThem) {
  const Tensor w =
      cast(Tensor::from_vector(std::vector<double>{1, -2, 3, 6, 0.5}, Shape{5}, DType::Float32),
           DType::Float4E2M1FN);
  const Program program = capture(
      [&](const std::vector<Tensor>& inputs) {
        const Tensor low = cast(inputs[0], DType::Int4);
        return std::vector<Tensor>{cast(low, DType::Float32) * cast(w, DType::Float32), low};
      },
      {{DType::Float32, Shape{5}}}, "packed");
  EXPECT_EQ(verify(program), std::vector<std::string>{});
  const std::string text = to_text(program, {.largest_constant = 16});
  EXPECT_EQ(to_text(parse_program(text), {.largest_constant = 16}), text);
  const Tensor x =
      Tensor::from_vector(std::vector<double>{1, 2, 3, -4, 5}, Shape{5}, DType::Float32);
  const Executor executor{Program(program)};
  const std::vector<Tensor> results = executor.run({{x}});
  EXPECT_EQ(results[0].to_vector<double>(), (std::vector<double>{1, -4, 9, -24, 2.5}));
  EXPECT_EQ(results[1].to_vector<double>(), x.to_vector<double>());
}

// ---- scales ------------------------------------------------------------------------------------

Tensor tensor_of(const std::vector<double>& values, const Shape& shape,
                 DType dtype = DType::Float32) {
  return Tensor::from_vector(values, shape, dtype);
}

TEST(Scales, ACastToAFloatAppliesThem) {
  const Tensor x = tensor_of({1, 2, 3, 4, 5, 6, -7, -8}, {2, 4}, DType::Int4);
  const Tensor by_row = with_scales(x, tensor_of({0.5, 10}, {2, 1}));
  EXPECT_EQ(cast(by_row, DType::Float32).to_vector<double>(),
            (std::vector<double>{0.5, 1, 1.5, 2, 50, 60, -70, -80}));
  const Tensor by_block =
      with_scales(x, tensor_of({1, 2, 3, 4}, {2, 2}), tensor_of({0, 1, 0, -1}, {2, 2}));
  EXPECT_EQ(cast(by_block, DType::Float64).to_vector<double>(),
            (std::vector<double>{1, 2, 4, 6, 15, 18, -24, -28}));
  const Tensor bytes =
      with_scales(tensor_of({100, -100}, {2}, DType::Int8), tensor_of({0.25}, {1}));
  EXPECT_EQ(cast(bytes, DType::Float32).to_vector<double>(), (std::vector<double>{25, -25}));
}

TEST(Scales, KernelsSeeThem) {
  const Tensor x = with_scales(tensor_of({1, 2}, {2}, DType::Int8), tensor_of({0.25, 2}, {2}));
  const oar_tensor& seen = *x.impl();
  ASSERT_NE(seen.scales, nullptr);
  EXPECT_EQ(static_cast<const float*>(seen.scales->scale->data)[1], 2.0f);
  EXPECT_EQ(seen.scales->zero_point, nullptr);
  EXPECT_EQ(without_scales(x)->scales, nullptr);
  EXPECT_EQ(without_scales(x)->data, x->data);
  EXPECT_EQ(scales_of(without_scales(x)), nullptr);
}

TEST(Scales, CopiesKeepThemAndOtherOpsRefuse) {
  const Tensor x = with_scales(tensor_of({1, 2}, {2}, DType::Int8), tensor_of({0.25, 2}, {2}));
  const Tensor copy = assign(x);
  EXPECT_NE(copy->data, x->data);
  EXPECT_EQ(cast(copy, DType::Float32).to_vector<double>(), (std::vector<double>{0.25, 4}));
  expect_refused([&] { x + x; }, "with scales");
  expect_refused([&] { cast(x, DType::Int32); }, "with scales");
  expect_refused([&] { reshape(x, {1, 2}); }, "with scales");
  EXPECT_EQ((without_scales(x) + without_scales(x)).to_vector<double>(),
            (std::vector<double>{2, 4}));
}

TEST(Scales, ThoseThatDoNotFitAreRefused) {
  const Tensor x = tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}, DType::Int8);
  expect_refused([&] { with_scales(x, tensor_of({1, 2}, {2})); }, "2 axes");
  expect_refused([&] { with_scales(x, tensor_of({1, 2}, {1, 2})); }, "equal blocks");
  expect_refused([&] { with_scales(x, tensor_of({1}, {1, 1}, DType::Int8)); }, "floats");
  expect_refused([&] { with_scales(x, tensor_of({1}, {1, 1}), tensor_of({1, 2}, {2, 1})); },
                 "zero_point");
}

// ---- kinds without a layer ---------------------------------------------------------------------

class Nothing : public Payload {};

// While alive, no layer is installed for the kind.
class WithoutLayer {
 public:
  WithoutLayer() { install_layer(kDistributed, nullptr); }
  ~WithoutLayer() {
    install_layer(kDistributed, nullptr);
    install_distribution_layer();
  }
};

TEST(Kinds, AKindWithoutALayerIsRefusedByName) {
  const WithoutLayer none;
  const Tensor dense = tensor_of({1, 2}, {2});
  const Tensor t = Tensor::with_payload(Kind::Distributed, Shape{2}, DType::Float32, {}, 0,
                                        make_intrusive<Nothing>());
  EXPECT_TRUE(t.has(flag_of(Kind::Distributed)));
  const std::string text = refusal([&] { dense + t; });
  EXPECT_NE(text.find("[add] y is a distributed tensor, float32[2]"), std::string::npos) << text;
}

Outputs doubled_layer(const Op& op, Args args) {
  Frame frame(args);
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].is_tensor() && args[i].as_tensor().kind() == Kind::Distributed)
      frame.set_tensor(i, full({2}, Scalar(2.0), DType::Float32));
  return proceed(op, frame.args(), below(kDistributed));
}

TEST(Kinds, AnInstalledLayerGetsTheCalls) {
  const WithoutLayer none;
  install_layer(kDistributed, doubled_layer);
  const Tensor t = Tensor::with_payload(Kind::Distributed, Shape{2}, DType::Float32, {}, 0,
                                        make_intrusive<Nothing>());
  EXPECT_EQ((t + tensor_of({1, 3}, {2})).to_vector<double>(), (std::vector<double>{3, 5}));
  install_layer(kDistributed, nullptr);
  expect_refused([&] { t + t; }, "distributed");
}

}  // namespace
}  // namespace oar
