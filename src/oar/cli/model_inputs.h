// Inputs of a model from the command line: files of arrays, images and JSON, or random numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "oar/interop/load.h"

namespace oar::cli {

struct InputOptions {
  std::vector<std::string> files;   // "name=file", or "file" for the only input
  std::vector<std::string> shapes;  // "name=1,3,224,224"
  bool random = false;              // for inputs without a file
  bool cast = false;                // arrays of other dtypes are converted
  int64_t batch = 1;                // of random inputs whose first size is open
  uint64_t seed = 0;
  // How images become arrays: (pixel * scale - mean) / std.
  std::string
      size;  // "224", or height and width: "480x640"; empty: that of the input, else of the image
  std::string layout;  // "chw" or "hwc"; empty: the input's shape decides
  std::vector<double> mean, std;
  double scale = 0;  // 0: 1/255 for floating inputs, 1 for others
  bool bgr = false;  // blue comes first
};

// A tensor for each input. Errors name the file, the input, and both dtypes or shapes.
std::vector<Tensor> model_inputs(const std::vector<interop::Port>& inputs,
                                 const InputOptions& options);

// "name=text", or ("", text).
std::pair<std::string, std::string> split_name(const std::string& word);

}  // namespace oar::cli
