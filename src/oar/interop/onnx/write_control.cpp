// Branches and loops, as nodes with graphs of their own.
#include "oar/interop/onnx/graph_writer.h"
#include "oar/interop/onnx/model.h"
#include "oar/ir/region.h"

namespace oar::onnx {
namespace {

// A graph inside the one that is being written. Its values are names of the outer graph, or inputs of its own.
struct Inner {
  std::shared_ptr<GraphWriter> graph;
  const Program& program;

  Inner(OpCall& c, const Program& p)
      : graph(std::make_shared<GraphWriter>(c.graph().weights().fresh(p.name), c.opset,
                                            c.graph().shared_weights(), &c.graph())),
        program(p) {}
  void define(size_t input, const std::string& name) {
    graph->define(program, program.inputs[input], name);
  }
  void write() {
    for (const Constant& k : program.constants)
      graph->define(program, k.value, graph->constant(k.tensor));
    graph->add_body(program);
  }
  void output(size_t i) {
    const ValueId id = program.outputs[i];
    graph->add_output(program.type_of(id), graph->name_of(id), graph->weights().fresh("result"));
  }
};

Names names_of(OpCall& c, std::string_view name) {
  Names names;
  for (const ValueId id : c.values(name)) names.push_back(c.graph().name_of(id));
  return names;
}

std::shared_ptr<GraphWriter> branch_of(OpCall& c, const Program& program) {
  Inner inner(c, program);
  const Names captured = names_of(c, "captured");
  for (size_t i = 0; i < captured.size(); ++i) inner.define(i, captured[i]);
  inner.write();
  for (size_t i = 0; i < program.outputs.size(); ++i) inner.output(i);
  return inner.graph;
}

// Two branches, chosen by whether the index is 0.
void write_switch(OpCall& c) {
  const ClosureList branches = as_programs(c.value("branches"));
  GraphWriter& g = c.graph();
  std::string index = c.in("index");
  if (c.rank("index") > 0) index = c.node("Reshape", {index, g.integers({})});
  const std::string is_first = c.node("Equal", {index, g.number(0, c.type("index").dtype)});
  const std::shared_ptr<const GraphWriter> first = branch_of(c, program_of(*branches[0])),
                                           second = branch_of(c, program_of(*branches[1]));
  const Names made = g.nodes("If", {is_first}, {{"then_branch", first}, {"else_branch", second}},
                             c.call.results.size());
  for (size_t i = 0; i < made.size(); ++i) c.give(i, made[i]);
}
bool has_two_branches(const OpCall& c) {
  return as_programs(c.value("branches")).size() == 2 && !c.flag("trace") && !c.has("random");
}

// The test runs before the loop and at the end of its body.
void write_while(OpCall& c) {
  GraphWriter& g = c.graph();
  const Program &test = program_of(as_program(c.value("test"))),
                &body = program_of(as_program(c.value("body")));
  const Names carried = names_of(c, "carried"), captured = names_of(c, "captured");
  const auto tested = [&](GraphWriter& graph, const Names& variables) {
    Names inputs = variables;
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    for (size_t i = 0; i < inputs.size(); ++i) graph.define(test, test.inputs[i], inputs[i]);
    for (const Constant& k : test.constants) graph.define(test, k.value, graph.constant(k.tensor));
    graph.add_body(test);
    return graph.node("Reshape", {graph.name_of(test.outputs[0]), graph.integers({})});
  };
  const std::string begin = g.aside([&] { return tested(g, carried); });
  Inner inner(c, body);
  inner.graph->add_port("step", {DType::Int64, {}});
  inner.graph->add_port("goes_on", {DType::Bool, {}});
  for (size_t i = 0; i < carried.size(); ++i)
    inner.graph->add_input(body, body.inputs[i], "variable");
  for (size_t i = 0; i < captured.size(); ++i) inner.define(carried.size() + i, captured[i]);
  inner.write();
  Names next;
  for (const ValueId id : body.outputs) next.push_back(inner.graph->name_of(id));
  const std::string goes_on = inner.graph->aside([&] { return tested(*inner.graph, next); });
  inner.graph->add_output({DType::Bool, {}}, goes_on, g.weights().fresh("result"));
  for (size_t i = 0; i < next.size(); ++i)
    inner.graph->add_output(body.type_of(body.outputs[i]), next[i], g.weights().fresh("result"));
  Names inputs{"", begin};
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  const Names made = g.nodes(
      "Loop", inputs, {{"body", std::shared_ptr<const GraphWriter>(inner.graph)}}, carried.size());
  for (size_t i = 0; i < made.size(); ++i) c.give(i, made[i]);
}
bool leaves_no_trace(const OpCall& c) { return !c.flag("trace") && !c.has("random"); }

void write_scan(OpCall& c) {
  const Program& body = program_of(as_program(c.value("body")));
  const Names carried = names_of(c, "carried"), sequences = names_of(c, "sequences"),
              captured = names_of(c, "captured");
  Inner inner(c, body);
  for (size_t i = 0; i < carried.size() + sequences.size(); ++i)
    inner.graph->add_input(body, body.inputs[i], "variable");
  for (size_t i = 0; i < captured.size(); ++i)
    inner.define(carried.size() + sequences.size() + i, captured[i]);
  inner.write();
  for (size_t i = 0; i < body.outputs.size(); ++i) inner.output(i);
  Names inputs = carried;
  inputs.insert(inputs.end(), sequences.begin(), sequences.end());
  const int64_t backwards = c.flag("reverse");
  const Names made =
      c.graph().nodes("Scan", inputs,
                      {{"body", std::shared_ptr<const GraphWriter>(inner.graph)},
                       {"num_scan_inputs", static_cast<int64_t>(sequences.size())},
                       {"scan_input_directions", std::vector<int64_t>(sequences.size(), backwards)},
                       {"scan_output_directions",
                        std::vector<int64_t>(body.outputs.size() - carried.size(), backwards)}},
                      c.call.results.size());
  for (size_t i = 0; i < made.size(); ++i) c.give(i, made[i]);
}
bool has_sequences(const OpCall& c) { return leaves_no_trace(c) && !c.values("sequences").empty(); }

constexpr OpWriter kWriters[] = {
    {"switch_case", write_switch, has_two_branches},
    {"while_loop", write_while, leaves_no_trace},
    {"scan", write_scan, has_sequences},
};

}  // namespace

std::span<const OpWriter> control_writers() { return kWriters; }

}  // namespace oar::onnx
