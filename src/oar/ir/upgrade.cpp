#include "oar/ir/upgrade.h"

namespace oar {
namespace {

std::vector<Upgrade>& all_upgrades() {
  static std::vector<Upgrade> all;
  return all;
}

}  // namespace

void register_upgrade(Upgrade upgrade) { all_upgrades().push_back(std::move(upgrade)); }

std::vector<const Upgrade*> upgrades_of(std::string_view op, int64_t from, int64_t to) {
  std::vector<const Upgrade*> steps;
  for (; from < to; ++from) {
    const size_t before = steps.size();
    for (const Upgrade& one : all_upgrades())
      if (one.op == op && one.from == from && steps.size() == before) steps.push_back(&one);
    if (steps.size() == before) break;
  }
  return steps;
}

std::string renamed_by(const std::vector<const Upgrade*>& steps, size_t first, std::string name) {
  for (size_t i = first; i < steps.size(); ++i)
    for (const auto& [old_name, new_name] : steps[i]->renamed)
      if (name == old_name) {
        name = new_name;
        break;
      }
  return name;
}

}  // namespace oar
