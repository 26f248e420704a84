// Control flow: ops whose attributes are programs. What the programs read is all among the operands.
#include "oar/ops/gen/control.h"

#include <chrono>

#include "oar/base/interrupt.h"
#include "oar/ops/control_rules.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/join.h"
#include "oar/ops/infer.h"
#include "oar/ops/registry.h"

namespace oar {
namespace {

// ---- types -------------------------------------------------------------------------------------

void check_inputs(const Closure& c, TensorList given) {
  const std::vector<Tensor>& wanted = c.inputs();
  user_check(wanted.size() == given.size(), ErrorKind::InvalidArgument,
             "{} takes {} tensors and is given {}.", c.str(), wanted.size(), given.size());
  for (size_t i = 0; i < given.size(); ++i)
    user_check(given[i].dtype() == wanted[i].dtype() && same(given[i].shape(), wanted[i].shape()),
               ErrorKind::InvalidArgument, "{} takes {} as its input {} and is given {}.", c.str(),
               wanted[i].describe(), i, given[i].describe());
}

bool alike(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

Metas metas_of(TensorList like) {
  Metas metas;
  for (const Tensor& t : like) metas.push_back(infer::like(t));
  return metas;
}

// The body of a loop gives back what it was given, and perhaps more.
void check_body(const Closure& body, TensorList carried, bool more) {
  const std::vector<Tensor>& made = body.outputs();
  user_check(more ? made.size() >= carried.size() : made.size() == carried.size(),
             ErrorKind::InvalidArgument,
             "the body {} gives back {} tensors for {} that it carries.", body.str(), made.size(),
             carried.size());
  for (size_t i = 0; i < carried.size(); ++i)
    user_check(alike(made[i], carried[i]), ErrorKind::InvalidArgument,
               "what a loop carries keeps its dtype and shape: variable {} is {} and becomes {}."
               "\nhint: Cast or reshape it in front of the loop or at the end of the body.",
               i, carried[i].describe(), made[i].describe());
}

Tensor row_like(const Tensor& t) {
  return Tensor::meta(t.dims().subspan(1), t.dtype(), t.device());
}

TensorMeta stacked_like(const Tensor& t, Dim rounds, bool open = false) {
  Shape shape{rounds};
  for (Dim d : t.dims()) shape.push_back(d);
  return {t.dtype(), shape, open};
}

Metas infer_switch(const args::switch_case& a) {
  user_check(!is_floating(a.index.dtype()) && !is_complex(a.index.dtype()) &&
                 same(a.index.numel(), Dim(1)),
             ErrorKind::InvalidArgument, "index must be one integer or bool, not {}.",
             a.index.describe());
  user_check(!a.branches.empty(), ErrorKind::InvalidArgument, "there is no branch.");
  const std::vector<Tensor>& first = a.branches[0]->outputs();
  for (const ClosurePtr& branch : a.branches) {
    check_inputs(*branch, a.captured);
    const std::vector<Tensor>& made = branch->outputs();
    user_check(made.size() == first.size(), ErrorKind::InvalidArgument,
               "the branches give back {} and {} tensors.", first.size(), made.size());
    for (size_t i = 0; i < made.size(); ++i)
      user_check(alike(made[i], first[i]), ErrorKind::InvalidArgument,
                 "result {} is {} in one branch and {} in another.\nhint: Cast or reshape it so "
                 "that all branches agree.",
                 i, first[i].describe(), made[i].describe());
  }
  return metas_of(first);
}

Metas infer_while(const args::while_loop& a) {
  user_check(!a.carried.empty(), ErrorKind::InvalidArgument, "the loop carries nothing.");
  const std::vector<Tensor> given = joined({a.carried, a.captured});
  check_inputs(a.test, given);
  check_inputs(a.body, given);
  const std::vector<Tensor>& answer = a.test.outputs();
  user_check(
      answer.size() == 1 && answer[0].dtype() == DType::Bool && same(answer[0].numel(), Dim(1)),
      ErrorKind::InvalidType, "the test {} must give one bool.", a.test.str());
  check_body(a.body, a.carried, false);
  Metas metas = metas_of(a.carried);
  static const Dim rounds = Dim::symbol("rounds", 7);
  if (a.trace)
    for (const Tensor& t : a.carried) metas.push_back(stacked_like(t, rounds, true));
  return metas;
}

Metas infer_scan(const args::scan& a) {
  const Dim length = Dim::from_word(a.length);
  user_check(length.is_symbolic() || a.length >= 0, ErrorKind::InvalidArgument,
             "length is {}; a loop has no fewer than 0 rounds.", a.length);
  std::vector<Tensor> given(a.carried.begin(), a.carried.end());
  for (const Tensor& t : a.sequences) {
    user_check(t.rank() > 0 && same(t.dims()[0], length), ErrorKind::InvalidArgument,
               "a sequence is {}, but the loop has {} rounds.", t.describe(), length.str());
    given.push_back(row_like(t));
  }
  given.insert(given.end(), a.captured.begin(), a.captured.end());
  check_inputs(a.body, given);
  check_body(a.body, a.carried, true);
  Metas metas = metas_of(a.carried);
  for (size_t i = a.carried.size(); i < a.body.outputs().size(); ++i)
    metas.push_back(stacked_like(a.body.outputs()[i], length));
  if (a.trace)
    for (const Tensor& t : a.carried) metas.push_back(stacked_like(t, length));
  return metas;
}

// ---- runs --------------------------------------------------------------------------------------

// Lets the user stop a loop, and looks for that every few milliseconds only.
class Patience {
 public:
  void round() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(20)) return;
    last_ = now;
    poll_interrupt();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Results are tensors of their own: not an operand, nor one tensor twice.
Made owned(std::vector<Tensor> results, TensorList operands) {
  for (size_t i = 0; i < results.size(); ++i) {
    bool shared = false;
    for (const Tensor& t : operands) shared |= t->storage == results[i]->storage;
    for (size_t k = 0; k < i; ++k) shared |= results[k].is_same(results[i]);
    if (shared) results[i] = assign(results[i]);
  }
  return results;
}

bool is_true(const Tensor& t) {
  const bool here = t.device().is_cpu() && t.dtype() == DType::Bool;
  return here ? *t.data<bool>() : t.item_int() != 0;
}

Tensor row_of(const Tensor& t, int64_t i) {
  auto* const data =
      static_cast<char*>(t->data) + i * t->strides[0] * static_cast<int64_t>(size_of(t.dtype()));
  return Tensor::view_of(t->storage, t.dims().subspan(1), t.strides().subspan(1), data, t.dtype());
}

Tensor room_for(const TensorMeta& meta, Device device) {
  return Tensor::empty(meta.shape, meta.dtype, device);
}

Made run_switch(const args::switch_case& a) {
  const auto last = static_cast<int64_t>(a.branches.size()) - 1;
  const int64_t index = a.index.item_int();
  const Closure& branch =
      *a.branches[static_cast<size_t>(index < 0 || index > last ? last : index)];
  return owned(branch.prepared()(a.captured), a.captured);
}

Made run_while(const args::while_loop& a) {
  std::vector<Tensor> given = joined({a.carried, a.captured});
  const Closure::Function test = a.test.prepared(), body = a.body.prepared();
  std::vector<std::vector<Tensor>> trace(a.trace ? a.carried.size() : 0);
  Patience patience;
  while (is_true(test(given)[0])) {
    for (size_t i = 0; i < trace.size(); ++i) trace[i].push_back(given[i]);
    std::vector<Tensor> next = body(given);
    std::move(next.begin(), next.end(), given.begin());
    patience.round();
  }
  given.resize(a.carried.size());
  Made results = owned(std::move(given), joined({a.carried, a.captured}));
  for (size_t i = 0; i < trace.size(); ++i) {
    const Tensor& like = a.carried[i];
    results.push_back(trace[i].empty() ? room_for(stacked_like(like, 0), like.device())
                                       : stack(trace[i], 0));
  }
  return results;
}

Made run_scan(const args::scan& a) {
  const size_t carries = a.carried.size(), rows = a.sequences.size();
  std::vector<Tensor> given = joined({a.carried, a.sequences, a.captured}), stacked;
  const std::vector<Tensor>& types = a.body.outputs();
  const Device device = given.empty() ? Device{} : given[0].device();
  for (size_t i = carries; i < types.size(); ++i)
    stacked.push_back(room_for(stacked_like(types[i], a.length), device));
  for (size_t i = 0; a.trace && i < carries; ++i)
    stacked.push_back(room_for(stacked_like(a.carried[i], a.length), device));
  const Closure::Function body = a.body.prepared();
  Patience patience;
  for (int64_t round = 0; round < a.length; ++round) {
    const int64_t i = a.reverse ? a.length - 1 - round : round;
    for (size_t k = 0; k < rows; ++k) given[carries + k] = row_of(a.sequences[k], i);
    std::vector<Tensor> made = body(given);
    const size_t results = made.size() - carries;
    for (size_t k = 0; k < stacked.size(); ++k)
      copy_into(row_of(stacked[k], i), k < results ? made[carries + k] : given[k - results]);
    std::move(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(carries), given.begin());
    patience.round();
  }
  given.resize(carries);
  Made results = owned(std::move(given), joined({a.carried, a.sequences, a.captured}));
  for (Tensor& t : stacked) results.push_back(std::move(t));
  return results;
}

// ---- derivatives -------------------------------------------------------------------------------

Grads while_vjp(const vjp::while_loop& v) {
  const size_t carries = v.carried.size();
  const Loop loop{v.carried, {}, v.captured, v.body};
  std::vector<Tensor> again;
  TensorList outputs = v.out;
  if (!v.trace) {
    again = while_loop(v.carried, v.captured, ClosurePtr(&v.test), ClosurePtr(&v.body), true);
    outputs = again;
  }
  const TensorList trace = outputs.subspan(carries);
  return loop_vjp(loop, trace[0].dims()[0], trace, v.call);
}

Grads scan_vjp(const vjp::scan& v) {
  const Loop loop{v.carried, v.sequences, v.captured, v.body, v.reverse};
  std::vector<Tensor> again;
  TensorList outputs = v.out;
  if (!v.trace) {
    again =
        scan(v.carried, v.sequences, v.captured, ClosurePtr(&v.body), v.length, v.reverse, true);
    outputs = again;
  }
  return loop_vjp(loop, Dim::from_word(v.length), outputs.subspan(v.body.outputs().size()), v.call);
}

// ---- records -----------------------------------------------------------------------------------

const OpDef switch_case_op = {
    .schema = "switch_case(Tensor index, Tensor[] captured, program[] branches) -> Tensor[]",
    .brief =
        "What the branch that index names makes of the captured tensors; the last one where there "
        "is none.",
    .infer = infer_switch,
    .decompose = run_switch,
    .vjp =
        [](const vjp::switch_case& v) {
          return switch_vjp(v.index, v.captured, v.branches, v.call);
        },
    .saves = "index captured",
    .jvp = switch_jvp,
};

const OpDef while_loop_op = {
    .schema =
        "while_loop(Tensor[] carried, Tensor[] captured, program test, program body, bool trace "
        "= False) -> Tensor[]",
    .brief =
        "Body after body on what is carried, while the test says so. With trace, what each round "
        "began with stands behind the results.",
    .infer = infer_while,
    .decompose = run_while,
    .vjp = while_vjp,
    .saves = "carried captured out",
    .jvp = while_jvp,
};

const OpDef scan_op = {
    .schema =
        "scan(Tensor[] carried, Tensor[] sequences, Tensor[] captured, program body, int length, "
        "bool reverse = False, bool trace = False) -> Tensor[]",
    .brief =
        "Body after body on what is carried and the next row of every sequence: the last carried "
        "tensors, and row by row what the body gives beside them.",
    .infer = infer_scan,
    .decompose = run_scan,
    .vjp = scan_vjp,
    .saves = "carried sequences captured out",
    .jvp = scan_jvp,
};

const OpDef without_gradient_op = {
    .schema = "without_gradient(Tensor(a) x) -> Tensor(a)",
    .brief = "x itself, through which no gradient flows.",
    .infer = infer::same_as_first,
    .view = [](const args::without_gradient& a) -> std::optional<ViewSpec> {
      return ViewSpec{a.x.shape(), {a.x.strides().begin(), a.x.strides().end()}, 0};
    },
    // Not on the tape: for writes through the view.
    .vjp = [](const vjp::without_gradient& v) -> Grads { return v.grad; },
    .shard = "... -> ...",
    .traits = Trait::NoGrad,
    .numpy = "x",
    .samples = samples::unary,
};

const OpDef in_backward_op = {
    .schema = "in_backward(Tensor(a) x) -> Tensor(a)",
    .brief =
        "x itself; in a program, what is made of the result belongs to the derivative of a function.",
    .infer = infer::same_as_first,
    .view = [](const args::in_backward& a) -> std::optional<ViewSpec> {
      return ViewSpec{a.x.shape(), {a.x.strides().begin(), a.x.strides().end()}, 0};
    },
    .vjp = [](const vjp::in_backward& v) -> Grads { return v.grad; },
    .shard = "... -> ...",
    .traits = Trait::Linear,
    .numpy = "x",
    .samples = samples::unary,
};

}  // namespace

OAR_FAMILY(control, &switch_case_op, &while_loop_op, &scan_op, &without_gradient_op,
           &in_backward_op)

}  // namespace oar
