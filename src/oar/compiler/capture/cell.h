// What a symbolic tensor holds: a value of the program, and the place that later writes change.
//
// Two levels, because two things are called "the tensor". A handle carries a payload with the value
// it had when it was last looked at; `TensorImpl::alias`, by which the tape saves operands, copies
// that. The cell behind it is the place in memory that eager mode would have: writes give it a new
// value, and views of it look there.
#pragma once

#include <atomic>
#include <memory>

#include "oar/base/api.h"
#include "oar/ir/program.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

// A place of memory, as far as the captured function can tell.
class Cell final : public RefCounted {
 public:
  explicit Cell(ValueId v, Tensor l) : value(v), layout(std::move(l)) {}
  void release() const {
    if (drop_reference()) delete this;
  }
  bool is_view() const { return op != nullptr; }
  bool was_written() const { return version > 0; }

  ValueId value;
  uint32_t version = 0;  // counts new values
  // Sizes (hints for symbolic ones) and strides that eager mode would have: they decide whether a
  // reshape is a view or a copy, and whether elements share memory.
  Tensor layout;

  // Of a view: how it is made from its base.
  Tensor base;
  const Op* op = nullptr;
  Frame args;              // the op's arguments, the base's place empty
  uint32_t seen = 0;       // the base's version that `value` was made from
  uint32_t tape_seen = 0;  // … that the view's history was made from
  // Of a plain tensor's memory: its entries in PlainTensors.
  SmallVector<uint32_t, 1> plain;
};

// Payloads of one capture that are still there. What is left when the capture has ended is held by
// somebody who keeps tensors beyond the run that made them.
using PayloadCount = std::shared_ptr<std::atomic<int64_t>>;
extern thread_local PayloadCount t_payload_count;

class SymbolicPayload final : public Payload {
 public:
  SymbolicPayload(uint64_t c, ValueId v, Intrusive<Cell> place)
      : capture(c), value(v), cell(std::move(place)), count_(t_payload_count) {
    if (count_) ++*count_;
  }
  ~SymbolicPayload() override {
    if (count_) --*count_;
  }
  const uint64_t capture;  // serial number: the capture itself may be gone
  const ValueId value;
  const Intrusive<Cell> cell;

 private:
  const PayloadCount count_;
};

inline const SymbolicPayload& symbolic_payload(const Tensor& t) {
  return static_cast<const SymbolicPayload&>(*t->payload);
}

// The layout that eager mode gives a fresh tensor of this shape.
Tensor fresh_layout(Dims shape);
// The layout of a view of `base`; undefined where eager mode would copy.
Tensor view_layout(const Op& op, Args args, const Tensor& base);
// Does every element have a place of its own?
bool is_injective(const Tensor& layout);

}  // namespace oar
