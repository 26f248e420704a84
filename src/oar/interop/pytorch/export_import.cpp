// Runs the graph of an archive of torch.export once, on tensors that are captured.
#include <map>

#include "oar/base/error.h"
#include "oar/interop/pytorch/export_file.h"
#include "oar/interop/pytorch/import_parts.h"
#include "oar/interop/pytorch/machine.h"

namespace oar::pytorch {
namespace {

constexpr int kDeepest = 16;

// Ops that run another graph: it is run in place.
bool wraps_graph(std::string_view target) {
  return target == "torch.ops.higher_order.wrap_with_set_grad_enabled" ||
         target == "torch.ops.higher_order.wrap_with_autocast";
}

void count_unknown(const JsonValue& graph, std::map<std::string, int>& unknown, int depth) {
  user_check(depth < kDeepest, ErrorKind::InvalidArgument, "graphs are nested too deeply.");
  for (const JsonValue& node : graph.at("nodes").list()) {
    const std::string& target = node.at("target").text();
    if (wraps_graph(target)) {
      for (const JsonValue& input : node.at("inputs").list())
        if (const JsonValue* inner = input.at("arg").find("as_graph"))
          count_unknown(inner->at("graph"), unknown, depth + 1);
    } else if (!can_convert(table_name(target))) {
      ++unknown[target];
    }
  }
}

class Runner {
 public:
  Runner(const ExportFile& file, Machine& machine) : file_(file), machine_(machine) {}

  Program run(const std::vector<Tensor>& like) {
    Scope scope;
    for (const Weight& w : file_.weights) {
      scope.values[w.value] = machine_.constant(w.name, w.tensor, !is_written(w));
    }
    for (size_t i = 0; i < file_.inputs.size(); ++i)
      scope.values[file_.inputs[i].name] = machine_.input(file_.inputs[i].name, like[i]);
    run_graph(*file_.graph, scope);
    for (const Mutation& m : file_.mutations)
      machine_.write("a buffer", scope.values.at(m.target), scope.get(m.value));
    std::vector<Value> outputs;
    for (const JsonValue* output : file_.outputs) outputs.push_back(value_of(*output, scope));
    return machine_.finish(outputs);
  }

 private:
  struct Scope {
    std::map<std::string, Value, std::less<>> values;
    int depth = 0;

    const Value& get(const std::string& name) const {
      const auto found = values.find(name);
      user_check(found != values.end(), ErrorKind::InvalidArgument,
                 "a node reads '{}', which nothing before it computes.", name);
      return found->second;
    }
  };

  // What a run changes is no constant.
  bool is_written(const Weight& weight) const {
    for (const Mutation& m : file_.mutations)
      if (m.target == weight.value) return true;
    return false;
  }

  // ---- arguments -------------------------------------------------------------------------------

  Value list_of(const JsonValue& list, const Scope& scope,
                Value (Runner::*each)(const JsonValue&, const Scope&)) {
    std::vector<Value> items;
    for (const JsonValue& item : list.list()) items.push_back((this->*each)(item, scope));
    return machine_.heap.make(Value::List, std::move(items));
  }
  Value named(const JsonValue& one, const Scope& scope) { return scope.get(one.at("name").text()); }
  Value names(const JsonValue& list, const Scope& scope) {
    return list_of(list, scope, &Runner::named);
  }
  Value integer(const JsonValue& one, const Scope&) { return Value::of(one.integer()); }
  Value integers(const JsonValue& list, const Scope& scope) {
    return list_of(list, scope, &Runner::integer);
  }
  Value flag(const JsonValue& one, const Scope&) { return Value::flag(one.flag()); }
  // JSON has no infinity: such numbers are texts.
  Value number(const JsonValue& one, const Scope&) {
    if (!one.is_text()) return Value::of(one.number());
    const std::string& text = one.text();
    if (text == "NaN") return Value::of(std::numeric_limits<double>::quiet_NaN());
    user_check(text == "Infinity" || text == "-Infinity", ErrorKind::InvalidArgument,
               "'{}' stands where a number is expected.", text.substr(0, 40));
    const double most = std::numeric_limits<double>::infinity();
    return Value::of(text[0] == '-' ? -most : most);
  }
  Value text(const JsonValue& one, const Scope&) { return Value::of(one.text()); }
  Value symbol(const JsonValue& one, const Scope& scope) {
    const auto [kind, content] = member_of(one);
    if (kind == "as_name") return scope.get(content->text());
    if (kind == "as_int") return integer(*content, scope);
    if (kind == "as_bool") return flag(*content, scope);
    return number(*content, scope);
  }
  Value optional_tensor(const JsonValue& one, const Scope& scope) {
    const auto [kind, content] = member_of(one);
    return kind == "as_tensor" ? named(*content, scope) : Value();
  }

  Value value_of(const JsonValue& argument, const Scope& scope) {
    const auto [kind, content] = member_of(argument);
    using Reader = Value (Runner::*)(const JsonValue&, const Scope&);
    static const std::map<std::string_view, std::pair<Reader, bool>> readers = {
        {"as_tensor", {&Runner::named, false}},
        {"as_tensors", {&Runner::named, true}},
        {"as_int", {&Runner::integer, false}},
        {"as_ints", {&Runner::integer, true}},
        {"as_float", {&Runner::number, false}},
        {"as_floats", {&Runner::number, true}},
        {"as_string", {&Runner::text, false}},
        {"as_strings", {&Runner::text, true}},
        {"as_bool", {&Runner::flag, false}},
        {"as_bools", {&Runner::flag, true}},
        {"as_sym_int", {&Runner::symbol, false}},
        {"as_sym_ints", {&Runner::symbol, true}},
        {"as_sym_bool", {&Runner::symbol, false}},
        {"as_sym_bools", {&Runner::symbol, true}},
        {"as_sym_float", {&Runner::symbol, false}},
        {"as_sym_floats", {&Runner::symbol, true}},
        {"as_optional_tensor", {&Runner::optional_tensor, false}},
        {"as_optional_tensors", {&Runner::optional_tensor, true}},
        {"as_nested_tensors", {&Runner::names, true}},
        {"as_int_lists", {&Runner::integers, true}},
    };
    if (kind == "as_scalar_type") return Value::of(dtype_number(content->integer()));
    if (kind == "as_none" || kind == "as_memory_format" || kind == "as_layout" ||
        kind == "as_device")
      return {};
    const auto found = readers.find(kind);
    user_check(found != readers.end(), ErrorKind::Unsupported,
               "the model has an argument of the kind '{}'.", kind);
    const auto [reader, is_list] = found->second;
    return is_list ? list_of(*content, scope, reader) : (this->*reader)(*content, scope);
  }

  // ---- nodes -----------------------------------------------------------------------------------

  void run_graph(const JsonValue& graph, Scope& scope) {
    user_check(scope.depth < kDeepest, ErrorKind::InvalidArgument, "graphs are nested too deeply.");
    for (const JsonValue& node : graph.at("nodes").list()) run_node(node, scope);
  }

  void run_node(const JsonValue& node, Scope& scope) {
    const std::string& target = node.at("target").text();
    const JsonValue::List& outputs = node.at("outputs").list();
    const Value result = wraps_graph(target) ? run_inner(node, scope) : run_op(node, target, scope);
    if (outputs.size() == 1) return define(outputs[0], result, scope);
    if (outputs.empty()) return;
    user_check(result.is_list() && result.box->items.size() >= outputs.size(),
               ErrorKind::Unsupported, "{} has {} results, of which Oar computes fewer.", target,
               outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) define(outputs[i], result.box->items[i], scope);
  }

  static std::string label(const JsonValue& node, std::string_view target) {
    if (target.starts_with("torch.ops.")) target.remove_prefix(10);
    const JsonValue* name = node.find("name");
    return name && name->is_text() ? format("{} '{}'", target, name->text()) : std::string(target);
  }

  Value run_op(const JsonValue& node, const std::string& target, const Scope& scope) {
    const std::string op = table_name(target);
    const bool has_names = target.starts_with("torch.ops.");
    std::vector<Argument> arguments;
    for (const JsonValue& input : node.at("inputs").list())
      arguments.push_back(
          {has_names ? input.at("name").text() : "", value_of(input.at("arg"), scope)});
    return machine_.call(op, label(node, target), arguments);
  }

  Value run_inner(const JsonValue& node, Scope& scope) {
    const JsonValue* graph = nullptr;
    Scope inner;
    inner.depth = scope.depth + 1;
    size_t next = 0;
    for (const JsonValue& input : node.at("inputs").list()) {
      const JsonValue& arg = input.at("arg");
      if (const JsonValue* found = arg.find("as_graph")) {
        graph = &found->at("graph");
      } else if (graph) {
        const JsonValue::List& parameters = graph->at("inputs").list();
        user_check(next < parameters.size(), ErrorKind::InvalidArgument,
                   "a graph gets more arguments than it takes.");
        define(parameters[next++], value_of(arg, scope), inner);
      }
    }
    user_check(graph, ErrorKind::InvalidArgument, "a node has no graph to run.");
    run_graph(*graph, inner);
    std::vector<Value> results;
    for (const JsonValue& output : graph->at("outputs").list())
      results.push_back(value_of(output, inner));
    return results.size() == 1 ? results[0] : machine_.heap.make(Value::Tuple, results);
  }

  void define(const JsonValue& output, const Value& value, Scope& scope) {
    const auto [kind, content] = member_of(output);
    if (kind == "as_none") return;
    if (kind == "as_tensor") {
      scope.values.insert_or_assign(content->at("name").text(), value);
    } else if (kind.starts_with("as_sym_")) {
      if (const JsonValue* name = content->find("as_name"))
        scope.values.insert_or_assign(name->text(), value);
    } else if (kind == "as_tensors") {
      const JsonValue::List& names = content->list();
      user_check(value.is_list() && value.box->items.size() == names.size(),
                 ErrorKind::InvalidArgument, "a node has another number of results than stated.");
      for (size_t i = 0; i < names.size(); ++i)
        scope.values.insert_or_assign(names[i].at("name").text(), value.box->items[i]);
    } else {
      fail(ErrorKind::Unsupported, "a node has a result of the kind '{}'.", kind);
    }
  }

  const ExportFile& file_;
  Machine& machine_;
};

}  // namespace

Model model_of_export(const ZipFile& zip) {
  const std::shared_ptr<const ExportFile> file = read_export(zip);
  std::map<std::string, int> unknown;
  count_unknown(*file->graph, unknown, 0);
  refuse_unknown(unknown);
  NamedTensors weights;
  for (const Weight& w : file->weights) weights[w.name] = w.tensor;
  const auto import = [file](const std::vector<Tensor>& like) {
    return imported([&](Machine& machine) { return Runner(*file, machine).run(like); });
  };
  return {interop::GraphModel(file->inputs, file->output_names, import), std::move(weights)};
}

}  // namespace oar::pytorch
