// What lowering and the pass `expand` both ask of calls and places.
#include "oar/ops/core/run.h"
#include "oar/runtime/lower.h"
#include "oar/tensor/byte_count.h"

namespace oar {

void check_types(const Program& program, const Instruction& call) {
  const Frame frame = with_operands(call.attributes.clone(), call, [&](size_t, ValueId id) {
    const ValueType& type = program.type_of(id);
    return Tensor::meta(type.shape, type.dtype, type.device);
  });
  const LayersOff off(kDispatchMask);
  const Metas metas = infer_types(*call.op, frame.args());
  if (is_update(*call.op)) return;  // their results are the operands
  internal_check(metas.size() == call.results.size(), "{} results, not {}", metas.size(),
                 call.results.size());
  for (size_t i = 0; i < metas.size(); ++i) {
    const ValueType& type = program.type_of(call.results[i]);
    user_check(metas[i].dtype == type.dtype && metas[i].shape == type.shape,
               ErrorKind::InvalidArgument,
               "{} is {} at these sizes, but {} by the program {}.\nhint: Capture the function for "
               "these sizes too.",
               program.label(call.results[i]), ValueType{metas[i].dtype, metas[i].shape, {}}.str(),
               type.str(), program.name);
  }
}

std::vector<ValueId> written_results(const Instruction& update) {
  std::vector<ValueId> results;
  for (const Result& r : update.op->schema().results)
    for (size_t i = 0; i < update.operands.size(); ++i) {
      const Parameter& p = update.op->schema().parameters[i];
      if (!p.written || p.alias != r.alias) continue;
      for (ValueId id : update.operands[i].ids)
        if (id != kNoValue) results.push_back(id);
    }
  return results;
}

bool fills_root(const Lowered& l, int32_t place) {
  const Place& p = l.places[static_cast<size_t>(place)];
  return p.offset == 0 && p.layout.is_contiguous() &&
         l.roots[static_cast<size_t>(p.root)].bytes ==
             byte_count(p.layout->numel, p.layout.dtype());
}

}  // namespace oar
