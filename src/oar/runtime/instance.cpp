#include "oar/runtime/instance.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "oar/base/flags.h"
#include "oar/base/parallel.h"
#include "oar/base/scope_guard.h"
#include "oar/compiler/passes/pass.h"
#include "oar/device/launch.h"
#include "oar/ops/dispatcher.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/profile.h"
#include "oar/ops/program_args.h"
#include "oar/tensor/exposed.h"

namespace oar {

bool watches_ops() {
  static const FlagHandle<bool> check_nan("check_nan_inf");
  return check_nan.get() || tracing(Trace::Dispatch);
}

int64_t kernel_flags() {
  static const FlagHandle<bool> onednn("onednn"), deterministic("deterministic"),
      branches("parallel_branches");
  const bool lanes = branches.get() && num_threads() > 1;
  return (onednn.get() ? 1 : 0) + (deterministic.get() ? 2 : 0) + (lanes ? 4 : 0);
}

// What one run at a time uses: tensors on an arena, and the calls on them.
struct Instance::WorkingSet {
  StoragePtr arena;
  std::vector<Tensor> tensors;  // by place
  struct Prepared {
    std::vector<Value> values;
    std::vector<std::vector<Tensor>> lists;
    std::vector<oar_tensor*> outputs;
    KernelCall call{};
    uint64_t lasting = 0;  // inputs, by bit, that no run writes
    LaunchMemory memory;
  };
  std::vector<Prepared> calls;  // by launch

  // Tells kernels which of the lasting inputs hold what they held in this set's run before.
  void mark_unchanged(bool same) {
    if (same == marked) return;
    for (Prepared& p : calls) p.memory.unchanged = same ? p.lasting : 0;
    marked = same;
  }
  // By lane of the fork under way: the launch that failed, and how.
  struct Failure {
    int32_t launch = -1;
    std::exception_ptr error;
  };
  std::vector<Failure> failures;
  std::vector<std::pair<StoragePtr, uint32_t>>
      seen;               // states that no run writes, and their versions
  bool complete = false;  // the run before reached its end
  bool marked = false;
};

class Instance::Borrowed {
 public:
  explicit Borrowed(const Instance& instance) : instance_(instance) {
    const std::lock_guard lock(instance.mutex_);
    if (instance.idle_.empty()) return;
    set_ = std::move(instance.idle_.back());
    instance.idle_.pop_back();
  }
  ~Borrowed() {
    if (!set_) return;
    const std::lock_guard lock(instance_.mutex_);
    instance_.idle_.push_back(std::move(set_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  WorkingSet& get() {
    if (!set_) set_ = instance_.make_working_set();
    return *set_;
  }

 private:
  const Instance& instance_;
  std::unique_ptr<WorkingSet> set_;
};

std::shared_ptr<const Instance> Instance::make(Program program) {
  // Ops that have to be taken apart are captured; whatever else is on around the run is not for them.
  const uint32_t outer =
      std::exchange(t_layers.off, kDispatchMask & ~uint32_t{kFunctionalise | kCapture});
  const ScopeGuard back([outer] { t_layers.off = outer; });
  tune(program);  // with known sizes there is more to fold
  std::optional<Lowered> lowered = lower(program);
  if (!lowered) return nullptr;
  return std::shared_ptr<const Instance>(new Instance(std::move(program), std::move(*lowered)));
}

Instance::Instance(Program program, Lowered lowered)
    : program_(std::move(program)),
      lowered_(std::move(lowered)),
      schedule_(Schedule::of(lowered_, num_threads())) {
  share_buffers();
  plan();
}

namespace {

// What several lanes read lives until all of them have ended.
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

// By root: the launches that first write and last touch it.
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

bool fills_root(const Lowered& l, int32_t id) {
  const Place& p = l.places[static_cast<size_t>(id)];
  return p.offset == 0 && p.layout.is_contiguous() &&
         l.roots[static_cast<size_t>(p.root)].bytes ==
             p.layout->numel * static_cast<int64_t>(size_of(p.layout.dtype()));
}

}  // namespace

// An op that can work in place does, where its first operand ends with it.
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
    // Another operand may show the same memory in another order.
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
  memory_ = plan_memory(buffers, [this](int32_t a, int32_t b) { return schedule_.at_once(a, b); });
  arena_offsets_.assign(lives.size(), 0);
  for (size_t i = 0; i < roots.size(); ++i) arena_offsets_[roots[i]] = memory_.offsets[i];
  plan_turns(lives);
  places_of_root_.resize(lives.size());
  for (size_t i = 0; i < lowered_.places.size(); ++i) {
    const auto root = static_cast<size_t>(lowered_.places[i].root);
    if (lowered_.roots[root].kind != Root::Arena)
      places_of_root_[root].push_back(static_cast<int32_t>(i));
  }
}

void Instance::plan_turns(const std::vector<Lifetime>& lives) {
  constexpr int64_t kLarge = 64 << 10;  // for less it is not worth a look
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
  auto set = std::make_unique<WorkingSet>();
  set->arena =
      Storage::allocate(static_cast<size_t>(std::max<int64_t>(memory_.bytes, 1)), Device{});
  auto* const arena = static_cast<char*>(set->arena->data());
  for (const Place& p : lowered_.places) {
    const auto root = static_cast<size_t>(p.root);
    set->tensors.push_back(Tensor::view_of(set->arena, p.layout.dims(), p.layout.strides(),
                                           arena + arena_offsets_[root] + p.offset,
                                           p.layout.dtype()));
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
    made.call.host = &made.memory;
    for (size_t k = 0; k < launch.operands.size() && k < 64; ++k)
      if (launch.operands[k].kind == Operand::One && is_lasting(launch.operands[k].ids[0]))
        made.lasting |= uint64_t{1} << k;
  }
  size_t lanes = 0;
  for (const Fork& fork : schedule_.forks()) lanes = std::max(lanes, fork.lanes.size());
  set->failures.resize(lanes);
  return set;
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

// Has nothing that lasts been written since this set's run before, as far as anybody can tell?
bool Instance::is_unchanged(WorkingSet& set) const {
  bool same = set.complete;
  set.seen.resize(lasting_.size());
  for (size_t i = 0; i < lasting_.size(); ++i) {
    const StoragePtr& storage = lasting_[i]->storage;
    auto& [before, version] = set.seen[i];
    same &= before == storage && version == storage->version() && !is_exposed(*storage);
    if (before != storage) before = storage;  // kept, so that no other takes its address
    version = storage->version();
  }
  return same;
}

// The memory behind a root that is not the arena's.
void Instance::bind(WorkingSet& set, int32_t root, void* data) const {
  for (int32_t place : places_of_root_[static_cast<size_t>(root)])
    set.tensors[static_cast<size_t>(place)]->data =
        static_cast<char*>(data) + lowered_.places[static_cast<size_t>(place)].offset;
}

// Contiguous, and not in memory that the run writes.
Tensor Instance::readable(const Tensor& input) const {
  if (!input.is_contiguous()) return assign(input);
  for (int32_t k : lowered_.written)
    if (program_.states[static_cast<size_t>(k)].tensor->storage == input->storage)
      return assign(input);
  return input;
}

namespace {

// Inside a handler of the error.
[[noreturn]] void fail_at(const Launch& launch, const Error& error) {
  if (launch.location.empty()) throw;
  throw Error(error.kind(), format("{} ({})", error.text(), launch.location), error.hint());
}

[[noreturn]] void fail_launch(const Launch& launch, int32_t status) {
  try {
    check_status(status, {});
  } catch (const Error& error) {
    fail_at(launch, error);
  }
  internal_check(false, "{} failed without a reason", launch.op->name());
  std::abort();
}

// A region's results may be what it was given, but it keeps nothing.
void call_regions(const Launch& launch, const std::vector<Value>& values,
                  const std::vector<oar_tensor*>& outputs) try {
  const Outputs made = run_op(*launch.op, Args(values));
  for (size_t i = 0; i < made.size(); ++i)
    copy_into(Tensor::share(static_cast<TensorImpl*>(outputs[i])), made[i]);
} catch (const Error& error) {
  fail_at(launch, error);
}

// The op's function may keep what it is given, and the arena is used again: it gets copies.
void call_op(const Launch& launch, const std::vector<Value>& values,
             const std::vector<oar_tensor*>& outputs) {
  if (takes_programs(launch.op->schema())) return call_regions(launch, values, outputs);
  Frame frame{Args(values)};
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_tensor()) frame.set_tensor(i, assign(values[i].as_tensor()));
    if (!values[i].is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : values[i].as_tensors())
      list.push_back(t.defined() ? assign(t) : Tensor());
    frame.set_tensors(i, std::move(list));
  }
  const Outputs made = run_op(*launch.op, frame.args());
  for (size_t i = 0; i < made.size(); ++i)
    copy_into(Tensor::share(static_cast<TensorImpl*>(outputs[i])), made[i]);
}

}  // namespace

void Instance::run_into(TensorList inputs, TensorList outputs) const {
  const std::vector<Tensor> made = run({inputs.begin(), inputs.end()}, outputs);
  // What the output shares with an input or another output is copied. Not by an op: to those who know
  // the memory this is its first content, no write.
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]->data == outputs[i]->data || made[i]->numel == 0) continue;
    const Tensor row_major = made[i].is_contiguous() ? made[i] : assign(made[i]);
    std::memcpy(outputs[i]->data, row_major->data,
                static_cast<size_t>(row_major->numel) * size_of(row_major.dtype()));
  }
}

// Where the output is all of its root, it is made where it is wanted.
StoragePtr Instance::memory_for(const Root& root, TensorList into) const {
  const auto k = static_cast<size_t>(root.index);
  if (!into.empty() && fills_root(lowered_, lowered_.outputs[k])) return into[k]->storage;
  return Storage::allocate(static_cast<size_t>(root.bytes), Device{});
}

inline void Instance::launch(size_t index, WorkingSet& set) const {
  const Launch& launch = lowered_.launches[index];
  WorkingSet::Prepared& prepared = set.calls[index];
  if (!launch.kernel) return call_op(launch, prepared.values, prepared.outputs);
  const OpScope scope(launch.op->name().c_str());
  if (const int32_t status = launch.kernel->run(&prepared.call); status != OAR_OK)
    fail_launch(launch, status);
}

// Every lane ends or fails, so the error is that of the first launch in the program that has one.
void Instance::run_lanes(const Fork& fork, WorkingSet& set) const {
  parallel_chunks(static_cast<int64_t>(fork.lanes.size()), [&](int64_t lane) {
    int32_t at = -1;
    try {
      for (int32_t index : fork.lanes[static_cast<size_t>(lane)]) {
        at = index;
        launch(static_cast<size_t>(index), set);
      }
    } catch (...) {
      set.failures[static_cast<size_t>(lane)] = {at, std::current_exception()};
    }
  });
  WorkingSet::Failure first;
  for (size_t lane = 0; lane < fork.lanes.size(); ++lane) {
    WorkingSet::Failure& f = set.failures[lane];
    if (f.error && (!first.error || f.launch < first.launch)) std::swap(first, f);
    f.error = nullptr;
  }
  if (first.error) std::rethrow_exception(first.error);
}

void Instance::run_launches(WorkingSet& set, AtLaunch before, AtLaunch behind) const {
  const bool profiled = profiling();
  const auto run_until = [&](size_t& next, size_t end) {
    for (; next < end; ++next) {
      before(next);
      std::optional<ProfiledCall> timed;
      if (profiled) timed.emplace(*lowered_.launches[next].op, Args(set.calls[next].values));
      launch(next, set);
      timed.reset();
      behind(next);
    }
  };
  size_t next = 0;
  if (!profiled)
    for (const Fork& fork : schedule_.forks()) {
      run_until(next, static_cast<size_t>(fork.begin));
      next = static_cast<size_t>(fork.end);
      before(next - 1);
      run_lanes(fork, set);
      behind(next - 1);
    }
  run_until(next, set.calls.size());
}

std::vector<Tensor> Instance::run(std::vector<Tensor> given, TensorList into) const {
  for (Tensor& t : given) t = readable(t);
  Borrowed borrowed(*this);
  WorkingSet& set = borrowed.get();
  std::vector<StoragePtr> made(lowered_.roots.size());
  for (size_t r = 0; r < lowered_.roots.size(); ++r) {
    const Root& root = lowered_.roots[r];
    const auto id = static_cast<int32_t>(r);
    switch (root.kind) {
      case Root::Input:
        bind(set, id, given[static_cast<size_t>(root.index)]->data);
        break;
      case Root::State:
        bind(set, id, program_.states[static_cast<size_t>(root.index)].tensor->data);
        break;
      case Root::Output:
      case Root::Arena:
      case Root::Constant:
        break;
    }
  }
  auto begin = begins_.begin();
  const auto begin_until = [&](size_t launch) {
    for (; begin != begins_.end() && std::cmp_less_equal(begin->launch, launch); ++begin) {
      const auto r = static_cast<size_t>(begin->root);
      made[r] = memory_for(lowered_.roots[r], into);
      bind(set, begin->root, made[r]->data());
    }
  };
  auto end = ends_.begin();
  const auto end_until = [&](size_t launch) {
    for (; end != ends_.end() && std::cmp_less_equal(end->launch, launch); ++end)
      given[static_cast<size_t>(lowered_.roots[static_cast<size_t>(end->root)].index)] = Tensor();
  };
  set.mark_unchanged(is_unchanged(set));
  set.complete = false;
  run_launches(set, begin_until, end_until);
  begin_until(set.calls.size());
  set.complete = true;
  std::vector<Tensor> outputs;
  for (int32_t place : lowered_.outputs) {
    const Place& p = lowered_.places[static_cast<size_t>(place)];
    const Root& root = lowered_.roots[static_cast<size_t>(p.root)];
    const StoragePtr& storage =
        root.kind == Root::Input ? given[static_cast<size_t>(root.index)]->storage
        : root.kind == Root::State
            ? program_.states[static_cast<size_t>(root.index)].tensor->storage
            : made[static_cast<size_t>(p.root)];
    outputs.push_back(Tensor::view_of(storage, p.layout.dims(), p.layout.strides(),
                                      set.tensors[static_cast<size_t>(place)]->data,
                                      p.layout.dtype()));
  }
  for (int32_t k : lowered_.written)
    program_.states[static_cast<size_t>(k)].tensor->storage->bump_version();
  return outputs;
}

}  // namespace oar
