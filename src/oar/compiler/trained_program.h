// A captured function as one step on the tape: one program for forward, another for backward.
#pragma once

#include "oar/base/api.h"
#include "oar/compiler/capture/joint.h"
#include "oar/compiler/executor.h"

namespace OAR_API oar {

// A gradient of the backward half that is returned as selected rows.
struct RowsOutput {
  size_t values, numbers;  // indices among the half's outputs
  Shape shape;             // of the whole
};

class TrainedProgram {
 public:
  explicit TrainedProgram(const JointProgram& joint);

  // Gradients reach the inputs that require them and the outside tensors that the function reads.
  // Inside a capture or a transform the function's calls are replayed.
  std::vector<Tensor> run(TensorList inputs) const;

  // Why a run on these inputs would differ from the function, or empty: sizes that violate
  // assumptions, or something outside that has changed since.
  std::string misfit(TensorList inputs) const;
  // Runs that change something outside must not overlap.
  bool writes() const;
  // Symbolic tensors that outlive the capture: such a function has to run itself.
  int64_t kept() const { return *parts_->joint.kept; }

  const Program& program() const { return parts_->whole.program(); }  // the function alone
  const Program& forward() const {
    return parts_->forward.program();
  }  // … with what backward reads
  const Program& backward() const { return parts_->backward.program(); }

 private:
  struct Parts {
    explicit Parts(const JointProgram& j);
    Parts(JointProgram j, Halves halves);
    JointProgram joint;
    std::optional<Program> with_stops;  // the function, to differentiate it
    std::vector<RowsOutput> rows;
    Executor whole, forward, backward;
  };
  class Saved;
  std::vector<Tensor> with_gradients(TensorList inputs) const;
  std::vector<Tensor> run_and_set_gradients(TensorList inputs) const;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace oar
