#include "oar/interop/pytorch/torchscript/interpreter.h"

#include "oar/base/error.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"

namespace oar::pytorch {
namespace {

// What the stack bears, and how long a program may get: loops are unrolled.
constexpr int kDeepest = 1000, kMostCalls = 100;
constexpr int64_t kMostSteps = 1000000, kMostStepsAlone = 10000000;

}  // namespace

struct Interpreter::Nested {
  Nested(Interpreter& i, const Frame& frame) : interpreter(i) {
    if (++interpreter.depth_ > kDeepest) interpreter.refuse(frame, "the code is nested too deeply");
  }
  ~Nested() { --interpreter.depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  Interpreter& interpreter;
};

Interpreter::Interpreter(const Archive& archive, std::vector<Value> constants, Machine& machine)
    : archive_(archive),
      machine_(machine),
      constants_(std::move(constants)),
      steps_left_(machine.steps() ? kMostStepsAlone : kMostSteps) {}

// ---- calls -------------------------------------------------------------------------------------

Value Interpreter::call_method(const Value& object, std::string_view name,
                               std::vector<Argument> arguments) {
  const Class* found = object.kind == Value::Object ? archive_.class_of(object.box->type) : nullptr;
  const Function* method = found ? found->method(name) : nullptr;
  user_check(method, ErrorKind::InvalidArgument, "the code of '{}' has no method '{}'.",
             object.box ? object.box->type : object.kind_name(), name);
  arguments.insert(arguments.begin(), {"", object});
  return call_function(*method, std::move(arguments));
}

Value Interpreter::call_function(const Function& function, std::vector<Argument> arguments) {
  Frame frame{.path = function.path, .variables = {}, .result = {}};
  if (++calls_ > kMostCalls) refuse(frame, "functions call each other too deeply");
  const ScopeGuard leave([this] { --calls_; });
  bind(function, std::move(arguments), frame);
  run(function.body, frame);
  return frame.result;
}

void Interpreter::bind(const Function& function, std::vector<Argument> arguments, Frame& frame) {
  size_t next = 0;
  for (Argument& argument : arguments) {
    const std::string* name = argument.name.empty() ? nullptr : &argument.name;
    if (!name) {
      if (next >= function.parameters.size())
        refuse(frame, format("'{}' gets more arguments than it takes", function.name));
      name = &function.parameters[next++].name;
    }
    frame.variables.insert_or_assign(*name, std::move(argument.value));
  }
  for (const Field& p : function.parameters) {
    const auto found = frame.variables.find(p.name);
    if (found != frame.variables.end()) {
      if (p.type.is("float") && found->second.kind == Value::Int)
        found->second = Value::of(found->second.as_number());
      continue;
    }
    if (!p.has_value)
      refuse(frame, format("'{}' does not get its argument '{}'", function.name, p.name));
    frame.variables.emplace(p.name, value_of(p.value, frame));
  }
}

Value Interpreter::new_object(const std::string& type) const {
  Value made = machine_.heap.make(Value::Object);
  made.box->type = type;
  return made;
}

// A function, or a class whose instance is made.
Value Interpreter::call_named(const std::string& name, std::vector<Argument> arguments,
                              Frame& frame) {
  if (const Function* function = archive_.function(name))
    return call_function(*function, std::move(arguments));
  if (name.ends_with(".__new__")) {
    const std::string type = name.substr(0, name.size() - 8);
    if (archive_.class_of(type)) return new_object(type);
  }
  const Class* found = archive_.class_of(name);
  if (!found) refuse(frame, format("the archive has no '{}'", name.substr(0, 120)));
  if (found->base == "NamedTuple") {
    Value made = machine_.heap.make(Value::Tuple);
    made.box->type = name;
    for (Argument& a : arguments) made.box->items.push_back(std::move(a.value));
    return made;
  }
  const Value made = new_object(name);
  call_method(made, "__init__", std::move(arguments));
  return made;
}

std::vector<Argument> Interpreter::arguments_of(const Expression& e, Frame& frame, size_t skipped) {
  std::vector<Argument> arguments;
  for (size_t i = 1 + skipped; i < e.items.size(); ++i)
    arguments.push_back({e.keywords[i - 1], value_of(e.items[i], frame)});
  return arguments;
}

std::string op_name(const std::string& dotted) {
  if (dotted.starts_with("torch.")) return dotted.substr(dotted.rfind('.') + 1);
  for (const std::string_view space : {"ops.aten.", "ops.torchvision."})
    if (dotted.starts_with(space)) return dotted.substr(space.size());
  return dotted.starts_with("ops.") ? dotted.substr(4) : "";
}

Value Interpreter::call_of(const Expression& e, Frame& frame) {
  const Expression& callee = e.items[0];
  const std::string dotted = callee.dotted();
  const std::string first = dotted.substr(0, dotted.find('.'));
  const bool is_variable = !first.empty() && frame.variables.contains(first);
  if (!is_variable && !dotted.empty()) {
    if (const std::string name = op_name(dotted); !name.empty()) return call_op(name, e, frame);
    if (first == "__torch__") return call_named(dotted, arguments_of(e, frame), frame);
    if (callee.kind == Expression::Name) return call_builtin(dotted, e, frame);
  }
  if (callee.kind == Expression::Attribute) {
    const Value object = value_of(callee.items[0], frame);
    if (object.kind == Value::Object)
      return call_method(object, callee.text, arguments_of(e, frame));
    std::vector<Argument> arguments = arguments_of(e, frame);
    arguments.insert(arguments.begin(), {"", object});
    return op(callee.text, arguments, frame);  // x.relu(): older archives
  }
  const Value function = value_of(callee, frame);
  if (function.kind != Value::Name)
    refuse(frame, format("{} is called, which is no function", function.kind_name()));
  return call_named(function.text, arguments_of(e, frame), frame);
}

Value Interpreter::call_op(const std::string& name, const Expression& e, Frame& frame) {
  if (name == "prim.unchecked_unwrap_optional" || name == "_unwrap_optional") {
    const std::vector<Argument> arguments = arguments_of(e, frame);
    if (arguments.size() != 1 || arguments[0].value.is_none())
      refuse(frame, "a value is None that must not be");
    return arguments[0].value;
  }
  std::vector<Argument> arguments = arguments_of(e, frame);
  if (name != "format" || arguments.empty()) return op(name, arguments, frame);
  std::vector<Value> values;  // as many as there are
  for (size_t i = 1; i < arguments.size(); ++i) values.push_back(arguments[i].value);
  return op(name, {arguments[0], {"", machine_.heap.make(Value::List, std::move(values))}}, frame);
}

Value Interpreter::op(const std::string& name, const std::vector<Argument>& arguments,
                      Frame& frame) {
  if (!can_convert(name)) refuse_op(name, frame);
  return machine_.call(name, format("{} ({}:{})", name, frame.path, frame.line), arguments);
}

Value Interpreter::call_builtin(const std::string& name, const Expression& e, Frame& frame) {
  const size_t count = e.items.size() - 1;
  const auto need = [&](size_t wanted) {
    if (count != wanted) refuse(frame, format("'{}' gets {} arguments", name.substr(0, 40), count));
  };
  if (name == "annotate" || name == "unchecked_cast") {
    need(2);
    return annotated(type_of(e.items[1]), value_of(e.items[2], frame), frame);
  }
  if (name == "uninitialized") return {};
  if (name == "getattr") {
    need(2);
    return attribute(value_of(e.items[1], frame), e.items[2].text, frame);
  }
  if (name == "isinstance") {
    need(2);
    const Value value = value_of(e.items[1], frame);
    const Expression& types = e.items[2];
    if (types.kind != Expression::List && types.kind != Expression::Tuple)
      return Value::flag(is_instance(value, type_of(types)));
    bool found = false;
    for (const Expression& one : types.items) found |= is_instance(value, type_of(one));
    return Value::flag(found);
  }
  if (name == "unwrap_optional") return call_op("prim.unchecked_unwrap_optional", e, frame);
  if (name == "rangelist") return op("prim.rangelist", arguments_of(e, frame), frame);
  static constexpr std::string_view kConversions[] = {"int", "float", "bool", "str"};
  for (const std::string_view known : kConversions)
    if (name == known) {
      need(1);
      return op("builtins." + name, arguments_of(e, frame), frame);
    }
  if (name == "fork") {  // nothing runs at the same time
    const std::vector<Argument> arguments = arguments_of(e, frame);
    if (arguments.empty() || arguments[0].value.kind != Value::Name)
      refuse(frame, "'fork' gets no function");
    return call_named(arguments[0].value.text, {arguments.begin() + 1, arguments.end()}, frame);
  }
  refuse(frame, format("'{}' is called, which is not known", name.substr(0, 80)));
}

bool Interpreter::is_instance(const Value& value, const Type& type) const {
  static constexpr std::pair<std::string_view, Value::Kind> kKinds[] = {
      {"Tensor", Value::Tensor}, {"int", Value::Int},     {"float", Value::Float},
      {"bool", Value::Bool},     {"str", Value::Text},    {"List", Value::List},
      {"list", Value::List},     {"Tuple", Value::Tuple}, {"tuple", Value::Tuple},
      {"Dict", Value::Dict},     {"dict", Value::Dict},   {"NoneType", Value::None},
  };
  if (type.is("Optional"))
    return value.is_none() || (!type.arguments.empty() && is_instance(value, type.arguments[0]));
  for (const auto& [name, kind] : kKinds) {
    if (type.name != name) continue;
    if (value.kind != kind) return false;
    const bool uniform = kind == Value::List && !type.arguments.empty();
    return !uniform || value.box->items.empty() ||
           is_instance(value.box->items[0], type.arguments[0]);
  }
  return value.box && value.box->type == type.name;
}

// A tensor of one element becomes the number that is wanted.
Value Interpreter::annotated(const Type& type, Value value, Frame& frame) {
  const bool number = type.is("int") || type.is("float") || type.is("bool");
  if (number && value.is_tensor())
    return op("builtins." + type.name, {{"", std::move(value)}}, frame);
  if (type.is("float") && value.kind == Value::Int) return Value::of(value.as_number());
  return value;
}

// ---- statements --------------------------------------------------------------------------------

Interpreter::After Interpreter::run(const std::vector<Statement>& body, Frame& frame) {
  const Nested nested(*this, frame);
  for (const Statement& s : body)
    if (const After after = run_one(s, frame); after != After::Goes) return after;
  return After::Goes;
}

Interpreter::After Interpreter::run_one(const Statement& s, Frame& frame) {
  frame.line = s.line;
  user_check(--steps_left_ > 0, ErrorKind::Unsupported,
             "the code of the model runs for too many steps to be a program.");
  switch (s.kind) {
    case Statement::Pass:
      return After::Goes;
    case Statement::Value:
      value_of(s.value, frame);
      return After::Goes;
    case Statement::Assign:
      assign(s, frame);
      return After::Goes;
    case Statement::Return:
      frame.result = value_of(s.value, frame);
      return After::Returns;
    case Statement::If:
      return run(is_true(value_of(s.value, frame), frame) ? s.body : s.otherwise, frame);
    case Statement::While:
      return run_while(s, frame);
    case Statement::For:
      return run_for(s, frame);
    case Statement::With:
      return run_with(s, frame);
    case Statement::Break:
      return After::Leaves;
    case Statement::Continue:
      return After::Repeats;
  }
  return After::Goes;
}

Interpreter::After Interpreter::run_while(const Statement& s, Frame& frame) {
  while (is_true(value_of(s.value, frame), frame)) {
    user_check(--steps_left_ > 0, ErrorKind::Unsupported, "a loop of the model does not end.");
    const After after = run(s.body, frame);
    if (after == After::Returns) return after;
    if (after == After::Leaves) break;
  }
  return After::Goes;
}

Interpreter::After Interpreter::run_for(const Statement& s, Frame& frame) {
  std::vector<Value> items;
  int64_t count = 0;
  const bool counts = s.value.kind == Expression::Call && s.value.items[0].dotted() == "range";
  if (counts) {
    if (s.value.items.size() != 2) refuse(frame, "'range' gets not one argument");
    const Value end = annotated({"int", {}}, value_of(s.value.items[1], frame), frame);
    if (end.kind != Value::Int) refuse(frame, "'range' gets no integer");
    count = end.integer;
  } else {
    const Value all = value_of(s.value, frame);
    if (!all.is_list()) refuse(frame, format("a loop goes over {}", all.kind_name()));
    items = all.box->items;
    count = static_cast<int64_t>(items.size());
  }
  for (int64_t i = 0; i < count; ++i) {
    user_check(--steps_left_ > 0, ErrorKind::Unsupported,
               "the code of the model runs for too many steps to be a program.");
    const Value item = counts ? Value::of(i) : items[static_cast<size_t>(i)];
    if (s.targets.size() == 1) {
      assign_to(s.targets[0], item, frame);
    } else {
      const std::vector<Value> parts = unpacked(item, s.targets.size(), frame);
      for (size_t k = 0; k < parts.size(); ++k) assign_to(s.targets[k], parts[k], frame);
    }
    const After after = run(s.body, frame);
    if (after == After::Returns) return after;
    if (after == After::Leaves) break;
  }
  return After::Goes;
}

// What such objects do, switching gradients off above all, concerns no result.
Interpreter::After Interpreter::run_with(const Statement& s, Frame& frame) {
  const Value object = value_of(s.value, frame);
  if (!s.targets.empty()) assign_to(s.targets[0], object, frame);
  return run(s.body, frame);
}

void Interpreter::assign(const Statement& s, Frame& frame) {
  Value value = value_of(s.value, frame);
  if (!s.unpacks) return assign_to(s.targets[0], std::move(value), frame);
  const std::vector<Value> parts = unpacked(value, s.targets.size(), frame);
  for (size_t i = 0; i < parts.size(); ++i) assign_to(s.targets[i], parts[i], frame);
}

std::vector<Value> Interpreter::unpacked(const Value& value, size_t count, Frame& frame) {
  if (!value.is_list()) refuse(frame, format("{} is unpacked", value.kind_name()));
  if (value.box->items.size() != count)
    refuse(frame, format("{} values are unpacked into {}", value.box->items.size(), count));
  return value.box->items;
}

namespace {

bool is_same(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.is_tensor()) return a.tensor.is_same(b.tensor);
  if (a.box) return a.box == b.box;
  return a.integer == b.integer && a.number == b.number && a.text == b.text;
}

}  // namespace

void Interpreter::assign_to(const Expression& target, Value value, Frame& frame) {
  if (target.kind == Expression::Name) {
    frame.variables.insert_or_assign(target.text, std::move(value));
    return;
  }
  if (target.kind == Expression::Item) {
    op("_set_item",
       {{"", value_of(target.items[0], frame)},
        {"", value_of(target.items[1], frame)},
        {"", std::move(value)}},
       frame);
    return;
  }
  if (target.kind != Expression::Attribute) refuse(frame, "something else than a name is assigned");
  const Value object = value_of(target.items[0], frame);
  if (object.kind != Value::Object)
    refuse(frame, format("an attribute of {} is assigned", object.kind_name()));
  Value& place = object.box->attributes[target.text];
  if (is_same(place, value)) return;
  machine_.heap.check_change(
      *object.box, format("the assignment of '{}' ({}:{})", target.text, frame.path, frame.line));
  place = std::move(value);
}

// ---- expressions -------------------------------------------------------------------------------

Value Interpreter::value_of(const Expression& e, Frame& frame) {
  const Nested nested(*this, frame);
  switch (e.kind) {
    case Expression::None:
      return {};
    case Expression::Bool:
      return Value::flag(e.integer != 0);
    case Expression::Int:
      return Value::of(e.integer);
    case Expression::Float:
      return Value::of(e.number);
    case Expression::Text:
      return Value::of(e.text);
    case Expression::Name: {
      const auto found = frame.variables.find(e.text);
      if (found == frame.variables.end())
        refuse(frame, format("'{}' has no value", e.text.substr(0, 80)));
      return found->second;
    }
    case Expression::Attribute:
      return attribute_of(e, frame);
    case Expression::Call:
      return call_of(e, frame);
    case Expression::Item:
      return item_of(e, frame);
    case Expression::Tuple:
      return listed(e, Value::Tuple, frame);
    case Expression::List:
      return listed(e, Value::List, frame);
    case Expression::Dict:
      return dictionary(e, frame);
    case Expression::Not:
      return Value::flag(!is_true(value_of(e.items[0], frame), frame));
    case Expression::Negative:
      return op("neg", {{"", value_of(e.items[0], frame)}}, frame);
    case Expression::Choice:
      return value_of(e.items[is_true(value_of(e.items[1], frame), frame) ? 0 : 2], frame);
  }
  return {};
}

Value Interpreter::listed(const Expression& e, Value::Kind kind, Frame& frame) {
  std::vector<Value> items;
  for (const Expression& item : e.items) items.push_back(value_of(item, frame));
  return machine_.heap.make(kind, std::move(items));
}

Value Interpreter::dictionary(const Expression& e, Frame& frame) {
  const Value made = machine_.heap.make(Value::Dict);
  for (size_t i = 0; i + 1 < e.items.size(); i += 2)
    op("_set_item",
       {{"", made}, {"", value_of(e.items[i], frame)}, {"", value_of(e.items[i + 1], frame)}},
       frame);
  return made;
}

Value Interpreter::attribute_of(const Expression& e, Frame& frame) {
  const std::string dotted = e.dotted();
  const std::string first = dotted.substr(0, dotted.find('.'));
  if (!first.empty() && !frame.variables.contains(first)) {
    if (first == "__torch__") {
      Value made = Value::of(dotted);
      made.kind = Value::Name;
      return made;
    }
    if (dotted.starts_with("CONSTANTS.c")) {
      const std::string number = dotted.substr(11);
      const bool digits = !number.empty() && number.size() < 9 &&
                          number.find_first_not_of("0123456789") == std::string::npos;
      const size_t at = digits ? std::stoul(number) : constants_.size();
      if (at >= constants_.size()) refuse(frame, format("there is no '{}'", dotted.substr(0, 40)));
      return constants_[at];
    }
  }
  return attribute(value_of(e.items[0], frame), e.text, frame);
}

Value Interpreter::attribute(const Value& object, const std::string& name, Frame& frame) {
  if (object.box) {
    const auto found = object.box->attributes.find(name);
    if (found != object.box->attributes.end()) return found->second;
    const Class* described = archive_.class_of(object.box->type);
    if (described && object.kind == Value::Tuple)
      for (size_t i = 0; i < described->fields.size() && i < object.box->items.size(); ++i)
        if (described->fields[i].name == name) return object.box->items[i];
    if (described)
      if (const Field* field = described->field(name); field && field->has_value)
        return value_of(field->value, frame);
    refuse(frame, format("'{}' has no attribute '{}'", object.box->type, name.substr(0, 80)));
  }
  return op("prim." + name, {{"", object}}, frame);
}

Value Interpreter::item_of(const Expression& e, Frame& frame) {
  return op("__getitem__", {{"", value_of(e.items[0], frame)}, {"", value_of(e.items[1], frame)}},
            frame);
}

bool Interpreter::is_true(const Value& value, Frame& frame) {
  const Value made = value.kind == Value::Bool ? value : op("builtins.bool", {{"", value}}, frame);
  return made.integer != 0;
}

// ---- errors ------------------------------------------------------------------------------------

void Interpreter::refuse(const Frame& frame, std::string_view what) const {
  fail(ErrorKind::InvalidArgument, "{}:{}: {}.", frame.path, frame.line, what);
}

// All that the code has: who adds one would ask for the next.
void Interpreter::refuse_op(const std::string& name, const Frame& frame) const {
  std::vector<std::string> others;
  for (const std::string& other : unknown_ops(archive_))
    if (other != name) others.push_back(other);
  fail(ErrorKind::Unsupported, "the model has ops that Oar cannot import yet: {} ({}:{}){}.", name,
       frame.path, frame.line,
       others.empty() ? "" : format("; its code also names {}", join(others, ", ")));
}

}  // namespace oar::pytorch
