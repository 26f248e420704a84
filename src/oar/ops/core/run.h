// The bottom of the dispatcher: from a call on plain tensors to a kernel.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

// The device of a call: that of its tensors, or the current one. An error if they differ.
Device device_of(const Op& op, Args args);
// Where the results of an op that moves tensors go: its attribute `device`. None for other ops.
std::optional<Device> moved_to(const Op& op, Args args);

// Rejects dtypes that the record does not list.
void check_dtypes(const Op& op, Args args);

// As infer_results, and rejects results that the call itself could not allocate: negative sizes, more bytes
// than can be addressed. For calls that are only recorded.
Metas infer_types(const Op& op, Args args);

// Raises the errors of inference before a rule relies on the arguments, in every mode. If the op has no inference of
// its own, only its dtypes are checked: its parts are calls that are checked, too.
void check_arguments(const Op& op, Args args);

// Rejects what cannot be written to x: a result of `functional` with this dtype and shape.
void check_fits_in_place(const Op& functional, DType dtype, const Shape& shape, const Tensor& x);

// Do they share memory, at least in part?
bool shares_elements(const Tensor& a, const Tensor& b);
// Is memory of one argument written while another argument still reads it?
bool overlaps_partially(const Tensor& written, const Tensor& read);

}  // namespace oar
