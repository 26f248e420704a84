#include "oar/interop/tensorflow/run.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "oar/base/error.h"
#include "oar/base/interrupt.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"
#include "oar/interop/constants.h"
#include "oar/interop/conversion_error.h"
#include "oar/runtime/region_runs.h"

namespace oar::tensorflow {
namespace {

constexpr size_t kDeepest = 64;           // functions that call each other
constexpr int64_t kMostNodes = 20000000;  // of one run, loops and calls included

bool is_control(const std::string& input) { return !input.empty() && input[0] == '^'; }

// "node:output:1" is output 1 of those called `output`, which begin at a place that the operator knows.
struct Source {
  std::string node, output;
  size_t index = 0;
};
Source source_of(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, ':');
  Source s{std::string(parts[0]), "", 0};
  if (parts.size() > 3) s.node = text;  // is no name of a node: an error follows
  if (parts.size() == 3) s.output = parts[1];
  if (parts.size() < 2) return s;
  const std::string_view number = parts.back();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), s.index);
  user_check(error == std::errc() && end == number.data() + number.size(),
             ErrorKind::InvalidArgument, "the file is damaged: '{}' is no output of a node.", text);
  return s;
}

size_t output_number(const GraphDef& graph, const Node& node, const Source& s) {
  if (s.output.empty()) return s.index;
  std::vector<std::string> names;
  if (const auto f = graph.functions.find(node.op); f != graph.functions.end()) {
    names = f->second.results;
  } else if (const Converter* converter = find_converter(node.op)) {
    for (const std::string_view name : split(converter->outputs, ' ')) names.emplace_back(name);
  }
  const auto found = std::find(names.begin(), names.end(), s.output);
  return found == names.end() ? s.index : static_cast<size_t>(found - names.begin()) + s.index;
}

Converter::Kind kind_of(const Node& node) {
  const Converter* converter = find_converter(node.op);
  return converter ? converter->kind : Converter::Computes;
}

// Nodes of one graph, or of one call of a function.
struct Frame {
  explicit Frame(const Graph& of) : graph(of), results(of.nodes.size()), state(of.nodes.size()) {
    for (const Node& node : graph.nodes) branches |= kind_of(node) == Converter::Branches;
  }

  const Graph& graph;
  std::map<std::string, Item> arguments;
  std::vector<Items> results;
  enum State : uint8_t { New, Begun, Done };
  std::vector<State> state;
  bool branches = false;
  bool in_order = false;  // what comes before a node by its control inputs matters
};

class Run : public Around {
 public:
  Run(const Network& network, bool steps) : network_(network), variables_(network.variables) {
    if (!steps) capture_.emplace();
  }

  std::vector<Tensor> outputs_of(const std::vector<Tensor>& inputs) {
    std::vector<Tensor> made;
    for (const Item& item : run(inputs)) made.push_back(item.tensor);
    return made;
  }

  Program program(const std::vector<Tensor>& like) {
    std::vector<interop::Value> outputs;
    for (const Item& item : run(like)) outputs.push_back({item.tensor, item.known});
    feeds_.clear();  // only the program may keep what the nodes computed
    return capture_->finish(outputs);
  }

  std::map<std::string, Tensor> restore(const std::string& node, Checkpoint& checkpoint) {
    checkpoint_ = &checkpoint;
    Frame frame(network_.graph.main);
    frame.in_order = true;
    evaluate(frame, {node});
    return std::move(variables_);
  }

  // ---- for converters ----

  Items call_function(const std::string& name, const Items& arguments) override {
    const auto found = network_.graph.functions.find(name);
    user_check(found != network_.graph.functions.end(), ErrorKind::InvalidArgument,
               "the file has no function '{}'.", name);
    patience_.look();  // a loop may have no end
    const Graph& f = found->second;
    user_check(arguments.size() >= f.arguments.size(), ErrorKind::InvalidArgument,
               "the function '{}' takes {} arguments and is given {}.", name, f.arguments.size(),
               arguments.size());
    user_check(depth_++ < kDeepest, ErrorKind::InvalidArgument, "functions call each other.");
    const ScopeGuard leave([this] { --depth_; });
    Frame frame(f);
    frame.in_order = checkpoint_ != nullptr;
    for (size_t i = 0; i < f.arguments.size(); ++i) frame.arguments[f.arguments[i]] = arguments[i];
    Items results;
    for (const std::string& result : f.results) {
      const auto source = f.sources.find(result);
      user_check(source != f.sources.end(), ErrorKind::InvalidArgument,
                 "the function '{}' does not say what '{}' is.", name, result);
      results.push_back(value(frame, source->second, name));
    }
    if (frame.in_order)
      for (const Node& node : f.nodes)
        if (kind_of(node) == Converter::Writes) evaluate(frame, {node.name});
    return results;
  }
  bool has_function(const std::string& name) const override {
    return network_.graph.functions.contains(name);
  }

  Items compute(const Node& node, bool known, const std::function<Items()>& body) override {
    Items results;
    if (!known && capture_) {
      const interop::Value computed{Tensor::scalar(int64_t{0}, DType::Int64), false};
      capture_->call(node.str(), {computed}, [&] {
        results = body();
        return std::vector<Tensor>{};
      });
      return results;
    }
    const FreshLayers fresh;
    results = body();
    for (Item& item : results) {
      if (!item.tensor.defined()) continue;
      item.known = true;
      if (capture_) item.tensor = interop::in_c_order(item.tensor);
    }
    return results;
  }
  Item constant(const std::string& name, const Tensor& tensor) override {
    Item item(capture_ ? interop::GraphCapture::constant(name, tensor).tensor : tensor);
    item.known = true;
    return item;
  }

  Item variable(const std::string& name) override {
    const auto found = variables_.find(name);
    user_check(found != variables_.end(), ErrorKind::Unsupported,
               "the variable '{}' has no value in the model's files.", name);
    return constant(name, found->second);
  }
  void assign(const std::string& name, const Item& item) override {
    user_check(checkpoint_, ErrorKind::Unsupported,
               "the model writes to the variable '{}' when it runs, which cannot be imported.",
               name);
    if (item.tensor.defined()) variables_[name] = item.tensor;
  }
  Tensor restored(const std::string& key) override {
    user_check(checkpoint_, ErrorKind::Unsupported, "the model reads a checkpoint when it runs.");
    try {
      return checkpoint_->tensor(key);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unsupported) throw;
      return {};  // texts, which no network reads
    }
  }
  bool restores() const override { return checkpoint_ != nullptr; }
  Tensor turned(const Tensor& constant, const std::vector<int64_t>& order) override {
    return network_.turned(constant, order);
  }
  bool steps() const override { return !capture_; }

 private:
  Items run(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Entry& entry = network_.inputs[i];
      Item item(inputs[i]);
      item.known = !capture_;
      if (capture_) item.tensor = capture_->input(entry.port.name, inputs[i]).tensor;
      feeds_.emplace(entry.place, item);
    }
    Frame frame(network_.graph.main);
    Items outputs;
    for (const Entry& entry : network_.outputs) {
      outputs.push_back(value(frame, entry.place.str(), "an output"));
      user_check(outputs.back().tensor.defined(), ErrorKind::Unsupported,
                 "the output '{}' is no tensor of numbers.", entry.port.name);
    }
    return outputs;
  }

  const Item* fed(const Frame& frame, const std::string& node, size_t output) const {
    if (frame.graph.is_function || feeds_.empty()) return nullptr;
    const auto found = feeds_.find({node, output});
    return found == feeds_.end() ? nullptr : &found->second;
  }

  Item value(Frame& frame, const std::string& source, const std::string& reader) {
    const auto argument = frame.arguments.find(source);
    if (argument != frame.arguments.end()) return argument->second;
    const Source s = source_of(source);
    const Node* node = frame.graph.find(s.node);
    user_check(node, ErrorKind::InvalidArgument,
               "the file is damaged: '{}' reads '{}', which is not there.", reader, source);
    const size_t output = output_number(network_.graph, *node, s);
    if (const Item* item = fed(frame, s.node, output)) return *item;
    evaluate(frame, {s.node});
    const Items& made = frame.results[frame.graph.places.at(s.node)];
    if (made.size() == 1 && made[0].dead) return made[0];
    user_check(output < made.size(), ErrorKind::Unsupported,
               "'{}' reads the output {} of {}, of which Oar computes {}.", reader, output,
               node->str(), made.size());
    return made[output];
  }

  // The nodes that must be run before this one.
  std::vector<size_t> before(const Frame& frame, const Node& node) const {
    std::vector<size_t> list;
    for (const std::string& input : node.inputs) {
      if (frame.arguments.contains(input)) continue;
      const bool control = is_control(input);
      const Source s = control ? Source{input.substr(1), "", 0} : source_of(input);
      const auto found = frame.graph.places.find(s.node);
      if (control) {
        if (found == frame.graph.places.end()) continue;
        const Converter::Kind kind = kind_of(frame.graph.nodes[found->second]);
        const bool decides = kind == Converter::Branches || kind == Converter::Leads;
        if (!frame.in_order && !(frame.branches && decides)) continue;
      }
      user_check(found != frame.graph.places.end(), ErrorKind::InvalidArgument,
                 "the file is damaged: {} reads '{}', which is not there.", node.str(), input);
      if (!control &&
          fed(frame, s.node, output_number(network_.graph, frame.graph.nodes[found->second], s)))
        continue;
      list.push_back(found->second);
    }
    return list;
  }

  // A deep graph must not fill the stack.
  void evaluate(Frame& frame, const std::string& target) {
    std::vector<size_t> waiting{frame.graph.places.at(target)};
    while (!waiting.empty()) {
      const size_t at = waiting.back();
      if (frame.state[at] == Frame::Done) {
        waiting.pop_back();
        continue;
      }
      const Node& node = frame.graph.nodes[at];
      frame.state[at] = Frame::Begun;
      bool ready = true;
      for (const size_t needed : before(frame, node)) {
        if (frame.state[needed] == Frame::Done) continue;
        user_check(frame.state[needed] == Frame::New, ErrorKind::InvalidArgument,
                   "the graph has a cycle through {}.", node.str());
        waiting.push_back(needed);
        ready = false;
      }
      if (!ready) continue;
      waiting.pop_back();
      user_check(++nodes_ < kMostNodes, ErrorKind::InvalidArgument,
                 "the model runs more than {} nodes.", kMostNodes);
      frame.results[at] = run_node(frame, node);
      frame.state[at] = Frame::Done;
    }
  }

  Items run_node(Frame& frame, const Node& node) {
    Items inputs;
    bool dead = false, known = true;
    for (const std::string& input : node.inputs) {
      if (is_control(input)) {
        dead |= is_dead_before(frame, input.substr(1));
        continue;
      }
      inputs.push_back(value(frame, input, node.str()));
      dead |= inputs.back().dead;
      known &= inputs.back().known || !inputs.back().tensor.defined();
    }
    if (dead && kind_of(node) != Converter::Merges) return dead_result();
    if (network_.graph.functions.contains(node.op)) return call_function(node.op, inputs);
    const Converter* converter = find_converter(node.op);
    user_check(converter, ErrorKind::Unsupported,
               "the model has operators that Oar cannot import yet: {}.", node.op);
    const Call call(node, std::move(inputs), *this);
    if (converter->kind == Converter::Notes) return {};
    return converted(node, [&] {
      if (converter->kind != Converter::Computes && converter->kind != Converter::Sizes)
        return converter->convert(call);
      return compute(node, known || converter->kind == Converter::Sizes,
                     [&] { return converter->convert(call); });
    });
  }

  static Items dead_result() {
    Item item;
    item.dead = true;
    return {item};
  }

  bool is_dead_before(const Frame& frame, const std::string& node) const {
    if (!frame.branches) return false;
    const auto found = frame.graph.places.find(node);
    if (found == frame.graph.places.end()) return false;
    const Items& made = frame.results[found->second];
    return made.size() == 1 && made[0].dead;
  }

  static Items converted(const Node& node, const std::function<Items()>& body) {
    return interop::naming_node([&] { return node.str(); }, body);
  }

  const Network& network_;
  std::optional<interop::GraphCapture> capture_;
  std::map<std::string, Tensor> variables_;
  std::map<Place, Item> feeds_;
  Checkpoint* checkpoint_ = nullptr;
  size_t depth_ = 0;
  Patience patience_;
  int64_t nodes_ = 0;
};

// ---- operators ---------------------------------------------------------------------------------

class Survey {
 public:
  explicit Survey(const Network& network) : network_(network) {}

  void visit_outputs() {
    std::set<std::string> fed;
    for (const Entry& entry : network_.inputs) fed.insert(entry.place.node);
    std::vector<std::string> names;
    for (const Entry& entry : network_.outputs) names.push_back(entry.place.node);
    visit(network_.graph.main, std::move(names), fed);
    while (!functions_.empty()) {
      const std::string name = functions_.back();
      functions_.pop_back();
      const auto found = network_.graph.functions.find(name);
      if (found == network_.graph.functions.end() || !seen_.insert(name).second) continue;
      std::vector<std::string> sources;
      for (const auto& [result, source] : found->second.sources)
        sources.push_back(source_of(source).node);
      for (const Node& node : found->second.nodes)  // they run, although no result needs them
        if (kind_of(node) == Converter::Writes) sources.push_back(node.name);
      visit(found->second, std::move(sources), {});
    }
  }
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  void visit(const Graph& graph, std::vector<std::string> names, const std::set<std::string>& fed) {
    std::vector<bool> seen(graph.nodes.size());
    while (!names.empty()) {
      const std::string name = std::move(names.back());
      names.pop_back();
      const auto found = graph.places.find(name);
      if (found == graph.places.end() || seen[found->second] || fed.contains(name)) continue;
      seen[found->second] = true;
      const Node& node = graph.nodes[found->second];
      const Converter* converter = find_converter(node.op);
      if (converter && converter->kind == Converter::Writes) unknown_.push_back(node.op);
      if (!converter && !network_.graph.functions.contains(node.op)) unknown_.push_back(node.op);
      if (converter && converter->kind == Converter::Notes) continue;
      functions_.push_back(node.op);
      for (const auto& [key, a] : node.attributes) {
        if (!a.text.empty()) functions_.push_back(a.text);
        functions_.insert(functions_.end(), a.texts.begin(), a.texts.end());
      }
      for (const std::string& input : node.inputs)
        names.push_back(is_control(input) ? input.substr(1) : source_of(input).node);
    }
  }

  const Network& network_;
  std::vector<std::string> functions_, unknown_;
  std::set<std::string> seen_;
};

}  // namespace

Place place_of(const std::string& name) {
  const Source s = source_of(name);
  user_check(s.output.empty(), ErrorKind::InvalidArgument, "'{}' is no tensor of a graph.", name);
  return {s.node, s.index};
}

Tensor Network::turned(const Tensor& constant, const std::vector<int64_t>& order) const {
  const std::lock_guard lock(mutex_);
  auto& entry = turned_[{constant.impl(), order}];
  // The constant is kept, too, so that no other tensor gets its address.
  if (!entry.first.defined()) entry = {constant, interop::permuted_copy(constant, order)};
  return entry.second;
}

Program program_for(const Network& network, const std::vector<Tensor>& like) {
  return Run(network, false).program(like);
}

std::vector<Tensor> run_steps(const Network& network, const std::vector<Tensor>& inputs) {
  return Run(network, true).outputs_of(inputs);
}

void restore(Network& network, const std::string& node, Checkpoint& checkpoint) {
  network.variables = Run(network, true).restore(node, checkpoint);
}

void check_operators(const Network& network) {
  Survey survey(network);
  survey.visit_outputs();
  interop::refuse_unknown(survey.unknown(), "operators");
}

}  // namespace oar::tensorflow
