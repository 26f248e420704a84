// Records that are checked: those of users, when they are registered, and the built-in ones, by the tests.
#include "oar/base/string_util.h"
#include "oar/ops/core/program_args.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/sharding/rule.h"

namespace oar {
namespace {

const char* copy_text(std::vector<std::unique_ptr<std::string>>& owner, const std::string& text) {
  owner.push_back(std::make_unique<std::string>(text));
  return owner.back()->c_str();
}

}  // namespace

const Op& Registry::add(OpDef def, std::string family) {
  std::lock_guard lock(mutex_);
  // A run-time op's texts may belong to an interpreter; keep copies.
  for (const char** text :
       {&def.schema, &def.brief, &def.scalar, &def.saves, &def.shard, &def.linear_in, &def.dtypes,
        &def.promotes, &def.numpy, &def.python, &def.onnx, &def.fill, &def.layout.images,
        &def.layout.sizes, &def.layout.axes, &def.layout.weight, &def.epilogue.fused,
        &def.epilogue.sets, &def.epilogue.gradient})
    if (*text) *text = copy_text(texts_, *text);
  const size_t before = ops_.size();
  if (def.schema && def.scalar) ScalarBody::parse(def.scalar, Schema::parse(def.schema));
  if (def.schema && def.shard) ShardRule::parse(def.shard, Schema::parse(def.schema));
  const Op& op = add_locked(std::move(def), std::move(family));
  for (size_t i = before; i < ops_.size(); ++i) ops_[i]->built_in_ = false;
  return op;
}

namespace {
// What is wrong in the fields for the compiler's passes.
std::vector<std::string> compiler_fields(const Op& op) {
  std::vector<std::string> problems;
  const OpDef& def = op.def();
  const auto has = [&](std::string_view name) { return op.schema().index_of(name) >= 0; };
  const auto is_result = [&](std::string_view name) {
    for (const Result& r : op.schema().results)
      if (r.name == name) return true;
    return false;
  };
  const auto demand_names = [&](const char* words, const char* field, bool results) {
    for (const std::string_view word : split(words, ' '))
      if (!word.empty() && !has(word) && !(results && is_result(word)))
        problems.push_back(format("{} names '{}', which the schema does not have", field, word));
  };
  demand_names(def.fill, "fill", false);
  demand_names(def.layout.images, "layout.images", false);
  demand_names(def.layout.sizes, "layout.sizes", false);
  demand_names(def.layout.axes, "layout.axes", false);
  demand_names(def.layout.weight, "layout.weight", true);
  if ((has("channels_last") || has("channel_axis")) && !*def.layout.images)
    problems.emplace_back("says where channels are, but its layout names no images");
  for (const char* other : {def.epilogue.fused, def.epilogue.gradient})
    if (*other && !Registry::get().find(other))
      problems.push_back(format("epilogue names the op '{}', which does not exist", other));
  return problems;
}
}  // namespace

std::vector<std::string> Registry::validate() const {
  std::vector<std::string> problems;
  for (const Op* op : all()) {
    if (!op->is_built_in()) continue;
    const OpDef& def = op->def();
    const auto demand = [&](bool ok, const char* what) {
      if (!ok) problems.push_back(format("{}: {}", op->name(), what));
    };
    const bool computes = static_cast<bool>(def.infer) || def.decompose || def.view;
    demand(computes, "has neither inference, view nor decomposition");
    demand(!def.infer.is_unsupported(), "inference is Unsupported");
    demand(!def.vjp.is_unsupported(), "vjp is Unsupported");
    demand(def.decompose || def.view || !op->kernels(0).empty(),
           "has no CPU kernel and no decomposition");
    demand(def.vjp || def.decompose || op->has(Trait::NoGrad) || op->has(Trait::Random),
           "has no vjp, no decomposition, and is not marked NoGrad");
    demand(def.brief && *def.brief, "has no brief");
    // A program cannot be written down in a record: such ops have tests of their own.
    const bool exempt = op->inplace_of() || op->has(Trait::Inplace) || takes_programs(op->schema());
    demand(exempt || (def.samples && !def.samples().empty()), "has no samples");
    demand(exempt || op->has(Trait::Random) || def.numpy, "has no NumPy reference");
    demand(def.shard || def.plan || def.decompose, "has no sharding rule and no decomposition");
    if (def.shard) ShardRule::parse(def.shard, op->schema());
    demand(!(def.shard && def.plan), "has two sharding rules");
    for (const std::string& problem : compiler_fields(*op)) demand(false, problem.c_str());
  }
  return problems;
}

std::vector<std::string> Registry::unsupported() const {
  std::vector<std::string> list;
  const auto note = [&](const Op* op, const char* rule, const char* why) {
    if (why) list.push_back(format("{}: {}: {}", op->name(), rule, why));
  };
  for (const Op* op : all()) {
    note(op, "infer", op->def().infer.why());
    note(op, "vjp", op->def().vjp.why());
    note(op, "jvp", op->def().jvp.why());
    note(op, "decompose", op->def().decompose.why());
  }
  return list;
}

}  // namespace oar
