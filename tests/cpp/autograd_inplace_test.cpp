// In-place writes and views under autograd.
#include "autograd_util.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar::test {
namespace {

Tensor part(const Tensor& x, int64_t begin, int64_t end) { return slice(x, {0}, {begin}, {end}); }

TEST(InPlace, GradientsAreThoseOfTheNewValue) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 5});
  const Tensor y = x * 2;
  const Tensor same = multiply_(y, w);
  EXPECT_TRUE(same.is_same(y));
  add_(y, constant({1, 1}));
  square_(y);
  EXPECT_EQ(values_of(y), (Values{49, 441}));
  run_backward(sum(y));
  EXPECT_EQ(grad_of(x), (Values{2 * 7 * 3 * 2, 2 * 21 * 5 * 2}));
  EXPECT_EQ(grad_of(w), (Values{2 * 7 * 2, 2 * 21 * 4}));
}

TEST(InPlace, OperandAndTargetMayBeOne) {
  const Tensor x = leaf({3});
  const Tensor y = x * 1;
  multiply_(y, y);
  run_backward(y);
  EXPECT_EQ(values_of(y), (Values{9}));
  EXPECT_EQ(grad_of(x), (Values{6}));
}

TEST(InPlace, SecondDerivatives) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  multiply_(y, x);
  const Tensor first = grad_wrt(y, x, {.create_graph = true});
  EXPECT_EQ(values_of(first), (Values{12}));
  EXPECT_EQ(values_of(grad_wrt(first, x)), (Values{12}));
}

TEST(InPlace, AStaleSavedTensorIsAnErrorThatNamesTheOp) {
  const Tensor x = leaf({1, 2});
  {
    const Tensor y = exp(x);
    const Tensor z = sum(y);
    add_(y, constant({1, 1}));
    const Error error = error_of([&] { run_backward(y); });
    EXPECT_EQ(error.kind(), ErrorKind::Runtime);
    EXPECT_TRUE(contains(error.text(), "the gradient of exp needs its result out")) << error.text();
    EXPECT_TRUE(contains(error.text(), "changed in place")) << error.text();
    EXPECT_TRUE(contains(error.hint(), "clone()"));
    EXPECT_EQ(error.op(), "exp");
  }
  {
    const Tensor a = x * 2, b = x * 3;
    const Tensor c = a * b;
    add_(b, constant({1, 1}));
    const Error error = error_of([&] { run_backward(c); });
    EXPECT_TRUE(contains(error.text(), "the gradient of multiply needs its operand y (float64[2])"))
        << error.text();
  }
  {
    const Tensor a = x * 2;
    const Tensor b = a + 1;  // an addition needs neither operand
    add_(a, constant({1, 1}));
    EXPECT_NO_THROW(run_backward(b));
  }
  {
    const Tensor a = x * 2;
    const Tensor c = a * a;
    {
      const NoGrad off;
      add_(part(a, 0, 1), constant({1}));
    }
    EXPECT_THROW(run_backward(c), Error) << "a write through a view, unrecorded, is a write";
  }
}

TEST(InPlace, ALeafThatAsksForItsGradientIsNotWritten) {
  const Tensor x = leaf({1, 2});
  const Error error = error_of([&] { add_(x, constant({1, 1})); });
  EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
  EXPECT_TRUE(contains(error.text(), "a leaf that requires a gradient"));
  EXPECT_THROW(add_(part(x, 0, 1), constant({1})), Error);
  EXPECT_EQ(values_of(x), (Values{1, 2}));
  const NoGrad off;
  add_(x, constant({1, 1}));
  EXPECT_EQ(values_of(x), (Values{2, 3}));
  EXPECT_TRUE(is_leaf(x));
  EXPECT_FALSE(stop_gradient(x));
}

TEST(InPlace, APlainTensorTakesUpAHistory) {
  const Tensor x = leaf({2, 3});
  const Tensor buffer = constant({0, 0});
  copy_into(buffer, x * 5);
  EXPECT_FALSE(stop_gradient(buffer));
  run_backward(buffer);
  EXPECT_EQ(grad_of(x), (Values{5, 5}));
}

TEST(InPlace, ShapesAndReadOnlyMemoryAreChecked) {
  const Tensor row = constant({1, 2});
  const Tensor matrix = zeros({2, 2}, DType::Float64);
  EXPECT_THROW(add_(row, matrix), Error) << "the result does not fit";
  EXPECT_NO_THROW(add_(matrix, row));
  const Tensor stretched = broadcast_to(row, {3, 2});
  EXPECT_THROW(add_(stretched, row), Error) << "elements share memory";
  row->storage->set_readonly();
  EXPECT_THROW(add_(row, row), Error);
  const Tensor whole = cast(constant({1, 2}), DType::Int64);
  EXPECT_THROW(add_(whole, constant({0.5, 0.5})), Error) << "what is written keeps its dtype";
}

TEST(Views, GradientsPassThrough) {
  const Tensor x = leaf({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  const Tensor turned = transpose(x, {1, 0});
  run_backward(part(turned, 1, 3) * part(turned, 1, 3));
  EXPECT_EQ(grad_of(x), (Values{0, 4, 6, 0, 10, 12}));
}

TEST(Views, AWriteThroughAViewReachesTheBase) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 2;
  const Tensor v = part(y, 1, 3);
  multiply_(v, constant({10, 100}));
  EXPECT_EQ(values_of(y), (Values{2, 40, 600}));
  run_backward(y);
  EXPECT_EQ(grad_of(x), (Values{2, 20, 200}));
}

TEST(Views, OtherViewsSeeTheWrite) {
  const Tensor x = leaf({1, 2, 3}), w = leaf({7});
  const Tensor y = x * 2;
  const Tensor written = part(y, 0, 2), watching = part(y, 1, 3);
  copy_into(part(written, 1, 2), w);  // a view of a view: y[1] = w
  EXPECT_EQ(values_of(watching), (Values{7, 6}));
  run_backward(watching * watching, {.retain_graph = true});
  EXPECT_EQ(grad_of(w), (Values{14}));
  EXPECT_EQ(grad_of(x), (Values{0, 0, 24}));
  history_of(x).grad.set(Tensor());
  history_of(w).grad.set(Tensor());
  run_backward(written);
  EXPECT_EQ(grad_of(w), (Values{1}));
  EXPECT_EQ(grad_of(x), (Values{2, 0, 0}));
}

TEST(Views, AWriteToTheBaseReachesItsViews) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  const Tensor v = reshape(y, {2, 1});
  const Tensor before = v + 1;
  multiply_(y, y);
  EXPECT_EQ(values_of(v), (Values{9, 36}));
  run_backward(v, {.retain_graph = true});
  EXPECT_EQ(grad_of(x), (Values{18, 36}));
  history_of(x).grad.set(Tensor());
  run_backward(before);
  EXPECT_EQ(grad_of(x), (Values{3, 3})) << "what was computed before stays what it was";
}

TEST(Views, WritesIntoAPlainBuffer) {
  const Tensor x = leaf({2, 3});
  const Tensor buffer = zeros({4}, DType::Float64);
  copy_into(part(buffer, 0, 2), x);
  copy_into(part(buffer, 2, 4), x * x);
  EXPECT_EQ(values_of(buffer), (Values{2, 3, 4, 9}));
  run_backward(sum(buffer * constant({1, 10, 100, 1000})));
  EXPECT_EQ(grad_of(x), (Values{1 + 100 * 4, 10 + 1000 * 6}));
}

TEST(Views, ManyWritesThroughOneView) {
  const Tensor x = leaf({1, 1});
  const Tensor y = x * 1;
  const Tensor v = part(y, 0, 1);
  for (int i = 0; i < 20; ++i) multiply_(v, constant({2}));
  run_backward(y);
  EXPECT_EQ(grad_of(x), (Values{1048576, 1}));
}

TEST(Views, SecondDerivativesThroughAWrite) {
  const Tensor x = leaf({2, 3});
  const Tensor y = x * x;
  multiply_(part(y, 0, 1), part(x, 0, 1));  // [x^3, x^2]
  const Tensor first = grad_wrt(y, x, {.create_graph = true});
  EXPECT_EQ(values_of(first), (Values{12, 6}));
  EXPECT_EQ(values_of(grad_wrt(first, x)), (Values{12, 2}));
}

TEST(Views, AnOlderViewSeesAWriteThroughAnother) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 2;
  const Tensor s = part(y, 1, 2);
  multiply_(part(y, 0, 2), constant({3, 3}));
  run_backward(s * s * s);  // (6 x1)^3
  EXPECT_EQ(grad_of(x), (Values{0, 3 * 6 * 12 * 12, 0}));
}

TEST(Views, ADetachedViewSharesMemoryButNoHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x;
  const Tensor z = exp(y);
  const Tensor free = detach(z);
  add_(free, constant({1, 1}));
  EXPECT_TRUE(stop_gradient(free));
  EXPECT_THROW(run_backward(z), Error) << "the write is seen all the same";
}

}  // namespace
}  // namespace oar::test
