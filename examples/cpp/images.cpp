// Trains a small convolutional network on pictures that it draws: a loader with threads, a schedule, clipping, checkpoints. Stop it and
// start it again: it goes on with the batch that comes next.
//
//   images <folder for checkpoints> [steps]
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "oar/oar.h"

using oar::DType;
using oar::Shape;
using oar::Tensor;
namespace nn = oar::nn;

namespace {

constexpr int64_t kSize = 16;
constexpr int64_t kPictures = 1024;

// Discs, squares and crosses of random sizes and places, with noise. A picture depends on its number alone.
class Shapes : public nn::Dataset {
 public:
  int64_t size() const override { return kPictures; }

  nn::Sample get(int64_t index) const override {
    nn::NumpyRandom random(static_cast<uint32_t>(index));
    const std::vector<int64_t> place = random.randint(5, 11, 2);
    const int64_t radius = random.randint(2, 5, 1)[0], kind = index % 3;
    std::vector<double> pixels;
    for (int64_t y = 0; y < kSize; ++y)
      for (int64_t x = 0; x < kSize; ++x) {
        const double noise = static_cast<double>(random.next()) / 4294967296.0;
        pixels.push_back(0.4 * noise +
                         (covers(kind, y - place[0], x - place[1], radius) ? 0.6 : 0));
      }
    return {Tensor::from_vector(pixels, Shape{1, kSize, kSize}, DType::Float32),
            Tensor::scalar(kind, DType::Int64)};
  }

 private:
  static bool covers(int64_t kind, int64_t dy, int64_t dx, int64_t radius) {
    const int64_t y = std::abs(dy), x = std::abs(dx);
    if (kind == 0) return y * y + x * x <= radius * radius;
    if (kind == 1) return y <= radius && x <= radius;
    return y <= radius && x <= radius && (y == 0 || x == 0);
  }
};

struct Net : nn::Module {
  nn::Sequential body;
  nn::Linear head{32, 3};

  Net() {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{1, 16}, {16, 32}}) {
      body.append<nn::Conv2D>(in, out, 3, nn::ConvOptions<2>{.padding = 1, .has_bias = false});
      body.append<nn::BatchNorm2D>(out).append<nn::ReLU>().append<nn::MaxPool2D>(2);
    }
    body.append<nn::AdaptiveAvgPool2D>(1).append<nn::Flatten>().append<nn::Dropout>(0.1);
    register_module("body", body);
    register_module("head", head);
  }
  Tensor forward(const Tensor& images) override { return head(body(images)); }
};

double share_right(const Tensor& logits, const Tensor& labels) {
  const Tensor right = oar::equal(oar::argmax(logits, -1), labels);
  return oar::mean(oar::cast(right, DType::Float32)).item_double();
}

int run(const std::string& folder, int64_t steps) {
  nn::seed_all(0);
  Net net;
  const auto rate = std::make_shared<nn::lr::LinearWarmup>(
      std::make_shared<nn::lr::CosineAnnealingDecay>(0.01, steps), 10, 0.0, 0.01);
  nn::AdamW optimizer(net.parameters(),
                      {.learning_rate = rate,
                       .weight_decay = 0.01,
                       .grad_clip = std::make_shared<nn::ClipGradByGlobalNorm>(1.0)});
  const Shapes shapes;
  nn::DataLoader loader(shapes, {.batch_size = 32, .shuffle = true, .num_workers = 2});

  nn::CheckpointManager manager(folder, {.max_to_keep = 2});
  manager.add("model", net).add("optimizer", optimizer).add("loader", loader);
  int64_t step = 0;
  if (const auto found = manager.restore()) {
    step = found->step;
    std::printf("goes on after step %lld\n", static_cast<long long>(step));
  }
  while (step < steps)
    for (const nn::Batch& batch : loader) {
      const Tensor logits = net(batch[0]);
      const Tensor loss = oar::cross_entropy(logits, batch[1]);
      oar::backward({&loss, 1});
      optimizer.step();
      optimizer.zero_grad();
      rate->step();
      if (++step % 20 == 0) {
        manager.save(step);
        std::printf("step %lld: rate %.5f, loss %.6f, %.0f %% right\n",
                    static_cast<long long>(step), optimizer.learning_rate(), loss.item_double(),
                    100 * share_right(logits, batch[1]));
      }
      if (step == steps) break;
    }

  net.eval();
  const oar::NoGrad no_grad;
  nn::DataLoader all(shapes, {.batch_size = kPictures});
  double right = 0;
  for (const nn::Batch& batch : all) right = share_right(net(batch[0]), batch[1]);
  std::printf("%.1f %% of all pictures are named right\n", 100 * right);
  return steps < 100 || right > 0.95 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw std::invalid_argument("images <folder for checkpoints> [steps]");
    return run(argv[1], argc > 2 ? std::stoll(argv[2]) : 120);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
