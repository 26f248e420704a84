// Fused calls: what is one loop, what the generated code computes, and that nothing is lost where there is no code generator.
#include "capture_util.h"
#include "oar/base/flags.h"
#include "oar/base/parallel.h"
#include "oar/compiler/fusion/clusters.h"
#include "oar/compiler/fusion/code.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/parse.h"
#include "oar/ir/region.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"
#include "oar/tensor/element.h"

namespace oar {
namespace {

class Fusion : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!fusion::can_compile(&why)) GTEST_SKIP() << why;
    set_flag("fusion", "true");
    set_flag("fusion_runs", "0");
  }
  void TearDown() override {
    set_flag("fusion", kFusion);
    set_flag("fusion_runs", kRuns);
  }
  const std::string kFusion = flag_text("fusion"), kRuns = flag_text("fusion_runs");

  static std::vector<std::vector<std::string>> groups_of(const Program& program) {
    std::vector<std::vector<std::string>> made;
    for (const fusion::Group& group : fusion::find_groups(program)) {
      std::vector<std::string>& names = made.emplace_back();
      for (const size_t call : group.calls)
        names.push_back(program.body.instructions[call].op->name());
    }
    return made;
  }

  // Fused against call by call, after the pass has left a sound program that prints and parses.
  static void expect_equal_runs(const std::string& text, const Tensors& in,
                                double tolerance = 1e-5) {
    Program fused = parse_program(text);
    run_pass(pass_named("fuse"), fused);
    expect_sound(fused);
    EXPECT_EQ(to_text(parse_program(to_text(fused))), to_text(fused));
    set_flag("fusion", "false");
    const Tensors wanted = Executor(parse_program(text)).run(in);
    set_flag("fusion", "true");
    const Tensors got = Executor(parse_program(text)).run(in);
    for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], wanted[i], tolerance);
  }
};

// Near, or the same infinity, or both not a number.
void expect_alike(const Tensor& got, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(got.describe(), wanted.describe());
  const std::vector<double> a = got.to_vector<double>(), b = wanted.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    EXPECT_TRUE(same || std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i])))
        << "element " << i << ": " << a[i] << " for " << b[i];
  }
}

using Names = std::vector<std::vector<std::string>>;

const char* const kBiasGelu =
    "program f(%x: float32[6, 40], %b: float32[40]) -> (%3: float32[6, 40]) {\n"
    "  %1 = broadcast_to(%b, shape=[6, 40]) : float32[6, 40]\n"
    "  %2 = add(%x, %1) : float32[6, 40]\n"
    "  %3 = gelu(%2, approximate=False) : float32[6, 40]\n"
    "}\n";

TEST_F(Fusion, ElementsAndWhatIsSpread) {
  EXPECT_EQ(groups_of(parse_program(kBiasGelu)), (Names{{"add", "gelu"}}));
  expect_equal_runs(kBiasGelu, {numbers({6, 40}), numbers({40})});
  Program program = parse_program(kBiasGelu);
  run_pass(pass_named("fuse"), program);
  const std::vector<Instruction>& calls = program.body.instructions;
  EXPECT_EQ(calls.back().op->name(), "fused");
}

TEST_F(Fusion, ReductionsAndWhatFollowsThem) {
  const std::string text =
      "program f(%x: float32[5, 33]) -> (%6: float32[5, 33]) {\n"
      "  const %e: float32[] = 0.001\n"
      "  %1 = multiply(%x, %x) : float32[5, 33]\n"
      "  %2 = mean(%1, axis=[-1], keepdim=True) : float32[5, 1]\n"
      "  %3 = broadcast_to(%e, shape=[5, 1]) : float32[5, 1]\n"
      "  %4 = add(%2, %3) : float32[5, 1]\n"
      "  %5 = broadcast_to(%4, shape=[5, 33]) : float32[5, 33]\n"
      "  %6 = divide(%x, %5) : float32[5, 33]\n"
      "}\n";
  EXPECT_EQ(groups_of(parse_program(text)), (Names{{"multiply", "mean", "add", "divide"}}));
  expect_equal_runs(text, {numbers({5, 33})});
}

// The sums of rows are spread over columns: another loop.
TEST_F(Fusion, ReductionsThatAreSpreadAlongOtherAxesStayApart) {
  const std::string text =
      "program f(%x: float32[8, 8]) -> (%3: float32[8, 8]) {\n"
      "  %1 = sum(%x, axis=[1], dtype=None, keepdim=False) : float32[8]\n"
      "  %2 = broadcast_to(%1, shape=[8, 8]) : float32[8, 8]\n"
      "  %3 = add(%x, %2) : float32[8, 8]\n"
      "}\n";
  EXPECT_EQ(groups_of(parse_program(text)), Names());
  expect_equal_runs(text, {numbers({8, 8})});
}

// Sums of columns are a result of the loop that makes their elements; nothing in it can read them.
TEST_F(Fusion, TotalsOverRows) {
  const std::string text =
      "program f(%x: float32[50, 40]) -> (%1: float32[50, 40], %2: float32[40], %4: float32[40], "
      "%5: float32[]) {\n"
      "  %1 = tanh(%x) : float32[50, 40]\n"
      "  %2 = sum(%1, axis=[0], dtype=None, keepdim=False) : float32[40]\n"
      "  %3 = multiply(%1, %x) : float32[50, 40]\n"
      "  %4 = mean(%3, axis=[0], keepdim=False) : float32[40]\n"
      "  %5 = sum(%3, axis=None, dtype=None, keepdim=False) : float32[]\n"
      "}\n";
  EXPECT_EQ(groups_of(parse_program(text)), (Names{{"tanh", "sum", "multiply", "mean", "sum"}}));
  expect_equal_runs(text, {numbers({50, 40})}, 1e-4);
}

TEST_F(Fusion, TotalsBesideReductionsOfRows) {
  const std::string text =
      "program f(%x: float32[64, 48], %g: float32[64, 48]) -> (%5: float32[64, 48], %6: "
      "float32[48]) {\n"
      "  %1 = softmax(%x, axis=-1) : float32[64, 48]\n"
      "  %2 = multiply(%1, %g) : float32[64, 48]\n"
      "  %3 = sum(%2, axis=[-1], dtype=None, keepdim=True) : float32[64, 1]\n"
      "  %4 = broadcast_to(%3, shape=[64, 48]) : float32[64, 48]\n"
      "  %5 = subtract(%2, %4) : float32[64, 48]\n"
      "  %6 = sum(%5, axis=[0], dtype=None, keepdim=False) : float32[48]\n"
      "}\n";
  EXPECT_EQ(groups_of(parse_program(text)),
            (Names{{"softmax", "multiply", "sum", "subtract", "sum"}}));
  expect_equal_runs(text, {numbers({64, 48}), numbers({64, 48})}, 1e-4);
}

// Few elements that are joined, short rows, and a loop that may run twice are left to the kernels.
TEST_F(Fusion, TotalsThatDoNotPayStayApart) {
  const auto text = [](const char* shape, const char* made, const char* op) {
    return format(
        "program f(%x: float32[{0}]) -> (%2: float32[{1}]) {{\n"
        "  %1 = {2}(%x) : float32[{0}]\n"
        "  %2 = sum(%1, axis=[0], dtype=None, keepdim=False) : float32[{1}]\n"
        "}}\n",
        shape, made, op);
  };
  EXPECT_EQ(groups_of(parse_program(text("32, 32", "32", "exp"))), (Names{{"exp", "sum"}}));
  EXPECT_EQ(groups_of(parse_program(text("8, 32", "32", "exp"))), Names());
  set_flag("fusion_runs", "1000000000");
  EXPECT_EQ(groups_of(parse_program(text("512, 128", "128", "exp"))), (Names{{"exp", "sum"}}));
  EXPECT_EQ(groups_of(parse_program(text("512, 4", "4", "exp"))), Names());
  EXPECT_EQ(groups_of(parse_program(text("512, 4096", "4096", "exp"))), Names());
  set_flag("fusion_runs", "0");
  EXPECT_EQ(groups_of(parse_program(text("32, 32", "32", "sin"))), Names());
  expect_equal_runs(text("32, 32", "32", "sin"), {numbers({32, 32})}, 1e-4);
}

// The remainder is a function of the C library: a loop around it would not be vectorised.
TEST_F(Fusion, WhatMakesALoopSlowIsLeftOut) {
  const auto text = [](const char* shape) {
    return format(
        "program f(%x: float32[{0}]) -> (%5: float32[{0}]) {{\n"
        "  %1 = add(%x, %x) : float32[{0}]\n"
        "  %2 = tanh(%1) : float32[{0}]\n"
        "  %3 = remainder(%2, %x) : float32[{0}]\n"
        "  %4 = add(%3, %x) : float32[{0}]\n"
        "  %5 = tanh(%4) : float32[{0}]\n"
        "}}\n",
        shape);
  };
  EXPECT_EQ(groups_of(parse_program(text("512, 512"))),
            (Names{{"add", "tanh", "remainder", "add", "tanh"}}));  // asked for at any price
  set_flag("fusion_runs", "5000");
  EXPECT_EQ(groups_of(parse_program(text("512, 512"))), (Names{{"add", "tanh"}, {"add", "tanh"}}));
  EXPECT_EQ(groups_of(parse_program(text("8, 8"))), Names());
}

// The product waits for the second call and the third for the product.
TEST_F(Fusion, NothingGoesAroundAnotherCall) {
  const std::string text =
      "program f(%x: float32[8, 8]) -> (%4: float32[8, 8]) {\n"
      "  %1 = exp(%x) : float32[8, 8]\n"
      "  %2 = matmul(%1, %x, transpose_x=False, transpose_y=False) : float32[8, 8]\n"
      "  %3 = tanh(%2) : float32[8, 8]\n"
      "  %4 = add(%1, %3) : float32[8, 8]\n"
      "}\n";
  EXPECT_EQ(groups_of(parse_program(text)), (Names{{"tanh", "add"}}));
  expect_equal_runs(text, {numbers({8, 8})}, 1e-4);
}

TEST_F(Fusion, ResultsThatOthersReadAreStored) {
  const std::string text =
      "program f(%x: float32[3, 20]) -> (%1: float32[3, 20], %2: float32[3], %4: float32[20, 3]) {\n"
      "  %1 = square(%x) : float32[3, 20]\n"
      "  %2 = sum(%1, axis=[1], dtype=None, keepdim=False) : float32[3]\n"
      "  %3 = sqrt(%1) : float32[3, 20]\n"
      "  %4 = transpose(%3, perm=[1, 0]) : float32[20, 3]\n"
      "}\n";
  EXPECT_EQ(groups_of(parse_program(text)), (Names{{"square", "sum", "sqrt"}}));
  expect_equal_runs(text, {numbers({3, 20})});
}

// What eager kernels check, draw, or compute in another way.
TEST_F(Fusion, CallsThatDoMoreStayAlone) {
  const std::string text =
      "program f(%x: int64[4, 4], %y: int64[4, 4]) -> (%2: int64[4, 4]) {\n"
      "  %1 = add(%x, %y) : int64[4, 4]\n"
      "  %2 = floor_divide(%1, %y) : int64[4, 4]\n"
      "}\n";
  EXPECT_EQ(groups_of(parse_program(text)), Names());
}

TEST_F(Fusion, IntegersWrap) {
  const Tensor x = Tensor::from_vector<int64_t>({127, -128, 100, 1}, Shape{4}, DType::Int8);
  const auto function = [](const Tensors& in) {
    return Tensors{(in[0] + in[0]) * in[0], less_than(in[0] + in[0], in[0])};
  };
  expect_captures(function, {{DType::Int8, {4}, "x"}}, {{x}});
}

TEST_F(Fusion, SpecialNumbers) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> all = {nan, inf, -inf, 0.0, -0.0, 1e30, -1e30, 88.5, -100, 1e-40};
  const Tensor x = Tensor::from_vector(all, Shape{10}, DType::Float32);
  const std::vector<double> turned(all.rbegin(), all.rend());
  const Tensor y = Tensor::from_vector(turned, Shape{10}, DType::Float32);
  const auto function = [](const Tensors& in) {
    const Tensor larger = maximum(in[0], in[1]), least = fmin(in[0], in[1]);
    return Tensors{exp(larger), where(isnan(least), in[0], least) * in[1], sin(in[0] * in[1]),
                   clip(in[0] - in[1], Scalar(-1.0), Scalar(1.0))};
  };
  const Executor executor(
      capture(function, {{DType::Float32, {10}, "x"}, {DType::Float32, {10}, "y"}}));
  const Tensors got = executor.run({{x, y}}), wanted = function({x, y});
  for (size_t i = 0; i < got.size(); ++i) {
    const std::vector<double> a = got[i].to_vector<double>(), b = wanted[i].to_vector<double>();
    for (size_t k = 0; k < a.size(); ++k) {
      if (std::isnan(b[k]))
        EXPECT_TRUE(std::isnan(a[k])) << i << " " << k;
      else if (std::isinf(b[k]) || b[k] == 0)
        EXPECT_EQ(a[k], b[k]) << i << " " << k;
      else
        EXPECT_NEAR(a[k], b[k], 1e-5 * std::abs(b[k]) + 1e-44) << i << " " << k;
    }
  }
}

// One kernel serves all sizes; nothing is read or written past the end.
TEST_F(Fusion, OpenSizes) {
  const Executor executor(
      parse_program("program f<N ~ 4>(%x: float32[N, 5]) -> (%2: float32[N, 5]) {\n"
                    "  %1 = tanh(%x) : float32[N, 5]\n"
                    "  %2 = square(%1) : float32[N, 5]\n"
                    "}\n"));
  for (const int64_t n : {0, 1, 3, 16, 17, 1000}) {
    const Tensor x = numbers({n, 5});
    expect_near(executor.run({{x}})[0], square(tanh(x)));
  }
}

TEST_F(Fusion, TheNumberOfThreadsChangesNothing) {
  const std::string text =
      "program f(%x: float32[257, 1031]) -> (%3: float32[257, 1031]) {\n"
      "  %1 = exp(%x) : float32[257, 1031]\n"
      "  %2 = softmax(%1, axis=-1, dtype=None) : float32[257, 1031]\n"
      "  %3 = sigmoid(%2) : float32[257, 1031]\n"
      "}\n";
  const Executor executor(parse_program(text));
  const Tensor x = numbers({257, 1031});
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = executor.run({{x}})[0];
  set_num_threads(3);
  const Tensor three = executor.run({{x}})[0];
  set_num_threads(before);
  expect_same(one, three);
}

// Every sample of every op with a scalar body: alone in a region, against its kernel.
TEST_F(Fusion, EveryBodyIsCompiledAsItsKernelComputes) {
  size_t compiled = 0;
  for (const Op* op : Registry::get().all()) {
    if (!op->def().scalar || op->inplace_of() || op->has(Trait::View) || !op->def().samples)
      continue;
    uint64_t seed = 1;
    for (const Sample& sample : op->def().samples())
      for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Int32}) {
        Frame frame;
        Outputs wanted;
        try {
          frame = sample.make(op->schema(), dtype, seed++);
          wanted = dispatch(*op, frame.args());
        } catch (const Error&) {
          continue;  // not a call of the op
        }
        Tensors in;
        for_each_tensor(frame.args(), [&](const Tensor& t) { in.push_back(t); });
        std::vector<InputSpec> specs;
        for (const Tensor& t : in) specs.push_back({.dtype = t.dtype(), .shape = t.shape()});
        const Program program = capture(
            [&](const Tensors& given) {
              size_t next = 0;
              Frame call = frame.clone();
              for (size_t i = 0; i < call.size(); ++i)
                if (call[i].is_tensor()) call.set_tensor(i, given[next++]);
              const Outputs made = dispatch(*op, call.args());
              return Tensors(made.begin(), made.end());
            },
            specs);
        if (!program.states.empty() || !fusion::loop_of(program)) continue;
        ++compiled;
        const ClosurePtr region = make_intrusive<const Region>(program);
        const Value args[] = {Value(TensorList(in)), program_value(region)};
        const Outputs got = dispatch(get_op("fused"), Args(args, 2));
        for (size_t i = 0; i < got.size(); ++i) {
          SCOPED_TRACE(format("{} {}", op->name(), name_of(dtype)));
          expect_alike(got[i], assign(wanted[i]), dtype == DType::BFloat16 ? 2e-2 : 5e-6);
        }
      }
  }
  EXPECT_GE(compiled, 300u);
}

}  // namespace
}  // namespace oar
