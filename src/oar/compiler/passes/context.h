// What a pass gets besides the program: the device it compiles for, options, and analyses.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "oar/base/api.h"
#include "oar/compiler/passes/analysis.h"
#include "oar/ir/verify.h"

namespace OAR_API oar {

// The device that will run the program, and what its kernels accept.
struct PassTarget {
  Device device;

  static PassTarget of(const Program& program);
  // Does the device have a kernel for a call on tensors with these layouts?
  bool has_kernel(const Op& op, Args args, TensorList results) const;
  // Are its convolutions faster on images whose channels are last in memory?
  bool prefers_channels_last() const;
};

// Settings of users and tests, from flags unless the caller of the pipeline overrides them.
struct PassOptions {
  std::string off;      // passes that do not run: names, separated by commas, or "all"
  bool verify = false;  // verify the program after each pass that changed it
  int64_t backward_bytes =
      0;  // recompute: keep at most this much for the derivative; 0: any amount

  static PassOptions from_flags();
  bool is_off(std::string_view pass) const;
};

// The context of one program. A pass that needs an analysis after it has changed the program calls changed() first; the
// pipeline does so between passes.
class PassContext {
 public:
  explicit PassContext(const Program& program, PassOptions options = PassOptions::from_flags())
      : target(PassTarget::of(program)), options(std::move(options)), program_(&program) {}

  const PassTarget target;
  const PassOptions options;
  ProgramKind kind = ProgramKind::Whole;

  const Uses& uses() { return computed(uses_); }
  const Lives& lives() { return computed(lives_); }
  const SharedMemory& memory() { return computed(memory_); }
  const Makers& makers() { return computed(makers_); }
  // By value: the constant's tensor, or null.
  const Tensor* constant(ValueId id);
  double cost(const Instruction& call) const { return time_of(*program_, call); }

  // The number that every element of a constant, or of a view of one, equals. Reads constants of up to `most` elements.
  std::optional<double> constant_number(ValueId id, int64_t most);
  // … of a constant of one element, or of a result that a call fills with a number.
  std::optional<double> number(ValueId id);

  void changed();

 private:
  template <class T>
  const T& computed(std::unique_ptr<const T>& analysis) {
    if (!analysis) analysis = std::make_unique<const T>(*program_);
    return *analysis;
  }
  ValueId shown(ValueId id);

  const Program* program_;
  std::unique_ptr<const Uses> uses_;
  std::unique_ptr<const Lives> lives_;
  std::unique_ptr<const SharedMemory> memory_;
  std::unique_ptr<const Makers> makers_;
  std::optional<std::vector<const Tensor*>> constants_;
};

}  // namespace oar
