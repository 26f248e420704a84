// Recurrent cells over whole sequences: one call per layer and direction, not one per step.
//
// Inputs have been projected beforehand, for all steps in one product: `gates` is [steps, batch,
// gates * hidden]. A cell adds what comes from the state before, state · weightᵀ + bias.
#include "oar/ops/gen/recurrent.h"

#include <vector>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/relu.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/split.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {
namespace {

// Gates of a cell: tanh and relu have one, gru three (reset, update, candidate), lstm four (input,
// forget, candidate, output).
int64_t gates_of(std::string_view mode) {
  if (mode == "tanh" || mode == "relu") return 1;
  if (mode == "gru") return 3;
  user_check(mode == "lstm", ErrorKind::InvalidArgument,
             "mode is '{}'; it can be 'tanh', 'relu', 'gru' or 'lstm'.", mode);
  return 4;
}

// The sizes of a call; all checks are here.
struct RecurrentShape {
  Dim steps, batch, hidden,
      state;  // state: the recurrent one, smaller than hidden with a projection
  int64_t gates;

  template <class Call>
  explicit RecurrentShape(const Call& a) : gates(gates_of(a.mode)) {
    user_check(a.gates.rank() == 3 && a.weight.rank() == 2 && a.hidden.rank() == 2,
               ErrorKind::InvalidArgument,
               "gates, weight and hidden have shapes {}, {} and {}; they must be [steps, batch, "
               "gates * hidden], [gates * hidden, state] and [batch, state].",
               to_string(a.gates.dims()), to_string(a.weight.dims()), to_string(a.hidden.dims()));
    steps = a.gates.dim(0);
    batch = a.gates.dim(1);
    hidden = floor_div(a.gates.dim(2), gates);
    state = a.hidden.dim(1);
    user_check(same(hidden * Dim(gates), a.gates.dim(2)) && same(a.weight.dim(0), a.gates.dim(2)) &&
                   same(a.weight.dim(1), state) && same(a.hidden.dim(0), batch),
               ErrorKind::InvalidArgument,
               "gates of shape {}, weight of shape {} and a state of shape {} do not fit a cell of "
               "mode '{}' with {} gates.",
               to_string(a.gates.dims()), to_string(a.weight.dims()), to_string(a.hidden.dims()),
               a.mode, gates);
    const bool lstm = a.mode == "lstm";
    user_check(a.cell.defined() == lstm, ErrorKind::InvalidArgument,
               "mode is '{}': a cell state belongs to lstm, and lstm needs one.", a.mode);
    expect(a.cell, "cell", {batch, hidden});
    expect(a.bias, "bias", {a.gates.dim(2)});
    expect(a.length, "length", {batch});
    user_check(!a.projection.defined() || lstm, ErrorKind::InvalidArgument,
               "mode is '{}': only lstm has a projection.", a.mode);
    expect(a.projection, "projection", {hidden, state});
    user_check(a.projection.defined() || same(state, hidden), ErrorKind::InvalidArgument,
               "the state has width {}, the cell {}; they differ with a projection only.",
               state.str(), hidden.str());
    user_check(!a.length.defined() || is_integral(a.length.dtype()), ErrorKind::InvalidType,
               "length has dtype {}; it must be integers.",
               a.length.defined() ? name_of(a.length.dtype()) : "");
  }
  static void expect(const Tensor& t, const char* name, const Shape& shape) {
    user_check(!t.defined() || same(t.shape(), shape), ErrorKind::InvalidArgument,
               "{} has shape {}; it must be {}.", name, t.defined() ? to_string(t.dims()) : "",
               shape.str());
  }
  Shape states() const { return {steps, batch, state}; }
  Shape cells(bool lstm) const { return lstm ? Shape{steps, batch, hidden} : Shape{0}; }
};

// ---- the ops as parts: steps one after the other --------------------------------------------------

Tensor at_step(const Tensor& x, int64_t t) {
  return squeeze(slice(x, {0}, {t}, {t + 1}), IntArgs{0});
}
std::vector<Tensor> parts_of(const Tensor& x, int64_t count) {
  return count == 1 ? std::vector<Tensor>{x} : chunk(x, count, -1);
}
Tensor joined(const std::vector<Tensor>& list) { return concat(TensorArgs(list), -1); }

// What the steps of a call share.
template <class Call>
struct Unrolled {
  explicit Unrolled(const Call& call) : a(call), shape(call) {
    user_check(!shape.steps.is_symbolic(), ErrorKind::Unsupported,
               "the steps of a recurrent layer cannot be taken apart while their number is "
               "open.\nhint: Capture with a fixed length.");
    steps = shape.steps.value();
  }
  // The k-th step's place in time.
  int64_t time(int64_t k) const { return a.reverse ? steps - 1 - k : k; }
  Tensor from_state(const Tensor& state) const {
    const Tensor part = matmul(state, a.weight, false, true);
    return a.bias.defined() ? part + a.bias : part;
  }
  // Which sequences are still running, as a column; undefined if all are.
  Tensor running(int64_t t) const {
    if (!a.length.defined()) return {};
    return reshape(greater_than(a.length, literal(static_cast<int>(t))), {shape.batch, 1});
  }
  const Call& a;
  RecurrentShape shape;
  int64_t steps;
};

struct State {
  Tensor hidden, cell;
};

// One step of a cell on the inputs' gates and the state's.
State stepped(std::string_view mode, const Tensor& input, const Tensor& part, const State& before,
              const Tensor& projection) {
  if (mode == "tanh") return {tanh(input + part), {}};
  if (mode == "relu") return {relu(input + part), {}};
  if (mode == "gru") {
    const auto x = parts_of(input, 3), h = parts_of(part, 3);
    const Tensor reset = sigmoid(x[0] + h[0]), update = sigmoid(x[1] + h[1]);
    const Tensor candidate = tanh(x[2] + reset * h[2]);
    return {(before.hidden - candidate) * update + candidate, {}};
  }
  const auto g = parts_of(input + part, 4);
  const Tensor cell = sigmoid(g[1]) * before.cell + sigmoid(g[0]) * tanh(g[2]);
  const Tensor hidden = sigmoid(g[3]) * tanh(cell);
  return {projection.defined() ? matmul(hidden, projection) : hidden, cell};
}

Made recurrent_parts(const args::recurrent& a) {
  const Unrolled<args::recurrent> u(a);
  const bool lstm = a.mode == "lstm";
  std::vector<Tensor> hidden(static_cast<size_t>(u.steps)), cells(hidden.size());
  State state{a.hidden, a.cell};
  for (int64_t k = 0; k < u.steps; ++k) {
    const int64_t t = u.time(k);
    State next =
        stepped(a.mode, at_step(a.gates, t), u.from_state(state.hidden), state, a.projection);
    if (const Tensor running = u.running(t); running.defined()) {
      next.hidden = where(running, next.hidden, state.hidden);
      if (lstm) next.cell = where(running, next.cell, state.cell);
    }
    state = next;
    hidden[static_cast<size_t>(t)] = state.hidden;
    cells[static_cast<size_t>(t)] = state.cell;
  }
  const DType dtype = a.gates.dtype();
  if (u.steps == 0) return {zeros(u.shape.states(), dtype), zeros(u.shape.cells(lstm), dtype)};
  return {stack(TensorArgs(hidden)), lstm ? stack(TensorArgs(cells)) : zeros({0}, dtype)};
}

// Gradients of a step: of the gates as the inputs and as the state see them, and of the state before
// as far as it does not go through the gates.
struct StepGrads {
  Tensor input, part;
  State before;
  Tensor projection;
};

Tensor sigmoid_slope(const Tensor& y) { return y * (1 - y); }
Tensor tanh_slope(const Tensor& y) { return 1 - y * y; }

StepGrads step_grads(const args::recurrent_grad& a, const Tensor& input, const Tensor& part,
                     const State& before, const Tensor& cell, const State& grad) {
  if (a.mode == "tanh") {
    const Tensor g = grad.hidden * tanh_slope(tanh(input + part));
    return {g, g, {}, {}};
  }
  if (a.mode == "relu") {
    const Tensor g = zero_unless(greater_than(input + part, literal(0)), grad.hidden);
    return {g, g, {}, {}};
  }
  if (a.mode == "gru") {
    const auto x = parts_of(input, 3), h = parts_of(part, 3);
    const Tensor reset = sigmoid(x[0] + h[0]), update = sigmoid(x[1] + h[1]);
    const Tensor candidate = tanh(x[2] + reset * h[2]);
    const Tensor of_candidate = grad.hidden * (1 - update) * tanh_slope(candidate);
    const Tensor of_reset = of_candidate * h[2] * sigmoid_slope(reset);
    const Tensor of_update = grad.hidden * (before.hidden - candidate) * sigmoid_slope(update);
    return {joined({of_reset, of_update, of_candidate}),
            joined({of_reset, of_update, of_candidate * reset}),
            {grad.hidden * update, {}},
            {}};
  }
  const auto g = parts_of(input + part, 4);
  const Tensor in = sigmoid(g[0]), forget = sigmoid(g[1]), candidate = tanh(g[2]),
               out = sigmoid(g[3]), shown = tanh(cell);
  const bool projects = a.projection.defined();
  const Tensor of_hidden = projects ? matmul(grad.hidden, a.projection, false, true) : grad.hidden;
  const Tensor of_cell = grad.cell + of_hidden * out * tanh_slope(shown);
  const Tensor of_gates = joined(
      {of_cell * candidate * sigmoid_slope(in), of_cell * before.cell * sigmoid_slope(forget),
       of_cell * in * tanh_slope(candidate), of_hidden * shown * sigmoid_slope(out)});
  return {of_gates,
          of_gates,
          {{}, of_cell * forget},
          projects ? matmul(out * shown, grad.hidden, true) : Tensor()};
}

Made recurrent_grad_parts(const args::recurrent_grad& a) {
  const Unrolled<args::recurrent_grad> u(a);
  const bool lstm = a.mode == "lstm";
  const DType dtype = a.gates.dtype();
  std::vector<Tensor> of_gates(static_cast<size_t>(u.steps));
  Tensor of_weight = zeros_like(a.weight), of_bias = zeros({a.weight.dim(0)}, dtype);
  Tensor of_projection = a.projection.defined() ? zeros_like(a.projection) : zeros({0}, dtype);
  State grad{zeros_like(a.hidden), lstm ? zeros_like(a.cell) : Tensor()};
  for (int64_t k = u.steps - 1; k >= 0; --k) {
    const int64_t t = u.time(k);
    State before{a.hidden, a.cell};
    if (k > 0) {
      before.hidden = at_step(a.states, u.time(k - 1));
      if (lstm) before.cell = at_step(a.cells, u.time(k - 1));
    }
    grad.hidden = grad.hidden + at_step(a.grad_states, t);
    if (lstm) grad.cell = grad.cell + at_step(a.grad_cells, t);
    State passed;  // the unchanged state of a sequence that has ended
    if (const Tensor running = u.running(t); running.defined()) {
      passed.hidden = zero_where(running, grad.hidden);
      grad.hidden = zero_unless(running, grad.hidden);
      if (lstm) passed.cell = zero_where(running, grad.cell);
      if (lstm) grad.cell = zero_unless(running, grad.cell);
    }
    const StepGrads step = step_grads(a, at_step(a.gates, t), u.from_state(before.hidden), before,
                                      lstm ? at_step(a.cells, t) : Tensor(), grad);
    of_gates[static_cast<size_t>(t)] = step.input;
    of_weight = of_weight + matmul(step.part, before.hidden, true);
    of_bias = of_bias + sum(step.part, IntArgs{0});
    if (step.projection.defined()) of_projection = of_projection + step.projection;
    grad.hidden = matmul(step.part, a.weight);
    if (step.before.hidden.defined()) grad.hidden = grad.hidden + step.before.hidden;
    grad.cell = step.before.cell;
    if (passed.hidden.defined()) grad.hidden = grad.hidden + passed.hidden;
    if (passed.cell.defined()) grad.cell = grad.cell + passed.cell;
  }
  return {u.steps ? stack(TensorArgs(of_gates)) : zeros_like(a.gates),
          of_weight,
          grad.hidden,
          lstm ? grad.cell : zeros({0}, dtype),
          of_bias,
          of_projection};
}

// ---- records ------------------------------------------------------------------------------------

Samples recurrent_samples() {
  const auto none = std::nullopt;
  return Samples()
      .add(t({3, 2, 2}), t({2, 2}), t({2, 2}), none, t({2}), none, none, "tanh")
      .add(t({3, 2, 2}), t({2, 2}), t({2, 2}), none, none, none, none, "tanh", true)
      .add(positive({2, 2, 2}), positive({2, 2}), positive({2, 2}), none, none, none, none, "relu")
      .add(t({3, 2, 6}), t({6, 2}), t({2, 2}), none, t({6}), none, ints(1, 4, {2}), "gru")
      .add(t({2, 2, 6}), t({6, 2}), t({2, 2}), none, none, none, none, "gru", true)
      .add(t({3, 2, 8}), t({8, 2}), t({2, 2}), t({2, 2}), none, none, ints(1, 4, {2}), "lstm", true)
      .add(t({2, 2, 12}), t({12, 2}), t({2, 2}), t({2, 3}), t({12}), t({3, 2}), none, "lstm")
      .add(t({0, 2, 8}), t({8, 2}), t({2, 2}), t({2, 2}), none, none, none, "lstm");
}

const OpDef recurrent_op = {
    .schema =
        "recurrent(Tensor gates, Tensor weight, Tensor hidden, Tensor? cell = None, Tensor? bias = "
        "None, Tensor? projection = None, Tensor? length = None, str mode = 'lstm', bool reverse = "
        "False) -> (Tensor states, Tensor cells)",
    .brief =
        "The states of a recurrent cell after each step, from the projected inputs of all steps. A "
        "sequence that has ended keeps its state. In reverse the last step comes first. `cells` is "
        "empty except for lstm.",
    .infer = [](const args::recurrent& a) -> Metas {
      const RecurrentShape s(a);
      return {{a.gates.dtype(), s.states()}, {a.gates.dtype(), s.cells(a.mode == "lstm")}};
    },
    .decompose = recurrent_parts,
    .vjp = [](const vjp::recurrent& v) -> Grads {
      const auto [gates, weight, hidden, cell, bias, projection] =
          recurrent_grad(v.gates, v.weight, v.hidden, v.cell, v.bias, v.projection, v.length,
                         v.states, v.cells, v.grad_states, v.grad_cells, v.mode, v.reverse);
      const auto if_given = [](const Tensor& operand, const Tensor& grad) {
        return operand.defined() ? grad : Tensor();
      };
      return {gates,
              weight,
              hidden,
              if_given(v.cell, cell),
              if_given(v.bias, bias),
              if_given(v.projection, projection),
              Tensor()};
    },
    .saves = "gates weight hidden cell bias projection length states cells",
    .shard =
        "tbg, gs, bs, bh, g, hs, b -> tbs, tbh ; t whole, g whole, s whole, h whole # a step depends on the one before it, and gates on the whole state",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "gates weight hidden cell bias projection",
    .amp = Amp::Low,
    .numpy =
        "(lambda f, order: (lambda s, c: (lambda made: (np.stack([made[order.index(t)][0] for "
        "t in range(len(order))]) if made else np.zeros(gates.shape[:2] + hidden.shape[1:], "
        "gates.dtype), (np.stack([made[order.index(t)][1] for t in range(len(order))]) if made "
        "else np.zeros(gates.shape[:2] + cell.shape[1:], gates.dtype)) if mode == 'lstm' else "
        "np.zeros(0, gates.dtype)))([((n := f(gates[t], s @ weight.T + (0 if bias is None else "
        "bias), s, c)), (m := True if length is None else (length > t)[:, None]), (s := "
        "np.where(m, n[0], s)), (c := np.where(m, n[1], c) if mode == 'lstm' else c))[2:] for t "
        "in order]))(hidden, cell))("
        "{'tanh': lambda x, h, s, c: (np.tanh(x + h), c), 'relu': lambda x, h, s, c: "
        "(np.maximum(x + h, 0), c), 'gru': lambda x, h, s, c: (lambda x, h: (lambda r, z: (lambda"
        " n: ((s - n) * z + n, c))(np.tanh(x[2] + r * h[2])))(sp.expit(x[0] + h[0]), "
        "sp.expit(x[1] + h[1])))(np.split(x, 3, -1), np.split(h, 3, -1)), 'lstm': lambda x, h, s,"
        " c: (lambda g: (lambda d: ((lambda o: o if projection is None else o @ "
        "projection)(sp.expit(g[3]) * np.tanh(d)), d))(sp.expit(g[1]) * c + sp.expit(g[0]) * "
        "np.tanh(g[2])))(np.split(x + h, 4, -1))}[mode]"
        ", list(range(len(gates)))[::-1 if reverse else 1])",
    .samples = recurrent_samples,
};

const OpDef recurrent_grad_op = {
    .schema =
        "recurrent_grad(Tensor gates, Tensor weight, Tensor hidden, Tensor? cell, Tensor? bias, "
        "Tensor? projection, Tensor? length, Tensor states, Tensor cells, Tensor grad_states, "
        "Tensor grad_cells, str mode, bool reverse = False) -> (Tensor grad_gates, Tensor "
        "grad_weight, Tensor grad_hidden, Tensor grad_cell, Tensor grad_bias, Tensor "
        "grad_projection)",
    .brief =
        "The derivative of recurrent. Gradients of operands that are not there are empty, but that "
        "of the bias.",
    .infer = [](const args::recurrent_grad& a) -> Metas {
      const RecurrentShape s(a);
      infer::check_shape(a.states, "states", s.states());
      infer::check_shape(a.grad_states, "grad_states", s.states());
      infer::check_shape(a.cells, "cells", s.cells(a.mode == "lstm"));
      infer::check_shape(a.grad_cells, "grad_cells", s.cells(a.mode == "lstm"));
      const TensorMeta none{a.gates.dtype(), Shape{0}};
      const auto of = [&](const Tensor& t) { return t.defined() ? infer::like(t) : none; };
      return {infer::like(a.gates),
              infer::like(a.weight),
              infer::like(a.hidden),
              of(a.cell),
              {a.gates.dtype(), Shape{a.gates.dim(2)}},
              of(a.projection)};
    },
    .decompose = recurrent_grad_parts,
    .shard =
        "tbg, gs, bs, bh, g, hs, b, tbs, tbh, tbs, tbh -> tbg, gs, bs, bh, g, hs ; t whole, g "
        "whole, s whole, h whole # a step depends on the one after it, and gates on the whole state",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "gates weight hidden cell bias projection states cells grad_states grad_cells",
    .numpy =
        "(lambda f, order: (lambda k0: (lambda back: (np.array([back[order.index(t)][0] for t "
        "in range(len(order))]).reshape(gates.shape), sum((b[1].T @ b[2] for b in back), 0 * "
        "weight), back[0][3], back[0][4] if mode == 'lstm' else np.zeros(0), sum((b[1].sum(0) for b "
        "in back), np.zeros(len(weight))), sum((b[5] for b in back), 0 * projection) if projection "
        "is not None else np.zeros(0)))(k0[::-1]))((lambda dh, dc: [((t := order[k]), (p := (hidden, "
        "cell) if k == 0 else (states[order[k - 1]], cells[order[k - 1]] if mode == 'lstm' else "
        "None)), (h := p[0] @ weight.T + (0 if bias is None else bias)), (m := np.ones((len(hidden), "
        "1)) if length is None else 1.0 * (length > t)[:, None]), (dh := dh + grad_states[t]), (dc "
        ":= dc + grad_cells[t] if mode == 'lstm' else dc), (r := f(gates[t], h, p[0], p[1], "
        "m * dh, m * dc if mode == 'lstm' else None, cells[t] if mode == 'lstm' else None)), (dh := (1 - m) * dh + r[1] @ weight + "
        "r[2]), (dc := (1 - m) * dc + r[3] if mode == 'lstm' else dc), (r[0], r[1], p[0], dh, dc, "
        "r[4]))[-1] for k in range(len(order))[::-1]])(0 * hidden, None if cell is None else 0 * "
        "cell)))({'tanh': lambda x, h, s, c, g, e, d: (lambda a: (a, a, 0, 0, 0))(g * (1 - "
        "np.tanh(x + h) ** 2)), 'relu': lambda x, h, s, c, g, e, d: (lambda a: (a, a, 0, 0, 0))(g * "
        "(x + h > 0)), 'gru': lambda x, h, s, c, g, e, d: (lambda x, h: (lambda r, z: (lambda n: "
        "(lambda dn: (lambda dr, dz: (np.concatenate([dr, dz, dn], -1), np.concatenate([dr, dz, dn "
        "* r], -1), g * z, 0, 0))(dn * h[2] * r * (1 - r), g * (s - n) * z * (1 - z)))(g * (1 - z) "
        "* (1 - n * n)))(np.tanh(x[2] + r * h[2])))(sp.expit(x[0] + h[0]), sp.expit(x[1] + "
        "h[1])))(np.split(x, 3, -1), np.split(h, 3, -1)), 'lstm': lambda x, h, s, c, g, e, d: "
        "(lambda i, f, n, o, y, u: (lambda v: (lambda a: (a, a, 0, v * f, 0 if projection is None "
        "else (o * y).T @ g))(np.concatenate([v * n * i * (1 - i), v * c * f * (1 - f), v * i * (1 - "
        "n * n), u * y * o * (1 - o)], -1)))(e + u * o * (1 - y * y)))(*(lambda q: (sp.expit(q[0]), "
        "sp.expit(q[1]), np.tanh(q[2]), sp.expit(q[3])))(np.split(x + h, 4, -1)), np.tanh(d), g if "
        "projection is None else g @ projection.T)}[mode], list(range(len(gates)))[::-1 if reverse "
        "else 1])",
    .samples =
        [] {
          const auto none = std::nullopt;
          return Samples()
              .add(t({3, 2, 2}), t({2, 2}), t({2, 2}), none, t({2}), none, none, t({3, 2, 2}),
                   t({0}), t({3, 2, 2}), t({0}), "tanh")
              .add(positive({2, 2, 2}), positive({2, 2}), positive({2, 2}), none, none, none, none,
                   positive({2, 2, 2}), t({0}), t({2, 2, 2}), t({0}), "relu", true)
              .add(t({3, 2, 6}), t({6, 2}), t({2, 2}), none, t({6}), none, ints(1, 4, {2}),
                   t({3, 2, 2}), t({0}), t({3, 2, 2}), t({0}), "gru", true)
              .add(t({3, 2, 8}), t({8, 2}), t({2, 2}), t({2, 2}), none, none, ints(1, 4, {2}),
                   t({3, 2, 2}), t({3, 2, 2}), t({3, 2, 2}), t({3, 2, 2}), "lstm")
              .add(t({2, 2, 12}), t({12, 2}), t({2, 2}), t({2, 3}), t({12}), t({3, 2}), none,
                   t({2, 2, 2}), t({2, 2, 3}), t({2, 2, 2}), t({2, 2, 3}), "lstm", true);
        },
};

}  // namespace

OAR_FAMILY(recurrent, &recurrent_op, &recurrent_grad_op)

}  // namespace oar
