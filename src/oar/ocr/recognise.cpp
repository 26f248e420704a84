#include "oar/ocr/recognise.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "oar/base/error.h"
#include "oar/base/parallel.h"
#include "oar/media/resize.h"
#include "oar/ocr/planes.h"

namespace oar::ocr {
namespace {

double ratio_of(const Tensor& picture) {
  const media::ImageSize size = media::size_of_image(picture);
  return static_cast<double>(size.width) / static_cast<double>(size.height);
}

// From the narrowest to the widest.
std::vector<size_t> by_ratio(const std::vector<Tensor>& pictures) {
  std::vector<size_t> order(pictures.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return ratio_of(pictures[a]) < ratio_of(pictures[b]);
  });
  return order;
}

// The pictures with one height, and as wide as that makes them, if there is room.
Tensor batch_of(const std::vector<Tensor>& pictures, const std::vector<size_t>& chosen,
                int64_t height, int64_t width) {
  const auto count = static_cast<int64_t>(chosen.size());
  Tensor batch = empty_batch(count, height, width);
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Tensor& picture = pictures[chosen[static_cast<size_t>(i)]];
      const double natural = std::ceil(static_cast<double>(height) * ratio_of(picture));
      const auto wide = std::clamp<int64_t>(static_cast<int64_t>(natural), 1, width);
      put_planes(media::resize(picture, height, wide, media::Interpolation::Linear), batch, i);
    }
  });
  return batch;
}

struct Best {
  int64_t index;
  float value;
};
// The first of the largest.
Best best_of(const float* values, int64_t count) {
  constexpr int64_t kBlock = 64;
  Best best{0, values[0]};
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    float most = values[begin];
    for (int64_t i = begin + 1; i < end; ++i) most = values[i] > most ? values[i] : most;
    if (most <= best.value) continue;
    best = {std::find(values + begin, values + end, most) - values, most};
  }
  return best;
}

double rounded(double value) { return std::nearbyint(value * 1e5) / 1e5; }

// Passes parts of the order, of at most `most` pictures each.
template <class F>
void for_batches(const std::vector<size_t>& order, int64_t most, F&& body) {
  const auto size = static_cast<size_t>(most);
  for (size_t begin = 0; begin < order.size(); begin += size)
    body(std::vector<size_t>(
        order.begin() + static_cast<ptrdiff_t>(begin),
        order.begin() + static_cast<ptrdiff_t>(std::min(begin + size, order.size()))));
}

constexpr int64_t kClassifiedTogether = 6;

}  // namespace

Dictionary::Dictionary(std::string_view text) {
  characters_.emplace_back();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    characters_.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  characters_.emplace_back(" ");
}

Reading decode(const float* probabilities, int64_t steps, const Dictionary& dictionary) {
  const auto classes = static_cast<int64_t>(dictionary.size());
  Reading reading;
  double sum = 0;
  int64_t count = 0, previous = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const Best best = best_of(probabilities + step * classes, classes);
    if (best.index != 0 && best.index != previous) {
      reading.text += dictionary[static_cast<size_t>(best.index)];
      sum += rounded(static_cast<double>(best.value));
      ++count;
    }
    previous = best.index;
  }
  if (count > 0) reading.score = rounded(sum / static_cast<double>(count));
  return reading;
}

std::vector<bool> upside_down(const Network& network, const std::vector<Tensor>& pictures,
                              const ClassifyOptions& options) {
  std::vector<bool> found(pictures.size());
  for_batches(by_ratio(pictures), kClassifiedTogether, [&](const std::vector<size_t>& chosen) {
    const Tensor out = network.run(batch_of(pictures, chosen, options.height, options.width));
    const auto count = static_cast<int64_t>(chosen.size());
    user_check(out.rank() == 2 && out.dtype() == DType::Float32 && out.is_contiguous() &&
                   out.dim(0).value() == count && out.dim(1).value() == 2,
               ErrorKind::InvalidArgument,
               "the network for directions returned {}; [{}, 2] of float32 is expected.\nhint: "
               "Pass the direction classifier of PP-OCR.",
               out.describe(), count);
    for (size_t i = 0; i < chosen.size(); ++i) {
      const float* p = out.data<float>() + 2 * i;
      found[chosen[i]] = p[1] > p[0] && static_cast<double>(p[1]) > options.threshold;
    }
  });
  return found;
}

std::vector<Reading> recognise(const Network& network, const Dictionary& dictionary,
                               const std::vector<Tensor>& pictures,
                               const RecogniseOptions& options) {
  std::vector<Reading> readings(pictures.size());
  for_batches(by_ratio(pictures), options.batch, [&](const std::vector<size_t>& chosen) {
    const double widest =
        std::max(static_cast<double>(options.least_width) / static_cast<double>(options.height),
                 ratio_of(pictures[chosen.back()]));
    const auto width = static_cast<int64_t>(static_cast<double>(options.height) * widest);
    const Tensor out = network.run(batch_of(pictures, chosen, options.height, width));
    const auto count = static_cast<int64_t>(chosen.size());
    user_check(out.rank() == 3 && out.dtype() == DType::Float32 && out.is_contiguous() &&
                   out.dim(0).value() == count,
               ErrorKind::InvalidArgument,
               "the network for recognition returned {}; [{}, steps, classes] of float32 is "
               "expected.\nhint: Pass a recognition network of PP-OCR.",
               out.describe(), count);
    const int64_t steps = out.dim(1).value(), classes = out.dim(2).value();
    user_check(classes == static_cast<int64_t>(dictionary.size()), ErrorKind::InvalidArgument,
               "the network for recognition has {} classes, its dictionary {} characters (with the "
               "space, and one for none).\nhint: Pass the dictionary that belongs to the network.",
               classes, dictionary.size());
    parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        readings[chosen[static_cast<size_t>(i)]] =
            decode(out.data<float>() + i * steps * classes, steps, dictionary);
    });
  });
  return readings;
}

}  // namespace oar::ocr
