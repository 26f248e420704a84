// A program that stays open: the static-graph API writes it call by call, runs the calls so far
// and continues.
//
// It is a capture that is left and entered again. Parameters, buffers and moments are states with a
// name; their content is chosen when a draft is created for a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/compiler/capture/capture.h"

namespace OAR_API oar {

// The role of a range of instructions. A copy for inference has only `Forward`.
enum class Role : uint8_t { Forward, Training, Backward, Update };

class Builder : public Capture {
 public:
  explicit Builder(std::string name);
  // Continues an existing program.
  explicit Builder(Program program);
  ~Builder();

  // The builder that records calls now, also inside regions; null in eager mode and other captures.
  static Builder* current();
  // The builder that a variable belongs to; null if it no longer exists, and for other tensors.
  static Builder* of(const Tensor& t);

  // A tensor that persists between runs under this name; the existing one, if any.
  Tensor state(const ValueType& type, const std::string& name);
  // The input, the state, or the value of this name; undefined if there is none.
  Tensor find(const std::string& name);
  // The value that a handle has, which may be one of the program that this one was copied from.
  ValueId resolve(const Tensor& t);

  // Instructions between these calls have this role.
  void begin(Role role);
  void end();
  // In a copy for inference, `inference` replaces `training`.
  void alternative(const Tensor& training, const Tensor& inference);

  // Gradients of this variable are required from now on.
  void note_leaf(const Tensor& t);
  // … but earlier calls read it, so that the tape does not have them?
  bool is_late(const Tensor& t);
  struct Taped {
    std::vector<Tensor> sources, targets;
  };
  // The calls between sources and targets once more, this time with the tape. (Passes merge the two
  // copies.)
  Taped taped(const std::vector<Tensor>& sources, const std::vector<Tensor>& targets);
  // The calls between sources and targets once more, with `replaced` in place of the sources, cast as the thread's
  // autocast says. Calls outside of `ranges` of instructions keep their dtypes.
  std::vector<Tensor> cast_again(const std::vector<Tensor>& sources,
                                 const std::vector<Tensor>& replaced,
                                 const std::vector<Tensor>& targets,
                                 const std::vector<std::pair<size_t, size_t>>& ranges);

  // Increases with every change that affects a draft.
  uint64_t version() const;

  // The content of a state; `read`: the run reads it.
  using Contents = std::function<Tensor(const std::string& name, const ValueType& type, bool read)>;
  struct Draft {
    Program program;
    std::vector<std::string> inputs;  // their names here, in the program's order
  };
  // The program so far with these outputs, reduced to what they and the states need; `pruned`:
  // it writes no states. Variables in `fed` are inputs, even if calls compute them.
  Draft draft(const std::vector<Tensor>& outputs, const Contents& contents, bool pruned = false,
              const std::vector<Tensor>& fed = {});
  // All of it, for reading.
  Program whole() const;

  std::shared_ptr<Builder> clone(bool for_inference) const;

  // Outputs of the program that this one began with.
  const std::vector<Tensor>& outputs() const { return outputs_; }
  const Program& program() const { return program_; }
  std::vector<std::string> state_names() const;
  // The plain tensors that the program only reads.
  std::vector<Constant> constants() const;
  // The handles that have names, in the order of their creation.
  std::vector<Tensor> named() const;
  // … that the host language has an object for.
  std::vector<Tensor> held() const;
  // … that are persistable and require a gradient.
  std::vector<Tensor> trained_variables() const;

 private:
  // By instruction: does it lead from sources to targets, and can it be repeated? `random`: calls that draw numbers can.
  std::vector<bool> calls_between(const std::vector<Tensor>& sources,
                                  const std::vector<Tensor>& targets, bool random);
  // The arguments of a call with the values that are new; `as_recorded`: in the dtypes that the program says.
  Frame frame_of(const Instruction& instruction, const std::unordered_map<ValueId, Tensor>& now,
                 bool as_recorded);

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
  std::vector<size_t> under_way_;  // ranges that have not ended
  std::vector<std::pair<ValueId, ValueId>> alternatives_;
  std::vector<Tensor> outputs_;
  std::unordered_map<ValueId, size_t> leaf_since_;  // the number of instructions at that time
  // Of a copy: the programs it came from, and what became of their values.
  std::vector<uint64_t> origins_;
  std::vector<ValueId> alias_;
};

}  // namespace oar
