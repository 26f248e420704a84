// Batching. An op batches by its own rule, by its sharding rule if a leading `...` passes through,
// by its decomposition, or slice by slice.
#include "oar/autograd/record.h"
#include "oar/autograd/transform.h"
#include "oar/ops/core/program_args.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/rule.h"

namespace oar {
namespace {

Dim batch_size(Args args, int level) {
  Dim size = 0;
  for_each_tensor(args, [&](const Tensor& t) {
    if (const Wrapped* w = wrapped_at(t, level)) size = static_cast<const Batched*>(w)->size();
  });
  return size;
}

bool is_batched(const Value& v, int level) {
  bool found = false;
  for_each_tensor(Args(&v, 1), [&](const Tensor& t) { found |= wrapped_at(t, level) != nullptr; });
  return found;
}

Outputs wrap_all(const Outputs& outputs, int level) {
  Outputs wrapped;
  for (const Tensor& t : outputs) wrapped.push_back(make_batched(t, level));
  return wrapped;
}

// [B, rest] with ones between, so that `rank` axes follow the batch.
Tensor pad_rank(const Tensor& value, int rank) {
  const int missing = rank - (value.rank() - 1);
  if (missing <= 0) return value;
  Shape shape;
  shape.push_back(value.dims()[0]);
  for (int i = 0; i < missing; ++i) shape.push_back(1);
  for (Dim d : value.dims().subspan(1)) shape.push_back(d);
  return reshape(value, shape);
}

// The axes of a bound attribute, one further to the right. None (all axes) becomes explicit.
bool shift_axes(const Op& op, Frame& frame, Args args, const ShardRule& rule, int level) {
  for (const ShardFactor& factor : rule.factors) {
    if (factor.attribute.empty()) continue;
    const auto index = static_cast<size_t>(op.schema().index_of(factor.attribute));
    const Value& v = args[index];
    int rank = 0;
    for_each_tensor(args, [&](const Tensor& t) { rank = std::max(rank, t.rank()); });
    if (rank == 0) return false;
    std::vector<int64_t> axes;
    if (v.is_none())
      for (int i = 0; i < rank; ++i) axes.push_back(i + 1);
    else if (v.tag == OAR_TAG_INTS && v.count == 0)
      for (int i = 0; i < rank; ++i) axes.push_back(i + 1);
    else if (v.tag == OAR_TAG_INTS)
      for (int64_t axis : v.as_ints()) axes.push_back(normalise_axis(axis, rank) + 1);
    else
      axes.push_back(normalise_axis(v.as_int(), rank) + 1);
    const Parameter& p = op.schema().parameters[index];
    if (p.list)
      frame.set(index, Ints(axes));
    else if (axes.size() == 1)
      frame.set(index, axes[0]);
    else
      return false;  // one axis is required, None would mean all
  }
  static_cast<void>(level);
  return true;
}

// By the sharding rule; empty if it does not fit this call.
Outputs by_shard_rule(const Op& op, Args args, int level) {
  const char* text = rules_of(op).def().shard;
  if (!text) return {};
  const ShardRule rule = ShardRule::parse(text, op.schema());
  if (!rule.batches()) return {};
  int extra = 0;  // the most axes that any operand's leading `...` stands for
  size_t operand = 0;
  std::vector<int> leading;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.schema().parameters[i].is_tensor()) continue;
    const ShardTerm& term = rule.operands[operand++];
    if (args[i].is_tensors()) return {};
    const int rank = args[i].is_tensor() ? args[i].as_tensor().rank() : 0;
    const int own = rank - static_cast<int>(term.factors.size());
    if (args[i].is_tensor() && own < 0) return {};
    leading.push_back(term.trailing ? 0 : own);
    extra = std::max(extra, leading.back());
  }
  Frame frame = unwrapped(args, level);
  if (!shift_axes(op, frame, args, rule, level)) return {};
  // Operands of one pattern that are not broadcast must have equal shapes: all of them get the batch.
  const auto like_first = [&](const ShardTerm& term) {
    return term.factors == rule.operands[0].factors && term.trailing == rule.operands[0].trailing;
  };
  const bool alike = !op.has(Trait::Broadcast) &&
                     std::all_of(rule.operands.begin(), rule.operands.end(), like_first);
  operand = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.schema().parameters[i].is_tensor()) continue;
    const int own = leading[operand++];
    if (is_batched(args[i], level)) {
      frame.set_tensor(i, pad_rank(frame[i].as_tensor(), args[i].as_tensor().rank() + extra - own));
    } else if (alike && args[i].is_tensor()) {
      Shape shape{batch_size(args, level)};
      for (Dim d : args[i].as_tensor().dims()) shape.push_back(d);
      frame.set_tensor(i, broadcast_to(args[i].as_tensor(), shape));
    }
  }
  return dispatch(op, frame.args());
}

Outputs by_rule(const Op& op, Args args, int level) {
  const Frame frame = unwrapped(args, level);
  std::unique_ptr<bool[]> batched(new bool[args.size()]);
  for (size_t i = 0; i < args.size(); ++i) batched[i] = is_batched(args[i], level);
  return rules_of(op).def().batch(
      BatchCall{frame.args(), batch_size(args, level), {batched.get(), args.size()}});
}

Tensor slice_at(const Tensor& value, int64_t b) {
  const int64_t index[] = {1, b, 0, 1};
  return slice_view(value, Ints(index, 4));
}

Outputs slice_by_slice(const Op& op, Args args, int level) {
  const Dim size = batch_size(args, level);
  user_check(
      size.is_known() && size.word() > 0, ErrorKind::Unsupported,
      "{} runs slice by slice under vmap, which needs a known batch of at least one, not {}.",
      op.name(), size.str());
  std::vector<std::vector<Tensor>> parts;
  for (int64_t b = 0; b < size.word(); ++b) {
    Frame frame(args);
    for (size_t i = 0; i < args.size(); ++i) {
      const auto piece = [&](const Tensor& t) {
        const Wrapped* w = wrapped_at(t, level);
        return w ? slice_at(w->value, b) : t;
      };
      if (args[i].is_tensor()) frame.set_tensor(i, piece(args[i].as_tensor()));
      if (args[i].is_tensors()) {
        std::vector<Tensor> list;
        for (const Tensor& t : args[i].as_tensors()) list.push_back(piece(t));
        frame.set_tensors(i, std::move(list));
      }
    }
    const Outputs outputs = dispatch(op, frame.args());
    parts.resize(outputs.size());
    for (size_t k = 0; k < outputs.size(); ++k) parts[k].push_back(outputs[k]);
  }
  Outputs stacked;
  for (const std::vector<Tensor>& part : parts) {
    for (const Tensor& t : part)
      user_check(
          same(t.shape(), part[0].shape()), ErrorKind::InvalidArgument,
          "{} returns results of different shapes ({} and {}) for the slices of a batch, so it "
          "cannot run under vmap.",
          op.name(), to_string(t.dims()), to_string(part[0].dims()));
    stacked.push_back(stack(part, 0));
  }
  return stacked;
}

Outputs write_batched(const Op& op, Args args, int level) {
  const Tensor& x = args[0].as_tensor();
  const Wrapped* target = wrapped_at(x, level);
  const Tensor out = functional_result(op, args)[0];
  const Wrapped* made = wrapped_at(out, level);
  user_check(target || !made, ErrorKind::InvalidArgument,
             "a tensor from outside vmap cannot be written with values that differ per slice."
             "\nhint: Clone it inside the function first.");
  if (target) {
    const Tensor value = made ? pad_rank(made->value, x.rank()) : out;
    copy_into(target->value, value);
  } else {
    copy_into(x, out);
  }
  Outputs outputs;
  outputs.push_back(x);
  return outputs;
}

}  // namespace

Outputs Batched::call(const Op& op, Args args) const {
  const OpDef& rules = rules_of(op).def();
  if (op.has(Trait::Inplace)) return write_batched(op, args, level);
  check_arguments(op, args);
  if (rules.batch) return wrap_all(by_rule(op, args, level), level);
  if (Outputs outputs = by_shard_rule(op, args, level); !outputs.empty())
    return wrap_all(outputs, level);
  // The decomposition of an op with programs reads values.
  if (rules.decompose && !takes_programs(op.schema())) return rules.decompose(args);
  return wrap_all(slice_by_slice(op, args, level), level);
}

std::vector<Tensor> vmap(const TensorFunction& f, TensorList inputs, Ints in_axes, Ints out_axes) {
  user_check(in_axes.size() == inputs.size(), ErrorKind::InvalidArgument,
             "vmap got {} inputs but {} axes for them.", inputs.size(), in_axes.size());
  const TransformLevel transform;
  std::optional<Dim> size;
  std::vector<Tensor> wrapped;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (in_axes[i] == kNoAxis) {
      wrapped.push_back(inputs[i]);
      continue;
    }
    const int64_t axis = normalise_axis(in_axes[i], inputs[i].rank(), "in_axes");
    const Tensor front = axis == 0 ? inputs[i] : moveaxis(inputs[i], {axis}, {0});
    user_check(!size || same(*size, front.dims()[0]), ErrorKind::InvalidArgument,
               "the batches of vmap's inputs differ: {} and {}.", size ? size->str() : "",
               front.dims()[0].str());
    size = front.dims()[0];
    wrapped.push_back(make_batched(front, transform.level()));
  }
  user_check(size.has_value(), ErrorKind::InvalidArgument,
             "vmap needs at least one input with an axis to map over.");
  const std::vector<Tensor> results = f(wrapped);
  user_check(out_axes.size() == 1 || out_axes.size() == results.size(), ErrorKind::InvalidArgument,
             "vmap got {} out_axes for {} results.", out_axes.size(), results.size());
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const Wrapped* w = wrapped_at(results[i], transform.level());
    Tensor value;
    if (w) {
      value = w->value;
    } else {
      Shape shape{*size};
      for (Dim d : results[i].dims()) shape.push_back(d);
      value = broadcast_to(results[i], shape);
    }
    const int64_t axis =
        normalise_axis(out_axes.size() == 1 ? out_axes[0] : out_axes[i], value.rank(), "out_axes");
    outputs.push_back(axis == 0 ? value : moveaxis(value, {0}, {axis}));
  }
  return outputs;
}

}  // namespace oar
