// The layer of sharded tensors: a call on them becomes calls on their pieces, as the plan of the op says.
#include <algorithm>
#include <unordered_map>

#include "oar/base/string_util.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/program_args.h"
#include "oar/ops/core/run.h"
#include "oar/ops/core/view.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/bind.h"
#include "oar/ops/sharding/choice.h"

namespace oar {
namespace {

using Axis = MeshAxisPlacement;

int64_t mesh_of_call(const Op& op, Args args) {
  const Tensor* first = nullptr;
  for_each_tensor(args, [&](const Tensor& t) {
    if (!is_sharded(t)) return;
    if (!first) first = &t;
    const int64_t mesh = sharded(*first).mesh, other = sharded(t).mesh;
    user_check(
        mesh == other, ErrorKind::InvalidArgument,
        "{} has operands on two meshes: {} is on {}, {} on {}.\nhint: reshard() moves a tensor to another mesh.",
        op.name(), first->describe(), mesh_of(mesh).name, t.describe(), mesh_of(other).name);
  });
  return first ? sharded(*first).mesh : kAlone;
}

void check_not_copied(const Tensor& x) {
  user_check(
      !is_sharded(x) || !sharded(x).is_copy, ErrorKind::Unsupported,
      "a view of a sharded tensor whose elements had to be moved between processes cannot be written: the write would not "
      "reach the tensor.\nhint: Write to the tensor itself, or to a copy of the view: y = y.clone().");
}

// The same factor in the plan of a piece, where factors have other numbers.
size_t factor_in(const ShardPlan& plan, const ShardPlan& of_whole, size_t factor) {
  const auto find = [&](const std::vector<PlanTensor>& whole,
                        const std::vector<PlanTensor>& piece) {
    for (size_t i = 0; i < whole.size(); ++i)
      for (size_t axis = 0; axis < whole[i].axes.size(); ++axis)
        if (whole[i].axes[axis].factor == static_cast<int>(factor) &&
            piece[i].axes[axis].factor >= 0)
          return piece[i].axes[axis].factor;
    return -1;
  };
  int found = find(of_whole.operands, plan.operands);
  if (found < 0) found = find(of_whole.results, plan.results);
  internal_check(found >= 0, "the plan {} of a piece lacks a factor of {}", plan.str(),
                 of_whole.str());
  return static_cast<size_t>(found);
}

// Plans that this thread has made lately: one of a step of an optimiser takes longer than the step.
class KnownPlans {
 public:
  const ShardPlan& of(const Op& op, Args args) {
    const std::string key = key_of(op, args);
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    if (plans_.size() >= kMost) plans_.clear();
    return plans_.emplace(key, plan_of(op, args)).first->second;
  }

 private:
  static std::string key_of(const Op& op, Args args) {
    std::string key = std::to_string(reinterpret_cast<uintptr_t>(&op));
    const auto add = [&](const Tensor& t) { key += t.defined() ? t.describe() : "-"; };
    for (const Value& v : args) {
      key += ';';
      if (v.is_tensor()) {
        add(v.as_tensor());
      } else if (v.is_tensors()) {
        for (const Tensor& t : v.as_tensors()) add(t);
      } else {
        key += v.str();
      }
    }
    return key;
  }

  static constexpr size_t kMost = 1000;
  std::unordered_map<std::string, ShardPlan> plans_;
};

thread_local KnownPlans t_known_plans;

bool has_open_sizes(Args args) {
  bool open = false;
  for_each_tensor(args, [&](const Tensor& t) { open = open || !t.shape().is_known(); });
  return open;
}

class ShardedCall {
 public:
  ShardedCall(const Op& op, Args args)
      : op_(op), args_(args), mesh_number_(mesh_of_call(op, args)), mesh_(mesh_of(mesh_number_)) {}

  Outputs run() {
    read_plan();
    move_operands();
    Outputs outputs = run_levels();
    for (size_t r = 0; r < outputs.size(); ++r) outputs[r] = placed(outputs[r], r);
    write_back();
    return outputs;
  }

 private:
  struct Level {
    size_t factor;             // of the whole plan
    std::vector<size_t> axes;  // of the mesh
  };

  void read_plan() {
    plan_ = whole_plan(op_, args_, {});
    choice_ = uncut(plan_, mesh_number_);
    if (op_.has(Trait::DataDependent) || takes_programs(op_.schema())) return;
    try {
      ShardPlan plan = has_open_sizes(args_) ? plan_of(op_, args_) : t_known_plans.of(op_, args_);
      for (const PlanTensor& t : plan.results)
        if (!t.shape.is_known()) return;
      plan_ = std::move(plan);
    } catch (const Error&) {
      return;  // a plan needs sizes that depend on values, or the call is wrong, which its run will say
    }
    choice_ = choose_cut(op_, args_, plan_, mesh_number_);
    for (size_t m = 0; m < mesh_.rank(); ++m)
      for (const size_t factor : choice_.factors[m]) {
        const auto found = std::find_if(levels_.begin(), levels_.end(),
                                        [&](const Level& l) { return l.factor == factor; });
        if (found == levels_.end())
          levels_.push_back({factor, {m}});
        else
          found->axes.push_back(m);
      }
    // Pieces that are more than a call cannot be cut again.
    std::stable_partition(levels_.begin(), levels_.end(), [&](const Level& l) {
      const PlanFactor& f = plan_.factors[l.factor];
      return !f.by_calls && f.positions < 0;
    });
  }

  void move_operands() {
    local_ = Frame(args_);
    for (size_t i = 0; i < plan_.operands.size(); ++i) {
      const PlanTensor& place = plan_.operands[i];
      const Tensor& t = tensor_at(args_, place);
      if (is_written(i)) check_not_copied(t);
      pieces_.push_back(moved_piece(t, mesh_number_, choice_.operands[i]));
      set_tensor(local_, place, pieces_.back());
    }
  }

  Piece piece_of(const Level& level, const ShardPlan& plan, size_t factor) const {
    Part part{0, plan.factors[factor].size.value()};
    for (const size_t m : level.axes) {
      const Part inside = part_of(part.size, mesh_.sizes[m], mesh_.place[m]);
      part = {part.start + inside.start, inside.size};
    }
    return {factor, part.start, part.size};
  }

  Outputs run_levels() {
    if (levels_.empty()) return dispatch(op_, local_.args());
    Frame whole = bare_call(args_);
    ShardPlan plan = plan_;
    std::vector<std::pair<ShardPlan, Piece>> outer;
    for (size_t i = 0; i + 1 < levels_.size(); ++i) {
      const Piece piece = piece_of(levels_[i], plan, factor_in(plan, plan_, levels_[i].factor));
      local_ = localised(op_, local_, plan, piece);
      whole = bare_piece(op_, whole.args(), plan, piece);
      outer.emplace_back(std::move(plan), piece);
      plan = plan_of(op_, whole.args());
    }
    const Level& last = levels_.back();
    const Piece piece = piece_of(last, plan, factor_in(plan, plan_, last.factor));
    Outputs outputs = run_cut_piece(op_, whole.args(), local_, plan, piece);
    join_level(last, plan, piece, whole.args(), outputs);
    for (size_t i = outer.size(); i-- > 0;)
      join_level(levels_[i], outer[i].first, outer[i].second, args_, outputs);
    return outputs;
  }

  // What results need before they have placements.
  void join_level(const Level& level, const ShardPlan& plan, const Piece& piece, Args whole,
                  Outputs& outputs) {
    const auto joined = [&](Join join, size_t r, const Op& by, Args of) {
      return joined_along(level, join, piece, plan, outputs[r], by, of);
    };
    Outputs finished;
    for (size_t r = 0; r < plan.results.size(); ++r) {
      const Join join = plan.join_of(piece.factor, r);
      if (join == Join::Mean) outputs[r] = outputs[r] * weight(piece, plan);
      finished.push_back(join == Join::Again    ? joined(join, r, op_, whole)
                         : join == Join::Inside ? Tensor()
                                                : outputs[r]);
    }
    if (plan.factors[piece.factor].by_calls)
      finish_calls(op_, whole, plan, piece.factor, joined, finished);
    outputs = std::move(finished);
  }

  static double weight(const Piece& piece, const ShardPlan& plan) {
    return static_cast<double>(piece.size.value()) /
           static_cast<double>(plan.factors[piece.factor].size.value());
  }

  // The same value in all processes of a level, from what each has.
  Tensor joined_along(const Level& level, Join join, const Piece& piece, const ShardPlan& plan,
                      const Tensor& mine, const Op& by, Args of) const {
    if (join == Join::Same) return mine;
    if (join == Join::Again) {
      std::vector<Tensor> parts{mine};
      for (size_t i = level.axes.size(); i-- > 0;) {
        std::vector<Tensor> more = pieces_along(stacked(parts), mesh_, level.axes[i]);
        parts.clear();
        for (const Tensor& t : more)
          for (Tensor& part : rows_of(t)) parts.push_back(std::move(part));
      }
      return reduced_again(by, of, parts);
    }
    const bool mean = join == Join::Mean;
    Tensor total = mean ? mine * weight(piece, plan) : mine;
    const PartialBy by_sum = join == Join::Max   ? PartialBy::Max
                             : join == Join::Min ? PartialBy::Min
                                                 : PartialBy::Sum;
    for (const size_t m : level.axes) total = reduced_along(total, by_sum, mesh_, m);
    return total;
  }

  static Tensor stacked(const std::vector<Tensor>& parts) { return stack(parts, 0); }
  static std::vector<Tensor> rows_of(const Tensor& t) {
    std::vector<Tensor> rows;
    for (int64_t i = 0; i < t.dims()[0].value(); ++i)
      rows.push_back(slice_view(t, SliceIndex().at(i)));
    return rows;
  }

  Placement placement_of(size_t result) const {
    Placement placement = replicated_on(mesh_number_);
    for (size_t m = 0; m < mesh_.rank(); ++m) {
      Axis& axis = placement.axes[m];
      if (choice_.parts[m]) {
        axis.kind = Axis::Partial;
        axis.by = *choice_.parts[m];
      }
      for (const size_t factor : choice_.factors[m])
        set_axis(axis, plan_.join_of(factor, result), factor, result);
    }
    return placement;
  }

  void set_axis(Axis& axis, Join join, size_t factor, size_t result) const {
    if (join == Join::Concat) {
      axis.kind = Axis::Shard;
      for (size_t i = 0; i < plan_.results[result].axes.size(); ++i)
        if (plan_.results[result].axes[i].factor == static_cast<int>(factor))
          axis.axis = static_cast<int32_t>(i);
    } else if (join == Join::Sum || join == Join::Mean || join == Join::Max || join == Join::Min) {
      axis.kind = Axis::Partial;
      axis.by = join == Join::Max   ? PartialBy::Max
                : join == Join::Min ? PartialBy::Min
                                    : PartialBy::Sum;
    }
  }

  // A result of the whole call from its piece.
  Tensor placed(const Tensor& local, size_t result) const {
    if (!local.defined()) return local;
    for (size_t i = 0; i < pieces_.size(); ++i)
      if (local.is_same(pieces_[i]) && (levels_.empty() || is_written(i)))
        return tensor_at(args_, plan_.operands[i]);
    if (!local.is_dense() && local.kind() != Kind::Symbolic) {
      internal_check(levels_.empty(), "{} gives pieces of {}", op_.name(), local.describe());
      return local;
    }
    const bool is_cut = !levels_.empty();
    const Placement placement =
        is_cut || is_partial() ? placement_of(result) : replicated_on(mesh_number_);
    const Shape whole = is_cut ? plan_.results[result].shape : local.shape();
    const Tensor* base = nullptr;
    bool copied = false;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Tensor& x = tensor_at(args_, plan_.operands[i]);
      if (!local->storage || !pieces_[i].defined() || pieces_[i]->storage != local->storage)
        continue;
      if (is_own(x, pieces_[i])) {
        base = &x;
      } else {
        copied = true;
      }
    }
    const Tensor out = make_sharded(local, whole, mesh_number_, placement, copied);
    if (base && !copied)
      out->view_base =
          (*base)->view_base ? (*base)->view_base : Intrusive<TensorImpl>(base->impl());
    return out;
  }

  bool is_partial() const {
    return std::any_of(choice_.parts.begin(), choice_.parts.end(),
                       [](const auto& p) { return p.has_value(); });
  }

  static bool is_own(const Tensor& x, const Tensor& piece) {
    return piece.is_same(is_sharded(x) ? sharded(x).local : x);
  }

  bool is_written(size_t operand) const {
    return op_.schema().parameters[plan_.operands[operand].parameter].written;
  }

  // Operands that were written in another placement than their own.
  void write_back() const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Tensor& x = tensor_at(args_, plan_.operands[i]);
      if (!is_written(i) || is_own(x, pieces_[i])) continue;
      const Tensor now = make_sharded(pieces_[i], x.dims(), mesh_number_, choice_.operands[i]);
      const Placement to = is_sharded(x) ? sharded(x).placement : replicated_on(mesh_number_);
      copy_into(is_sharded(x) ? sharded(x).local : x, moved_piece(now, mesh_number_, to));
    }
  }

  const Op& op_;
  const Args args_;
  const int64_t mesh_number_;
  const ProcessMesh& mesh_;
  ShardPlan plan_;
  Choice choice_;
  std::vector<Level> levels_;
  std::vector<Tensor> pieces_;  // by operand of the plan
  Frame local_;
};

// `name_`: the result of `name` goes where the first operand is.
Outputs run_inplace(const Op& op, Args args) {
  const Op& functional = *op.inplace_of();
  const Tensor& x = args[0].as_tensor();
  check_not_copied(x);
  const Tensor made = dispatch(functional, args)[0];
  const OpScope scope(op.name().c_str());
  check_fits_in_place(functional, made.dtype(), made.shape(), x);
  const Tensor value = made.dtype() == x.dtype() ? made : cast(made, x.dtype());
  const int64_t mesh = mesh_of_call(op, args);
  const Tensor& local = is_sharded(x) ? sharded(x).local : x;
  copy_into(local,
            moved_piece(value, mesh, is_sharded(x) ? sharded(x).placement : replicated_on(mesh)));
  Outputs outputs;
  outputs.push_back(x);
  return outputs;
}

Outputs distribution_layer(const Op& op, Args args) {
  const LayersOff above(kAboveSharding & ~kDistributed);
  user_check(
      !op.has(Trait::Exchanges), ErrorKind::Unsupported,
      "{} is a call of processes on what each of them has, and {} is one tensor for all of them.\nhint: reshard() moves "
      "its pieces; pass the piece of this process, dtensor_to_local(x), to exchange that.",
      op.name(), args[0].as_tensor().describe());
  return op.inplace_of() ? run_inplace(op, args) : ShardedCall(op, args).run();
}

}  // namespace

void install_distribution_layer() { install_layer(kDistributed, distribution_layer); }

}  // namespace oar
