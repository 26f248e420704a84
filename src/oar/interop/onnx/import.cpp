#include "oar/interop/onnx/import.h"

#include <algorithm>
#include <optional>
#include <set>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/interrupt.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"
#include "oar/compiler/capture/capture.h"
#include "oar/interop/conversion_error.h"
#include "oar/interop/onnx/call.h"
#include "oar/interop/onnx/parsed.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"
#include "oar/runtime/region_runs.h"

namespace oar::onnx {
namespace {

void collect_unknown(const ModelFile& model, const std::vector<Node>& nodes,
                     std::set<std::string>& unknown) {
  for (const Node& node : nodes) {
    if (!model.find_function(node.domain, node.op) && !find_converter(node.domain, node.op))
      unknown.insert(node.domain.empty() ? node.op : node.domain + "::" + node.op);
    for (const Attribute& a : node.attributes)
      for (const Graph& inner : a.graphs) collect_unknown(model, inner.nodes, unknown);
  }
}

void check_converters(const ModelFile& model) {
  std::set<std::string> unknown;
  collect_unknown(model, model.graph.nodes, unknown);
  for (const Function& f : model.functions) collect_unknown(model, f.nodes, unknown);
  user_check(unknown.empty(), ErrorKind::Unsupported,
             "the model has operators that Oar cannot import yet: {}.",
             join(std::vector<std::string>(unknown.begin(), unknown.end()), ", "));
}

class Importer {
 public:
  // With `steps` no program is made: every node runs at once.
  Importer(const ModelFile& model, const Expected& expected, bool steps)
      : model_(model), expected_(expected) {
    around_.steps = steps;
    if (steps) return;
    capture_.emplace("main");
    capture_->follow_outside();  // weights are states, which files keep apart from the program
  }

  Imported run() {
    Imported imported;
    Outputs outputs = run_nodes(imported.inputs);
    imported.results = outputs.arrangement;
    imported.outputs = std::move(outputs.names);
    scopes_.clear();  // only the program may keep what the nodes computed
    imported.program = capture_->finish(std::move(outputs.tensors));
    return imported;
  }

  interop::Results run_steps() {
    std::vector<std::string> inputs;
    const FreshLayers fresh;
    Outputs outputs = run_nodes(inputs);
    return {std::move(outputs.tensors), outputs.arrangement};
  }

 private:
  // The tensors of the outputs one after the other, and how they make up the outputs.
  struct Outputs {
    std::vector<Tensor> tensors;
    std::vector<std::string> names;
    std::string arrangement;  // empty if all are tensors
    bool has_more = false;    // than tensors

    std::string add(const std::string& name, const Item& made) {
      if (made.is_none || made.sequence) has_more = true;
      if (made.is_none) return "null";
      if (!made.sequence) {
        user_check(made.tensor.defined(), ErrorKind::Unsupported,
                   "the output '{}' is left empty by the node that makes it.", name);
        tensors.push_back(made.tensor);
        names.push_back(name);
        return R"({"tensor": true})";
      }
      std::vector<std::string> parts;
      for (size_t i = 0; i < made.sequence->size(); ++i)
        parts.push_back(add(format("{}.{}", name, i), made.sequence->at(i)));
      return format("[{}]", join(parts, ", "));
    }
  };

  // Appends the names of the inputs that are not constant.
  Outputs run_nodes(std::vector<std::string>& inputs) {
    scopes_.emplace_back();
    for (const auto& [name, tensor] : model_.graph.initializers) add_constant(name, tensor);
    for (const Port& port : model_.graph.inputs) {
      if (scopes_[0].contains(port.name) && !expected_.constant.contains(port.name))
        continue;  // an initializer that a caller could replace
      scopes_[0].erase(port.name);
      const auto given = expected_.structures.find(port.name);
      define(port.name,
             input_of(port, port.name,
                      given == expected_.structures.end() ? Given() : given->second, inputs));
    }
    for (const Node& node : model_.graph.nodes) add_node(node);
    Outputs outputs;
    std::vector<std::string> parts;
    for (const Port& port : model_.graph.outputs)
      parts.push_back(outputs.add(port.name, value(port.name, "an output of the model")));
    if (outputs.has_more) outputs.arrangement = format("[{}]", join(parts, ", "));
    return outputs;
  }

  void add_constant(const std::string& name, const Tensor& tensor) {
    history_of(tensor).name = name;
    Item item(tensor);
    make_known(item);
    define(name, std::move(item));
  }

  static const char* described(const Port& port) {
    return port.kind == Port::Sequence   ? "a sequence"
           : port.kind == Port::Optional ? "an optional"
                                         : "a map or a sparse tensor";
  }

  // Elements of a sequence are inputs of the program.
  Item input_of(const Port& port, const std::string& name, const Given& given,
                std::vector<std::string>& inputs) {
    if (port.kind == Port::Optional && given.kind != Given::None)
      return input_of(*port.element, name, given, inputs);
    Item item;
    if (port.kind == Port::Optional ||
        (port.kind == Port::Sequence && given.kind == Given::Sequence)) {
      item.is_none = port.kind == Port::Optional;
      Values items;
      for (size_t i = 0; i < given.items.size(); ++i)
        items.push_back(input_of(*port.element, format("{}.{}", name, i), given.items[i], inputs));
      item.sequence = std::make_shared<const Values>(std::move(items));
      return item;
    }
    user_check(port.kind == Port::Tensor && given.kind == Given::Tensor, ErrorKind::InvalidArgument,
               "the input '{}' is {}, which does not fit what is given for it.\nhint: Pass {}.",
               name, port.kind == Port::Tensor ? "a tensor" : described(port),
               port.kind == Port::Tensor     ? "a tensor"
               : port.kind == Port::Sequence ? "a list of tensors"
                                             : "models without such inputs");
    if (const auto constant = expected_.constant.find(name); constant != expected_.constant.end()) {
      const FreshLayers fresh;
      if (capture_) history_of(constant->second).name = name;
      item.tensor = constant->second;
      make_known(item);
      if (number_of(port.dtype) != port.number) item.number = port.number;
      return item;
    }
    inputs.push_back(name);
    user_check(capture_, ErrorKind::InvalidArgument, "the input '{}' is missing.", name);
    return tensor_input(port, name);
  }

  Item tensor_input(const Port& port, const std::string& name) {
    InputSpec spec{.dtype = port.dtype, .name = name};
    const auto found = expected_.examples.find(name);
    const Tensor example = found == expected_.examples.end() ? Tensor{} : found->second;
    std::vector<Port::Size> sizes = port.shape;
    if (!port.has_shape) {
      user_check(
          example.defined(), ErrorKind::Unsupported,
          "the file does not say how many axes the input '{}' has.\nhint: Run the model once: it is imported for "
          "inputs like those.",
          name);
      sizes.resize(static_cast<size_t>(example.rank()));
    }
    if (port.name.empty())  // an element: each has sizes of its own, whatever the file calls them
      for (Port::Size& size : sizes) size.symbol.clear();
    for (size_t i = 0; i < sizes.size(); ++i) {
      const bool seen = example.defined() && static_cast<size_t>(example.rank()) == sizes.size();
      const int64_t size = seen ? example.dims()[i].value() : -1;
      if (expected_.fixed_sizes && seen)
        spec.shape.push_back(Dim(size));
      else
        spec.shape.push_back(sizes[i].value >= 0 ? Dim(sizes[i].value)
                                                 : open_size(sizes[i], name, i, size));
    }
    const Capture::Scope scope(*capture_);
    Item item(capture_->input(spec));
    if (number_of(port.dtype) != port.number) item.number = port.number;
    return item;
  }

  Dim open_size(const Port::Size& size, const std::string& input, size_t axis, int64_t seen) {
    const bool is_named = !size.symbol.empty() && size.symbol != "?";
    const std::string name = is_named ? size.symbol : format("{}_{}", input, axis);
    const auto [found, is_new] = symbols_.try_emplace(name);
    // Networks halve images several times and join the halves again, which fits for sizes like this one.
    constexpr int64_t kLikelyBatch = 2, kLikelySize = 320;
    if (is_new)
      found->second = Dim::symbol(name, seen >= 0 ? seen : axis == 0 ? kLikelyBatch : kLikelySize);
    return found->second;
  }

  void add_node(const Node& node) {
    patience_.look();  // a loop may have no end
    std::vector<Item> inputs;
    bool known = true;
    for (const std::string& name : node.inputs) {
      inputs.push_back(name.empty() ? Item() : value(name, node.str()));
      Item& input = inputs.back();
      if (!capture_ && !input.known && input.tensor.defined()) make_known(input);
      known &= name.empty() || !capture_ || is_known(input);
    }
    if (const Function* f = model_.find_function(node.domain, node.op))
      return define_results(node, run_function(*f, node, std::move(inputs)));
    const auto opset = opsets_->find(node.domain);
    const bool has_graphs = std::any_of(node.attributes.begin(), node.attributes.end(),
                                        [](const Attribute& a) { return !a.graphs.empty(); });
    const Call call(node, opset == opsets_->end() ? 1 : opset->second, std::move(inputs), around_);
    if (has_graphs) return define_results(node, convert(call));  // its nodes decide by themselves
    Values results = known ? compute(call) : capture(call);
    for (Item& item : results) {
      if (item.sequence || item.is_none || item.known) continue;
      known&& item.tensor.defined() ? make_known(item) : settle(item);
    }
    define_results(node, std::move(results));
  }

  static bool is_known(const Item& item) {
    if (!item.sequence) return item.known;
    return std::all_of(item.sequence->begin(), item.sequence->end(), is_known);
  }

  void define_results(const Node& node, Values results) {
    user_check(results.size() >= used_outputs(node), ErrorKind::Unsupported,
               "the node {} has {} outputs, of which Oar computes {}.", node.str(),
               node.outputs.size(), results.size());
    for (size_t i = 0; i < std::min(results.size(), node.outputs.size()); ++i)
      if (!node.outputs[i].empty()) define(node.outputs[i], std::move(results[i]));
  }

  // A graph of a node sees the values around it.
  Values run_graph(const Graph& graph, const Values& given) {
    user_check(scopes_.size() < kDeepest, ErrorKind::InvalidArgument,
               "graphs are nested too deep.");
    scopes_.emplace_back();
    const ScopeGuard leave([this] { scopes_.pop_back(); });
    user_check(given.size() <= graph.inputs.size(), ErrorKind::InvalidArgument,
               "the graph '{}' takes {} inputs and is given {}.", graph.name, graph.inputs.size(),
               given.size());
    for (const auto& [name, tensor] : graph.initializers) add_constant(name, tensor);
    for (size_t i = 0; i < given.size(); ++i) {
      scopes_.back().erase(graph.inputs[i].name);
      define(graph.inputs[i].name, given[i]);
    }
    for (const Node& node : graph.nodes) add_node(node);
    Values results;
    for (const Port& port : graph.outputs)
      results.push_back(value(port.name, "an output of the graph"));
    return results;
  }

  // The nodes of a function see its inputs only, and the attributes of the call.
  Values run_function(const Function& f, const Node& call, std::vector<Item> inputs) {
    user_check(functions_++ < kDeepest, ErrorKind::InvalidArgument, "functions call each other.");
    std::vector<Scope> outer = std::exchange(scopes_, std::vector<Scope>(1));
    const auto* opsets = std::exchange(opsets_, &f.opsets);
    const ScopeGuard leave([&] {
      scopes_ = std::move(outer);
      opsets_ = opsets;
      --functions_;
    });
    for (size_t i = 0; i < f.inputs.size(); ++i)
      define(f.inputs[i], i < inputs.size() ? std::move(inputs[i]) : Item());
    for (const Node& node : f.nodes) {
      Node bound = node;
      bind_attributes(bound, f, call);
      add_node(bound);
    }
    Values results;
    for (const std::string& name : f.outputs)
      results.push_back(value(name, "an output of the function " + f.name));
    return results;
  }

  static void bind_attributes(Node& node, const Function& f, const Node& call) {
    std::erase_if(node.attributes, [&](Attribute& a) {
      for (Graph& inner : a.graphs)
        for (Node& one : inner.nodes) bind_attributes(one, f, call);
      if (a.refers_to.empty()) return false;
      const Attribute* given = call.find(a.refers_to);
      for (const Attribute& d : f.defaults)
        if (!given && d.name == a.refers_to) given = &d;
      if (!given) return true;  // left out
      const std::string name = a.name;
      a = *given;
      a.name = name;
      return false;
    });
  }

  static size_t used_outputs(const Node& node) {
    size_t used = node.outputs.size();
    while (used > 0 && node.outputs[used - 1].empty()) --used;
    return used;
  }

  static Values convert(const Call& call) {
    return interop::naming_node(
        [&] { return "the node " + call.node.str(); },
        [&] { return find_converter(call.node.domain, call.node.op)->convert(call); });
  }

  // Inside a region the calls belong to its capture.
  Values capture(const Call& call) {
    return captured([&] { return convert(call); });
  }
  Values captured(const std::function<Values()>& body) {
    if (!capture_ || Capture::current()) return body();
    const Capture::Scope scope(*capture_);
    return body();
  }
  // On plain tensors, also while a region is captured.
  static Values compute(const Call& call) {
    const FreshLayers fresh;
    return convert(call);
  }

  // Sizes that turn out to be numbers are a constant.
  static void settle(Item& item) {
    if (!item.sizes || !item.tensor.defined()) return;
    const FreshLayers fresh;
    std::vector<int64_t> numbers;
    for (const Dim d : *item.sizes) {
      if (d.is_symbolic()) return;
      numbers.push_back(d.value());
    }
    const Shape shape = item.tensor.shape();
    item.tensor = cast(Tensor::from_vector(numbers, shape, DType::Int64), item.tensor.dtype());
    make_known(item);
  }

  // The content is read here, outside of the capture.
  static void make_known(Item& item) {
    const FreshLayers fresh;
    item.known = true;
    item.sizes.reset();
    const Tensor& t = item.tensor;
    if (t.numel().value() > Item::kFew || is_complex(t.dtype())) return;
    const Tensor line = reshape(t, {-1});
    item.numbers = cast(line, DType::Float64).to_vector<double>();
    if (!is_integral(t.dtype())) return;
    item.sizes.emplace();
    // Numbers further below zero would read as open sizes; "before the first element" is all they say.
    constexpr int64_t kLowest = -(int64_t{1} << 62) + 1;
    for (const int64_t v : cast(line, DType::Int64).to_vector<int64_t>())
      item.sizes->push_back(std::max(v, kLowest));
  }

  const Item& value(const std::string& name, const std::string& reader) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    fail(
        ErrorKind::InvalidArgument,
        "{} reads '{}', which nothing before it computes: the graph is not in order, or has a cycle.",
        reader, name);
  }

  void define(const std::string& name, Item item) {
    user_check(scopes_.back().emplace(name, std::move(item)).second, ErrorKind::InvalidArgument,
               "the value '{}' is computed twice.", name);
  }

  using Scope = std::map<std::string, Item>;
  static constexpr size_t kDeepest = 64;
  const ModelFile& model_;
  const Expected& expected_;
  std::optional<Capture> capture_;  // unless every node runs at once
  const std::map<std::string, int64_t>* opsets_ = &model_.opsets;
  std::vector<Scope> scopes_;  // the innermost graph last
  size_t functions_ = 0;       // that are being run
  Patience patience_;
  Surroundings around_{
      [this](const Graph& graph, const Values& given) { return run_graph(graph, given); },
      [this](const std::function<Values()>& body) { return captured(body); },
      [](const Tensor& t) {
        Item item(t);
        make_known(item);
        return item;
      }};
  std::map<std::string, Dim> symbols_;
};

}  // namespace

Imported import_parsed(const ModelFile& model, const Expected& expected) {
  refuse_nested_capture();
  check_converters(model);
  return Importer(model, expected, false).run();
}

interop::Results run_steps(const ModelFile& model, const Expected& given) {
  check_converters(model);
  return Importer(model, given, true).run_steps();
}

Imported import_model(std::string_view file, const std::string& folder, const Expected& expected) {
  return import_parsed(parse_model(file, folder), expected);
}

Tensor read_tensor(std::string_view file) { return parse_tensor(file); }

}  // namespace oar::onnx
