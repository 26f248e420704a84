// Descriptions of machines and models, and times on them.
#include <gtest/gtest.h>

#include "capture_util.h"
#include "oar/planner/machine.h"
#include "oar/planner/transformer.h"

namespace oar::planner {
namespace {

constexpr const char* kMachine = R"({
  "name": "test", "flops": 1e12, "scalar_flops": 1e11, "bandwidth": 1e10, "memory": "16GB", "product_efficiency": 0.5,
  "links": [{"name": "box", "devices": 4, "latency": 1e-6, "bandwidth": 1e9},
            {"name": "net", "devices": 64, "latency": 1e-5, "bandwidth": 1e8}],
  "curves": [{"collective": "all_gather", "devices": 3, "points": [[1000, 0.001], [3000, 0.002]]}]
})";

TEST(PlannerMachine, ReadsAndWrites) {
  const Machine m = parse_machine(kMachine);
  EXPECT_EQ(m.name, "test");
  EXPECT_EQ(m.memory, 16e9);
  ASSERT_EQ(m.links.size(), 2u);
  EXPECT_EQ(m.links[1].name, "net");
  EXPECT_EQ(to_json(parse_machine(to_json(m))), to_json(m));
}

TEST(PlannerMachine, TimesOfCallsAndCollectives) {
  const Machine m = parse_machine(kMachine);
  EXPECT_NEAR(m.time_of(Cost{.flops = 1e12, .bytes = 10, .products = 1e12}), 2, 1e-9);
  EXPECT_NEAR(m.time_of(Cost{.flops = 1, .bytes = 2e10}), 2, 1e-9);
  // Four devices of a box: 2 * 3 / 4 of the bytes, and twice two rounds.
  EXPECT_NEAR(m.time_of(Collective::AllReduce, 4e9, {4, 1}), 6 + 4e-6, 1e-9);
  EXPECT_NEAR(m.time_of(Collective::AllGather, 4e9, {4, 1}), 3 + 2e-6, 1e-9);
  // One device of each box: the outer link alone.
  EXPECT_NEAR(m.time_of(Collective::AllGather, 4e8, {4, 4}), 3 + 2e-5, 1e-9);
  // Two boxes: each device of a box carries a quarter outwards.
  EXPECT_NEAR(m.time_of(Collective::AllGather, 4e8, {8, 1}), 0.3 + 2e-6 + 0.5 + 1e-5, 1e-9);
  EXPECT_NEAR(m.time_of(Collective::Send, 1e8, {2, 4}), 1 + 1e-5, 1e-9);
  EXPECT_EQ(m.time_of(Collective::AllReduce, 1e8, {1, 1}), 0);
  // Measured, between points and beyond.
  EXPECT_NEAR(m.time_of(Collective::AllGather, 2000, {3, 1}), 0.0015, 1e-12);
  EXPECT_NEAR(m.time_of(Collective::AllGather, 5000, {3, 1}), 0.003, 1e-12);
  EXPECT_NEAR(m.time_of(Collective::AllGather, 10, {3, 1}), 0.001, 1e-12);
}

TEST(PlannerMachine, ErrorsHaveAWayOut) {
  const auto says = [](std::string_view text) { return error_of([&] { parse_machine(text); }); };
  EXPECT_NE(says(R"({"flop": 1})").find("did you mean \"flops\"?"), std::string::npos);
  EXPECT_NE(says(R"({"name": "x"})").find("links"), std::string::npos);
  EXPECT_NE(says(R"({"flops": 0, "links": []})").find("above 0"), std::string::npos);
  EXPECT_NE(says(R"({"overlap": 2})").find("from 0 to 1"), std::string::npos);
  EXPECT_NE(says(R"({"links": [{"devices": 1}]})").find("at least 2"), std::string::npos);
  EXPECT_NE(says(R"({"links": [{"devices": 8, "bandwidth": 1}, {"devices": 4, "bandwidth": 1}]})")
                .find("innermost"),
            std::string::npos);
  EXPECT_NE(says(R"({"curves": [{"collective": "sum"}]})").find("all_reduce"), std::string::npos);
  EXPECT_NE(says(R"({"memory": "lots"})").find("40GB"), std::string::npos);
  EXPECT_NE(says("{").find("JSON"), std::string::npos);
  EXPECT_EQ(parse_bytes("40GB", "x"), 40e9);
  EXPECT_EQ(parse_bytes(" 1.5 GiB ", "x"), 1.5 * (1 << 30));
  EXPECT_THROW(parse_bytes("-1GB", "x"), Error);
}

TEST(PlannerMachine, ReadsModels) {
  const ModelFile file = parse_model(
      R"({"layers": 3, "hidden": 32, "heads": 4, "plans": [{"name": "a", "tensor": 2, "zero": 1, "recompute": true}]})");
  EXPECT_EQ(file.model.inner, 128);
  EXPECT_EQ(file.model.head_width, 8);
  ASSERT_EQ(file.plans.size(), 1u);
  EXPECT_EQ(file.plans[0].tensor, 2);
  EXPECT_TRUE(file.plans[0].recompute);
  const auto says = [](std::string_view text) { return error_of([&] { parse_model(text); }); };
  EXPECT_NE(says(R"({"layer": 3})").find("did you mean \"layers\"?"), std::string::npos);
  EXPECT_NE(says(R"({"heads": 6, "key_heads": 4})").find("must divide heads"), std::string::npos);
  EXPECT_NE(says(R"({"kind": "tree"})").find("transformer"), std::string::npos);
  EXPECT_NE(says(R"({"plans": [{"zero": 4}]})").find("0 to 3"), std::string::npos);
}

}  // namespace
}  // namespace oar::planner
