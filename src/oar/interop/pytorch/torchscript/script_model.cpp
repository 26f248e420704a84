#include "oar/interop/pytorch/torchscript/script_model.h"

#include "oar/base/error.h"
#include "oar/interop/pytorch/import_parts.h"
#include "oar/interop/pytorch/torchscript/interpreter.h"

namespace oar::pytorch {
namespace {

constexpr int kDeepest = 32;
constexpr size_t kMostArrangements = 64;

const Function& forward_of(const Archive& archive) {
  const Class* described = archive.class_of(archive.module.box->type);
  for (const char* name : {"forward", "forward__0"})
    if (const Function* found = described ? described->method(name) : nullptr)
      if (!found->parameters.empty()) return *found;
  fail(ErrorKind::InvalidArgument, "the module '{}' has no method 'forward'.",
       archive.module.box->type);
}

// The arguments of a call.
class Caller {
 public:
  Caller(Machine& machine, const std::vector<Value>& inputs) : machine_(machine), inputs_(inputs) {}

  Value value_of(const Arranged& one) {
    switch (one.kind) {
      case Arranged::Input:
        return inputs_.at(one.input);
      case Arranged::None:
        return {};
      case Arranged::Bool:
        return Value::flag(one.integer != 0);
      case Arranged::Int:
        return Value::of(one.integer);
      case Arranged::Float:
        return Value::of(one.number);
      case Arranged::Text:
        return Value::of(one.text);
      default:
        break;
    }
    Value made = machine_.heap.make(one.kind == Arranged::List    ? Value::List
                                    : one.kind == Arranged::Tuple ? Value::Tuple
                                                                  : Value::Dict);
    for (size_t i = 0; i < one.items.size(); ++i) {
      Value item = value_of(one.items[i]);
      const bool key = one.kind == Arranged::Dict && i % 2 == 0;
      (key ? made.box->keys : made.box->items).push_back(std::move(item));
    }
    return made;
  }

 private:
  Machine& machine_;
  const std::vector<Value>& inputs_;
};

// What a function returned: tensors and numbers, one after the other, with their places.
void collect_results(const Value& value, const std::string& path, std::vector<Value>& results,
                     std::vector<std::string>& names, int depth) {
  user_check(depth < kDeepest, ErrorKind::Unsupported,
             "what the model returns is nested too deeply.");
  if (value.is_tensor() || value.is_number()) {
    results.push_back(value);
    const bool numbered = path.empty() || (path[0] >= '0' && path[0] <= '9');
    names.push_back(!numbered ? path : path.empty() ? "output" : "output." + path);
    return;
  }
  if (!value.box || value.kind == Value::Object) return;  // nothing, or a text
  for (size_t i = 0; i < value.box->items.size(); ++i) {
    const bool keyed = i < value.box->keys.size() && value.box->keys[i].kind == Value::Text;
    std::string place = path;
    if (!path.empty()) place += '.';
    place += keyed ? value.box->keys[i].text : std::to_string(i);
    collect_results(value.box->items[i], place, results, names, depth + 1);
  }
}

// Where numbers are expected, tensors are read: for a program they are constants.
bool is_number_input(const Arranged& one, size_t input) {
  if (one.kind == Arranged::Input)
    return one.input == input && (one.type.is("int") || one.type.is("float") ||
                                  one.type.is("bool") || one.type.is("number"));
  for (const Arranged& item : one.items)
    if (is_number_input(item, input)) return true;
  return false;
}

Value number_in(const Tensor& given, const std::string& name) {
  user_check(given.numel() == Dim(1) && !is_complex(given.dtype()), ErrorKind::InvalidArgument,
             "the input '{}' is {}, and the model takes one number.", name, given.describe());
  if (is_bool(given.dtype())) return Value::flag(given.item_int() != 0);
  if (is_integral(given.dtype())) return Value::of(given.item_int());
  return Value::of(given.item_double());
}

}  // namespace

ScriptModel::ScriptModel(std::unique_ptr<Archive> archive)
    : archive_(std::move(archive)), forward_(forward_of(*archive_)) {
  for (const Archive::Weight& w : archive_->weights()) names_.emplace(w.tensor.impl(), w.name);
  outputs_ = names_of_results(forward_.result);
  refuse_unknown(unknown_ops_on_path(*archive_, forward_));
}

NamedTensors ScriptModel::weights() const {
  NamedTensors named;
  for (const Archive::Weight& w : archive_->weights())
    if (w.in_state) named[w.name] = w.tensor;
  return named;
}

interop::GraphModel ScriptModel::graph() { return model_of(flat_arrangement(forward_)); }

interop::GraphModel ScriptModel::arranged(std::string_view arguments) {
  const std::string key(arguments);
  const std::lock_guard lock(mutex_);
  if (const auto found = arranged_.find(key); found != arranged_.end()) return found->second;
  if (arranged_.size() == kMostArrangements) arranged_.clear();
  return arranged_.emplace(key, model_of(arrangement_in(forward_, JsonValue::parse(key))))
      .first->second;
}

interop::GraphModel ScriptModel::model_of(Arrangement arrangement) {
  const auto self = shared_from_this();
  const auto shared = std::make_shared<const Arrangement>(std::move(arrangement));
  interop::GraphModel made(
      shared->inputs, outputs_,
      [self, shared](const std::vector<Tensor>& like) {
        interop::Imported imported(self->import(*shared, like));
        for (size_t i = 0; i < like.size(); ++i)
          for (const auto& [name, one] : shared->arguments)
            if (is_number_input(one, i)) imported.constant[i] = like[i];
        return imported;
      },
      [self, shared](const std::vector<Tensor>& inputs) { return self->steps(*shared, inputs); });
  made.name_outputs([self] {
    const std::lock_guard lock(self->mutex_);
    return self->outputs_;
  });
  return made;
}

Value ScriptModel::of_tensor(Machine& machine, const Tensor& tensor) const {
  const auto found = names_.find(tensor.impl());
  return machine.constant(found == names_.end() ? "state" : found->second, tensor);
}

std::vector<Value> ScriptModel::results_of(Machine& machine, const Archive::Copy& copy,
                                           const Arrangement& arrangement,
                                           const std::vector<Value>& inputs) {
  std::vector<Argument> arguments;
  Caller caller(machine, inputs);
  for (const auto& [name, one] : arrangement.arguments)
    arguments.push_back({name, caller.value_of(one)});
  Interpreter interpreter(*archive_, copy.constants, machine);
  const Value made = interpreter.call_method(copy.module, forward_.name, std::move(arguments));
  std::vector<Value> results;
  std::vector<std::string> names;
  collect_results(made, "", results, names, 0);
  outputs_ = names;
  return results;
}

Program ScriptModel::import(const Arrangement& arrangement, const std::vector<Tensor>& like) {
  const std::lock_guard lock(mutex_);
  user_check(!changed_, ErrorKind::Unsupported, "a run before changed the module.");
  Program made = imported([&](Machine& machine) {
    machine.refuses_counts = true;
    std::vector<Value> inputs;
    for (size_t i = 0; i < like.size(); ++i) {
      bool number = false;
      for (const auto& [name, one] : arrangement.arguments) number |= is_number_input(one, i);
      const std::string& name = arrangement.inputs[i].name;
      inputs.push_back(number ? number_in(like[i], name) : machine.input(name, like[i]));
    }
    const Archive::Copy copy =
        archive_->copy(machine.heap, [&](const Tensor& t) { return of_tensor(machine, t); });
    return machine.finish(results_of(machine, copy, arrangement, inputs));
  });
  check_writes(made);
  return made;
}

// A program computes what depends on weights alone once: it must not miss that another program writes them.
void ScriptModel::check_writes(const Program& program) {
  std::set<const void*> written;
  for (const State& state : program.states)
    if (state.written != kNoValue) written.insert(state.tensor.impl());
  if (!written_) written_ = written;
  if (*written_ == written) return;
  changed_ = true;
  arranged_.clear();
  fail(ErrorKind::Unsupported, "some runs write tensors of the module that others do not.");
}

std::vector<Tensor> ScriptModel::steps(const Arrangement& arrangement,
                                       const std::vector<Tensor>& given) {
  const std::lock_guard lock(mutex_);
  Machine machine(Machine::Steps);
  machine.heap.may_change_kept = true;
  std::vector<Value> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    bool number = false;
    for (const auto& [name, one] : arrangement.arguments) number |= is_number_input(one, i);
    const std::string& name = arrangement.inputs[i].name;
    inputs.push_back(number ? number_in(given[i], name) : machine.input(name, given[i]));
  }
  const Archive::Copy copy =
      archive_->copy(machine.heap, [&](const Tensor& t) { return of_tensor(machine, t); });
  const std::vector<Tensor> results =
      machine.results(results_of(machine, copy, arrangement, inputs));
  if (machine.heap.changed_kept) {
    archive_->replace(copy);
    changed_ = true;
    arranged_.clear();  // programs that were made of the module as it was
  }
  return results;
}

Model model_of_script(const ZipFile& zip) {
  const auto model = std::make_shared<ScriptModel>(read_script(zip));
  interop::GraphModel graph = model->graph();
  graph.take_more_than_tensors(
      [model](std::string_view arguments) { return model->arranged(arguments); });
  return {std::move(graph), model->weights()};
}

}  // namespace oar::pytorch
