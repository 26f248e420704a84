// Labels that are class indices.
#pragma once

#include "oar/backend/cpu/axis.h"

namespace oar::cpu {

inline void check_label(int64_t label, int64_t classes) {
  user_check(
      label >= 0 && label < classes, ErrorKind::OutOfRange,
      "label holds class {}, but there are {} classes.\nhint: Labels range from 0 to {}; pass "
      "ignore_index for one that does not count.",
      label, classes, classes - 1);
}

// body(sample, the position of its class) for those of [begin, end) that count.
template <class Body>
void for_each_picked(const AxisSpan& span, const Converted<int64_t>& label, int64_t ignored,
                     int64_t begin, int64_t end, Body&& body) {
  for (int64_t i = begin; i < end; ++i) {
    if (label[i] == ignored) continue;
    check_label(label[i], span.length);
    body(i, (i / span.inner * span.length + label[i]) * span.inner + i % span.inner);
  }
}

}  // namespace oar::cpu
