// How a reader works. The values are those that PP-OCR's networks are meant for.
#pragma once

#include <cstdint>

#include "oar/base/api.h"

namespace OAR_API oar {
namespace ocr {

struct DetectOptions {
  int64_t shorter_side = 736;    // smaller images are enlarged to it
  float pixel_threshold = 0.3F;  // of a pixel's probability
  double box_threshold = 0.5;    // of the mean probability in a box
  double growth =
      1.6;  // the network marks the core of a line; boxes grow by area / perimeter times this
  int64_t most_boxes = 1000;
};

struct ClassifyOptions {
  int64_t height = 48;
  int64_t width = 192;
  double threshold = 0.9;  // a line is turned if it is upside down with at least this probability
};

struct RecogniseOptions {
  int64_t height = 48;
  int64_t least_width = 320;  // shorter lines are filled up
  int64_t batch = 6;
  double threshold = 0.5;  // lines with a lower score are dropped
};

struct Options {
  int64_t longest_side = 2000;  // larger images are shrunk first
  int64_t shortest_side = 30;   // smaller ones enlarged
  DetectOptions detect;
  ClassifyOptions classify;
  RecogniseOptions recognise;
};

}  // namespace ocr
}  // namespace oar
