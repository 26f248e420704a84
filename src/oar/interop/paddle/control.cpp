// Branches and loops of Paddle's programs.
//
// A region of PIR names its results with a last op, `yield`. A block of a legacy program assigns to variables outside of it.
#include "oar/base/error.h"
#include "oar/compiler/capture/control_flow.h"
#include "oar/interop/paddle/importer.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/shape.h"

namespace oar::paddle {
namespace {

// Names that ops of the block assign, once for each time.
void collect_written(const Block& block, std::vector<std::string>& names) {
  for (const Node& node : block.nodes) {
    for (const Slot& slot : node.outputs)
      names.insert(names.end(), slot.names.begin(), slot.names.end());
    for (const Block& inner : node.blocks) collect_written(inner, names);
  }
}

// What a region returns.
std::vector<std::string> yielded(const Block& block, const Node& node) {
  user_check(!block.nodes.empty() && block.nodes.back().op == "yield", ErrorKind::InvalidArgument,
             "a region of the op {} does not end with a yield.", node.str());
  std::vector<std::string> names;
  for (const Slot& slot : block.nodes.back().inputs)
    names.push_back(slot.names.empty() ? "" : slot.names[0]);
  return names;
}

const std::string& name_at(const Node& node, const std::vector<Slot>& slots, size_t i) {
  user_check(i < slots.size() && !slots[i].names.empty(), ErrorKind::InvalidArgument,
             "the op {} lacks an operand or a result.", node.str());
  return slots[i].names[0];
}

void check_blocks(const Node& node, size_t count) {
  user_check(node.blocks.size() == count, ErrorKind::InvalidArgument,
             "the op {} has {} blocks instead of {}.", node.str(), node.blocks.size(), count);
}

}  // namespace

bool is_control(const Node& node) {
  constexpr std::string_view kControl[] = {"if", "while", "yield", "legacy_if", "legacy_while"};
  return !node.blocks.empty() ||
         std::find(std::begin(kControl), std::end(kControl), node.op) != std::end(kControl);
}

void Importer::add_control(const Node& node) {
  if (node.op == "yield") return;
  std::set<std::string> varying;
  if (model_.legacy) {
    std::vector<std::string> written;
    for (const Block& block : node.blocks) collect_written(block, written);
    std::set<std::string> once;
    for (const std::string& name : written)
      if (!once.insert(name).second || values_.contains(name)) varying.insert(name);
  }
  if (regions_ == 0)
    for (const Block& block : node.blocks) settle_constants(block, varying);
  std::optional<Capture::Scope> scope;
  if (regions_ == 0) scope.emplace(capture_);
  if (node.op == "if") return add_if(node);
  if (node.op == "while") return add_while(node);
  if (node.op == "legacy_if") return add_legacy_if(node);
  if (node.op == "legacy_while") return add_legacy_while(node);
  fail(ErrorKind::Unsupported, "the model has the op {}, whose blocks Oar cannot import.",
       node.written);
}

// Ops inside of a region whose operands are known run before it is captured: later they could not be read.
void Importer::settle_constants(const Block& block, std::set<std::string>& varying) {
  for (const Node& node : block.nodes) {
    for (const Block& inner : node.blocks) settle_constants(inner, varying);
    bool constant = node.blocks.empty() && node.op != "yield";
    for (const Slot& slot : node.inputs)
      for (const std::string& name : slot.names) {
        const auto found = values_.find(name);
        constant &= found != values_.end() && found->second.known && !varying.contains(name);
      }
    for (const Slot& slot : node.outputs)
      for (const std::string& name : slot.names) constant &= !varying.contains(name);
    if (constant) {
      add_node(node);
      continue;
    }
    for (const Slot& slot : node.outputs)
      for (const std::string& name : slot.names) varying.insert(name);
  }
}

// The named results of a block, on other values of these names.
std::vector<Tensor> Importer::run_block(const Block& block, const std::vector<std::string>& results,
                                        const std::vector<Tensor>& arguments,
                                        const std::vector<std::string>& names) {
  user_check(arguments.size() == names.size(), ErrorKind::InvalidArgument,
             "a block of the program takes {} values and is given {}.", names.size(),
             arguments.size());
  const Scope outside = values_;
  ++regions_;
  try {
    for (size_t i = 0; i < names.size(); ++i) define(names[i], Item(arguments[i]));
    for (const Node& node : block.nodes) {
      // What settle_constants has computed needs no call.
      bool done = !node.outputs.empty() && node.blocks.empty();
      for (const Slot& slot : node.outputs)
        for (const std::string& name : slot.names) {
          const auto found = outside.find(name);
          done &= found != outside.end() && found->second.known && values_.at(name).known;
        }
      if (!done) add_node(node);
    }
    std::vector<Tensor> made;
    for (const std::string& name : results) made.push_back(value(name, "a block").tensor);
    values_ = outside;
    --regions_;
    return made;
  } catch (...) {
    values_ = outside;
    --regions_;
    throw;
  }
}

Tensor Importer::truth(const std::string& name, const Node& node) {
  return reshape(value(name, node.str()).tensor, {});
}

void Importer::add_if(const Node& node) {
  check_blocks(node, 2);
  const std::string name = name_at(node, node.inputs, 0);
  const auto branch = [&](const Block& block) {
    return [&] { return run_block(block, yielded(block, node), {}, {}); };
  };
  const std::vector<Tensor> results =
      cond(truth(name, node), branch(node.blocks[0]), branch(node.blocks[1]));
  for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i)
    define(name_at(node, node.outputs, i), Item(results[i]));
}

void Importer::add_while(const Node& node) {
  check_blocks(node, 1);
  const Block& block = node.blocks[0];
  std::vector<Tensor> variables{truth(name_at(node, node.inputs, 0), node)};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Item item = input_of(node, node.inputs[i]);
    user_check(item.given() && !item.is_list, ErrorKind::Unsupported,
               "the loop {} carries something that is no tensor.", node.str());
    variables.push_back(item.tensor);
  }
  const auto test = [](const std::vector<Tensor>& carried) { return carried[0]; };
  const auto body = [&](const std::vector<Tensor>& carried) {
    std::vector<Tensor> next = run_block(block, yielded(block, node),
                                         {carried.begin() + 1, carried.end()}, block.arguments);
    if (!next.empty()) next[0] = reshape(next[0], {});
    return next;
  };
  const std::vector<Tensor> results = while_loop(test, body, std::move(variables));
  for (size_t i = 0; i < node.outputs.size() && i + 1 < results.size(); ++i)
    define(name_at(node, node.outputs, i), Item(results[i + 1]));
}

// A block that runs or does not: variables that exist before it keep their values, others are zeros until a select_input
// leaves them out.
void Importer::add_legacy_if(const Node& node) {
  check_blocks(node, 1);
  const Block& block = node.blocks[0];
  std::vector<std::string> names;
  if (!node.outputs.empty()) names = node.outputs[0].names;
  std::vector<std::pair<std::vector<Dim>, DType>> like(names.size());
  const auto yes = [&] {
    std::vector<Tensor> made = run_block(block, names, {}, {});
    for (size_t i = 0; i < made.size(); ++i)
      like[i] = {{made[i].dims().begin(), made[i].dims().end()}, made[i].dtype()};
    return made;
  };
  const auto no = [&] {
    std::vector<Tensor> kept;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto found = values_.find(names[i]);
      kept.push_back(found != values_.end() ? found->second.tensor
                                            : zeros(like[i].first, like[i].second));
    }
    return kept;
  };
  // `cond` captures its second function first, and `no` returns what is like the results of `yes`.
  const Tensor idle = logical_not(truth(name_at(node, node.inputs, 0), node));
  const std::vector<Tensor> results = cond(idle, no, yes);
  for (size_t i = 0; i < names.size(); ++i) define(names[i], Item(results.at(i)));
}

void Importer::add_legacy_while(const Node& node) {
  check_blocks(node, 1);
  const Block& block = node.blocks[0];
  const std::string condition = name_at(node, node.inputs, 0);
  std::vector<std::string> written, names{condition};
  collect_written(block, written);
  std::set<std::string> taken{condition};
  for (const std::string& name : written)
    if (values_.contains(name) && taken.insert(name).second) names.push_back(name);
  std::vector<Tensor> variables{truth(condition, node)};
  for (size_t i = 1; i < names.size(); ++i) variables.push_back(value(names[i], node.str()).tensor);
  const auto test = [](const std::vector<Tensor>& carried) { return carried[0]; };
  const auto body = [&](const std::vector<Tensor>& carried) {
    std::vector<Tensor> next = run_block(block, names, carried, names);
    next[0] = reshape(next[0], {});
    return next;
  };
  const std::vector<Tensor> results = while_loop(test, body, std::move(variables));
  for (size_t i = 0; i < names.size(); ++i) define(names[i], Item(results.at(i)));
}

}  // namespace oar::paddle
