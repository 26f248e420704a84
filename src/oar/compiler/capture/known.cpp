#include "oar/compiler/capture/known.h"

#include <cmath>

#include "oar/compiler/passes/edit.h"
#include "oar/ir/region.h"
#include "oar/ops/core/dispatcher.h"

namespace oar {

namespace {

std::optional<Program> constant_part(const Program& program, const std::vector<Constant>& constants,
                                     ValueId wanted) {
  std::vector<bool> needed(program.values.size(), false);
  const auto need = [&](ValueId id) { needed[static_cast<size_t>(id)] = true; };
  need(wanted);
  Program part;
  part.name = program.name;
  const std::vector<Instruction>& all = program.body.instructions;
  for (size_t i = all.size(); i-- > 0;) {
    bool makes = false;
    for (ValueId id : all[i].results) makes |= needed[static_cast<size_t>(id)];
    if (!makes) continue;
    if (!is_pure(all[i]) || has_regions(all[i])) return std::nullopt;
    for (ValueId id : all[i].results) needed[static_cast<size_t>(id)] = false;
    for_each_operand(all[i], need);
    part.body.instructions.insert(part.body.instructions.begin(), all[i]);
  }
  for (const Constant& c : constants)
    if (needed[static_cast<size_t>(c.value)]) {
      needed[static_cast<size_t>(c.value)] = false;
      part.constants.push_back(c);
    }
  for (bool missing : needed)
    if (missing) return std::nullopt;
  part.values = program.values;
  part.outputs = {wanted};
  part.renumber();
  part.collect_symbols();
  return part;
}

}  // namespace

std::optional<Program> constant_part(Builder& builder, const Tensor& t) {
  const ValueId wanted = [&] {
    const Capture::Scope scope(builder);
    return builder.resolve(t);
  }();
  return constant_part(builder.program(), builder.constants(), wanted);
}

std::optional<Program> constant_part(Capture& capture, const Tensor& t) {
  const ValueId wanted = capture.value_of(t);
  return constant_part(capture.so_far(), capture.constants_so_far(), wanted);
}

namespace {

constexpr size_t kMostElements = 64;
using Elements = std::vector<Dim>;

// Computes small integer tensors element by element, with sizes instead of numbers.
class SizeArithmetic {
 public:
  explicit SizeArithmetic(const Program& part) : part_(part), elements_(part.values.size()) {}

  std::optional<Elements> run() {
    for (const Constant& c : part_.constants) {
      if (!is_integral(c.tensor.dtype()) || c.tensor->numel > static_cast<int64_t>(kMostElements))
        continue;
      Elements list;
      for (int64_t v : c.tensor.to_vector<int64_t>()) list.push_back(v);
      at(c.value) = std::move(list);
    }
    for (const Instruction& i : part_.body.instructions)
      if (i.results.size() == 1) at(i.results[0]) = step(i);
    return at(part_.outputs[0]);
  }

 private:
  using Maybe = std::optional<Elements>;
  Maybe& at(ValueId id) { return elements_[static_cast<size_t>(id)]; }
  const Shape& shape(ValueId id) const { return part_.type_of(id).shape; }

  Maybe step(const Instruction& i) {
    const ValueType& type = part_.type_of(i.results[0]);
    if (!is_integral(type.dtype) || !type.shape.is_known()) return std::nullopt;
    if (i.op->has(Trait::View) || i.op->has(Trait::Moves)) return moved(i);
    return i.op->scalar() ? computed(i) : std::nullopt;
  }

  // Runs the op on the indices of the elements, which shows where each one moves.
  Maybe moved(const Instruction& i) {
    if (has_symbolic_attributes(*i.op, i.attributes.args())) return std::nullopt;
    Elements all;
    bool known = true;
    const Frame frame = with_operands(i.attributes.clone(), i, [&](size_t, ValueId id) {
      known &= at(id).has_value() && shape(id).is_known();
      if (!known) return Tensor();
      Tensor numbers = Tensor::empty(shape(id), DType::Int64);
      for (size_t k = 0; k < at(id)->size(); ++k)
        static_cast<int64_t*>(numbers->data)[k] = static_cast<int64_t>(all.size() + k);
      all.insert(all.end(), at(id)->begin(), at(id)->end());
      return numbers;
    });
    if (!known) return std::nullopt;
    const LayersOff plain(kDispatchMask);
    Elements list;
    for (int64_t number : dispatch(*i.op, frame.args())[0].to_vector<int64_t>())
      list.push_back(all[static_cast<size_t>(number)]);
    return list;
  }

  // By the scalar body, with sizes instead of numbers.
  Maybe computed(const Instruction& i) {
    const auto count = static_cast<size_t>(shape(i.results[0]).numel().value());
    if (count > kMostElements) return std::nullopt;
    bool known = true;
    for_each_operand(i, [&](ValueId id) { known &= at(id) && at(id)->size() == count; });
    if (!known) return std::nullopt;
    Elements list;
    for (size_t k = 0; k < count; ++k) {
      const std::optional<Dim> element = computed(i, k);
      if (!element) return std::nullopt;
      list.push_back(*element);
    }
    return list;
  }

  std::optional<Dim> computed(const Instruction& i, size_t k) {
    const ScalarBody& body = *i.op->scalar();
    std::vector<std::optional<Dim>> made;
    for (const ScalarStep& step : body.steps()) {
      const int arity = arity_of(step.fn);
      const auto of = [&](int n) {
        return n < arity ? made[step.operands[n]] : std::optional<Dim>();
      };
      const bool known = (arity < 1 || of(0)) && (arity < 2 || of(1));
      made.push_back(known ? computed(i, k, step, of(0), of(1)) : std::nullopt);
    }
    return made[body.results()[0]];
  }

  std::optional<Dim> computed(const Instruction& i, size_t k, const ScalarStep& step,
                              const std::optional<Dim>& a, const std::optional<Dim>& b) {
    switch (step.fn) {
      case ScalarFn::Operand:
        return (*at(operand(i, step.parameter)))[k];
      case ScalarFn::Attribute:
        return as_size(i, step.parameter);
      case ScalarFn::Sizes: {
        Dim product = 1;
        for (Dim d : i.attributes[step.parameter].as_dim_list()) product = product * d;
        return product;
      }
      case ScalarFn::Number:
        return step.whole ? std::optional(Dim(static_cast<int64_t>(step.number))) : std::nullopt;
      case ScalarFn::Add:
        return *a + *b;
      case ScalarFn::Subtract:
        return *a - *b;
      case ScalarFn::Multiply:
        return *a * *b;
      case ScalarFn::FloorDivide:
        return floor_div(*a, *b);
      case ScalarFn::Modulo:
        return floor_mod(*a, *b);
      case ScalarFn::Min:
        return min_of(*a, *b);
      case ScalarFn::Max:
        return max_of(*a, *b);
      default:
        return std::nullopt;
    }
  }

  // Only whole numbers: the rest of a body would round another one differently.
  static std::optional<Dim> as_size(const Instruction& i, size_t parameter) {
    const Value& v = i.attributes[parameter];
    if (v.tag == OAR_TAG_INT) {
      const Dim d = Dim::from_word(v.integer);
      if (d.is_symbolic() && !can_be_size(i.op->schema().parameters[parameter], v))
        return std::nullopt;  // a number that cannot be a size
      return d;
    }
    if (v.tag != OAR_TAG_DOUBLE || v.real != std::floor(v.real)) return std::nullopt;
    return Dim(static_cast<int64_t>(v.real));
  }

  const Program& part_;
  std::vector<Maybe> elements_;
};

}  // namespace

std::optional<std::vector<Dim>> as_sizes(const Program& part) { return SizeArithmetic(part).run(); }

}  // namespace oar
