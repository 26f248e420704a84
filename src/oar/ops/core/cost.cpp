// The cost of a call, by its record or derived from what the record says.
#include "oar/ops/core/program_args.h"
#include "oar/ops/core/work.h"
#include "oar/ops/sharding/bind.h"
#include "oar/ops/sharding/trace.h"

namespace oar {
namespace {

constexpr double kRandomFlops = 10;  // of one number

// The call on tensors without content, with numbers for all sizes: a decomposition may go over a sequence step by step.
Frame at_hints(Args args) {
  const auto known = [](const Tensor& t) {
    Shape shape;
    for (Dim d : t.dims()) shape.push_back(d.hint());
    return Tensor::meta(shape, t.dtype(), t.device());
  };
  Frame frame = bare_call(args);
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& v = args[i];
    if (v.is_tensor()) frame.set_tensor(i, known(v.as_tensor()));
    if (v.tag == OAR_TAG_INT) frame.set(i, Dim::from_word(v.integer).hint());
    if (v.tag == OAR_TAG_INTS) {
      std::vector<int64_t> numbers;
      for (Dim d : v.as_dim_list()) numbers.push_back(d.hint());
      frame.set(i, Value(Ints(numbers)));
    }
    if (!v.is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : v.as_tensors()) list.push_back(t.defined() ? known(t) : t);
    frame.set_tensors(i, std::move(list));
  }
  return frame;
}

// Adds up the calls of a decomposition that is not run.
class CostSum final : public CallReader {
 public:
  explicit CostSum(const Op& op) : op_(op) {}
  Outputs call(const Op& op, Args args) override {
    Outputs results = inferred_results(op, args);
    const Cost cost = cost_of(op, args, results);
    total.flops += cost.flops;
    total.products += cost.products;
    only_views_ &= cost.bytes == 0;
    return results;
  }
  Cost run(Args args) {
    const LayersOff plain(kDispatchMask & ~kPlanning);
    const Frame meta = at_hints(args);
    const ReadingCalls reading(*this);
    op_.def().decompose(meta.args());
    // A reshape of a transposed tensor copies, unless the schema promises a view.
    const std::vector<Result>& results = op_.schema().results;
    if (only_views_ && !results.empty() && results[0].alias) total.bytes = 0;
    return total;
  }
  Cost total;

 private:
  const Op& op_;
  bool only_views_ = true;
};

Cost own_or_derived(const Op& op, Args args, TensorList results) {
  const OpDef& def = op.def();
  if (def.cost) return def.cost({args, results});
  if (def.view) return {.bytes = 0};
  const double size = results.empty() ? 0 : elements(results[0]);
  if (const ScalarBody* body = op.scalar(); body && !body->folds())
    return {.flops = body->flops() * size};
  if (op.has(Trait::Moves)) return {};
  if (op.has(Trait::Random) && !def.decompose) return {.flops = kRandomFlops * size};
  // What programs do is for those to say who can read them; what depends on data cannot be run without it.
  const bool readable = !takes_programs(op.schema()) && !op.has(Trait::DataDependent);
  if (def.decompose && readable) {
    try {
      return CostSum(op).run(args);
    } catch (const Error& error) {  // hints that do not fit together; a rough estimate will do
      if (error.kind() == ErrorKind::Interrupted) throw;
    }
  }
  const bool reduces = op.has(Trait::Reduction);
  return {.flops = sum_over(args, reduces ? TensorList() : results, elements)};
}

}  // namespace

Cost cost_of(const Op& op, Args args, TensorList results) {
  Cost cost = own_or_derived(rules_of(op), args, results);
  if (cost.bytes < 0) cost.bytes = bytes_of(args, results);
  return cost;
}

}  // namespace oar
