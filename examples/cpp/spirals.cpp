// Learns to tell two spirals apart, then turns the network into a program that serves any number of points.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numbers>
#include <vector>

#include "oar/compiler/capture/capture.h"
#include "oar/compiler/executor.h"
#include "oar/ir/print.h"
#include "oar/oar.h"

using oar::Tensor;
namespace nn = oar::nn;

namespace {

struct Net : nn::Module {
  nn::Linear first{2, 32};
  nn::Linear second{32, 32};
  nn::Linear last{32, 1};
  Net() {
    register_module("first", first);
    register_module("second", second);
    register_module("last", last);
  }
  Tensor forward(const Tensor& x) override { return last(oar::tanh(second(oar::tanh(first(x))))); }
};

struct Points {
  Tensor places;  // [n, 2]
  Tensor spiral;  // [n, 1]: 0 or 1
};

// Two arms that wind around each other, one and a half turns each.
Points make_points(int64_t count) {
  std::vector<double> places, spiral;
  for (int64_t i = 0; i < count; ++i) {
    const bool other = i % 2 == 1;
    const double along = static_cast<double>(i / 2) / static_cast<double>(count / 2);
    const double angle = along * 3 * std::numbers::pi + (other ? std::numbers::pi : 0);
    const double radius = 0.1 + 0.9 * along;
    places.insert(places.end(), {radius * std::cos(angle), radius * std::sin(angle)});
    spiral.push_back(other ? 1 : 0);
  }
  return {Tensor::from_vector(places, oar::Shape{count, 2}, oar::DType::Float32),
          Tensor::from_vector(spiral, oar::Shape{count, 1}, oar::DType::Float32)};
}

double share_right(const Tensor& logits, const Tensor& spiral) {
  const std::vector<double> found = logits.to_vector<double>(), wanted = spiral.to_vector<double>();
  size_t right = 0;
  for (size_t i = 0; i < found.size(); ++i) right += (found[i] > 0) == (wanted[i] > 0.5);
  return static_cast<double>(right) / static_cast<double>(found.size());
}

int run() {
  Net net;
  nn::AdamW optimizer(net.parameters(), {.learning_rate = 0.01});
  const Points points = make_points(256);
  for (int step = 1; step <= 600; ++step) {
    const Tensor loss = oar::binary_cross_entropy_with_logits(net(points.places), points.spiral);
    oar::backward({&loss, 1});
    optimizer.step();
    optimizer.zero_grad();
    if (step % 200 == 0) std::printf("step %d: loss %.4f\n", step, loss.item_double());
  }

  // Captured once, with a number of points that is left open.
  const oar::Executor classify(
      oar::capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; },
                   {{oar::DType::Float32, {oar::Dim::symbol("points"), 2}, "places"}}, "classify"));
  std::printf("\n%s\n", oar::to_text(classify.program()).c_str());

  double worst = 1;
  for (const int64_t count : {64, 1000}) {
    const Points fresh = make_points(count);
    const double right = share_right(classify.run({&fresh.places, 1})[0], fresh.spiral);
    std::printf("%lld other points: %.1f %% right\n", static_cast<long long>(count), 100 * right);
    worst = std::min(worst, right);
  }
  return worst > 0.9 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
