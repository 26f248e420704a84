// The readers of each kind of file.
#pragma once

#include <map>
#include <string>

#include "oar/formats/zip.h"
#include "oar/interop/pytorch/import.h"

namespace oar::pytorch {

Model model_of_export(const ZipFile& zip);
Model model_of_script(const ZipFile& zip);
// An error that lists ops without a converter, each with the number of its calls.
void refuse_unknown(const std::map<std::string, int>& unknown);

}  // namespace oar::pytorch
