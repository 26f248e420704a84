// Calls for training inside of branches and loops, while a program that stays open is written. One such
// call has its counterpart for inference beside it; a branch or loop with some is written twice.
#pragma once

namespace oar::python {

struct TrainingCalls {
  bool left_out;     // their counterparts are made instead
  bool met = false;  // was there any?
};
inline thread_local TrainingCalls* t_training_calls = nullptr;

}  // namespace oar::python
