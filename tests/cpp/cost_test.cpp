// Costs: every op has one, it grows with the sizes, and symbolic sizes count as their hints.
#include "oar/ir/cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "oar/base/string_util.h"
#include "oar/compiler/capture/capture.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/program_args.h"
#include "oar/ops/core/work.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/relu.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/bind.h"

namespace oar {
namespace {

DType test_dtype(const Op& op) {
  for (DType t : {DType::Float32, DType::Int64, DType::Complex64, DType::Bool})
    if (op.accepts(t)) return t;
  return DType::Float32;
}

// Of the call on tensors without content.
Cost cost_of_call(const Op& op, Args args) {
  const Frame bare = bare_call(args);
  const Outputs results = dispatch(op, bare.args());
  return cost_of(op, bare.args(), TensorList(results.data(), results.size()));
}

struct Arguments {
  Frame frame;
  Arguments(const char* op, std::initializer_list<Shape> shapes,
            const std::vector<Value>& rest = {}) {
    const Schema& schema = get_op(op).schema();
    frame = schema.defaults().clone();
    size_t i = 0;
    for (const Shape& shape : shapes) frame.set_tensor(i++, Tensor::meta(shape, DType::Float32));
    for (const Value& v : rest) frame.set(i++, v);
  }
};

Cost cost(const char* op, std::initializer_list<Shape> shapes,
          const std::vector<Value>& rest = {}) {
  return cost_of_call(get_op(op), Arguments(op, shapes, rest).frame.args());
}

// Is it in an operand's own memory?
bool shows_an_operand(const Tensor& result, Args args) {
  bool shows = false;
  for_each_tensor(args, [&](const Tensor& t) {
    shows |= t.is_dense() && result.is_dense() && t->storage.get() == result->storage.get();
  });
  return shows;
}

TEST(Cost, EveryOpHasOne) {
  std::set<std::string> seen;
  std::vector<std::string> wrong;
  int64_t calls = 0, working = 0;
  for (const Op* op : Registry::get().all()) {
    if (!op->is_built_in() || op->inplace_of() || !op->def().samples) continue;
    uint64_t seed = 1;
    for (const Sample& sample : op->def().samples()) {
      const Frame frame = sample.make(op->schema(), test_dtype(*op), seed++);
      Outputs results = dispatch(*op, frame.args());
      const Cost c = cost_of(*op, frame.args(), TensorList(results.data(), results.size()));
      double written = 0;
      for (const Tensor& t : results)
        if (!shows_an_operand(t, frame.args())) written += elements(t);
      const bool sane = std::isfinite(c.flops) && std::isfinite(c.bytes) && c.flops >= 0 &&
                        c.bytes >= 0 && c.products >= 0 && c.products <= c.flops;
      const bool works = c.flops > 0 || c.bytes > 0;
      if (!sane || (written > 0 && !works))
        wrong.push_back(format("{}: {} flops, {} bytes", op->name(), c.flops, c.bytes));
      ++calls;
      working += works;
      seen.insert(op->name());
    }
  }
  EXPECT_TRUE(wrong.empty()) << join(wrong, "\n");
  EXPECT_GE(seen.size(), 400u);
  EXPECT_GE(calls, 1500);
  EXPECT_GE(working, 1200);
}

// One axis of one operand after the other becomes a symbol.
TEST(Cost, SymbolicSizesCountAsTheirHints) {
  int64_t compared = 0;
  std::vector<std::string> wrong;
  for (const Op* op : Registry::get().all()) {
    if (!op->is_built_in() || op->inplace_of() || !op->def().samples || op->has(Trait::Inplace) ||
        op->has(Trait::DataDependent) || op->has(Trait::Random))
      continue;
    const Frame frame = op->def().samples()[0].make(op->schema(), test_dtype(*op), 1);
    if (frame.size() == 0 || !frame[0].is_tensor()) continue;
    const Cost known = cost_of_call(*op, frame.args());
    const Tensor& first = frame[0].as_tensor();
    for (int axis = 0; axis < first.rank(); ++axis) {
      if (first.dim(axis).value() < 2) continue;
      Shape shape = first.shape();
      shape[static_cast<size_t>(axis)] = Dim::symbol("n", first.dim(axis).value());
      Frame symbolic = bare_call(frame.args());
      symbolic.set_tensor(0, Tensor::meta(shape, first.dtype()));
      Cost guess;
      try {
        const DimAssumptions follow_hints;
        guess = cost_of_call(*op, symbolic.args());
      } catch (const Error&) {
        continue;  // the size has to be a number; Registry tests say where
      }
      ++compared;
      if (std::abs(guess.flops - known.flops) > 1e-9 * known.flops ||
          std::abs(guess.bytes - known.bytes) > 1e-9 * known.bytes)
        wrong.push_back(format("{} axis {}: {} flops, {} bytes instead of {}, {}", op->name(), axis,
                               guess.flops, guess.bytes, known.flops, known.bytes));
    }
  }
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " differ:\n" << join(wrong, "\n");
  EXPECT_GE(compared, 400);
}

TEST(Cost, ProductsCountTheirMultiplyAdds) {
  const Cost base = cost("matmul", {{8, 16}, {16, 32}});
  EXPECT_EQ(base.flops, 2.0 * 8 * 16 * 32);
  EXPECT_EQ(base.products, base.flops);
  EXPECT_EQ(base.bytes, 4.0 * (8 * 16 + 16 * 32 + 8 * 32));
  // Twice the size of any axis is twice the work.
  EXPECT_EQ(cost("matmul", {{16, 16}, {16, 32}}).flops, 2 * base.flops);
  EXPECT_EQ(cost("matmul", {{8, 32}, {32, 32}}).flops, 2 * base.flops);
  EXPECT_EQ(cost("matmul", {{8, 16}, {16, 64}}).flops, 2 * base.flops);
  EXPECT_EQ(cost("matmul", {{2, 8, 16}, {2, 16, 32}}).flops, 2 * base.flops);
  EXPECT_EQ(cost("matmul", {{16, 8}, {32, 16}}, {true, true}).flops, base.flops);
  EXPECT_EQ(cost("linear", {{8, 16}, {16, 32}, {32}}).products, base.products);
  EXPECT_EQ(cost("mm", {{8, 16}, {16, 32}}).products, base.products);  // by its decomposition
  EXPECT_EQ(cost("bmm", {{3, 8, 16}, {3, 16, 32}}).products, 3 * base.products);
}

TEST(Cost, DerivedCostsFollowTheParts) {
  // A filter of 3 * 3 * 3 weights for each of 2 * 4 * 8 * 8 elements.
  EXPECT_EQ(cost("conv2d", {{2, 3, 8, 8}, {4, 3, 3, 3}}).products, 0 + 2.0 * (2 * 4 * 6 * 6) * 27);
  const Cost attention = cost("attention", {{2, 16, 4, 8}, {2, 16, 4, 8}, {2, 16, 4, 8}});
  EXPECT_GE(attention.products, 2 * 2.0 * (2 * 4 * 16 * 16) * 8);
  EXPECT_GT(attention.flops, attention.products);  // the softmax
  const Cost longer = cost("attention", {{2, 32, 4, 8}, {2, 32, 4, 8}, {2, 32, 4, 8}});
  EXPECT_EQ(longer.products, 4 * attention.products);
  EXPECT_EQ(longer.bytes, 2 * attention.bytes);  // one kernel: the scores stay inside
}

TEST(Cost, OtherKindsOfWork) {
  EXPECT_EQ(cost("add", {{8, 16}, {8, 16}}).flops, 128);
  EXPECT_EQ(cost("add", {{8, 16}, {8, 16}}).bytes, 3 * 4 * 128);
  EXPECT_GT(cost("exp", {{8, 16}}).flops, cost("relu", {{8, 16}}).flops);
  EXPECT_EQ(cost("reshape", {{8, 16}}, {Value(Ints(std::array<int64_t, 1>{128}))}).bytes, 0);
  EXPECT_EQ(cost("sum", {{8, 16}}).flops, 128);
  const Cost sorted = cost("sort_with_indices", {{4, 256}});
  EXPECT_EQ(sorted.flops, 4.0 * 256 * 8);
  EXPECT_EQ(cost("flip", {{8, 16}}, {Value(Ints(std::array<int64_t, 1>{0}))}).flops, 0);
  // A table ten times as long does not cost more to look up in.
  const auto lookup = [](int64_t rows) {
    const Tensor x = Tensor::meta(Shape{5}, DType::Int64),
                 table = Tensor::meta(Shape{rows, 8}, DType::Float32);
    Frame frame = get_op("embedding_lookup").schema().defaults().clone();
    frame.set_tensor(0, x);
    frame.set_tensor(1, table);
    return cost_of_call(get_op("embedding_lookup"), frame.args());
  };
  EXPECT_EQ(lookup(100).bytes, lookup(1000).bytes);
  EXPECT_EQ(lookup(100).bytes, 2.0 * 5 * 8 * 4 + 5 * 8);
}

TEST(Cost, TimesAreGuessedFromCosts) {
  const auto time = [](const char* op, std::initializer_list<Shape> shapes) {
    const Frame frame = bare_call(Arguments(op, shapes).frame.args());
    const Outputs results = dispatch(get_op(op), frame.args());
    return guessed_time(get_op(op), frame.args(), TensorList(results.data(), results.size()));
  };
  EXPECT_GT(time("matmul", {{256, 256}, {256, 256}}), 5 * time("add", {{256, 256}, {256, 256}}));
  EXPECT_GT(time("softmax", {{256, 256}}), time("relu", {{256, 256}}));
}

TEST(Cost, ProgramsAddUp) {
  const Program program = capture(
      [](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{relu(matmul(in[0], in[1])) + 1.0};
      },
      {InputSpec{.shape = {8, 16}}, InputSpec{.shape = {16, 4}}}, "step");
  const Cost total = cost_of(program);
  double flops = 0;
  for (const Instruction& call : program.body.instructions) flops += cost_of(program, call).flops;
  EXPECT_EQ(total.flops, flops);
  EXPECT_EQ(total.products, 2.0 * 8 * 16 * 4);
  EXPECT_GE(total.flops, total.products + 2.0 * 8 * 4);
}

}  // namespace
}  // namespace oar
