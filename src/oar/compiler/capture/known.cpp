#include "oar/compiler/capture/known.h"

#include "oar/compiler/passes/edit.h"
#include "oar/ir/region.h"

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

// Computes small integer tensors element by element, with sizes in place of numbers.
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
    const std::string& name = i.op->name();
    if (name == "product_of") {
      Dim product = 1;
      for (Dim d : i.attributes[0].as_dim_list()) product = product * d;
      return Elements{product};
    }
    if (name == "full") {
      const Value& fill = attribute(i, "fill_value");
      if (fill.tag != OAR_TAG_INT && fill.tag != OAR_TAG_DOUBLE) return std::nullopt;
      const Dim v = fill.tag == OAR_TAG_INT ? Dim::from_word(fill.integer)
                                            : Dim(static_cast<int64_t>(fill.as_double()));
      return Elements(static_cast<size_t>(type.shape.numel().value()), v);
    }
    if (name == "assign" || name == "cast" || name == "reshape") return at(operand(i, 0));
    if (name == "broadcast_to") return repeated(i);
    if (name == "concat") return joined(i);
    if (name == "slice_view") return sliced(i);
    return combined(i);
  }

  Maybe repeated(const Instruction& i) {
    const Maybe& x = at(operand(i, 0));
    const auto count = static_cast<size_t>(shape(i.results[0]).numel().value());
    if (!x || (x->size() != 1 && x->size() != count)) return std::nullopt;
    return x->size() == count ? *x : Elements(count, (*x)[0]);
  }

  Maybe joined(const Instruction& i) {
    if (shape(i.results[0]).rank() != 1) return std::nullopt;
    Elements list;
    for (ValueId id : i.operands[0].ids) {
      if (!at(id)) return std::nullopt;
      list.insert(list.end(), at(id)->begin(), at(id)->end());
    }
    return list;
  }

  // One axis: [kind, start, stop, step], where kind 1 is a single index.
  Maybe sliced(const Instruction& i) {
    const Maybe& x = at(operand(i, 0));
    const Dims index = i.attributes[1].as_dim_list();
    if (!x || shape(operand(i, 0)).rank() != 1 || index.size() != 4) return std::nullopt;
    for (Dim d : index)
      if (d.is_symbolic()) return std::nullopt;
    const int64_t start = index[1].value(), step = index[3].value();
    const int64_t count = index[0] == Dim(1) ? 1 : shape(i.results[0])[0].value();
    Elements list;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t place = start + k * step;
      if (place < 0 || place >= static_cast<int64_t>(x->size())) return std::nullopt;
      list.push_back((*x)[static_cast<size_t>(place)]);
    }
    return list;
  }

  Maybe combined(const Instruction& i) {
    using Rule = Dim (*)(Dim, Dim);
    static const std::pair<const char*, Rule> kRules[] = {
        {"add", [](Dim a, Dim b) { return a + b; }},
        {"subtract", [](Dim a, Dim b) { return a - b; }},
        {"multiply", [](Dim a, Dim b) { return a * b; }},
        {"floor_divide", [](Dim a, Dim b) { return floor_div(a, b); }},
        {"remainder", [](Dim a, Dim b) { return floor_mod(a, b); }},
        {"minimum", [](Dim a, Dim b) { return min_of(a, b); }},
        {"maximum", [](Dim a, Dim b) { return max_of(a, b); }}};
    for (const auto& [name, rule] : kRules) {
      if (i.op->name() != name) continue;
      const Maybe &a = at(operand(i, 0)), &b = at(operand(i, 1));
      if (!a || !b || a->size() != b->size()) return std::nullopt;
      Elements list;
      for (size_t k = 0; k < a->size(); ++k) list.push_back(rule((*a)[k], (*b)[k]));
      return list;
    }
    return std::nullopt;
  }

  const Program& part_;
  std::vector<Maybe> elements_;
};

}  // namespace

std::optional<std::vector<Dim>> as_sizes(const Program& part) { return SizeArithmetic(part).run(); }

}  // namespace oar
