// Einstein summation in terms of transposes, reshapes, products and sums.
#include "oar/ops/gen/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/diagonals.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// A letter, or kEllipsis + i for the axis that is i places from the right end of the ellipsis.
using Label = int;
constexpr Label kEllipsis = 256;
using Labels = SmallVector<Label, 8>;

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
int64_t place_of(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

struct Term {
  Tensor value;
  Labels labels;
  Dim size(Label label) const { return value.dims()[static_cast<size_t>(place_of(labels, label))]; }
};

// "...ij" for one operand, before the ellipsis has a length.
struct Subscripts {
  Labels before, after;
  bool ellipsis = false;
  size_t letters() const { return before.size() + after.size(); }
};

Subscripts parse_subscripts(std::string_view text, std::string_view equation) {
  Subscripts parsed;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c))) continue;
    if (text.substr(i, 3) == "...") {
      user_check(!parsed.ellipsis, ErrorKind::InvalidArgument,
                 "'{}' in the equation '{}' has two ellipses; one stands for all remaining axes.",
                 text, equation);
      parsed.ellipsis = true;
      i += 2;
      continue;
    }
    user_check(
        std::isalpha(static_cast<unsigned char>(c)) != 0, ErrorKind::InvalidArgument,
        "the equation '{}' has '{}' where a letter belongs.\nhint: Write it as 'ij,jk->ik'; '...' "
        "stands for leading axes.",
        equation, c);
    (parsed.ellipsis ? parsed.after : parsed.before).push_back(c);
  }
  return parsed;
}

struct Equation {
  std::vector<Subscripts> operands;
  bool has_output = false;
  Subscripts output;
};

Equation parse_equation(std::string_view text) {
  Equation equation;
  const size_t arrow = text.find("->");
  std::string_view inputs = text.substr(0, arrow);
  for (size_t start = 0;;) {
    const size_t comma = inputs.find(',', start);
    equation.operands.push_back(parse_subscripts(inputs.substr(start, comma - start), text));
    if (comma == std::string_view::npos) break;
    start = comma + 1;
  }
  if (arrow != std::string_view::npos) {
    equation.has_output = true;
    equation.output = parse_subscripts(text.substr(arrow + 2), text);
  }
  return equation;
}

void append_ellipsis(Labels& labels, int length) {
  for (int i = length; i-- > 0;) labels.push_back(kEllipsis + i);
}

// The operand with its labels; of a letter that is named twice, the diagonal.
Term make_term(const Tensor& operand, const Subscripts& subscripts, size_t index,
               std::string_view equation) {
  const int extra = operand.rank() - static_cast<int>(subscripts.letters());
  user_check(
      subscripts.ellipsis ? extra >= 0 : extra == 0, ErrorKind::InvalidArgument,
      "operand {} has shape {}, with {} axes, but the equation '{}' names {}.\nhint: '...' stands "
      "for the axes that have no letter.",
      index, to_string(operand.dims()), operand.rank(), equation, subscripts.letters());
  Term term{operand, subscripts.before};
  if (subscripts.ellipsis) append_ellipsis(term.labels, extra);
  for (Label label : subscripts.after) term.labels.push_back(label);
  for (size_t i = 0; i < term.labels.size(); ++i) {
    for (size_t k = i + 1; k < term.labels.size(); ++k) {
      if (term.labels[i] != term.labels[k]) continue;
      user_check(
          same(term.value.dims()[i], term.value.dims()[k]), ErrorKind::InvalidArgument,
          "operand {} of shape {} repeats '{}', whose axes have sizes {} and {}; a diagonal needs "
          "equal ones.",
          index, to_string(operand.dims()), static_cast<char>(term.labels[i]),
          term.value.dims()[i].str(), term.value.dims()[k].str());
      const Label label = term.labels[i];
      term.value = diagonal(term.value, 0, static_cast<int64_t>(i), static_cast<int64_t>(k));
      Labels left;
      for (size_t l = 0; l < term.labels.size(); ++l)
        if (l != i && l != k) left.push_back(term.labels[l]);
      left.push_back(label);
      term.labels = left;
      --i;  // another axis has moved here
      break;
    }
  }
  return term;
}

std::string name_of_label(Label label) {
  return label < kEllipsis ? format("'{}'", static_cast<char>(label)) : "an axis of '...'";
}

// Every label has one size in all operands, apart from 1, which broadcasts. A symbolic size that
// broadcasts becomes the number 1, so that what follows can see it.
void settle_sizes(std::vector<Term>& terms, std::string_view equation) {
  std::map<Label, Dim> sizes;
  for (const Term& term : terms)
    for (size_t i = 0; i < term.labels.size(); ++i) {
      const Dim size = term.value.dims()[i];
      auto [at, fresh] = sizes.try_emplace(term.labels[i], size);
      if (fresh || at->second == size || same(size, 1)) continue;
      if (same(at->second, 1)) at->second = size;
      user_check(same(at->second, size), ErrorKind::InvalidArgument,
                 "{} in the equation '{}' has size {} in one operand and {} in another.",
                 name_of_label(term.labels[i]), equation, at->second.str(), size.str());
    }
  for (Term& term : terms) {
    Shape shape = term.value.shape();
    for (size_t i = 0; i < term.labels.size(); ++i)
      if (shape[i].is_symbolic() && !(shape[i] == sizes[term.labels[i]]) && same(shape[i], 1))
        shape[i] = 1;
    if (!(shape == term.value.shape())) term.value = reshape(term.value, shape);
  }
}

Labels output_labels(const Equation& equation, int ellipsis, std::string_view text) {
  std::map<Label, int> uses;
  for (const Subscripts& s : equation.operands) {
    for (const Labels* part : {&s.before, &s.after})
      for (Label label : *part) ++uses[label];
  }
  Labels labels;
  if (!equation.has_output) {  // what occurs once, in alphabetical order, after the ellipsis
    append_ellipsis(labels, ellipsis);
    for (const auto& [label, count] : uses)
      if (count == 1) labels.push_back(label);
    return labels;
  }
  user_check(equation.output.ellipsis || ellipsis == 0, ErrorKind::InvalidArgument,
             "the operands of '{}' have axes under '...', but the result has no '...'.\nhint: Name "
             "these axes to sum over them, or write '->...' with the rest.",
             text);
  labels = equation.output.before;
  if (equation.output.ellipsis) append_ellipsis(labels, ellipsis);
  for (Label label : equation.output.after) labels.push_back(label);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= kEllipsis) continue;
    user_check(uses.count(labels[i]) > 0, ErrorKind::InvalidArgument,
               "the result of '{}' names {}, which no operand has.", text,
               name_of_label(labels[i]));
    for (size_t k = i + 1; k < labels.size(); ++k)
      user_check(labels[i] != labels[k], ErrorKind::InvalidArgument,
                 "the result of '{}' names {} twice.", text, name_of_label(labels[i]));
  }
  return labels;
}

// Sums the axes whose labels are not kept, in the operand's own dtype.
void sum_rest(Term& term, const Labels& keep) {
  SmallVector<int64_t, 6> axes;
  Labels left;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (contains(keep, term.labels[i]))
      left.push_back(term.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return;
  term.value = sum(term.value, IntArgs(axes), term.value.dtype());
  term.labels = left;
}

void permute(Term& term, const Labels& order) {
  SmallVector<int64_t, 6> perm;
  bool moved = false;
  for (size_t i = 0; i < order.size(); ++i) {
    perm.push_back(place_of(term.labels, order[i]));
    moved |= perm.back() != static_cast<int64_t>(i);
  }
  if (moved) term.value = transpose(term.value, perm);
  term.labels = order;
}

// Axes of size 1 that are broadcast to the other term are skipped: nothing is summed or repeated for them.
void drop_stretched(Term& term, const Term& other) {
  Labels left;
  Shape shape;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const Label label = term.labels[i];
    const Dim size = term.value.dims()[i];
    if (size == Dim(1) && contains(other.labels, label) && !(other.size(label) == Dim(1))) continue;
    left.push_back(label);
    shape.push_back(size);
  }
  if (left.size() == term.labels.size()) return;
  term.value = reshape(term.value, shape);
  term.labels = left;
}

Labels joined(const Labels& a, const Labels& b) {
  Labels all = a;
  for (Label label : b) all.push_back(label);
  return all;
}

struct Sides {
  Labels batch, left, right, summed;
};
Sides sides_of(const Term& a, const Term& b, const Labels& keep) {
  Sides sides;
  for (Label label : a.labels) {
    if (!contains(b.labels, label))
      sides.left.push_back(label);
    else if (contains(keep, label))
      sides.batch.push_back(label);
    else
      sides.summed.push_back(label);
  }
  for (Label label : b.labels)
    if (!contains(a.labels, label)) sides.right.push_back(label);
  return sides;
}

Dim size_of_all(const Term& term, const Labels& labels) {
  Dim size = 1;
  for (Label label : labels) size = size * term.size(label);
  return size;
}

// The product of two terms, summed over labels that only they have.
Term contract(Term a, Term b, const Labels& keep) {
  drop_stretched(a, b);
  drop_stretched(b, a);
  sum_rest(a, joined(keep, b.labels));
  sum_rest(b, joined(keep, a.labels));
  const Sides sides = sides_of(a, b, keep);
  Term out{Tensor(), joined(joined(sides.batch, sides.left), sides.right)};
  Shape shape;
  for (Label label : out.labels)
    shape.push_back(contains(a.labels, label) ? a.size(label) : b.size(label));
  permute(a, joined(joined(sides.batch, sides.left), sides.summed));
  permute(b, joined(joined(sides.batch, sides.summed), sides.right));
  const Dim batch = size_of_all(a, sides.batch), rows = size_of_all(a, sides.left);
  const Dim columns = size_of_all(b, sides.right);
  if (sides.summed.empty()) {
    out.value = reshape(
        multiply(reshape(a.value, {batch, rows, 1}), reshape(b.value, {batch, 1, columns})), shape);
    return out;
  }
  const Dim depth = size_of_all(a, sides.summed);
  const Tensor x = reshape(a.value, {batch, rows, depth}),
               y = reshape(b.value, {batch, depth, columns});
  out.value = reshape(matmul_core(x, y), shape);
  return out;
}

// Multiply-adds of a contraction, by the hinted sizes; they only guide the order.
double cost_of(const Term& a, const Term& b) {
  double cost = 1;
  for (size_t i = 0; i < a.labels.size(); ++i)
    cost *= static_cast<double>(a.value.dims()[i].hint());
  for (size_t i = 0; i < b.labels.size(); ++i)
    if (!contains(a.labels, b.labels[i])) cost *= static_cast<double>(b.value.dims()[i].hint());
  return cost;
}

Labels needed_by_rest(const std::vector<Term>& terms, size_t skip_a, size_t skip_b,
                      const Labels& output) {
  Labels keep = output;
  for (size_t i = 0; i < terms.size(); ++i)
    if (i != skip_a && i != skip_b)
      for (Label label : terms[i].labels)
        if (!contains(keep, label)) keep.push_back(label);
  return keep;
}

// The cheapest pair first, until one term is left.
Term contract_all(std::vector<Term> terms, const Labels& output) {
  while (terms.size() > 1) {
    size_t first = 0, second = 1;
    for (size_t i = 0; terms.size() > 2 && i < terms.size(); ++i)
      for (size_t k = i + 1; k < terms.size(); ++k)
        if (cost_of(terms[i], terms[k]) < cost_of(terms[first], terms[second]))
          first = i, second = k;
    Term product =
        contract(terms[first], terms[second], needed_by_rest(terms, first, second, output));
    terms.erase(terms.begin() + static_cast<ptrdiff_t>(second));
    terms[first] = std::move(product);
  }
  return terms[0];
}

Tensor einsum_of(std::string_view text, TensorList operands) {
  const Equation equation = parse_equation(text);
  user_check(equation.operands.size() == operands.size(), ErrorKind::InvalidArgument,
             "the equation '{}' has {} operands, but {} were passed.", text,
             equation.operands.size(), operands.size());
  std::vector<Term> terms;
  int ellipsis = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    user_check(
        !is_bool(operands[i].dtype()), ErrorKind::InvalidType,
        "operand {} has dtype bool; products are of numbers.\nhint: Cast it first, for example "
        "x.astype('int32').",
        i);
    terms.push_back(make_term(operands[i], equation.operands[i], i, text));
    if (equation.operands[i].ellipsis)
      ellipsis =
          std::max(ellipsis, operands[i].rank() - static_cast<int>(equation.operands[i].letters()));
  }
  settle_sizes(terms, text);
  const Labels output = output_labels(equation, ellipsis, text);
  Term result = contract_all(std::move(terms), output);
  const bool summed = result.labels.size() > output.size();
  sum_rest(result, output);
  permute(result, output);
  // A single operand may have been returned as a view; the result is a new tensor.
  return operands.size() == 1 && !summed ? assign(result.value) : result.value;
}

// Each label is a factor, except one that an operand names twice: it is on a diagonal.
void plan_einsum(const PlanCall& c) {
  const Equation equation = parse_equation(c.args[0].as_string());
  std::vector<std::pair<PlanTensor*, Labels>> named;
  int longest = 0;
  for (size_t i = 0; i < c.plan.operands.size(); ++i) {
    const Subscripts& s = equation.operands[i];
    const int extra = c.plan.operands[i].shape.rank() - static_cast<int>(s.letters());
    Labels labels = s.before;
    append_ellipsis(labels, extra);
    for (Label label : s.after) labels.push_back(label);
    named.emplace_back(&c.plan.operands[i], labels);
    longest = std::max(longest, extra);
  }
  named.emplace_back(&c.plan.results[0], output_labels(equation, longest, c.args[0].as_string()));
  std::map<Label, int> factors;
  for (const auto& [tensor, labels] : named)
    for (size_t i = 0; i < labels.size(); ++i) {
      if (!factors.contains(labels[i])) factors[labels[i]] = c.plan.add(1, Join::Sum);
      int& factor = factors[labels[i]];
      if (std::count(labels.begin(), labels.end(), labels[i]) > 1) factor = -1;
      if (factor < 0 || tensor->shape[i] == Dim(1)) continue;
      c.plan.factors[static_cast<size_t>(factor)].size = tensor->shape[i];
    }
  for (const auto& [tensor, labels] : named)
    for (size_t i = 0; i < labels.size(); ++i) c.plan.put(*tensor, i, factors[labels[i]]);
}

const OpDef einsum_op = {
    .schema = "einsum(str equation, Tensor[] operands) -> Tensor",
    .brief =
        "Sums of products by the Einstein notation: 'ij,jk->ik' is the matrix product. A letter that "
        "is missing after '->' is summed over, one that an operand repeats takes its diagonal, '...' "
        "stands for axes that broadcast.",
    .decompose = [](const args::einsum& a) -> Made { return einsum_of(a.equation, a.operands); },
    .plan = plan_einsum,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = "np.einsum(equation, *operands)",
    .samples =
        [] {
          return Samples()
              .add("ij,jk->ik", Specs{t({2, 3}), t({3, 4})})
              .add("ij,jk", Specs{t({2, 3}), t({3, 4})})
              .add("ii->i", Specs{t({3, 3})})
              .add("ii", Specs{t({3, 3})})
              .add("ij->ji", Specs{t({2, 3})})
              .add("b...ij,b...jk->b...ik", Specs{t({2, 3, 2, 4}), t({2, 1, 4, 3})})
              .add("i,j->ij", Specs{t({2}), t({3})})
              .add("...i,...i", Specs{t({2, 3}), t({4, 1, 3})})
              .add("ij,ij->", Specs{t({2, 3}), t({2, 3})})
              .add("ij,kj,kl->il", Specs{t({2, 3}), t({4, 3}), t({4, 2})})
              .add("iji,jk->ki", Specs{t({2, 3, 2}), t({3, 4})})
              .add("ij,jk->i", Specs{t({2, 1}), t({3, 4})})
              .add(",i->i", Specs{t({}), t({3})})
              .add("ij,jk->ik", Specs{t({0, 3}), t({3, 0})})
              .add("ij , jk -> ki", Specs{t({2, 3}), t({3, 4})});
        },
    .python = "oar",
    .onnx = "Einsum",
};

}  // namespace

OAR_FAMILY(einsum, &einsum_op)

}  // namespace oar
