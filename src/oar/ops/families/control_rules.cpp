#include "oar/ops/families/control_rules.h"

#include <algorithm>

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/control.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/shape.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

bool varies(const Tensor& t) { return t.defined() && is_differentiable(t.dtype()); }

// The derivative of a program that draws random numbers runs it again, so it needs their position in
// the stream.
Tensor place_of_numbers(const Closure& c, const Tensor& place) {
  if (!c.draws_random()) return {};
  user_check(place.defined(), ErrorKind::Unsupported,
             "{} draws random numbers, and a derivative would run it again with other ones: the "
             "call was not made with trace.",
             c.str());
  return place;
}

// Those tensors of a list that have a derivative.
std::vector<Tensor> varying(TensorList list) {
  std::vector<Tensor> some;
  for (const Tensor& t : list)
    if (varies(t)) some.push_back(t);
  return some;
}

void append(std::vector<Tensor>& to, TensorList list) {
  to.insert(to.end(), list.begin(), list.end());
}

// Row by row, what a list holds: the shapes without their first axis.
std::vector<Tensor> rows_like(TensorList list) {
  std::vector<Tensor> rows;
  for (const Tensor& t : list) rows.push_back(row_like(t));
  return rows;
}

// Returns the parts of a list one after another.
class Parts {
 public:
  explicit Parts(TensorList list) : rest_(list) {}
  TensorList take(size_t count) {
    const TensorList part = rest_.first(count);
    rest_ = rest_.subspan(count);
    return part;
  }

 private:
  TensorList rest_;
};

// The tangents of a parameter of tensors; zeros for missing ones that can exist.
std::vector<Tensor> tangents_of(TensorList values, const Value& given) {
  std::vector<Tensor> list;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!varies(values[i])) continue;
    const Tensor& d = given.is_tensors() ? given.as_tensors()[i] : Value::undefined_tensor();
    list.push_back(d.defined() ? d : zeros_like(values[i]));
  }
  return list;
}

std::vector<bool> which_vary(TensorList list) {
  std::vector<bool> mask;
  for (const Tensor& t : list) mask.push_back(varies(t));
  return mask;
}

// Tangents for the results that can have one.
Made spread(TensorList outputs, TensorList tangents) {
  Made made;
  size_t next = 0;
  for (const Tensor& t : outputs) made.push_back(varies(t) ? tangents[next++] : Tensor());
  return made;
}

}  // namespace

Tensor row_like(const Tensor& t) {
  return Tensor::meta(t.dims().subspan(1), t.dtype(), t.device());
}

std::vector<Tensor> joined(std::initializer_list<TensorList> lists) {
  std::vector<Tensor> all;
  for (TensorList list : lists) append(all, list);
  return all;
}

bool is_recorded(std::initializer_list<TensorList> lists) {
  if (t_layers.off & kRecording) return false;
  for (TensorList list : lists)
    for (const Tensor& t : list)
      if (t.has(kRecording)) return true;
  return false;
}

std::vector<int> changing_axes(const Closure& body, size_t variable) {
  const Tensor &before = body.inputs()[variable], &after = body.outputs()[variable];
  std::vector<int> axes;
  for (int i = 0; i < std::min(before.rank(), after.rank()); ++i)
    if (!(before.dim(i) == after.dim(i))) axes.push_back(i);
  return axes;
}

Tensor in_shape(const Tensor& t, const Shape& shape) {
  return t.shape() == shape ? t : with_shape(t, shape);
}

// ---- branches ----------------------------------------------------------------------------------

Grads switch_vjp(const Tensor& index, TensorList captured, ClosureList branches,
                 const Tensor& random, const VjpCall& call) {
  std::vector<bool> wanted;
  for (size_t i = 0; i < captured.size(); ++i)
    wanted.push_back(varies(captured[i]) && call.needs(i + 1));
  const std::vector<Tensor> cotangents = varying(call.cotangents);
  std::vector<ClosurePtr> backward;
  Tensor place;
  for (const ClosurePtr& branch : branches) {
    if (branch->draws_random()) place = place_of_numbers(*branch, random);
    const std::vector<Tensor> outputs = varying(branch->outputs());
    const bool known = std::equal(
        outputs.begin(), outputs.end(), cotangents.begin(),
        [](const Tensor& made, const Tensor& given) { return made.shape() == given.shape(); });
    backward.push_back(branch->vjp(wanted, known ? TensorList() : cotangents));
  }
  const std::vector<Tensor> made =
      switch_case(index, joined({captured, cotangents}), backward, false, place);
  Grads grads(Tensor{});
  size_t next = 0;
  for (bool w : wanted) grads.push_back(w ? made[next++] : Tensor());
  grads.push_back(Tensor());
  return grads;
}

Made switch_jvp(const JvpCall& call) {
  const args::switch_case a(call.args);
  std::vector<bool> active;
  std::vector<Tensor> given(a.captured.begin(), a.captured.end());
  const TensorList tangents = args::switch_case(call.tangents).captured;
  for (size_t i = 0; i < a.captured.size(); ++i) {
    active.push_back(i < tangents.size() && tangents[i].defined());
    if (active.back()) given.push_back(tangents[i]);
  }
  const Tensor random = a.trace ? call.outputs.back() : a.random;
  std::vector<ClosurePtr> forward;
  Tensor place;
  for (const ClosurePtr& branch : a.branches) {
    if (branch->draws_random()) place = place_of_numbers(*branch, random);
    forward.push_back(branch->jvp(active));
  }
  const std::vector<Tensor> made = switch_case(a.index, given, forward, false, place);
  return spread(call.outputs, TensorList(made).subspan(a.branches[0]->outputs().size()));
}

// ---- loops -------------------------------------------------------------------------------------

LoopTrace::LoopTrace(const Closure& body, TensorList behind_results, size_t carried)
    : values(behind_results.first(carried)),
      rounds(behind_results.subspan(carried, behind_results.size() - carried - 1)),
      random(behind_results.back()) {
  for (size_t i = 0; i < carried; ++i) {
    const std::vector<int> axes = changing_axes(body, i);
    user_check(axes.size() < 2, ErrorKind::Unsupported,
               "variable {} of the loop changes its size along {} axes, and Oar has no "
               "derivatives of such a loop.\nhint: Flatten it, or let one axis grow.",
               i, axes.size());
  }
}

namespace {

// A variable of a loop as its derivative sees it.
struct Variable {
  int axis = -1;     // along which it changes its size
  Tensor values;     // of all iterations
  Tensor rounds;     // if it changes: the iteration of each slice
  Tensor of_values;  // the cotangent of `values`, if there can be one
};

// Runs over the iterations of a loop from the last to the first. It carries the gradients of the carried
// tensors, and sums for what every iteration reads; it returns the gradients of the sequences row by row.
class Backward {
 public:
  Backward(const Loop& loop, Dim rounds, const LoopTrace& trace, const VjpCall& call);
  Grads run() const;

 private:
  // The inputs of an iteration, by name.
  struct Round {
    std::vector<Tensor> values, of_values;  // of the variables, at the start of the iteration
    TensorList after, sums, rows, of_rows, captured;
  };
  Round round_of(TensorList given) const;
  std::vector<Tensor> one_round(const Round& round, const Closure& backward) const;
  std::vector<Tensor> starts() const;

  const Loop& loop_;
  const Dim rounds_;
  Tensor random_;
  std::vector<Variable> variables_;
  std::vector<bool> wanted_;  // of carried, sequences, captured
  std::vector<Tensor> of_finals_, sums_, of_rows_;
  std::vector<Tensor> sequences_, captured_;  // of the backward loop
  bool changes_ = false;
};

Backward::Backward(const Loop& loop, Dim rounds, const LoopTrace& trace, const VjpCall& call)
    : loop_(loop), rounds_(rounds), random_(place_of_numbers(loop.body, trace.random)) {
  const size_t carries = loop.carried.size(), rows = loop.sequences.size();
  const auto is_wanted = [&](const Tensor& t, size_t slot) {
    return varies(t) && call.needs(slot);
  };
  wanted_ = which_vary(loop.carried);
  for (size_t i = 0; i < rows; ++i) wanted_.push_back(is_wanted(loop.sequences[i], carries + i));
  for (size_t i = 0; i < loop.captured.size(); ++i) {
    wanted_.push_back(is_wanted(loop.captured[i], carries + rows + i));
    if (wanted_.back()) sums_.push_back(zeros_like(loop.captured[i]));
  }
  const size_t results = loop.body.outputs().size() - carries;
  of_finals_ = varying(call.cotangents.first(carries));
  of_rows_ = varying(call.cotangents.subspan(carries, results));
  const TensorList of_trace = call.cotangents.subspan(carries + results);
  captured_.assign(loop.captured.begin(), loop.captured.end());
  size_t next = 0;
  for (size_t i = 0; i < carries; ++i) {
    Variable v{-1, trace.values[i], {}, of_trace.empty() ? Tensor() : of_trace[i]};
    if (const std::vector<int> axes = changing_axes(loop.body, i); !axes.empty()) {
      v.axis = axes[0];
      v.rounds = trace.rounds[next++];
      changes_ = true;
    }
    variables_.push_back(v);
    std::vector<Tensor>& to = v.axis < 0 ? sequences_ : captured_;
    to.push_back(v.values);
    if (varies(v.of_values)) to.push_back(v.of_values);
    if (v.axis >= 0) to.push_back(v.rounds);
  }
  append(sequences_, loop.sequences);
  append(sequences_, of_rows_);
  // The number of the iteration.
  if (changes_)
    sequences_.push_back(
        subtract(cumsum(ones({rounds}, DType::Int64), 0), full({}, Scalar(1), DType::Int64)));
}

// In the order of `starts`, `sequences_`, `captured_`.
Backward::Round Backward::round_of(TensorList given) const {
  Parts parts(given);
  Round round;
  round.after = parts.take(of_finals_.size());
  round.sums = parts.take(sums_.size());
  Parts in_rows(parts.take(sequences_.size()));
  round.captured = parts.take(loop_.captured.size());
  const size_t rows_end = of_finals_.size() + sums_.size() + sequences_.size();
  const Tensor number = changes_ ? given[rows_end - 1] : Tensor();
  for (const Variable& v : variables_) {
    const bool dual = varies(v.of_values);
    if (v.axis < 0) {
      round.values.push_back(in_rows.take(1)[0]);
      round.of_values.push_back(dual ? in_rows.take(1)[0] : Tensor());
      continue;
    }
    const Tensor values = parts.take(1)[0], of_values = dual ? parts.take(1)[0] : Tensor();
    const Tensor mine = flatten(nonzero(equal(parts.take(1)[0], number)), 0, -1);
    round.values.push_back(index_select(values, mine, v.axis));
    round.of_values.push_back(dual ? index_select(of_values, mine, v.axis) : Tensor());
  }
  round.rows = in_rows.take(loop_.sequences.size());
  round.of_rows = in_rows.take(of_rows_.size());
  return round;
}

std::vector<Tensor> Backward::one_round(const Round& round, const Closure& backward) const {
  std::vector<Tensor> made =
      backward(joined({round.values, round.rows, round.captured, round.after, round.of_rows}));
  size_t next = 0;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!wanted_[i]) continue;
    if (round.of_values[i].defined()) made[next] = add(made[next], round.of_values[i]);
    ++next;
  }
  const size_t behind = made.size() - round.sums.size();
  for (size_t i = 0; i < round.sums.size(); ++i)
    made[behind + i] = add(round.sums[i], made[behind + i]);
  // Carried tensors come before the sequences.
  std::rotate(made.begin() + static_cast<std::ptrdiff_t>(round.after.size()),
              made.begin() + static_cast<std::ptrdiff_t>(behind), made.end());
  return made;
}

// What the backward loop carries, without content; sizes that change are open.
std::vector<Tensor> Backward::starts() const {
  std::vector<Tensor> list;
  size_t next = 0;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!wanted_[i]) continue;
    const Tensor& t = of_finals_[next++];
    Shape shape = t.shape();
    if (const int axis = variables_[i].axis; axis >= 0)
      shape[static_cast<size_t>(axis)] =
          size_told_by_runs("n", loop_.body.outputs()[i].dim(axis).hint());
    list.push_back(Tensor::meta(shape, t.dtype(), t.device()));
  }
  append(list, sums_);
  return list;
}

Grads Backward::run() const {
  const std::vector<Tensor> like = starts(), carried = joined({of_finals_, sums_});
  std::vector<Tensor> cotangents;
  if (changes_)
    cotangents = joined({TensorList(like).first(of_finals_.size()),
                         varying(TensorList(loop_.body.outputs()).subspan(loop_.carried.size()))});
  const ClosurePtr backward = loop_.body.vjp(wanted_, cotangents);
  const auto round = [&](TensorList given) { return one_round(round_of(given), *backward); };
  const ClosurePtr body =
      Closure::trace(round, joined({like, rows_like(sequences_), captured_}), "backward_round");
  const bool trace = is_recorded({carried, sequences_, captured_});
  const std::vector<Tensor> made =
      scan(carried, sequences_, captured_, body, rounds_.word(), !loop_.reverse, trace, random_);
  const size_t carries = loop_.carried.size(), rows = loop_.sequences.size();
  size_t of_carried = 0, of_captured = of_finals_.size(), of_rows = carried.size();
  Grads grads;
  for (size_t i = 0; i < wanted_.size(); ++i) {
    size_t& next = i < carries ? of_carried : i < carries + rows ? of_rows : of_captured;
    Tensor g = wanted_[i] ? made[next++] : Tensor();
    grads.push_back(g.defined() && i < carries ? in_shape(g, loop_.carried[i].shape()) : g);
  }
  grads.push_back(Tensor());  // of the position in the random stream
  return grads;
}

}  // namespace

Grads loop_vjp(const Loop& loop, Dim rounds, const LoopTrace& trace, const VjpCall& call) {
  return Backward(loop, rounds, trace, call).run();
}

namespace {

// An iteration of a loop on values and their tangents.
class DualLoop {
 public:
  DualLoop(const Closure& body, TensorList carried, TensorList sequences, TensorList captured)
      : body_(body), rows_(rows_like(sequences)) {
    // Not the types of the arguments: sizes that change are open inside.
    const TensorList inputs = body.inputs();
    carried_.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(carried.size()));
    captured_.assign(captured.begin(), captured.end());
  }

  // The inputs of an iteration that the body takes.
  std::vector<Tensor> values_of(TensorList given) const {
    Parts parts(given);
    const TensorList c = parts.take(carried_.size());
    parts.take(varying(carried_).size());
    const TensorList r = parts.take(rows_.size());
    parts.take(varying(rows_).size());
    return joined({c, r, parts.take(captured_.size())});
  }
  ClosurePtr traced(const Closure::Function& function, const char* name) const {
    return Closure::trace(
        function,
        joined({carried_, varying(carried_), rows_, varying(rows_), captured_, varying(captured_)}),
        name);
  }
  ClosurePtr body() const {
    const ClosurePtr dual = body_.jvp(which_vary(joined({carried_, rows_, captured_})));
    const size_t carries = carried_.size(), results = body_.outputs().size(),
                 d_carries = varying(carried_).size();
    const auto round = [&](TensorList given) {
      Parts parts(given.subspan(carries));
      const TensorList dc = parts.take(d_carries);
      parts.take(rows_.size());
      const TensorList dr = parts.take(varying(rows_).size());
      parts.take(captured_.size());
      const TensorList dp = parts.take(varying(captured_).size());
      std::vector<Tensor> made = (*dual)(joined({values_of(given), dc, dr, dp}));
      // The tangents of carried tensors follow them; of the results of an iteration only the tangents count.
      const auto from = made.begin() + static_cast<std::ptrdiff_t>(carries);
      made.erase(from, made.begin() + static_cast<std::ptrdiff_t>(results));
      return made;
    };
    return traced(round, "dual_round");
  }

 private:
  const Closure& body_;
  std::vector<Tensor> carried_, rows_, captured_;
};

}  // namespace

Made while_jvp(const JvpCall& call) {
  const args::while_loop a(call.args);
  user_check(!a.test.draws_random(), ErrorKind::Unsupported,
             "the test {} draws random numbers, so the loop cannot be repeated with "
             "tangents.",
             a.test.str());
  const size_t carries = a.carried.size();
  const std::vector<Tensor> d_carried = tangents_of(a.carried, call.tangents[0]),
                            d_captured = tangents_of(a.captured, call.tangents[1]);
  const DualLoop loop(a.body, a.carried, {}, a.captured);
  const ClosurePtr body = loop.body();
  const auto ask = [&](TensorList given) { return a.test(loop.values_of(given)); };
  const ClosurePtr test = loop.traced(ask, "dual_test");
  const Tensor random = place_of_numbers(a.body, a.trace ? call.outputs.back() : a.random);
  const std::vector<Tensor> made =
      while_loop(joined({a.carried, d_carried}), joined({a.captured, d_captured}), test, body,
                 a.trace, random);
  Parts parts(made);
  std::vector<Tensor> tangents;
  for (int part = 0; part < (a.trace ? 2 : 1); ++part) {
    parts.take(carries);
    append(tangents, parts.take(d_carried.size()));
  }
  return spread(call.outputs, tangents);
}

Made scan_jvp(const JvpCall& call) {
  const args::scan a(call.args);
  const size_t carries = a.carried.size();
  const std::vector<Tensor> d_carried = tangents_of(a.carried, call.tangents[0]),
                            d_rows = tangents_of(a.sequences, call.tangents[1]),
                            d_captured = tangents_of(a.captured, call.tangents[2]);
  const ClosurePtr body = DualLoop(a.body, a.carried, a.sequences, a.captured).body();
  const Tensor random = place_of_numbers(a.body, a.trace ? call.outputs.back() : a.random);
  const std::vector<Tensor> made =
      scan(joined({a.carried, d_carried}), joined({a.sequences, d_rows}),
           joined({a.captured, d_captured}), body, a.length, a.reverse, a.trace, random);
  // The carried tensors, their tangents and those of the iterations' results; then the trace.
  Parts parts(made);
  parts.take(carries);
  std::vector<Tensor> tangents = joined({parts.take(body->outputs().size() - carries)});
  if (a.trace) {
    parts.take(carries);
    append(tangents, parts.take(d_carried.size()));
  }
  return spread(call.outputs, tangents);
}

}  // namespace oar
