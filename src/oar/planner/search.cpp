#include "oar/planner/search.h"

#include <algorithm>
#include <tuple>

#include "oar/base/error.h"
#include "oar/base/string_util.h"

namespace oar::planner {
namespace {

// Places the axes of plans, and remembers what it has placed.
class Placer {
 public:
  Placer(const Step& step, const Machine& machine, const std::map<ValueId, Layout>& fixed)
      : step_(step),
        machine_(machine),
        fixed_(fixed),
        colours_(step.calls.size() < kSmallStep
                     ? nullptr
                     : std::make_shared<const Colours>(colours_of(step, fixed))) {}

  std::shared_ptr<const PlacedStep> operator()(const PlanChoice& c) {
    std::vector<AxisPlan> axes;
    if (c.data > 1) axes.push_back(data_axis(c));
    if (c.tensor > 1) {
      Step divided = step_;
      if (c.data > 1) divide(divided, axes.back());
      axes.push_back(tensor_axis(c, divided));
    }
    return std::make_shared<const PlacedStep>(
        placed(step_, machine_, std::move(axes), c.micro_batches));
  }

 private:
  const AxisPlan& data_axis(const PlanChoice& c) {
    // Only what costs of parameters depends on how often they are gathered.
    const auto key = std::tuple(c.data, c.tensor, c.zero, c.zero < 0 && c.micro_batches > 1);
    const auto found = data_.find(key);
    if (found != data_.end()) return found->second;
    AxisRequest request;
    request.axis = {"data", {c.data, c.tensor}};
    request.batch = AxisRequest::Batch::Cut;
    request.colours = colours_;
    request.micro_batches = c.micro_batches;
    request.states = c.zero == 0   ? StateRule::Whole
                     : c.zero == 1 ? StateRule::Moments
                     : c.zero == 3 ? StateRule::Cut
                                   : StateRule::Any;
    request.price = 1e-18;  // where it costs no time, less memory is better
    return data_.emplace(key, place(step_, machine_, request)).first->second;
  }

  // Alike for all plans whose devices get as large a part of the batch at once.
  AxisPlan tensor_axis(const PlanChoice& c, const Step& divided) {
    const auto key = std::tuple(c.tensor, c.data * c.micro_batches);
    const auto found = tensor_.find(key);
    if (found != tensor_.end() && still_fits(found->second, divided)) return found->second;
    AxisRequest request;
    request.axis = {"tensor", {c.tensor, 1}};
    request.batch = AxisRequest::Batch::Whole;
    request.colours = colours_;
    request.micro_batches = c.micro_batches;
    request.price = 1e-18;
    request.fixed = fixed_;
    return tensor_.insert_or_assign(key, place(divided, machine_, request)).first->second;
  }

  static bool still_fits(const AxisPlan& plan, const Step& step) {
    const int64_t parts = plan.axis.group.size;
    for (size_t k = 0; k < step.calls.size(); ++k) {
      const Cut& cut = (*step.calls[k].cuts)[static_cast<size_t>(plan.cut[k])];
      if (cut.factor >= 0 && step.calls[k].factors[static_cast<size_t>(cut.factor)] % parts != 0)
        return false;
    }
    for (size_t v = 0; v < step.values.size(); ++v)
      if (const Layout axis = plan.made[v];
          axis >= 0 && step.values[v].shape[static_cast<size_t>(axis)] % parts != 0)
        return false;
    return true;
  }

  const Step& step_;
  const Machine& machine_;
  const std::map<ValueId, Layout>& fixed_;
  const std::shared_ptr<const Colours> colours_;
  std::map<std::tuple<int64_t, int64_t, int, bool>, AxisPlan> data_;
  std::map<std::tuple<int64_t, int64_t>, AxisPlan> tensor_;
};

void cut_plan(Plan& plan, const Machine& machine) {
  const PlanChoice& c = plan.choice;
  plan.run =
      pipeline_of(*plan.placed, machine,
                  {c.pipeline, c.interleave, c.micro_batches, c.recompute, {2, c.data * c.tensor}});
  plan.run.group = c.tensor;
}

// The simulation is of one replica, as all are alike.
void run_plan(Plan& plan, double memory) {
  const PlanChoice& c = plan.choice;
  plan.run.replicas = 1;
  plan.simulation = simulate(plan.run);
  plan.run.replicas = c.data;
  plan.simulation.devices = c.devices();
  plan.memory =
      *std::max_element(plan.simulation.peak_memory.begin(), plan.simulation.peak_memory.end());
  plan.fits = plan.memory <= memory;
}

// An error says what is wrong with a plan that was asked for.
void check_choice(const Step& step, const PlanChoice& c) {
  for (const int64_t size : {c.data, c.tensor, c.pipeline, c.interleave, c.micro_batches})
    user_check(size > 0, ErrorKind::InvalidArgument,
               "a plan has a size of {}.\nhint: All are above 0.", size);
  user_check(
      step.batch % (c.data * c.micro_batches) == 0, ErrorKind::InvalidArgument,
      "a batch of {} cannot be cut into {} replicas with {} micro-batches each.\nhint: Their "
      "product must divide the batch.",
      step.batch, c.data, c.micro_batches);
  user_check(
      c.interleave == 1 || c.micro_batches % c.pipeline == 0, ErrorKind::InvalidArgument,
      "{} micro-batches do not fill an interleaved pipeline of {} stages.\nhint: Use a multiple.",
      c.micro_batches, c.pipeline);
}

Plan evaluated(Placer& placer, const Machine& machine, const PlanChoice& choice, double memory) {
  Plan plan;
  plan.choice = choice;
  plan.placed = placer(choice);
  cut_plan(plan, machine);
  run_plan(plan, memory);
  return plan;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n && d <= 1 << 20; ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

class PlanSearch {
 public:
  PlanSearch(const Step& step, const Machine& machine, const SearchRequest& request)
      : step_(step),
        machine_(machine),
        request_(request),
        memory_(request.memory > 0 ? request.memory : machine.memory),
        placer_(step, machine, request.fixed) {}

  SearchResult run() {
    for (const ToldPlan& told : request_.told) {
      check_told(told);
      Plan plan = evaluated(placer_, machine_, told.choice, memory_);
      plan.name = told.name;
      result_.told.push_back(plan);
      offer(std::move(plan));
    }
    const std::vector<PlanChoice> all = candidates();
    for (size_t i = 0; i < all.size(); ++i) {
      try_plan(all[i]);
      if (request_.progress)
        request_.progress(static_cast<int64_t>(i) + 1, static_cast<int64_t>(all.size()));
    }
    user_check(
        !kept_.empty(), ErrorKind::InvalidArgument,
        "no plan uses {} devices for a batch of {}.\nhint: The number of replicas must divide the "
        "batch; try fewer devices or a larger batch.",
        request_.devices, step_.batch);
    std::sort(kept_.begin(), kept_.end(), better);
    result_.best = std::move(kept_.front());
    for (size_t i = 1; i < kept_.size() && result_.alternatives.size() < request_.alternatives; ++i)
      if (kept_[i].name.empty()) result_.alternatives.push_back(std::move(kept_[i]));
    return std::move(result_);
  }

 private:
  void check_told(const ToldPlan& told) const {
    user_check(
        told.choice.devices() == request_.devices, ErrorKind::InvalidArgument,
        "the plan \"{}\" uses {} devices ({} replicas x {} x {} stages), but plans for {} are "
        "searched.\nhint: Give it as many, or search plans for {}.",
        told.name, told.choice.devices(), told.choice.data, told.choice.tensor,
        told.choice.pipeline, request_.devices, told.choice.devices());
    check_choice(step_, told.choice);
  }

  static bool better(const Plan& a, const Plan& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.seconds() < b.seconds() : a.memory < b.memory;
  }

  // Sizes for data, tensor and pipeline: any product, or each axis of the mesh with one role.
  std::vector<PlanChoice> shapes() const {
    std::vector<PlanChoice> found;
    const auto add = [&](int64_t data, int64_t tensor, int64_t pipeline) {
      if (step_.batch % data != 0 || tensor > widest_group()) return;
      for (const PlanChoice& c : found)
        if (c.data == data && c.tensor == tensor && c.pipeline == pipeline) return;
      PlanChoice c;
      c.data = data;
      c.tensor = tensor;
      c.pipeline = pipeline;
      found.push_back(c);
    };
    if (request_.mesh.empty()) {
      for (int64_t tensor : divisors(request_.devices))
        for (int64_t data : divisors(request_.devices / tensor))
          add(data, tensor, request_.devices / tensor / data);
      return found;
    }
    size_t roles = 1;
    for (size_t k = 0; k < request_.mesh.size(); ++k) roles *= 3;
    for (size_t role = 0; role < roles; ++role) {
      int64_t sizes[3] = {1, 1, 1};
      size_t rest = role;
      for (const int64_t size : request_.mesh) {
        sizes[rest % 3] *= size;
        rest /= 3;
      }
      add(sizes[0], sizes[1], sizes[2]);
    }
    return found;
  }
  // Tensors are shared by devices of the innermost link, or by up to 16.
  int64_t widest_group() const {
    return std::max<int64_t>(
        16, machine_.links.front().devices <= 64 ? machine_.links.front().devices : 16);
  }

  std::vector<PlanChoice> candidates() const {
    std::vector<PlanChoice> all;
    for (PlanChoice c : shapes()) {
      const int64_t share = step_.batch / c.data;
      for (int64_t micro : divisors(share)) {
        if (!sensible(share, micro, c)) continue;
        for (int zero :
             {1, 3, -1}) {  // the first stage takes no more time than none, and less memory
          if (c.data == 1 && zero != -1) continue;
          for (const bool recompute : {false, true})
            for (int64_t interleave : {1, 2, 4, 6, 8, 12}) {
              if (interleave > 1 && (c.pipeline == 1 || micro % c.pipeline != 0)) continue;
              c.micro_batches = micro;
              c.zero = zero;
              c.recompute = recompute;
              c.interleave = interleave;
              all.push_back(c);
            }
        }
      }
    }
    return all;
  }
  // Sizes of micro-batches that are tried: powers of two, up to 8; without a pipeline also the whole share at once.
  static bool sensible(int64_t share, int64_t micro, const PlanChoice& c) {
    const int64_t size = share / micro;
    if (c.pipeline == 1 && micro == 1) return true;
    return (size & (size - 1)) == 0 && size <= 8 &&
           (c.pipeline == 1 || micro >= std::min<int64_t>(c.pipeline, share));
  }

  void try_plan(const PlanChoice& choice) {
    try {
      ++result_.tried;
      if (!was_placed(choice)) {
        current_.choice = choice;
        current_.placed = placer_(choice);
      }
      current_.choice = choice;
      cut_plan(current_, machine_);
      if (hopeless(current_.run)) return;
      run_plan(current_, memory_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::InvalidArgument) throw;
      return;  // these sizes cannot be cut so
    }
    const bool wanted = kept_.size() < most_kept() || better(current_, kept_.back());
    if (wanted) offer(current_);
  }
  bool was_placed(const PlanChoice& c) const {
    const PlanChoice& p = current_.choice;
    return current_.placed && c.data == p.data && c.tensor == p.tensor && c.zero == p.zero &&
           c.micro_batches == p.micro_batches;
  }
  // Without any waiting it would still be slower than all that are kept, or its states alone do not fit.
  bool hopeless(const PipelineRun& run) const {
    if (kept_.size() < most_kept() || !kept_.back().fits) return false;
    std::vector<double> work(run.stages.size(), 0);
    for (size_t k = 0; k < run.parts.size(); ++k)
      work[k % work.size()] +=
          (run.parts[k].forward + run.parts[k].backward) * static_cast<double>(run.micro_batches);
    for (size_t s = 0; s < work.size(); ++s)
      if (work[s] + run.stages[s].update > kept_.back().seconds() || run.stages[s].memory > memory_)
        return true;
    return false;
  }
  size_t most_kept() const { return 4 * (request_.alternatives + 1); }

  // Keeps the best plan of each shape.
  void offer(Plan plan) {
    const auto same = [&](const Plan& other) {
      const PlanChoice &a = plan.choice, &b = other.choice;
      return a.data == b.data && a.tensor == b.tensor && a.pipeline == b.pipeline &&
             a.interleave == b.interleave;
    };
    const auto found = std::find_if(kept_.begin(), kept_.end(), same);
    if (found == kept_.end())
      kept_.push_back(std::move(plan));
    else if (better(plan, *found))
      *found = std::move(plan);
    std::sort(kept_.begin(), kept_.end(), better);
    if (kept_.size() > most_kept()) kept_.pop_back();
  }

  const Step& step_;
  const Machine& machine_;
  const SearchRequest& request_;
  const double memory_;
  Placer placer_;
  Plan current_;
  std::vector<Plan> kept_;
  SearchResult result_;
};

}  // namespace

std::string PlanChoice::str() const {
  std::vector<std::string> words{format("data {}", data), format("tensor {}", tensor)};
  words.push_back(interleave == 1 ? format("pipeline {}", pipeline)
                                  : format("pipeline {} x {}", pipeline, interleave));
  words.push_back(format("{} micro-batch{}", micro_batches, micro_batches == 1 ? "" : "es"));
  if (zero >= 0) words.push_back(format("ZeRO {}", zero));
  if (recompute) words.emplace_back("recompute");
  return join(words, ", ");
}

double Plan::transfer_seconds() const {
  double sum = 0;
  for (const Transfer& t : placed->transfers) sum += t.seconds;
  return sum / static_cast<double>(choice.pipeline);
}

Plan evaluate(const Step& step, const Machine& machine, const PlanChoice& choice, double memory,
              const std::map<ValueId, Layout>& fixed) {
  check_choice(step, choice);
  Placer placer(step, machine, fixed);
  return evaluated(placer, machine, choice, memory > 0 ? memory : machine.memory);
}

SearchResult search(const Step& step, const Machine& machine, const SearchRequest& request) {
  user_check(request.devices > 0 && request.devices <= 1 << 20, ErrorKind::InvalidArgument,
             "a plan is wanted for {} devices.\nhint: Ask for 1 to 2^20.", request.devices);
  return PlanSearch(step, machine, request).run();
}

}  // namespace oar::planner
