// Text in images.
//
//   const ocr::Reader reader = ocr::Reader::load(ocr::find_models("models"));
//   for (const ocr::Line& line : reader.read(ocr::read_picture(read_file("page.png"))))
//     std::puts(line.text.c_str());
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oar/media/image.h"
#include "oar/ocr/geometry.h"
#include "oar/ocr/models.h"
#include "oar/ocr/options.h"

namespace OAR_API oar {
namespace ocr {

struct Line {
  std::string text;
  double score = 0;     // the mean probability of its characters
  Quad box;             // in pixels of the image
  bool turned = false;  // it is upside down in its box
};

class Reader {
 public:
  static Reader load(const ModelFiles& files, const Options& options = {});

  // The lines of an image of uint8 [height, width, channels], in the order in which they are read. Several threads may call it at
  // once.
  std::vector<Line> read(const Tensor& image) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace ocr
}  // namespace oar
