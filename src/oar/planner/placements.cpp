#include "oar/planner/placements.h"

#include <algorithm>
#include <tuple>

#include "oar/base/error.h"
#include "oar/base/hash.h"
#include "oar/planner/choices.h"

namespace oar::planner {
namespace {

constexpr double kNever = 10 * kImpossible;  // the cost of what cannot be
// Placements are good enough if none is a thousandth better.
constexpr ChooseLimits kLimits{.table = 1 << 16, .branches = 60, .gap = 1e-3};

size_t index(ValueId id) { return static_cast<size_t>(id); }
size_t index(Phase phase) { return static_cast<size_t>(phase); }

bool can_cut(const StepValue& v, Layout axis, int64_t parts) {
  return v.shape[static_cast<size_t>(axis)] % parts == 0 && v.shape[static_cast<size_t>(axis)] > 0;
}

bool fits(const StepCall& call, const Cut& cut, int64_t parts) {
  return cut.factor < 0 || (call.factors[static_cast<size_t>(cut.factor)] % parts == 0 &&
                            call.factors[static_cast<size_t>(cut.factor)] > 0);
}

// The collective that takes a value from one layout to another, and the bytes that its time depends on.
struct Change {
  bool needed = false;
  Collective collective = Collective::AllReduce;
  double bytes = 0;
};

Change change_of(double bytes, int64_t parts, Layout from, Layout to) {
  if (from == to || from == kWhole || to == kPartial) return {};
  if (from == kPartial)
    return {true, to == kWhole ? Collective::AllReduce : Collective::ReduceScatter, bytes};
  if (to == kWhole) return {true, Collective::AllGather, bytes};
  return {true, Collective::AllToAll, bytes / static_cast<double>(parts)};
}

// Times of a step's parts on one axis.
class Times {
 public:
  Times(const Step& step, const Machine& machine, const MeshAxis& axis, int64_t micro_batches)
      : step_(step), machine_(machine), axis_(axis), micro_(micro_batches) {
    by_batch_.resize(step.values.size());
    for (size_t v = 0; v < step.values.size(); ++v)
      by_batch_[v] = step.values[v].origin == Origin::Input;
    for (const StepCall& call : step.calls) {
      const bool any = std::any_of(call.operands.begin(), call.operands.end(),
                                   [&](ValueId id) { return by_batch_[index(id)]; });
      for (ValueId id : call.results) by_batch_[index(id)] = any;
    }
  }

  double work(const StepCall& call, const Cut& cut) const {
    const int64_t runs = call.phase == Phase::Update ? 1 : micro_;
    const double parts = static_cast<double>(runs * (cut.factor < 0 ? 1 : axis_.group.size));
    const Cost part{call.cost.flops / parts, call.cost.bytes / parts, call.cost.products / parts};
    double time = static_cast<double>(runs) * machine_.time_of(part);
    for (size_t r : cut.joined)
      time += transfer(call.results[r], kPartial, kWhole, call.phase).seconds;
    return time;
  }

  Transfer transfer(ValueId id, Layout from, Layout to, Phase phase) const {
    const Change change = change_of(step_.values[index(id)].bytes, axis_.group.size, from, to);
    Transfer t{id, from, to, change.collective, 0, 1, 0, phase, -1, axis_.group};
    if (!change.needed) return t;
    t.runs = phase == Phase::Update ? 1 : micro_;
    t.bytes = change.bytes;
    if (by_batch_[index(id)] && phase != Phase::Update) t.bytes /= static_cast<double>(t.runs);
    t.seconds =
        static_cast<double>(t.runs) * machine_.time_of(change.collective, t.bytes, axis_.group);
    return t;
  }
  bool by_batch(ValueId id) const { return by_batch_[index(id)]; }
  double seconds(ValueId id, Layout from, Layout to, Phase phase) const {
    if (to != kWhole && to != kPartial && !can_cut(step_.values[index(id)], to, axis_.group.size))
      return kNever;
    const double hidden = phase == Phase::Update ? machine_.overlap : 0;
    return transfer(id, from, to, phase).seconds * (1 - hidden);
  }

 private:
  const Step& step_;
  const Machine& machine_;
  const MeshAxis& axis_;
  const int64_t micro_;
  std::vector<bool> by_batch_;  // by value: is its size in proportion to the batch?
};

// The search of one axis as a problem of choices. A variable stands for a call, a source, or what several calls of a phase read.
class AxisSearch {
 public:
  AxisSearch(const Step& step, const Machine& machine, const AxisRequest& request)
      : step_(step), request_(request), times_(step, machine, request.axis, request.micro_batches) {
    if (request.fold && request.colours) {
      colours_ = *request.colours;
    } else if (request.fold && step.calls.size() >= kSmallStep) {
      colours_ = colours_of(step, request.fixed);
    } else {
      for (size_t k = 0; k < step.calls.size(); ++k) colours_.calls.push_back(k);
      for (size_t v = 0; v < step.values.size(); ++v) colours_.values.push_back(v);
    }
  }

  AxisPlan run() {
    add_calls();
    add_sources();
    add_relays();
    add_links();
    link_all();
    return read_plan(choose(problem_, {}, kLimits));
  }

 private:
  int64_t parts() const { return request_.axis.group.size; }
  const StepValue& value(ValueId id) const { return step_.values[index(id)]; }

  int variable(char kind, uint64_t colour, const std::vector<double>& cost) {
    const auto [found, is_new] = variables_.try_emplace({kind, colour}, 0);
    if (is_new)
      found->second = problem_.add(cost);
    else
      problem_.charge(found->second, cost);
    return found->second;
  }

  void add_calls() {
    for (size_t k = 0; k < step_.calls.size(); ++k) {
      const StepCall& call = step_.calls[k];
      std::vector<double> cost;
      for (const Cut& cut : *call.cuts) cost.push_back(cost_of(call, cut));
      calls_.push_back(variable('c', colours_.calls[k], cost));
    }
  }

  double cost_of(const StepCall& call, const Cut& cut) const {
    if (!fits(call, cut, parts())) return kNever;
    if (request_.batch == AxisRequest::Batch::Whole && step_.cuts_batch(call, cut)) return kNever;
    double cost = times_.work(call, cut);
    for (size_t r = 0; r < call.results.size(); ++r) {
      const ValueId id = call.results[r];
      if (const auto fixed = request_.fixed.find(id);
          fixed != request_.fixed.end() && fixed->second != cut.results[r])
        cost += kNever;
      if (value(id).output && cut.results[r] == kPartial)
        cost += times_.seconds(id, kPartial, kWhole, call.phase);
    }
    return cost;
  }

  // Inputs and states: whole, or cut along an axis.
  void add_sources() {
    sources_.assign(step_.values.size(), -1);
    for (size_t v = 0; v < step_.values.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (value(id).origin != Origin::Input && value(id).origin != Origin::State) continue;
      std::vector<double> cost;
      for (Layout layout : layouts(id)) cost.push_back(source_cost(id, layout));
      sources_[v] = variable('s', colours_.values[v], cost);
    }
  }

  std::vector<Layout> layouts(ValueId id) const {
    std::vector<Layout> all{kWhole};
    for (size_t axis = 0; axis < value(id).shape.size(); ++axis)
      all.push_back(static_cast<Layout>(axis));
    return all;
  }

  double source_cost(ValueId id, Layout layout) const {
    const StepValue& v = value(id);
    if (layout != kWhole && !can_cut(v, layout, parts())) return kNever;
    if (const auto fixed = request_.fixed.find(id); fixed != request_.fixed.end())
      return fixed->second == layout ? price(v, layout) : kNever;
    if (v.origin == Origin::Input) return input_cost(v, layout);
    const auto state = static_cast<size_t>(v.state);
    const bool kept = request_.states == StateRule::Whole ||
                      (request_.states == StateRule::Moments && !step_.is_moment(state));
    if (kept && layout != kWhole) return kNever;
    if (request_.states == StateRule::Cut && layout == kWhole && can_be_cut(v)) return kNever;
    return price(v, layout);
  }
  bool can_be_cut(const StepValue& v) const {
    for (size_t axis = 0; axis < v.shape.size(); ++axis)
      if (can_cut(v, static_cast<Layout>(axis), parts())) return true;
    return false;
  }
  double input_cost(const StepValue& v, Layout layout) const {
    if (v.shape.empty()) return 0;
    if (request_.batch == AxisRequest::Batch::Cut && layout != 0 && can_cut(v, 0, parts()))
      return kNever;
    return request_.batch == AxisRequest::Batch::Whole && layout != kWhole ? kNever : 0;
  }
  double price(const StepValue& v, Layout layout) const {
    return request_.price * v.bytes / static_cast<double>(layout == kWhole ? 1 : parts());
  }

  // What several calls of a phase read is moved once for all of them.
  void add_relays() {
    for (auto& of : relays_) of.assign(step_.values.size(), -1);
    for (size_t v = 0; v < step_.values.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (value(id).origin == Origin::Constant) continue;
      std::array<int, 3> readers{};
      for (int r : value(id).readers) ++readers[index(step_.calls[static_cast<size_t>(r)].phase)];
      for (size_t phase = 0; phase < 3; ++phase) {
        if (readers[phase] < 2) continue;
        std::vector<double> cost;
        for (Layout layout : relay_layouts(id))
          cost.push_back(
              layout >= 0 && (!can_cut(value(id), layout, parts()) || is_batch(value(id), layout))
                  ? kNever
                  : 0);
        relays_[phase][v] = variable(static_cast<char>('0' + phase), colours_.values[v], cost);
      }
    }
  }
  bool is_batch(const StepValue& v, Layout layout) const {
    return request_.batch == AxisRequest::Batch::Whole && layout == v.batch_axis;
  }
  std::vector<Layout> relay_layouts(ValueId id) const {
    std::vector<Layout> all = layouts(id);
    all.push_back(kPartial);
    return all;
  }

  // How a value is made: its variable, and the layout by option.
  struct Made {
    int variable = -1;
    std::vector<Layout> layouts;
  };
  Made made(ValueId id) const {
    if (sources_[index(id)] >= 0) return {sources_[index(id)], layouts(id)};
    const auto maker = static_cast<size_t>(value(id).maker);
    const StepCall& call = step_.calls[maker];
    const auto result = static_cast<size_t>(
        std::find(call.results.begin(), call.results.end(), id) - call.results.begin());
    Made m{calls_[maker], {}};
    for (const Cut& cut : *call.cuts) m.layouts.push_back(cut.results[result]);
    return m;
  }

  // Links of alike values are one, with a count.
  void link(ValueId id, Made from, int to, std::vector<Layout> layouts, Phase phase) {
    const StepValue& v = value(id);
    const size_t alike = hash_all(hash_range(from.layouts), hash_range(layouts), v.bytes,
                                  hash_range(v.shape), times_.by_batch(id));
    const auto [found, is_new] =
        links_.try_emplace({from.variable, to, static_cast<int>(phase), alike});
    if (is_new) found->second = {id, std::move(from), std::move(layouts)};
    ++found->second.count;
  }

  void link_all() {
    for (const auto& [key, l] : links_) {
      // Few pairs of layouts, many pairs of options.
      std::map<std::pair<Layout, Layout>, double> known;
      const auto phase = static_cast<Phase>(std::get<2>(key));
      problem_.link(l.from.variable, std::get<1>(key), [&](int a, int b) {
        const std::pair pair{l.from.layouts[static_cast<size_t>(a)],
                             l.layouts[static_cast<size_t>(b)]};
        const auto [found, is_new] = known.try_emplace(pair, 0);
        if (is_new)
          found->second = l.count * times_.seconds(l.value, pair.first, pair.second, phase);
        return found->second;
      });
    }
  }

  void add_links() {
    for (size_t v = 0; v < step_.values.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (value(id).origin == Origin::Constant) continue;
      const Made origin = made(id);
      for (size_t phase = 0; phase < 3; ++phase)
        if (relays_[phase][v] >= 0)
          link(id, origin, relays_[phase][v], relay_layouts(id), static_cast<Phase>(phase));
      if (value(id).written_to >= 0) {
        const ValueId state =
            step_.program->states[static_cast<size_t>(value(id).written_to)].value;
        link(id, origin, sources_[index(state)], layouts(state), Phase::Update);
      }
    }
    for (size_t k = 0; k < step_.calls.size(); ++k) {
      const StepCall& call = step_.calls[k];
      for (size_t p = 0; p < call.operands.size(); ++p) {
        const ValueId id = call.operands[p];
        if (value(id).origin == Origin::Constant) continue;
        std::vector<Layout> wanted;
        for (const Cut& cut : *call.cuts) wanted.push_back(cut.operands[p]);
        const int relay = relays_[index(call.phase)][index(id)];
        link(id, relay >= 0 ? Made{relay, relay_layouts(id)} : made(id), calls_[k], wanted,
             call.phase);
      }
    }
  }

  AxisPlan read_plan(const Chosen& chosen) const {
    user_check(chosen.cost < kNever, ErrorKind::InvalidArgument,
               "nothing can be cut as asked along the axis {} of {} devices.\nhint: Fewer devices, "
               "other placements, or a batch that they divide.",
               request_.axis.name, parts());
    const auto option = [&](int variable) {
      return static_cast<size_t>(chosen.options[static_cast<size_t>(variable)]);
    };
    AxisPlan plan{request_.axis, {}, {}, {}, chosen.cost, chosen.bound, problem_.size()};
    for (int variable : calls_) plan.cut.push_back(static_cast<int>(option(variable)));
    plan.made.assign(step_.values.size(), kWhole);
    for (auto& of : plan.read) of.assign(step_.values.size(), kWhole);
    for (size_t v = 0; v < step_.values.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (value(id).origin == Origin::Constant) continue;
      const Made m = made(id);
      plan.made[v] = m.layouts[option(m.variable)];
      for (size_t phase = 0; phase < 3; ++phase)
        plan.read[phase][v] =
            relays_[phase][v] < 0 ? plan.made[v] : relay_layouts(id)[option(relays_[phase][v])];
    }
    return plan;
  }

  const Step& step_;
  const AxisRequest& request_;
  const Times times_;
  Colours colours_;
  Choices problem_;
  std::map<std::pair<char, uint64_t>, int> variables_;
  struct Alike {
    ValueId value = kNoValue;
    Made from;
    std::vector<Layout> layouts;
    double count = 0;
  };
  std::map<std::tuple<int, int, int, size_t>, Alike> links_;
  std::vector<int> calls_, sources_;
  std::array<std::vector<int>, 3> relays_;
};

const Cut& cut_of(const Step& step, const AxisPlan& plan, size_t call) {
  return (*step.calls[call].cuts)[static_cast<size_t>(plan.cut[call])];
}

}  // namespace

Colours colours_of(const Step& step, const std::map<ValueId, Layout>& fixed) {
  constexpr int kRounds = 6;
  Colours c;
  for (const StepCall& call : step.calls)
    c.calls.push_back(
        hash_all(call.signature, static_cast<int>(call.phase), hash_range(call.factors)));
  for (size_t v = 0; v < step.values.size(); ++v) {
    const StepValue& value = step.values[v];
    const auto found = fixed.find(static_cast<ValueId>(v));
    c.values.push_back(hash_all(static_cast<int>(value.origin), hash_range(value.shape),
                                value.bytes, value.output,
                                found == fixed.end() ? 100 : static_cast<int>(found->second)));
  }
  for (int round = 0; round < kRounds; ++round) {
    Colours next = c;
    for (size_t v = 0; v < step.values.size(); ++v) {
      const StepValue& value = step.values[v];
      std::vector<uint64_t> readers;
      for (int r : value.readers) readers.push_back(c.calls[static_cast<size_t>(r)]);
      std::sort(readers.begin(), readers.end());
      hash_combine(next.values[v], hash_range(readers));
      if (value.maker >= 0) {
        const StepCall& maker = step.calls[static_cast<size_t>(value.maker)];
        const auto at =
            std::find(maker.results.begin(), maker.results.end(), static_cast<ValueId>(v));
        hash_combine(next.values[v], c.calls[static_cast<size_t>(value.maker)]);
        hash_combine(next.values[v], at - maker.results.begin());
      }
      if (value.written_to >= 0) {
        const auto state = index(step.program->states[static_cast<size_t>(value.written_to)].value);
        hash_combine(next.values[v], c.values[state]);
        hash_combine(next.values[state], c.values[v]);
      }
    }
    for (size_t k = 0; k < step.calls.size(); ++k) {
      for (ValueId id : step.calls[k].operands) hash_combine(next.calls[k], c.values[index(id)]);
      for (ValueId id : step.calls[k].results) hash_combine(next.calls[k], c.values[index(id)]);
    }
    c = std::move(next);
  }
  return c;
}

AxisPlan place(const Step& step, const Machine& machine, const AxisRequest& request) {
  return AxisSearch(step, machine, request).run();
}

double work_time(const Step& step, const Machine& machine, const AxisPlan& plan, size_t call,
                 int64_t micro_batches) {
  const Cost& cost = step.calls[call].cost;
  const int64_t runs = step.calls[call].phase == Phase::Update ? 1 : micro_batches;
  const double parts =
      static_cast<double>(runs * (cut_of(step, plan, call).factor < 0 ? 1 : plan.axis.group.size));
  return static_cast<double>(runs) *
         machine.time_of(Cost{cost.flops / parts, cost.bytes / parts, cost.products / parts});
}

std::vector<Transfer> transfers_of(const Step& step, const Machine& machine, const AxisPlan& plan,
                                   int64_t micro_batches) {
  const Times times(step, machine, plan.axis, micro_batches);
  std::vector<Transfer> all;
  const auto add = [&](ValueId id, Layout from, Layout to, Phase phase, int call) {
    Transfer t = times.transfer(id, from, to, phase);
    t.call = call;
    if (t.seconds > 0) all.push_back(t);
  };
  for (size_t v = 0; v < step.values.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    const StepValue& value = step.values[v];
    for (size_t phase = 0; phase < 3; ++phase)
      for (int r : value.readers)  // the first reader has it moved for all
        if (step.calls[static_cast<size_t>(r)].phase == static_cast<Phase>(phase)) {
          add(id, plan.made[v], plan.read[phase][v], static_cast<Phase>(phase), r);
          break;
        }
    if (value.written_to >= 0) {
      const ValueId state = step.program->states[static_cast<size_t>(value.written_to)].value;
      add(id, plan.made[v], plan.made[index(state)], Phase::Update, -1);
    }
    if (value.output && value.maker >= 0 && plan.made[v] == kPartial)
      add(id, kPartial, kWhole, step.calls[static_cast<size_t>(value.maker)].phase, value.maker);
  }
  for (size_t k = 0; k < step.calls.size(); ++k) {
    const StepCall& call = step.calls[k];
    const Cut& cut = cut_of(step, plan, k);
    for (size_t p = 0; p < call.operands.size(); ++p)
      add(call.operands[p], plan.read[index(call.phase)][index(call.operands[p])], cut.operands[p],
          call.phase, static_cast<int>(k));
    for (size_t r : cut.joined)
      add(call.results[r], kPartial, kWhole, call.phase, static_cast<int>(k));
  }
  return all;
}

void divide(Step& step, const AxisPlan& plan) {
  const int64_t parts = plan.axis.group.size;
  for (size_t k = 0; k < step.calls.size(); ++k) {
    const Cut& cut = cut_of(step, plan, k);
    if (cut.factor < 0) continue;
    StepCall& call = step.calls[k];
    const auto n = static_cast<double>(parts);
    call.cost = {call.cost.flops / n, call.cost.bytes / n, call.cost.products / n};
    call.factors[static_cast<size_t>(cut.factor)] /= parts;
  }
  for (size_t v = 0; v < step.values.size(); ++v) {
    const Layout layout = plan.made[v];
    if (layout < 0) continue;
    StepValue& value = step.values[v];
    value.shape[static_cast<size_t>(layout)] /= parts;
    value.bytes /= static_cast<double>(parts);
  }
}

}  // namespace oar::planner
