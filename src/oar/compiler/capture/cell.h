// What a symbolic tensor holds: a value of the program, and the cell that later writes change.
//
// Two levels, because two things are called "the tensor". A handle carries a payload with the value
// it had when it was last read; `TensorImpl::alias`, by which the tape saves operands, copies
// that. Its cell represents the memory that eager mode would have: a write gives it a new
// value, and its views read it there.
#pragma once

#include <atomic>
#include <memory>

#include "oar/base/api.h"
#include "oar/ir/program.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

// A piece of memory, as the captured function sees it.
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

  // Of a view: how it is computed from its base.
  Tensor base;
  const Op* op = nullptr;
  Frame args;              // the op's arguments, without the base
  uint32_t seen = 0;       // the base's version that `value` was computed from
  uint32_t tape_seen = 0;  // … that the view's history was created from
  // Of a plain tensor's memory: its entries in PlainTensors.
  SmallVector<uint32_t, 1> plain;
};

// Payloads of one capture that are still alive. Any that remain after the capture belong to
// code that keeps tensors beyond the run that created them.
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
  const uint64_t capture;  // serial number: the capture itself may have ended
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
// The layout of a view of `base`; undefined if eager mode would copy.
Tensor view_layout(const Op& op, Args args, const Tensor& base);
// Does every element have its own place?
bool is_injective(const Tensor& layout);

}  // namespace oar
