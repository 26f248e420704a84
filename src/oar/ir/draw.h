// Programs as pictures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// The program as an SVG document: inputs and states at the top, calls in layers below what they read,
// results at the bottom. Every box has its whole instruction as a tooltip.
std::string to_svg(const Program& program);

// A box of a graph.
struct GraphBox {
  std::string title, detail, tooltip;
  std::string style;          // the class of its element: "heavy", "input", …; see kStyle
  std::vector<size_t> reads;  // earlier boxes
  std::string layer;          // the layer that called it: "net.blocks.1"
};

// The boxes that the picture of a program has, without those of its regions.
std::vector<GraphBox> boxes_of(const Program& program);
// Any graph, drawn in the same way.
std::string to_svg(std::string_view title, std::vector<GraphBox> graph);

}  // namespace oar
