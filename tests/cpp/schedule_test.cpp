// Chains of small launches that run at the same time.
#include "oar/runtime/schedule.h"

#include "capture_util.h"
#include "oar/base/flags.h"
#include "oar/base/format.h"
#include "oar/base/parallel.h"
#include "oar/device/generator.h"
#include "oar/ir/parse.h"
#include "oar/ops/gen/all.h"
#include "oar/runtime/memory_plan.h"

namespace oar {
namespace {

class Branches : public testing::Test {
 protected:
  Branches() : threads_(num_threads()) { set_num_threads(2); }
  ~Branches() override {
    set_num_threads(threads_);
    set_flag("parallel_branches", "true");
  }

  // Runs the program in lanes and without, several times, and compares bit by bit.
  static void expect_as_serial(const std::string& text, const Tensors& in, size_t forks) {
    const Executor executor(parse_program(text));
    EXPECT_EQ(executor.instance(in)->schedule().forks().size(), forks) << text;
    set_flag("parallel_branches", "false");
    EXPECT_TRUE(executor.instance(in)->schedule().forks().empty());
    const Tensors wanted = executor.run(in);
    set_flag("parallel_branches", "true");
    for (int run = 0; run < 50; ++run) {
      const Tensors got = executor.run(in);
      for (size_t i = 0; i < wanted.size(); ++i) expect_same(got[i], wanted[i]);
    }
  }

 private:
  const int threads_;
};

const std::string kType = " : float32[64, 64]\n";

// Layers of matmul and relu from one value to another; 8 us each.
std::string tower(const std::string& name, const std::string& from, int layers) {
  // Of two equal calls one would be left.
  const std::string weight = name == "p" || name == "u" ? ", %w)" : ", %w, transpose_y=True)";
  std::string text, last = from;
  for (int i = 0; i < layers; ++i) {
    const std::string h = format("%{}{}", name, i), a = h + "a";
    text += format("{} = matmul({}{}{}{} = tanh({}){}", h, last, weight, kType, a, h, kType);
    last = a;
  }
  return text;
}
std::string program_of(const std::string& results, const std::string& body) {
  return "program f(%x: float32[64, 64], %w: float32[64, 64], %i: int64[4]) -> (" + results +
         ") {\n" + body + "}\n";
}
Tensors inputs() {
  return {numbers({64, 64}),
          multiply(numbers({64, 64}, 0.7), full({}, Scalar(0.1), DType::Float32)),
          Tensor::from_vector<int64_t>({0, 3, 70, 1}, Shape{4}, DType::Int64)};
}

const std::string kTwoTowers = "%s = exp(%x)" + kType + tower("p", "%s", 4) + tower("q", "%s", 4) +
                               "%y = add(%p3a, %q3a)" + kType;

TEST_F(Branches, TowersRunAtOnce) {
  expect_as_serial(program_of("%y", kTwoTowers), inputs(), 1);
  const Executor executor(parse_program(program_of("%y", kTwoTowers)));
  const Fork& fork = executor.instance(inputs())->schedule().forks()[0];
  ASSERT_EQ(fork.lanes.size(), 2u);
  EXPECT_EQ(fork.lanes[0].size(), 8u);
}

TEST_F(Branches, TwiceInAProgramAndWithAResultOfTheirOwn) {
  expect_as_serial(
      program_of("%z, %y, %q1a", kTwoTowers + "%t = sin(%y)" + kType + tower("u", "%t", 4) +
                                     tower("v", "%y", 4) + "%z = add(%u3a, %v3a)" + kType),
      inputs(), 2);
}

TEST_F(Branches, NotAChain) {
  expect_as_serial(program_of("%p7a", tower("p", "%x", 8)), inputs(), 0);
}

TEST_F(Branches, NotWhatIsTooShortToPay) {
  expect_as_serial(program_of("%y", "%a = exp(%x)" + kType + "%b = sin(%x)" + kType +
                                        "%y = add(%a, %b)" + kType),
                   inputs(), 0);
}

TEST_F(Branches, RandomNumbersStayInOrder) {
  const std::string draw =
      " = uniform(shape=[64, 64], dtype=float32, min=0.0, max=1.0, seed=0)" + kType;
  const std::string text =
      program_of("%y", "%a" + draw + tower("p", "%a", 3) + "%b" + draw + tower("q", "%b", 3) +
                           "%y = subtract(%p2a, %q2a)" + kType);
  const Executor executor(parse_program(text));
  for (const Fork& fork : executor.instance(inputs())->schedule().forks()) EXPECT_GT(fork.begin, 0);
  set_flag("parallel_branches", "false");
  generator::seed(7);
  const Tensor wanted = executor.run(inputs())[0];
  set_flag("parallel_branches", "true");
  generator::seed(7);
  expect_same(executor.run(inputs())[0], wanted);
}

TEST_F(Branches, TheFirstErrorOfTheProgramIsTold) {
  const std::string rows = " : float32[4, 64]\n";
  const std::string text = program_of(
      "%y, %a, %b", "%s = exp(%x)" + kType + tower("p", "%s", 4) +
                        "%a = index_select(%p3a, %i, axis=0)" + rows + tower("q", "%s", 4) +
                        "%b = embedding_lookup(%i, %q3a, padding_idx=-1, sparse=False)" + rows +
                        "%y = add(%p3a, %q3a)" + kType);
  Program program = parse_program(text);
  for (Instruction& call : program.body.instructions) call.location = "line of " + call.op->name();
  const Executor executor(program);
  ASSERT_EQ(executor.instance(inputs())->schedule().forks().size(), 1u);
  for (int run = 0; run < 20; ++run) {
    const std::string error = error_of([&] { executor.run(inputs()); });
    EXPECT_NE(error.find("line of index_select"), std::string::npos) << error;
  }
  Tensors fitting = inputs();
  fitting[2] = Tensor::from_vector<int64_t>({0, 3, 7, 1}, Shape{4}, DType::Int64);
  EXPECT_EQ(executor.run(fitting).size(), 3u) << "it runs again after an error";
}

TEST_F(Branches, OneThreadHasNoLanes) {
  set_num_threads(1);
  const Executor executor(parse_program(program_of("%y", kTwoTowers)));
  EXPECT_TRUE(executor.instance(inputs())->schedule().forks().empty());
}

TEST_F(Branches, InsideAParallelBody) {
  const Executor executor(parse_program(program_of("%y", kTwoTowers)));
  const Tensors in = inputs();
  const Tensor wanted = executor.run(in)[0];
  Tensors got(4);
  parallel_chunks(4, [&](int64_t i) { got[static_cast<size_t>(i)] = executor.run(in)[0]; });
  for (const Tensor& t : got) expect_same(t, wanted);
}

TEST(MemoryPlanOfLanes, BuffersOfStepsThatRunAtOnceLieApart) {
  const std::vector<Lifetime> buffers = {{64, 0, 1}, {64, 2, 3}, {64, 4, 5}};
  const auto lanes = [](int32_t a, int32_t b) { return a < 4 && b < 4 && a / 2 != b / 2; };
  const MemoryPlan plan = plan_memory(buffers, lanes);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.offsets[2], 0);
  EXPECT_EQ(plan.bytes, 128);
}

}  // namespace
}  // namespace oar
