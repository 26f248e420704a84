// What a call costs, estimated from its sizes: only for choosing between ways to run it.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/registry.h"

namespace OAR_API oar {

// By the record's rule, or derived: a scalar body counts its functions per element, a view costs nothing, moving elements only
// bytes, a decomposition the flops of its parts with the bytes of one kernel. Symbolic sizes count as their hints.
// Results may be tensors without content.
Cost cost_of(const Op& op, Args args, TensorList results);

// Nanoseconds on one thread of a current processor.
double guessed_time(const Op& op, Args args, TensorList results);

// May a library's kernel return other bits on another number of threads? Our own kernels never do.
bool sums_by_threads(const Op& op, Args args);

// The number of elements and the size of an axis (from the end if negative) of a tensor; 0 and 1 if undefined.
double elements(const Tensor& t);
double extent(const Tensor& t, int axis);

// The sum of size(t) over all tensors of a call and its results.
template <class F>
double sum_over(Args args, TensorList results, F&& size) {
  double sum = 0;
  for_each_tensor(args, [&](const Tensor& t) { sum += size(t); });
  for (const Tensor& t : results)
    if (t.defined()) sum += size(t);
  return sum;
}
double bytes_of(Args args, TensorList results);

}  // namespace oar
