#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>
#include <ostream>

#include "oar/base/error.h"
#include "oar/base/parallel.h"
#include "oar/base/string_util.h"
#include "oar/cli/machine.h"
#include "oar/cli/model_commands.h"
#include "oar/cli/op_times.h"
#include "oar/cli/progress.h"
#include "oar/cli/tensor_text.h"
#include "oar/cli/terminal.h"
#include "oar/formats/json_reader.h"
#include "oar/ops/core/profile.h"

namespace oar::cli {
namespace {

using Clock = std::chrono::steady_clock;

// A field of /proc/self/status in bytes; 0 if there is none.
int64_t own_memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  return 0;
}

double processor_ms() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Times {
  std::vector<double> wall;  // milliseconds of each run, sorted
  double first = 0, processor = 0;

  double at(double part) const {
    const auto place =
        static_cast<size_t>(std::lround(part * static_cast<double>(wall.size() - 1)));
    return wall[place];
  }
  double mean() const {
    return std::accumulate(wall.begin(), wall.end(), 0.0) / static_cast<double>(wall.size());
  }
};

double timed_run(const interop::GraphModel& model, const std::vector<Tensor>& inputs) {
  const auto start = Clock::now();
  model.run(inputs);
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Times measure(const interop::GraphModel& model, const std::vector<Tensor>& inputs, int warmup,
              int repeat) {
  Times times;
  Progress progress("bench", warmup + repeat);
  times.first = timed_run(model, inputs);  // it compiles the program, too
  for (int i = 1; i < warmup; ++i) {
    timed_run(model, inputs);
    progress.advance(i + 1);
  }
  const double before = processor_ms();
  for (int i = 0; i < repeat; ++i) {
    times.wall.push_back(timed_run(model, inputs));
    progress.advance(warmup + i + 1);
  }
  times.processor = (processor_ms() - before) / repeat;
  std::sort(times.wall.begin(), times.wall.end());
  return times;
}

int64_t batch_of(const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs)
    if (input.rank() > 0) return std::max<int64_t>(input.dim(0).value(), 1);
  return 1;
}

std::vector<OpTime> profiled(const interop::GraphModel& model, const std::vector<Tensor>& inputs,
                             int runs) {
  start_profile();
  for (int i = 0; i < runs; ++i) model.run(inputs);
  return op_times(stop_profile());
}

void print_profile(std::ostream& out, bool color, const std::vector<OpTime>& ops, int runs) {
  double total = 0;
  for (const OpTime& op : ops) total += op.milliseconds;
  out << '\n';
  Table table({"op", "calls", "ms", "part", "largest call"});
  for (const OpTime& op : ops)
    table.add({op.name, std::to_string(op.calls / runs), format("{:.3f}", op.milliseconds / runs),
               format("{:.1f} %", total > 0 ? 100 * op.milliseconds / total : 0), op.operands});
  table.print(out, color);
}

}  // namespace

int bench_model(std::ostream& out, bool color, const BenchQuery& query) {
  user_check(query.repeat > 0 && query.warmup >= 0, ErrorKind::InvalidArgument,
             "--repeat {} and --warmup {} do not fit.\nhint: Repeat at least once.", query.repeat,
             query.warmup);
  if (query.model.threads > 0) set_num_threads(query.model.threads);
  const auto start = Clock::now();
  const interop::GraphModel model = interop::load_model(
      query.model.path, {query.model.method, query.model.weights, query.model.verify});
  const double load = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  InputOptions options = query.inputs;
  options.random = true;
  const std::vector<Tensor> inputs = model_inputs(model.inputs(), options);
  const Times times = measure(model, inputs, query.warmup, query.repeat);
  const int64_t peak = own_memory("VmHWM"), resident = own_memory("VmRSS");
  const int64_t batch = batch_of(inputs);
  const double throughput = 1000.0 * static_cast<double>(batch) / times.at(0.5);
  constexpr int kProfiledRuns = 5;
  const std::vector<OpTime> ops =
      query.profile ? profiled(model, inputs, kProfiledRuns) : std::vector<OpTime>{};
  if (query.json) {
    std::vector<std::string> rows;
    for (const OpTime& op : ops)
      rows.push_back(format("{{\"op\": {}, \"calls\": {}, \"milliseconds\": {}}}",
                            json_quoted(op.name), op.calls / kProfiledRuns,
                            json_number(op.milliseconds / kProfiledRuns)));
    out << format(
        "{{\"model\": {}, \"format\": \"{}\", \"threads\": {}, \"batch\": {}, \"load_ms\": {}, \"first_ms\": {}, "
        "\"median_ms\": {}, \"p90_ms\": {}, \"min_ms\": {}, \"mean_ms\": {}, \"processor_ms\": {}, "
        "\"per_second\": {}, \"repeat\": {}, \"peak_bytes\": {}, \"resident_bytes\": {}{}}}\n",
        json_quoted(model.path()), to_string(model.kind()), num_threads(), batch, json_number(load),
        json_number(times.first), json_number(times.at(0.5)), json_number(times.at(0.9)),
        json_number(times.wall[0]), json_number(times.mean()), json_number(times.processor),
        json_number(throughput), query.repeat, peak, resident,
        query.profile ? ", \"ops\": [" + join(rows, ", ") + "]" : "");
    return 0;
  }
  const auto ms = [](double value) { return format("{:.3f} ms", value); };
  Table table({"", ""});
  std::vector<std::string> shapes;
  for (size_t i = 0; i < inputs.size(); ++i)
    shapes.push_back(format("{}: {}", model.inputs()[i].name, inputs[i].describe()));
  table.add({"inputs", join(shapes, ", ")});
  table.add({"threads", std::to_string(num_threads())});
  table.add({"load", ms(load)});
  table.add({"first run", ms(times.first)});
  table.add({"median", ms(times.at(0.5))});
  table.add({"90 of 100", ms(times.at(0.9))});
  table.add({"fastest", ms(times.wall[0])});
  table.add({"processor", ms(times.processor) + " of all threads for a run"});
  table.add({"throughput", format("{:.1f} per second at batch {}", throughput, batch)});
  table.add({"memory", format("{} now, {} at most", bytes_text(resident), bytes_text(peak))});
  table.print(out, color);
  if (query.profile) print_profile(out, color, ops, kProfiledRuns);
  return 0;
}

}  // namespace oar::cli
