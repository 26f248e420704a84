// A function of tensors as an argument of a call: the branches of a cond, the body of a loop.
//
// Rules of ops call it, differentiate it and derive new ones from it; only the folders above know
// that it is a program.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/intrusive.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

class Program;
class Runner;
class Closure;
using ClosurePtr = Intrusive<const Closure>;
using ClosureList = std::span<const ClosurePtr>;

class Closure : public Payload {
 public:
  using Function = std::function<std::vector<Tensor>(TensorList inputs)>;

  // Its inputs and outputs, as tensors without content.
  virtual const std::vector<Tensor>& inputs() const = 0;
  virtual const std::vector<Tensor>& outputs() const = 0;

  // Through the dispatcher: inside a capture its calls become part of it.
  virtual std::vector<Tensor> operator()(TensorList inputs) const = 0;
  // Prepared for many calls on plain tensors of the right types.
  virtual Function prepared() const = 0;

  // (inputs…, a cotangent for each differentiable output) -> the gradients of the wanted inputs. The
  // cotangents have the types of the outputs, or of `cotangents` if the caller does not know the sizes
  // of the outputs.
  virtual ClosurePtr vjp(const std::vector<bool>& wanted, TensorList cotangents = {}) const = 0;
  // (inputs…, a tangent for each active input) -> the outputs, and the tangents of those that are
  // differentiable.
  virtual ClosurePtr jvp(const std::vector<bool>& active) const = 0;

  virtual bool has_open_sizes() const = 0;
  // The same with other sizes.
  virtual ClosurePtr resized(const std::function<Dim(Dim)>& size_of_dim) const = 0;
  virtual bool draws_random() const = 0;
  virtual std::string str() const = 0;

  // From a function that is called once, on tensors without content like these.
  static ClosurePtr trace(const Function& function, TensorList like, const std::string& name);
};

// What folders above do with programs. They install it at start.
struct ProgramMachine {
  ClosurePtr (*trace)(const Closure::Function& function, TensorList like, const std::string& name);
  std::vector<Tensor> (*replay)(const Program& program, TensorList inputs);
  ClosurePtr (*vjp)(const Program& program, const std::vector<bool>& wanted, TensorList cotangents);
  ClosurePtr (*jvp)(const Program& program, const std::vector<bool>& active);
  // Runs the program; created once, at its first run.
  std::shared_ptr<const Runner> (*executor)(const Program& program);
  Closure::Function (*prepared)(const std::shared_ptr<const Runner>& executor);
};
void install_program_machine(const ProgramMachine& machine);
const ProgramMachine& program_machine();

// ---- as arguments ------------------------------------------------------------------------------

// Tags of values that hold programs. For the host only: no kernel gets one.
inline constexpr int32_t kProgramTag = 11, kProgramsTag = 12;

Value program_value(const ClosurePtr& program);
Value program_value(ClosurePtr&&) = delete;  // would dangle
Value program_value(ClosureList programs);
inline const Closure& as_program(const Value& v) {
  return *static_cast<const Closure*>(reinterpret_cast<const Payload*>(v.integers));
}
ClosureList as_programs(const Value& v);
inline bool holds_programs(const Value& v) { return v.tag == kProgramTag || v.tag == kProgramsTag; }

// Visits every program of a call.
template <class F>
void for_each_program(Args args, F&& body) {
  for (const Value& v : args) {
    if (v.tag == kProgramTag) body(as_program(v));
    if (v.tag == kProgramsTag)
      for (const ClosurePtr& p : as_programs(v)) body(*p);
  }
}

}  // namespace oar
