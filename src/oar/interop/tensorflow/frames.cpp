// Loops of old graphs: nodes in a frame, which values enter, go around in and leave. Each becomes a `While` with two functions.
//
//   Enter -> Merge -> Switch -> Exit             the values that go around
//              ^         \-> … -> NextIteration
//   Merge -> … -> LoopCond -> Switch             what decides
#include "oar/interop/tensorflow/frames.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "oar/base/error.h"
#include "oar/interop/tensorflow/run.h"

namespace oar::tensorflow {
namespace {

bool is_one_of(const Node& node, std::string_view op) {
  return node.op == op || (node.op.starts_with("Ref") && node.op.substr(3) == op);
}

// The inputs that are no mere order.
std::vector<std::string> data_of(const Node& node) {
  std::vector<std::string> inputs;
  for (const std::string& input : node.inputs)
    if (!input.starts_with('^')) inputs.push_back(input);
  return inputs;
}

constexpr int kMostLoops = 4096;

struct Variable {
  const Node *enter, *merge = nullptr, *turn = nullptr, *next = nullptr;  // `turn` is the Switch
};

struct LoopFrame {
  std::string name;
  std::vector<Variable> variables;    // that go around
  std::vector<const Node*> constant;  // values that enter and stay as they are
  const Node* decides = nullptr;      // LoopCond
  std::vector<const Node*> exits;     // in any order
};

class Frames {
 public:
  explicit Frames(GraphDef& graph) : graph_(graph) {}

  // The innermost first: what is left has a form that is not known.
  void run() {
    for (int round = 0; round < kMostLoops; ++round) {
      const std::map<std::string, LoopFrame> left = find();
      const auto next = std::find_if(left.begin(), left.end(),
                                     [&](const auto& frame) { return is_innermost(frame.second); });
      if (next == left.end()) return;
      replace(next->second);
    }
  }

 private:
  std::map<std::string, LoopFrame> find() const {
    std::map<std::string, LoopFrame> frames;
    std::map<std::string, const Node*> merge_of, turn_of;  // by what they read
    for (const Node& node : graph_.main.nodes) {
      const std::vector<std::string> data = data_of(node);
      if (is_one_of(node, "Merge"))
        for (const std::string& input : data) merge_of[place_of(input).node] = &node;
      if (is_one_of(node, "Switch") && !data.empty()) turn_of[place_of(data[0]).node] = &node;
    }
    std::map<std::string, std::string> frame_of_turn;
    for (const Node& node : graph_.main.nodes) {
      if (!is_one_of(node, "Enter")) continue;
      const Attribute* name = node.find("frame_name");
      user_check(name && !data_of(node).empty(), ErrorKind::InvalidArgument,
                 "{} names no frame or has no input.", node.str());
      LoopFrame& frame = frames[name->text];
      frame.name = name->text;
      const auto merge = merge_of.find(node.name);
      if (merge == merge_of.end()) {
        frame.constant.push_back(&node);
        continue;
      }
      Variable v{&node, merge->second};
      if (const auto turn = turn_of.find(v.merge->name); turn != turn_of.end())
        v.turn = turn->second;
      for (const std::string& input : data_of(*v.merge))
        if (const Node* next = graph_.main.find(place_of(input).node);
            next && is_one_of(*next, "NextIteration"))
          v.next = next;
      if (v.turn) {
        frame_of_turn[v.turn->name] = frame.name;
        const std::vector<std::string> data = data_of(*v.turn);
        if (data.size() > 1) frame.decides = graph_.main.find(place_of(data[1]).node);
      }
      frame.variables.push_back(v);
    }
    for (const Node& node : graph_.main.nodes) {
      if (!is_one_of(node, "Exit") || data_of(node).empty()) continue;
      const auto frame = frame_of_turn.find(place_of(data_of(node)[0]).node);
      if (frame != frame_of_turn.end()) frames[frame->second].exits.push_back(&node);
    }
    return frames;
  }

  // What a part of the loop is called with, by the texts that name it.
  static std::vector<std::string> arguments_of(const LoopFrame& frame, bool of_body) {
    std::vector<std::string> names;
    for (const Variable& v : frame.variables)
      names.push_back(of_body ? v.turn->name + ":1" : v.merge->name);
    for (const Node* node : frame.constant) names.push_back(node->name);
    return names;
  }

  // The nodes between the arguments and these tensors.
  bool collect(const LoopFrame& frame, bool of_body, std::vector<std::string> waiting,
               std::set<std::string>& nodes) const {
    std::set<std::string> outside;
    for (const Variable& v : frame.variables)
      outside.insert(of_body ? v.turn->name : v.merge->name);
    for (const Node* node : frame.constant) outside.insert(node->name);
    while (!waiting.empty()) {
      const std::string name = place_of(waiting.back()).node;
      waiting.pop_back();
      if (outside.contains(name) || !nodes.insert(name).second) continue;
      const Node* node = graph_.main.find(name);
      user_check(node, ErrorKind::InvalidArgument,
                 "the file is damaged: a loop reads '{}', which is not there.", name);
      for (const char* op : {"Enter", "Exit", "NextIteration", "LoopCond"})
        if (is_one_of(*node, op)) return false;  // of a loop inside of it
      for (const std::string& input : data_of(*node)) waiting.push_back(input);
    }
    return true;
  }

  static bool is_whole(const LoopFrame& frame) {
    return frame.decides && is_one_of(*frame.decides, "LoopCond") &&
           !data_of(*frame.decides).empty() &&
           std::all_of(frame.variables.begin(), frame.variables.end(), [](const Variable& v) {
             return v.merge && v.turn && v.next && !data_of(*v.next).empty();
           });
  }

  static std::vector<std::string> results_of(const LoopFrame& frame, bool of_body) {
    if (!of_body) return {data_of(*frame.decides)[0]};
    std::vector<std::string> results;
    for (const Variable& v : frame.variables) results.push_back(data_of(*v.next)[0]);
    for (const Node* node : frame.constant) results.push_back(node->name);
    return results;
  }

  bool is_innermost(const LoopFrame& frame) const {
    std::set<std::string> nodes;
    return is_whole(frame) && collect(frame, false, results_of(frame, false), nodes) &&
           collect(frame, true, results_of(frame, true), nodes);
  }

  std::string add_function(const LoopFrame& frame, bool of_body) {
    Graph made;
    made.name = format("{}/{} of the loop", frame.name, of_body ? "body" : "condition");
    made.is_function = true;
    made.arguments = arguments_of(frame, of_body);
    std::set<std::string> nodes;
    const std::vector<std::string> results = results_of(frame, of_body);
    collect(frame, of_body, results, nodes);
    for (const Node& node : graph_.main.nodes)
      if (nodes.contains(node.name)) made.add(with_plain_inputs(node));
    for (size_t i = 0; i < results.size(); ++i) {
      made.results.push_back(format("result_{}", i));
      made.sources[made.results.back()] = plain(results[i]);
    }
    const std::string name = made.name;
    user_check(graph_.functions.emplace(name, std::move(made)).second, ErrorKind::InvalidArgument,
               "the file has two functions '{}'.", name);
    return name;
  }

  // "x:0" is "x".
 public:
  static std::string plain(const std::string& input) {
    return input.ends_with(":0") ? input.substr(0, input.size() - 2) : input;
  }
  // What orders nodes across the edge of the loop is no longer there.
  static Node with_plain_inputs(const Node& node) {
    Node made = node;
    made.inputs.clear();
    for (const std::string& input : node.inputs)
      if (!input.starts_with('^')) made.inputs.push_back(plain(input));
    return made;
  }

 private:
  void replace(const LoopFrame& frame) {
    Node loop;
    loop.name = frame.name + " (loop)";
    loop.op = "While";
    loop.attributes["cond"].text = add_function(frame, false);
    loop.attributes["body"].text = add_function(frame, true);
    std::map<std::string, size_t> number_of;  // of a variable, by its Switch
    std::set<std::string> gone{frame.decides->name};
    for (const Variable& v : frame.variables) {
      number_of[v.turn->name] = loop.inputs.size();
      loop.inputs.push_back(data_of(*v.enter)[0]);
      for (const Node* node : {v.enter, v.merge, v.turn, v.next}) gone.insert(node->name);
    }
    for (const Node* node : frame.constant) {
      loop.inputs.push_back(data_of(*node)[0]);
      gone.insert(node->name);
    }
    std::set<std::string> inside;
    for (const bool of_body : {false, true})
      collect(frame, of_body, results_of(frame, of_body), inside);
    std::map<std::string, Node> exits;
    for (const Node* node : frame.exits) {
      Node leaves{node->name, "Identity", {}, {}};
      const size_t number = number_of.at(place_of(data_of(*node)[0]).node);
      leaves.inputs = {number == 0 ? loop.name : format("{}:{}", loop.name, number)};
      exits[node->name] = std::move(leaves);
    }
    // Nodes of the loop stay where something else reads them; what reads nothing that is left goes away.
    Graph kept;
    kept.name = graph_.main.name;
    for (Node& node : graph_.main.nodes) {
      if (gone.contains(node.name)) continue;
      const auto exit = exits.find(node.name);
      if (exit == exits.end() && inside.contains(node.name) && !is_free(node, gone, inside))
        continue;
      Node made = exit == exits.end() ? std::move(node) : std::move(exit->second);
      std::erase_if(made.inputs, [&](const std::string& input) {
        return input.starts_with('^') &&
               (gone.contains(input.substr(1)) || inside.contains(input.substr(1)));
      });
      kept.add(std::move(made));
    }
    kept.add(std::move(loop));
    graph_.main = std::move(kept);
  }

  // A node that depends on nothing of the loop, such as a constant, may be read outside of it.
  static bool is_free(const Node& node, const std::set<std::string>& gone,
                      const std::set<std::string>& inside) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& input) {
      const std::string name = input.starts_with('^') ? input.substr(1) : place_of(input).node;
      return !gone.contains(name) && !inside.contains(name);
    });
  }

  GraphDef& graph_;
};

// ---- branches ----------------------------------------------------------------------------------

// What a Merge joins: two parts of the graph, from the Switches that one truth decides.
struct Joined {
  std::string decides;                // the tensor
  std::vector<std::string> switches;  // by name, in the order in which they were found
  std::string results[2];             // of no, of yes
};

class Branches {
 public:
  Branches(GraphDef& all, Graph& graph) : all_(all), graph_(graph) {}

  void run() {
    const bool any = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                 [](const Node& node) { return is_one_of(node, "Merge"); });
    if (!any) return;
    const std::set<std::string> with_places = places_read();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& merge = graph_.nodes[i];
      if (!is_one_of(merge, "Merge") || with_places.contains(merge.name)) continue;
      if (const auto joined = joined_by(merge)) replace(i, *joined);
    }
  }

 private:
  // Nodes whose second output is read: which way it went.
  std::set<std::string> places_read() const {
    std::set<std::string> names;
    for (const Node& node : graph_.nodes)
      for (const std::string& input : data_of(node))
        if (const Place place = place_of(input); place.output > 0) names.insert(place.node);
    return names;
  }

  struct Side {
    std::set<std::string> nodes, switches;
    std::vector<std::string> order;
    std::set<size_t> outputs;  // of the Switches that it reads
    bool whole = true;
  };
  Side side_of(const std::string& result) const {
    Side side;
    std::vector<std::string> waiting{result};
    while (!waiting.empty() && side.whole) {
      const Place place = place_of(waiting.back());
      waiting.pop_back();
      const Node* node = graph_.find(place.node);
      if (!node) continue;  // an argument of the function
      if (is_one_of(*node, "Switch")) {
        if (side.switches.insert(node->name).second) side.order.push_back(node->name);
        side.outputs.insert(place.output);
        continue;
      }
      if (!side.nodes.insert(place.node).second) continue;
      for (const char* op : {"Merge", "Enter", "Exit", "NextIteration", "LoopCond"})
        side.whole &= !is_one_of(*node, op);
      side.whole &= !node->op.starts_with("Placeholder");
      for (const std::string& input : node->inputs)
        if (!input.starts_with('^') || is_side(input.substr(1)))
          waiting.push_back(input.starts_with('^') ? data_of(*graph_.find(input.substr(1)))[0]
                                                   : input);
    }
    return side;
  }
  // A constant of a branch comes after a node that says which one it is.
  bool is_side(const std::string& name) const {
    const Node* node = graph_.find(name);
    if (!node || node->op != "Identity" || data_of(*node).empty()) return false;
    const Node* source = graph_.find(place_of(data_of(*node)[0]).node);
    return source && is_one_of(*source, "Switch");
  }

  // Several nodes pass one truth on.
  std::string origin_of(const std::string& truth) const {
    std::string at = Frames::plain(truth);
    for (size_t steps = 0; steps < graph_.nodes.size(); ++steps) {
      const Node* node = graph_.find(at);
      if (!node || node->op != "Identity" || data_of(*node).empty()) break;
      at = Frames::plain(data_of(*node)[0]);
    }
    return at;
  }

  std::optional<Joined> joined_by(const Node& merge) const {
    const std::vector<std::string> data = data_of(merge);
    if (data.size() != 2) return std::nullopt;
    Joined joined;
    std::optional<size_t> first;  // which output the first input comes from
    for (size_t k = 0; k < 2; ++k) {
      const Side side = side_of(data[k]);
      if (!side.whole || side.outputs.size() > 1) return std::nullopt;
      for (const std::string& name : side.order) {
        const std::vector<std::string> inputs = data_of(*graph_.find(name));
        if (inputs.size() != 2) return std::nullopt;
        const std::string decides = origin_of(inputs[1]);
        if (joined.decides.empty()) joined.decides = decides;
        if (joined.decides != decides) return std::nullopt;
        if (std::find(joined.switches.begin(), joined.switches.end(), name) ==
            joined.switches.end())
          joined.switches.push_back(name);
      }
      if (side.outputs.empty()) continue;
      const size_t output = *side.outputs.begin(), of_first = k == 0 ? output : 1 - output;
      if (output > 1 || (first && *first != of_first)) return std::nullopt;
      first = of_first;
    }
    if (!first) return std::nullopt;
    joined.results[*first] = data[0];
    joined.results[1 - *first] = data[1];
    return joined;
  }

  std::string add_function(const Node& merge, const Joined& joined, size_t branch) {
    Graph made;
    made.name = format("{}/{} of {}", merge.name, branch == 1 ? "yes" : "no", graph_.name);
    made.is_function = true;
    for (const std::string& name : joined.switches)
      made.arguments.push_back(branch == 1 ? name + ":1" : name);
    const Side side = side_of(joined.results[branch]);
    for (const Node& node : graph_.nodes)
      if (side.nodes.contains(node.name)) made.add(Frames::with_plain_inputs(node));
    made.results = {"result"};
    made.sources["result"] = Frames::plain(joined.results[branch]);
    std::string name = made.name;
    user_check(all_.functions.emplace(name, std::move(made)).second, ErrorKind::InvalidArgument,
               "the file has two functions '{}'.", name);
    return name;
  }

  void replace(size_t at, const Joined& joined) {
    Node made{graph_.nodes[at].name, "If", {joined.decides}, {}};
    for (const std::string& name : joined.switches)
      made.inputs.push_back(data_of(*graph_.find(name))[0]);
    made.attributes["then_branch"].text = add_function(graph_.nodes[at], joined, 1);
    made.attributes["else_branch"].text = add_function(graph_.nodes[at], joined, 0);
    graph_.nodes[at] = std::move(made);
  }

  GraphDef& all_;
  Graph& graph_;
};

}  // namespace

void turn_switches_into_branches(GraphDef& graph) {
  std::vector<std::string> names;
  for (const auto& [name, function] : graph.functions) names.push_back(name);
  Branches(graph, graph.main).run();
  for (const std::string& name : names) Branches(graph, graph.functions.at(name)).run();
}

void turn_frames_into_loops(GraphDef& graph) { Frames(graph).run(); }

}  // namespace oar::tensorflow
