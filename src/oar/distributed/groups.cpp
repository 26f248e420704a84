#include "oar/distributed/groups.h"

#include <map>
#include <mutex>
#include <utility>

namespace oar::distributed {
namespace {

struct Groups {
  std::mutex mutex;
  std::map<int64_t, std::shared_ptr<ProcessGroup>> by_number;
};

// Never destroyed: at the exit of the process its threads may still be at work.
Groups& groups() {
  static Groups& all = *new Groups;
  return all;
}

}  // namespace

void add_group(int64_t number, std::shared_ptr<ProcessGroup> group) {
  const std::lock_guard lock(groups().mutex);
  groups().by_number[number] = std::move(group);
}

std::shared_ptr<ProcessGroup> find_group(int64_t number) {
  const std::lock_guard lock(groups().mutex);
  const auto found = groups().by_number.find(number);
  return found == groups().by_number.end() ? nullptr : found->second;
}

void remove_group(int64_t number) {
  std::shared_ptr<ProcessGroup> group;  // dies outside the lock
  const std::lock_guard lock(groups().mutex);
  const auto found = groups().by_number.find(number);
  if (found == groups().by_number.end()) return;
  group = std::move(found->second);
  groups().by_number.erase(found);
}

}  // namespace oar::distributed
