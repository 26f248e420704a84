#include "oar/compiler/capture/control_flow.h"

#include <algorithm>

#include "oar/autograd/node.h"
#include "oar/autograd/transform.h"
#include "oar/compiler/capture/regions.h"
#include "oar/ops/families/control_rules.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/control.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/slice.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

bool is_capturing() { return Capture::current() && !(t_layers.off & kCapture); }

// Regions of one call, adapted to take the same outside tensors.
class Fitted {
 public:
  explicit Fitted(std::vector<RegionParts> regions) : regions_(std::move(regions)) {
    for (const RegionParts& region : regions_)
      for (const Lifted& l : region.lifted) meet(region, l);
    for (RegionParts& region : regions_) {
      region.forget_stops([&](ValueId, const Lifted* l) {
        return l && !tensors_[number_of(l->tensor)].has(kRecording);
      });
      std::vector<Lifted>& places = places_.emplace_back(count());
      for (const Lifted& l : region.lifted) places[number_of(l.tensor)] = l;
    }
  }

  size_t count() const { return tensors_.size(); }
  bool is_written(size_t i) const { return written_[i]; }
  std::vector<Tensor> tensors(bool written) const {
    std::vector<Tensor> list;
    for (size_t i = 0; i < count(); ++i)
      if (written_[i] == written) list.push_back(tensors_[i]);
    return list;
  }
  const RegionParts& region(size_t r) const { return regions_[r]; }
  bool writes(size_t r) const {
    const std::vector<Lifted>& list = regions_[r].lifted;
    return std::any_of(list.begin(), list.end(),
                       [](const Lifted& l) { return l.written != kNoValue; });
  }

  // After its own inputs, the region takes all tensors, written ones first.
  void complete(size_t r, bool gives_written) {
    Program& program = regions_[r].program;
    for (const bool written : {true, false})
      for (size_t i = 0; i < count(); ++i) {
        if (written_[i] != written) continue;
        const Lifted& l = place(r, i);
        program.inputs.push_back(l.value);
        if (written && gives_written)
          program.outputs.push_back(l.written == kNoValue ? l.value : l.written);
      }
  }
  bool is_flowing(size_t r, size_t output) const {
    return regions_[r].is_flowing(regions_[r].program.outputs[output]);
  }
  ClosurePtr region_of(size_t r) { return to_region(std::move(regions_[r].program)); }
  // Carried tensors come before the rows, and before what is stacked.
  ClosurePtr scan_body(size_t carried, size_t rows) {
    Program& program = regions_[0].program;
    const size_t results = program.outputs.size();
    complete(0, true);
    const size_t written = program.outputs.size() - results;
    const auto at = [](std::vector<ValueId>& list, size_t i) {
      return list.begin() + static_cast<std::ptrdiff_t>(i);
    };
    std::rotate(at(program.inputs, carried), at(program.inputs, carried + rows),
                at(program.inputs, carried + rows + written));
    std::rotate(at(program.outputs, carried), at(program.outputs, results), program.outputs.end());
    return region_of(0);
  }

  // Writes the results of the call to the tensors that the regions write.
  void write_back(TensorList made) const {
    size_t next = 0;
    for (size_t i = 0; i < count(); ++i) {
      if (!written_[i]) continue;
      const Tensor& value = made[next++];
      const GradMode mode(grad_enabled() && flowing_[i]);
      copy_into(tensors_[i], flowing_[i] ? value : detach(value));
    }
  }

 private:
  size_t number_of(const Tensor& t) const {
    const Intrusive<Cell> cell = Capture::require().cell_of(t);
    size_t i = 0;
    while (i < cells_.size() && !(cells_[i] == cell)) ++i;
    return i;
  }

  void meet(const RegionParts& region, const Lifted& l) {
    const size_t i = number_of(l.tensor);
    if (i == cells_.size()) {
      cells_.push_back(Capture::require().cell_of(l.tensor));
      tensors_.push_back(l.tensor);
      written_.push_back(false);
      flowing_.push_back(false);
    }
    if (l.tensor.has(kRecording)) tensors_[i] = l.tensor;  // another branch may have it detached
    written_[i] = written_[i] || l.written != kNoValue;
    flowing_[i] = flowing_[i] || (l.written != kNoValue && region.is_flowing(l.written));
  }

  const Lifted& place(size_t r, size_t i) {
    Lifted& l = places_[r][i];
    const Tensor& t = tensors_[i];
    if (l.value == kNoValue)
      l.value = regions_[r].program.add_value({t.dtype(), t.shape(), t.device()});
    return l;
  }

  std::vector<RegionParts> regions_;
  std::vector<Intrusive<Cell>> cells_;
  std::vector<Tensor> tensors_;
  std::vector<bool> written_, flowing_;
  std::vector<std::vector<Lifted>> places_;  // by region and tensor
};

std::vector<Tensor> first(const std::vector<Tensor>& list, size_t count) {
  return {list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count)};
}

bool draws(const RegionParts& parts) { return draws_random(parts.program); }

bool any_writes(const std::vector<RegionParts>& regions) {
  for (const RegionParts& r : regions)
    for (const Lifted& l : r.lifted)
      if (l.written != kNoValue) return true;
  return false;
}

// For a call that only draws random numbers: a program needs results to name a call.
void give_something(Program& program) {
  const Tensor zero = Tensor::scalar(int64_t{0}, DType::Bool);
  const ValueId id = program.add_value({zero.dtype(), zero.shape(), zero.device()});
  program.constants.push_back({id, zero});
  program.outputs.push_back(id);
}

std::vector<Tensor> captured_switch(const Tensor& index, const std::vector<Branch>& branches,
                                    const std::vector<std::string>& names) {
  std::vector<RegionParts> parts;
  for (size_t i = 0; i < branches.size(); ++i)
    parts.push_back(capture_region(names[i], {}, [&](TensorList) { return branches[i](); }));
  const size_t results = parts[0].program.outputs.size();
  for (const RegionParts& p : parts)
    user_check(p.program.outputs.size() == results, ErrorKind::InvalidArgument,
               "{} returns {} tensors and {} returns {}.\nhint: All branches must return the "
               "same number of tensors.",
               parts[0].program.name, results, p.program.name, p.program.outputs.size());
  if (results == 0 && !any_writes(parts)) {
    if (std::none_of(parts.begin(), parts.end(), draws)) return {};
    for (RegionParts& p : parts) give_something(p.program);
  }
  const bool any_draws = std::any_of(parts.begin(), parts.end(), draws);
  Fitted fitted(std::move(parts));
  std::vector<bool> flows(results, false);
  std::vector<ClosurePtr> regions;
  for (size_t r = 0; r < branches.size(); ++r) {
    for (size_t k = 0; k < results; ++k) flows[k] = flows[k] || fitted.is_flowing(r, k);
    fitted.complete(r, true);
    regions.push_back(fitted.region_of(r));
  }
  const std::vector<Tensor> given = joined({fitted.tensors(true), fitted.tensors(false)});
  std::vector<Tensor> made = switch_case(index, given, regions, any_draws);
  if (fitted.count() > 0) fitted.write_back(TensorList(made).subspan(results));
  made.resize(results);
  for (size_t k = 0; k < results; ++k)
    if (!flows[k]) made[k] = detach(made[k]);
  return made;
}

void check_loop_results(const Program& body, size_t carried, bool more) {
  const size_t made = body.outputs.size();
  user_check(more ? made >= carried : made == carried, ErrorKind::InvalidArgument,
             "the body of the loop returns {} tensors for its {} variables.\nhint: Return "
             "every variable, changed or not, in the same order.",
             made, carried);
}

// The variables of a loop as its programs see them: sizes that change between iterations are open.
class LoopTypes {
 public:
  explicit LoopTypes(std::vector<Tensor> start) : types_(std::move(start)) {}
  const std::vector<Tensor>& types() const { return types_; }
  const std::vector<Dim>& open() const { return open_; }

  // Does the body, captured on these types, return others? Then they are open from now on.
  bool widen(const Program& body) {
    bool any = false;
    for (size_t i = 0; i < types_.size(); ++i) {
      const Shape& made = body.type_of(body.outputs[i]).shape;
      Shape shape = types_[i].shape();
      if (made == shape || made.size() != shape.size()) continue;
      for (size_t axis = 0; axis < shape.size(); ++axis) any |= widen(shape[axis], made[axis]);
      types_[i] = Tensor::meta(shape, types_[i].dtype(), types_[i].device());
    }
    return any;
  }

 private:
  bool widen(Dim& before, Dim after) {
    if (before == after || std::find(open_.begin(), open_.end(), before) != open_.end())
      return false;
    // A size that nothing else in the body has: the current one will not stay.
    before = size_told_by_runs("n", before.hint() + 5);
    open_.push_back(before);
    return true;
  }

  std::vector<Tensor> types_;
  std::vector<Dim> open_;
};

}  // namespace

int64_t choice_of(const Tensor& t) {
  Tensor plain = t;
  while (plain.kind() == Kind::Dual) plain = static_cast<const Wrapped&>(*plain->payload).value;
  return is_integral(plain.dtype()) ? plain.item_int() : plain.item_double() != 0;
}

std::vector<Tensor> switch_case(const Tensor& index, const std::vector<Branch>& branches) {
  user_check(!branches.empty(), ErrorKind::InvalidArgument, "[switch_case] there is no branch.");
  if (is_capturing()) {
    std::vector<std::string> names;
    for (size_t i = 0; i < branches.size(); ++i) names.push_back(format("case_{}", i));
    return captured_switch(index, branches, names);
  }
  const auto last = static_cast<int64_t>(branches.size()) - 1;
  const int64_t i = choice_of(index);
  return branches[static_cast<size_t>(i < 0 || i > last ? last : i)]();
}

std::vector<Tensor> cond(const Tensor& pred, const Branch& yes, const Branch& no) {
  const Branch otherwise = no ? no : Branch([] { return std::vector<Tensor>(); });
  if (is_capturing()) {
    const Tensor truth = pred.dtype() == DType::Bool ? pred : cast(pred, DType::Bool);
    return captured_switch(truth, {otherwise, yes}, {"if_false", "if_true"});
  }
  return choice_of(pred) != 0 ? yes() : otherwise();
}

std::vector<Tensor> while_loop(const LoopTest& test, const LoopBody& body,
                               std::vector<Tensor> variables) {
  if (!is_capturing()) {
    while (choice_of(test(variables)) != 0) variables = body(variables);
    return variables;
  }
  const size_t count = variables.size();
  const auto list = [](TensorList given) {
    return std::vector<Tensor>(given.begin(), given.end());
  };
  LoopTypes inside(variables);
  std::vector<RegionParts> parts;
  do {
    parts.clear();
    parts.push_back(capture_region(
        "test", inside.types(),
        [&](TensorList given) { return std::vector<Tensor>{test(list(given))}; }, inside.open()));
    parts.push_back(capture_region(
        "body", inside.types(), [&](TensorList given) { return body(list(given)); },
        inside.open()));
    check_loop_results(parts[1].program, count, false);
  } while (inside.widen(parts[1].program));
  const bool random = draws(parts[1]);
  Fitted fitted(std::move(parts));
  user_check(!fitted.writes(0), ErrorKind::Unsupported,
             "[while_loop] the test writes to a tensor.\nhint: Write in the body.");
  fitted.complete(0, false);
  fitted.complete(1, true);
  const std::vector<Tensor> carried = joined({variables, fitted.tensors(true)}),
                            captured = fitted.tensors(false);
  const ClosurePtr ask = fitted.region_of(0), go = fitted.region_of(1);
  const std::vector<Tensor> made =
      while_loop(carried, captured, ask, go, random || is_recorded({carried, captured}));
  fitted.write_back(TensorList(made).subspan(count));
  return first(made, count);
}

namespace {

std::vector<Tensor> eager_scan(const LoopBody& body, std::vector<Tensor> carried,
                               const std::vector<Tensor>& sequences, int64_t length, bool reverse) {
  const size_t count = carried.size();
  std::vector<std::vector<Tensor>> rows;
  for (int64_t round = 0; round < length; ++round) {
    const int64_t index[] = {1, reverse ? length - 1 - round : round, 0, 1};
    std::vector<Tensor> given = carried;
    for (const Tensor& t : sequences) given.push_back(slice_view(t, Ints(index, 4)));
    std::vector<Tensor> made = body(given);
    user_check(made.size() >= count, ErrorKind::InvalidArgument,
               "[scan] the body returns {} tensors and carries {}.", made.size(), count);
    carried = first(made, count);
    rows.resize(made.size() - count);
    for (size_t k = count; k < made.size(); ++k) rows[k - count].push_back(made[k]);
  }
  for (std::vector<Tensor>& list : rows) {
    if (reverse) std::reverse(list.begin(), list.end());
    carried.push_back(stack(list, 0));
  }
  return carried;
}

}  // namespace

std::vector<Tensor> scan(const LoopBody& body, const std::vector<Tensor>& carried,
                         const std::vector<Tensor>& sequences, bool reverse) {
  user_check(!sequences.empty(), ErrorKind::InvalidArgument,
             "[scan] there is no sequence to iterate over.");
  std::vector<Tensor> rows;
  for (const Tensor& t : sequences) {
    user_check(t.rank() > 0 && same(t.dims()[0], sequences[0].dims()[0]),
               ErrorKind::InvalidArgument, "[scan] the sequences {} and {} differ in length.",
               sequences[0].describe(), t.describe());
    rows.push_back(Tensor::meta(t.dims().subspan(1), t.dtype(), t.device()));
  }
  const Dim length = sequences[0].dims()[0];
  if (!is_capturing() && length.value() > 0)
    return eager_scan(body, carried, sequences, length.value(), reverse);
  user_check(
      is_capturing(), ErrorKind::InvalidArgument,
      "[scan] the sequences are empty, so the results of the body are unknown.\nhint: Capture "
      "the function, or skip the loop.");
  const size_t count = carried.size();
  const auto call = [&](TensorList given) {
    return body(std::vector<Tensor>(given.begin(), given.end()));
  };
  LoopTypes inside(carried);
  std::vector<RegionParts> parts;
  do {
    parts.clear();
    parts.push_back(capture_region("body", joined({inside.types(), rows}), call, inside.open()));
    check_loop_results(parts[0].program, count, true);
  } while (inside.widen(parts[0].program));
  const size_t results = parts[0].program.outputs.size();
  const bool random = draws(parts[0]);
  Fitted fitted(std::move(parts));
  const std::vector<Tensor> written = fitted.tensors(true), captured = fitted.tensors(false);
  const std::vector<Tensor> all = joined({carried, written});
  const ClosurePtr go = fitted.scan_body(count, sequences.size());
  const std::vector<Tensor> made = scan(all, sequences, captured, go, length.word(), reverse,
                                        random || is_recorded({all, sequences, captured}));
  fitted.write_back(TensorList(made).subspan(count, written.size()));
  std::vector<Tensor> outputs = first(made, count);
  for (size_t k = count; k < results; ++k) outputs.push_back(made[written.size() + k]);
  return outputs;
}

// ---- functions with their own derivative -------------------------------------------------------

std::vector<Tensor> with_derivative(TensorList inputs, const CustomForward& forward,
                                    const CustomBackward& backward, const std::string& name) {
  const Capture* region = is_capturing() ? Capture::current() : nullptr;
  if (!region || !region->around() || !grad_enabled()) {
    // The derivative's own calls are in the program too, so their operands from the forward part are not cut off.
    const auto forward_on_tape = [&](TensorList given) {
      const OnTape taped(region ? region->flow() : nullptr, true);
      return forward(given);
    };
    return custom_function(inputs, forward_on_tape, backward, name);
  }
  std::vector<Tensor> results;
  {
    const GradMode off(false);
    results = forward(inputs);
  }
  std::vector<Tensor> cotangents;
  for (const Tensor& t : results)
    if (is_differentiable(t.dtype())) cotangents.push_back(t);
  RegionParts parts = capture_region(name, cotangents, [&](TensorList given) {
    std::vector<Tensor> of_results, gradients;
    size_t next = 0;
    for (const Tensor& t : results)
      of_results.push_back(is_differentiable(t.dtype()) ? given[next++] : Tensor());
    gradients = backward(of_results);
    user_check(gradients.size() == inputs.size(), ErrorKind::InvalidArgument,
               "the backward of {} returned {} gradients for {} tensor inputs.", name,
               gradients.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients[i].defined()) gradients[i] = zeros_like(inputs[i]);
      user_check(same(gradients[i].shape(), inputs[i].shape()), ErrorKind::InvalidArgument,
                 "the backward of {} returned a gradient of shape {} for an input of shape {}.",
                 name, to_string(gradients[i].dims()), to_string(inputs[i].dims()));
    }
    return gradients;
  });
  parts.forget_stops([](ValueId, const Lifted* l) { return l && !l->tensor.has(kRecording); });
  // What backward reads of the results it takes as results, which are on the tape.
  Program& program = parts.program;
  std::vector<ValueId> as_results(results.size(), kNoValue);
  std::vector<ValueId> as_captured;
  std::vector<Tensor> captured;
  for (const Lifted& l : parts.lifted) {
    user_check(l.written == kNoValue, ErrorKind::Unsupported,
               "the backward of {} writes to a tensor inside a branch or loop.", name);
    const auto same_tensor = [&](const Tensor& t) { return t.is_same(l.tensor); };
    const auto it = std::find_if(results.begin(), results.end(), same_tensor);
    if (it != results.end()) {
      as_results[static_cast<size_t>(it - results.begin())] = l.value;
      continue;
    }
    as_captured.push_back(l.value);
    captured.push_back(l.tensor);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& t = results[i];
    const ValueId id = as_results[i];
    program.inputs.push_back(id == kNoValue ? program.add_value({t.dtype(), t.shape(), t.device()})
                                            : id);
  }
  program.inputs.insert(program.inputs.end(), as_captured.begin(), as_captured.end());
  return with_derivative(results, inputs, captured, to_region(std::move(program)));
}

}  // namespace oar
