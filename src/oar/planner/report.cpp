#include "oar/planner/report.h"

#include <algorithm>
#include <map>

#include "oar/base/string_util.h"
#include "oar/formats/json_reader.h"

namespace oar::planner {
namespace {

// Digits become a star.
std::string pattern_of(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit)
      pattern += c;
    else if (pattern.empty() || pattern.back() != '*')
      pattern += '*';
  }
  return pattern;
}

double sent_bytes(const Transfer& t) {
  const auto n = static_cast<double>(t.group.size);
  const double once = (n - 1) / n * t.bytes * static_cast<double>(t.runs);
  return t.collective == Collective::AllReduce ? 2 * once : once;
}

const std::string& axis_name(const Plan& plan, const Group& group) {
  for (const AxisPlan& axis : plan.placed->axes)
    if (axis.axis.group.size == group.size && axis.axis.group.stride == group.stride)
      return axis.axis.name;
  static const std::string kNone = "?";
  return kNone;
}

std::string number(double value) { return format("{:.6g}", value); }

std::string layout_json(Layout layout) {
  if (layout >= 0) return format("{{\"shard\": {}}}", static_cast<int>(layout));
  return layout == kWhole ? "\"replicate\"" : "\"partial\"";
}

std::string name_text(const Program& program, ValueId id) {
  const std::string label = program.label(id);
  return label.starts_with('%') ? label.substr(1) : label;
}

std::string choice_json(const Plan& plan) {
  const PlanChoice& c = plan.choice;
  return format(
      "\"name\": {}, \"data\": {}, \"tensor\": {}, \"pipeline\": {}, \"interleave\": {}, "
      "\"micro_batches\": {}, \"zero\": {}, \"recompute\": {}, \"seconds\": {}, \"memory\": {}, "
      "\"bubble\": {}, \"fits\": {}",
      json_quoted(plan.name), c.data, c.tensor, c.pipeline, c.interleave, c.micro_batches,
      zero_stage(plan), c.recompute, number(plan.seconds()), number(plan.memory),
      number(plan.simulation.bubble), plan.fits);
}

std::string states_json(const Plan& plan) {
  const Program& program = *plan.placed->step.program;
  std::vector<std::string> rows;
  for (const State& state : program.states) {
    std::vector<std::string> layouts;
    for (const AxisPlan& axis : plan.placed->axes)
      layouts.push_back(layout_json(axis.made[static_cast<size_t>(state.value)]));
    rows.push_back(
        format("    {}: [{}]", json_quoted(name_text(program, state.value)), join(layouts, ", ")));
  }
  return "{\n" + join(rows, ",\n") + "\n  }";
}

std::string axes_json(const Plan& plan) {
  std::vector<std::string> axes;
  for (const AxisPlan& axis : plan.placed->axes)
    axes.push_back(
        format("{{\"name\": {}, \"size\": {}, \"stride\": {}, \"cost\": {}, \"bound\": {}}}",
               json_quoted(axis.axis.name), axis.axis.group.size, axis.axis.group.stride,
               number(axis.cost), number(axis.bound)));
  return "[" + join(axes, ", ") + "]";
}

std::string list_json(const std::vector<Plan>& plans) {
  std::vector<std::string> rows;
  for (const Plan& plan : plans) rows.push_back("    {" + choice_json(plan) + "}");
  return rows.empty() ? "[]" : "[\n" + join(rows, ",\n") + "\n  ]";
}

}  // namespace

std::vector<PlacementRow> placement_rows(const Plan& plan) {
  const Program& program = *plan.placed->step.program;
  std::vector<PlacementRow> rows;
  std::map<std::string, size_t> known;
  for (const State& state : program.states) {
    PlacementRow row{
        pattern_of(name_text(program, state.value)), program.type_of(state.value).str(), 1, {}};
    std::string key = row.names + " " + row.type;
    for (const AxisPlan& axis : plan.placed->axes) {
      row.layouts.push_back(axis.made[static_cast<size_t>(state.value)]);
      key += " " + text_of(row.layouts.back());
    }
    const auto [found, is_new] = known.try_emplace(key, rows.size());
    if (is_new)
      rows.push_back(std::move(row));
    else
      ++rows[found->second].count;
  }
  return rows;
}

std::vector<LinkRow> link_rows(const Plan& plan, const Machine& machine) {
  std::map<std::pair<std::string, std::string>, LinkRow> rows;
  const auto stages = static_cast<double>(plan.choice.pipeline);
  const auto add = [&](const std::string& link, const std::string& what, double bytes,
                       double seconds) {
    LinkRow& row = rows[{link, what}];
    row.link = link;
    row.what = what;
    row.bytes += bytes / stages;
    row.seconds += seconds / stages;
  };
  for (const Transfer& t : plan.placed->transfers)
    add(machine.link_of(t.group).name, axis_name(plan, t.group) + " " + name_of(t.collective),
        sent_bytes(t), t.seconds);
  const Group between{2, plan.choice.data * plan.choice.tensor};
  for (const PipelinePart& part : plan.run.parts)
    if (part.sent > 0) {
      const double runs = 2 * static_cast<double>(plan.run.micro_batches);
      add(machine.link_of(between).name, "pipeline send", runs * part.sent, runs * part.send);
    }
  std::vector<LinkRow> all;
  for (auto& [key, row] : rows) all.push_back(std::move(row));
  std::stable_sort(all.begin(), all.end(),
                   [](const LinkRow& a, const LinkRow& b) { return a.seconds > b.seconds; });
  return all;
}

int zero_stage(const Plan& plan) {
  const Step& step = plan.placed->step;
  for (const AxisPlan& axis : plan.placed->axes) {
    if (axis.axis.name != "data") continue;
    double parameters = 0, cut_parameters = 0, moments = 0, cut_moments = 0;
    for (size_t s = 0; s < step.program->states.size(); ++s) {
      const auto id = static_cast<size_t>(step.program->states[s].value);
      const bool cut = axis.made[id] >= 0;
      const double bytes = step.values[id].whole_bytes;
      if (step.is_parameter(s)) (parameters += bytes, cut_parameters += cut ? bytes : 0);
      if (step.is_moment(s)) (moments += bytes, cut_moments += cut ? bytes : 0);
    }
    if (cut_parameters > parameters / 2) return 3;
    return moments > 0 && cut_moments > moments / 2 ? 1 : 0;
  }
  return 0;
}

std::string to_json(const SearchResult& result, const Machine& machine, double memory) {
  const Plan& plan = result.best;
  std::string out = "{\n  \"plan\": {" + choice_json(plan) + "}";
  out += format(",\n  \"machine\": {}, \"devices\": {}, \"memory_limit\": {}, \"tried\": {}",
                json_quoted(machine.name), plan.choice.devices(), number(memory), result.tried);
  out += ",\n  \"axes\": " + axes_json(plan) + ",\n  \"states\": " + states_json(plan);
  std::vector<std::string> rows;
  for (const LinkRow& row : link_rows(plan, machine))
    rows.push_back(format("    {{\"link\": {}, \"what\": {}, \"bytes\": {}, \"seconds\": {}}}",
                          json_quoted(row.link), json_quoted(row.what), number(row.bytes),
                          number(row.seconds)));
  out += rows.empty() ? ",\n  \"links\": []" : ",\n  \"links\": [\n" + join(rows, ",\n") + "\n  ]";
  rows.clear();
  for (size_t s = 0; s < plan.run.stages.size(); ++s)
    rows.push_back(format("    {{\"peak_memory\": {}, \"states\": {}, \"busy\": {}}}",
                          number(plan.simulation.peak_memory[s]), number(plan.run.stages[s].memory),
                          number(plan.simulation.busy[s])));
  out += ",\n  \"stages\": [\n" + join(rows, ",\n") + "\n  ]";
  out += ",\n  \"alternatives\": " + list_json(result.alternatives);
  return out + ",\n  \"told\": " + list_json(result.told) + "\n}\n";
}

}  // namespace oar::planner
