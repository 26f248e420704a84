// Which ops the code of an archive calls that no table has.
#include <map>
#include <set>
#include <utility>

#include "oar/interop/pytorch/torchscript/interpreter.h"

namespace oar::pytorch {
namespace {

// The op that a call names, if no table has it.
std::string unknown_in(const Expression& call) {
  const std::string name = op_name(call.items[0].dotted());
  const bool unwraps = name == "prim.unchecked_unwrap_optional" || name == "_unwrap_optional";
  return unwraps || can_convert(name) ? "" : name;
}

void collect(const Expression& e, std::set<std::string>& unknown) {
  if (e.kind == Expression::Call)
    if (const std::string name = unknown_in(e); !name.empty()) unknown.insert(name);
  for (const Expression& item : e.items) collect(item, unknown);
}

void collect(const std::vector<Statement>& body, std::set<std::string>& unknown) {
  for (const Statement& s : body) {
    collect(s.value, unknown);
    collect(s.body, unknown);
    collect(s.otherwise, unknown);
  }
}

constexpr size_t kDeepestCalls = 100;

// Follows the code that every run goes through: not what a branch or a loop may leave out.
class Path {
 public:
  explicit Path(const Archive& archive) : archive_(archive) {}

  void follow(const Function& function, const std::vector<const Box*>& arguments) {
    if (depth_ == kDeepestCalls || !seen_.emplace(&function, arguments).second) return;
    ++depth_;
    Objects objects;
    for (size_t i = 0; i < arguments.size() && i < function.parameters.size(); ++i)
      objects[function.parameters[i].name] = arguments[i];
    for (const Statement& s : function.body) {
      visit(s.value, objects);
      if (s.kind == Statement::Assign && s.targets.size() == 1)
        objects[s.targets[0].text] = object_of(s.value, objects);
      if (s.kind == Statement::Return) break;
    }
    --depth_;
  }

  std::map<std::string, int> unknown;

 private:
  using Objects = std::map<std::string, const Box*>;

  static const Box* attribute(const Box* object, const std::string& name) {
    if (!object) return nullptr;
    const auto found = object->attributes.find(name);
    return found == object->attributes.end() ? nullptr : found->second.box;
  }
  // The part of the module that an expression names.
  static const Box* object_of(const Expression& e, const Objects& objects) {
    if (e.kind == Expression::Name) {
      const auto found = objects.find(e.text);
      return found == objects.end() ? nullptr : found->second;
    }
    if (e.kind == Expression::Attribute) return attribute(object_of(e.items[0], objects), e.text);
    if (e.kind == Expression::Call && e.items.size() == 3 && e.items[0].text == "getattr")
      return attribute(object_of(e.items[1], objects), e.items[2].text);
    return nullptr;
  }

  void visit(const Expression& e, const Objects& objects) {
    const size_t certain = e.kind == Expression::Choice ? 0 : e.items.size();
    for (size_t i = 0; i < certain; ++i) visit(e.items[i], objects);
    if (e.kind != Expression::Call) return;
    if (const std::string name = unknown_in(e); !name.empty()) ++unknown[name];
    const Expression& callee = e.items[0];
    std::vector<const Box*> arguments;
    for (size_t i = 1; i < e.items.size(); ++i) arguments.push_back(object_of(e.items[i], objects));
    if (const Function* function = archive_.function(callee.dotted()))
      return follow(*function, arguments);
    if (callee.kind != Expression::Attribute) return;
    const Box* object = object_of(callee.items[0], objects);
    const Class* described = object ? archive_.class_of(object->type) : nullptr;
    arguments.insert(arguments.begin(), object);
    if (const Function* method = described ? described->method(callee.text) : nullptr)
      follow(*method, arguments);
  }

  const Archive& archive_;
  size_t depth_ = 0;
  std::set<std::pair<const Function*, std::vector<const Box*>>> seen_;
};

}  // namespace

std::map<std::string, int> unknown_ops_on_path(const Archive& archive, const Function& forward) {
  Path path(archive);
  path.follow(forward, {archive.module.box});
  return path.unknown;
}

std::vector<std::string> unknown_ops(const Archive& archive) {
  std::set<std::string> unknown;
  for (const SourceFile& file : archive.files) {
    for (const Function& f : file.functions) collect(f.body, unknown);
    for (const Class& c : file.classes)
      for (const Function& f : c.methods) collect(f.body, unknown);
  }
  return {unknown.begin(), unknown.end()};
}

}  // namespace oar::pytorch
