#pragma once

#include "oar/base/api.h"
#include "oar/device/stream.h"
#include "oar/runtime/instance.h"

namespace OAR_API oar {

// What one run at a time uses: tensors on an arena, and the calls on them.
struct Instance::WorkingSet {
  explicit WorkingSet(Stream stream) : stream(std::move(stream)) {}

  Stream stream;  // that its runs go to
  StoragePtr arena;
  std::vector<Tensor> tensors;  // by place
  struct Prepared {
    std::vector<Value> values;
    std::vector<std::vector<Tensor>> lists;
    std::vector<oar_tensor*> outputs;
    KernelCall call{};
    uint64_t lasting = 0;  // inputs, by bit, that no run writes
  };
  std::vector<Prepared> calls;  // by launch

  // Tells kernels which of the lasting inputs have not changed since this set's previous run.
  void mark_unchanged(bool same) {
    if (same == marked) return;
    for (Prepared& p : calls) p.call.unchanged = same ? p.lasting : 0;
    marked = same;
  }
  // By lane of the running fork: the launch that failed, and how.
  struct Failure {
    int32_t launch = -1;
    std::exception_ptr error;
  };
  std::vector<Failure> failures;
  std::vector<std::pair<StoragePtr, uint32_t>>
      seen;               // states that no run writes, and their versions
  bool complete = false;  // the previous run reached its end
  bool marked = false;
};

}  // namespace oar
