#include "oar/runtime/instance.h"

#include <algorithm>

#include "oar/base/flags.h"
#include "oar/base/parallel.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/watch.h"
#include "oar/runtime/working_set.h"

namespace oar {

bool watches_ops() {
  static const FlagHandle<bool> check_nan("check_nan_inf");
  return check_nan.get() || watching() || tracing(Trace::Dispatch);
}

int64_t kernel_flags() {
  static const FlagHandle<bool> onednn("onednn"), deterministic("deterministic"),
      branches("parallel_branches"), fusion("fusion");
  const bool lanes = branches.get() && num_threads() > 1;
  return (onednn.get() ? 1 : 0) + (deterministic.get() ? 2 : 0) + (lanes ? 4 : 0) +
         (fusion.get() ? 8 : 0);
}

std::shared_ptr<const Instance> Instance::make(Program program) {
  std::optional<Lowered> lowered = lower(program);
  if (!lowered) return nullptr;
  // Constants may have been folded in this thread's stream; runs may be in others.
  if (!lowered->device.is_cpu() && !lowered->constants.empty())
    devices::synchronize(lowered->device);
  return std::shared_ptr<const Instance>(new Instance(std::move(program), std::move(*lowered)));
}

Instance::Instance(Program program, Lowered lowered)
    : program_(std::move(program)),
      lowered_(std::move(lowered)),
      // Another device has threads of its own.
      schedule_(Schedule::of(lowered_, lowered_.device.is_cpu() ? num_threads() : 1)) {
  share_buffers();
  plan();
}

namespace {

// A value that several lanes read lives until all of them have ended.
void extend_over_lanes(const Lowered& l, const Schedule& schedule, std::vector<Lifetime>& lives) {
  std::vector<int32_t> lane(l.roots.size());
  for (const Fork& fork : schedule.forks()) {
    std::fill(lane.begin(), lane.end(), -1);
    const auto touch = [&](int32_t place, int32_t launch) {
      const auto root = static_cast<size_t>(l.places[static_cast<size_t>(place)].root);
      const int32_t own = schedule.lane(launch);
      if (lane[root] >= 0 && lane[root] != own)
        lives[root].last = std::max(lives[root].last, fork.end);
      lane[root] = own;
    };
    for (int32_t i = fork.begin; i < fork.end; ++i)
      for (const Operand& operand : l.launches[static_cast<size_t>(i)].operands)
        for (int32_t place : operand.ids)
          if (place != kNoValue) touch(place, i);
  }
}

// By root: the launches that first write and last use it.
std::vector<Lifetime> lifetimes(const Lowered& l, const Schedule& schedule) {
  std::vector<Lifetime> lives(l.roots.size());
  const auto end = static_cast<int32_t>(l.launches.size());
  for (size_t r = 0; r < l.roots.size(); ++r) lives[r] = {l.roots[r].bytes, end, -1};
  const auto touch = [&](int32_t place, size_t launch) {
    Lifetime& life = lives[static_cast<size_t>(l.places[static_cast<size_t>(place)].root)];
    life.first = std::min(life.first, static_cast<int32_t>(launch));
    life.last = std::max(life.last, static_cast<int32_t>(launch));
  };
  for (size_t i = 0; i < l.launches.size(); ++i) {
    for (const Operand& operand : l.launches[i].operands)
      for (int32_t place : operand.ids)
        if (place != kNoValue) touch(place, i);
    for (int32_t place : l.launches[i].results) touch(place, i);
  }
  extend_over_lanes(l, schedule, lives);
  return lives;
}

}  // namespace

// An op that can work in place does, if its first operand is not used afterwards.
void Instance::share_buffers() {
  Lowered& l = lowered_;
  std::vector<Lifetime> lives = lifetimes(l, schedule_);
  const auto root_of = [&](int32_t place) { return l.places[static_cast<size_t>(place)].root; };
  for (size_t i = 0; i < l.launches.size(); ++i) {
    const Launch& launch = l.launches[i];
    if (!launch.op->has(Trait::HasInplace) || launch.results.size() != 1) continue;
    if (launch.operands.empty() || launch.operands[0].kind != Operand::One) continue;
    const int32_t from = launch.operands[0].ids[0], to = launch.results[0];
    if (from == kNoValue || root_of(from) == root_of(to)) continue;
    const auto a = static_cast<size_t>(root_of(from)), b = static_cast<size_t>(root_of(to));
    if (l.roots[a].kind != Root::Arena || l.roots[b].bytes != l.roots[a].bytes) continue;
    if (l.roots[b].kind != Root::Arena && l.roots[b].kind != Root::Output) continue;
    if (lives[a].last != static_cast<int32_t>(i) || !fills_root(l, from) || !fills_root(l, to))
      continue;
    const Place &x = l.places[static_cast<size_t>(from)], &y = l.places[static_cast<size_t>(to)];
    if (x.layout.dtype() != y.layout.dtype() || !(x.layout.shape() == y.layout.shape())) continue;
    // Another operand may be the same memory in another order.
    bool shown_again = false;
    for (size_t k = 1; k < launch.operands.size(); ++k)
      for (int32_t id : launch.operands[k].ids)
        shown_again |= id != kNoValue && id != from && root_of(id) == root_of(from);
    if (shown_again) continue;
    for (Place& p : l.places)
      if (p.root == static_cast<int32_t>(a)) p.root = static_cast<int32_t>(b);
    lives[b].first = lives[a].first;
  }
}

void Instance::plan() {
  const std::vector<Lifetime> lives = lifetimes(lowered_, schedule_);
  std::vector<Lifetime> buffers;
  std::vector<size_t> roots;
  for (size_t r = 0; r < lives.size(); ++r) {
    if (lowered_.roots[r].kind != Root::Arena || lives[r].last < 0) continue;
    buffers.push_back(lives[r]);
    roots.push_back(r);
  }
  for (size_t r = 0; r < lives.size(); ++r) {
    const Root& root = lowered_.roots[r];
    if (lives[r].last < 0) continue;
    if (root.kind == Root::Constant)
      lasting_.push_back(lowered_.constants[static_cast<size_t>(root.index)]);
    if (root.kind == Root::State && !writes_state(root.index))
      lasting_.push_back(program_.states[static_cast<size_t>(root.index)].tensor);
  }
  const int64_t alignment = devices::properties(lowered_.device).alignment;
  memory_ = plan_memory(
      buffers, [this](int32_t a, int32_t b) { return schedule_.at_once(a, b); }, alignment);
  arena_offsets_.assign(lives.size(), 0);
  for (size_t i = 0; i < roots.size(); ++i) arena_offsets_[roots[i]] = memory_.offsets[i];
  plan_turns(lives);
  find_first_write();
  places_of_root_.resize(lives.size());
  for (size_t i = 0; i < lowered_.places.size(); ++i) {
    const auto root = static_cast<size_t>(lowered_.places[i].root);
    if (lowered_.roots[root].kind != Root::Arena)
      places_of_root_[root].push_back(static_cast<int32_t>(i));
  }
}

void Instance::find_first_write() {
  const auto is_state = [&](int32_t place) {
    if (place == kNoValue) return false;
    const auto root = static_cast<size_t>(lowered_.places[static_cast<size_t>(place)].root);
    return lowered_.roots[root].kind == Root::State;
  };
  const auto writes = [&](const Launch& launch) {
    const std::vector<Parameter>& parameters = launch.op->schema().parameters;
    bool found = std::any_of(launch.results.begin(), launch.results.end(), is_state);
    for (size_t i = 0; i < launch.operands.size(); ++i)
      if (parameters[i].written)
        for (int32_t place : launch.operands[i].ids) found |= is_state(place);
    return found;
  };
  const std::vector<Launch>& all = lowered_.launches;
  first_write_ = static_cast<size_t>(std::find_if(all.begin(), all.end(), writes) - all.begin());
}

void Instance::plan_turns(const std::vector<Lifetime>& lives) {
  constexpr int64_t kLarge = 64 << 10;  // smaller ones do not matter
  std::vector<bool> handed_out(lives.size(), false);
  for (int32_t place : lowered_.outputs)
    handed_out[static_cast<size_t>(lowered_.places[static_cast<size_t>(place)].root)] = true;
  for (size_t r = 0; r < lives.size(); ++r) {
    const Root& root = lowered_.roots[r];
    const auto id = static_cast<int32_t>(r);
    const bool waits = root.bytes >= kLarge && lives[r].last >= 0;
    if (root.kind == Root::Output) begins_.push_back({waits ? lives[r].first : 0, id});
    if (root.kind == Root::Input && waits && !handed_out[r]) ends_.push_back({lives[r].last, id});
  }
  std::ranges::sort(begins_, {}, &Turn::launch);
  std::ranges::sort(ends_, {}, &Turn::launch);
}

std::unique_ptr<Instance::WorkingSet> Instance::make_working_set() const {
  auto set = std::make_unique<WorkingSet>(Stream::current(lowered_.device));
  set->arena =
      Storage::allocate(static_cast<size_t>(std::max<int64_t>(memory_.bytes, 1)), lowered_.device);
  auto* const arena = static_cast<char*>(set->arena->data());
  for (const Place& p : lowered_.places) {
    const auto root = static_cast<size_t>(p.root);
    const bool is_guest = p.layout.device() != lowered_.device;
    set->tensors.push_back(Tensor::view_of(
        is_guest ? p.layout->storage : set->arena, p.layout.dims(), p.layout.strides(),
        arena + arena_offsets_[root] + p.offset, p.layout.dtype()));
  }
  for (size_t r = 0; r < lowered_.roots.size(); ++r)
    if (lowered_.roots[r].kind == Root::Constant)
      bind(*set, static_cast<int32_t>(r),
           lowered_.constants[static_cast<size_t>(lowered_.roots[r].index)]->data);
  set->calls.resize(lowered_.launches.size());
  for (size_t i = 0; i < lowered_.launches.size(); ++i) {
    const Launch& launch = lowered_.launches[i];
    WorkingSet::Prepared& made = set->calls[i];
    const auto tensor = [&](int32_t id) {
      return id == kNoValue ? Tensor() : set->tensors[static_cast<size_t>(id)];
    };
    made.lists.reserve(launch.operands.size());
    const Args attributes = launch.attributes.args();
    made.values.assign(attributes.begin(), attributes.end());
    for (size_t k = 0; k < launch.operands.size(); ++k) {
      const Operand& operand = launch.operands[k];
      if (operand.kind == Operand::Attribute) continue;
      std::vector<Tensor>& list = made.lists.emplace_back();
      for (int32_t id : operand.ids) list.push_back(tensor(id));
      made.values[k] = operand.kind == Operand::List ? Value(TensorList(list)) : Value(list[0]);
    }
    for (int32_t id : launch.results) made.outputs.push_back(tensor(id).impl());
    made.call.inputs = made.values.data();
    made.call.input_count = static_cast<int32_t>(made.values.size());
    made.call.outputs = made.outputs.data();
    made.call.output_count = static_cast<int32_t>(made.outputs.size());
    made.call.api = &host_api();
    made.call.stream = set->stream.handle();
    made.call.device_index = lowered_.device.index;
    made.call.context = launch.kernel ? launch.kernel->context : nullptr;
    made.call.plan = launch.plan.get();
    for (size_t k = 0; k < launch.operands.size() && k < 64; ++k)
      if (launch.operands[k].kind == Operand::One && is_lasting(launch.operands[k].ids[0]))
        made.lasting |= uint64_t{1} << k;
  }
  size_t lanes = 0;
  for (const Fork& fork : schedule_.forks()) lanes = std::max(lanes, fork.lanes.size());
  set->failures.resize(lanes);
  return set;
}

bool Instance::is_for(TensorList inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].device() != program_.type_of(program_.inputs[i]).device) return false;
  return true;
}

bool Instance::is_lasting(int32_t place) const {
  if (place == kNoValue) return false;
  const Root& root =
      lowered_.roots[static_cast<size_t>(lowered_.places[static_cast<size_t>(place)].root)];
  return root.kind == Root::Constant || (root.kind == Root::State && !writes_state(root.index));
}

bool Instance::writes_state(int32_t index) const {
  return std::find(lowered_.written.begin(), lowered_.written.end(), index) !=
         lowered_.written.end();
}

}  // namespace oar
