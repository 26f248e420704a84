#include "oar/tensor/closure.h"

#include "oar/base/error.h"

namespace oar {
namespace {
Closure::Tracer g_tracer = nullptr;
}  // namespace

void Closure::install_tracer(Tracer tracer) { g_tracer = tracer; }

ClosurePtr Closure::trace(const Function& function, TensorList like, const std::string& name) {
  internal_check(g_tracer != nullptr, "nothing is installed that makes programs");
  return g_tracer(function, like, name);
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
