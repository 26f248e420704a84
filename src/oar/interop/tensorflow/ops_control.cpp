// Constants, variables, calls of functions, branches and loops. What decides is known: in a program because it depends on sizes
// alone, in a run step by step always.
#include "oar/base/error.h"
#include "oar/compiler/capture/control_flow.h"
#include "oar/interop/constants.h"
#include "oar/interop/tensorflow/call.h"
#include "oar/ops/gen/all.h"

namespace oar::tensorflow {
namespace {

constexpr int64_t kMostUnrolled = 256;  // iterations in a program

// ---- values ------------------------------------------------------------------------------------

Items constant_of(const Call& c) {
  const Attribute* value = c.attribute("value");
  if (!value || !value->constant) c.refuse("it has no value");
  const Constant& constant = *value->constant;
  if (!constant.problem.empty()) c.refuse(constant.problem);
  if (constant.tensor.defined()) return {c.around.constant(c.node.name, constant.tensor)};
  Item item;
  item.texts = std::make_shared<const std::vector<std::string>>(constant.texts);
  return {item};
}

// Texts are names of files, which are given otherwise.
Items placeholder(const Call& c) {
  if (c.integer("dtype", 0) != kString) c.refuse("nothing is fed to it");
  Item item;
  item.texts = std::make_shared<const std::vector<std::string>>(1);
  return {item};
}

Items same(const Call& c) { return {c.item(0)}; }
Items all_same(const Call& c) { return c.items(); }
Items nothing(const Call&) { return {}; }

// ---- variables ---------------------------------------------------------------------------------

Items handle_of(const Call& c) {
  Item item;
  item.variable = c.text("shared_name", c.node.name);
  return {item};
}
Items content_of(const Call& c) {
  if (c.item(0).variable.empty()) c.refuse("its input is no variable");
  return {c.around.variable(c.item(0).variable)};
}
// Of graphs in which variables are tensors.
Items old_variable(const Call& c) {
  Item item;
  if (!c.around.restores()) item = c.around.variable(c.node.name);
  item.variable = c.node.name;
  return {item};
}
Items assigned(const Call& c) {
  if (c.item(0).variable.empty()) c.refuse("its input is no variable");
  c.around.assign(c.item(0).variable, c.item(1));
  return {c.item(1)};
}

// Inputs: the checkpoint, the keys, and which part of each.
Items restored(const Call& c) {
  const Item &keys = c.item(1), &parts = c.item(2);
  if (!keys.texts || !parts.texts) c.refuse("its names are no texts");
  Items all;
  for (size_t i = 0; i < keys.texts->size(); ++i) {
    Item item;
    const bool whole = i < parts.texts->size() && parts.texts->at(i).empty();
    if (whole) item.tensor = c.around.restored(keys.texts->at(i));
    item.known = whole;
    all.push_back(item);
  }
  return all;
}

// ---- functions ---------------------------------------------------------------------------------

Items called(const Call& c) { return c.around.call_function(c.text("f"), c.items()); }

// Any number but zero is true.
bool truth_of(const Call& c, const Item& item) {
  if (!item.known || !item.tensor.defined()) {
    c.need_steps("what the model computes decides which way it goes");
    c.refuse("it is decided by no number");
  }
  const std::vector<double> numbers = interop::numbers_in(item.tensor);
  if (numbers.size() != 1) c.refuse("several numbers decide which way it goes");
  return numbers[0] != 0;
}

Items arguments_of(const Call& c) { return {c.items().begin() + 1, c.items().end()}; }

// What decides, as one truth of a program.
Tensor truth_in_program(const Call& c, const Item& item) {
  if (!item.tensor.defined()) c.refuse("it is decided by no number");
  return reshape(cast(item.tensor, DType::Bool), {});
}

std::vector<Tensor> tensors_of(const Call& c, const Items& items) {
  std::vector<Tensor> tensors;
  for (const Item& item : items) {
    if (!item.tensor.defined() || item.list || item.dead)
      c.refuse("a value of it is no tensor of numbers");
    tensors.push_back(item.tensor);
  }
  return tensors;
}

// A part of a program that a run decides on. What cannot be one part is run step by step.
Items in_program(const Call& c, const std::function<std::vector<Tensor>()>& body) {
  if (c.around.steps()) c.refuse("it is decided by no number");
  return c.around.compute(c.node, false, [&] {
    try {
      const std::vector<Tensor> made = body();
      return Items(made.begin(), made.end());
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Interrupted) throw;
      c.refuse(format(
          "what the model computes decides which way it goes, and its ways are no part of a program: {}",
          error.what()));
    }
  });
}

Items branch(const Call& c) {
  if (c.count() == 0) c.refuse("it has no condition");
  if (!c.known(0)) {
    const Items arguments = arguments_of(c);
    const auto way = [&](const char* name) {
      return [&c, &arguments, name] {
        return tensors_of(c, c.around.call_function(c.text(name), arguments));
      };
    };
    return in_program(c, [&] {
      return cond(truth_in_program(c, c.item(0)), way("then_branch"), way("else_branch"));
    });
  }
  return c.around.call_function(c.text(truth_of(c, c.item(0)) ? "then_branch" : "else_branch"),
                                arguments_of(c));
}

Items branch_by_number(const Call& c) {
  const Attribute* branches = c.attribute("branches");
  if (!branches || branches->texts.empty()) c.refuse("it has no branches");
  if (!c.known(0)) c.need_steps("what the model computes decides which way it goes");
  const int64_t wanted = c.integer(0), last = static_cast<int64_t>(branches->texts.size()) - 1;
  return c.around.call_function(
      branches->texts[static_cast<size_t>(wanted < 0 || wanted > last ? last : wanted)],
      arguments_of(c));
}

// A loop of the program. What the body returns as it was is no variable of it, so that its content stays known.
Items looped_in_program(const Call& c, const Items& start) {
  return in_program(c, [&] {
    const Items after = c.around.call_function(c.text("body"), start);
    std::vector<Tensor> carried;
    std::vector<bool> stays;
    for (size_t i = 0; i < start.size(); ++i) {
      stays.push_back(i < after.size() && after[i].tensor.defined() == start[i].tensor.defined() &&
                      after[i].tensor.impl() == start[i].tensor.impl() &&
                      after[i].list == start[i].list);
      if (!stays.back()) carried.push_back(tensors_of(c, {start[i]})[0]);
    }
    const auto items = [&](const std::vector<Tensor>& now) {
      Items all = start;
      size_t next = 0;
      for (size_t i = 0; i < all.size(); ++i)
        if (!stays[i]) all[i] = Item(now[next++]);
      return all;
    };
    const auto test = [&](const std::vector<Tensor>& now) {
      return truth_in_program(c, c.around.call_function(c.text("cond"), items(now)).at(0));
    };
    const auto step = [&](const std::vector<Tensor>& now) {
      const Items made = c.around.call_function(c.text("body"), items(now));
      if (made.size() != start.size()) c.refuse("its body does not return its variables");
      std::vector<Tensor> next;
      for (size_t i = 0; i < made.size(); ++i)
        if (!stays[i]) next.push_back(tensors_of(c, {made[i]})[0]);
      return next;
    };
    const Items end = items(while_loop(test, step, carried));
    return tensors_of(c, end);
  });
}

Items looped(const Call& c) {
  Items variables = c.items();
  for (int64_t i = 0;; ++i) {
    const Items goes_on = c.around.call_function(c.text("cond"), variables);
    if (goes_on.empty()) c.refuse("its condition has no result");
    if (!goes_on[0].known && !c.around.steps()) return looped_in_program(c, variables);
    if (!truth_of(c, goes_on[0])) return variables;
    if (i >= kMostUnrolled) c.need_steps("it has too many iterations to be part of a program");
    variables = c.around.call_function(c.text("body"), variables);
    if (variables.size() != c.count()) c.refuse("its body does not return its variables");
  }
}

// ---- branches of old graphs --------------------------------------------------------------------

Items switched(const Call& c) {
  const bool yes = truth_of(c, c.item(1));
  Item none;
  none.dead = true;
  return yes ? Items{none, c.item(0)} : Items{c.item(0), none};
}

Items merged(const Call& c) {
  for (size_t i = 0; i < c.count(); ++i) {
    if (c.item(i).dead) continue;
    Item place(Tensor::scalar(static_cast<int64_t>(i), DType::Int32));
    place.known = true;
    return {c.item(i), place};
  }
  Item none;
  none.dead = true;
  return {none};
}

constexpr Converter kConverters[] = {
    {"Const", constant_of, Converter::Leads},
    {"HostConst", constant_of, Converter::Leads},
    {"Placeholder", placeholder, Converter::Leads},
    {"PlaceholderV2", placeholder, Converter::Leads},
    {"PlaceholderWithDefault", same, Converter::Leads},
    {"Identity", same, Converter::Leads},
    {"StopGradient", same, Converter::Leads},
    {"PreventGradient", same, Converter::Leads},
    {"Snapshot", same, Converter::Leads},
    {"EnsureShape", same, Converter::Leads},
    {"CheckNumerics", same, Converter::Leads},
    {"CheckNumericsV2", same, Converter::Leads},
    {"IdentityN", all_same, Converter::Leads},
    {"NoOp", nothing, Converter::Notes},
    {"Assert", nothing, Converter::Notes},
    {"Print", same, Converter::Leads},
    {"PrintV2", nothing, Converter::Notes},
    {"VarHandleOp", handle_of, Converter::Leads},
    {"ReadVariableOp", content_of, Converter::Leads},
    {"Variable", old_variable, Converter::Leads},
    {"VariableV2", old_variable, Converter::Leads},
    {"AssignVariableOp", assigned, Converter::Writes},
    {"Assign", assigned, Converter::Writes},
    {"RestoreV2", restored, Converter::Leads},
    {"PartitionedCall", called, Converter::Leads},
    {"StatefulPartitionedCall", called, Converter::Leads},
    {"If", branch, Converter::Leads},
    {"StatelessIf", branch, Converter::Leads},
    {"Case", branch_by_number, Converter::Leads},
    {"StatelessCase", branch_by_number, Converter::Leads},
    {"While", looped, Converter::Leads},
    {"StatelessWhile", looped, Converter::Leads},
    {"Switch", switched, Converter::Branches, "output_false output_true"},
    {"Merge", merged, Converter::Merges, "output value_index"},
};

}  // namespace

std::span<const Converter> control_converters() { return kConverters; }

}  // namespace oar::tensorflow
