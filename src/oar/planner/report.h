// What a plan says: placements, bytes on links, memory and time, as data, as JSON and as a picture.
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/planner/search.h"

namespace OAR_API oar {
namespace planner {

// States whose names differ in numbers only, of one type, placed alike.
struct PlacementRow {
  std::string names;  // "layer*.query"
  std::string type;   // "bfloat16[12288, 12288]"
  int64_t count = 0;
  std::vector<Layout> layouts;  // by axis of the mesh
};
std::vector<PlacementRow> placement_rows(const Plan& plan);

// What one device of the average stage sends in a step.
struct LinkRow {
  std::string link, what;  // "nvlink", "tensor all_reduce"
  double bytes = 0, seconds = 0;
};
std::vector<LinkRow> link_rows(const Plan& plan, const Machine& machine);

// ZeRO stage that the placements amount to along the data axis.
int zero_stage(const Plan& plan);

std::string to_json(const SearchResult& result, const Machine& machine, double memory);

// An SVG document.
std::string draw(const SearchResult& result, const Machine& machine, double memory,
                 const std::string& title);

}  // namespace planner
}  // namespace oar
