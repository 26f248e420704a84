// A small mutating driver, so that fuzz targets run with any compiler:
//
//   oar_fuzz_safetensors [iterations] [seed]
//
// A target defines LLVMFuzzerTestOneInput and seeds(). Built with -fsanitize=fuzzer and
// -DOAR_LIBFUZZER it is a libFuzzer target instead, and this file adds nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Good inputs to start from.
std::vector<std::string> seeds();
// Words of the format, which chance would not find.
std::vector<std::string> dictionary();

#ifndef OAR_LIBFUZZER

#include <cstdio>
#include <cstdlib>
#include <random>

namespace fuzz {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed), words_(dictionary()) {}

  std::string mutate(std::string input, const std::vector<std::string>& others) {
    const size_t times = 1 + below(4);
    for (size_t i = 0; i < times; ++i) mutate_once(input, others);
    return input;
  }
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }

 private:
  void mutate_once(std::string& s, const std::vector<std::string>& others) {
    const size_t at = below(s.size() + 1);
    switch (below(8)) {
      case 0:
        if (at < s.size()) s[at] = static_cast<char>(random_());
        break;
      case 1:
        if (at < s.size()) s[at] = static_cast<char>(s[at] ^ (1 << below(8)));
        break;
      case 2:
        s.erase(at, 1 + below(16));
        break;
      case 3:
        s.insert(at, s.substr(below(s.size() + 1), below(32)));
        break;
      case 4:
        s.resize(at);
        break;
      case 5:
        s.insert(at, words_[below(words_.size())]);
        break;
      case 6: {  // a number, changed in one digit or extended
        const size_t digit = s.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        if (below(2) == 0)
          s[digit] = static_cast<char>('0' + below(10));
        else
          s.insert(digit, std::to_string(random_() >> below(64)));
        break;
      }
      default: {  // the tail of another input
        const std::string& other = others[below(others.size())];
        s = s.substr(0, at) + other.substr(below(other.size() + 1));
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
};

}  // namespace fuzz

int main(int argc, char** argv) {
  const long iterations = argc > 1 ? std::atol(argv[1]) : 20000;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::vector<std::string> pool = seeds();
  fuzz::Mutator mutator(seed);
  for (long i = 0; i < iterations; ++i) {
    std::string input = mutator.mutate(pool[mutator.below(pool.size())], pool);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    // Mutants of mutants reach further; the seeds themselves stay in the pool.
    if (input.size() < 4096 && mutator.below(16) == 0) {
      if (pool.size() < 256)
        pool.push_back(std::move(input));
      else
        pool[pool.size() - 1 - mutator.below(128)] = std::move(input);
    }
  }
  std::printf("%ld inputs, no failure\n", iterations);
  return 0;
}

#endif
