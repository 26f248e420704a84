// Which ops the code of an archive calls that no table has.
#include <set>

#include "oar/interop/pytorch/torchscript/interpreter.h"

namespace oar::pytorch {
namespace {

void collect(const Expression& e, std::set<std::string>& unknown) {
  if (e.kind == Expression::Call) {
    const std::string name = op_name(e.items[0].dotted());
    if (!name.empty() && name != "prim.unchecked_unwrap_optional" && name != "_unwrap_optional" &&
        !can_convert(name))
      unknown.insert(name);
  }
  for (const Expression& item : e.items) collect(item, unknown);
}

void collect(const std::vector<Statement>& body, std::set<std::string>& unknown) {
  for (const Statement& s : body) {
    collect(s.value, unknown);
    collect(s.body, unknown);
    collect(s.otherwise, unknown);
  }
}

}  // namespace

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
