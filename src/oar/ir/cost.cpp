#include "oar/ir/cost.h"

#include "oar/ir/region.h"
#include "oar/ops/core/work.h"

namespace oar {
namespace {

void add(Cost& to, const Cost& more) {
  to.flops += more.flops;
  to.bytes += more.bytes;
  to.products += more.products;
}

}  // namespace

Cost cost_of(const Program& program, const Instruction& call) {
  Cost cost{.bytes = 0};
  if (has_regions(call)) {
    for_each_program(call.attributes.args(),
                     [&](const Closure& c) { add(cost, cost_of(program_of(c))); });
    return cost;
  }
  const auto bare = [&](ValueId id) {
    const ValueType& type = program.type_of(id);
    return Tensor::meta(type.shape, type.dtype);
  };
  const Frame frame =
      with_operands(call.attributes.clone(), call, [&](size_t, ValueId id) { return bare(id); });
  std::vector<Tensor> results;
  for (ValueId id : call.results) results.push_back(bare(id));
  return cost_of(*call.op, frame.args(), results);
}

Cost cost_of(const Program& program) {
  Cost total{.bytes = 0};
  for (const Instruction& call : program.body.instructions) add(total, cost_of(program, call));
  return total;
}

}  // namespace oar
