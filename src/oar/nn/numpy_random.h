// The stream of numpy.random: MT19937 with the functions that samplers draw from. Datasets are shuffled with it, so that a C++ and a
// Python program with the same seed see the same batches.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/pickle.h"

namespace OAR_API oar {
namespace nn {

class NumpyRandom {
 public:
  // As numpy.random.RandomState(seed).
  explicit NumpyRandom(uint32_t seed = 0) { this->seed(seed); }
  // The stream that samplers share, as numpy.random itself; for one thread at a time. A worker of a DataLoader has one of its own
  // for each batch.
  static NumpyRandom& shared();
  // While alive, shared() of this thread is this stream.
  class Own;

  void seed(uint32_t value);
  uint32_t next();                                                        // 32 random bits
  std::vector<int64_t> randint(int64_t low, int64_t high, size_t count);  // [low, high)
  std::vector<int64_t> permutation(int64_t n);
  void shuffle(std::vector<int64_t>& values);

  // As numpy.random.get_state returns it.
  StateTree state() const;
  void set_state(const StateTree& state);

 private:
  uint64_t up_to(uint64_t most);
  void refill();

  std::array<uint32_t, 624> words_{};
  size_t position_ = 0;
};

class NumpyRandom::Own {
 public:
  explicit Own(uint32_t seed);
  ~Own();
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;

 private:
  NumpyRandom stream_;
  NumpyRandom* outer_;
};

// The random numbers of a program, of ops and of NumpyRandom::shared(): what checkpoints keep. They have the form of Python's; the
// numbers of Python's module `random`, which nothing here draws from, are passed on.
StateTree random_states();
void set_random_states(const StateTree& states);

// Seeds both, as `oar.seed(n)` and `numpy.random.seed(n)` do.
void seed_all(uint64_t value);

}  // namespace nn
}  // namespace oar
