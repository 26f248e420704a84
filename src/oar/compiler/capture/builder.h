// A program that stays open: the static-graph API writes it call by call, runs what is there so far
// and goes on.
//
// It is a capture that is left and entered again. Parameters, buffers and moments are states with a
// name; what they hold is decided when a draft is made for a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/compiler/capture/capture.h"

namespace OAR_API oar {

// What a stretch of instructions is for. A copy for inference leaves all but `Forward` out.
enum class Role : uint8_t { Forward, Training, Backward, Update };

class Builder : public Capture {
 public:
  explicit Builder(std::string name);
  // Goes on with a program that is there already.
  explicit Builder(Program program);
  ~Builder();

  // The builder that calls go to now, be it through regions; none in eager mode and other captures.
  static Builder* current();
  // The builder that a variable belongs to; none where that is gone, or for other tensors.
  static Builder* of(const Tensor& t);

  // A tensor that lives on between runs under this name; the one that is there, if there is one.
  Tensor state(const ValueType& type, const std::string& name);
  // The input, the state, or the value of this name; undefined where there is none.
  Tensor find(const std::string& name);
  // The value that a handle has, which may be one of the program that this one was copied from.
  ValueId resolve(const Tensor& t);

  // Instructions between these calls have this role.
  void begin(Role role);
  void end();
  // In a copy for inference, `inference` stands for `training`.
  void alternative(const Tensor& training, const Tensor& inference);

  // Gradients of this variable are wanted from now on.
  void note_leaf(const Tensor& t);
  // … but calls that read it were made before, so that the tape knows nothing of them?
  bool is_late(const Tensor& t);
  struct Taped {
    std::vector<Tensor> sources, targets;
  };
  // The calls on the way from sources to targets once more, this time with the tape. (The ones before
  // are the same calls; passes make one of both.)
  Taped taped(const std::vector<Tensor>& sources, const std::vector<Tensor>& targets);

  // Grows with whatever changes what a draft would be.
  uint64_t version() const;

  // The content of a state; `read`: the run will look at what is there.
  using Contents = std::function<Tensor(const std::string& name, const ValueType& type, bool read)>;
  struct Draft {
    Program program;
    std::vector<std::string> inputs;  // their names here, in the program's order
  };
  // The program so far with these outputs, without what they and the states do not need; `pruned`:
  // it writes no states.
  Draft draft(const std::vector<Tensor>& outputs, const Contents& contents, bool pruned = false);
  // All of it, for reading.
  Program whole() const;

  std::shared_ptr<Builder> clone(bool for_inference) const;

  // Outputs of the program that this one began with.
  const std::vector<Tensor>& outputs() const { return outputs_; }
  const Program& program() const { return program_; }
  std::vector<std::string> state_names() const;
  // The plain tensors that the program has met and only reads.
  std::vector<Constant> constants() const;
  // The handles that have names, in the order in which they were made.
  std::vector<Tensor> named() const;
  // … that are persistable and ask for their gradient.
  std::vector<Tensor> trained_variables() const;

 private:
  struct Slot {
    std::string name;
    ValueId value;  // its content when a run starts
    Tensor handle;
  };
  struct Stretch {
    size_t begin, end;
    Role role;
    std::vector<ValueId> states;  // the values of the slots before it
  };

  // The followers that `chosen` returns true for, one for each value.
  template <class F>
  std::vector<Tensor> handles(F&& chosen) const;
  static ValueId written_value(const Slot& slot);
  void add_plain_tensors(Program& program) const;
  void leave_out_training(Program& program, std::vector<ValueId>& alias) const;

  std::vector<Slot> slots_;
  std::vector<Stretch> stretches_;
  std::vector<size_t> under_way_;  // stretches that have not ended
  std::vector<std::pair<ValueId, ValueId>> alternatives_;
  std::vector<Tensor> outputs_;
  std::unordered_map<ValueId, size_t> leaf_since_;  // instructions that were there
  // Of a copy: the programs it came from, and what became of their values.
  std::vector<uint64_t> origins_;
  std::vector<ValueId> alias_;
};

}  // namespace oar
