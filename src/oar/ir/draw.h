// Programs as pictures.
#pragma once

#include <string>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// The program as an SVG document: inputs and states at the top, calls in layers below what they read,
// results at the bottom. Every box has its whole instruction as a tooltip.
std::string to_svg(const Program& program);

}  // namespace oar
