#include "oar/planner/simulate.h"

#include <algorithm>
#include <deque>

#include "oar/base/error.h"

namespace oar::planner {
namespace {

constexpr double kUnknown = -1;

class Simulator {
 public:
  explicit Simulator(const PipelineRun& run)
      : run_(run),
        stages_(static_cast<int64_t>(run.stages.size())),
        interleave_(static_cast<int64_t>(run.parts.size()) / std::max<int64_t>(stages_, 1)) {
    check();
    result_.devices = stages_ * run_.replicas * run_.group;
    result_.busy.assign(run.stages.size(), 0);
    for (int64_t s = 0; s < stages_; ++s)
      passes_.push_back(passes_of(s, stages_, interleave_, run_.micro_batches));
  }

  Simulation run() {
    std::vector<double> ready(run_.stages.size(), 0), last_backward(run_.stages.size(), 0);
    double waited = 0, passes_end = 0, busy_sum = 0;
    for (int64_t replica = 0; replica < run_.replicas; ++replica) {
      pipeline(replica);
      for (size_t s = 0; s < run_.stages.size(); ++s) {
        ready[s] = std::max(ready[s], workers_[s].free);
        last_backward[s] = workers_[s].last_backward;
        passes_end = std::max(passes_end, workers_[s].free);
        busy_sum += workers_[s].busy;
        if (replica == 0) result_.busy[s] = workers_[s].busy;
      }
    }
    waited = passes_end * static_cast<double>(stages_ * run_.replicas) - busy_sum;
    result_.bubble =
        passes_end > 0 ? waited / (passes_end * static_cast<double>(stages_ * run_.replicas)) : 0;
    finish(ready, last_backward);
    count_memory();
    return std::move(result_);
  }

 private:
  struct Worker {
    size_t next = 0;  // of its passes
    double free = 0, sends_forward = 0, sends_back = 0, busy = 0, last_backward = 0;
    double slow = 1;
  };

  void check() const {
    user_check(stages_ > 0 && interleave_ > 0 &&
                   interleave_ * stages_ == static_cast<int64_t>(run_.parts.size()),
               ErrorKind::InvalidArgument,
               "{} parts of a pipeline cannot be dealt out to {} stages.", run_.parts.size(),
               stages_);
    user_check(
        run_.micro_batches > 0 && run_.replicas > 0 && run_.group > 0, ErrorKind::InvalidArgument,
        "a run has {} micro-batches, {} replicas and groups of {} devices; each must be above 0.",
        run_.micro_batches, run_.replicas, run_.group);
    user_check(interleave_ == 1 || run_.micro_batches % stages_ == 0, ErrorKind::InvalidArgument,
               "{} micro-batches do not fill an interleaved pipeline of {} stages.\nhint: Use a "
               "multiple of {}.",
               run_.micro_batches, stages_, stages_);
  }

  int64_t parts() const { return stages_ * interleave_; }
  size_t slot(int64_t part, int64_t micro) const {
    return static_cast<size_t>(part * run_.micro_batches + micro);
  }

  double slowness(int64_t stage, int64_t replica) const {
    double slow = 1;
    const int64_t first = (stage * run_.replicas + replica) * run_.group;
    for (auto it = run_.slow.lower_bound(first);
         it != run_.slow.end() && it->first < first + run_.group; ++it)
      slow = std::max(slow, it->second);
    return slow;
  }

  // All passes of one replica.
  void pipeline(int64_t replica) {
    const auto slots = static_cast<size_t>(parts() * run_.micro_batches);
    forward_arrives_.assign(slots, kUnknown);
    backward_arrives_.assign(slots, kUnknown);
    workers_.assign(run_.stages.size(), {});
    for (int64_t m = 0; m < run_.micro_batches; ++m) forward_arrives_[slot(0, m)] = 0;
    std::deque<int64_t> awake;
    for (int64_t s = 0; s < stages_; ++s) {
      Worker& w = workers_[static_cast<size_t>(s)];
      w.slow = slowness(s, replica);
      const double gather = run_.stages[static_cast<size_t>(s)].gather;
      if (gather > 0) note(replica, {Span::Gather, s, s, 0, 0, gather});
      w.free = gather;
      awake.push_back(s);
    }
    while (!awake.empty()) {
      const int64_t s = awake.front();
      awake.pop_front();
      while (step(s, replica, awake)) ++result_.events;
    }
    for (int64_t s = 0; s < stages_; ++s)
      internal_check(
          workers_[static_cast<size_t>(s)].next == passes_[static_cast<size_t>(s)].size(),
          "stage {} of a pipeline waits for ever", s);
  }

  // Runs the next pass of a worker if what it needs has arrived, or is on its way.
  bool step(int64_t s, int64_t replica, std::deque<int64_t>& awake) {
    Worker& w = workers_[static_cast<size_t>(s)];
    const std::vector<Pass>& passes = passes_[static_cast<size_t>(s)];
    if (w.next == passes.size()) return false;
    const Pass pass = passes[w.next];
    const int64_t part = pass.part * stages_ + s;
    const size_t at = slot(part, pass.micro_batch);
    const double arrives = (pass.backward ? backward_arrives_ : forward_arrives_)[at];
    if (arrives == kUnknown) return false;
    const PipelinePart& p = run_.parts[static_cast<size_t>(part)];
    const double time = (pass.backward ? p.backward : p.forward) * w.slow;
    const double start = std::max(w.free, arrives);
    w.free = start + time;
    w.busy += time;
    if (pass.backward) w.last_backward = time;
    ++w.next;
    note(replica, {pass.backward ? Span::Backward : Span::Forward, s, part, pass.micro_batch, start,
                   w.free});
    if (!pass.backward && part + 1 == parts()) backward_arrives_[at] = w.free;
    if (!pass.backward && part + 1 < parts())
      send(w.sends_forward, w.free, p.send, forward_arrives_[slot(part + 1, pass.micro_batch)],
           (part + 1) % stages_, awake);
    if (pass.backward && part > 0)
      send(w.sends_back, w.free, run_.parts[static_cast<size_t>(part - 1)].send,
           backward_arrives_[slot(part - 1, pass.micro_batch)], (part - 1) % stages_, awake);
    return true;
  }

  static void send(double& link, double ready, double seconds, double& arrives, int64_t to,
                   std::deque<int64_t>& awake) {
    link = std::max(link, ready) + seconds;
    arrives = link;
    awake.push_back(to);
  }

  // Gradients are summed when the slowest replica has them.
  void finish(const std::vector<double>& ready, const std::vector<double>& last_backward) {
    for (size_t s = 0; s < run_.stages.size(); ++s) {
      const PipelineStage& stage = run_.stages[s];
      const double hidden = std::min(stage.hidden * stage.reduce, last_backward[s]);
      const auto at = static_cast<int64_t>(s);
      const double reduced = ready[s] + stage.reduce - hidden;
      if (stage.reduce > 0) note(0, {Span::Reduce, at, at, 0, ready[s] - hidden, reduced});
      if (stage.update > 0) note(0, {Span::Update, at, at, 0, reduced, reduced + stage.update});
      result_.seconds = std::max(result_.seconds, reduced + stage.update);
    }
  }

  void note(int64_t replica, const Span& span) {
    if (replica == 0) result_.spans.push_back(span);
  }

  void count_memory() {
    result_.memory.resize(run_.stages.size());
    for (size_t s = 0; s < run_.stages.size(); ++s) {
      double bytes = run_.stages[s].memory, peak = bytes;
      auto& line = result_.memory[s];
      line.emplace_back(0, bytes);
      for (const Span& span : result_.spans) {
        if (span.stage != static_cast<int64_t>(s)) continue;
        const double held = run_.parts[static_cast<size_t>(span.part)].activations;
        if (span.kind == Span::Forward) line.emplace_back(span.start, bytes += held);
        peak = std::max(peak, bytes);
        if (span.kind == Span::Backward) line.emplace_back(span.end, bytes -= held);
      }
      result_.peak_memory.push_back(peak);
    }
  }

  const PipelineRun& run_;
  const int64_t stages_, interleave_;
  std::vector<std::vector<Pass>> passes_;
  std::vector<Worker> workers_;
  std::vector<double> forward_arrives_, backward_arrives_;
  Simulation result_;
};

}  // namespace

std::vector<Pass> passes_of(int64_t stage, int64_t stages, int64_t interleave,
                            int64_t micro_batches) {
  const int64_t all = micro_batches * interleave, round = stages * interleave;
  const auto pass = [&](int64_t k, bool backward) {
    if (interleave == 1) return Pass{backward, 0, k};
    const int64_t part = k % round / stages;
    return Pass{backward, backward ? interleave - 1 - part : part, k / round * stages + k % stages};
  };
  const int64_t ahead =
      interleave == 1 ? stages - 1 - stage : (stages - 1 - stage) * 2 + (interleave - 1) * stages;
  const int64_t warm = std::min(all, ahead);
  std::vector<Pass> passes;
  for (int64_t k = 0; k < warm; ++k) passes.push_back(pass(k, false));
  for (int64_t k = warm; k < all; ++k) {
    passes.push_back(pass(k, false));
    passes.push_back(pass(k - warm, true));
  }
  for (int64_t k = all - warm; k < all; ++k) passes.push_back(pass(k, true));
  return passes;
}

Simulation simulate(const PipelineRun& run) { return Simulator(run).run(); }

}  // namespace oar::planner
