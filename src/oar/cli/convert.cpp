// `oar convert`. Files of Oar's own format are written by the Python package; all others here.
#include "oar/interop/convert.h"

#include <algorithm>
#include <charconv>
#include <ostream>
#include <tuple>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/cli/commands.h"
#include "oar/cli/model_inputs.h"
#include "oar/cli/peer_run.h"
#include "oar/cli/run_python.h"
#include "oar/cli/tensor_text.h"
#include "oar/formats/json_reader.h"

namespace oar::cli {
namespace {

constexpr double kTolerance = 1e-4;

int by_python(const ConvertQuery& query) {
  std::vector<std::string> command{"-m", "oar.interop"};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  for (const std::string& shape : query.shapes) add("--input-shape", shape);
  add("--weights", query.weights);
  add("--method", query.method);
  if (query.tolerance != 0) add("--tolerance", format("{}", query.tolerance));
  if (query.compare) command.emplace_back("--compare");
  if (query.json) command.emplace_back("--json");
  command.insert(command.end(), {"--", query.source, query.target});
  return run_python("convert: what writes .oar files is part of the Python package", command);
}

// "NAME=1,3,224,224"; a shape without a name is that of the only input.
interop::InputShapes shapes_of(const ConvertQuery& query, const interop::LoadOptions& options) {
  interop::InputShapes shapes;
  for (const std::string& word : query.shapes) {
    auto [name, text] = split_name(word);
    std::vector<int64_t> sizes;
    for (const std::string_view part : split(text, ',')) {
      const std::string_view digits = trim(part);
      int64_t size = -1;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
      user_check(text.empty() ||
                     (error == std::errc() && end == digits.data() + digits.size() && size >= 0),
                 ErrorKind::InvalidArgument,
                 "'{}' is no shape.\nhint: Write --input-shape NAME=1,3,224,224.", word);
      if (!text.empty()) sizes.push_back(size);
    }
    if (name.empty()) {
      const interop::GraphModel model = interop::load_model(query.source, options);
      user_check(model.inputs().size() == 1, ErrorKind::InvalidArgument,
                 "--input-shape needs the name of an input; the model has {}.",
                 model.inputs().size());
      name = model.inputs()[0].name;
    }
    shapes[name] = std::move(sizes);
  }
  return shapes;
}

struct Row {
  std::string output, runs;
  interop::Difference difference;
  std::string text() const {
    return format("{}: {}: largest {:.6g}, largest difference {:.3g}, {:.3g} of the largest",
                  output, runs, difference.largest, difference.absolute, difference.relative);
  }
  std::string json() const {
    return format(
        R"({{"output": {}, "runs": {}, "largest": {}, "difference": {}, "relative": {}}})",
        json_quoted(output), json_quoted(runs), json_number(difference.largest),
        json_number(difference.absolute), json_number(difference.relative));
  }
};
struct Comparison {
  std::vector<Row> rows;
  std::vector<std::string> notes;  // what could not be compared

  void add(const std::string& runs, const std::vector<std::string>& names,
           const std::vector<Tensor>& one, const std::vector<Tensor>& other) {
    for (size_t i = 0; i < std::min(one.size(), other.size()); ++i)
      rows.push_back({names.at(i), runs, interop::difference_of(one[i], other[i])});
  }
};

// The model before and after on the same numbers, and in the frameworks that the files belong to.
Comparison compared(const interop::GraphModel& before, const interop::GraphModel& after,
                    const interop::InputShapes& shapes) {
  Comparison made;
  const std::vector<Tensor> inputs = interop::example_inputs(before, shapes);
  std::vector<Tensor> reordered;  // by name, if the names are the same
  for (const interop::Port& port : after.inputs())
    for (size_t i = 0; i < inputs.size(); ++i)
      if (before.inputs()[i].name == port.name) reordered.push_back(inputs[i]);
  const std::vector<Tensor>& given = reordered.size() == after.inputs().size() ? reordered : inputs;
  const std::vector<Tensor> first = before.run(inputs);
  made.add("before and after", before.outputs(), first, after.run(given));
  for (const auto& [model, tensors, when] :
       {std::tuple{&before, &inputs, "before"}, std::tuple{&after, &given, "after"}}) {
    const PeerRun peer = run_in_peer(*model, *tensors);
    if (!peer.note.empty()) made.notes.push_back(format("{}: {}", when, peer.note));
    if (!peer.outputs.empty())
      made.add(format("before and {} on the file {}", peer.framework, when), before.outputs(),
               first, peer.outputs);
  }
  return made;
}

void print_json(std::ostream& out, const interop::Conversion& done, const Comparison& comparison) {
  std::vector<std::string> rows, notes;
  for (const Row& row : comparison.rows) rows.push_back(row.json());
  for (const std::string& note : comparison.notes) notes.push_back(json_quoted(note));
  out << format(
      "{{\"source\": {}, \"format\": \"{}\", \"target\": {}, \"calls\": {}, \"tensors\": {}, \"bytes\": {}, "
      "\"differences\": [{}], \"notes\": [{}]}}\n",
      json_quoted(done.source), to_string(done.kind), json_quoted(done.target), done.calls,
      done.tensors, done.bytes, join(rows, ", "), join(notes, ", "));
}

}  // namespace

int convert(std::ostream& out, const ConvertQuery& query) {
  if (query.target.ends_with(".oar")) return by_python(query);
  interop::ConvertOptions options;
  if (!query.method.empty()) options.load.method = query.method;
  options.load.weights = query.weights;
  options.shapes = shapes_of(query, options.load);
  if (query.opset > 0) options.opset = query.opset;
  const interop::Conversion done = interop::convert(query.source, query.target, options);
  Comparison comparison;
  if (query.compare && done.calls > 0 && interop::is_model(interop::guess_kind(done.target)))
    comparison = compared(interop::load_model(query.source, options.load),
                          interop::load_model(done.target), options.shapes);
  else if (query.compare)
    comparison.notes.emplace_back("weights are copied, so there is nothing to compare");
  const double tolerance = query.tolerance != 0 ? query.tolerance : kTolerance;
  const auto is_large = [&](const Row& row) { return !(row.difference.relative <= tolerance); };
  const bool large = std::any_of(comparison.rows.begin(), comparison.rows.end(), is_large);
  if (query.json) {
    print_json(out, done, comparison);
    return large ? 1 : 0;
  }
  out << format("{} ({}) -> {}: {}{} tensors, {} bytes\n", done.source, to_string(done.kind),
                done.target, done.calls > 0 ? format("{} calls, ", done.calls) : "", done.tensors,
                done.bytes);
  for (const Row& row : comparison.rows) out << row.text() << '\n';
  for (const std::string& note : comparison.notes) out << note << '\n';
  for (const Row& row : comparison.rows)
    if (is_large(row))
      out << format("{}: {}: {:.3g} is more than --tolerance {:g}\n", row.output, row.runs,
                    row.difference.relative, tolerance);
  return large ? 1 : 0;
}

}  // namespace oar::cli
