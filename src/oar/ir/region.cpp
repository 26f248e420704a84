#include "oar/ir/region.h"

#include <algorithm>
#include <utility>

#include "oar/base/string_util.h"
#include "oar/ir/print.h"

namespace oar {
namespace {

Tensor bare(const Program& program, ValueId id) {
  const ValueType& type = program.type_of(id);
  return Tensor::meta(type.shape, type.dtype, type.device);
}

}  // namespace

Region::Region(Program program) : program_(std::move(program)) {
  internal_check(program_.states.empty(), "the region {} has states", program_.name);
  for (ValueId id : program_.inputs) inputs_.push_back(bare(program_, id));
  for (ValueId id : program_.outputs) outputs_.push_back(bare(program_, id));
}

std::shared_ptr<const RegionCode> Region::code(Compile make) const {
  const std::lock_guard lock(code_mutex_);
  if (!std::exchange(compiled_, true)) code_ = make(*this);
  return code_;
}

std::vector<Tensor> Region::operator()(TensorList inputs) const {
  return program_machine().replay(program_, inputs);
}

Closure::Function Region::prepared() const {
  std::shared_ptr<const Runner> executor;
  {
    const std::lock_guard lock(mutex_);
    if (!executor_) executor_ = program_machine().executor(program_);
    executor = executor_;
  }
  return program_machine().prepared(executor);
}

template <class F>
ClosurePtr Region::derived(char kind, const std::vector<bool>& mask, F&& derive) const {
  const std::pair key(kind, mask);
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = derived_.find(key); it != derived_.end()) return it->second;
  }
  ClosurePtr made = derive();
  const std::lock_guard lock(mutex_);
  return derived_.emplace(key, std::move(made)).first->second;
}

ClosurePtr Region::vjp(const std::vector<bool>& wanted, TensorList cotangents) const {
  if (!cotangents.empty()) return program_machine().vjp(program_, wanted, cotangents);
  return derived('v', wanted, [&] { return program_machine().vjp(program_, wanted, {}); });
}

ClosurePtr Region::jvp(const std::vector<bool>& active) const {
  return derived('j', active, [&] { return program_machine().jvp(program_, active); });
}

ClosurePtr Region::resized(const std::function<Dim(Dim)>& size_of_dim) const {
  std::vector<int64_t> sizes;
  bool same = true;
  for (Dim symbol : program_.symbols) {
    sizes.push_back(size_of_dim(symbol).word());
    same &= sizes.back() == symbol.word();
  }
  if (same) return ClosurePtr(this);
  decltype(resized_) dropped;  // destroyed after the lock is free
  const std::lock_guard lock(mutex_);
  if (resized_.size() == kMostSizes) std::swap(dropped, resized_);
  ClosurePtr& other = resized_[sizes];
  if (!other) other = make_intrusive<const Region>(with_sizes(program_, size_of_dim));
  return other;
}

bool Region::draws_random() const { return oar::draws_random(program_); }

std::string Region::str() const {
  std::vector<std::string> given, made;
  for (ValueId id : program_.inputs) given.push_back(program_.type_of(id).str());
  for (ValueId id : program_.outputs) made.push_back(program_.type_of(id).str());
  return format("{}({}) -> ({})", program_.name, join(given, ", "), join(made, ", "));
}

bool draws_random(const Instruction& instruction) {
  // With an explicit position, numbers are not taken from the stream.
  const int given = has_regions(instruction) ? instruction.op->schema().index_of("random") : -1;
  if (given >= 0 && instruction.operands[static_cast<size_t>(given)].ids[0] != kNoValue)
    return false;
  bool found = instruction.op->has(Trait::Random);
  for_each_program(instruction.attributes.args(),
                   [&](const Closure& c) { found |= c.draws_random(); });
  return found;
}

bool draws_random(const Program& program) {
  const std::vector<Instruction>& list = program.body.instructions;
  return std::any_of(list.begin(), list.end(),
                     [](const Instruction& i) { return draws_random(i); });
}

bool exchanges(const Instruction& instruction) {
  bool found = instruction.op->has(Trait::Exchanges);
  for_each_program(instruction.attributes.args(), [&](const Closure& c) {
    for (const Instruction& inner : program_of(c).body.instructions) found |= exchanges(inner);
  });
  return found;
}

bool has_regions(const Instruction& instruction) {
  return takes_programs(instruction.op->schema());
}

bool replace_regions(Instruction& instruction,
                     const std::function<ClosurePtr(const Region&)>& changed) {
  bool any = false;
  for (size_t i = 0; i < instruction.attributes.size(); ++i) {
    const Value v = instruction.attributes[i];
    std::vector<ClosurePtr> list;
    for_each_program(Args(&v, 1), [&](const Closure& c) {
      ClosurePtr other = changed(region_of(c));
      any |= static_cast<bool>(other);
      list.push_back(other ? std::move(other) : ClosurePtr(&c));
    });
    if (v.tag == kProgramTag) instruction.attributes.set(i, program_value(list[0]));
    if (v.tag == kProgramsTag) instruction.attributes.set(i, program_value(ClosureList(list)));
  }
  return any;
}

}  // namespace oar
