#include <map>
#include <ostream>

#include "oar/base/string_util.h"
#include "oar/cli/commands.h"
#include "oar/cli/terminal.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/trait_names.h"
#include "oar/ops/core/work.h"
#include "oar/ops/sharding/bind.h"

namespace oar::cli {
namespace {

std::string traits_of(const Op& op) {
  std::vector<std::string_view> found;
  for (const auto& [trait, name] : trait_names())
    if (op.has(trait)) found.push_back(name);
  return found.empty() ? "none" : join(found, ", ");
}

// What a record says about a rule: present, derived from something else, or impossible and why.
template <class Rule>
std::string rule_text(const Rule& rule, std::string_view without) {
  if (rule) return "yes";
  if (rule.is_unsupported()) return format("unsupported: {}", rule.why());
  return std::string(without);
}

std::string kernels_on(const Op& op, const DeviceType& device) {
  std::vector<std::string_view> names;
  for (const oar_kernel* kernel : op.kernels(device.id())) names.emplace_back(kernel->name);
  if (!names.empty()) return join(names, ", ");
  if (op.def().view) return "none needed: a view";
  return op.def().decompose ? "none: runs as its decomposition" : "none";
}

// The stated rule, or the plan of the first sample.
std::string sharding_of(const Op& op, const OpDef& def) {
  if (def.shard != nullptr) return def.shard;
  const std::string_view from = def.plan ? "computed from the shapes" : "derived";
  if (!def.samples || op.inplace_of() != nullptr) return std::string(from);
  const Frame call = def.samples().front().make(op.schema(), DType::Float32, 1);
  return format("{}; of the first sample: {}", from, plan_of(op, call.args()).str());
}

// Where the cost comes from, and the cost of the first sample.
std::string cost_text(const Op& op, const OpDef& def) {
  const std::string_view from = def.cost                   ? "stated"
                                : def.view                 ? "none: a view"
                                : def.scalar               ? "by the scalar body"
                                : op.has(Trait::Moves)     ? "bytes only"
                                : def.decompose            ? "by decomposition"
                                : op.has(Trait::Reduction) ? "one flop per element that is read"
                                                           : "one flop per element";
  if (!def.samples || op.inplace_of() != nullptr || def.samples().empty()) return std::string(from);
  const Frame call = bare_call(def.samples().front().make(op.schema(), DType::Float32, 1).args());
  const Outputs results = dispatch(op, call.args());
  const Cost cost = cost_of(op, call.args(), TensorList(results.data(), results.size()));
  return format("{}; of the first sample: {:.6g} flops, {:.6g} bytes", from, cost.flops,
                cost.bytes);
}

int show_op(std::ostream& out, bool color, const Op& op) {
  // A derived in-place op has the rules of the op it is derived from.
  const OpDef& def = (op.inplace_of() != nullptr ? *op.inplace_of() : op).def();
  out << styled(op.schema().str(), Style::Bold, color) << '\n';
  for (const std::string& line : wrapped(def.brief != nullptr ? def.brief : "", terminal_width()))
    out << line << '\n';
  out << '\n';

  const bool no_grad = op.has(Trait::NoGrad);
  Table table({"", ""});
  const auto row = [&](const char* what, std::string text) { table.add({what, std::move(text)}); };
  row("family", op.family());
  row("schema version", std::to_string(op.schema().version));
  if (op.inplace_of() != nullptr) row("in place of", op.inplace_of()->name());
  if (op.inplace() != nullptr) row("in-place form", op.inplace()->name());
  row("traits", traits_of(op));
  row("dtypes", *def.dtypes != '\0' ? def.dtypes : "any");
  row("inference", rule_text(def.infer, def.decompose ? "by decomposition" : "no"));
  row("decomposition", rule_text(def.decompose, "no: a primitive"));
  if (def.scalar != nullptr) row("each element", def.scalar);
  row("cost", cost_text(op, def));
  row("view", rule_text(def.view, "no"));
  row("vjp", rule_text(def.vjp, no_grad         ? "none needed: the derivative is zero"
                                : def.decompose ? "by decomposition"
                                                : "no"));
  row("jvp", rule_text(def.jvp, no_grad ? "none needed: the derivative is zero" : "derived"));
  row("sharding", sharding_of(op, def));
  for (const DeviceType* device : devices::all())
    row(format("kernels on {}", device->name()).c_str(), kernels_on(op, *device));
  row("samples", def.samples ? std::to_string(def.samples().size()) : "none");
  row("NumPy reference", def.numpy != nullptr ? def.numpy : "none");
  row("in Python", *def.python != '\0' ? def.python : "not public");
  if (*def.onnx != '\0') row("ONNX", def.onnx);
  table.print(out, color);
  return 0;
}

}  // namespace

int show_ops(std::ostream& out, bool color, const OpsQuery& query) {
  const Registry& registry = Registry::get();
  if (!query.name.empty()) return show_op(out, color, registry.at(query.name));

  std::map<std::string, std::vector<const Op*>> families;
  for (const Op* op : registry.all())
    if (op->inplace_of() == nullptr) families[op->family()].push_back(op);
  if (!query.family.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, ops] : families) names.push_back(name);
    const std::string near = nearest_name(query.family, names);
    user_check(families.contains(query.family), ErrorKind::NotFound,
               "there is no family of ops called '{}'{}\nhint: The families are {}.", query.family,
               near.empty() ? "." : format("; did you mean '{}'?", near), join(names, ", "));
  }
  std::size_t count = 0;
  for (const auto& [family, ops] : families) {
    if (!query.family.empty() && family != query.family) continue;
    out << (count > 0 ? "\n" : "") << styled(family, Style::Bold, color) << '\n';
    Table table({"op", "meaning"});
    for (const Op* op : ops) {
      const std::string name = op->name() + (op->inplace() != nullptr ? " (_)" : "");
      table.add({name, op->def().brief != nullptr ? op->def().brief : ""});
    }
    table.print(out, color);
    count += ops.size();
  }
  out << '\n'
      << count
      << " ops. (_) marks those with an in-place form. `oar ops NAME` shows one in full.\n";
  return 0;
}

}  // namespace oar::cli
