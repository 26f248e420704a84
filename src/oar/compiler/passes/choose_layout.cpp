// Layouts of images. Convolutions with enough channels are fastest if the channels of an image are last in
// memory, so they and the calls between them are converted to that layout: the rest of the program sees
// the same values through views. Rounding changes, because another kernel sums in another order.
//
// Files of other frameworks have them first: the same rules, the other way round, bring them back.
#include <algorithm>
#include <map>
#include <string_view>

#include "oar/base/string_util.h"
#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"

namespace oar {
namespace {

constexpr size_t kRank = 4;  // of the images that are fastest with their channels last

// Vectors are filled by output channels, and sums over few input channels (not the image's own colours) are short.
constexpr int64_t kLeastChannels = 16, kMostColours = 4;

enum class To : bool { First, Last };

// The axes of an image with its channels at the other place, as they are now.
std::vector<int64_t> order_of(size_t rank, To to) {
  const auto last = static_cast<int64_t>(rank) - 1;
  std::vector<int64_t> order{0};
  if (to == To::First) order.push_back(last);
  for (int64_t axis = to == To::Last ? 2 : 1; axis < last + (to == To::Last ? 1 : 0); ++axis)
    order.push_back(axis);
  if (to == To::Last) order.push_back(1);
  return order;
}

Shape permuted(const Shape& shape, To to) {
  Shape out;
  for (const int64_t axis : order_of(shape.size(), to))
    out.push_back(shape[static_cast<size_t>(axis)]);
  return out;
}

// Where an axis of an image is afterwards.
int64_t moved(int64_t axis, size_t rank, To to) {
  const int64_t from = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  const std::vector<int64_t> order = order_of(rank, to);
  return std::find(order.begin(), order.end(), from) - order.begin();
}

// What the records say about images.
const ImageLayout& layout(const Instruction& call) { return call.op->def().layout; }

bool says(const char* words, std::string_view name) {
  const std::vector<std::string_view> list = split(words, ' ');
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_image_parameter(const Instruction& call, size_t i) {
  return call.op->has(Trait::Elementwise) ||
         says(layout(call).images, call.op->schema().parameters[i].name);
}

// A weight has the rank of an image but is not one.
bool is_image_result(const Instruction& call, ValueId result) {
  const char* weight = layout(call).weight;
  return !*weight || result_named(call, weight) != result;
}

class LayoutChoice {
 public:
  LayoutChoice(Program& program, To to)
      : program_(program),
        to_(to),
        turned_(program.values.size(), kNoValue),
        seen_(program.values.size(), kNoValue) {}

  bool run() {
    std::vector<Instruction> before = std::move(program_.body.instructions);
    program_.body.instructions.clear();
    bool changed = false;
    for (Instruction& call : before) {
      follow_aliases(call);
      if (is_turned_by(call)) continue;
      const bool turns = starts(call) || follows(call);
      changed |= turns;
      if (turns)
        rewrite(call);
      else
        emit(std::move(call));
    }
    for (ValueId& output : program_.outputs) output = alias_of(output);
    for (State& state : program_.states)
      if (state.written != kNoValue) state.written = alias_of(state.written);
    return changed;
  }

 private:
  // A transposition whose result was computed as it is becomes that value.
  bool is_turned_by(const Instruction& call) {
    if (to_ != To::First || call.op != &transposition() || !is_turned(operand(call, "x")))
      return false;
    const ValueId from = operand(call, "x");
    const Ints perm = attribute(call, "perm").as_ints();
    const std::vector<int64_t> order = order_of(rank_of(from), to_);
    if (!std::equal(perm.begin(), perm.end(), order.begin(), order.end())) return false;
    aliases_[call.results[0]] = turned_[static_cast<size_t>(from)];
    return true;
  }
  ValueId alias_of(ValueId id) const {
    const auto found = aliases_.find(id);
    return found == aliases_.end() ? id : found->second;
  }
  void follow_aliases(Instruction& call) const {
    if (aliases_.empty()) return;
    for (Operand& operand : call.operands)
      for (ValueId& id : operand.ids) id = alias_of(id);
  }
  ValueId add_value(const ValueType& type) {
    const ValueId made = program_.add_value(type);
    turned_.resize(program_.values.size(), kNoValue);
    seen_.resize(program_.values.size(), kNoValue);
    return made;
  }

  void emit(Instruction call) { program_.body.instructions.push_back(std::move(call)); }
  size_t rank_of(ValueId id) const { return program_.type_of(id).shape.size(); }
  bool is_image(ValueId id) const {
    return to_ == To::Last ? rank_of(id) == kRank : rank_of(id) >= 3 && rank_of(id) <= 5;
  }
  // Was the value computed with its channels at the other place?
  bool is_turned(ValueId id) const { return turned_[static_cast<size_t>(id)] != kNoValue; }

  bool starts(const Instruction& call) const {
    return to_ == To::Last ? is_faster_with_last(call)
                           : is_set(call, "channels_last") && is_image(call.results[0]);
  }

  static bool is_convolution_of(const ValueType& type) {
    const bool fast = type.dtype == DType::Float32 || type.dtype == DType::BFloat16;
    return type.shape.size() == kRank && fast && type.shape.is_known();
  }

  bool is_faster_with_last(const Instruction& call) const {
    const char* name = layout(call).weight;
    if (!*name || is_set(call, "channels_last")) return false;
    const ValueId made = result_named(call, name);
    const ValueType& type = program_.type_of(made == kNoValue ? operand(call, name) : made);
    if (!is_convolution_of(type)) return false;
    const int64_t groups = attribute(call, "groups").as_int();
    const int64_t in = type.shape[1].value() * groups, out = type.shape[0].value();
    return out >= kLeastChannels && (in >= kLeastChannels || in <= kMostColours);
  }

  bool follows(const Instruction& call) const {
    const Op& op = *call.op;
    const bool settled =
        to_ == To::Last ? is_set(call, "channels_last") : has_parameter(call, "channels_last");
    if (op.has(Trait::Random) || is_update(op) || settled) return false;
    size_t rank = 0;
    bool any = false, all = true;
    for (size_t i = 0; i < call.operands.size(); ++i)
      for (ValueId id : call.operands[i].ids) {
        if (id == kNoValue || !is_image_parameter(call, i)) continue;
        any |= is_turned(id);
        all &= is_image(id) && (rank == 0 || rank == rank_of(id));
        rank = rank_of(id);
      }
    return any && all && can_turn(call, rank);
  }

  // Can the attributes be converted?
  bool can_turn(const Instruction& call, size_t rank) const {
    const auto& [images, sizes, axes, weight] = layout(call);
    if (*sizes && !is_full_size(attribute(call, sizes).as_dim_list(), rank)) return false;
    if (!*axes) return true;
    const Value& turned = attribute(call, axes);
    if (turned.tag == OAR_TAG_NONE) return false;  // all of them: nothing to gain
    if (is_image(call.results[0])) return true;
    // The remaining axes must keep their order: channels beside a spatial axis would not.
    const auto goes = [&](int64_t axis) {
      const Ints list = turned.as_ints();
      return std::any_of(list.begin(), list.end(),
                         [&](int64_t a) { return moved(a, rank, to_) == moved(axis, rank, to_); });
    };
    const auto last = static_cast<int64_t>(rank) - 1;
    const int64_t channel = to_ == To::Last ? 1 : last;
    bool spatial = true;
    for (int64_t axis = 1; axis <= last; ++axis) spatial &= axis == channel || goes(axis);
    return goes(channel) || spatial;
  }
  static bool is_full_size(Dims sizes, size_t rank) {
    return sizes.size() == rank &&
           std::none_of(sizes.begin(), sizes.end(), [](Dim d) { return d == Dim(-1); });
  }

  // The value with its channels at the other place: as it was computed, or a view.
  ValueId as_turned(ValueId id) {
    if (is_turned(id)) return turned_[static_cast<size_t>(id)];
    if (const ValueId view = seen_[static_cast<size_t>(id)]; view != kNoValue) return view;
    const std::vector<int64_t> order = order_of(rank_of(id), to_);
    if (const ValueId source = turned_from(id, order); source != kNoValue)
      return seen_[static_cast<size_t>(id)] = source;
    const ValueId made = add_value(turned(program_.type_of(id)));
    transpose(id, made, order);
    return seen_[static_cast<size_t>(id)] = made;
  }
  static const Op& transposition() {
    static const Op& op = get_op("transpose");
    return op;
  }
  // What became this value by the opposite transposition.
  ValueId turned_from(ValueId id, const std::vector<int64_t>& order) const {
    for (const Instruction& call : program_.body.instructions) {
      if (call.op != &transposition() || call.results[0] != id) continue;
      const Ints perm = attribute(call, "perm").as_ints();
      bool opposite = perm.size() == order.size();
      for (size_t i = 0; opposite && i < order.size(); ++i)
        opposite = order[static_cast<size_t>(perm[i])] == static_cast<int64_t>(i);
      return opposite ? operand(call, "x") : kNoValue;
    }
    return kNoValue;
  }

  ValueType turned(ValueType type) const {
    type.shape = permuted(type.shape, to_);
    return type;
  }

  void transpose(ValueId from, ValueId to, const std::vector<int64_t>& order) {
    emit(NewCall(transposition(), to)
             .operand("x", from)
             .attribute("perm", Value(Ints(order.data(), order.size())))
             .take());
  }

  void rewrite(Instruction& call) {
    size_t rank = 0;
    for (size_t i = 0; i < call.operands.size(); ++i)
      if (is_image_parameter(call, i))
        for (ValueId& id : call.operands[i].ids) {
          if (id == kNoValue) continue;
          rank = rank_of(id);
          id = as_turned(id);
        }
    turn_attributes(call, rank);
    std::vector<std::pair<ValueId, ValueId>> made;
    for (ValueId& result : call.results) {
      if (!is_image(result) || !is_image_result(call, result)) continue;
      const ValueId last = add_value(turned(program_.type_of(result)));
      made.emplace_back(result, last);
      result = last;
    }
    emit(std::move(call));
    for (const auto& [first, last] : made) {
      turned_[static_cast<size_t>(first)] = last;
      transpose(last, first, order_of(rank_of(first), to_ == To::Last ? To::First : To::Last));
    }
  }

  void turn_attributes(Instruction& call, size_t rank) const {
    const auto& [images, sizes, axes, weight] = layout(call);
    if (!*images) return;
    if (has_parameter(call, "channels_last"))
      set_attribute(call, "channels_last", Value(to_ == To::Last));
    if (has_parameter(call, "channel_axis"))
      set_attribute(call, "channel_axis",
                    Value(moved(attribute(call, "channel_axis").as_int(), rank, to_)));
    if (*sizes) {
      const Shape last = permuted(Shape(attribute(call, sizes).as_dim_list()), to_);
      set_attribute(call, sizes, Value(Dims(last)));
    }
    if (!*axes) return;
    const Value& before = attribute(call, axes);
    if (before.tag == OAR_TAG_INT)
      return set_attribute(call, axes, Value(moved(before.as_int(), rank, to_)));
    SmallVector<int64_t, 4> after;
    for (int64_t axis : before.as_ints()) after.push_back(moved(axis, rank, to_));
    std::sort(after.begin(), after.end());
    set_attribute(call, axes, Value(Ints(after.data(), after.size())));
  }

  Program& program_;
  const To to_;
  std::vector<ValueId>
      turned_;  // by value: itself with its channels at the other place, as it was computed
  std::map<ValueId, ValueId> aliases_;  // results of transpositions, by what they are
  std::vector<ValueId> seen_;  // by value: a view of it with its channels at the other place
};

}  // namespace

bool choose_layout(Program& program, PassContext& context) {
  if (!context.target.prefers_channels_last() || !LayoutChoice(program, To::Last).run())
    return false;
  remove_dead(program);
  return true;
}

bool put_channels_first(Program& program) {
  if (!LayoutChoice(program, To::First).run()) return false;
  remove_dead(program);
  return true;
}

}  // namespace oar
