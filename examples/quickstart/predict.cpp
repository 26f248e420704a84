// Reads handwritten digits with the network that train.py trained, in C++ alone.
//
//   predict digits.safetensors digits_test.safetensors
//
// Prints how many held-out digits are read right, draws one of them, and compares its probabilities with those
// that Python found. Exit status 1: they differ.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "oar/oar.h"

namespace {

namespace nn = oar::nn;

// The network of train.py. Dropout does nothing when predicting, so it is left out.
struct DigitNet : nn::Module {
  nn::Conv2D conv1{1, 16, 3, {.padding = 1}};
  nn::Conv2D conv2{16, 32, 3, {.padding = 1}};
  nn::MaxPool2D pool{2};
  nn::Linear fc1{32 * 4 * 4, 64};
  nn::Linear fc2{64, 10};

  DigitNet() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  oar::Tensor forward(const oar::Tensor& images) override {
    oar::Tensor x = oar::relu(conv1(images));
    x = pool(oar::relu(conv2(x)));
    x = oar::relu(fc1(oar::flatten(x, 1, -1)));
    return oar::softmax(fc2(x), -1);
  }
};

void draw_digit(const float* pixels) {
  static const char* const shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
  for (int row = 0; row < 8; ++row) {
    std::printf("    ");
    for (int column = 0; column < 8; ++column) {
      const float ink = pixels[row * 8 + column];
      std::printf("%s", shades[std::min(4, static_cast<int>(ink * 5.0f))]);
    }
    std::printf("\n");
  }
}

int run(const std::string& weights_path, const std::string& test_path) {
  DigitNet net;
  net.load_state_dict(oar::load_safetensors(weights_path));
  net.eval();

  std::map<std::string, oar::Tensor> held_out = oar::load_safetensors(test_path);
  const oar::Tensor images = held_out.at("images");
  const std::vector<int64_t> labels = held_out.at("labels").to_vector<int64_t>();
  const std::vector<float> expected = held_out.at("probabilities").to_vector<float>();

  const oar::NoGrad no_grad;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<float> found = net.forward(images).to_vector<float>();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  size_t right = 0;
  float difference = 0.0f;
  for (size_t i = 0; i < labels.size(); ++i) {
    const float* row = found.data() + i * 10;
    right += std::max_element(row, row + 10) - row == labels[i];
  }
  for (size_t i = 0; i < found.size(); ++i) {
    difference = std::max(difference, std::abs(found[i] - expected[i]));
  }

  std::printf("C++ reads %zu of %zu held-out digits right (%.2f %%), in %.1f ms. The first:\n",
              right, labels.size(),
              100.0 * static_cast<double>(right) / static_cast<double>(labels.size()),
              seconds.count() * 1e3);
  draw_digit(images.to_vector<float>().data());
  const int answer =
      static_cast<int>(std::max_element(found.begin(), found.begin() + 10) - found.begin());
  std::printf("    a %d, with probability %.3f\n", answer,
              static_cast<double>(found[static_cast<size_t>(answer)]));
  const bool agree = found.size() == expected.size() && difference < 1e-4f;
  std::printf("Largest difference to the probabilities from Python: %.1e: %s.\n",
              static_cast<double>(difference), agree ? "they agree" : "THEY DIFFER");
  return agree ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s digits.safetensors digits_test.safetensors\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "predict: %s\n", error.what());
    return 1;
  }
}
