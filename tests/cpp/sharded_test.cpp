// Sharded tensors in one process: which cut a call gets, and what is refused. tests/python/test_sharded_tensors.py has the values,
// over real processes.
#include "oar/autograd/sharded.h"

#include <gtest/gtest.h>

#include "oar/base/string_util.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"
#include "oar/ops/sharding/choice.h"

namespace oar {
namespace {

int64_t test_mesh(const std::vector<int64_t>& sizes, std::vector<int64_t> place) {
  std::vector<std::string> axes{"a", "b"};
  axes.resize(sizes.size());
  return add_mesh({"test", axes, sizes, std::move(place), std::vector<int64_t>(sizes.size())});
}

// A sharded tensor as the process at this place has it.
Tensor at(int64_t mesh, Shape shape, const char* placements) {
  const Placement placement = read_placement(placements, mesh, shape.rank());
  return make_sharded(zeros(local_shape(shape, mesh, placement), DType::Float32), shape, mesh,
                      placement);
}

std::string cut_of(const char* name, std::vector<Tensor> operands, std::vector<Value> rest = {}) {
  const Op& op = get_op(name);
  std::vector<Value> args;
  for (const Tensor& t : operands) args.emplace_back(t);
  args.insert(args.end(), rest.begin(), rest.end());
  for (size_t i = args.size(); i < op.schema().parameters.size(); ++i)
    args.push_back(op.schema().defaults()[i]);
  const int64_t mesh = sharded(operands[0]).mesh;
  const ShardPlan plan = plan_of(op, args);
  const Choice choice = choose_cut(op, args, plan, mesh);
  std::vector<std::string> texts;
  for (const Placement& p : choice.operands) texts.push_back(placement_text(p));
  return join(texts, " | ");
}

TEST(Sharded, PartsAreRoundedUp) {
  const auto sizes = [](int64_t size, int64_t count) {
    std::vector<int64_t> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(part_of(size, count, i).size);
    return parts;
  };
  EXPECT_EQ(sizes(8, 4), (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(sizes(5, 4), (std::vector<int64_t>{2, 2, 1, 0}));
  EXPECT_EQ(sizes(0, 2), (std::vector<int64_t>{0, 0}));
  const int64_t mesh = test_mesh({2, 2}, {1, 0});
  const Placement twice = read_placement("shard 0, shard 0", mesh, 1);
  EXPECT_EQ(held_part(mesh_of(mesh), twice, 0, 7, 2).start, 4);
  EXPECT_EQ(local_shape(Shape{7, 3}, mesh, twice).str(), "[2, 3]");
}

TEST(Sharded, TheCutSendsLeast) {
  const int64_t mesh = test_mesh({2}, {0});
  // Rows of x; columns of y; the inner axis of both, which gives parts of a sum.
  EXPECT_EQ(cut_of("matmul", {at(mesh, {8, 6}, "shard 0"), at(mesh, {6, 4}, "replicate")}),
            "shard 0 | replicate");
  EXPECT_EQ(cut_of("matmul", {at(mesh, {8, 6}, "replicate"), at(mesh, {6, 4}, "shard 1")}),
            "replicate | shard 1");
  EXPECT_EQ(cut_of("matmul", {at(mesh, {8, 6}, "shard 1"), at(mesh, {6, 4}, "shard 0")}),
            "shard 1 | shard 0");
  EXPECT_EQ(cut_of("matmul", {at(mesh, {8, 6}, "replicate"), at(mesh, {6, 4}, "replicate")}),
            "replicate | replicate");
  // The smaller of the operands moves.
  EXPECT_EQ(cut_of("matmul", {at(mesh, {800, 6}, "shard 0"), at(mesh, {6, 4}, "shard 1")}),
            "shard 0 | replicate");
  // The axis of a softmax stays whole.
  EXPECT_EQ(cut_of("softmax", {at(mesh, {8, 6}, "shard 1")}), "shard 0");
  EXPECT_EQ(cut_of("softmax", {at(mesh, {6}, "shard 0")}), "replicate");
  // Sums of parts: what is linear passes them on.
  EXPECT_EQ(cut_of("add", {at(mesh, {8, 6}, "partial sum"), at(mesh, {8, 6}, "partial sum")}),
            "partial sum | partial sum");
  EXPECT_EQ(cut_of("multiply", {at(mesh, {8, 6}, "partial sum"), at(mesh, {8, 6}, "replicate")}),
            "partial sum | replicate");
  EXPECT_EQ(cut_of("multiply", {at(mesh, {8, 6}, "partial sum"), at(mesh, {8, 6}, "shard 0")}),
            "shard 0 | shard 0");
  // One row is too few for two processes.
  EXPECT_EQ(cut_of("exp", {at(mesh, {1, 6}, "shard 0")}), "shard 1");
  const int64_t grid = test_mesh({2, 2}, {0, 1});
  EXPECT_EQ(cut_of("matmul",
                   {at(grid, {8, 6}, "shard 0, shard 1"), at(grid, {6, 4}, "replicate, shard 0")}),
            "shard 0, shard 1 | replicate, shard 0");
}

TEST(Sharded, PlacementsAreRead) {
  const int64_t mesh = test_mesh({2, 2}, {0, 0});
  for (const char* text :
       {"replicate, replicate", "shard 0, shard 1", "partial prod, partial mean"})
    EXPECT_EQ(placement_text(read_placement(text, mesh, 2)), text);
  EXPECT_EQ(placement_text(read_placement("shard 1", mesh, 2)), "shard 1, replicate");
  for (const char* text : {"shard", "shard x", "shard 2", "shard -1", "partial", "partial again",
                           "cut 0", "shard 0, shard 1, shard 0", ","})
    EXPECT_THROW(read_placement(text, mesh, 2), Error) << text;
  EXPECT_THROW(mesh_of(1 << 20), Error);
  EXPECT_THROW(add_mesh({"wrong", {"a"}, {2}, {2}, {0}}), Error);
}

TEST(Sharded, PiecesMustFit) {
  const int64_t mesh = test_mesh({2}, {0});
  const Placement rows = read_placement("shard 0", mesh, 2);
  EXPECT_EQ(from_pieces(ones({2, 3}), mesh, rows, Shape{3, 3}).describe(), "float32[3, 3]");
  EXPECT_THROW(from_pieces(ones({1, 3}), mesh, rows, Shape{3, 3}), Error);
  const Tensor x = from_pieces(ones({2, 3}), mesh, rows, Shape{3, 3});
  EXPECT_EQ(piece_here(x).describe(), "float32[2, 3]");
  EXPECT_EQ((x + x).describe(), "float32[3, 3]");
  EXPECT_EQ(sharded(x + x).local.to_vector<double>(), std::vector<double>(6, 2.0));
}

}  // namespace
}  // namespace oar
