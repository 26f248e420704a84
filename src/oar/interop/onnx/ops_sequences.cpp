// Sequences and optionals. Their elements are known at import, one by one, so they leave no trace in the program.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

Item sequence_of(Values items) {
  Item made;
  made.sequence = std::make_shared<const Values>(std::move(items));
  return made;
}
// A place in a sequence of `count`; one more than the last is a place to insert.
size_t place_in(const Call& c, size_t input, size_t count, bool inserts) {
  const int64_t given = c.integers(input).at(0), size = static_cast<int64_t>(count);
  const int64_t at = given < 0 ? given + size : given;
  if (at < 0 || at >= size + (inserts ? 1 : 0)) c.refuse("its position is not in the sequence");
  return static_cast<size_t>(at);
}

Values construct(const Call& c) {
  Values items;
  for (size_t i = 0; i < c.count(); ++i) items.push_back(c.item(i));
  return {sequence_of(std::move(items))};
}
Values empty(const Call&) { return {sequence_of({})}; }
Values at(const Call& c) {
  const Values& all = c.sequence(0);
  return {all[place_in(c, 1, all.size(), false)]};
}
Values insert(const Call& c) {
  Values all = c.sequence(0);
  const size_t place = c.has(2) ? place_in(c, 2, all.size(), true) : all.size();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(place), c.item(1));
  return {sequence_of(std::move(all))};
}
Values erase(const Call& c) {
  Values all = c.sequence(0);
  if (all.empty()) c.refuse("the sequence is empty");
  const size_t place = c.has(1) ? place_in(c, 1, all.size(), false) : all.size() - 1;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(place));
  return {sequence_of(std::move(all))};
}
Values length(const Call& c) { return {c.known(static_cast<int64_t>(c.sequence(0).size()))}; }

Values joined(const Call& c) {
  std::vector<Tensor> parts;
  for (const Item& item : c.sequence(0)) parts.push_back(item.tensor);
  if (parts.empty()) c.refuse("the sequence is empty");
  const int64_t axis = c.integer("axis", 0);
  return {c.flag("new_axis") ? stack(parts, axis) : concat(parts, axis)};
}
Values split_up(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t given = c.integer("axis", 0), axis = given < 0 ? given + x.rank() : given;
  const int64_t whole = x.dim(axis).value();
  std::vector<int64_t> sizes;
  if (c.has(1) && c.tensor(1).rank() == 1) {
    sizes = c.integers(1);
  } else {
    const int64_t part = c.has(1) ? c.integers(1).at(0) : 1;
    if (part <= 0) c.refuse("its parts have no elements");
    for (int64_t i = 0; i < whole; i += part) sizes.push_back(std::min(part, whole - i));
  }
  const bool keeps = c.has(1) || c.flag("keepdims", true);
  Values parts;
  for (const Tensor& part : split_sections(x, sizes, axis))
    parts.emplace_back(keeps ? part : squeeze(part, IntArgs({axis})));
  return {sequence_of(std::move(parts))};
}

// The body on each element; inputs that are no sequences are the same for all.
Values mapped(const Call& c) {
  const Values& first = c.sequence(0);
  std::vector<Values> results(c.node.outputs.size());
  for (size_t i = 0; i < first.size(); ++i) {
    Values inputs;
    for (size_t k = 0; k < c.count(); ++k)
      inputs.push_back(c.item(k).sequence ? c.item(k).sequence->at(i) : c.item(k));
    const Values made = c.run_graph(c.graph("body"), inputs);
    for (size_t k = 0; k < std::min(results.size(), made.size()); ++k)
      results[k].push_back(made[k]);
  }
  Values all;
  for (Values& r : results) all.push_back(sequence_of(std::move(r)));
  return all;
}

Values optional_of(const Call& c) {
  if (c.has_item(0)) return {c.item(0)};
  Item none = sequence_of({});
  none.is_none = true;
  return {none};
}
Values get_element(const Call& c) {
  if (c.item(0).is_none) c.refuse("the optional has no element");
  return {c.item(0)};
}
Values has_element(const Call& c) { return {c.known(c.has_item(0) && !c.item(0).is_none)}; }

constexpr Converter kConverters[] = {
    {"SequenceConstruct", construct},
    {"SequenceEmpty", empty},
    {"SequenceAt", at},
    {"SequenceInsert", insert},
    {"SequenceErase", erase},
    {"SequenceLength", length},
    {"SequenceMap", mapped},
    {"ConcatFromSequence", joined},
    {"SplitToSequence", split_up},
    {"Optional", optional_of},
    {"OptionalGetElement", get_element},
    {"OptionalHasElement", has_element},
};

}  // namespace

std::span<const Converter> sequence_converters() { return kConverters; }

}  // namespace oar::onnx
