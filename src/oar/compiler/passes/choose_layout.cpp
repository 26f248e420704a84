// Layouts of images. Convolutions with enough channels are fastest if the channels of an image are last in
// memory, so they and the calls between them are converted to that layout: the rest of the program sees
// the same values through views. Rounding changes, because another kernel sums in another order.
#include <algorithm>
#include <array>
#include <string_view>

#include "oar/base/string_util.h"
#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"

namespace oar {
namespace {

constexpr size_t kRank = 4;  // images with two spatial axes
constexpr std::array<int64_t, kRank> kToLast = {0, 2, 3, 1}, kToFirst = {0, 3, 1, 2};

// Vectors are filled by output channels, and sums over few input channels (not the image's own colours) are short.
constexpr int64_t kLeastChannels = 16, kMostColours = 4;

Shape permuted(const Shape& shape, const std::array<int64_t, kRank>& order) {
  Shape out;
  for (int64_t axis : order) out.push_back(shape[static_cast<size_t>(axis)]);
  return out;
}

// Where an axis of an image is once the channels are last.
int64_t moved(int64_t axis) {
  const int64_t from = axis < 0 ? axis + static_cast<int64_t>(kRank) : axis;
  return std::find(kToLast.begin(), kToLast.end(), from) - kToLast.begin();
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
  explicit LayoutChoice(Program& program)
      : program_(program),
        last_(program.values.size(), kNoValue),
        seen_(program.values.size(), kNoValue) {}

  bool run() {
    std::vector<Instruction> before = std::move(program_.body.instructions);
    program_.body.instructions.clear();
    bool changed = false;
    for (Instruction& call : before) {
      const bool turns = starts(call) || follows(call);
      changed |= turns;
      if (turns)
        rewrite(call);
      else
        emit(std::move(call));
    }
    return changed;
  }

 private:
  void emit(Instruction call) { program_.body.instructions.push_back(std::move(call)); }
  bool is_image(ValueId id) const { return program_.type_of(id).shape.size() == kRank; }
  // Was the value computed with its channels last?
  bool is_last(ValueId id) const { return last_[static_cast<size_t>(id)] != kNoValue; }

  bool starts(const Instruction& call) const {
    const char* name = layout(call).weight;
    if (!*name || is_set(call, "channels_last")) return false;
    const ValueId made = result_named(call, name);
    const ValueType& type = program_.type_of(made == kNoValue ? operand(call, name) : made);
    const bool fast = type.dtype == DType::Float32 || type.dtype == DType::BFloat16;
    if (type.shape.size() != kRank || !fast || !type.shape.is_known()) return false;
    const int64_t groups = attribute(call, "groups").as_int();
    const int64_t in = type.shape[1].value() * groups, out = type.shape[0].value();
    return out >= kLeastChannels && (in >= kLeastChannels || in <= kMostColours);
  }

  bool follows(const Instruction& call) const {
    const Op& op = *call.op;
    if (op.has(Trait::Random) || is_update(op) || is_set(call, "channels_last")) return false;
    bool any = false, all = true;
    for (size_t i = 0; i < call.operands.size(); ++i)
      for (ValueId id : call.operands[i].ids) {
        if (id == kNoValue || !is_image_parameter(call, i)) continue;
        any |= is_last(id);
        all &= is_image(id);
      }
    return any && all && can_turn(call);
  }

  // Can the attributes be converted to channels last?
  bool can_turn(const Instruction& call) const {
    const auto& [images, sizes, axes, weight] = layout(call);
    if (*sizes && !is_full_size(attribute(call, sizes).as_dim_list())) return false;
    if (!*axes) return true;
    const Value& turned = attribute(call, axes);
    if (turned.tag == OAR_TAG_NONE) return false;  // all of them: nothing to gain
    if (is_image(call.results[0])) return true;
    // The remaining axes must keep their order: channels after a spatial axis would not.
    const auto goes = [&](int64_t axis) {
      const Ints list = turned.as_ints();
      return std::any_of(list.begin(), list.end(),
                         [&](int64_t a) { return moved(a) == moved(axis); });
    };
    return goes(1) || (goes(2) && goes(3));
  }
  static bool is_full_size(Dims sizes) {
    return sizes.size() == kRank &&
           std::none_of(sizes.begin(), sizes.end(), [](Dim d) { return d == Dim(-1); });
  }

  // The value with its channels last: as it was computed, or a view.
  ValueId as_last(ValueId id) {
    if (is_last(id)) return last_[static_cast<size_t>(id)];
    ValueId& view = seen_[static_cast<size_t>(id)];
    if (view == kNoValue) {
      view = program_.add_value(turned(program_.type_of(id)));
      transpose(id, view, kToLast);
    }
    return view;
  }

  static ValueType turned(ValueType type) {
    type.shape = permuted(type.shape, kToLast);
    return type;
  }

  void transpose(ValueId from, ValueId to, const std::array<int64_t, kRank>& order) {
    static const Op& op = get_op("transpose");
    emit(NewCall(op, to)
             .operand("x", from)
             .attribute("perm", Value(Ints(order.data(), order.size())))
             .take());
  }

  void rewrite(Instruction& call) {
    for (size_t i = 0; i < call.operands.size(); ++i)
      if (is_image_parameter(call, i))
        for (ValueId& id : call.operands[i].ids)
          if (id != kNoValue) id = as_last(id);
    turn_attributes(call);
    std::vector<std::pair<ValueId, ValueId>> made;
    for (ValueId& result : call.results) {
      if (!is_image(result) || !is_image_result(call, result)) continue;
      const ValueId last = program_.add_value(turned(program_.type_of(result)));
      made.emplace_back(result, last);
      result = last;
    }
    emit(std::move(call));
    for (const auto& [first, last] : made) {
      last_[static_cast<size_t>(first)] = last;
      transpose(last, first, kToFirst);
    }
  }

  static void turn_attributes(Instruction& call) {
    const auto& [images, sizes, axes, weight] = layout(call);
    if (!*images) return;
    if (has_parameter(call, "channels_last")) set_attribute(call, "channels_last", Value(true));
    if (has_parameter(call, "channel_axis"))
      set_attribute(call, "channel_axis", Value(moved(attribute(call, "channel_axis").as_int())));
    if (*sizes) {
      const Shape last = permuted(Shape(attribute(call, sizes).as_dim_list()), kToLast);
      set_attribute(call, sizes, Value(Dims(last)));
    }
    if (!*axes) return;
    const Value& before = attribute(call, axes);
    if (before.tag == OAR_TAG_INT) return set_attribute(call, axes, Value(moved(before.as_int())));
    SmallVector<int64_t, 4> after;
    for (int64_t axis : before.as_ints()) after.push_back(moved(axis));
    std::sort(after.begin(), after.end());
    set_attribute(call, axes, Value(Ints(after.data(), after.size())));
  }

  Program& program_;
  std::vector<ValueId> last_;  // by value: itself with its channels last, as it was computed
  std::vector<ValueId> seen_;  // by value: a view of it with its channels last
};

}  // namespace

bool choose_layout(Program& program, PassContext& context) {
  if (!context.target.prefers_channels_last() || !LayoutChoice(program).run()) return false;
  remove_dead(program);
  return true;
}

}  // namespace oar
