// The arguments of a fused update.
#pragma once

#include "oar/backend/cpu/loops/blocks.h"

namespace oar::cpu {

// One update's arguments: tensors of parameter i by the position of their list.
class Update {
 public:
  explicit Update(KernelCall& call) : call_(call) {}
  size_t count() const { return call_.arg(0).as_tensors().size(); }
  const oar_tensor* at(int list, size_t i) const { return call_.arg(list).as_tensors()[i].impl(); }
  double number(int i) const { return call_.arg(i).as_double(); }
  bool flag(int i) const { return call_.arg(i).as_bool(); }
  double scalar(int i) const { return scalar_of(call_.in(i)); }
  // body(i, zero of the type that parameter i is updated in).
  template <class Body>
  void each(Body&& body) const {
    for (size_t i = 0; i < count(); ++i)
      in_precision_of(static_cast<DType>(at(0, i)->dtype), [&](auto zero) { body(i, zero); });
  }
  // Reads and writes a number that is kept for parameter i.
  double kept(int list, size_t i) const { return scalar_of(*at(list, i)); }
  void keep(int list, size_t i, double value) const {
    store_element(at(list, i)->data, static_cast<DType>(at(list, i)->dtype), value);
  }

 private:
  KernelCall& call_;
};

}  // namespace oar::cpu
