// Placements and plans of whole training steps.
#include <gtest/gtest.h>

#include <chrono>

#include "capture_util.h"
#include "oar/ir/parse.h"
#include "oar/planner/report.h"
#include "oar/planner/search.h"
#include "oar/planner/transformer.h"

namespace oar::planner {
namespace {

Machine test_machine() {
  Machine m;
  m.flops = 1e14;
  m.scalar_flops = 1e13;
  m.bandwidth = 1e12;
  m.memory = 80e9;
  m.launch = 1e-6;
  m.links = {{"box", 8, 1e-6, 1e11}, {"net", 1 << 20, 1e-5, 1e10}};
  return m;
}

Transformer small_model() {
  Transformer m;
  m.layers = 4;
  m.hidden = 1024;
  m.heads = 16;
  m.vocabulary = 8192;
  m.sequence = 512;
  m.batch = 32;
  return m;
}

AxisRequest along(int64_t size, AxisRequest::Batch batch) {
  AxisRequest request;
  request.axis = {"tensor", {size, 1}};
  request.batch = batch;
  return request;
}

Layout layout_of(const Program& program, const AxisPlan& plan, const char* name) {
  const ValueId id = program.find(name);
  EXPECT_NE(id, kNoValue) << name;
  return plan.made[static_cast<size_t>(id)];
}

TEST(PlannerSearch, ReadsPhases) {
  const Program program = training_step(small_model());
  EXPECT_TRUE(verify(program).empty()) << join(verify(program), "\n");
  const Step step = read_step(program);
  EXPECT_EQ(step.batch, 32);
  std::array<double, 3> flops{};
  size_t updates = 0;
  for (const StepCall& call : step.calls) {
    flops[static_cast<size_t>(call.phase)] += call.cost.products;
    updates += call.phase == Phase::Update;
  }
  EXPECT_EQ(updates, (program.states.size() - 1) / 4);  // one part for each parameter
  // Two products of the backward phase for each of the forward phase; attention's derivative computes its scores again.
  EXPECT_NEAR(flops[1] / flops[0], 2, 0.3);
  EXPECT_EQ(flops[2], 0);
}

TEST(PlannerSearch, RefusesWhatIsNoTrainingStep) {
  const Program program = parse_program(
      "program f(%x: float32[4, 2]) -> (%y: float32[4, 2]) {\n  %y = relu(%x) : float32[4, 2]\n}");
  EXPECT_NE(error_of([&] { read_step(program); }).find("no training step"), std::string::npos);
}

TEST(PlannerSearch, WeightsAreCutAndStayWhereTheyAreIfMemoryIsDear) {
  Transformer m = small_model();
  m.batch = 1;
  m.sequence = 64;
  const Program program = training_step(m);
  const Step step = read_step(program);
  AxisRequest request = along(8, AxisRequest::Batch::Whole);
  request.price = 1e-9;
  const AxisPlan plan = place(step, test_machine(), request);
  for (const char* name : {"layer1.query", "layer1.out", "layer1.up", "layer1.down"})
    EXPECT_GE(layout_of(program, plan, name), 0) << name;
  // Activations are smaller than weights here, so only they are sent, as by hand.
  for (const Transfer& t : transfers_of(step, test_machine(), plan, 1))
    if (t.phase != Phase::Update) {
      EXPECT_LE(t.bytes, 64 * 8192 * 4) << program.label(t.value);
      EXPECT_FALSE(step.values[static_cast<size_t>(t.value)].origin == Origin::State &&
                   t.bytes > 1024 * 1024)
          << program.label(t.value);
    }
}

TEST(PlannerSearch, FoldingCostsNothingWhereBlocksRepeat) {
  Transformer m = small_model();
  m.layers = 3;
  const Program program = training_step(m);
  const Step step = read_step(program);
  AxisRequest request = along(4, AxisRequest::Batch::Whole);
  const AxisPlan folded = place(step, test_machine(), request);
  request.fold = false;
  const AxisPlan whole = place(step, test_machine(), request);
  EXPECT_LE(folded.variables, whole.variables);
  EXPECT_GE(folded.cost, whole.bound * (1 - 1e-9));
  EXPECT_LE(folded.cost, whole.cost * 1.02);
}

TEST(PlannerSearch, NeverWorseThanAPlacementByHand) {
  const Program program = training_step(small_model());
  const Step step = read_step(program);
  AxisRequest request = along(8, AxisRequest::Batch::Whole);
  const AxisPlan free = place(step, test_machine(), request);
  request.fixed[program.find("layer1.up")] = 0;
  request.fixed[program.find("layer1.down")] = 1;
  const AxisPlan by_hand = place(step, test_machine(), request);
  EXPECT_EQ(layout_of(program, by_hand, "layer1.up"), 0);
  EXPECT_EQ(layout_of(program, by_hand, "layer1.down"), 1);
  EXPECT_LE(free.cost, by_hand.cost);
  request.fixed[program.find("layer1.up")] = 1;
  request.fixed[program.find("steps")] = 0;  // a number has no axis
  EXPECT_NE(
      error_of([&] { place(step, test_machine(), request); }).find("nothing can be cut as asked"),
      std::string::npos);
}

TEST(PlannerSearch, CutsTheBatchAndSumsGradients) {
  const Program program = training_step(small_model());
  const Step step = read_step(program);
  AxisRequest request = along(8, AxisRequest::Batch::Cut);
  request.axis.name = "data";
  request.states = StateRule::Whole;
  const AxisPlan plan = place(step, test_machine(), request);
  EXPECT_EQ(layout_of(program, plan, "tokens"), 0);
  double reduced = 0, parameters = 0;
  for (const Transfer& t : transfers_of(step, test_machine(), plan, 1))
    if (t.from == kPartial) reduced += t.bytes;
  for (size_t s = 0; s < program.states.size(); ++s)
    if (step.is_parameter(s))
      parameters += step.values[static_cast<size_t>(program.states[s].value)].bytes;
  // The embedding's gradient may be summed where its columns are.
  EXPECT_GT(reduced / parameters, 0.8);
  EXPECT_LT(reduced / parameters, 1.02);
}

TEST(PlannerSearch, CutStatesSaveMemory) {
  const Program program = training_step(small_model());
  const Step step = read_step(program);
  PlanChoice choice;
  choice.data = 8;
  std::vector<double> memory;
  for (const int zero : {0, 1, 3}) {
    choice.zero = zero;
    const Plan plan = evaluate(step, test_machine(), choice, 0);
    EXPECT_EQ(zero_stage(plan), zero);
    memory.push_back(plan.memory);
  }
  EXPECT_LT(memory[1], memory[0]);
  EXPECT_LT(memory[2], memory[1]);
  choice.recompute = true;
  EXPECT_LT(evaluate(step, test_machine(), choice, 0).memory, memory[2]);
}

class PlannerWholeSearch : public testing::Test {
 protected:
  static Transformer model() {
    Transformer m = small_model();
    m.layers = 2;
    return m;
  }
  static ToldPlan told(int64_t data, int64_t tensor, int64_t pipeline, int64_t micro) {
    ToldPlan plan{format("{}x{}x{}", data, tensor, pipeline), {}};
    plan.choice.data = data;
    plan.choice.tensor = tensor;
    plan.choice.pipeline = pipeline;
    plan.choice.micro_batches = micro;
    return plan;
  }

  const Program program = training_step(model());
  const Step step = read_step(program);
  const Machine machine = test_machine();
};

TEST_F(PlannerWholeSearch, IsNeverWorseThanToldPlans) {
  SearchRequest request;
  request.devices = 8;
  request.told = {told(8, 1, 1, 1), told(2, 4, 1, 1), told(1, 8, 1, 1), told(4, 1, 2, 4)};
  const SearchResult result = search(step, machine, request);
  EXPECT_TRUE(result.best.fits);
  EXPECT_EQ(result.best.choice.devices(), 8);
  ASSERT_EQ(result.told.size(), 4U);
  for (const Plan& plan : result.told)
    EXPECT_LE(result.best.seconds(), plan.seconds()) << plan.name;
  for (const Plan& plan : result.alternatives)
    EXPECT_LE(result.best.seconds(), plan.seconds()) << plan.choice.str();
}

TEST_F(PlannerWholeSearch, LessMemoryGivesAPlanThatFitsOrSaysThatNoneDoes) {
  SearchRequest request;
  request.devices = 8;
  const Plan fastest = search(step, machine, request).best;
  request.memory = fastest.memory * 0.8;
  const SearchResult smaller = search(step, machine, request);
  EXPECT_TRUE(smaller.best.fits);
  EXPECT_LE(smaller.best.memory, request.memory);
  EXPECT_GE(smaller.best.seconds(), fastest.seconds());
  request.memory = 1e6;
  const SearchResult none = search(step, machine, request);
  EXPECT_FALSE(none.best.fits);
  EXPECT_LE(none.best.memory, smaller.best.memory);
}

TEST_F(PlannerWholeSearch, RefusesAPlanForAnotherNumberOfDevices) {
  SearchRequest request;
  request.devices = 8;
  request.told = {told(4, 1, 1, 1)};
  const std::string error = error_of([&] { search(step, machine, request); });
  EXPECT_NE(error.find("uses 4 devices"), std::string::npos) << error;
  EXPECT_NE(error.find("plans for 8"), std::string::npos) << error;
}

// Nothing of the step's size may be computed while it is captured: this one has terabytes of scores and activations.
TEST(PlannerSearch, DeepStepsAreCapturedAndPlaced) {
  Transformer m;
  m.layers = 24;
  m.hidden = 12288;
  m.heads = 96;
  m.vocabulary = 51200;
  m.sequence = 2048;
  m.batch = 1536;
  const Program program = training_step(m);
  const Step step = read_step(program);
  EXPECT_EQ(step.batch, 1536);
  const AxisPlan plan = place(step, test_machine(), along(8, AxisRequest::Batch::Whole));
  EXPECT_LT(plan.variables, 600U);  // repeated blocks are one
  EXPECT_GE(plan.bound, plan.cost * 0.99);
}

}  // namespace
}  // namespace oar::planner
