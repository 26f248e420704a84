#include "oar/nn/numpy_random.h"

#include <bit>
#include <cstring>

#include "oar/base/error.h"
#include "oar/device/generator.h"

namespace oar::nn {
namespace {

constexpr size_t kWords = 624;

thread_local NumpyRandom* t_own_stream = nullptr;

Tensor words_as_tensor(const uint32_t* words, size_t count) {
  const Tensor made = Tensor::empty(Shape{static_cast<int64_t>(count)}, DType::UInt32);
  std::memcpy(made->data, words, count * sizeof(uint32_t));
  return made;
}

// What Python's `random` would be after random.seed: kept, so that a Python program can resume what this one saved.
StateTree& python_state() {
  static StateTree state = [] {
    NumpyRandom fresh(0);
    const StateTree drawn = fresh.state();
    const Tensor& words = drawn.list()[1].tensor();
    std::vector<uint32_t> all(words.data<uint32_t>(), words.data<uint32_t>() + kWords);
    all.push_back(kWords);
    return StateTree(StateTree::List{
        StateTree(3), StateTree(words_as_tensor(all.data(), all.size())), StateTree()});
  }();
  return state;
}

}  // namespace

NumpyRandom& NumpyRandom::shared() {
  static NumpyRandom stream;
  return t_own_stream ? *t_own_stream : stream;
}

NumpyRandom::Own::Own(uint32_t seed) : stream_(seed), outer_(t_own_stream) {
  t_own_stream = &stream_;
}
NumpyRandom::Own::~Own() { t_own_stream = outer_; }

void NumpyRandom::seed(uint32_t value) {
  words_[0] = value;
  for (uint32_t i = 1; i < kWords; ++i)
    words_[i] = 1812433253U * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  position_ = kWords;
}

void NumpyRandom::refill() {
  for (size_t i = 0; i < kWords; ++i) {
    const uint32_t joined = (words_[i] & 0x80000000U) | (words_[(i + 1) % kWords] & 0x7fffffffU);
    words_[i] = words_[(i + 397) % kWords] ^ (joined >> 1) ^ ((joined & 1U) != 0 ? 0x9908b0dfU : 0);
  }
  position_ = 0;
}

uint32_t NumpyRandom::next() {
  if (position_ >= kWords) refill();
  uint32_t y = words_[position_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

// A number from 0 to `most`, by rejection below the next power of two.
uint64_t NumpyRandom::up_to(uint64_t most) {
  if (most == 0) return 0;
  const uint64_t mask = std::bit_ceil(most + 1) - 1;
  while (true) {
    uint64_t value = next();
    if (most > 0xffffffffU) value = (value << 32) | next();
    if ((value & mask) <= most) return value & mask;
  }
}

std::vector<int64_t> NumpyRandom::randint(int64_t low, int64_t high, size_t count) {
  user_check(low < high, ErrorKind::InvalidArgument, "low ({}) must be below high ({}).", low,
             high);
  std::vector<int64_t> drawn(count);
  for (int64_t& value : drawn)
    value = low + static_cast<int64_t>(up_to(static_cast<uint64_t>(high - low - 1)));
  return drawn;
}

void NumpyRandom::shuffle(std::vector<int64_t>& values) {
  for (size_t i = values.size(); i-- > 1;) std::swap(values[i], values[up_to(i)]);
}

std::vector<int64_t> NumpyRandom::permutation(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  shuffle(order);
  return order;
}

StateTree NumpyRandom::state() const {
  return StateTree(
      StateTree::List{StateTree("MT19937"), StateTree(words_as_tensor(words_.data(), kWords)),
                      StateTree(static_cast<int64_t>(position_)), StateTree(0), StateTree(0.0)});
}

void NumpyRandom::set_state(const StateTree& state) {
  const StateTree::List& parts = state.list();
  user_check(parts.size() == 5 && parts[0].is_text() && parts[0].text() == "MT19937" &&
                 parts[1].is_tensor() && parts[1].tensor().dtype() == DType::UInt32 &&
                 parts[1].tensor().shape() == Shape{static_cast<int64_t>(kWords)},
             ErrorKind::InvalidArgument, "this is no state of numpy.random.");
  const uint64_t position = parts[2].word();
  user_check(position <= kWords, ErrorKind::InvalidArgument, "this is no state of numpy.random.");
  std::memcpy(words_.data(), parts[1].tensor()->data, sizeof(words_));
  position_ = position;
}

StateTree random_states() {
  const RandomState ops = generator::state();
  StateTree states;
  states.set("oar", StateTree(StateTree::List{StateTree(ops.seed), StateTree(ops.offset)}));
  states.set("numpy", NumpyRandom::shared().state());
  states.set("python", python_state());
  return states;
}

void set_random_states(const StateTree& states) {
  const StateTree::List& ops = states.at("oar").list();
  user_check(ops.size() == 2, ErrorKind::InvalidArgument, "this is no state of random numbers.");
  const RandomState state{ops[0].word(), ops[1].word()};
  NumpyRandom::shared().set_state(states.at("numpy"));
  generator::set_state(state);
  python_state() = states.at("python");
}

void seed_all(uint64_t value) {
  generator::seed(value);
  NumpyRandom::shared().seed(static_cast<uint32_t>(value));
}

}  // namespace oar::nn
