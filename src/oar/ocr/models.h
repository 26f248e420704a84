// The files that a reader needs, and where they are.
#pragma once

#include <string>

#include "oar/base/api.h"

namespace OAR_API oar {
namespace ocr {

struct ModelFiles {
  std::string detection;
  std::string recognition;
  std::string direction;   // empty: all lines are upright
  std::string dictionary;  // empty: the recognition network has it
};

// The files of a folder and of the folders in it, by their names: `det`, `rec` and `cls` are words of the networks' names. Of
// several recognition networks `language` chooses the one whose name, or whose folder, has it as a word.
ModelFiles find_models(const std::string& folder, const std::string& language = "");

// The folder of models that were fetched for a language; empty is the usual set. It may not exist.
std::string models_folder(const std::string& language = "");

}  // namespace ocr
}  // namespace oar
