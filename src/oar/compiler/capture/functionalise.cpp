#include "oar/compiler/capture/functionalise.h"

#include "oar/autograd/record.h"
#include "oar/compiler/capture/capture.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"

namespace oar {
namespace {

// The argument that a result is, by its alias letter; -1 if the result is a new tensor.
int argument_of(const Op& op, const Result& result) {
  if (!result.written) return -1;
  const std::vector<Parameter>& parameters = op.schema().parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].written && parameters[i].alias == result.alias) return static_cast<int>(i);
  return -1;
}

// What the caller gets: the written arguments themselves, and the other results.
Outputs results_of(const Op& op, Args args, const Outputs& made) {
  Outputs outputs;
  for (size_t k = 0; k < op.schema().results.size(); ++k) {
    const int i = argument_of(op, op.schema().results[k]);
    if (i >= 0)
      for_each_tensor(args.subspan(static_cast<size_t>(i), 1),
                      [&](const Tensor& t) { outputs.push_back(t); });
    else if (k < made.size())
      outputs.push_back(made[k]);
  }
  return outputs;
}

void write_result(Capture& capture, const Op& op, const Tensor& x, Tensor value) {
  user_check(value.rank() == x.rank() && same(value.shape(), x.shape()), ErrorKind::InvalidArgument,
             "the result has shape {} and cannot be written to a tensor of shape {}."
             "\nhint: Use {} without the underscore.",
             to_string(value.dims()), to_string(x.dims()), op.name());
  if (value.dtype() != x.dtype()) value = cast(value, x.dtype());
  capture.write(x, value);
}

// The arguments as they are now: the tape may save them before they are overwritten. Leaves are kept
// as they are, since gradients must reach them.
Frame frozen(Capture& capture, const Op& op, Args args) {
  Frame frame(args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor()) continue;
    const Tensor& t = args[i].as_tensor();
    const bool leaf = grad_enabled() && t.has(kRecording) && is_leaf(t);
    const bool written = op.schema().parameters[i].written;
    if (!leaf && (written || t.kind() == Kind::Symbolic)) frame.set_tensor(i, capture.snapshot(t));
  }
  return frame;
}

// A copy needs no instruction: the target takes over the value. On the tape it is a node, since the
// old content has a gradient too, if only zeros.
void copy_value(Capture& capture, const Op& copy_into_op, const Tensor& x, const Tensor& given) {
  Tensor value = given.shape() == x.shape() ? given : broadcast_to(given, x.dims());
  if (value.dtype() != x.dtype()) value = cast(value, x.dtype());
  if (!grad_enabled() || !x.has(kRecording)) return capture.write(x, value);
  const Tensor before = capture.snapshot(x);
  const Value args[] = {Value(before), Value(value)};
  auto node = make_intrusive<OpNode>(copy_into_op, Args(args, 2));
  const Tensor after = [&] {
    const GradMode off(false);
    return capture.snapshot(value);
  }();
  Outputs outputs;
  outputs.push_back(after);
  node->save_outputs(outputs);
  set_history(after, node, 0);
  capture.write(x, after);
}

bool has_single_results(const Op& op) {
  for (const Parameter& p : op.schema().parameters) {
    if (!p.written) continue;
    bool returned = false;
    for (const Result& r : op.schema().results) returned |= r.written && r.alias == p.alias;
    if (!returned || p.list) return false;
  }
  return true;
}

}  // namespace

Outputs functionalise_write(Capture& capture, const Op& op, Args args) {
  OpScope scope(op.name().c_str());
  if (op.stores()) {
    const Tensor& value = args[static_cast<size_t>(op.copied())].as_tensor();
    copy_value(capture, op, args[0].as_tensor(), value);
    return results_of(op, args, {});
  }
  if (is_update(op)) {
    const Outputs made = capture.record(op, args);
    size_t next = 0;
    for (size_t i = 0; i < args.size(); ++i)
      if (op.schema().parameters[i].written)
        for_each_tensor(args.subspan(i, 1),
                        [&](const Tensor& t) { write_result(capture, op, t, made[next++]); });
    return results_of(op, args, {});
  }
  const Op* functional = functional_of(op);
  if (functional && has_single_results(op)) {
    const Outputs made = call_below_casts(*functional, frozen(capture, op, args).args());
    for (size_t k = 0; k < made.size(); ++k)
      if (const int i = argument_of(op, op.schema().results[k]); i >= 0)
        write_result(capture, op, args[static_cast<size_t>(i)].as_tensor(), made[k]);
    return results_of(op, args, made);
  }
  user_check(static_cast<bool>(op.def().decompose), ErrorKind::Unsupported,
             "{} writes its arguments and has no functional form, so it cannot be captured.\n"
             "hint: Call it outside the captured function, or give the op a decomposition.",
             op.name());
  return results_of(op, args, op.def().decompose(args));
}

Tensor put_view(const Op& op, const Frame& args, const Tensor& base, const Tensor& view) {
  // The vjp of a view puts a cotangent where the view took its elements from, and zeros
  // elsewhere: exactly the write.
  const bool by_shape = !(op.saved_inputs() & 1);
  const auto scatter = [&](const Tensor& part) {
    Frame frame = args.clone();
    frame.set_tensor(0, by_shape ? Tensor::meta(base.dims(), part.dtype(), base.device()) : base);
    const Tensor outputs[] = {part};
    return call_vjp(op, frame.args(), outputs, {&part, 1})[0];
  };
  Tensor whole = scatter(view);
  if (view.numel() == base.numel()) return whole;  // every element has been written
  const Tensor mask = cast(scatter(full(view.dims(), Scalar(1.0), DType::Float32)), DType::Bool);
  static const Op& where_op = get_op("where");
  const Value values[] = {Value(mask), Value(whole), Value(base)};
  return call_below_casts(where_op, Args(values, 3))[0];
}

}  // namespace oar
