// The bottom of the dispatcher: from a call on plain tensors to a kernel.
#pragma once

#include "oar/ops/dispatcher.h"

namespace oar {

// The device of a call: that of its tensors, or the current one. An error where they differ.
Device device_of(const Op& op, Args args);

// Refuses dtypes that the record does not list.
void check_dtypes(const Op& op, Args args);

// Do they lie in the same memory, in part at least?
bool shares_elements(const Tensor& a, const Tensor& b);
// Is one of the arguments' memories written while another argument still reads it?
bool overlaps_partially(const Tensor& written, const Tensor& read);

}  // namespace oar
