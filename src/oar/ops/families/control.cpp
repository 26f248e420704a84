// Control flow: ops whose attributes are programs. Everything that the programs read is an operand.
#include "oar/ops/gen/control.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/control_rules.h"
#include "oar/ops/families/control_runs.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/sharding/rules.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

// ---- types -------------------------------------------------------------------------------------

// A size that is known only at run time; `likely` guides capture.
Dim open_size(Dim likely) {
  static const Dim any = size_told_by_runs("any", 0);
  return max_of(any, likely);
}

// The first inputs may be variables of a loop: sizes that its body changes may have any value.
void check_inputs(const Closure& c, TensorList given, const Closure* body = nullptr,
                  size_t variables = 0) {
  const std::vector<Tensor>& wanted = c.inputs();
  user_check(wanted.size() == given.size(), ErrorKind::InvalidArgument,
             "{} takes {} tensors but got {}.", c.str(), wanted.size(), given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    Shape shape = wanted[i].shape();
    if (i < variables && given[i].rank() == wanted[i].rank())
      for (const int axis : changing_axes(*body, i))
        shape[static_cast<size_t>(axis)] = given[i].dim(axis);
    user_check(given[i].dtype() == wanted[i].dtype() && same(given[i].shape(), shape),
               ErrorKind::InvalidArgument, "{} takes {} as its input {} but got {}.", c.str(),
               wanted[i].describe(), i, given[i].describe());
  }
}

// What is known about result i, whichever branch is taken.
TensorMeta common_type(ClosureList branches, size_t i) {
  const Tensor& first = branches[0]->outputs()[i];
  TensorMeta type = infer::like(first);
  for (const ClosurePtr& branch : branches) {
    const Tensor& made = branch->outputs()[i];
    user_check(made.dtype() == first.dtype() && made.rank() == first.rank(),
               ErrorKind::InvalidArgument,
               "result {} is {} in one branch and {} in another.\nhint: Cast or reshape it so "
               "that all branches agree in dtype and number of axes.",
               i, first.describe(), made.describe());
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      if (made.dims()[axis] == first.dims()[axis]) continue;
      type.shape[axis] = open_size(max_of(type.shape[axis], made.dims()[axis]));
      type.data_dependent = true;
    }
  }
  return type;
}

Metas infer_switch(const args::switch_case& a) {
  user_check(!is_floating(a.index.dtype()) && !is_complex(a.index.dtype()) &&
                 same(a.index.numel(), Dim(1)),
             ErrorKind::InvalidArgument, "index must be one integer or bool, not {}.",
             a.index.describe());
  user_check(!a.branches.empty(), ErrorKind::InvalidArgument, "there is no branch.");
  const size_t count = a.branches[0]->outputs().size();
  for (const ClosurePtr& branch : a.branches) {
    check_inputs(*branch, a.captured);
    user_check(branch->outputs().size() == count, ErrorKind::InvalidArgument,
               "the branches return {} and {} tensors.", count, branch->outputs().size());
  }
  Metas metas;
  for (size_t i = 0; i < count; ++i) metas.push_back(common_type(a.branches, i));
  if (a.trace) metas.push_back({DType::Int64, Shape{2}});
  return metas;
}

// The final carried tensors. The body returns the tensors that it takes, and perhaps more.
Metas carried_types(const Closure& body, TensorList carried, bool more) {
  const std::vector<Tensor>&given = body.inputs(), &made = body.outputs();
  user_check(given.size() >= carried.size() &&
                 (more ? made.size() >= carried.size() : made.size() == carried.size()),
             ErrorKind::InvalidArgument, "the body {} returns {} tensors for {} that it carries.",
             body.str(), made.size(), carried.size());
  Metas metas;
  for (size_t i = 0; i < carried.size(); ++i) {
    TensorMeta type = infer::like(carried[i]);
    bool fits = made[i].dtype() == type.dtype && made[i].rank() == carried[i].rank();
    for (const int axis : fits ? changing_axes(body, i) : std::vector<int>()) {
      fits &= given[i].dim(axis).is_symbolic();
      type.shape[static_cast<size_t>(axis)] = open_size(given[i].dim(axis));
      type.data_dependent = true;
    }
    user_check(fits, ErrorKind::InvalidArgument,
               "the variables of a loop keep their dtype and number of axes: variable {} is {} and "
               "becomes {}.\nhint: Cast or reshape it before the loop or at the end of the "
               "body.",
               i, carried[i].describe(), made[i].describe());
    metas.push_back(std::move(type));
  }
  return metas;
}

// What `LoopTrace` describes; `open`: only a run tells the number of rounds.
void add_trace(Metas& metas, const Closure& body, TensorList carried, Dim rounds, bool open) {
  Metas of_slices;
  for (size_t i = 0; i < carried.size(); ++i) {
    const std::vector<int> axes = changing_axes(body, i);
    TensorMeta type = infer::like(carried[i]);
    if (axes.empty()) {
      type = {type.dtype, stacked_shape(carried[i], rounds), open};
    } else {
      const Dim slices = open_size(body.inputs()[i].dim(axes[0]));
      if (axes.size() == 1)
        type.shape[static_cast<size_t>(axes[0])] = slices;
      else
        type.shape = Shape{0};
      type.data_dependent = axes.size() == 1;
      of_slices.push_back({DType::Int64, Shape{slices}, true});
    }
    metas.push_back(std::move(type));
  }
  for (TensorMeta& m : of_slices) metas.push_back(std::move(m));
  metas.push_back({DType::Int64, Shape{rounds, 2}, open});
}

Metas infer_while(const args::while_loop& a) {
  user_check(!a.carried.empty(), ErrorKind::InvalidArgument, "the loop carries nothing.");
  Metas metas = carried_types(a.body, a.carried, false);
  const std::vector<Tensor> given = joined({a.carried, a.captured});
  check_inputs(a.test, given, &a.body, a.carried.size());
  check_inputs(a.body, given, &a.body, a.carried.size());
  const std::vector<Tensor>& answer = a.test.outputs();
  user_check(
      answer.size() == 1 && answer[0].dtype() == DType::Bool && same(answer[0].numel(), Dim(1)),
      ErrorKind::InvalidType, "the test {} must return one bool.", a.test.str());
  static const Dim rounds = size_told_by_runs("rounds", 7);
  if (a.trace) add_trace(metas, a.body, a.carried, rounds, true);
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
  Metas metas = carried_types(a.body, a.carried, true);
  check_inputs(a.body, given, &a.body, a.carried.size());
  const std::vector<Tensor>& made = a.body.outputs();
  for (size_t i = a.carried.size(); i < made.size(); ++i)
    metas.push_back({made[i].dtype(), stacked_shape(made[i], length)});
  if (a.trace) add_trace(metas, a.body, a.carried, length, false);
  return metas;
}

// ---- derivatives -------------------------------------------------------------------------------

// The loop's derivative, from the results of its call; without a trace the loop runs again to record one.
Grads derivative(const Loop& loop, TensorList outputs, bool traced, const Tensor& random,
                 const VjpCall& call) {
  LoopTrace trace(loop.body, outputs.subspan(loop.body.outputs().size()), loop.carried.size());
  const Dim rounds = trace.random.dim(0);
  if (!traced) trace.random = random;
  return loop_vjp(loop, rounds, trace, call);
}

Grads while_vjp(const vjp::while_loop& v) {
  const Loop loop{v.carried, {}, v.captured, v.body};
  if (v.trace) return derivative(loop, v.out, true, v.random, v.call);
  const std::vector<Tensor> again =
      while_loop(v.carried, v.captured, ClosurePtr(&v.test), ClosurePtr(&v.body), true, v.random);
  return derivative(loop, again, false, v.random, v.call);
}

Grads scan_vjp(const vjp::scan& v) {
  const Loop loop{v.carried, v.sequences, v.captured, v.body, v.reverse};
  if (v.trace) return derivative(loop, v.out, true, v.random, v.call);
  const std::vector<Tensor> again = scan(v.carried, v.sequences, v.captured, ClosurePtr(&v.body),
                                         v.length, v.reverse, true, v.random);
  return derivative(loop, again, false, v.random, v.call);
}

Grads derivative_given(const vjp::with_derivative& v) {
  std::vector<Tensor> cotangents;
  for (const Tensor& t : v.call.cotangents)
    if (t.defined()) cotangents.push_back(t);
  const std::vector<Tensor> made = v.backward(joined({cotangents, v.out, v.captured}));
  Grads grads;
  for (size_t i = 0; i < v.results.size(); ++i) grads.push_back(Tensor());
  for (const Tensor& g : made) grads.push_back(g);
  for (size_t i = 0; i < v.captured.size(); ++i) grads.push_back(Tensor());
  return grads;
}

// ---- records -----------------------------------------------------------------------------------

const OpDef switch_case_op = {
    .schema =
        "switch_case(Tensor index, Tensor[] captured, program[] branches, bool trace = False, "
        "Tensor? random = None) -> Tensor[]",
    .brief =
        "The results of branch number index on the captured tensors, or of the last one if there "
        "is none. With trace, the position in the random stream follows the results; random "
        "is such a place to draw from.",
    .infer = infer_switch,
    .decompose = kept(run_switch),
    .vjp =
        [](const vjp::switch_case& v) {
          return switch_vjp(v.index, v.captured, v.branches, v.trace ? v.out.back() : v.random,
                            v.call);
        },
    .saves = "index captured random out",
    .jvp = switch_jvp,
};

const OpDef while_loop_op = {
    .schema =
        "while_loop(Tensor[] carried, Tensor[] captured, program test, program body, bool trace "
        "= False, Tensor? random = None) -> Tensor[]",
    .brief =
        "The carried tensors after the body has run while the test is true. With trace, the values at "
        "the start of each iteration follow the results, their position in the random stream last; random has "
        "such places to draw from.",
    .infer = infer_while,
    .decompose = kept(run_while),
    .vjp = while_vjp,
    .saves = "carried captured random out",
    .jvp = while_jvp,
};

const OpDef scan_op = {
    .schema =
        "scan(Tensor[] carried, Tensor[] sequences, Tensor[] captured, program body, int length, "
        "bool reverse = False, bool trace = False, Tensor? random = None) -> Tensor[]",
    .brief =
        "Runs the body on the carried tensors and each row of every sequence: the last carried "
        "tensors, and row by row the other results of the body.",
    .infer = infer_scan,
    .decompose = kept(run_scan),
    .vjp = scan_vjp,
    .saves = "carried sequences captured random out",
    .jvp = scan_jvp,
};

// A function with its own derivative (PyLayer). The results are passed through unchanged: only their
// derivative matters.
const OpDef with_derivative_op = {
    .schema =
        "with_derivative(Tensor[] results, Tensor[] inputs, Tensor[] captured, program backward) -> "
        "Tensor[]",
    .brief =
        "The results; backward computes the gradients of the inputs from the results' "
        "cotangents, the results and the captured tensors.",
    .infer = [](const args::with_derivative& a) -> Metas {
      Metas metas;
      for (const Tensor& t : a.results) metas.push_back(infer::like(t));
      return metas;
    },
    .decompose = kept([](const args::with_derivative& a) -> Made {
      Made made;
      for (const Tensor& t : a.results) made.push_back(assign(t));
      return made;
    }),
    .vjp = derivative_given,
    .saves = "inputs:shape captured out",
};

const OpDef without_gradient_op = {
    .schema = "without_gradient(Tensor(a) x) -> Tensor(a)",
    .brief = "x itself, through which no gradient flows.",
    .infer = infer::same_as_first,
    .scalar = "x",
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

const OpDef with_shape_op = {
    .schema = "with_shape(Tensor(a) x, shape shape) -> Tensor(a)",
    .brief = "x itself, of which it is known that it has this shape when the program runs.",
    .infer = [](const args::with_shape& a) -> Metas {
      user_check(a.x.dims().size() == a.shape.size(), ErrorKind::InvalidArgument,
                 "x is {} and cannot have the shape {}.", a.x.describe(), to_string(a.shape));
      return TensorMeta{a.x.dtype(), Shape(a.shape)};
    },
    .scalar = "x",
    .view = [](const args::with_shape& a) -> std::optional<ViewSpec> {
      // Without content, sizes that are known only at run time are guesses.
      user_check(!a.x.is_dense() || same(a.x.shape(), Shape(a.shape)), ErrorKind::InvalidArgument,
                 "x is {}, not of the shape {}.", a.x.describe(), to_string(a.shape));
      return ViewSpec{Shape(a.shape), {a.x.strides().begin(), a.x.strides().end()}, 0};
    },
    .vjp = [](const vjp::with_shape& v) -> Grads { return with_shape(v.grad, v.x.dims()); },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::with_shape a(c.args);
      return with_shape(a.x, behind_batch(c.size, a.shape));
    },
    .shard = "... -> ...",
    .localise = sharding::result_shape("shape"),
    .traits = Trait::Linear,
    .numpy = "x.reshape(shape)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 2}), IntVector{3, 2})
              .add(t({}), IntVector{})
              .add(t({1, 0}), IntVector{1, 0});
        },
};

const OpDef in_backward_op = {
    .schema = "in_backward(Tensor(a) x) -> Tensor(a)",
    .brief =
        "x itself; in a program, what is computed from the result belongs to the derivative of a function.",
    .infer = infer::same_as_first,
    .scalar = "x",
    .view = [](const args::in_backward& a) -> std::optional<ViewSpec> {
      return ViewSpec{a.x.shape(), {a.x.strides().begin(), a.x.strides().end()}, 0};
    },
    .vjp = [](const vjp::in_backward& v) -> Grads { return v.grad; },
    .shard = "... -> ...",
    .traits = Trait::Linear | Trait::BackwardMark,
    .numpy = "x",
    .samples = samples::unary,
};

}  // namespace

OAR_FAMILY(control, &switch_case_op, &while_loop_op, &scan_op, &with_derivative_op,
           &without_gradient_op, &with_shape_op, &in_backward_op)

}  // namespace oar
