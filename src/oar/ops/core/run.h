// The bottom of the dispatcher: from a call on plain tensors to a kernel.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

// The device of a call: that of its tensors, or the current one. An error where they differ.
Device device_of(const Op& op, Args args);

// Refuses dtypes that the record does not list.
void check_dtypes(const Op& op, Args args);

// As infer_results, and refuses results that the call itself could not make: negative sizes, more bytes
// than can be addressed. For calls that are only written down.
Metas infer_types(const Op& op, Args args);

// What inference says against the arguments, before a rule takes them for sound: whatever mode the call is
// in. Nothing where the op has no inference of its own, since its parts are calls that are checked.
void check_arguments(const Op& op, Args args);

// Do they lie in the same memory, in part at least?
bool shares_elements(const Tensor& a, const Tensor& b);
// Is one of the arguments' memories written while another argument still reads it?
bool overlaps_partially(const Tensor& written, const Tensor& read);

}  // namespace oar
