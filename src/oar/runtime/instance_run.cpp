// Runs of an instance.
#include <algorithm>
#include <optional>
#include <utility>

#include "oar/base/interrupt.h"
#include "oar/base/parallel.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/profile.h"
#include "oar/ops/core/program_args.h"
#include "oar/ops/gen/copy.h"
#include "oar/runtime/working_set.h"
#include "oar/tensor/exposed.h"

namespace oar {

class Instance::Borrowed {
 public:
  explicit Borrowed(const Instance& instance) : instance_(instance) {
    const oar_stream* const stream = current_stream(instance.device());
    const std::lock_guard lock(instance.mutex_);
    std::vector<std::unique_ptr<WorkingSet>>& idle = instance.idle_;
    for (size_t i = idle.size(); i-- > 0;) {
      if (idle[i]->stream.handle() != stream) continue;
      set_ = std::move(idle[i]);
      idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
  ~Borrowed() {
    if (!set_) return;
    std::unique_ptr<WorkingSet> dropped;  // destroyed after the lock is free
    const std::lock_guard lock(instance_.mutex_);
    std::vector<std::unique_ptr<WorkingSet>>& idle = instance_.idle_;
    idle.push_back(std::move(set_));
    if (instance_.device().is_cpu() || idle.size() <= kMostIdle) return;
    dropped = std::move(idle.front());  // a set keeps its stream alive
    idle.erase(idle.begin());
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  WorkingSet& get() {
    if (!set_) set_ = instance_.make_working_set();
    return *set_;
  }

 private:
  static constexpr size_t kMostIdle = 8;

  const Instance& instance_;
  std::unique_ptr<WorkingSet> set_;
};

// Has no lasting tensor been written since this set's previous run, as far as versions show?
bool Instance::is_unchanged(WorkingSet& set) const {
  bool same = set.complete;
  set.seen.resize(lasting_.size());
  for (size_t i = 0; i < lasting_.size(); ++i) {
    const StoragePtr& storage = lasting_[i]->storage;
    auto& [before, version] = set.seen[i];
    same &= before == storage && version == storage->version() && !is_exposed(*storage);
    if (before != storage) before = storage;  // kept alive, so that no other gets its address
    version = storage->version();
  }
  return same;
}

// The memory of a root outside the arena.
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
  const std::string place = format(" ({})", launch.location);
  if (launch.location.empty() || error.text().ends_with(place)) throw;
  Error told(error.kind(), error.text() + place, error.hint());
  throw told.with_op(error.op());
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

// A region's results may be its inputs, but it keeps nothing.
void call_regions(const Launch& launch, const std::vector<Value>& values,
                  const std::vector<oar_tensor*>& outputs) try {
  const Outputs made = run_op(*launch.op, Args(values));
  for (size_t i = 0; i < made.size(); ++i)
    copy_into(Tensor::share(static_cast<TensorImpl*>(outputs[i])), made[i]);
} catch (const Error& error) {
  fail_at(launch, error);
}

// The op's function may keep its arguments, and the arena is reused: it gets copies.
void call_op(const Launch& launch, const std::vector<Value>& values,
             const std::vector<oar_tensor*>& outputs) try {
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
} catch (Error& error) {
  error.with_op(launch.called);
  throw;
}

}  // namespace

void Instance::run_into(TensorList inputs, TensorList outputs) const {
  const std::vector<Tensor> made = run({inputs.begin(), inputs.end()}, outputs);
  // An output that shares memory with an input or another output is copied. Not by an op: this is the
  // initial content of the memory, not a write.
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]->data == outputs[i]->data || made[i]->numel == 0) continue;
    const Tensor row_major = made[i].is_contiguous() ? made[i] : assign(made[i]);
    devices::copy(outputs[i].device(), outputs[i]->data, row_major.device(), row_major->data,
                  static_cast<size_t>(byte_count(row_major->numel, row_major.dtype())),
                  current_stream(lowered_.device));
  }
}

// If the output is all of its root, it is computed in its final memory.
StoragePtr Instance::memory_for(const Root& root, TensorList into) const {
  const auto k = static_cast<size_t>(root.index);
  if (!into.empty() && fills_root(lowered_, lowered_.outputs[k])) return into[k]->storage;
  return Storage::allocate(static_cast<size_t>(root.bytes), lowered_.device);
}

inline void Instance::launch(size_t index, WorkingSet& set) const {
  const Launch& launch = lowered_.launches[index];
  WorkingSet::Prepared& prepared = set.calls[index];
  if (!launch.kernel)
    return takes_programs(launch.op->schema())
               ? call_regions(launch, prepared.values, prepared.outputs)
               : call_op(launch, prepared.values, prepared.outputs);
  const OpScope scope(launch.called);
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

// What a run holds outside the arena: inputs until they are last read, results from when they are
// first written.
class Instance::Held {
 public:
  Held(const Instance& instance, WorkingSet& set, std::vector<Tensor> given, TensorList into)
      : instance_(instance),
        set_(set),
        given_(std::move(given)),
        into_(into),
        made_(instance.lowered_.roots.size()),
        begin_(instance.begins_.begin()),
        end_(instance.ends_.begin()) {
    for (Tensor& t : given_) t = instance.readable(t);
    for (size_t r = 0; r < made_.size(); ++r) {
      const Root& root = instance.lowered_.roots[r];
      const auto id = static_cast<int32_t>(r);
      if (root.kind == Root::Input)
        instance.bind(set, id, given_[static_cast<size_t>(root.index)]->data);
      if (root.kind == Root::State) instance.bind(set, id, state(root)->data);
    }
  }

  // Before, and after, all launches up to this one.
  void begin_until(size_t launch) {
    for (; begin_ != instance_.begins_.end() && std::cmp_less_equal(begin_->launch, launch);
         ++begin_) {
      const auto r = static_cast<size_t>(begin_->root);
      made_[r] = instance_.memory_for(instance_.lowered_.roots[r], into_);
      instance_.bind(set_, begin_->root, made_[r]->data());
    }
  }
  // The device keeps memory until the work that is queued on it is done.
  void end_until(size_t launch) {
    for (; end_ != instance_.ends_.end() && std::cmp_less_equal(end_->launch, launch); ++end_) {
      const Root& root = instance_.lowered_.roots[static_cast<size_t>(end_->root)];
      given_[static_cast<size_t>(root.index)] = Tensor();
    }
  }

  std::vector<Tensor> outputs() const {
    std::vector<Tensor> outputs;
    for (int32_t place : instance_.lowered_.outputs) {
      const Place& p = instance_.lowered_.places[static_cast<size_t>(place)];
      const Root& root = instance_.lowered_.roots[static_cast<size_t>(p.root)];
      const StoragePtr& storage = root.kind == Root::Input
                                      ? given_[static_cast<size_t>(root.index)]->storage
                                  : root.kind == Root::State ? state(root)->storage
                                                             : made_[static_cast<size_t>(p.root)];
      outputs.push_back(Tensor::view_of(storage, p.layout.dims(), p.layout.strides(),
                                        set_.tensors[static_cast<size_t>(place)]->data,
                                        p.layout.dtype()));
    }
    return outputs;
  }

 private:
  const Tensor& state(const Root& root) const {
    return instance_.program_.states[static_cast<size_t>(root.index)].tensor;
  }

  const Instance& instance_;
  WorkingSet& set_;
  std::vector<Tensor> given_;
  TensorList into_;
  std::vector<StoragePtr> made_;  // by root
  std::vector<Turn>::const_iterator begin_, end_;
};

namespace {

void profiled(const Launch& launch, Args args, const std::vector<oar_tensor*>& outputs,
              FunctionRef<void()> run) {
  const InLayer layer(launch.layer ? launch.layer : current_layer());
  ProfiledCall timed(*launch.op, args);
  {
    std::optional<ProfiledKernel> kernel;
    if (launch.kernel) kernel.emplace(*launch.op, *launch.kernel);
    run();
  }
  std::vector<Tensor> results;
  for (oar_tensor* t : outputs) results.push_back(Tensor::share(static_cast<TensorImpl*>(t)));
  timed.note_results(args, results);
}

}  // namespace

void Instance::run_launches(WorkingSet& set, Held& held) const {
  Patience patience;
  const auto one = [&](size_t index) {
    if (index < first_write_) patience.look();
    held.begin_until(index);
    launch(index, set);
    held.end_until(index);
  };
  if (profiling()) {
    for (size_t i = 0; i < set.calls.size(); ++i)
      profiled(lowered_.launches[i], Args(set.calls[i].values), set.calls[i].outputs,
               [&] { one(i); });
    return;
  }
  size_t next = 0;
  for (const Fork& fork : schedule_.forks()) {
    for (; next < static_cast<size_t>(fork.begin); ++next) one(next);
    next = static_cast<size_t>(fork.end);
    if (static_cast<size_t>(fork.begin) < first_write_) patience.look();
    held.begin_until(next - 1);
    run_lanes(fork, set);
    held.end_until(next - 1);
  }
  for (; next < set.calls.size(); ++next) one(next);
}

std::vector<Tensor> Instance::run(std::vector<Tensor> given, TensorList into) const {
  Borrowed borrowed(*this);
  WorkingSet& set = borrowed.get();
  Held held(*this, set, std::move(given), into);
  set.mark_unchanged(is_unchanged(set));
  set.complete = false;
  run_launches(set, held);
  held.begin_until(set.calls.size());
  set.complete = true;
  std::vector<Tensor> outputs = held.outputs();
  for (int32_t k : lowered_.written)
    program_.states[static_cast<size_t>(k)].tensor->storage->bump_version();
  return outputs;
}

}  // namespace oar
