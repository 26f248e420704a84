#include "oar/runtime/segments.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "oar/base/scope_guard.h"
#include "oar/device/generator.h"
#include "oar/ops/dispatcher.h"
#include "oar/runtime/instance.h"
#include "oar/tensor/exposed.h"

namespace oar {
namespace {

// What waits holds memory that eager mode would have let go of.
constexpr size_t kMostCalls = 4096;
constexpr size_t kMostBytes = size_t{256} << 20;

std::atomic<SourceLines> g_lines{nullptr};
std::atomic<uint64_t> g_calls{0}, g_segments{0}, g_programs{0};
thread_local SegmentQueue* t_queue = nullptr;
thread_local SourceLine t_line;

SourceLine current_line() {
  if (const SourceLines lines = g_lines.load(std::memory_order_relaxed))
    if (const SourceLine line = lines(); line.file) t_line = line;
  return t_line;
}

void note_read_of(const Tensor& t) {
  if (t_queue && t_launch_queue == t_queue && t.defined()) t_queue->settle_for(t);
}

bool writes(const Op& op) {
  const std::vector<Parameter>& parameters = op.schema().parameters;
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& p) { return p.written; });
}

Error located(const Error& error, SourceLine line) {
  if (!line.file) return error;
  Error told(error.kind(), format("{} ({}:{})", error.text(), line.file, line.line), error.hint());
  told.with_op(error.op());
  return told;
}

}  // namespace

void set_source_lines(SourceLines lines) { g_lines = lines; }

SegmentCounts segment_counts() { return {g_calls, g_segments, g_programs}; }

// ---- what waits --------------------------------------------------------------------------------

bool SegmentQueue::may_wait(const Op& op, Args args, const Outputs& outputs) const {
  if (watches_ops() || op.has(Trait::DataDependent)) return false;
  bool plain = true;
  for (const Tensor& t : outputs) plain &= t.is_dense() && t.device().is_cpu();
  for_each_tensor(args, [&](const Tensor& t) {
    plain = plain && t.is_dense() && t.device().is_cpu() &&
            (segment_.knows(t->storage.get()) || !is_exposed(*t->storage));
  });
  if (!plain || !writes(op)) return plain;
  // A write to what the segment itself makes is a new value. Any other happens now, on memory.
  return op.inplace_of() && segment_.is_whole(args[0].as_tensor());
}

bool SegmentQueue::take(const Op& op, const oar_kernel& kernel, Args args,
                        const Outputs& outputs) {
  if (!lost_.empty()) for_each_tensor(args, [&](const Tensor& t) { check_lost(t); });
  if (segment_.calls.size() >= kMostCalls || segment_.bytes >= kMostBytes)
    settle("enough calls wait");
  if (!may_wait(op, args, outputs)) {
    settle_for_call(op, args);
    return false;
  }
  segment_.add(op, kernel, args, outputs, current_line());
  g_calls.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// A call is made now: behind those whose results it reads, that read what it writes, or that draw
// random numbers before it.
void SegmentQueue::settle_for_call(const Op& op, Args args) {
  const bool writing = writes(op);
  bool behind = segment_.random && op.has(Trait::Random);
  for_each_tensor(args, [&](const Tensor& t) {
    const Storage* storage = t->storage.get();
    behind |= writing ? segment_.knows(storage) : segment_.memory_of(storage) >= 0;
  });
  if (behind) settle(op.name().c_str());
}

void SegmentQueue::settle_for(const Tensor& t) {
  if (!t.is_dense()) return;
  if (!lost_.empty()) check_lost(t);
  if (segment_.memory_of(t->storage.get()) >= 0) settle("a value is asked for");
}

// ---- running -----------------------------------------------------------------------------------

void SegmentQueue::settle(const char* why) {
  if (segment_.calls.empty()) return;
  Segment segment = std::exchange(segment_, Segment());
  LaunchQueue* const outer = std::exchange(t_launch_queue, nullptr);
  const ScopeGuard back([&] { t_launch_queue = outer; });
  const LayersOff off(kDispatchMask);
  run(segment, why);
}

void SegmentQueue::run(Segment& segment, const char* why) {
  segment.close();
  const std::shared_ptr<const SegmentProgram> program = SegmentProgram::find(segment);
  if (!title.empty()) tell(segment, why, program != nullptr);
  g_segments.fetch_add(1, std::memory_order_relaxed);
  if (!program) return make_one_by_one(segment);
  const RandomState before = generator::state();
  try {
    program->run(segment);
    g_programs.fetch_add(1, std::memory_order_relaxed);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted) {
      lose(segment, 0, std::current_exception());
      throw;
    }
    // One by one: what stands before the call that fails is made, and that call is named.
    if (segment.random) generator::set_state(before);
    make_one_by_one(segment);
  }
}

void SegmentQueue::make_one_by_one(const Segment& segment) {
  for (size_t i = 0; i < segment.calls.size(); ++i) {
    const SegmentCall& call = segment.calls[i];
    try {
      launch(*call.op, *call.kernel, call.args.args(), call.outputs);
    } catch (const Error& error) {
      const Error told = located(error, call.line);
      lose(segment, i, std::make_exception_ptr(told));
      throw told;
    }
  }
}

// The calls from there on have not been made.
void SegmentQueue::lose(const Segment& segment, size_t from, std::exception_ptr error) {
  for (size_t i = from; i < segment.calls.size(); ++i)
    for (const Tensor& t : segment.calls[i].outputs) lost_.push_back({t->storage, error});
}

void SegmentQueue::check_lost(const Tensor& t) const {
  for (const Lost& lost : lost_)
    if (t->storage == lost.storage) std::rethrow_exception(lost.error);
}

void SegmentQueue::check_lost() const {
  for (const Lost& lost : lost_) {
    const auto ours = static_cast<uint32_t>(
        std::count_if(lost_.begin(), lost_.end(),
                      [&](const Lost& other) { return other.storage == lost.storage; }));
    if (lost.storage->reference_count() > ours) std::rethrow_exception(lost.error);
  }
}

void SegmentQueue::tell(const Segment& segment, const char* why, bool program) const {
  const SourceLine line = current_line();
  std::fprintf(stderr, "[capture] %s: a segment of %zu calls %s: %s (%s:%d)\n", title.c_str(),
               segment.calls.size(), program ? "as a program" : "one by one", why,
               line.file ? line.file : "?", line.line);
}

// ---- scopes ------------------------------------------------------------------------------------

SegmentScope::SegmentScope(std::string title) {
  if (t_queue) return;
  queue_ = std::make_unique<SegmentQueue>();
  queue_->title = std::move(title);
  t_queue = queue_.get();
  t_launch_queue = t_queue;
  outer_hook_ = std::exchange(t_read_hook, note_read_of);
}

void SegmentScope::leave() {
  t_launch_queue = nullptr;
  t_queue = nullptr;
  t_read_hook = outer_hook_;
}

void SegmentScope::finish(bool returned) {
  if (!queue_) return;
  const std::unique_ptr<SegmentQueue> queue = std::move(queue_);
  const ScopeGuard out([&] { leave(); });
  queue->settle();
  if (returned) queue->check_lost();
}

SegmentScope::~SegmentScope() {
  try {
    finish(false);
  } catch (const Error&) {
  }
}

}  // namespace oar
