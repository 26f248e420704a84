// Sharding rules, proven by cutting: every factor of every sample's plan, in pieces of several sizes,
// each run with its own attributes, joined again and compared with the whole call.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <set>

#include "oar/base/string_util.h"
#include "oar/device/generator.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/sharding/pieces.h"
#include "oar/ops/sharding/rule.h"

namespace oar {
namespace {

DType widest_dtype(const Op& op) {
  for (DType t : {DType::Float64, DType::Int64, DType::Complex128, DType::Bool})
    if (op.accepts(t)) return t;
  return DType::Float64;
}

std::string describe_call(const Op& op, Args args) {
  std::string text = op.name() + "(";
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + args[i].str();
  return text + ")";
}

// A call that may be run more than once: what it writes is its own.
Frame own_copies(const Op& op, const Frame& frame) {
  Frame copy = frame.clone();
  for (size_t i = 0; i < frame.size(); ++i) {
    if (!op.schema().parameters[i].written) continue;
    if (frame[i].is_tensor()) copy.set_tensor(i, assign(frame[i].as_tensor()));
    if (!frame[i].is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : frame[i].as_tensors()) list.push_back(t.defined() ? assign(t) : t);
    copy.set_tensors(i, std::move(list));
  }
  return copy;
}

double tolerance_of(DType dtype) {
  switch (real_type_of(dtype)) {
    case DType::Float64:
      return 1e-10;
    case DType::Float32:
      return 1e-5;
    default:
      return is_floating(dtype) ? 1e-2 : 0;
  }
}

// What differs; empty where nothing does.
std::string difference(const Tensor& got, const Tensor& wanted) {
  if (!wanted.defined() || !got.defined())
    return wanted.defined() == got.defined() ? "" : "is there or not";
  if (got.describe() != wanted.describe())
    return format("{} instead of {}", got.describe(), wanted.describe());
  const auto x = got.to_vector<std::complex<double>>(),
             y = wanted.to_vector<std::complex<double>>();
  const double tolerance = tolerance_of(wanted.dtype());
  const auto close = [&](double u, double v) {
    return u == v || (std::isnan(u) && std::isnan(v)) ||
           std::abs(u - v) <= tolerance * (1 + std::abs(v));
  };
  for (size_t i = 0; i < x.size(); ++i)
    if (!close(x[i].real(), y[i].real()) || !close(x[i].imag(), y[i].imag()))
      return format("element {} is {} instead of {}", i, x[i].real(), y[i].real());
  return {};
}

std::vector<Piece> pieces_of(size_t factor, const std::vector<int64_t>& sizes) {
  std::vector<Piece> pieces;
  Dim start = 0;
  for (int64_t size : sizes) {
    pieces.push_back({factor, start, size});
    start = start + size;
  }
  return pieces;
}

// One call's results, followed by what it wrote.
struct Run {
  Outputs results;
  std::vector<Tensor> written;
};

Run run_whole(const Op& op, const Frame& frame) {
  const Frame own = own_copies(op, frame);
  generator::seed(5);
  Run run{dispatch(op, own.args()), {}};
  for (size_t i = 0; i < own.size(); ++i)
    if (op.schema().parameters[i].written)
      for_each_tensor(own.args().subspan(i, 1), [&](const Tensor& t) { run.written.push_back(t); });
  return run;
}

// A call, cut. The plan is for `op`, the pieces are run by it.
class Cutting {
 public:
  Cutting(const Op& op, const Frame& frame)
      : op_(op), frame_(frame), plan_(plan_of(op, frame.args())), whole_(run_whole(op, frame)) {}

  const ShardPlan& plan() const { return plan_; }

  // What is wrong with a factor; empty where nothing is.
  std::string wrong_with(size_t factor, const std::vector<int64_t>& sizes) const {
    const std::vector<Piece> pieces = pieces_of(factor, sizes);
    std::vector<Outputs> results;
    std::vector<Frame> calls;
    for (const Piece& piece : pieces) {
      calls.push_back(own_copies(op_, frame_));
      generator::seed(5);
      results.push_back(run_piece(op_, calls.back().args(), plan_, piece));
    }
    const Outputs joined = join_pieces(op_, frame_.args(), plan_, pieces, results);
    for (size_t r = 0; r < joined.size(); ++r)
      if (const std::string text = difference(joined[r], whole_.results[r]); !text.empty())
        return format("result {}: {}", r, text);
    return wrong_with_writes(pieces, calls);
  }

  // Two factors cut at once, in halves: the plan of a piece cuts it further.
  std::string wrong_with_pair(size_t first, size_t second) const {
    const std::vector<Piece> pieces = pieces_of(first, halves(first));
    std::vector<Outputs> results;
    for (const Piece& piece : pieces) {
      const Frame call = piece_call(op_, frame_.args(), plan_, piece);
      const Cutting inner(op_, call);
      if (inner.plan_.factors.size() <= second) return {};  // a piece of size 1 has fewer factors
      const std::vector<Piece> parts = pieces_of(second, inner.halves(second));
      std::vector<Outputs> part_results;
      for (const Piece& part : parts) {
        generator::seed(5);
        part_results.push_back(run_piece(op_, call.args(), inner.plan_, part));
      }
      results.push_back(join_pieces(op_, call.args(), inner.plan_, parts, part_results));
    }
    const Outputs joined = join_pieces(op_, frame_.args(), plan_, pieces, results);
    for (size_t r = 0; r < joined.size(); ++r)
      if (const std::string text = difference(joined[r], whole_.results[r]); !text.empty())
        return format("result {}: {}", r, text);
    return {};
  }

  std::vector<int64_t> halves(size_t factor) const {
    const int64_t size = plan_.factors[factor].size.value();
    return {size / 2, size - size / 2};
  }

 private:
  // Pieces of what is written are views of the call's own copy: each piece has its part written.
  std::string wrong_with_writes(std::span<const Piece> pieces, std::span<const Frame> calls) const {
    size_t next = 0;
    for (const PlanTensor& place : plan_.operands) {
      if (!op_.schema().parameters[place.parameter].written) continue;
      const Tensor& wanted = whole_.written[next++];
      for (size_t p = 0; p < pieces.size(); ++p) {
        const Value& v = calls[p][place.parameter];
        const Tensor& got = v.is_tensors() ? v.as_tensors()[place.element] : v.as_tensor();
        if (const std::string text =
                difference(cut(got, place, pieces[p]), cut(wanted, place, pieces[p]));
            !text.empty())
          return format("what is written to operand {}: {}", place.parameter, text);
      }
    }
    return {};
  }

  const Op& op_;
  const Frame& frame_;
  const ShardPlan plan_;
  const Run whole_;
};

struct Tally {
  std::set<std::string> proven, uncut;
  size_t cuts = 0;
  std::vector<std::string> problems;
};

// Is a piece of the factor a single call, which can be cut again?
bool is_one_call(const ShardPlan& plan, size_t factor) {
  return plan.factors[factor].positions < 0 && !plan.factors[factor].by_calls;
}

void prove(const Op& op, const Frame& frame, Tally& tally) {
  const std::string what = describe_call(op, frame.args());
  try {
    const Cutting cutting(op, frame);
    const ShardPlan& plan = cutting.plan();
    const auto note = [&](const std::string& how, const std::string& wrong) {
      ++tally.cuts;
      if (wrong.empty())
        tally.proven.insert(op.name());
      else
        tally.problems.push_back(format("{} by {}, {}: {}", what, plan.str(), how, wrong));
    };
    for (size_t f = 0; f < plan.factors.size(); ++f) {
      const std::string letter(1, static_cast<char>('a' + f));
      const int64_t size = plan.factors[f].size.value();
      note(letter + " in halves", cutting.wrong_with(f, cutting.halves(f)));
      if (size > 2) note(letter + " unevenly", cutting.wrong_with(f, {1, size - 1}));
      if (f > 0 && !op.has(Trait::Inplace) && is_one_call(plan, 0) && is_one_call(plan, f))
        note("a and " + letter, cutting.wrong_with_pair(0, f));
    }
    if (plan.factors.empty()) tally.uncut.insert(op.name());
  } catch (const std::exception& error) {
    tally.problems.push_back(what + ": throws " + error.what());
  }
}

std::string listed(const std::vector<std::string>& problems) {
  const size_t shown = std::min<size_t>(problems.size(), 200);
  return format(
      "{} problems:\n{}", problems.size(),
      join(std::vector(problems.begin(), problems.begin() + static_cast<ptrdiff_t>(shown)), "\n"));
}

bool says_why_whole(const Op& op) {
  const char* text = op.def().shard;
  return text && !ShardRule::parse(text, op.schema()).whole.empty();
}

// Axes that a rule keeps whole have a reason next to it.
TEST(Sharding, RulesSayWhyAxesStayWhole) {
  size_t checked = 0;
  for (const Op* op : Registry::get().all()) {
    if (!op->is_built_in() || !op->def().shard) continue;
    const ShardRule rule = ShardRule::parse(op->def().shard, op->schema());
    const bool keeps = std::any_of(rule.factors.begin(), rule.factors.end(),
                                   [](const ShardFactor& f) { return f.combine == "whole"; });
    if (!keeps) continue;
    ++checked;
    EXPECT_FALSE(rule.why.empty()) << op->name() << " by " << op->def().shard;
  }
  EXPECT_GT(checked, 50U);
}

TEST(Sharding, EveryPlanIsProvenByCutting) {
  Tally tally;
  size_t ops = 0;
  for (const Op* op : Registry::get().all()) {
    if (!op->is_built_in() || op->inplace_of() || !op->def().samples) continue;
    ++ops;
    uint64_t seed = 1;
    for (const Sample& sample : op->def().samples())
      prove(*op, sample.make(op->schema(), widest_dtype(*op), seed++), tally);
  }
  std::vector<std::string> uncut;
  for (const std::string& name : tally.uncut) {
    if (tally.proven.contains(name)) continue;
    uncut.push_back(name);
    EXPECT_TRUE(says_why_whole(get_op(name))) << name << " is never cut and does not say why";
  }
  std::cout << tally.proven.size() << " of " << ops << " ops have a cut proven, by " << tally.cuts
            << " cuts; nothing is cut of " << join(uncut, ", ") << ".\n";
  EXPECT_TRUE(tally.problems.empty()) << listed(tally.problems);
}

// ---- random numbers ----------------------------------------------------------------------------

const char* bytes_of(const Tensor& t) { return static_cast<const char*>(t->data); }

// Cuts every factor at places that fall between no blocks or groups, and compares bits. Returns the cuts.
size_t expect_bits_of_whole(const char* name, const Sample& sample, DType dtype) {
  const Op& op = get_op(name);
  const Frame frame = sample.make(op.schema(), dtype, 1);
  const ShardPlan plan = plan_of(op, frame.args());
  generator::seed(77);
  generator::reserve(24);  // not at the start of the stream
  const RandomState begin = generator::state();
  plan_of(op, frame.args());
  EXPECT_EQ(generator::state(), begin) << name << ": a plan draws no numbers";
  const Outputs whole = dispatch(op, frame.args());
  const RandomState end = generator::state();
  size_t cuts = 0;
  for (size_t f = 0; f < plan.factors.size(); ++f) {
    const int64_t size = plan.factors[f].size.value();
    const std::vector<Piece> pieces = pieces_of(f, {1, size / 3, size - size / 3 - 1});
    std::vector<Outputs> results;
    for (const Piece& piece : pieces) {
      generator::set_state(begin);
      results.push_back(run_piece(op, frame.args(), plan, piece));
      EXPECT_EQ(generator::state(), end) << name << ": every piece takes the numbers of the whole";
    }
    const Outputs joined = join_pieces(op, frame.args(), plan, pieces, results);
    EXPECT_EQ(joined[0].describe(), whole[0].describe());
    const auto count = static_cast<size_t>(byte_count(whole[0]->numel, whole[0].dtype()));
    EXPECT_EQ(std::memcmp(bytes_of(joined[0]), bytes_of(whole[0]), count), 0)
        << name << ", " << plan.str() << ", factor " << f;
    ++cuts;
  }
  return cuts;
}

TEST(Sharding, PiecesOfRandomTensorsHaveTheBitsOfTheWhole) {
  const IntVector shape{11, 5, 37};
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
    const auto expect = [&](const char* name, const Samples& samples) {
      for (const Sample& sample : samples)
        EXPECT_EQ(expect_bits_of_whole(name, sample, dtype), 3U) << name;
    };
    expect("uniform", Samples().add(shape, dtype, -1.0, 2.0).add(shape, dtype, 0.0, 1.0, 9));
    expect("gaussian", Samples().add(shape, 1.0, 2.0, 0, dtype));
    expect("rand", Samples().add(shape, dtype));
    expect("randn", Samples().add(shape, dtype));
    expect("exponential", Samples().add(shape, 2.0, dtype));
    expect("truncated_normal", Samples().add(shape, 0.0, 1.0, -2.0, 2.0, dtype));
    expect("dropout_mask", Samples().add(shape, 0.3, 2.0, dtype));
    expect("bernoulli", Samples().add(uniform_in(0, 1, {11, 5, 37})));
    expect("poisson", Samples().add(uniform_in(0, 30, {11, 5, 37})));
    expect("standard_gamma", Samples().add(uniform_in(0.2, 4, {11, 5, 37})));
    expect("dropout", Samples().add(t({11, 5, 37}), 0.4));
    expect("alpha_dropout", Samples().add(t({11, 5, 37}), 0.4));
    expect("rrelu", Samples().add(t({11, 5, 37})));
  }
  const auto count = [](const char* name, const Sample& sample) {
    return expect_bits_of_whole(name, sample, DType::Float32);
  };
  EXPECT_EQ(count("randint", Samples().add(3, 90, shape)[0]), 3U);
  EXPECT_EQ(count("randint", Samples().add(0, int64_t{1} << 40, shape)[0]), 3U);
  EXPECT_EQ(count("dropout_mask", Samples().add(shape, 0.3, 1.0, DType::Bool)[0]), 3U);
  EXPECT_EQ(count("binomial", Samples().add(ints(1, 90, {11, 1, 37}), uniform_in(0, 1, {5, 1}))[0]),
            3U);
  EXPECT_EQ(count("multinomial", Samples().add(positive({12, 9}), 4)[0]), 1U);
  EXPECT_EQ(count("multinomial", Samples().add(positive({12, 9}), 5, true)[0]), 1U);
  EXPECT_EQ(count("dirichlet", Samples().add(positive({12, 9}))[0]), 1U);
  EXPECT_EQ(count("dropout", Samples().add(t({11, 5, 37}), 0.4, IntVector{1})[0]), 3U);
  EXPECT_EQ(count("dropout2d", Samples().add(t({4, 6, 5, 8}), 0.4)[0]), 4U);
  EXPECT_EQ(count("dropout3d", Samples().add(t({4, 5, 3, 6, 4}), 0.4)[0]), 5U);
  EXPECT_EQ(count("feature_alpha_dropout", Samples().add(t({4, 6, 5, 8}), 0.4)[0]), 4U);
  EXPECT_EQ(count("standard_normal", Samples().add(shape)[0]), 3U);
  EXPECT_EQ(count("randint_like", Samples().add(t({11, 5, 37}), 3, 90)[0]), 3U);
  EXPECT_EQ(count("randperm", Samples().add(40)[0]), 0U);
}

// A slice of a slice knows its place in the whole.
TEST(Sharding, PiecesOfPiecesOfRandomTensors) {
  const Op& op = get_op("gaussian");
  const Frame frame = Samples().add(IntVector{90, 70})[0].make(op.schema(), DType::Float32, 1);
  generator::seed(3);
  const auto whole = dispatch(op, frame.args())[0].to_vector<float>();
  const Frame rows = piece_call(op, frame.args(), plan_of(op, frame.args()), {0, 13, 40});
  const Frame part = piece_call(op, rows.args(), plan_of(op, rows.args()), {1, 21, 33});
  generator::seed(3);
  const Tensor drawn = dispatch(op, part.args())[0];
  ASSERT_EQ(drawn.describe(), "float32[40, 33]");
  const auto values = drawn.to_vector<float>();
  for (size_t i = 0; i < 40; ++i)
    for (size_t k = 0; k < 33; ++k) ASSERT_EQ(values[i * 33 + k], whole[(13 + i) * 70 + 21 + k]);
}

TEST(Sharding, PartsThatDoNotFitAreRefused) {
  const Op& op = get_op("uniform");
  Frame frame = Samples().add(IntVector{4})[0].make(op.schema(), DType::Float32, 1);
  const auto part = static_cast<size_t>(op.schema().index_of("_part"));
  constexpr int64_t largest = std::numeric_limits<int64_t>::max();
  for (const IntVector& wrong :
       {IntVector{0}, IntVector{3, 6}, IntVector{-1, 6}, IntVector{0, 4, 4},
        IntVector{largest, largest}, IntVector{largest - 2, largest}, IntVector{0, largest}}) {
    frame.set(part, Value(Ints(wrong)));
    EXPECT_THROW(dispatch(op, frame.args()), Error);
  }
  frame.set(part, Value(Ints(IntVector{(int64_t{1} << 59) - 4, int64_t{1} << 59})));
  EXPECT_EQ(dispatch(op, frame.args())[0].describe(), "float32[4]");
}

std::string plan_text(const char* op, const Sample& sample) {
  const Frame frame = sample.make(get_op(op).schema(), DType::Float64, 1);
  return plan_of(get_op(op), frame.args()).str();
}

TEST(Sharding, PlansOfCalls) {
  EXPECT_EQ(plan_text("matmul", Samples().add(t({4, 6}), t({6, 8}))[0]),
            "ab, bc -> ac ; a 4, b 6 sum, c 8");
  EXPECT_EQ(plan_text("add", Samples().add(t({4, 1}), t({6}))[0]), "a-, b -> ab ; a 4, b 6");
  EXPECT_EQ(plan_text("softmax", Samples().add(t({4, 6}), -1)[0]), "a- -> a- ; a 4");
  EXPECT_EQ(plan_text("sum", Samples().add(t({2, 3, 4}), IntVector{0, -1})[0]),
            "abc -> b ; a 2 sum, b 3, c 4 sum");
  EXPECT_EQ(plan_text("max", Samples().add(t({2, 3}), SampleNone{}, true)[0]),
            "ab -> -- ; a 2 max, b 3 max");
  EXPECT_EQ(plan_text("reshape", Samples().add(t({4, 6, 5}), IntVector{2, 12, 5})[0]),
            "(a*2)-b -> a-b ; a 2, b 5");
  EXPECT_EQ(plan_text("flatten", Samples().add(t({4, 6}))[0]), "a- -> (a*6) ; a 4");
  EXPECT_EQ(plan_text("conv2d",
                      Samples().add(t({2, 4, 5, 5}), t({6, 2, 3, 3}), std::nullopt, 1, 0, 1, 2)[0]),
            "a(b*2)--, (b*3)--- -> a(b*3)-- ; a 2, b 2");
  EXPECT_EQ(plan_text("embedding", Samples().add(ints(0, 5, {3}), t({5, 4}))[0]),
            "a, bc -> ac ; a 3, b 5 masked sum, c 4");
  EXPECT_EQ(plan_text("one_hot", Samples().add(ints(0, 5, {3}), 5)[0]), "a -> ab ; a 3, b 5");
  EXPECT_EQ(plan_text("nonzero", Samples().add(t({3, 4}))[0]), "-- -> --");
}

TEST(Sharding, PlansOfSymbolicSizes) {
  const Dim n = Dim::symbol("rows", 6);
  const Tensor x = Tensor::meta(Shape{n, 4}, DType::Float32),
               y = Tensor::meta(Shape{4, 8}, DType::Float32);
  const Value product[] = {Value(x), Value(y), Value(false), Value(false)};
  EXPECT_EQ(plan_of(get_op("matmul"), product).str(), "ab, bc -> ac ; a rows, b 4 sum, c 8");
  const Value flat[] = {Value(x), Value(0), Value(-1)};
  EXPECT_EQ(plan_of(get_op("flatten"), flat).str(), "a- -> (a*4) ; a rows");
}

// A sum over partial sums is the sum, but no further than a product with what is not partial.
TEST(Sharding, DerivedPlansFollowPartialSums) {
  EXPECT_EQ(plan_text("inner", Samples().add(t({4, 6}), t({3, 6}))[0]),
            "ab, cb -> ac ; a 4, b 6 sum, c 3");
  EXPECT_EQ(plan_text("mse_loss", Samples().add(t({4, 6}), t({4, 6}))[0]),
            "ab, ab ->  ; a 4 mean, b 6 mean");
}

// What the decomposition does with joined values follows the joining.
TEST(Sharding, PlansThatAreJoinedInside) {
  EXPECT_EQ(plan_text("addmm", Samples().add(t({4, 8}), t({4, 6}), t({6, 8}))[0]),
            "ab, ac, cb -> ab ; a 4, b 8, c 6 inside");
  const Samples weighted = Samples()
                               .add(t({4, 3}), ints(0, 3, {4}), positive({3}))
                               .add(t({4, 3}), ints(0, 3, {4}), std::nullopt, 2);
  for (const char* name : {"cross_entropy", "nll_loss"}) {
    EXPECT_EQ(plan_text(name, weighted[0]), "ab, a, c ->  ; a 4 inside, b 3 inside, c 3 inside");
    EXPECT_EQ(plan_text(name, weighted[1]), "ab, a ->  ; a 4 inside, b 3 inside");
  }
  // A mean that is subtracted from what is cut cannot be joined in between.
  EXPECT_EQ(plan_text("std", Samples().add(t({4, 6}), IntVector{1})[0]), "a- -> a ; a 4");
}

// Reads add up what each piece has; writes fall into one piece, or are parts of a sum.
TEST(Sharding, PlansOfPositions) {
  const TensorSpec x = t({5, 6}), rows = ints(0, 5, {4}), places = ints(0, 5, {4, 2});
  EXPECT_EQ(plan_text("gather", Samples().add(x, rows)[0]), "ab, c -> cb ; a 5 sum, b 6, c 4");
  EXPECT_EQ(plan_text("gather_nd", Samples().add(x, places)[0]),
            "ab, c- -> c ; a 5 sum, b 6 sum, c 4");
  EXPECT_EQ(plan_text("scatter", Samples().add(x, rows, t({4, 6}))[0]),
            "ab, -, cb -> ab ; a 5, b 6, c 4 sum");
  EXPECT_EQ(plan_text("index_add", Samples().add(x, rows, 0, t({4, 6}))[0]),
            "ab, c, cb -> ab ; a 5, b 6, c 4 sum");
  EXPECT_EQ(plan_text("scatter_nd_add", Samples().add(x, places, t({4}))[0]),
            "ab, c-, c -> ab ; a 5, b 6, c 4 sum");
  EXPECT_EQ(plan_text("take_along_axis", Samples().add(x, ints(0, 5, {4, 6}), 0)[0]),
            "ab, cb -> cb ; a 5 sum, b 6, c 4");
  for (const char* reduce : {"assign", "add", "mul"})
    EXPECT_EQ(plan_text("put_along", Samples().add(x, ints(0, 5, {4, 6}), t({4, 6}), 0, reduce)[0]),
              reduce == std::string("mul")   ? "ab, -b, -b -> ab ; a 5, b 6"
              : reduce == std::string("add") ? "ab, cb, cb -> ab ; a 5, b 6, c 4 sum"
                                             : "ab, -b, cb -> ab ; a 5, b 6, c 4 sum");
  EXPECT_EQ(plan_text("segment_rows", Samples().add(x, ints(0, 3, {5}), 3)[0]),
            "ab, a -> cb ; a 5 sum, b 6, c 3");
  EXPECT_EQ(plan_text("bincount", Samples().add(ints(0, 3, {5}))[0]), "a -> - ; a 5 sum");
}

// Rules that are wrong, each in its own way, and what the proof says of them.
const Op& wrong_op(OpDef def) {
  const Schema schema = Schema::parse(def.schema);
  def.brief = "Has a wrong sharding rule.";
  const Op* known = Registry::get().find(schema.name);
  return known ? *known : Registry::get().add(std::move(def), "test");
}

std::vector<std::string> problems_of(const Op& op, const Sample& sample) {
  Tally tally;
  prove(op, sample.make(op.schema(), DType::Float64, 1), tally);
  return tally.problems;
}

TEST(Sharding, AWrongRuleIsCaught) {
  const auto by = [](const char* name) {
    return [name](const Args& args) -> Made { return Made(dispatch(get_op(name), args)); };
  };
  // The rule itself would let the axis of a softmax be cut.
  EXPECT_FALSE(
      problems_of(
          wrong_op(
              {.schema = "test_wrong_cut(Tensor x, int axis = -1, dtype? dtype = None) -> Tensor",
               .decompose = by("softmax"),
               .shard = "... -> ..."}),
          Samples().add(t({4, 6}))[0])
          .empty());
  // The maximum of the whole is not the sum of those of the pieces.
  EXPECT_FALSE(
      problems_of(
          wrong_op(
              {.schema =
                   "test_wrong_join(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
               .decompose = by("max"),
               .shard = "...a... -> ...... ; a@axis sum"}),
          Samples().add(t({4, 6}), IntVector{1})[0])
          .empty());
  // Pieces of a reshape need other sizes.
  EXPECT_FALSE(problems_of(wrong_op({.schema = "test_wrong_piece(Tensor x, shape shape) -> Tensor",
                                     .decompose = by("reshape"),
                                     .plan = get_op("reshape").def().plan}),
                           Samples().add(t({4, 6}), IntVector{24})[0])
                   .empty());
  // … while the right rule of the same op passes.
  EXPECT_TRUE(problems_of(get_op("softmax"), Samples().add(t({4, 6}))[0]).empty());
}

TEST(Sharding, RulesThatAreNotRules) {
  const Schema schema = Schema::parse("f(Tensor x, int axis = 0) -> Tensor");
  for (const char* text : {"...", "..., ... -> ...", "... -> ..., ...", "... -> ... ; ",
                           "a -> a ; a@axes", "a -> a ; a halved", "1 -> 1", "whole:"})
    EXPECT_THROW(ShardRule::parse(text, schema), Error) << text;
  EXPECT_EQ(ShardRule::parse("whole: of its nature", schema).whole, "of its nature");
  EXPECT_FALSE(ShardRule::parse("whole: of its nature", schema).batches());
}

}  // namespace
}  // namespace oar
