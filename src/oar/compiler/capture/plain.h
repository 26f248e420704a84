// The plain tensors that a capture meets: which value stands for each, which of them share memory,
// and how they were before, so that capture leaves them as it found them.
#pragma once

#include <unordered_map>
#include <vector>

#include "oar/autograd/node.h"
#include "oar/base/api.h"
#include "oar/compiler/capture/cell.h"

namespace OAR_API oar {

class Capture;

class PlainTensors {
 public:
  explicit PlainTensors(Capture& capture) : capture_(capture) {}
  PlainTensors(const PlainTensors&) = delete;
  PlainTensors& operator=(const PlainTensors&) = delete;

  // The place behind a dense tensor, or one of the capture around this one, made when it is first met.
  Intrusive<Cell> cell_of(const Tensor& t);
  // A write to the cell: from now on its tensors are symbolic, so that nobody reads old memory
  // unawares. `t` is the tensor that is written.
  void note_write(Cell& cell, const Tensor& t);

  // Puts every tensor back, once. Answers the names of those that were left with a symbolic
  // gradient.
  std::vector<std::string> restore();

  struct Entry {
    Tensor tensor;
    Tensor original;  // an alias of it as it was when it was met
    Intrusive<Cell> cell;
    Intrusive<Cell> around;    // its place in the capture around this one, kept alive as a key
    ValueId value = kNoValue;  // its content when the program starts; none for a further alias
    bool overwritten = false;  // through other memory that overlaps it
    bool is_input = false;     // the program is given it
    bool adopted = false;      // met after an alias of it
    bool grad_met = false;     // the function asked for its gradient, or set it
    bool grad_seen = false;    // … while it was the one from outside, none or zeros
    bool grad_removed = false;
    // What autograd kept for it.
    bool recording = false;
    Intrusive<Node> node;
    uint32_t index = 0;
    Gradient grad;
    Tensor shown_zeros;  // what the function saw of a gradient of zeros
    // Has the function left another gradient?
    bool has_other_gradient() const;
  };
  std::vector<Entry>& entries() { return entries_; }
  // The entry of a tensor or of an alias of it; none if it was not met.
  Entry* find(const Tensor& t);
  // The entry of the tensor itself, which is met here if it was not; none for a tensor of this capture. A region, with
  // the entry `inner`, may have changed its gradient before.
  Entry* own_entry(const Tensor& t, const Entry* inner = nullptr);

 private:
  Entry& add(const Tensor& t, Intrusive<Cell> cell, ValueId value);
  Intrusive<Cell> cell_by_memory(const Tensor& t);
  Entry& adopt(const Tensor& t, const Intrusive<Cell>& cell);
  Intrusive<Cell> imported(const Tensor& t);
  bool is_outside(const Tensor& t) const;
  void make_symbolic(Entry& entry);

  Capture& capture_;
  bool restored_ = false;
  std::vector<Entry> entries_;
  std::unordered_map<const TensorImpl*, uint32_t> by_tensor_;
  std::unordered_map<const Storage*, std::vector<uint32_t>> by_storage_;
  std::unordered_map<const Cell*, uint32_t> by_cell_;  // of the capture around this one
};

}  // namespace oar
