// Writes in place and views, captured.
#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/view.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

const Dim kBatch = Dim::symbol("B", 4);

std::vector<InputSpec> square(bool stop_gradient = true) {
  return {{DType::Float32, {kBatch, 6}, "x", stop_gradient}};
}
const std::vector<Tensors>& runs() {
  static const std::vector<Tensors> list = {
      {numbers({4, 6})}, {numbers({3, 6}, 0.8)}, {numbers({9, 6})}};
  return list;
}
SliceIndex rows(Dim from, Dim to) { return SliceIndex().range(from, to); }

TEST(CaptureWrite, InPlaceOps) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = in[0] * 2, same = y;
        add_(y, in[0]);
        multiply_(y, y);
        relu_(y);
        subtract_(y, Tensor::scalar(0.5, DType::Float64));
        return Tensors{y, same + 1, in[0]};
      },
      square(), runs());
}

TEST(CaptureWrite, InPlaceKeepsTheDtype) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = cast(in[0], DType::Float16);
        add_(y, in[0]);
        copy_into(y, in[0] * 3);
        return Tensors{y};
      },
      square(), runs());
}

TEST(CaptureWrite, InPlaceDoesNotGrow) {
  const auto grows = [](const Tensors& in) {
    const Tensor y = sum(in[0], IntArgs{0});
    return Tensors{add_(y, in[0])};
  };
  const auto eager = error_of([&] { grows({numbers({4, 6})}); });
  EXPECT_NE(eager, "no error");
  EXPECT_NE(error_of([&] { capture(grows, square()); }), "no error");
}

TEST(CaptureWrite, ThroughASlice) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = in[0] * 1;
        const Tensor part = slice_view(y, rows(1, 3));
        add_(part, literal(10.0));
        return Tensors{y, part};
      },
      square(), runs());
}

TEST(CaptureWrite, ThroughATransposedView) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = in[0] * 1;
        const Tensor turned = transpose(y, IntArgs{1, 0});
        multiply_(turned, literal(3.0));
        return Tensors{y, turned};
      },
      square(), runs());
}

TEST(CaptureWrite, ThroughNestedViews) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = in[0] * 1;
        const Tensor turned = transpose(slice_view(y, rows(0, 2)), IntArgs{1, 0});
        const Tensor corner = slice_view(turned, rows(2, 5));
        copy_into(corner, literal(7.0));
        const Tensor flat = reshape(y, {y.numel()});
        add_(slice_view(flat, rows(0, 3)), literal(1.0));
        return Tensors{y, turned, corner, flat};
      },
      square(), runs());
}

TEST(CaptureWrite, ViewsSeeLaterWrites) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = in[0] * 1;
        const Tensor first = slice_view(y, rows(0, 2)), second = slice_view(y, rows(1, 3));
        const Tensor inner = slice_view(first, rows(1, 2));
        const Tensor before = inner * 1;
        add_(second, literal(5.0));  // overlaps `first` in row 1
        const Tensor between = inner * 1;
        multiply_(y, literal(2.0));
        return Tensors{first, second, inner, before, between, y};
      },
      square(), runs());
}

TEST(CaptureWrite, ViewsOfSplitsAndDiagonals) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = matmul(in[0], in[0], true, false);
        const Tensors halves = split(y, IntArgs{2}, 1);
        copy_into(halves[1], literal(0.0));
        add_(diagonal(y), literal(1.0));
        add_(squeeze(slice_view(y, rows(0, 1))), literal(9.0));
        return Tensors{y, halves[0]};
      },
      square(), runs());
}

TEST(CaptureWrite, AReshapeThatCopiesIsNoView) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = in[0] * 1;
        const Tensor copy = reshape(transpose(y, IntArgs{1, 0}), {y.numel()});
        add_(copy, literal(100.0));
        return Tensors{y, copy};
      },
      square(), runs());
}

TEST(CaptureWrite, IntegersAndBooleans) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor counts = cast(in[0] * 10, DType::Int64);
        add_(slice_view(counts, rows(0, 1)), Tensor::scalar(int64_t{5}, DType::Int64));
        const Tensor mask = greater_than(in[0], zeros_like(in[0]));
        copy_into(slice_view(mask, rows(1, 2)), Tensor::scalar(int64_t{1}, DType::Bool));
        return Tensors{counts, mask};
      },
      square(), runs());
}

TEST(CaptureWrite, ExplicitWrites) {
  expect_captures(
      [](const Tensors& in) {
        const Tensor y = in[0] * 1;
        slice_put_(y, literal(4.0), rows(0, 2));
        const Tensor x = in[0] * 1;
        index_put_(x, {range(0, 2, 1, DType::Int64)}, slice_view(y, rows(1, 3)), true);
        return Tensors{y, x};
      },
      square(), runs());
}

TEST(CaptureWrite, BroadcastTensorsAreRefused) {
  const auto f = [](const Tensors& in) {
    return Tensors{add_(broadcast_to(sum(in[0]), {3, 2}), literal(1.0))};
  };
  EXPECT_EQ(error_of([&] { capture(f, square()); }), error_of([&] { f({numbers({4, 6})}); }));
}

// Gradients through captured writes, against a form of the function that writes nothing.
using ScalarFunction = std::function<Tensor(const Tensor&)>;
void expect_gradient(const ScalarFunction& f, const ScalarFunction& without_writes) {
  const auto with_gradient = [](const ScalarFunction& function, const Tensor& x) {
    const Tensor root = function(x);
    return Tensors{root, grad({&root, 1}, {&x, 1})[0]};
  };
  const Executor executor(
      capture([&](const Tensors& in) { return with_gradient(f, in[0]); }, square(false)));
  expect_sound(executor.program());
  for (const Tensors& inputs : runs()) {
    const Tensor x = assign(inputs[0]);
    set_stop_gradient(x, false);
    const Tensors wanted = with_gradient(without_writes, x), got = executor.run(inputs);
    expect_same(got[0], detach(wanted[0]));
    expect_near(got[1], wanted[1]);
  }
}

TEST(CaptureWrite, GradientsThroughInPlaceOps) {
  expect_gradient(
      [](const Tensor& x) {
        const Tensor y = x * 2;
        multiply_(y, x);  // the tape needs the value before
        multiply_(y, y);
        tanh_(y);
        return sum(y);
      },
      [](const Tensor& x) {
        const Tensor y = x * 2 * x;
        return sum(tanh(y * y));
      });
}

TEST(CaptureWrite, GradientsThroughViews) {
  expect_gradient(
      [](const Tensor& x) {
        const Tensor y = x * 2;
        multiply_(slice_view(y, rows(0, 2)), slice_view(x, rows(1, 3)));
        return sum(y * y);
      },
      [](const Tensor& x) {
        const Tensor y = x * 2;
        const Tensor part = slice_view(y, rows(0, 2)) * slice_view(x, rows(1, 3));
        const Tensor z = slice_put(y, part, rows(0, 2));
        return sum(z * z);
      });
}

TEST(CaptureWrite, GradientsThroughViewsTakenBeforeTheWrite) {
  const SliceIndex columns = SliceIndex().all().range(2, 4);
  expect_gradient(
      [](const Tensor& x) {
        const Tensor y = x * 2;
        const Tensor turned = transpose(y, IntArgs{1, 0}), sibling = slice_view(y, rows(1, 2));
        multiply_(slice_view(turned, rows(2, 4)), literal(3.0));
        return sum(y * y) + sum(sibling * sibling * sibling);
      },
      [&](const Tensor& x) {
        const Tensor y = x * 2;
        const Tensor z = slice_put(y, slice_view(y, columns) * 3, columns);
        const Tensor sibling = slice_view(z, rows(1, 2));
        return sum(z * z) + sum(sibling * sibling * sibling);
      });
}

TEST(CaptureWrite, GradientsIntoATensorWithoutHistory) {
  expect_gradient(
      [](const Tensor& x) {
        const Tensor y = zeros(x.dims()), sibling = slice_view(y, rows(1, 2));
        copy_into(slice_view(y, rows(0, 2)), slice_view(x, rows(1, 3)));
        return sum(y * y) + sum(sibling);
      },
      [](const Tensor& x) {
        const Tensor part = slice_view(x, rows(1, 3));
        return sum(part * part) + sum(slice_view(part, rows(1, 2)));
      });
}

TEST(CaptureWrite, AStaleSavedTensorIsAnErrorAsInEagerMode) {
  const auto f = [](const Tensors& in) {
    const Tensor y = exp(in[0]);
    add_(y, literal(1.0));  // exp's gradient needs its result
    const Tensor root = sum(y);
    return Tensors{grad({&root, 1}, {&in[0], 1})[0]};
  };
  const Tensor x = numbers({4, 6});
  set_stop_gradient(x, false);
  EXPECT_NE(error_of([&] { f({x}); }).find("changed in place"), std::string::npos);
  EXPECT_NE(error_of([&] { capture(f, square(false)); }).find("changed in place"),
            std::string::npos);
}

TEST(CaptureWrite, LeavesAreRefused) {
  const auto f = [](const Tensors& in) { return Tensors{add_(in[0], literal(1.0))}; };
  EXPECT_NE(error_of([&] { capture(f, square(false)); }).find("leaf"), std::string::npos);
}

TEST(CaptureWrite, PlainMemoryIsFollowedThroughItsAliases) {
  const Tensor state = numbers({2, 3}), alias = detach(state);
  const Tensor flat = reshape(state, {6}), row = slice_view(state, rows(0, 1));
  const auto f = [&](const Tensors& in) {
    const Tensor inside = slice_view(state, rows(1, 2));
    add_(inside, in[0]);      // through a view taken here
    multiply_(alias, in[0]);  // through an alias from outside
    return Tensors{state * 1, flat * 1, alias * 1, inside * 1};
  };
  const Executor executor(capture(f, {{DType::Float32, {3}, "x"}}));
  expect_sound(executor.program());
  const Tensor x = numbers({3}, 0.6);
  const std::vector<double> start = state.to_vector<double>();
  const Tensors wanted = f({x});
  const std::vector<double> end = state.to_vector<double>();
  copy_into(state, Tensor::from_vector(start, Shape{2, 3}, DType::Float32));
  const Tensors got = executor.run(Tensors{x});
  for (size_t i = 0; i < wanted.size(); ++i) expect_same(got[i], wanted[i]);
  EXPECT_EQ(state.to_vector<double>(), end);
  EXPECT_TRUE(state.is_dense() && alias.is_dense() && flat.is_dense());

  const auto part = [&](const Tensors& in) {
    add_(state, in[0]);
    return Tensors{row * 1};
  };
  EXPECT_NE(error_of([&] { capture(part, {{DType::Float32, {3}, "x"}}); }).find("shares part"),
            std::string::npos);
  EXPECT_TRUE(state.is_dense()) << "put back after an error too";
  EXPECT_EQ(state.to_vector<double>(), end);
}

TEST(CaptureWrite, StatesThatChangePlaces) {
  const Tensor a = numbers({3}, 0.1), b = numbers({3}, 0.9);
  const Executor executor(capture(
      [&](const Tensors& in) {
        const Tensor old = a * 1, seen = slice_view(a, rows(0, 2));
        const Tensor kept = assign(seen);
        copy_into(a, b);
        copy_into(b, old);
        return Tensors{kept + in[0], a};
      },
      {{DType::Float32, {2}, "x"}}));
  expect_sound(executor.program());
  const Tensor first = assign(a), second = assign(b);
  const Tensors got = executor.run(Tensors{zeros({2})});
  expect_same(got[0], assign(slice_view(first, rows(0, 2))));
  expect_same(got[1], second);
  expect_same(a, second);
  expect_same(b, first);
}

}  // namespace
}  // namespace oar
