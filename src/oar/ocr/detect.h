// Where the text is: the network's map of probabilities becomes boxes (differentiable binarisation, Liao et al. 2020).
#pragma once

#include "oar/media/image.h"
#include "oar/ocr/geometry.h"
#include "oar/ocr/network.h"
#include "oar/ocr/options.h"

namespace OAR_API oar {
namespace ocr {

struct FoundBox {
  Quad corners;
  double score = 0;
};

// The size of the network's input for an image: its shorter side as the options say, both multiples of 32.
media::ImageSize detection_size(int64_t height, int64_t width, const DetectOptions& options);

// Boxes on an image of this size, from the map of probabilities of size rows x columns.
std::vector<FoundBox> boxes_of_map(const float* map, int64_t rows, int64_t columns, int64_t height,
                                   int64_t width, const DetectOptions& options);

// From top to bottom, and from left to right within a line.
void sort_for_reading(std::vector<FoundBox>& boxes);

// The boxes of an image of uint8 with three channels, in the order in which they are read.
std::vector<FoundBox> detect(const Network& network, const Tensor& image,
                             const DetectOptions& options);

}  // namespace ocr
}  // namespace oar
