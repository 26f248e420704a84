// Layouts of images. Convolutions of some width are fastest where the channels of an image lie last in
// memory, so they are made to work there, and what stands between them goes along: the rest of the program sees
// the same values through views. Rounding changes, as another kernel sums in another order.
#include <algorithm>
#include <array>
#include <string_view>

#include "oar/base/flags.h"
#include "oar/compiler/passes/edit.h"
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

bool is_convolution(std::string_view op) {
  return op == "conv" || op == "conv_input_grad" || op == "conv_weight_grad";
}

// Ops that say by an attribute where the channels are, or which axes they work on.
bool goes_along(const Op& op) {
  if (op.schema().index_of("channels_last") >= 0 || op.schema().index_of("channel_axis") >= 0)
    return true;
  static constexpr std::string_view kOnAxes[] = {"broadcast_to", "sum_to", "sum", "mean", "concat"};
  return std::find(std::begin(kOnAxes), std::end(kOnAxes), op.name()) != std::end(kOnAxes);
}

class Choosing {
 public:
  explicit Choosing(Program& program)
      : program_(program),
        last_(program.values.size(), kNoValue),
        seen_(program.values.size(), kNoValue) {}

  bool run() {
    std::vector<Instruction> before = std::move(program_.body.instructions);
    program_.body.instructions.clear();
    for (Instruction& call : before) {
      if (starts(call) || follows(call))
        changed_ |= rewrite(call);
      else
        emit(std::move(call));
    }
    return changed_;
  }

 private:
  void emit(Instruction call) { program_.body.instructions.push_back(std::move(call)); }
  bool is_image(ValueId id) const { return program_.type_of(id).shape.size() == kRank; }
  // Was the value made with its channels last?
  bool is_last(ValueId id) const { return last_[static_cast<size_t>(id)] != kNoValue; }

  static bool has_channels_last(const Instruction& call) {
    const int at = call.op->schema().index_of("channels_last");
    return at >= 0 && call.attributes[static_cast<size_t>(at)].as_bool();
  }

  bool starts(const Instruction& call) const {
    if (!is_convolution(call.op->name()) || has_channels_last(call)) return false;
    const ValueId result = call.results[0];
    const bool makes_weight = call.op->name() == "conv_weight_grad";
    const ValueId weight = makes_weight ? result : operand_named(call, "weight");
    const ValueType& type = program_.type_of(weight);
    if (type.shape.size() != kRank || type.dtype != DType::Float32 || !type.shape.is_known())
      return false;
    const int64_t groups = attribute(call, "groups").as_int();
    const int64_t in = type.shape[1].value() * groups, out = type.shape[0].value();
    return out >= kLeastChannels && (in >= kLeastChannels || in <= kMostColours);
  }

  bool follows(const Instruction& call) const {
    const Op& op = *call.op;
    if (op.has(Trait::Random) || is_update(op) || has_channels_last(call)) return false;
    const bool elementwise = op.has(Trait::Elementwise);
    if (!elementwise && !goes_along(op)) return false;
    bool any = false, all = true;
    for_each_image(call, [&](ValueId id) {
      any |= is_last(id);
      all &= is_image(id);
    });
    return any && all && can_turn(call);
  }

  // Are the attributes ones that have a meaning with the channels last?
  bool can_turn(const Instruction& call) const {
    const std::string& op = call.op->name();
    if (op == "broadcast_to" || op == "sum_to") {
      const Dims shape = attribute(call, "shape").as_dim_list();
      return shape.size() == kRank &&
             std::none_of(shape.begin(), shape.end(), [](Dim d) { return d == Dim(-1); });
    }
    if (op != "sum" && op != "mean") return true;
    const Value& axes = attribute(call, "axis");
    if (axes.tag == OAR_TAG_NONE) return false;  // all of them: nothing to gain
    if (attribute(call, "keepdim").as_bool()) return true;
    // The axes that stay must stay in their order: channels after a spatial axis would not.
    const auto goes = [&](int64_t axis) {
      const Ints list = axes.as_ints();
      return std::any_of(list.begin(), list.end(),
                         [&](int64_t a) { return moved(a) == moved(axis); });
    };
    return goes(1) || (goes(2) && goes(3));
  }

  // Operands that are images. Weights of convolutions have the same rank but are not images.
  template <class F>
  void for_each_image(const Instruction& call, F&& body) const {
    const bool elementwise = call.op->has(Trait::Elementwise);
    for (size_t i = 0; i < call.operands.size(); ++i)
      for (ValueId id : call.operands[i].ids)
        if (id != kNoValue && (elementwise || is_image_parameter(call, i))) body(id);
  }
  static bool is_image_parameter(const Instruction& call, size_t i) {
    const std::string_view name = call.op->schema().parameters[i].name;
    return name == "x" || name == "grad" || name == "mask" || name == "residual";
  }
  static ValueId operand_named(const Instruction& call, std::string_view name) {
    return operand(call, static_cast<size_t>(call.op->schema().index_of(name)));
  }

  // The value with its channels last: as it was made, or a view.
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
    Instruction call;
    call.op = &op;
    call.operands = {{Operand::One, {from}}, {}};
    call.attributes.push(Value());
    call.attributes.push(Value(Ints(order.data(), order.size())));
    call.results = {to};
    emit(std::move(call));
  }

  bool rewrite(Instruction& call) {
    const bool elementwise = call.op->has(Trait::Elementwise);
    for (size_t i = 0; i < call.operands.size(); ++i)
      if (elementwise || is_image_parameter(call, i))
        for (ValueId& id : call.operands[i].ids)
          if (id != kNoValue) id = as_last(id);
    turn_attributes(call);
    std::vector<std::pair<ValueId, ValueId>> made;
    for (ValueId& result : call.results) {
      if (!is_image(result) || call.op->name() == "conv_weight_grad") continue;
      const ValueId last = program_.add_value(turned(program_.type_of(result)));
      made.emplace_back(result, last);
      result = last;
    }
    emit(std::move(call));
    for (const auto& [first, last] : made) {
      last_[static_cast<size_t>(first)] = last;
      transpose(last, first, kToFirst);
    }
    return true;
  }

  static void turn_attributes(Instruction& call) {
    const auto set = [&](std::string_view name, auto&& change) {
      const int at = call.op->schema().index_of(name);
      if (at < 0 || call.attributes[static_cast<size_t>(at)].tag == OAR_TAG_NONE) return;
      change(static_cast<size_t>(at));
    };
    const auto set_shape = [&](size_t i) {
      SmallVector<int64_t, 4> words;
      for (Dim d : permuted(Shape(call.attributes[i].as_dim_list()), kToLast))
        words.push_back(d.word());
      call.attributes.set(i, Value(Ints(words.data(), words.size())));
    };
    if (call.op->has(Trait::Elementwise)) return;
    set("channels_last", [&](size_t i) { call.attributes.set(i, Value(true)); });
    set("channel_axis",
        [&](size_t i) { call.attributes.set(i, Value(moved(call.attributes[i].as_int()))); });
    set("x_shape", set_shape);
    set("shape", set_shape);
    set("axis", [&](size_t i) {
      if (call.attributes[i].tag == OAR_TAG_INT)
        return call.attributes.set(i, Value(moved(call.attributes[i].as_int())));
      SmallVector<int64_t, 4> axes;
      for (int64_t axis : call.attributes[i].as_ints()) axes.push_back(moved(axis));
      std::sort(axes.begin(), axes.end());
      call.attributes.set(i, Value(Ints(axes.data(), axes.size())));
    });
  }

  Program& program_;
  std::vector<ValueId> last_;  // by value: itself with its channels last, as it was made
  std::vector<ValueId> seen_;  // by value: a view of it with its channels last
  bool changed_ = false;
};

}  // namespace

bool choose_layout(Program& program) {
  // Our own convolutions have no such preference.
  if (!flag<bool>("onednn")) return false;
  if (!Choosing(program).run()) return false;
  remove_dead(program);
  return true;
}

}  // namespace oar
