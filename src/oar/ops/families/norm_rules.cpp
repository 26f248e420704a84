#include "oar/ops/families/norm_rules.h"

#include "oar/ops/core/infer.h"

namespace oar {

DType wide_type(DType dtype) { return size_of(dtype) < 4 ? DType::Float32 : dtype; }

void check_statistic(const Tensor& t, const char* argument, const Shape& shape, DType x) {
  infer::check_shape(t, argument, shape);
  if (t.dtype() != x) infer::check_dtype(t, argument, wide_type(x));
}

int64_t channel_axis_of(const Tensor& x, std::string_view data_format) {
  bool known = false;
  for (const char* name : {"NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"})
    known |= data_format == name;
  user_check(known, ErrorKind::InvalidArgument,
             "data_format is '{}'; it can be NC, NCL, NCHW, NCDHW, NLC, NHWC or NDHWC.",
             data_format);
  user_check(x.rank() >= 2, ErrorKind::InvalidArgument,
             "x has shape {}; it needs a batch and an axis of channels.", to_string(x.dims()));
  return data_format[1] == 'C' ? 1 : x.rank() - 1;
}

}  // namespace oar
