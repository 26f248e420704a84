// The plain tensors that a capture uses: the value of each, which of them share memory, and their
// original content, which is restored at the end.
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

  // The cell of a dense tensor, or of one of the outer capture; created on first use.
  Intrusive<Cell> cell_of(const Tensor& t);
  // A write to the cell: from now on its tensors are symbolic, so that nothing reads outdated
  // memory. `t` is the tensor that is written.
  void note_write(Cell& cell, const Tensor& t);

  // Restores every tensor, once. Returns the names of those that were left with a symbolic
  // gradient.
  std::vector<std::string> restore();

  struct Entry {
    Tensor tensor;
    Tensor original;  // an alias of it as it was on first use
    Intrusive<Cell> cell;
    Intrusive<Cell> around;    // its cell in the outer capture, kept alive as a key
    ValueId value = kNoValue;  // its content when the program starts; none for another alias
    bool overwritten = false;  // through other memory that overlaps it
    bool is_input = false;     // it is an input of the program
    bool adopted = false;      // used after an alias of it
    bool grad_met = false;     // the function read its gradient, or set it
    bool grad_seen = false;    // … while it was the one from outside, none or zeros
    bool grad_removed = false;
    // Its autograd data.
    bool recording = false;
    Intrusive<Node> node;
    uint32_t index = 0;
    Gradient grad;
    Tensor shown_zeros;  // the zeros that the function read as its gradient
    // Has the function left another gradient?
    bool has_other_gradient() const;
  };
  std::vector<Entry>& entries() { return entries_; }
  // The entry of a tensor or of an alias of it; null if it was not used.
  Entry* find(const Tensor& t);
  // The entry of the tensor itself, created if needed; null for a tensor of this capture. A region, with
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
  std::unordered_map<const Cell*, uint32_t> by_cell_;  // of the outer capture
};

}  // namespace oar
