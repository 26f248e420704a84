#include "oar/runtime/cluster.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "oar/base/flags.h"
#include "oar/ir/print.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

constexpr size_t kFewestCalls = 2;

bool only_computes(const Program& program, const Instruction& call, Device device) {
  const Op& op = *call.op;
  if (!op.is_built_in() || op.has(Trait::Random | Trait::Exchanges) ||
      op.has(Trait::DataDependent) || is_update(op) || has_regions(call))
    return false;
  return std::all_of(call.results.begin(), call.results.end(),
                     [&](ValueId id) { return program.type_of(id).device == device; });
}

bool is_view(const Instruction& call) { return call.op->has(Trait::View); }

// A number whose value the text can state.
bool is_number(const Constant& c) { return c.tensor.device().is_cpu() && c.tensor.rank() == 0; }

// Finds out what a stretch reads and what is read of it.
class Borders {
 public:
  explicit Borders(const Program& program)
      : program_(program), last_use_(program.values.size(), 0) {
    const std::vector<Instruction>& calls = program.body.instructions;
    for (size_t i = 0; i < calls.size(); ++i)
      for_each_operand(calls[i], [&](ValueId id) { last_use_[static_cast<size_t>(id)] = i; });
    const auto lives_on = [&](ValueId id) {
      if (id != kNoValue) last_use_[static_cast<size_t>(id)] = calls.size();
    };
    for (ValueId id : program.outputs) lives_on(id);
    for (const State& s : program.states) lives_on(s.written);
  }

  Cluster between(size_t begin, size_t end) const {
    Cluster made{begin, end, {}, {}};
    std::vector<bool> known(program_.values.size(), false);
    for (const Constant& c : program_.constants) known[static_cast<size_t>(c.value)] = is_number(c);
    const std::vector<Instruction>& calls = program_.body.instructions;
    for (size_t i = begin; i < end; ++i) {
      for_each_operand(calls[i], [&](ValueId id) {
        if (known[static_cast<size_t>(id)]) return;
        known[static_cast<size_t>(id)] = true;
        made.inputs.push_back(id);
      });
      for (ValueId id : calls[i].results) {
        known[static_cast<size_t>(id)] = true;
        if (last_use_[static_cast<size_t>(id)] >= end) made.outputs.push_back(id);
      }
    }
    return made;
  }

 private:
  const Program& program_;
  std::vector<size_t> last_use_;
};

// A program of the cluster's instructions alone.
Program cut_out(const Program& program, const Cluster& cluster) {
  Program part;
  part.name = "cluster";
  std::unordered_map<ValueId, ValueId> ids;
  const auto add = [&](ValueId id) {
    const ProgramValue& value = program.values[static_cast<size_t>(id)];
    return ids[id] = part.add_value(value.type, value.name);
  };
  for (ValueId id : cluster.inputs) part.inputs.push_back(add(id));
  std::vector<bool> used(program.values.size(), false);
  for (size_t i = cluster.begin; i < cluster.end; ++i)
    for_each_operand(program.body.instructions[i],
                     [&](ValueId id) { used[static_cast<size_t>(id)] = true; });
  for (const Constant& c : program.constants)
    if (is_number(c) && used[static_cast<size_t>(c.value)])
      part.constants.push_back({add(c.value), c.tensor});
  for (size_t i = cluster.begin; i < cluster.end; ++i) {
    Instruction& call = part.body.instructions.emplace_back(program.body.instructions[i]);
    for (Operand& operand : call.operands)
      for (ValueId& id : operand.ids)
        if (id != kNoValue) id = ids.at(id);
    for (ValueId& id : call.results) id = add(id);
  }
  for (ValueId id : cluster.outputs) part.outputs.push_back(ids.at(id));
  part.renumber();
  return part;
}

std::vector<const oar_tensor*> raw(TensorList tensors) {
  std::vector<const oar_tensor*> list;
  for (const Tensor& t : tensors) list.push_back(t.impl());
  return list;
}

}  // namespace

const Op& cluster_op() {
  static const char* const schema = "cluster(Tensor[] operands) -> Tensor[]";
  static const Op op({.schema = schema, .brief = "Calls that a device has compiled together."},
                     Schema::parse(schema), "runtime", nullptr);
  return op;
}

std::vector<Cluster> clusters_of(const Program& program, Device device) {
  std::vector<Cluster> found;
  if (!devices::type(device.type).compiles_clusters()) return found;
  const std::vector<Instruction>& calls = program.body.instructions;
  const Borders borders(program);
  for (size_t i = 0; i < calls.size(); ++i) {
    size_t begin = i;
    while (i < calls.size() && only_computes(program, calls[i], device)) ++i;
    size_t end = i;
    // Views at either end cost nothing outside.
    while (begin < end && is_view(calls[begin])) ++begin;
    while (begin < end && is_view(calls[end - 1])) --end;
    const auto first = calls.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = calls.begin() + static_cast<std::ptrdiff_t>(end);
    const auto views = static_cast<size_t>(std::count_if(first, last, is_view));
    if (end - begin - views >= kFewestCalls) found.push_back(borders.between(begin, end));
  }
  return found;
}

std::string text_of(const Program& program, const Cluster& cluster) {
  return to_text(cut_out(program, cluster));
}

std::shared_ptr<const oar_kernel> compiled(const Program& program, const Cluster& cluster,
                                           TensorList inputs, TensorList outputs, Device device) {
  const std::string text = text_of(program, cluster);
  const std::vector<const oar_tensor*> in = raw(inputs), out = raw(outputs);
  const oar_cluster_source source{sizeof(source),
                                  text.c_str(),
                                  in.data(),
                                  out.data(),
                                  static_cast<int32_t>(in.size()),
                                  static_cast<int32_t>(out.size())};
  const char* why = nullptr;
  const oar_cluster* made =
      devices::type(device.type).api().compile_cluster(device.index, &source, &why);
  if (tracing(Trace::Passes))
    std::fprintf(stderr, "passes: %s %s a cluster of %zu calls%s%s\n",
                 devices::to_string(device).c_str(), made ? "compiles" : "declines",
                 cluster.end - cluster.begin, why && !made ? ": " : "", why && !made ? why : "");
  if (!made) return nullptr;
  const auto* kernel = new oar_kernel{"cluster", 1, "compiled", nullptr, made->run, made->context};
  return {kernel, [made](const oar_kernel* own) {
            if (made->destroy) made->destroy(made->context);
            delete own;
          }};
}

}  // namespace oar
