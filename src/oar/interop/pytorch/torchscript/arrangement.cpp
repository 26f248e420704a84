// Arguments of a call of TorchScript, and which of them are inputs of the model.
#include "oar/base/error.h"
#include "oar/interop/pytorch/torchscript/script_model.h"

namespace oar::pytorch {
namespace {

constexpr int kDeepest = 32;

const Type& inner_of(const Type& type) {
  const Type* inner = &type;
  while (inner->is("Optional") && !inner->arguments.empty()) inner = &inner->arguments[0];
  return *inner;
}
Type entry_type(const Type& container, size_t at) {
  if (container.arguments.empty()) return {};
  if (container.is("Tuple"))
    return at < container.arguments.size() ? container.arguments[at] : Type{};
  return container.arguments.back();
}

bool is_number(const Type& type) {
  return type.is("int") || type.is("float") || type.is("bool") || type.is("number");
}

interop::Port port_of(const std::string& name, const Type& type) {
  interop::Port port{name, std::nullopt, std::nullopt, {}};
  if (type.is("int")) port.dtype = DType::Int64;
  if (type.is("bool")) port.dtype = DType::Bool;
  return port;
}

class Flat {
 public:
  explicit Flat(Arrangement& made) : made_(made) {}

  Arranged add(const std::string& name, const Type& given, int depth = 0) {
    const Type& type = inner_of(given);
    Arranged one;
    one.type = type;
    if (type.is("Tuple") && depth < kDeepest) {
      one.kind = Arranged::Tuple;
      for (size_t i = 0; i < type.arguments.size(); ++i)
        one.items.push_back(add(format("{}.{}", name, i), type.arguments[i], depth + 1));
    } else if (type.is("List") && depth < kDeepest) {
      one.kind = Arranged::List;
      one.items.push_back(add(name + ".0", entry_type(type, 0), depth + 1));
    } else if (type.is("Tensor") || is_number(type) || type.name.empty()) {
      one.kind = Arranged::Input;
      one.input = made_.inputs.size();
      made_.inputs.push_back(port_of(name, type));
    } else {
      one.kind = Arranged::None;  // a run says what is missing
    }
    return one;
  }

 private:
  Arrangement& made_;
};

class FromJson {
 public:
  explicit FromJson(Arrangement& made) : made_(made) {}

  Arranged add(const std::string& name, const JsonValue& value, const Type& given, int depth = 0) {
    user_check(depth < kDeepest, ErrorKind::InvalidArgument, "arguments are nested too deeply.");
    Arranged one;
    const Type& type = inner_of(given);
    one.type = type;
    if (value.is_list()) {
      one.kind = type.is("Tuple") ? Arranged::Tuple : Arranged::List;
      add_items(one, name, value, depth);
    } else if (value.is_object()) {
      add_object(one, name, value, depth);
    } else {
      add_plain(one, value);
    }
    return one;
  }

 private:
  void add_items(Arranged& one, const std::string& name, const JsonValue& list, int depth) {
    for (size_t i = 0; i < list.list().size(); ++i)
      one.items.push_back(
          add(format("{}.{}", name, i), list.list()[i], entry_type(one.type, i), depth + 1));
  }

  void add_object(Arranged& one, const std::string& name, const JsonValue& value, int depth) {
    if (value.find("tensor")) {
      one.kind = Arranged::Input;
      one.input = made_.inputs.size();
      made_.inputs.push_back({name, std::nullopt, std::nullopt, {}});
    } else if (const JsonValue* tuple = value.find("tuple")) {
      one.kind = one.type.is("List") ? Arranged::List : Arranged::Tuple;
      add_items(one, name, *tuple, depth);
    } else {
      one.kind = Arranged::Dict;
      for (const JsonValue& pair : value.at("dict").list()) {
        const JsonValue::List& parts = pair.list();
        user_check(parts.size() == 2, ErrorKind::InvalidArgument, "an entry is no pair.");
        one.items.push_back(add("", parts[0], {}, depth + 1));
        const std::string key =
            parts[0].is_text() ? parts[0].text() : std::to_string(one.items.size() / 2);
        one.items.push_back(
            add(format("{}.{}", name, key), parts[1], entry_type(one.type, 0), depth + 1));
      }
    }
  }

  static void add_plain(Arranged& one, const JsonValue& value) {
    if (value.is_text()) {
      one.kind = Arranged::Text;
      one.text = value.text();
    } else if (value.is_number()) {
      const bool whole = value.has_integer() && !one.type.is("float");
      one.kind = whole ? Arranged::Int : Arranged::Float;
      one.integer = whole ? value.integer() : 0;
      one.number = value.number();
    } else if (value.is_flag()) {
      one.kind = Arranged::Bool;
      one.integer = value.flag() ? 1 : 0;
    }
  }

  Arrangement& made_;
};

const Field& parameter_named(const Function& forward, const std::string& name) {
  for (size_t i = 1; i < forward.parameters.size(); ++i)
    if (forward.parameters[i].name == name) return forward.parameters[i];
  fail(ErrorKind::InvalidArgument, "forward has no parameter '{}'.", name);
}

void collect_names(const Type& given, const std::string& path, std::vector<std::string>& names,
                   int depth) {
  const Type& type = inner_of(given);
  if (!type.is("Tuple") || depth > kDeepest) {
    names.push_back(path.empty() ? "output" : "output." + path);
    return;
  }
  for (size_t i = 0; i < type.arguments.size(); ++i)
    collect_names(type.arguments[i], path.empty() ? std::to_string(i) : format("{}.{}", path, i),
                  names, depth + 1);
}

}  // namespace

Arrangement flat_arrangement(const Function& forward) {
  Arrangement made;
  Flat flat(made);
  for (size_t i = 1; i < forward.parameters.size(); ++i) {
    const Field& p = forward.parameters[i];
    if (!p.has_value) made.arguments.emplace_back(p.name, flat.add(p.name, p.type));
  }
  return made;
}

Arrangement arrangement_in(const Function& forward, const JsonValue& arguments) {
  Arrangement made;
  FromJson reader(made);
  const JsonValue::List& places = arguments.at("args").list();
  user_check(places.size() < forward.parameters.size(), ErrorKind::InvalidArgument,
             "forward takes {} arguments and is given {}.", forward.parameters.size() - 1,
             places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const Field& p = forward.parameters[i + 1];
    made.arguments.emplace_back(p.name, reader.add(p.name, places[i], p.type));
  }
  for (const auto& [name, value] : arguments.at("kwargs").object()) {
    const Field& p = parameter_named(forward, name);
    for (const auto& [given, one] : made.arguments)
      user_check(given != name, ErrorKind::InvalidArgument, "'{}' is given twice.", name);
    made.arguments.emplace_back(name, reader.add(name, value, p.type));
  }
  return made;
}

std::vector<std::string> names_of_results(const Type& type) {
  std::vector<std::string> names;
  collect_names(type, "", names, 0);
  return names;
}

}  // namespace oar::pytorch
