// Capture: runs a function on symbolic tensors and records its calls as a program.
//
//   Program p = capture([&](const std::vector<Tensor>& in) { return std::vector{relu(in[0])}; },
//                       {{DType::Float32, {Dim::symbol("B"), 8}, "x"}});
//
// The function may call backward() and optimiser updates, write in place and take views. Plain
// tensors that it reads become constants or states of the program; after capture they have their old
// content.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "oar/base/api.h"
#include "oar/compiler/capture/cell.h"
#include "oar/compiler/capture/plain.h"
#include "oar/ir/program.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/tensor/hooks.h"

namespace OAR_API oar {

class RecomputedBlock;
struct RecomputedValues;
struct RegionParts;
// By value: what without_gradient makes of it.
using Stops = std::unordered_map<ValueId, ValueId>;

struct InputSpec {
  DType dtype = DType::Float32;
  Shape shape;  // sizes may be symbols
  std::string name = {};
  bool stop_gradient = true;
  // The actual argument, if there is one: a function that writes its memory through an outside tensor
  // is not captured.
  Tensor given = {};
  std::optional<Device> device = {};  // none: that of `given`, or the current one
};

using CapturedFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

// A write to an input changes its value inside the program only; a caller that expects to see it passes false.
Program capture(const CapturedFunction& function, const std::vector<InputSpec>& inputs,
                const std::string& name = "main", bool may_write_inputs = true);

// The gradient of an outside tensor that a captured function reads or changes. What it reads is an
// additional input of the program, what it leaves an additional output, in the order of this list.
struct OutsideGradient {
  enum class End : uint8_t { Same, None, Zeros, Output };
  Tensor leaf;
  bool was_tensor = false, was_zeros = false;  // when the function began
  bool seen = false;                           // did the function see that it was none, or zeros?
  bool read = false;                           // is it an input?
  bool rewritten = false;                      // was it written in place, and is that an output?
  End end = End::Same;                         // its output comes after that one
  Gradient zeros = {};                         // that are left

  // Would the function do the same with this one?
  bool fits(const Gradient* now) const;
};

// An outside tensor whose content the function read, and its version at that time.
struct ContentRead {
  Tensor tensor;
  uint32_t version = 0;
};

// A capture in progress. Used by the dispatcher's layers; others call `capture`.
class Capture {
 public:
  explicit Capture(std::string name);
  // Of a region: tensors of the outer capture become inputs, as do plain ones that outlive
  // it.
  Capture(std::string name, Capture* around);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // While alive, the thread's calls are recorded here. A capture may be left and entered again;
  // a scope inside another capture's replaces it until it ends.
  class Scope {
   public:
    explicit Scope(Capture& capture);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const LaunchNow now_;
    Capture& capture_;
    Capture* const outer_;
    const PayloadCount outer_count_;
    const ReadHook outer_hook_;
    DimAssumptions assumptions_;
    LayersOn layers_;
  };

  static Capture* current();
  // … or an error: a captured tensor has left its capture.
  static Capture& require();

  Tensor input(const InputSpec& spec);
  // Ends the capture, whose scopes have ended. Only the program may keep what the function created, hence the
  // move. Gradients that the function reads from or leaves in outside tensors become inputs and
  // outputs, listed in `gradients`; if that is null, leaving one is an error.
  Program finish(std::vector<Tensor>&& outputs, std::vector<OutsideGradient>* gradients = nullptr);

  // Ends the capture of a region (compiler/capture/regions.h).
  RegionParts finish_region(std::vector<Tensor>&& outputs);
  Capture* around() const { return around_; }
  // The arguments of a recorded call, with cuts of the tape (detach, no_grad) as explicit calls, because
  // a region is differentiated by its program. Used in regions, and on request.
  Frame with_flow(const Op& op, Args args);
  Tensor with_flow(const Tensor& t);
  struct Flow;
  Flow* flow() const { return flow_ended_ ? nullptr : flow_.get(); }
  void follow_flow();
  // Later calls are not cut off. With `keep_stops`, existing marks stay in the program.
  void end_flow(bool keep_stops);
  // Does the handle see later writes to its cell?
  bool is_follower(const Tensor& t) const {
    return followers_.contains(t.impl()) || (around_ && around_->is_follower(t));
  }

  // The derivative computes the values of calls in between again (recomputed.h). Blocks may be nested.
  void begin_recomputed();
  void end_recomputed();
  // A value of a block, computed by calls that are recorded now.
  Tensor recomputed(RecomputedValues& values, ValueId wanted);

  // Written call by call by the static-graph API (builder.h).
  bool is_open() const { return open_; }
  // Outside tensors that are only read are states too, so that runs see later writes to them.
  void follow_outside() { follow_outside_ = true; }
  // The gradient of an outside tensor is read, set to none, or changed in another way.
  enum class GradientUse : uint8_t { Read, SetToNone, Other };
  void meet_gradient_of(const Tensor& leaf, GradientUse use);
  // Does the gradient, a value of this capture, represent one that is selected rows in eager mode?
  bool stands_for_rows(const Tensor& grad);
  const std::vector<ContentRead>& reads() const { return reads_; }
  // Was the value of a symbolic tensor requested? The error may have been caught.
  bool value_asked() const { return value_asked_; }
  // Symbolic tensors that are still alive.
  PayloadCount payloads() const { return payloads_; }

  // Outside tensors that have been read so far and require a gradient.
  std::vector<Tensor> trained();

  // The calls so far, and their constant operands.
  const Program& so_far() const { return program_; }
  std::vector<Constant> constants_so_far();

  uint64_t serial() const { return serial_; }
  ValueId add_value(ValueType type) { return program_.add_value(std::move(type)); }
  // Adds a value for an outside tensor.
  ValueId add_source(const Tensor& t);
  // … and for another tensor in the same memory.
  void add_handle(const Tensor& t);

  // Appends the call and returns its results.
  Outputs record(const Op& op, Args args);
  // The value that a tensor has now.
  ValueId value_of(const Tensor& t);
  std::vector<ValueId> values_of(const std::vector<Tensor>& tensors);
  // An error if the function has written to an input, which had these values: a run would lose the write.
  void check_unwritten(const std::vector<Tensor>& inputs, const std::vector<ValueId>& values);
  // The cell of a tensor, brought up to date.
  Intrusive<Cell> cell_of(const Tensor& t);
  // Brings handles and their histories up to date after writes to what they are views of.
  void refresh(const Tensor& t);
  // A tensor with the value and the history that t has now, whatever is written to t later.
  Tensor snapshot(const Tensor& t);
  // x has this value from now on, as do the tensors that share memory with it.
  void write(const Tensor& x, const Tensor& value);
  // `view` is the result of `op` on args[0].
  void link_view(const Tensor& view, const Op& op, Args args);
  // The handle is about to become another tensor, perhaps a view of itself. Its views keep a separate handle of the
  // old one.
  void leave_to_views(const Tensor& t);
  // The handle sees later writes to its cell.
  void follow(const Tensor& t) { followers_.emplace(t.impl(), t); }

 protected:
  Tensor make_tensor(ValueId value);

  Program program_;
  PlainTensors plain_;
  // Handles created here, kept alive so that no saved alias can get the address of a dead one.
  std::unordered_map<const TensorImpl*, Tensor> followers_;
  std::vector<DimAssumption> learnt_;  // about the symbols, in scopes that have ended
  bool open_ = false;

 private:
  void rederive(Cell& cell, const Tensor* handle);
  void write_base(Cell& cell, const Tensor& value);
  void stop_flow(Instruction& instruction);
  ValueId stopped(ValueId value);
  void go_on_flowing(const Instruction& instruction);
  Stops idle_stops() const;
  void forget_stops(const Stops& stops);
  void collect_lifted(RegionParts& parts);
  std::vector<Tensor> replaced_outside();
  void refuse_writes_to_given();
  void refuse_changed_gradients();
  void collect_tensors();
  void collect_gradients(std::vector<OutsideGradient>& gradients);
  static void note_content_read(const Tensor& t);

  const uint64_t serial_;
  Capture* const around_ = nullptr;
  std::unique_ptr<Flow> flow_;
  bool flow_ended_ = false, keeps_stops_ = true;
  // Shared with the regions inside: their names must differ.
  std::shared_ptr<uint32_t> unknown_sizes_ =
      around_ ? around_->unknown_sizes_ : std::make_shared<uint32_t>(0);
  bool follow_outside_ = false;
  bool value_asked_ = false;
  std::vector<ContentRead> reads_;
  std::unordered_set<ValueId>
      rows_;  // values that represent selected rows, among the first `rows_known_` calls
  size_t rows_known_ = 0;
  std::vector<Tensor> given_;  // the actual arguments of inputs
  PayloadCount payloads_;
  std::unique_ptr<RecomputedBlock> block_;
  int blocks_ = 0;
};

// Gives inputs, states and constants names that the text form can show: their own if they have one.
void name_values(Program& program);

// An error if a capture is running on this thread: its calls would go to two programs.
void refuse_nested_capture();

}  // namespace oar
