#include "oar/ops/families/loss_rules.h"

#include "oar/ops/gen/reduction.h"

namespace oar {

void check_reduction(std::string_view reduction) {
  user_check(reduction == "mean" || reduction == "sum" || reduction == "none",
             ErrorKind::InvalidArgument, "reduction is '{}'; it can be 'mean', 'sum' or 'none'.",
             reduction);
}

Tensor reduce_loss(const Tensor& loss, std::string_view reduction) {
  check_reduction(reduction);
  if (reduction == "none") return loss;
  return reduction == "mean" ? mean(loss) : sum(loss);
}

}  // namespace oar
