#include "autograd_util.h"
#include "oar/autograd/transform.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar::test {
namespace {

TEST(Backward, FillsTheLeavesAndAddsUp) {
  const Tensor x = leaf({1, 2, 3}), w = leaf({4, 5, 6});
  run_backward(sum(x * w * x));
  EXPECT_EQ(grad_of(x), (Values{8, 20, 36}));
  EXPECT_EQ(grad_of(w), (Values{1, 4, 9}));
  run_backward(sum(x));
  EXPECT_EQ(grad_of(x), (Values{9, 21, 37}));
  EXPECT_EQ(grad_of(w), (Values{1, 4, 9}));
}

TEST(Backward, StartsFromOnesOrWhatIsGiven) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * x;
  run_backward(y);
  EXPECT_EQ(grad_of(x), (Values{2, 4, 6}));
  const Tensor z = x * x, seed = constant({1, 10, 100});
  backward(TensorList(&z, 1), TensorList(&seed, 1));
  EXPECT_EQ(grad_of(x), (Values{4, 44, 606}));
  const Tensor both[] = {x * 2, x * 3};
  const Tensor seeds[] = {seed, Tensor()};
  history_of(x).grad.set(Tensor());
  backward(both, seeds);
  EXPECT_EQ(grad_of(x), (Values{5, 23, 203}));
}

TEST(Backward, ReachesALeafThatIsARoot) {
  const Tensor x = leaf({1, 2});
  run_backward(x);
  EXPECT_EQ(grad_of(x), (Values{1, 1}));
  EXPECT_NO_THROW(run_backward(constant({1}))) << "nothing to do is no mistake, as in Paddle";
}

TEST(Backward, BroadcastOperandsGetTheirShapeBack) {
  const Tensor x = leaf({1, 2, 3, 4, 5, 6}, Shape{2, 3}), row = leaf({1, 2, 3}),
               one = leaf({2}, Shape{1});
  run_backward(sum(x * row * one));
  EXPECT_EQ(grad_of(row), (Values{10, 14, 18}));
  EXPECT_EQ(grad_of(one), (Values{46}));
  EXPECT_EQ(history_of(row).grad.get().shape(), (Shape{3}));
}

TEST(Backward, MistakesAreNamed) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * x, wrong = constant({1, 2});
  const Error shape = error_of([&] { backward(TensorList(&y, 1), TensorList(&wrong, 1)); });
  EXPECT_EQ(shape.text(), "the gradient passed for an output has shape [2], the output [3].");
  const Tensor two[] = {y, y};
  EXPECT_EQ(error_of([&] { backward(TensorList(&y, 1), two); }).kind(), ErrorKind::InvalidArgument);
  const Tensor none;
  EXPECT_EQ(error_of([&] { backward(TensorList(&none, 1)); }).kind(), ErrorKind::InvalidType);
}

TEST(Backward, IntegersTakeNoGradient) {
  const Tensor n = Tensor::scalar(int64_t{1}, DType::Int64);
  set_stop_gradient(n, false);
  EXPECT_TRUE(stop_gradient(n));
}

TEST(Backward, FreesTheGraphUnlessTold) {
  const Tensor x = leaf({3});
  const Tensor y = x * x;
  run_backward(y, {.retain_graph = true});
  run_backward(y);
  EXPECT_EQ(grad_of(x), (Values{12}));
  const Error error = error_of([&] { run_backward(y); });
  EXPECT_EQ(error.kind(), ErrorKind::Runtime);
  EXPECT_TRUE(contains(error.text(), "multiply has been freed")) << error.text();
  EXPECT_TRUE(contains(error.hint(), "retain_graph=True"));
}

TEST(Backward, GradientsBelongToTheLeaf) {
  // The cotangent of a sum is one tensor for both operands; each leaf must have its own.
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  run_backward(a + b);
  const NoGrad off;
  add_(history_of(a).grad.get(), constant({5, 5}));
  EXPECT_EQ(grad_of(b), (Values{1, 1}));
}

// One meaning in both directions: nothing is recorded, and tangents end.
TEST(NoGrad, CutsDerivativesOfBothModes) {
  const auto f = [](const Tensor& x) {
    Tensor inner;
    {
      const NoGrad off;
      inner = x * x;
    }
    return inner * x;
  };
  const Tensor x = leaf({2, 3}), along = constant({1, 1});
  run_backward(f(x));
  EXPECT_EQ(grad_of(x), (Values{4, 9}));
  const Tensor point = constant({2, 3});
  const auto tangent = [&](auto&& g) {
    return values_of(
        jvp([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{g(in[0])}; },
            TensorList(&point, 1), TensorList(&along, 1))
            .second[0]);
  };
  EXPECT_EQ(tangent(f), (Values{4, 9}));
  EXPECT_EQ(tangent([](const Tensor& t) {
              const GradMode off(false);  // the tape alone
              return t * t;
            }),
            (Values{4, 6}));
}

TEST(NoGrad, IsOfTheTransformsAroundIt) {
  const Tensor point = constant({2, 3}), along = constant({1, 1});
  const auto square = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] * in[0]};
  };
  {
    const NoGrad off;
    EXPECT_EQ(values_of(jvp(square, TensorList(&point, 1), TensorList(&along, 1)).second[0]),
              (Values{4, 6}));
    EXPECT_FALSE(grad_enabled());
  }
  EXPECT_TRUE(grad_enabled());
  EXPECT_EQ(grad_state().tangents_cut_until, 0);
}

TEST(NoGrad, LetsAStatisticFollowTheValuesOfAJvp) {
  const Tensor point = constant({2, 3}), along = constant({1, 1}), outside = constant({0, 0});
  const auto f = [&](const std::vector<Tensor>& in) {
    const NoGrad off;
    add_(outside, in[0]);
    return std::vector<Tensor>{in[0]};
  };
  jvp(f, TensorList(&point, 1), TensorList(&along, 1));
  EXPECT_EQ(values_of(outside), (Values{2, 3}));
}

TEST(Grad, LeavesLeavesAlone) {
  const Tensor x = leaf({2, 3}), w = leaf({5, 7});
  const Tensor hidden = x * w, out = hidden * hidden;
  const Tensor inputs[] = {x, hidden, w};
  const std::vector<Tensor> grads = grad(TensorList(&out, 1), inputs, {}, {.retain_graph = true});
  EXPECT_EQ(values_of(grads[0]), (Values{2 * 10 * 5, 2 * 21 * 7}));
  EXPECT_EQ(values_of(grads[1]), (Values{20, 42}));
  EXPECT_EQ(values_of(grads[2]), (Values{2 * 10 * 2, 2 * 21 * 3}));
  EXPECT_TRUE(grad_of(x).empty());
  const Tensor seed = constant({10, 1});
  EXPECT_EQ(values_of(grad(TensorList(&out, 1), TensorList(&x, 1), TensorList(&seed, 1))[0]),
            (Values{1000, 294}));
}

TEST(Grad, AnInputMayBeAnOutputOrUnused) {
  const Tensor x = leaf({2}), other = leaf({3}), plain = constant({4});
  EXPECT_EQ(values_of(grad_wrt(x, x)), (Values{1}));
  const Tensor y = x * x;
  EXPECT_EQ(values_of(grad_wrt(y, y, {.retain_graph = true})), (Values{1}));
  const Error error = error_of([&] { grad_wrt(y, other, {.retain_graph = true}); });
  EXPECT_EQ(error.text(), "the outputs do not depend on input 0.");
  EXPECT_TRUE(contains(error.hint(), "allow_unused=True"));
  const Tensor inputs[] = {other, x, plain};
  const std::vector<Tensor> grads = grad(TensorList(&y, 1), inputs, {}, {}, true);
  EXPECT_FALSE(grads[0].defined());
  EXPECT_EQ(values_of(grads[1]), (Values{4}));
  EXPECT_FALSE(grads[2].defined());
}

TEST(Grad, StopsAtNoGradVars) {
  const Tensor x = leaf({2});
  const Tensor a = x * 3, b = x * 5, out = a * b;
  const std::vector<Tensor> grads = grad(TensorList(&out, 1), TensorList(&x, 1), {},
                                         {.retain_graph = true}, false, TensorList(&b, 1));
  EXPECT_EQ(values_of(grads[0]), (Values{30})) << "only by way of a: 3 * b";
  EXPECT_EQ(values_of(grad_wrt(out, x)), (Values{60}));
}

TEST(Grad, SeveralOutputsAddUp) {
  const Tensor x = leaf({2});
  const Tensor outputs[] = {x * x, x * 7};
  EXPECT_EQ(values_of(grad(outputs, TensorList(&x, 1))[0]), (Values{11}));
}

TEST(Grad, AnyOrderUpToFour) {
  const Tensor x = leaf({0.5, 2});
  Tensor y = x * x * x * x * x;
  const Values expected[] = {
      {5 * 0.0625, 5 * 16.0}, {20 * 0.125, 20 * 8.0}, {60 * 0.25, 60 * 4.0}, {60, 240}};
  for (const Values& order : expected) {
    y = grad_wrt(y, x, {.create_graph = true});
    EXPECT_EQ(values_of(y), order);
  }
  // sin comes back to itself after four.
  Tensor s = sin(x);
  for (int i = 0; i < 4; ++i) s = grad_wrt(s, x, {.create_graph = true});
  EXPECT_NEAR(values_of(s)[1], std::sin(2.0), 1e-15);
  Tensor e = exp(x * x);
  for (int i = 0; i < 3; ++i) e = grad_wrt(e, x, {.create_graph = true});
  EXPECT_NEAR(values_of(e)[0], (12 * 0.5 + 8 * 0.125) * std::exp(0.25), 1e-12);
}

TEST(Grad, BackwardCanBeRecordedToo) {
  const Tensor x = leaf({3});
  run_backward(x * x * x, {.create_graph = true});
  const Tensor first = history_of(x).grad.get();
  EXPECT_EQ(values_of(first), (Values{27}));
  EXPECT_FALSE(stop_gradient(first));
  history_of(x).grad.set(Tensor());
  run_backward(first);
  EXPECT_EQ(grad_of(x), (Values{18}));
}

TEST(GradMode, DecidesWhatIsRecorded) {
  const Tensor x = leaf({2});
  Tensor inside;
  {
    const GradMode off(false);
    EXPECT_FALSE(grad_enabled());
    inside = x * x;
    {
      const GradMode on(true);
      EXPECT_FALSE(stop_gradient(x * x));
    }
    EXPECT_FALSE(grad_enabled());
  }
  EXPECT_TRUE(grad_enabled());
  EXPECT_TRUE(stop_gradient(inside));
  EXPECT_TRUE(is_leaf(inside));
  EXPECT_TRUE(is_leaf(x));
  EXPECT_FALSE(is_leaf(x * x));
  const Tensor cut = detach(x * x);
  EXPECT_TRUE(stop_gradient(cut));
  run_backward(x * cut);
  EXPECT_EQ(grad_of(x), (Values{4}));
  EXPECT_TRUE(stop_gradient(cast(x, DType::Int64))) << "an integer has no gradient";
}

TEST(Hooks, SeeAndReplaceGradients) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2, z = y * y;
  std::vector<std::string> order;
  add_tensor_hook(z, [&](const Tensor&) {
    order.push_back("z");
    return Tensor();
  });
  add_tensor_hook(y, [&](const Tensor& g) {
    order.push_back("y");
    return g * 10;
  });
  const uint64_t removed = add_tensor_hook(y, [&](const Tensor&) {
    order.push_back("gone");
    return Tensor();
  });
  add_tensor_hook(x, [&](const Tensor& g) {
    order.push_back("x");
    return g + 1;
  });
  EXPECT_TRUE(remove_tensor_hook(y, removed));
  EXPECT_FALSE(remove_tensor_hook(y, removed));
  run_backward(z, {.retain_graph = true});
  EXPECT_EQ(order, (std::vector<std::string>{"z", "y", "x"}));
  EXPECT_EQ(grad_of(x), (Values{81, 161}));
  EXPECT_EQ(values_of(grad_wrt(z, y, {.retain_graph = true})), (Values{40, 80}))
      << "after y's hook";
  EXPECT_EQ(error_of([&] { add_tensor_hook(constant({1}), {}); }).kind(), ErrorKind::Runtime);
}

TEST(Hooks, OfNodesSeeWhatGoesInAndOut) {
  const Tensor x = leaf({3});
  const Tensor y = x * 2;
  history_of(y).node->extras().node_hooks.emplace_back(1, [](TensorList given, Grads& made) {
    EXPECT_EQ(values_of(given[0]), (Values{1}));
    made[0] = made[0] * 100;
  });
  run_backward(y);
  EXPECT_EQ(grad_of(x), (Values{200}));
}

TEST(Hooks, AnErrorLeavesEverythingUsable) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  const uint64_t id = add_tensor_hook(
      y, [](const Tensor&) -> Tensor { fail(ErrorKind::Runtime, "the hook says no."); });
  EXPECT_EQ(error_of([&] { run_backward(y); }).text(), "the hook says no.");
  EXPECT_TRUE(grad_enabled());
  EXPECT_EQ(current_op(), nullptr);
  remove_tensor_hook(y, id);
  run_backward(y);
  EXPECT_EQ(grad_of(x), (Values{4}));
}

TEST(RetainGrad, KeepsGradientsOfIntermediates) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  retain_grad(y);
  retain_grad(y);
  run_backward(y * y);
  EXPECT_EQ(grad_of(y), (Values{6, 12}));
  EXPECT_EQ(grad_of(x), (Values{18, 36}));
}

TEST(RetainGrad, TheTensorMayGoFirst) {
  const Tensor x = leaf({1, 2});
  Tensor z;
  {
    const Tensor y = x * 3;
    retain_grad(y);
    z = y * y;
  }
  run_backward(z);
  EXPECT_EQ(grad_of(x), (Values{18, 36}));
}

TEST(RetainGrad, FollowsTheTensorThroughAnInPlaceWrite) {
  const Tensor x = leaf({1, 2});
  {
    const Tensor y = x * 3;
    retain_grad(y);
    add_(y, constant({1, 1}));
    run_backward(y * y);
    EXPECT_EQ(grad_of(y), (Values{8, 14})) << "of the value that it has now";
  }
  Tensor z;
  {
    const Tensor y = x * 3;
    retain_grad(y);
    z = exp(y);
    add_(y, constant({1, 1}));
  }
  EXPECT_NO_THROW(run_backward(z)) << "the first node must not remember the dead tensor";
}

TEST(CustomFunction, BringsItsOwnDerivative) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor inputs[] = {x, w};
  const auto forward = [](TensorList in) -> std::vector<Tensor> {
    EXPECT_FALSE(grad_enabled());
    return {in[0] * in[1], in[0]};
  };
  const auto reverse = [x, w](TensorList g) -> std::vector<Tensor> {
    return {g[0] * w * 1000 + g[1], g[0] * x};
  };
  const std::vector<Tensor> out = custom_function(inputs, forward, reverse, "mine");
  EXPECT_FALSE(out[1].is_same(x)) << "an input handed through is a result of its own";
  EXPECT_EQ(history_of(out[0]).node->name(), "mine");
  const Tensor total = sum(out[0] + out[1] * 2);
  run_backward(total, {.create_graph = true});
  EXPECT_EQ(grad_of(x), (Values{3002, 4002}));
  EXPECT_EQ(grad_of(w), (Values{1, 2}));
  // Its backward calls ops, so it has a derivative too.
  EXPECT_EQ(values_of(grad_wrt(sum(history_of(x).grad.get()), w)), (Values{1000, 1000}));
  // A gradient that is itself recorded leads back to its leaf, so the test must release it.
  for (const Tensor& t : inputs) history_of(t).grad.set(Tensor());
}

TEST(CustomFunction, MistakesAreNamed) {
  const Tensor x = leaf({1});
  const auto same = [](TensorList in) -> std::vector<Tensor> { return {in[0] * 2}; };
  const auto none = [](TensorList) -> std::vector<Tensor> { return {}; };
  const std::vector<Tensor> out =
      custom_function(TensorList(&x, 1), same, none, "a_function_with_a_long_name");
  const Error error = error_of([&] { run_backward(out[0]); });
  EXPECT_EQ(
      error.text(),
      "the backward of a_function_with_a_long_name returned 0 gradients for 1 tensor inputs.");
  EXPECT_EQ(error.op(), "a_function_with_a_long_name");
  const Tensor plain = constant({1});
  EXPECT_TRUE(stop_gradient(custom_function(TensorList(&plain, 1), same, none)[0]));
}

}  // namespace
}  // namespace oar::test
