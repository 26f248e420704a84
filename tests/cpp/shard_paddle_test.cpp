// What Paddle's own sharding rules can cut, Oar's can. A row is an op, a call, and the axes that must be
// of one factor in letters; `-` demands nothing.
#include <gtest/gtest.h>

#include <map>

#include "oar/base/string_util.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/sharding/plan.h"

namespace oar {
namespace {

// What of the demand is not met; empty where nothing is.
std::string unmet(const ShardPlan& plan, std::string_view demand) {
  const size_t arrow = demand.find("->");
  std::map<char, int> factors;
  std::string missing;
  const auto check = [&](const std::vector<PlanTensor>& tensors, std::string_view text) {
    const std::vector<std::string_view> terms = split(text, ',');
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string_view term = i < terms.size() ? trim(terms[i]) : "";
      if (term.size() != tensors[i].axes.size()) missing += format("rank of tensor {}; ", i);
      for (size_t axis = 0; axis < std::min(term.size(), tensors[i].axes.size()); ++axis) {
        const int factor = tensors[i].axes[axis].factor;
        if (term[axis] == '-') continue;
        const auto [known, is_new] = factors.emplace(term[axis], factor);
        if (factor < 0 || known->second != factor) missing += format("{}; ", term[axis]);
      }
    }
  };
  check(plan.operands, demand.substr(0, arrow));
  check(plan.results, demand.substr(arrow + 2));
  return missing;
}

void expect_cut(const char* name, const Sample& sample, std::string_view demand) {
  const Op& op = get_op(name);
  const DType dtype = op.accepts(DType::Float64) ? DType::Float64 : DType::Int64;
  const Frame call = sample.make(op.schema(), dtype, 1);
  const ShardPlan plan = plan_of(op, call.args());
  EXPECT_EQ(unmet(plan, demand), "")
      << name << " has the plan " << plan.str() << ", but Paddle's is " << demand;
}

TEST(ShardingAsInPaddle, ElementwiseOps) {
  for (const char* name : {"assign",
                           "hardswish",
                           "mish",
                           "relu6",
                           "swish",
                           "acos",
                           "acosh",
                           "asin",
                           "asinh",
                           "atan",
                           "atanh",
                           "bitwise_not",
                           "ceil",
                           "celu",
                           "clip",
                           "conj",
                           "cos",
                           "cosh",
                           "digamma",
                           "elu",
                           "erf",
                           "erfinv",
                           "exp",
                           "expm1",
                           "floor",
                           "gelu",
                           "hardshrink",
                           "hardsigmoid",
                           "hardtanh",
                           "leaky_relu",
                           "lgamma",
                           "log",
                           "log10",
                           "log1p",
                           "log2",
                           "log_sigmoid",
                           "logical_not",
                           "logit",
                           "reciprocal",
                           "relu",
                           "round",
                           "rsqrt",
                           "scale",
                           "selu",
                           "sigmoid",
                           "sign",
                           "silu",
                           "sin",
                           "sinh",
                           "softplus",
                           "softshrink",
                           "softsign",
                           "sqrt",
                           "square",
                           "stanh",
                           "tan",
                           "tanh",
                           "tanhshrink",
                           "thresholded_relu",
                           "trunc",
                           "zeros_like"})
    expect_cut(name, Samples().add(t({4, 6}))[0], "ab -> ab");
  for (const char* name :
       {"add",        "divide",       "pow",       "floor_divide", "fmin",       "heaviside",
        "maximum",    "minimum",      "multiply",  "remainder",    "subtract",   "bitwise_and",
        "bitwise_or", "bitwise_xor",  "fmax",      "logical_and",  "logical_or", "logical_xor",
        "not_equal",  "greater_than", "less_than", "equal",        "swiglu",     "expand_as"})
    expect_cut(name, Samples().add(t({4, 6}), t({4, 6}))[0], "ab, ab -> ab");
  expect_cut("add", Samples().add(t({4, 6}), t({6}))[0], "ab, b -> ab");
  expect_cut("where", Samples().add(bools({4, 6}), t({4, 6}), t({4, 1}))[0], "ab, ab, a- -> ab");
  expect_cut("cast", Samples().add(t({4, 6}), DType::Float32)[0], "ab -> ab");
  expect_cut("full_like", Samples().add(t({4, 6}), 2.0)[0], "ab -> ab");
  for (const char* name : {"bernoulli", "poisson", "dropout"})
    expect_cut(name, Samples().add(uniform_in(0, 1, {4, 6}))[0], "ab -> ab");
  expect_cut("label_smooth", Samples().add(t({4, 6}))[0], "a- -> a-");  // a mean over the last axis
}

TEST(ShardingAsInPaddle, Reductions) {
  for (const char* name :
       {"all", "any", "amax", "amin", "max", "min", "prod", "sum", "mean", "logsumexp"}) {
    expect_cut(name, Samples().add(t({4, 6}), IntVector{1})[0], "ab -> a");
    expect_cut(name, Samples().add(t({4, 6}))[0], "ab -> ");
  }
  expect_cut("p_norm", Samples().add(t({4, 6}), 2.0, IntVector{1})[0], "ab -> a");
  expect_cut("root_sum_square", Samples().add(t({4, 6}))[0], "ab -> ");
  expect_cut("argmax", Samples().add(t({4, 6}), 1)[0], "a- -> a");
  expect_cut("cumsum", Samples().add(t({4, 6}), 1)[0], "a- -> a-");
  expect_cut("softmax", Samples().add(t({4, 6}), 1)[0], "a- -> a-");
  expect_cut("log_softmax", Samples().add(t({4, 6}), 0)[0], "-b -> -b");
}

TEST(ShardingAsInPaddle, Products) {
  expect_cut("matmul", Samples().add(t({4, 6}), t({6, 8}))[0], "ik, kj -> ij");
  expect_cut("matmul", Samples().add(t({2, 4, 6}), t({2, 8, 6}), false, true)[0],
             "bik, bjk -> bij");
  expect_cut("matmul", Samples().add(t({2, 3, 4, 6}), t({6, 8}))[0], "abik, kj -> abij");
  expect_cut("matmul", Samples().add(t({6, 4}), t({6}), true)[0], "ki, k -> i");
  expect_cut("linear", Samples().add(t({2, 4, 6}), t({6, 8}), t({8}))[0], "abk, kj, j -> abj");
  expect_cut("conv2d", Samples().add(t({2, 4, 5, 5}), t({6, 4, 3, 3}))[0], "nc--, oc-- -> no--");
  expect_cut("scaled_dot_product_attention",
             Samples().add(t({2, 3, 4, 5}), t({2, 6, 4, 5}), t({2, 6, 4, 5}))[0],
             "b-h-, b-h-, b-h- -> b-h-");
}

TEST(ShardingAsInPaddle, Normalisations) {
  expect_cut("layer_norm", Samples().add(t({2, 4, 6}), IntVector{6}, t({6}), t({6}))[0],
             "ab-, -, - -> ab-");
  expect_cut("rms_norm", Samples().add(t({2, 4, 6}), IntVector{6}, t({6}))[0], "ab-, - -> ab-");
  expect_cut("softmax_cross_entropy", Samples().add(t({4, 6}), ints(0, 6, {4, 1}))[0],
             "a-, a- -> a-, a-");
  expect_cut("softmax_cross_entropy", Samples().add(t({2, 4, 6}), ints(0, 6, {2, 4, 1}))[0],
             "ab-, ab- -> ab-, ab-");
}

TEST(ShardingAsInPaddle, Shapes) {
  expect_cut("reshape", Samples().add(t({4, 6, 8}), IntVector{24, 8})[0], "a-c -> ac");
  expect_cut("reshape", Samples().add(t({24, 8}), IntVector{4, 6, 8})[0], "ac -> a-c");
  expect_cut("reshape", Samples().add(t({4, 6}), IntVector{4, 1, 6})[0], "ab -> a-b");
  expect_cut("flatten", Samples().add(t({2, 3, 4}), 0, 1)[0], "a-c -> ac");
  expect_cut("squeeze", Samples().add(t({4, 1, 6}), IntVector{1})[0], "a-b -> ab");
  expect_cut("unsqueeze", Samples().add(t({4, 6}), IntVector{1})[0], "ab -> a-b");
  expect_cut("transpose", Samples().add(t({2, 3, 4}), IntVector{2, 0, 1})[0], "abc -> cab");
  expect_cut("split", Samples().add(t({4, 6}), IntVector{2, 4}, 1)[0], "a- -> a-, a-");
  expect_cut("split", Samples().add(t({4, 6}), IntVector{2}, 1)[0], "a- -> a-, a-");
  expect_cut("slice", Samples().add(t({4, 6}), IntVector{1}, IntVector{1}, IntVector{3})[0],
             "a- -> a-");
  expect_cut("strided_slice",
             Samples().add(t({4, 6}), IntVector{1}, IntVector{0}, IntVector{6}, IntVector{2})[0],
             "a- -> a-");
  expect_cut("concat", Samples().add(Specs{t({4, 6}), t({4, 2})}, 1)[0], "a-, a- -> a-");
  expect_cut("stack", Samples().add(Specs{t({4, 6}), t({4, 6})}, 1)[0], "ab, ab -> a-b");
  expect_cut("unbind", Samples().add(t({2, 4, 6}), 0)[0], "-ab -> ab, ab");
  expect_cut("tile", Samples().add(t({4, 6}), IntVector{1, 2})[0], "a- -> a-");
  expect_cut("expand_as", Samples().add(t({4, 1}), t({3, 4, 6}))[0], "a-, bac -> bac");
  expect_cut("triu", Samples().add(t({3, 4, 6}))[0], "a-- -> a--");
  expect_cut("pad_constant", Samples().add(t({4, 6}), IntVector{0, 0, 1, 2})[0], "a- -> a-");
  expect_cut("swiglu", Samples().add(t({4, 6}))[0], "a- -> a-");
  expect_cut("add_n", Samples().add(Specs{t({4, 6}), t({4, 6})})[0], "ab, ab -> ab");
}

TEST(ShardingAsInPaddle, Indices) {
  expect_cut("embedding", Samples().add(ints(0, 9, {2, 4}), t({9, 6}))[0], "ab, vd -> abd");
  expect_cut("one_hot", Samples().add(ints(0, 5, {2, 4}), 5)[0], "ab -> abc");
  expect_cut("gather", Samples().add(t({5, 6}), ints(0, 5, {4}), 0)[0], "vb, a -> ab");
  expect_cut("gather", Samples().add(t({5, 6}), ints(0, 6, {4}), 1)[0], "av, b -> ab");
  expect_cut("gather_nd", Samples().add(t({5, 6}), ints(0, 5, {4, 1}))[0], "vb, a- -> ab");
  expect_cut("scatter", Samples().add(t({5, 6}), ints(0, 5, {4}), t({4, 6}))[0], "-b, -, ab -> -b");
  expect_cut("scatter", Samples().add(t({5, 6}), ints(0, 5, {4}), t({4, 6}))[0], "ab, -, -b -> ab");
  expect_cut("scatter", Samples().add(t({5, 6}), ints(0, 5, {4}), t({4, 6}), false)[0],
             "ab, -, cb -> ab");
  expect_cut("scatter_nd_add", Samples().add(t({5, 6}), ints(0, 5, {4, 1}), t({4, 6}))[0],
             "vb, a-, ab -> vb");
}

TEST(ShardingAsInPaddle, Updates) {
  expect_cut("sgd_", Samples().add(Specs{t({4, 6})}, Specs{t({4, 6})}, positive({}))[0],
             "ab, ab, -> ab");
  expect_cut("adamw_",
             Samples().add(Specs{t({4, 6})}, Specs{t({4, 6})}, Specs{t({4, 6})},
                           Specs{positive({4, 6})}, positive({}), positive({}))[0],
             "ab, ab, ab, ab, , -> ab");
}

}  // namespace
}  // namespace oar
