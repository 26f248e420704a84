// Calls that the compiler runs as one.
#include "oar/ops/gen/fused.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"

namespace oar {
namespace {

const OpDef fused_op = {
    .schema = "fused(Tensor[] operands, program body) -> Tensor[]",
    .brief =
        "The results of the body on the operands. The compiler makes such calls for a device that runs all of the "
        "body at once; elsewhere its calls run one by one.",
    .infer = [](const args::fused& a) -> Metas {
      const std::vector<Tensor>& wanted = a.body.inputs();
      user_check(wanted.size() == a.operands.size(), ErrorKind::InvalidArgument,
                 "{} takes {} tensors but got {}.", a.body.str(), wanted.size(), a.operands.size());
      for (size_t i = 0; i < wanted.size(); ++i)
        infer::check_type(a.operands[i], "operands", infer::like(wanted[i]));
      Metas metas;
      for (const Tensor& made : a.body.outputs()) metas.push_back(infer::like(made));
      return metas;
    },
    .decompose = [](const args::fused& a) -> Made { return a.body(a.operands); },
};

}  // namespace

OAR_FAMILY(fused, &fused_op)

}  // namespace oar
