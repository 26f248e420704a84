// What lines say, and which of them are upside down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/ocr/network.h"
#include "oar/ocr/options.h"

namespace OAR_API oar {
namespace ocr {

// The characters of a network's classes. Class 0 is "no character"; the last one is the space.
class Dictionary {
 public:
  // One character (or several that belong together) per line.
  explicit Dictionary(std::string_view text);
  size_t size() const { return characters_.size(); }
  const std::string& operator[](size_t index) const { return characters_[index]; }

 private:
  std::vector<std::string> characters_;
};

struct Reading {
  std::string text;
  double score = 0;  // the mean of the probabilities of its characters
};

// The most probable class of each step, without repetitions and class 0. `probabilities` are steps x classes.
Reading decode(const float* probabilities, int64_t steps, const Dictionary& dictionary);

// The pictures are of uint8 with three channels, red first; the results are in their order.
std::vector<bool> upside_down(const Network& network, const std::vector<Tensor>& pictures,
                              const ClassifyOptions& options);
std::vector<Reading> recognise(const Network& network, const Dictionary& dictionary,
                               const std::vector<Tensor>& pictures,
                               const RecogniseOptions& options);

}  // namespace ocr
}  // namespace oar
