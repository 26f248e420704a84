#include "oar/ops/families/control_runs.h"

#include "oar/base/interrupt.h"
#include "oar/device/generator.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/control.h"
#include "oar/ops/gen/copy.h"

namespace oar {

Shape stacked_shape(const Tensor& t, Dim rounds) {
  Shape shape{rounds};
  for (Dim d : t.dims()) shape.push_back(d);
  return shape;
}

namespace {

// Results are separate tensors: not an operand, nor one tensor twice.
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
  auto* const data = static_cast<char*>(t->data) + byte_offset(i * t->strides[0], t.dtype());
  return Tensor::view_of(t->storage, t.dims().subspan(1), t.strides().subspan(1), data, t.dtype());
}

// ---- random numbers ----------------------------------------------------------------------------

// Positions in the random stream as integers.
void append_place(std::vector<int64_t>& to) {
  const RandomState s = generator::state(devices::current());
  to.push_back(static_cast<int64_t>(s.seed));
  to.push_back(static_cast<int64_t>(s.offset));
}

// Where the iterations draw their numbers: at given positions, or from the current one of the stream.
class Numbers {
 public:
  explicit Numbers(const Tensor& places) {
    if (places.defined()) words_ = places.to_vector<int64_t>();
  }
  void round(int64_t i) {
    if (words_.empty()) return;
    const auto at = static_cast<size_t>(2 * i);
    user_check(at + 1 < words_.size(), ErrorKind::InvalidArgument,
               "there are random numbers for {} rounds only.", words_.size() / 2);
    detour_.reset();
    detour_.emplace(
        RandomState{static_cast<uint64_t>(words_[at]), static_cast<uint64_t>(words_[at + 1])});
  }

 private:
  std::vector<int64_t> words_;
  std::optional<generator::Detour> detour_;
};

// ---- values at the start of iterations ---------------------------------------------------------

// `length`: the number of iterations, if known; rows are then written to their place at once.
class Notes {
 public:
  Notes(const Closure& body, TensorList carried, bool on, std::optional<int64_t> length = {}) {
    for (size_t i = 0; on && i < carried.size(); ++i) {
      Variable v{changing_axes(body, i), carried[i], {}, {}};
      if (length && v.axes.empty())
        v.room = Tensor::empty(stacked_shape(v.start, *length), v.start.dtype(), v.start.device());
      variables_.push_back(std::move(v));
    }
    on_ = on;
  }

  void round(TensorList given, int64_t at) {
    if (!on_) return;
    append_place(places_);
    for (size_t i = 0; i < variables_.size(); ++i) {
      Variable& v = variables_[i];
      if (v.room.defined())
        copy_into(row_of(v.room, at), given[i]);
      else if (v.axes.size() < 2)
        v.values.push_back(given[i]);
    }
  }

  // `reversed`: the iterations ran from the last to the first.
  void hand_out(Made& results, bool reversed = false) {
    if (!on_) return;
    std::vector<Tensor> of_slices;
    for (Variable& v : variables_) {
      if (reversed) std::reverse(v.values.begin(), v.values.end());
      results.push_back(v.all());
      if (!v.axes.empty()) of_slices.push_back(v.rounds());
    }
    for (Tensor& t : of_slices) results.push_back(std::move(t));
    const auto rounds = static_cast<int64_t>(places_.size() / 2);
    for (int64_t i = 0; reversed && i < rounds / 2; ++i)
      std::swap_ranges(&places_[static_cast<size_t>(2 * i)],
                       &places_[static_cast<size_t>(2 * i)] + 2,
                       &places_[static_cast<size_t>(2 * (rounds - 1 - i))]);
    results.push_back(Tensor::from_vector(places_, Shape{rounds, 2}, DType::Int64));
  }

 private:
  struct Variable {
    std::vector<int> axes;  // along which it changes its size
    Tensor start;
    Tensor room;
    std::vector<Tensor> values;

    Tensor all() const {
      if (room.defined()) return room;
      if (axes.size() > 1) return Tensor::empty(Shape{0}, start.dtype(), start.device());
      if (!values.empty()) return axes.empty() ? stack(values, 0) : concat(values, axes[0]);
      Shape none = axes.empty() ? stacked_shape(start, 0) : start.shape();
      if (!axes.empty()) none[static_cast<size_t>(axes[0])] = 0;
      return Tensor::empty(none, start.dtype(), start.device());
    }
    // Of each slice along the axis.
    Tensor rounds() const {
      std::vector<int64_t> list;
      for (size_t r = 0; r < values.size(); ++r)
        list.insert(list.end(), static_cast<size_t>(values[r].dim(axes[0]).value()),
                    static_cast<int64_t>(r));
      const auto count = static_cast<int64_t>(list.size());
      return Tensor::from_vector(list, Shape{count}, DType::Int64);
    }
  };
  std::vector<Variable> variables_;
  std::vector<int64_t> places_;
  bool on_ = false;
};

}  // namespace

// ---- runs --------------------------------------------------------------------------------------

Made run_switch(const args::switch_case& a) {
  const LaunchNow now;
  const auto last = static_cast<int64_t>(a.branches.size()) - 1;
  const int64_t index = a.index.item_int();
  const Closure& branch =
      *a.branches[static_cast<size_t>(index < 0 || index > last ? last : index)];
  Numbers numbers(a.random);
  numbers.round(0);
  std::vector<int64_t> place;
  append_place(place);
  Made results = owned(branch.prepared()(a.captured), a.captured);
  if (a.trace) results.push_back(Tensor::from_vector(place, Shape{2}, DType::Int64));
  return results;
}

Made run_while(const args::while_loop& a) {
  const LaunchNow now;
  std::vector<Tensor> given = joined({a.carried, a.captured});
  const Closure::Function test = a.test.prepared(), body = a.body.prepared();
  Notes notes(a.body, a.carried, a.trace);
  Numbers numbers(a.random);
  Patience patience;
  for (int64_t round = 0; is_true(test(given)[0]); ++round) {
    numbers.round(round);
    notes.round(given, round);
    std::vector<Tensor> next = body(given);
    std::move(next.begin(), next.end(), given.begin());
    patience.look();
  }
  given.resize(a.carried.size());
  Made results = owned(std::move(given), joined({a.carried, a.captured}));
  notes.hand_out(results);
  return results;
}

Made run_scan(const args::scan& a) {
  const LaunchNow now;
  const size_t carries = a.carried.size(), rows = a.sequences.size();
  std::vector<Tensor> given = joined({a.carried, a.sequences, a.captured}), stacked;
  const std::vector<Tensor>& types = a.body.outputs();
  const Device device = given.empty() ? Device{} : given[0].device();
  for (size_t i = carries; i < types.size(); ++i)
    stacked.push_back(Tensor::empty(stacked_shape(types[i], a.length), types[i].dtype(), device));
  const Closure::Function body = a.body.prepared();
  Notes notes(a.body, a.carried, a.trace, a.length);
  Numbers numbers(a.random);
  Patience patience;
  for (int64_t round = 0; round < a.length; ++round) {
    const int64_t i = a.reverse ? a.length - 1 - round : round;
    for (size_t k = 0; k < rows; ++k) given[carries + k] = row_of(a.sequences[k], i);
    numbers.round(i);
    notes.round(given, i);
    std::vector<Tensor> made = body(given);
    for (size_t k = 0; k < stacked.size(); ++k) copy_into(row_of(stacked[k], i), made[carries + k]);
    std::move(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(carries), given.begin());
    patience.look();
  }
  given.resize(carries);
  Made results = owned(std::move(given), joined({a.carried, a.sequences, a.captured}));
  for (Tensor& t : stacked) results.push_back(std::move(t));
  notes.hand_out(results, a.reverse);
  return results;
}

}  // namespace oar
