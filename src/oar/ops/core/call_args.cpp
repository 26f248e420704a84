#include "oar/ops/core/call_args.h"

#include "oar/base/error.h"

namespace oar {

void require_defined(const Tensor& t, const char* op, const char* parameter) {
  if (t.defined()) [[likely]]
    return;
  OpScope scope(op);
  fail(ErrorKind::InvalidType, "{} must be a tensor, not None.", parameter);
}

}  // namespace oar
