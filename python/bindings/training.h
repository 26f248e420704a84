// Calls for training inside branches and loops, while a program that stays open is written. Outside of
// them such a call is recorded with its counterpart for inference; a branch or loop with some is written twice.
#pragma once

namespace oar::python {

struct TrainingCalls {
  bool left_out;     // their counterparts are recorded instead
  bool met = false;  // was there any?
};
inline thread_local TrainingCalls* t_training_calls = nullptr;

}  // namespace oar::python
