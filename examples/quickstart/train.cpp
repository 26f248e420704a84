// Trains the network of train.py in C++ alone: the same digits, the same seed, the same numbers.
//
//   train digits.npz [--epochs 15] [--batch-size 32] [--lr 0.004] [--workers 0] [--seed 0] [--out .]
//
// Prints the loss and the accuracy of each epoch and, in the end, of the held-out digits. Writes digits.safetensors, which predict.cpp
// and Python read, and losses.npy, the loss of every step, which the test compares with those of train.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "oar/oar.h"

namespace {

namespace nn = oar::nn;
using oar::DType;
using oar::Shape;
using oar::Tensor;

struct Settings {
  std::string data;
  int64_t epochs = 15, batch_size = 32;
  double rate = 0.004;
  int workers = 0;
  uint64_t seed = 0;
  std::string out = ".";
};

// Two convolutions, then two linear layers, as in train.py.
struct DigitNet : nn::Module {
  nn::Conv2D conv1{1, 16, 3, {.padding = 1}};
  nn::Conv2D conv2{16, 32, 3, {.padding = 1}};
  nn::MaxPool2D pool{2};
  nn::Dropout drop{0.25};
  nn::Linear fc1{32 * 4 * 4, 64};
  nn::Linear fc2{64, 10};

  DigitNet() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("drop", drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  Tensor forward(const Tensor& images) override {
    Tensor x = oar::relu(conv1(images));
    x = pool(oar::relu(conv2(x)));
    x = oar::relu(fc1(oar::flatten(x, 1, -1)));
    return fc2(drop(x));
  }
};

struct Digits {
  Tensor images;  // [n, 1, 8, 8], from 0 to 1
  Tensor labels;  // [n], int64
};

// Some of the images, as oar.datasets.Digits chooses them: every fifth of each digit, at random but always the same, is for testing.
Digits choose(const oar::NamedTensors& all, bool test) {
  const std::vector<int64_t> labels = all.at("labels").to_vector<int64_t>();
  std::vector<bool> is_test(labels.size(), false);
  nn::NumpyRandom random(20);
  for (int64_t digit = 0; digit < 10; ++digit) {
    std::vector<int64_t> places;
    for (size_t i = 0; i < labels.size(); ++i)
      if (labels[i] == digit) places.push_back(static_cast<int64_t>(i));
    random.shuffle(places);
    const auto share =
        static_cast<size_t>(std::nearbyint(static_cast<double>(places.size()) * 0.2));
    for (size_t i = 0; i < share; ++i) is_test[static_cast<size_t>(places[i])] = true;
  }
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < labels.size(); ++i)
    if (is_test[i] == test) chosen.push_back(static_cast<int64_t>(i));
  const auto count = static_cast<int64_t>(chosen.size());
  const Tensor index = Tensor::from_vector(chosen, Shape{count}, DType::Int64);
  const Tensor images = oar::index_select(all.at("images"), index, 0);
  return {oar::reshape(oar::cast(images, DType::Float32) / 16.0, {count, 1, 8, 8}),
          oar::index_select(oar::cast(all.at("labels"), DType::Int64), index, 0)};
}

// Each image moved by up to one pixel, so that the network sees more than it was given.
nn::Batch shifted(const std::vector<nn::Sample>& samples) {
  nn::Batch batch = nn::stacked(samples);
  const auto count = static_cast<int64_t>(samples.size());
  const std::vector<int64_t> moves = nn::NumpyRandom::shared().randint(0, 3, 2 * samples.size());
  const Tensor padded = oar::pad_constant(batch[0], {0, 0, 0, 0, 1, 1, 1, 1});
  std::vector<Tensor> moved;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t y = moves[static_cast<size_t>(2 * i)], x = moves[static_cast<size_t>(2 * i + 1)];
    moved.push_back(oar::slice(padded, {0, 2, 3}, {i, y, x}, {i + 1, y + 8, x + 8}));
  }
  batch[0] = oar::concat(moved, 0);
  return batch;
}

double share_right(const Tensor& logits, const Tensor& labels) {
  const Tensor right = oar::equal(oar::argmax(logits, -1), labels);
  return oar::mean(oar::cast(right, DType::Float32)).item_double();
}

// The loss of every step.
std::vector<double> train(DigitNet& net, const Digits& digits, const Settings& settings) {
  const nn::TensorDataset data({digits.images, digits.labels});
  nn::DataLoader loader(data, {.batch_size = settings.batch_size,
                               .shuffle = true,
                               .drop_last = true,
                               .num_workers = settings.workers,
                               .collate = shifted});
  const int64_t steps = settings.epochs * loader.size();
  const auto schedule = std::make_shared<nn::lr::OneCycleLR>(
      settings.rate, steps, nn::lr::OneCycleOptions{.end_learning_rate = settings.rate / 1000});
  nn::AdamW optimizer(net.parameters(), {.learning_rate = schedule, .weight_decay = 0.01});
  std::vector<double> losses;
  double mean_loss = 0, mean_right = 0;
  net.train();
  for (int64_t epoch = 1; epoch <= settings.epochs; ++epoch) {
    for (const nn::Batch& batch : loader) {
      const Tensor logits = net(batch[0]);
      const Tensor loss = oar::cross_entropy(logits, batch[1]);
      oar::backward({&loss, 1});
      optimizer.step();
      optimizer.zero_grad();
      schedule->step();
      losses.push_back(loss.item_double());
      const double keep = losses.size() > 1 ? 0.95 : 0.0;
      mean_loss = keep * mean_loss + (1 - keep) * losses.back();
      mean_right = keep * mean_right + (1 - keep) * share_right(logits, batch[1]);
    }
    std::printf("epoch %3lld loss %.4f  accuracy %5.1f%%\n", static_cast<long long>(epoch),
                mean_loss, 100 * mean_right);
  }
  return losses;
}

int run(const Settings& settings) {
  nn::seed_all(settings.seed);
  DigitNet net;
  const oar::NamedTensors all = oar::load_npz(settings.data);
  const Digits training = choose(all, false), held_out = choose(all, true);
  const std::vector<double> losses = train(net, training, settings);

  net.eval();
  const oar::NoGrad no_grad;
  const double right = share_right(net(held_out.images), held_out.labels);
  std::printf("%.2f%% of %lld held-out digits are read right\n", 100 * right,
              static_cast<long long>(held_out.labels.dim(0).value()));
  net.save(settings.out + "/digits.safetensors");
  oar::save_npy(
      settings.out + "/losses.npy",
      Tensor::from_vector(losses, Shape{static_cast<int64_t>(losses.size())}, DType::Float64));
  return right < 0.97 && settings.epochs >= 15 ? 1 : 0;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (!name.starts_with("--")) {
      settings.data = name;
      continue;
    }
    if (++i == argc) throw std::invalid_argument(name + " needs a value");
    const std::string value = argv[i];
    if (name == "--epochs")
      settings.epochs = std::stoll(value);
    else if (name == "--batch-size")
      settings.batch_size = std::stoll(value);
    else if (name == "--lr")
      settings.rate = std::stod(value);
    else if (name == "--workers")
      settings.workers = std::stoi(value);
    else if (name == "--seed")
      settings.seed = std::stoull(value);
    else if (name == "--out")
      settings.out = value;
    else
      throw std::invalid_argument("there is no option " + name);
  }
  if (settings.data.empty()) throw std::invalid_argument("the first argument is digits.npz");
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
