#include "oar/compiler/capture/recompute.h"

#include <algorithm>

namespace oar {
namespace {

int64_t elements(const Program& program, ValueId id) {
  int64_t count = 1;
  for (Dim d : program.type_of(id).shape) count *= d.hint();
  return count;
}

int64_t bytes_of(const Program& program, ValueId id) {
  return elements(program, id) * static_cast<int64_t>(size_of(program.type_of(id).dtype));
}

// A pass over each element; rows are read several times.
bool is_cheap(const Op& op) {
  return (op.has(Trait::Elementwise) || op.has(Trait::Rowwise)) && !op.has(Trait::Random) &&
         !op.has(Trait::DataDependent) && !is_update(op);
}

int64_t work_of(const Program& program, const Instruction& instruction) {
  int64_t work = 1;
  for_each_operand(instruction, [&](ValueId id) { work += elements(program, id); });
  for (ValueId id : instruction.results) work += elements(program, id);
  return instruction.op->has(Trait::Elementwise) ? work : 4 * work;
}

struct Candidate {
  size_t instruction;
  double bytes_per_work;
};

std::vector<Candidate> candidates(const Program& program, const std::vector<ValueId>& kept,
                                  const std::vector<bool>& again) {
  std::vector<bool> is_kept(program.values.size(), false);
  for (ValueId id : kept) is_kept[static_cast<size_t>(id)] = true;
  std::vector<Candidate> found;
  const std::vector<Instruction>& instructions = program.body.instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (again[i] || !is_cheap(*instructions[i].op)) continue;
    int64_t bytes = 0;
    for (ValueId id : instructions[i].results)
      if (is_kept[static_cast<size_t>(id)]) bytes += bytes_of(program, id);
    if (bytes == 0) continue;
    const auto work = static_cast<double>(work_of(program, instructions[i]));
    found.push_back({i, static_cast<double>(bytes) / work});
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return a.bytes_per_work > b.bytes_per_work;
  });
  return found;
}

}  // namespace

int64_t bytes_kept(const Program& program, const std::vector<ValueId>& values) {
  int64_t bytes = 0;
  for (ValueId id : values)
    if (std::find(program.inputs.begin(), program.inputs.end(), id) == program.inputs.end())
      bytes += bytes_of(program, id);
  return bytes;
}

std::vector<bool> choose_recomputed(const Program& program, const KeptValues& kept,
                                    int64_t most_bytes) {
  std::vector<bool> again(program.body.instructions.size(), false);
  std::vector<ValueId> values = kept(again);
  int64_t bytes = bytes_kept(program, values);
  // What one choice asks to be kept in its place may be cheap to make as well: another round.
  for (bool better = true; better && bytes > most_bytes;) {
    better = false;
    for (const Candidate& c : candidates(program, values, again)) {
      if (bytes <= most_bytes) break;
      again[c.instruction] = true;
      std::vector<ValueId> fewer = kept(again);
      const int64_t now = bytes_kept(program, fewer);
      if (now >= bytes) {
        again[c.instruction] = false;
        continue;
      }
      bytes = now;
      values = std::move(fewer);
      better = true;
    }
  }
  return again;
}

}  // namespace oar
