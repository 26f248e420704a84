// A captured function as one step on the tape: run forwards as a program, and backwards as another.
#pragma once

#include "oar/compiler/capture/joint.h"
#include "oar/runtime/executor.h"

namespace oar {

class TrainedProgram {
 public:
  explicit TrainedProgram(JointProgram joint);

  // Gradients reach the inputs that ask for them and the tensors outside that the function reads.
  // Inside a capture or a transform the function's calls take part in it instead.
  std::vector<Tensor> run(TensorList inputs) const;

  const Program& program() const { return parts_->whole.program(); }  // the function alone
  const Program& forward() const {
    return parts_->forward.program();
  }  // … with what backward reads
  const Program& backward() const { return parts_->backward.program(); }

 private:
  struct Parts {
    explicit Parts(JointProgram j);
    Parts(JointProgram j, Halves halves);
    JointProgram joint;
    Executor whole, forward, backward;
  };
  class Saved;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace oar
