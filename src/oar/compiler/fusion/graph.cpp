#include "oar/compiler/fusion/graph.h"

#include <algorithm>

#include "oar/compiler/passes/edit.h"
#include "oar/ir/region.h"

namespace oar::fusion {
namespace {

// Calls that keep their order: they draw random numbers, write, or run a user's function.
bool is_ordered(const Instruction& call) {
  return draws_random(call) || is_update(*call.op) || !call.op->is_built_in() || has_regions(call);
}

}  // namespace

CallGraph::CallGraph(const Program& program)
    : makers_(program.values.size(), -1),
      shown_(program.values.size(), -1),
      readers_(program.values.size()),
      given_back_(given_back(program)) {
  for (const State& s : program.states)
    if (s.written != kNoValue) given_back_[static_cast<size_t>(s.written)] = true;
  const std::vector<Instruction>& calls = program.body.instructions;
  sources_.resize(calls.size());
  makers_of_.resize(calls.size());
  int last_ordered = -1;
  for (size_t i = 0; i < calls.size(); ++i) {
    for_each_operand(calls[i], [&](ValueId id) {
      if (maker(id) >= 0) makers_of_[i].push_back(static_cast<size_t>(maker(id)));
      if (shown(id) >= 0) sources_[i].push_back(static_cast<size_t>(shown(id)));
      readers_[static_cast<size_t>(id)].push_back(i);
    });
    if (is_ordered(calls[i])) {
      if (last_ordered >= 0) {
        makers_of_[i].push_back(static_cast<size_t>(last_ordered));
        sources_[i].push_back(static_cast<size_t>(last_ordered));
      }
      last_ordered = static_cast<int>(i);
    }
    const bool view = static_cast<bool>(calls[i].op->def().view);
    for (ValueId id : calls[i].results) {
      makers_[static_cast<size_t>(id)] = static_cast<int>(i);
      shown_[static_cast<size_t>(id)] = view ? shown(operand(calls[i], 0)) : static_cast<int>(i);
    }
    is_view_.push_back(view);
    group_.push_back(i);
    members_.push_back({i});
  }
}

// Does the group `from` wait for `target` in any way other than through `without`?
bool CallGraph::reaches(size_t from, size_t target, size_t without) const {
  std::vector<bool> seen(members_.size(), false);
  std::vector<size_t> todo{from};
  seen[from] = true;
  while (!todo.empty()) {
    const size_t at = todo.back();
    todo.pop_back();
    for (const size_t call : members_[at])
      for (const size_t source : sources_[call]) {
        const size_t next = group_[source];
        if (next == target) {
          if (at != from) return true;
          continue;  // directly: the two may become one
        }
        if (seen[next] || next == without) continue;
        seen[next] = true;
        todo.push_back(next);
      }
  }
  return false;
}

bool CallGraph::can_join(size_t a, size_t b) const {
  return !reaches(a, b, a) && !reaches(b, a, b);
}

size_t CallGraph::join(size_t a, size_t b) {
  for (const size_t call : members_[b]) group_[call] = a;
  members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
  std::sort(members_[a].begin(), members_[a].end());
  members_[b].clear();
  return a;
}

// Is the call a view of a result of the group? The group has a copy of it, and the view itself comes after the group.
bool CallGraph::shows(size_t call, size_t group) const {
  return group_[call] != group && sources_[call].size() == 1 && is_view_[call] &&
         group_[sources_[call][0]] == group;
}

std::vector<size_t> CallGraph::sorted() const {
  std::vector<size_t> order;
  std::vector<uint8_t> state(members_.size(), 0);  // 1: waits for its sources, 2: done
  std::vector<size_t> stack;
  for (size_t call = 0; call < size(); ++call) {
    // At its last call, so that nothing it reads is computed earlier than before; a reader in between asks for it sooner.
    if (members_[group_[call]].back() != call) continue;
    stack.push_back(group_[call]);
    while (!stack.empty()) {
      const size_t at = stack.back();
      if (state[at] == 2) {
        stack.pop_back();
        continue;
      }
      const bool ready = state[at] == 1;
      state[at] = ready ? 2 : 1;
      if (ready) {
        order.push_back(at);
        stack.pop_back();
        continue;
      }
      for (const size_t member : members_[at])
        for (const size_t source : makers_of_[member])
          if (state[group_[source]] == 0 && !shows(source, at)) stack.push_back(group_[source]);
    }
  }
  return order;
}

}  // namespace oar::fusion
