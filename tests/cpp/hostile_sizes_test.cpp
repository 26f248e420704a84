// Sizes, types and operands that a file may claim: rejected before they reach memory.
#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/autograd/transform.h"
#include "oar/base/error.h"
#include "oar/ir/parse.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"
#include "oar/runtime/memory_plan.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

constexpr int64_t kBillions = int64_t{1} << 31;

// The kind and text of the error that the call throws.
template <class F>
std::pair<ErrorKind, std::string> refusal(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {ErrorKind::Internal, "no error"};
}

template <class F>
void expect_refused(F&& call, const std::string& text) {
  const auto [kind, what] = refusal(call);
  EXPECT_TRUE(kind == ErrorKind::InvalidArgument || kind == ErrorKind::InvalidType ||
              kind == ErrorKind::OutOfRange || kind == ErrorKind::OutOfMemory)
      << what;
  EXPECT_NE(what.find(text), std::string::npos) << what;
}

TEST(ByteCount, NeverWraps) {
  EXPECT_EQ((Count(3) * 5 + 1).value(), 16);
  EXPECT_EQ(Count(65).aligned(64).value(), 128);
  expect_refused([] { return Count(INT64_MAX) * 2; }, "overflow 64 bits");
  expect_refused([] { return Count(INT64_MAX) + 1; }, "overflow 64 bits");
  expect_refused([] { return Count(INT64_MAX - 3).aligned(64); }, "overflow 64 bits");
}

TEST(ByteCount, OfTensors) {
  EXPECT_EQ(bytes_of(Shape{2, 3}, DType::Float32).value(), 24);
  EXPECT_EQ(bytes_of(Shape{}, DType::Complex128).value(), 16);
  EXPECT_EQ(bytes_of(Shape{5, 0}, DType::Int64).value(), 0);
  for (const Shape& shape : {Shape{kBillions, kBillions}, Shape{kBillions, kBillions, 0},
                             Shape{0, kBillions, kBillions}, Shape{INT64_MAX}})
    expect_refused([&] { bytes_of(shape, DType::Float32); }, "bytes, which is more than can");
  expect_refused([] { bytes_of(Shape{-1}, DType::Float32); }, "negative");
}

TEST(HostileSizes, AMemoryPlanDoesNotWrap) {
  const std::vector<Lifetime> buffers(4, Lifetime{int64_t{1} << 62, 0, 1});
  expect_refused([&] { plan_memory(buffers); }, "overflow 64 bits");
}

TEST(HostileSizes, CapturedCallsAreRefusedAsEagerOnesAre) {
  const auto both = [](const CapturedFunction& f, const std::string& text) {
    const Tensor x = numbers({3});
    expect_refused([&] { f({x}); }, text);
    expect_refused([&] { Executor(capture(f, {{DType::Float32, {3}}})).run(Tensors{x}); }, text);
  };
  both([](const Tensors& x) { return Tensors{rand({kBillions, kBillions}) + x[0]}; }, "[uniform]");
  both([](const Tensors& x) { return Tensors{diagflat(x[0], int64_t{1} << 40)}; },
       "a size overflows");
  both([](const Tensors& x) { return Tensors{zeros({kBillions, kBillions}) + x[0]}; }, "bytes");
  both([](const Tensors& x) { return Tensors{full({-1}, Scalar(1.0)) + x[0]}; }, "negative");
}

TEST(HostileSizes, AProgramsTypesMustFitIntoMemory) {
  // 2 ** 62 floats are 2 ** 64 bytes, which once counted as none.
  expect_refused(
      [] {
        parse_program(
            "program f(%x: float32[4]) -> (%1: float32[4611686018427387904]) {\n"
            "  %1 = as_strided_grad(%x, shape=[4611686018427387904], stride=[1], offset=0) : "
            "float32[4611686018427387904]\n}\n");
      },
      "bytes, which is more than can be addressed");
}

TEST(HostileSizes, InputsThatNobodyCouldGiveAreNoHarm) {
  const Executor executor(
      parse_program("program f(%x: float32[4611686018427387904]) -> (%1: "
                    "float32[4611686018427387904]) {\n  %1 = without_gradient(%x) : "
                    "float32[4611686018427387904]\n}\n"));
  expect_refused([&] { executor.instance_at_known_sizes(); }, "more than can be addressed");
}

TEST(HostileSizes, OperandsOfAnInstructionMustBeReadyForItsKernel) {
  const auto program = [](const std::string& y, const std::string& op) {
    return "program f(%x: float32[4], %y: " + y + ") -> (%1: float32[4]) {\n  %1 = " + op +
           "(%x, %y) : float32[4]\n}\n";
  };
  for (const char* y : {"float32[3]", "float32[]", "float32[1]", "float64[4]", "bool[4]"})
    for (const char* op : {"add", "relu_grad", "maximum"})
      expect_refused([&] { parse_program(program(y, op)); }, "not well formed");
  parse_program(program("float32[4]", "add"));
}

TEST(HostileSizes, WhatOpenSizesHideIsCheckedAtTheRun) {
  const Executor executor(parse_program(
      "program f<B ~ 2>(%x: float32[B]) -> (%1: float32[8]) {\n"
      "  %1 = as_strided_grad(%x, shape=[8], stride=[3], offset=0) : float32[8]\n}\n"));
  EXPECT_EQ(executor.run(Tensors{numbers({2})})[0].numel().value(), 8);
  expect_refused([&] { executor.run(Tensors{numbers({5})}); }, "reaches from element 0 to 12");
  expect_refused([&] { executor.interpret(Tensors{numbers({5})}); },
                 "reaches from element 0 to 12");
}

TEST(HostileSizes, DerivativesCheckTheOperandsOfADirectCall) {
  const Tensor x = numbers({2, 3}), small = numbers({1}),
               wide = numbers({2, 3}, 0.3, DType::Float64);
  const Tensor row = numbers({3}), image = numbers({1, 2, 4, 4}), grid = numbers({1, 3, 3, 2});
  expect_refused([&] { channel_affine_grad(x, row, small, 1); }, "grad has shape");
  expect_refused([&] { channel_affine_grad(x, small, x, 1); }, "scale has shape");
  expect_refused([&] { channel_affine_grad(x, row, wide, 1); }, "grad has dtype");
  expect_refused([&] { batch_norm_train_grad(x, {}, small, row, x, row, row, 1e-5, 1); }, "mean");
  expect_refused([&] { batch_norm_train_grad(x, {}, row, row, small, row, row, 1e-5, 1); }, "grad");
  expect_refused([&] { layer_norm_rows_grad(x, {}, small, small, x, small, small, 1); }, "mean");
  expect_refused([&] { grid_sample_grad_x(small, grid, image.dims()); }, "grad has shape");
  expect_refused([&] { grid_sample_grad_grid(image, image, grid); }, "grad has shape");
  const Tensor query = numbers({1, 2, 2, 4}), lse = numbers({1, 2, 2});
  expect_refused(
      [&] { attention_grad(query, query, query, {}, {}, x, lse, query, lse, 1, 0, false); },
      "out has shape");
  expect_refused(
      [&] { attention_grad(query, query, query, {}, {}, query, lse, query, small, 1, 0, false); },
      "grad_lse has shape");
  const Tensor label = Tensor::from_vector(std::vector<int64_t>{0, 1}, Shape{2, 1}, DType::Int64);
  const Tensor loss = numbers({2, 1});
  expect_refused([&] { softmax_cross_entropy_grad(x, label, small, loss, loss); }, "log_total");
  expect_refused([&] { softmax_cross_entropy_grad(x, label, loss, loss, x); }, "grad_log_total");
}

TEST(HostileSizes, ElementwiseOpsTakeOneDtype) {
  const Tensor x = numbers({3}), wide = numbers({3}, 0.3, DType::Float64);
  for (const char* name : {"relu_grad", "sigmoid_grad", "clip_grad", "gelu_grad"}) {
    Frame frame = get_op(name).schema().defaults().clone();
    frame.set_tensor(0, x);
    frame.set_tensor(1, wide);
    const auto [kind, text] = refusal([&] { dispatch(get_op(name), frame.args()); });
    EXPECT_TRUE(text == "no error" || kind == ErrorKind::InvalidType) << name << ": " << text;
  }
}

// What random calls and programs have found.
TEST(HostileSizes, ATangentOfAResultWithoutDerivativeIsNone) {
  const Tensor x = Tensor::from_vector(std::vector<int64_t>{1, 2, 3}, Shape{3}, DType::Int64);
  const Tensor index = Tensor::from_vector(std::vector<int64_t>{0, 2}, Shape{2}, DType::Int64);
  const Tensor value = numbers({2});
  const auto f = [&](const Tensors& in) { return Tensors{index_add(x, index, 0, in[0])}; };
  const auto [values, slopes] = jvp(f, Tensors{value}, Tensors{value});
  EXPECT_EQ(values[0].dtype(), DType::Int64);
  EXPECT_EQ(slopes[0].to_vector<double>(), (std::vector<double>{0, 0, 0}));
}

TEST(HostileSizes, NumbersOfPartsAndOrdersHaveLimits) {
  const Tensor none = Tensor::empty(Shape{0, 3}, DType::Float32), x = numbers({3});
  expect_refused([&] { split(none, {INT64_MAX / 3}, 0); }, "num_or_sections must be from 1");
  expect_refused([&] { chunk(none, INT64_MAX / 3, 0); }, "chunks must be from 1");
  const auto unbound = [](const Tensors& in) { return unbind(in[0], 0); };
  expect_refused([&] { capture(unbound, {{DType::Float32, {INT64_MAX}}}); }, "more than 1048576");
}

TEST(HostileSizes, OrdersOfPolygammaAreCountedExactly) {
  constexpr int64_t kLargest = int64_t{1} << 53;
  const Tensor x = Tensor::from_vector(std::vector<double>{0.5, 3, -0.5}, Shape{3}, DType::Float64);
  for (const int64_t n : {kLargest - 1, kLargest})
    EXPECT_EQ(polygamma(x, n).numel().value(), 3) << n;  // in bounded time
  for (const int64_t n : {kLargest + 1, INT64_MAX})
    expect_refused([&] { polygamma(x, n); },
                   format("n is {}; it must not be negative, nor larger than {}", n, kLargest));
  expect_refused([&] { polygamma(x, -1); }, "n is -1; it must not be negative");
}

TEST(HostileSizes, OrdersOfGammaincHaveALimit) {
  const Tensor x = Tensor::from_vector(std::vector<double>{0.7, 3, 40}, Shape{3}, DType::Float64);
  for (const int64_t order : {0, 1, 63, 64})
    EXPECT_EQ(gammainc_order(x, x, order).numel().value(), 3) << order;  // in bounded time
  for (const int64_t order : {int64_t{65}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const auto [kind, text] = refusal([&] { gammainc_order(x, x, order); });
    EXPECT_EQ(kind, ErrorKind::Unsupported) << text;
    EXPECT_NE(text.find(format("order is {}; ", order)), std::string::npos) << text;
    EXPECT_NE(text.find("orders from 0 to 64"), std::string::npos) << text;
  }
  // The derivative of the last one is an error when it is requested.
  const Tensor last = assign(x);
  set_stop_gradient(last, false);
  const Tensor y = sum(gammainc_order(last, x, 64));
  EXPECT_NE(refusal([&] { backward({&y, 1}, {}, {}); }).second.find("order is 65"),
            std::string::npos);
}

TEST(HostileSizes, CountsOfElementsDoNotWrap) {
  EXPECT_EQ(product_of({3, 5, 7}, DType::Int64).to_vector<int64_t>()[0], 105);
  EXPECT_EQ(product_of({INT64_MAX, 0}, DType::Int64).to_vector<int64_t>()[0], 0);
  expect_refused([] { product_of({kBillions, kBillions, 4}, DType::Float32); }, "overflow 64 bits");
}

// The values hold either way; the sanitizers of `make test-asan` tell an addition that overflows.
TEST(HostileSizes, SumsAndProductsOfIntegersWrap) {
  const Tensor most =
      Tensor::from_vector(std::vector<int64_t>{INT64_MAX, -5}, Shape{2}, DType::Int64);
  const Tensor two = Tensor::from_vector(std::vector<int64_t>{2, 3}, Shape{2}, DType::Int64);
  EXPECT_EQ(kron(most, two).to_vector<int64_t>(),
            (std::vector<int64_t>{-2, INT64_MAX - 2, -10, -15}));
  const Tensor at = Tensor::from_vector(std::vector<int64_t>{0, 0}, Shape{2}, DType::Int64);
  EXPECT_EQ(index_add(most, at, 0, two).to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MIN + 4, -5}));
  const Tensor small = cast(two, DType::Int32),
               big = full({2}, Scalar(int64_t{INT32_MAX}), DType::Int32);
  EXPECT_EQ(kron(big, small).to_vector<int64_t>(),
            (std::vector<int64_t>{-2, INT32_MAX - 2, -2, INT32_MAX - 2}));
  EXPECT_EQ(index_add(big, at, 0, small).to_vector<int64_t>(),
            (std::vector<int64_t>{INT32_MIN + 4, INT32_MAX}));
}

TEST(HostileSizes, MarginsOfUnpoolingDoNotOverflow) {
  const Tensor x = numbers({1, 1, 2, 2});
  const Tensor at = zeros({1, 1, 2, 2}, DType::Int64);
  for (const int64_t padding : {INT64_MAX, INT64_MIN / 2, int64_t{1} << 62})
    expect_refused([&] { max_unpool(x, at, {2}, IntVector{2}, {padding}, {}, "NCHW"); },
                   "padding must");
}

TEST(HostileSizes, DimensionsOfMultigammalnHaveALimit) {
  const Tensor x = numbers({3});
  for (const int64_t p : {int64_t{0}, int64_t{-1}, int64_t{65537}, INT64_MAX, INT64_MIN})
    expect_refused([&] { multigammaln(x, p); }, format("p is {}; it must be from 1 to 65536", p));
}

TEST(HostileSizes, ASeriesEndsWhereItsTermsStayTheSame) {
  const Tensor far = Tensor::from_vector(std::vector<double>{1e18}, Shape{1}, DType::Float64);
  EXPECT_EQ(gammainc_order(far, far, 1).numel().value(), 1);
}

TEST(HostileSizes, ATableNeedNotBeInMemoryForItsWritesToBeCounted) {
  const Tensor at = Tensor::from_vector(std::vector<int64_t>{5, 1, 5}, Shape{3}, DType::Int64);
  const std::vector<double> last = {0, 1, 1};
  for (const int64_t size : {int64_t{6}, int64_t{1} << 31, INT64_MAX}) {
    EXPECT_EQ(last_writes({at}, {size}).to_vector<double>(), last);
    EXPECT_EQ(last_writes_along(at, 0, size).to_vector<double>(), last);
  }
}

TEST(HostileSizes, ASizeThatDataDecideMayBeClaimedWrongly) {
  const Executor executor(
      parse_program("program f<u ~ 1>(%x: float32[5]) -> (%1: int64[1, u]) {\n"
                    "  %1 = nonzero(%x) : int64[1, u]\n}\n"));
  expect_refused([&] { executor.run(Tensors{numbers({5})}); }, "at run time");
}

TEST(HostileSizes, AMaskIsNoPosition) {
  const Tensor x = numbers({4, 3}), flag = Tensor::scalar(1.0, DType::Bool);
  const Tensor mask = Tensor::from_vector(std::vector<int64_t>{1, 0, 1, 1}, Shape{4}, DType::Bool);
  for (const Tensor& index : {flag, mask}) {
    expect_refused([&] { index_take(x, {index}); }, "positions are integers");
    expect_refused([&] { gather(x, index, -1); }, "");
    expect_refused([&] { last_writes({index}, {4}); }, "positions are integers");
  }
  expect_refused([&] { gather_nd(x, reshape(mask, {2, 2})); }, "");
}

TEST(HostileSizes, StridesAndOffsetsOfViewsDoNotOverflow) {
  const Tensor x = numbers({4, 3});
  expect_refused([&] { unfold(x, 0, 4, INT64_MAX / 2); }, "overflow 64 bits");
  expect_refused([&] { as_strided(x, {0, 2}, {5, 1}, int64_t{1} << 62); }, "is outside the tensor");
  expect_refused([&] { max_pool2d(numbers({1, 1, 4, 4}), {2}, IntVector{INT64_MAX}); }, "at most");
  expect_refused([&] { pixel_shuffle(numbers({1, 4, 2, 2}), INT64_MAX); }, "overflows");
}

TEST(HostileSizes, BitsBecomeBools) {
  const Tensor x = Tensor::from_vector(std::vector<int64_t>{0, 1, 3, 255}, Shape{4}, DType::UInt8);
  EXPECT_EQ(bitcast(x, DType::Bool).to_vector<double>(), (std::vector<double>{0, 1, 1, 1}));
}

TEST(HostileSizes, EverySizeMustBeToldByAnInput) {
  expect_refused(
      [] {
        parse_program(
            "program f(%x: float32[6]) -> (%1: float32[B, 2]) {\n"
            "  %1 = as_strided(%x, shape=[B, 2], stride=[1, 1], offset=B) : float32[B, 2]\n}\n");
      },
      "no input determines the size B");
}

}  // namespace
}  // namespace oar
