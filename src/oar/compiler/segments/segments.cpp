#include "oar/compiler/segments/segments.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>

#include "oar/base/fork_mutex.h"
#include "oar/base/interrupt.h"
#include "oar/base/scope_guard.h"
#include "oar/device/generator.h"
#include "oar/ops/core/profile.h"
#include "oar/ops/core/run.h"
#include "oar/runtime/instance.h"
#include "oar/tensor/exposed.h"
#include "oar/tensor/hooks.h"

namespace oar {
namespace {

// Queued calls hold memory that eager mode would have freed.
constexpr size_t kMostCalls = 1024;
constexpr size_t kMostBytes = size_t{256} << 20;

std::atomic<uint64_t> g_calls{0}, g_segments{0}, g_programs{0};
thread_local SegmentQueue* t_queue = nullptr;
thread_local SourceLine t_line;
thread_local std::shared_ptr<SegmentQueue> t_idle;  // reused between scopes, with its capacity

SourceLine current_line() {
  if (const auto current = host_language().current_line)
    if (const SourceLine line = current(); line.file) t_line = line;
  return t_line;
}

bool writes(const Op& op) {
  const std::vector<Parameter>& parameters = op.schema().parameters;
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& p) { return p.written; });
}

LateError told_of(const Error& error, const SegmentCall& call) {
  std::string text = error.text();
  if (call.line.file) text += format(" ({}:{})", call.line.file, call.line.line);
  LateError told(error.kind(), std::move(text), error.hint());
  told.with_op(call.called);
  return told;
}

// ---- all queues --------------------------------------------------------------------------------

class Queues {
 public:
  void add(const std::shared_ptr<SegmentQueue>& queue) {
    const std::lock_guard lock(mutex_);
    list_.push_back(queue);
    forget_over();
    note_count();
  }
  void remove(const std::shared_ptr<SegmentQueue>& queue) {
    const std::lock_guard lock(mutex_);
    std::erase_if(list_, [&](const auto& other) {
      if (other == queue) over_.push_back(queue);
      return other == queue;
    });
    forget_over();
    note_count();
  }
  // In a forked child: the other threads do not exist, and their queues will never run.
  void forget_others() {
    const std::lock_guard lock(mutex_);
    std::erase_if(list_, [this](const auto& queue) {
      if (queue.get() == t_queue) return false;
      abandoned_.push_back(queue);  // its thread may have been in the middle of a change
      return true;
    });
    note_count();
  }
  // Those of other threads.
  std::vector<std::shared_ptr<SegmentQueue>> others() {
    std::vector<std::shared_ptr<SegmentQueue>> found;
    if (count_.load(std::memory_order_relaxed) == (t_queue ? 1 : 0)) return found;
    const std::lock_guard lock(mutex_);
    for (const auto* queues : {&list_, &over_})
      for (const auto& queue : *queues)
        if (queue.get() != t_queue) found.push_back(queue);
    return found;
  }

 private:
  // Of queues whose scope has ended only those are kept that have lost results which are still held.
  void forget_over() {
    std::erase_if(over_, [](const auto& queue) { return !queue->forget_lost(); });
  }
  void note_count();

  ForkMutex mutex_;
  std::vector<std::shared_ptr<SegmentQueue>> list_, over_, abandoned_;
  std::atomic<size_t> count_{0};
};

Queues& queues() {
  static auto* const all = [] {
    add_fork_step({[] {}, [] {}, [] { queues().forget_others(); }});
    return new Queues();  // threads may end after main
  }();
  return *all;
}

void note_read_of(const Tensor& t) {
  if (!t.defined() || !t.is_dense()) return;
  if (t_queue && t_launch_queue == t_queue) t_queue->settle_for(t, false, "a value is read");
  if (t_queue && in_interrupt_check()) t_queue->check_running(t, false);
  for (const auto& queue : queues().others()) queue->settle_for(t, false, "another thread reads");
}

void wait_for_others(const Op& op, Args args) {
  const auto others = queues().others();
  SegmentQueue* const interrupted = in_interrupt_check() ? t_queue : nullptr;
  if (others.empty() && !interrupted) return;
  for (size_t i = 0; i < args.size(); ++i)
    for_each_tensor(args.subspan(i, 1), [&](const Tensor& t) {
      if (!t.is_dense()) return;
      const bool written = op.schema().parameters[i].written;
      if (interrupted) interrupted->check_running(t, written);
      for (const auto& queue : others) queue->settle_for(t, written, "another thread's call");
    });
}

void settle_here() {
  if (t_launch_queue) t_launch_queue->settle();
}

constexpr QueueHooks kHooks = {.before_read = note_read_of,
                               .before_launch = wait_for_others,
                               .before_lend = settle_here,
                               .before_wait = settle_here};

void Queues::note_count() {
  count_ = list_.size() + over_.size();
  g_queue_hooks = count_ == 0 ? nullptr : &kHooks;
}

}  // namespace

SegmentCounts segment_counts() { return {g_calls, g_segments, g_programs}; }

// A thread that runs a segment may be interrupted, which needs the interpreter lock: threads that wait release it.
class SegmentQueue::Busy {
 public:
  explicit Busy(Mutex& mutex) : mutex_(mutex) {
    if (!mutex.try_lock()) block_on([&] { mutex.lock(); });
  }
  ~Busy() { mutex_.unlock(); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Mutex& mutex_;
};

// ---- the queue ---------------------------------------------------------------------------------

bool SegmentQueue::may_wait(const Op& op, Args args, const Outputs& outputs) const {
  if (watches_ops() || profiling() || op.has(Trait::DataDependent)) return false;
  bool plain = true;
  for (const Value& v : args) plain &= v.tag <= OAR_TAG_DTYPE;  // no functions
  for (const Tensor& t : outputs) plain &= t.is_dense();
  for_each_tensor(args, [&](const Tensor& t) {
    plain = plain && t.is_dense() && (segment_.knows(t->storage.get()) || !is_exposed(*t->storage));
  });
  if (!plain || !writes(op)) return plain;
  // A write to all of a tensor is a new value. Other writes happen now, on memory; so do updates, which
  // gain nothing from the queue.
  if (!op.stores() && !op.inplace_of()) return false;
  const Tensor& x = args[0].as_tensor();
  if (op.stores()) {
    const Tensor& value = args[static_cast<size_t>(op.copied())].as_tensor();
    return x.is_contiguous() && value.dtype() == x.dtype() && value.shape() == x.shape() &&
           value.device() == x.device() && !overlaps_partially(x, value);
  }
  bool apart = x.is_contiguous();
  for_each_tensor(args, [&](const Tensor& t) { apart &= !overlaps_partially(x, t); });
  return apart;
}

// Does the call fit in with those that wait already?
bool SegmentQueue::fits(const Op& op, Args args, Device device) const {
  bool fits = segment_.is_on(device);
  fits &= !writes(op) || segment_.can_write(args[0].as_tensor());
  for_each_tensor(args, [&](const Tensor& t) { fits &= segment_.can_read(t); });
  return fits;
}

bool SegmentQueue::take(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
                        Device device) {
  wait_for_others(op, args);  // without a lock of our own: they may wait for us
  const Busy busy(busy_);
  if (!lost_.empty()) for_each_tensor(args, [&](const Tensor& t) { check_lost(t); });
  if (segment_.calls.size() >= kMostCalls || segment_.bytes >= kMostBytes)
    settle("the queue is full");
  if (!may_wait(op, args, outputs)) {
    settle_for_call(op, args);
    return false;
  }
  if (!fits(op, args, device)) settle(op.name().c_str());
  if (!fits(op, args, device)) return false;
  const std::lock_guard names(names_);
  segment_.add(op, kernel, args, outputs, device, current_line());
  g_calls.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// A call runs now: after those whose results it reads, that read what it writes, or that draw
// random numbers before it.
void SegmentQueue::settle_for_call(const Op& op, Args args) {
  const bool writing = writes(op);
  bool must_wait = segment_.random && op.has(Trait::Random);
  for_each_tensor(args, [&](const Tensor& t) {
    const Storage* storage = t->storage.get();
    must_wait |= writing ? segment_.knows(storage) : segment_.makes(storage);
  });
  if (must_wait) settle(op.name().c_str());
}

void SegmentQueue::settle_for(const Tensor& t, bool written, const char* why) {
  const Storage* storage = t->storage.get();
  const auto waits_in = [&](const Segment& segment) {
    return written ? segment.knows(storage) : segment.makes(storage);
  };
  {
    const std::lock_guard names(names_);
    if (lost_.empty() && !waits_in(segment_) && !waits_in(running_)) return;
  }
  const Busy busy(busy_);  // what is running has ended
  check_lost(t);
  if (waits_in(segment_)) settle(why);
}

// ---- running -----------------------------------------------------------------------------------

void SegmentQueue::settle(const char* why) {
  std::optional<InterruptsOff>
      undisturbed;  // its own thread is interrupted, not the threads that wait for it
  if (t_queue != this) undisturbed.emplace();
  const Busy busy(busy_);
  if (segment_.calls.empty()) return;
  {
    const std::lock_guard names(names_);
    std::swap(segment_, running_);
  }
  LaunchQueue* const outer = std::exchange(t_launch_queue, nullptr);
  const ScopeGuard back([&] {
    t_launch_queue = outer;
    const std::lock_guard names(names_);
    running_.clear();
  });
  const LayersOff off(kDispatchMask);
  std::optional<StreamScope> stream;  // that the calls were made in
  if (running_.stream) stream.emplace(*running_.stream);
  run(running_, why);
}

void SegmentQueue::run(Segment& segment, const char* why) {
  segment.close();
  const std::shared_ptr<const SegmentProgram> program = SegmentProgram::find(segment);
  if (!title.empty()) tell(segment, why, program != nullptr);
  g_segments.fetch_add(1, std::memory_order_relaxed);
  if (!program) return make_one_by_one(segment);
  const generator::Places before;
  try {
    program->run(segment);
    g_programs.fetch_add(1, std::memory_order_relaxed);
  } catch (const Error& error) {
    if (segment.random) before.restore();
    if (error.kind() == ErrorKind::Interrupted) {
      lose_interrupted(segment, 0);
      throw;
    }
    // One by one: the calls before the one that fails are run, and the error names that call.
    make_one_by_one(segment);
  }
}

void SegmentQueue::make_one_by_one(const Segment& segment) {
  Patience patience;
  for (size_t i = 0; i < segment.calls.size(); ++i) {
    const SegmentCall& call = segment.calls[i];
    try {
      patience.look();
      launch(*call.op, *call.kernel, call.args.args(), call.outputs, segment.device);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Interrupted) {
        lose_interrupted(segment, i);
        throw;
      }
      const LateError told = told_of(error, call);
      lose(segment, i, segment.calls.size(), std::make_exception_ptr(told));
      throw told;
    }
  }
}

void SegmentQueue::check_running(const Tensor& t, bool written) {
  const Storage* storage = t->storage.get();
  const std::lock_guard names(names_);
  user_check(!(written ? running_.knows(storage) : running_.makes(storage)), ErrorKind::Runtime,
             "a signal handler uses a tensor whose content is being computed.\nhint: Set a flag in "
             "the handler, and use the tensor where the program checks the flag.");
}

// These calls have not run.
void SegmentQueue::lose(const Segment& segment, size_t from, size_t end,
                        const std::exception_ptr& error) {
  for (size_t i = from; i < end; ++i)
    for (const Tensor& t : segment.calls[i].outputs) {
      if (segment.was_there(t)) continue;  // and has its old content
      const std::lock_guard names(names_);
      lost_.push_back({t->storage, error});
    }
}

void SegmentQueue::lose_interrupted(const Segment& segment, size_t from) {
  for (size_t i = from; i < segment.calls.size(); ++i) {
    const Error error(ErrorKind::Runtime,
                      "this result has not been computed: the program was interrupted before.",
                      "Call the function that computes it again.");
    const LateError told = told_of(error, segment.calls[i]);
    lose(segment, i, i + 1, std::make_exception_ptr(told));
  }
}

void SegmentQueue::check_lost(const Tensor& t) const {
  for (const Lost& lost : lost_)
    if (t->storage == lost.storage) std::rethrow_exception(lost.error);
}

bool SegmentQueue::is_held_elsewhere(const StoragePtr& storage) const {
  const auto ours = static_cast<uint32_t>(std::count_if(
      lost_.begin(), lost_.end(), [&](const Lost& other) { return other.storage == storage; }));
  return storage->reference_count() > ours;
}

void SegmentQueue::check_lost() const {
  for (const Lost& lost : lost_)
    if (is_held_elsewhere(lost.storage)) std::rethrow_exception(lost.error);
}

bool SegmentQueue::forget_lost() {
  const std::lock_guard names(names_);
  std::vector<Lost> held;
  for (const Lost& lost : lost_)
    if (is_held_elsewhere(lost.storage)) held.push_back(lost);
  lost_.swap(held);
  return !lost_.empty();
}

void SegmentQueue::tell(const Segment& segment, const char* why, bool program) const {
  const SourceLine line = current_line();
  std::fprintf(stderr, "[capture] %s: a segment of %zu calls %s: %s (%s:%d)\n", title.c_str(),
               segment.calls.size(), program ? "as a program" : "one by one", why,
               line.file ? line.file : "?", line.line);
}

// ---- scopes ------------------------------------------------------------------------------------

SegmentScope::SegmentScope(std::string title) {
  if (t_queue || (t_layers.on & kCapture)) return;
  queue_ = t_idle ? std::move(t_idle) : std::make_shared<SegmentQueue>();
  queue_->title = std::move(title);
  t_queue = queue_.get();
  t_launch_queue = t_scope_queue = t_queue;
  queues().add(queue_);
}

void SegmentScope::finish(bool returned) {
  if (!queue_) return;
  std::shared_ptr<SegmentQueue> queue = std::move(queue_);
  const ScopeGuard out([&] {
    queues().remove(queue);
    t_launch_queue = t_scope_queue = t_queue = nullptr;
    if (queue.use_count() > 1) return;  // another thread uses it, or it has lost something
    t_idle = std::move(queue);
  });
  queue->settle();
  if (returned) queue->check_lost();
}

SegmentScope::~SegmentScope() {
  try {
    finish(false);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the function's own error is thrown
  }
}

}  // namespace oar
