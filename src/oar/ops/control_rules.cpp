#include "oar/ops/control_rules.h"

#include <algorithm>

#include "oar/ops/dispatcher.h"
#include "oar/ops/gen/binary.h"
#include "oar/ops/gen/control.h"
#include "oar/ops/gen/creation.h"

namespace oar {
namespace {

bool varies(const Tensor& t) { return t.defined() && is_differentiable(t.dtype()); }

void refuse_random(const Closure& c) {
  user_check(!c.draws_random(), ErrorKind::Unsupported,
             "{} draws random numbers, and its derivative would run it again with other ones."
             "\nhint: Draw the numbers in front of the branch or loop and use them inside.",
             c.str());
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
  for (const Tensor& t : list)
    rows.push_back(Tensor::meta(t.dims().subspan(1), t.dtype(), t.device()));
  return rows;
}

// Hands out the parts of a list one behind the other.
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

// The tangents of a parameter of tensors; zeros where there is none and a tangent can be.
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

// Tangents in the places of results that can have one.
Made spread(TensorList outputs, TensorList tangents) {
  Made made;
  size_t next = 0;
  for (const Tensor& t : outputs) made.push_back(varies(t) ? tangents[next++] : Tensor());
  return made;
}

}  // namespace

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

// ---- branches ----------------------------------------------------------------------------------

Grads switch_vjp(const Tensor& index, TensorList captured, ClosureList branches,
                 const VjpCall& call) {
  std::vector<bool> wanted;
  for (size_t i = 0; i < captured.size(); ++i)
    wanted.push_back(varies(captured[i]) && call.needs(i + 1));
  std::vector<ClosurePtr> backward;
  for (const ClosurePtr& branch : branches) {
    refuse_random(*branch);
    backward.push_back(branch->vjp(wanted));
  }
  const std::vector<Tensor> made =
      switch_case(index, joined({captured, varying(call.cotangents)}), backward);
  Grads grads(Tensor{});
  size_t next = 0;
  for (bool w : wanted) grads.push_back(w ? made[next++] : Tensor());
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
  std::vector<ClosurePtr> forward;
  for (const ClosurePtr& branch : a.branches) {
    refuse_random(*branch);
    forward.push_back(branch->jvp(active));
  }
  return spread(call.outputs, switch_case(a.index, given, forward));
}

// ---- loops -------------------------------------------------------------------------------------

// A loop over the rounds from the last to the first. It carries the gradients of what the loop carried,
// and sums for what every round reads; it gives the gradients of the sequences row by row.
Grads loop_vjp(const Loop& loop, Dim rounds, TensorList trace, const VjpCall& call) {
  refuse_random(loop.body);
  const size_t carries = loop.carried.size(), rows = loop.sequences.size();
  const auto is_wanted = [&](const Tensor& t, size_t slot) {
    return varies(t) && call.needs(slot);
  };
  std::vector<bool> wanted = which_vary(loop.carried);
  std::vector<Tensor> sums;
  for (size_t i = 0; i < rows; ++i) wanted.push_back(is_wanted(loop.sequences[i], carries + i));
  for (size_t i = 0; i < loop.captured.size(); ++i) {
    wanted.push_back(is_wanted(loop.captured[i], carries + rows + i));
    if (wanted.back()) sums.push_back(zeros_like(loop.captured[i]));
  }
  const size_t results = loop.body.outputs().size() - carries;
  const std::vector<Tensor> of_finals = varying(call.cotangents.first(carries)),
                            of_results = varying(call.cotangents.subspan(carries, results)),
                            of_trace = varying(call.cotangents.subspan(carries + results));
  const std::vector<Tensor> carried = joined({of_finals, sums}),
                            sequences = joined({trace, loop.sequences, of_results, of_trace});
  const ClosurePtr backward = loop.body.vjp(wanted);
  const auto round = [&](TensorList given) {
    Parts parts(given);
    const TensorList after = parts.take(of_finals.size()), so_far = parts.take(sums.size()),
                     before = parts.take(carries), row = parts.take(rows),
                     of_row = parts.take(of_results.size()),
                     of_before = parts.take(of_trace.size()),
                     captured = parts.take(loop.captured.size());
    std::vector<Tensor> made = (*backward)(joined({before, row, captured, after, of_row}));
    for (size_t i = 0; i < of_before.size(); ++i) made[i] = add(made[i], of_before[i]);
    const size_t behind = made.size() - so_far.size();
    for (size_t i = 0; i < so_far.size(); ++i) made[behind + i] = add(so_far[i], made[behind + i]);
    // What is carried stands in front of what is given row by row.
    std::rotate(made.begin() + static_cast<std::ptrdiff_t>(after.size()),
                made.begin() + static_cast<std::ptrdiff_t>(behind), made.end());
    return made;
  };
  const ClosurePtr body = Closure::trace(
      round, joined({carried, rows_like(sequences), loop.captured}), "backward_round");
  const std::vector<Tensor> made =
      scan(carried, sequences, loop.captured, body, rounds.word(), !loop.reverse,
           is_recorded({carried, sequences, loop.captured}));
  size_t of_carried = 0, of_captured = of_finals.size(), of_rows = carried.size();
  Grads grads;
  for (size_t i = 0; i < wanted.size(); ++i) {
    size_t& next = i < carries ? of_carried : i < carries + rows ? of_rows : of_captured;
    grads.push_back(wanted[i] ? made[next++] : Tensor());
  }
  return grads;
}

namespace {

// A round of the loop on values and their tangents.
ClosurePtr dual_round(const Closure& body, TensorList carried, TensorList sequences,
                      TensorList captured) {
  refuse_random(body);
  const std::vector<Tensor> rows = rows_like(sequences);
  const ClosurePtr tangent = body.jvp(which_vary(joined({carried, rows, captured})));
  const size_t d_carried = varying(carried).size(), d_rows = varying(rows).size(),
               d_captured = varying(captured).size();
  const auto round = [&](TensorList given) {
    Parts parts(given);
    const TensorList c = parts.take(carried.size()), dc = parts.take(d_carried),
                     r = parts.take(rows.size()), dr = parts.take(d_rows),
                     p = parts.take(captured.size()), dp = parts.take(d_captured);
    std::vector<Tensor> made = body(joined({c, r, p}));
    made.resize(carried.size());
    append(made, (*tangent)(joined({c, r, p, dc, dr, dp})));
    return made;
  };
  return Closure::trace(
      round, joined({carried, varying(carried), rows, varying(rows), captured, varying(captured)}),
      "dual_round");
}

}  // namespace

Made while_jvp(const JvpCall& call) {
  const args::while_loop a(call.args);
  const std::vector<Tensor> d_carried = tangents_of(a.carried, call.tangents[0]),
                            d_captured = tangents_of(a.captured, call.tangents[1]);
  const std::vector<Tensor> carried = joined({a.carried, d_carried}),
                            captured = joined({a.captured, d_captured});
  const ClosurePtr body = dual_round(a.body, a.carried, {}, a.captured);
  const auto ask = [&](TensorList given) {
    Parts parts(given);
    const TensorList c = parts.take(a.carried.size());
    parts.take(d_carried.size());
    return a.test(joined({c, parts.take(a.captured.size())}));
  };
  const ClosurePtr test = Closure::trace(ask, joined({carried, captured}), "dual_test");
  const std::vector<Tensor> made = while_loop(carried, captured, test, body, a.trace);
  Parts parts(made);
  std::vector<Tensor> tangents;
  for (int part = 0; part < (a.trace ? 2 : 1); ++part) {
    parts.take(a.carried.size());
    append(tangents, parts.take(d_carried.size()));
  }
  return spread(call.outputs, tangents);
}

Made scan_jvp(const JvpCall& call) {
  const args::scan a(call.args);
  const std::vector<Tensor> d_carried = tangents_of(a.carried, call.tangents[0]),
                            d_rows = tangents_of(a.sequences, call.tangents[1]),
                            d_captured = tangents_of(a.captured, call.tangents[2]);
  const std::vector<Tensor> carried = joined({a.carried, d_carried}),
                            sequences = joined({a.sequences, d_rows}),
                            captured = joined({a.captured, d_captured});
  const ClosurePtr body = dual_round(a.body, a.carried, a.sequences, a.captured);
  const std::vector<Tensor> made =
      scan(carried, sequences, captured, body, a.length, a.reverse, a.trace);
  Parts parts(made);
  parts.take(a.carried.size());
  std::vector<Tensor> tangents = joined({parts.take(d_carried.size())});
  append(tangents, parts.take(body->outputs().size() - carried.size()));
  if (a.trace) {
    parts.take(a.carried.size());
    append(tangents, parts.take(d_carried.size()));
  }
  return spread(call.outputs, tangents);
}

}  // namespace oar
