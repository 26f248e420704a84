// Tensors that torch.save wrote, in a zip archive: a pickle and a file for each storage.
#pragma once

#include "oar/formats/safetensors.h"
#include "oar/formats/zip.h"

namespace oar::pytorch {

// A dictionary of tensors by name; its other values are left out.
NamedTensors saved_tensors(const ZipFile& zip);

}  // namespace oar::pytorch
