// `oar plan`: how a training step runs on many devices.
#include <algorithm>
#include <charconv>
#include <ostream>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/cli/commands.h"
#include "oar/cli/progress.h"
#include "oar/cli/run_python.h"
#include "oar/cli/terminal.h"
#include "oar/ir/parse.h"
#include "oar/planner/report.h"
#include "oar/planner/transformer.h"
#include "oar/runtime/model.h"

namespace oar::cli {
namespace {

using planner::Plan;
using planner::PlanChoice;

int64_t whole_number(std::string_view text, std::string_view what) {
  int64_t number = 0;
  const std::string_view digits = trim(text);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  user_check(error == std::errc() && end == digits.data() + digits.size() && number > 0 &&
                 number <= 1 << 20,
             ErrorKind::InvalidArgument, "{} is '{}'.\nhint: It must be a number from 1 to 2^20.",
             what, text);
  return number;
}

std::vector<int64_t> mesh_of(const std::string& text) {
  std::vector<int64_t> mesh;
  for (const std::string_view size : split(text, 'x'))
    mesh.push_back(whole_number(size, "a size in --mesh"));
  user_check(mesh.size() <= 4, ErrorKind::InvalidArgument,
             "--mesh {} has {} axes.\nhint: It may have up to 4, like 8x4.", text, mesh.size());
  return mesh;
}

// "Megatron: data=8,tensor=4,pipeline=2,micro=16,zero=1,recompute"
planner::ToldPlan told_plan(const std::string& text) {
  planner::ToldPlan told{text, {}};
  std::string_view rest = text;
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    told.name = std::string(trim(rest.substr(0, colon)));
    rest.remove_prefix(colon + 1);
  }
  PlanChoice& c = told.choice;
  for (const std::string_view word : split(rest, ',')) {
    const size_t equal = word.find('=');
    const std::string_view key = trim(word.substr(0, equal));
    const std::string_view value = equal == std::string_view::npos ? "" : word.substr(equal + 1);
    if (key == "data")
      c.data = whole_number(value, "data of a plan");
    else if (key == "tensor")
      c.tensor = whole_number(value, "tensor of a plan");
    else if (key == "pipeline")
      c.pipeline = whole_number(value, "pipeline of a plan");
    else if (key == "interleave")
      c.interleave = whole_number(value, "interleave of a plan");
    else if (key == "micro")
      c.micro_batches = whole_number(value, "micro of a plan");
    else if (key == "zero" && (value == "0" || value == "1" || value == "2" || value == "3"))
      c.zero = value == "2" ? 1 : value[0] - '0';
    else if (key == "recompute" && value.empty())
      c.recompute = true;
    else
      fail(
          ErrorKind::InvalidArgument,
          "'{}' in the plan '{}' is unknown.\nhint: Write it like data=8,tensor=4,pipeline=2,interleave=1,micro=16,"
          "zero=1,recompute.",
          word, text);
  }
  return told;
}

struct Task {
  Program program;
  std::vector<planner::ToldPlan> told;
};

Task task_of(const PlanQuery& query) {
  Task task;
  if (query.path.ends_with(".oar")) {
    task.program = Model::load(query.path, query.method).program();
  } else if (query.path.ends_with(".json")) {
    planner::ModelFile file = planner::parse_model(read_file(query.path));
    if (query.batch > 0) file.model.batch = query.batch;
    task.program = planner::training_step(file.model);
    for (const planner::PublishedPlan& p : file.plans) {
      PlanChoice c;
      c.data = p.data;
      c.tensor = p.tensor;
      c.pipeline = p.pipeline;
      c.interleave = p.interleave;
      c.zero = p.zero == 2 ? 1 : p.zero;
      c.recompute = p.recompute;
      user_check(
          file.model.batch % (p.data * p.micro_batch) == 0, ErrorKind::InvalidArgument,
          "the plan \"{}\" has {} replicas with micro-batches of {}, which a batch of {} cannot fill.",
          p.name, p.data, p.micro_batch, file.model.batch);
      c.micro_batches = file.model.batch / (p.data * p.micro_batch);
      task.told.push_back({p.name, c});
    }
  } else {
    task.program =
        parse_program(read_file(query.path), {[](const std::string&, const ValueType& type) {
                        return Tensor::meta(type.shape, type.dtype);
                      }});
  }
  for (const std::string& text : query.told) task.told.push_back(told_plan(text));
  return task;
}

// What the user has placed along the tensor axis: --place, and placements in the program on an axis of that name.
std::map<ValueId, planner::Layout> placed_by_user(const Program& program, const PlanQuery& query) {
  std::map<ValueId, planner::Layout> fixed;
  for (size_t v = 0; v < program.values.size(); ++v)
    if (const auto& placement = program.values[v].type.placement)
      for (const MeshAxisPlacement& axis : placement->axes)
        if (axis.mesh_axis == "tensor" && axis.kind != MeshAxisPlacement::Partial)
          fixed[static_cast<ValueId>(v)] = axis.kind == MeshAxisPlacement::Shard
                                               ? static_cast<planner::Layout>(axis.axis)
                                               : planner::kWhole;
  for (const std::string& word : query.places) {
    const size_t equal = word.rfind('=');
    user_check(equal != std::string::npos, ErrorKind::InvalidArgument,
               "'{}' places nothing.\nhint: Write --place NAME=AXIS, or NAME=whole.", word);
    const std::string name = word.substr(0, equal), axis = word.substr(equal + 1);
    const ValueId id = program.find(name);
    user_check(
        id != kNoValue, ErrorKind::NotFound,
        "the step has no value '{}' to place.\nhint: `oar inspect` shows the names of a program.",
        name);
    const int rank = program.type_of(id).shape.rank();
    const bool cut = axis.size() == 1 && axis[0] >= '0' && axis[0] < '0' + rank;
    user_check(
        cut || axis == "whole", ErrorKind::InvalidArgument,
        "'{}' cannot be cut along '{}'.\nhint: It is {}; give one of its axes from 0 on, or whole.",
        name, axis, program.type_of(id).str());
    fixed[id] = cut ? static_cast<planner::Layout>(axis[0] - '0') : planner::kWhole;
  }
  return fixed;
}

void print_plan(std::ostream& out, bool color, const planner::SearchResult& result,
                const planner::Machine& machine, double memory) {
  const Plan& plan = result.best;
  using planner::bytes_text;
  using planner::seconds_text;
  out << styled(plan.choice.str(), Style::Bold, color) << '\n';
  out << format("step {}, bubble {:.1f} %, most memory {} of {}\n", seconds_text(plan.seconds()),
                100 * plan.simulation.bubble, bytes_text(plan.memory), bytes_text(memory));
  if (!plan.fits)
    out << styled(
               "No plan fits into the memory; this one needs the least. Use more devices or a smaller batch.",
               Style::Red, color)
        << '\n';
  std::vector<std::string> titles{"states", "type", "count"};
  for (const planner::AxisPlan& axis : plan.placed->axes)
    titles.push_back(format("{} x {}", axis.axis.name, axis.axis.group.size));
  Table states(titles);
  for (const planner::PlacementRow& row : planner::placement_rows(plan)) {
    std::vector<std::string> cells{row.names, row.type, std::to_string(row.count)};
    for (const planner::Layout layout : row.layouts) cells.push_back(planner::text_of(layout));
    states.add(cells);
  }
  out << '\n';
  states.print(out, color);
  Table links({"link", "what", "sent by a device", "time"});
  for (const planner::LinkRow& row : planner::link_rows(plan, machine))
    links.add({row.link, row.what, bytes_text(row.bytes), seconds_text(row.seconds)});
  out << '\n';
  links.print(out, color);
  Table stages({"stage", "busy", "states and gradients", "most memory"});
  for (size_t s = 0; s < plan.run.stages.size(); ++s)
    stages.add({std::to_string(s), seconds_text(plan.simulation.busy[s]),
                bytes_text(plan.run.stages[s].memory), bytes_text(plan.simulation.peak_memory[s])});
  out << '\n';
  stages.print(out, color);
  Table others({"other plans", "step", "memory", "bubble"});
  const auto add = [&](const Plan& p) {
    others.add({(p.name.empty() ? "" : p.name + ": ") + p.choice.str(), seconds_text(p.seconds()),
                bytes_text(p.memory) + (p.fits ? "" : ", too much"),
                format("{:.1f} %", 100 * p.simulation.bubble)});
  };
  for (const Plan& told : result.told) add(told);
  for (const Plan& other : result.alternatives) add(other);
  out << '\n';
  others.print(out, color);
}

}  // namespace

int plan(std::ostream& out, bool color, const PlanQuery& query) {
  const planner::Machine machine = query.machine.empty()
                                       ? planner::default_machine()
                                       : planner::parse_machine(read_file(query.machine));
  planner::SearchRequest request;
  if (!query.mesh.empty()) {
    request.mesh = mesh_of(query.mesh);
    for (const int64_t size : request.mesh) request.devices *= size;
    user_check(query.devices == 0 || query.devices == request.devices, ErrorKind::InvalidArgument,
               "--mesh {} has {} devices, but --devices is {}.\nhint: Give one of them.",
               query.mesh, request.devices, query.devices);
  } else {
    user_check(query.devices > 0, ErrorKind::InvalidArgument,
               "how many devices is the plan for?\nhint: Give --mesh 8x4, or --devices 32.");
    request.devices = query.devices;
  }
  request.memory =
      query.memory.empty() ? machine.memory : planner::parse_bytes(query.memory, "--memory");
  Task task = task_of(query);
  request.told = task.told;
  request.fixed = placed_by_user(task.program, query);
  const planner::Step step = planner::read_step(task.program);
  Progress progress("plan", 0);
  request.progress = [&](int64_t done, int64_t) { progress.advance(done); };
  const planner::SearchResult result = planner::search(step, machine, request);
  progress.clear();
  if (!query.svg.empty())
    write_file_atomic(query.svg, planner::draw(result, machine, request.memory, task.program.name));
  if (query.json)
    out << planner::to_json(result, machine, request.memory);
  else
    print_plan(out, color, result, machine, request.memory);
  if (!query.svg.empty() && !query.json) out << "\nDrawn to " << query.svg << '\n';
  return result.best.fits ? 0 : 1;
}

int distributed(const std::vector<std::string>& words) {
  std::vector<std::string> command{"-m", "oar.distributed.planning"};
  command.insert(command.end(), words.begin(), words.end());
  return run_python("distributed: measuring a machine is part of the Python package", command);
}

}  // namespace oar::cli
