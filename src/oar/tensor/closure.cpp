#include "oar/tensor/closure.h"

#include "oar/base/error.h"

namespace oar {
namespace {
ProgramMachine g_machine{};
}  // namespace

void install_program_machine(const ProgramMachine& machine) { g_machine = machine; }

const ProgramMachine& program_machine() {
  internal_check(g_machine.trace != nullptr, "nothing is installed that runs programs");
  return g_machine;
}

ClosurePtr Closure::trace(const Function& function, TensorList like, const std::string& name) {
  return program_machine().trace(function, like, name);
}

Value program_value(const ClosurePtr& program) {
  Value v;
  v.tag = kProgramTag;
  v.integers = reinterpret_cast<const int64_t*>(static_cast<const Payload*>(program.get()));
  return v;
}

Value program_value(ClosureList programs) {
  Value v;
  v.tag = kProgramsTag;
  v.count = static_cast<int32_t>(programs.size());
  // A handle is one pointer, as for tensors.
  v.integers = reinterpret_cast<const int64_t*>(programs.data());
  return v;
}

ClosureList as_programs(const Value& v) {
  return {reinterpret_cast<const ClosurePtr*>(v.integers), static_cast<size_t>(v.count)};
}

}  // namespace oar
