// Elements in another order: flipped, rolled, turned.
#include "oar/ops/gen/flip.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

const OpDef flip_op = {
    .schema = "flip(Tensor x, int[] axis) -> Tensor",
    .brief = "The elements in reverse order along the given axes.",
    .infer = [](const args::flip& a) -> Metas {
      if (!a.axis.empty()) static_cast<void>(normalise_axes(a.axis, a.x.rank()));
      return infer::like(a.x);
    },
    .decompose = [](const args::flip& a) -> Made {
      SliceIndex index;
      index.skip(a.x.rank());
      if (!a.axis.empty())
        for (int64_t axis : normalise_axes(a.axis, a.x.rank()))
          std::copy_n(SliceIndex().reversed().begin(), 4, index.begin() + 4 * axis);
      return assign(slice_view(a.x, index));
    },
    .vjp = [](const vjp::flip& v) -> Grads { return flip(v.grad, v.axis); },
    .traits = Trait::Linear | Trait::Moves,
    .numpy = "np.flip(x, axis)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), IntVector{0})
              .add(t({2, 3, 4}), IntVector{-1, 0})
              .add(t({5}), IntVector{0})
              .add(t({0, 3}), IntVector{1});
        },
    .python = "oar Tensor",
};

// Elements shifted along one axis; nothing to do for a full turn.
bool roll_axis(Tensor& x, int64_t shift, int64_t axis) {
  const Dim size = x.dim(axis);
  if (size == Dim(0)) return false;
  const Dim cut = size - floor_mod(Dim::from_word(shift), size);
  if (cut == size) return false;
  x = concat({slice_view(x, SliceIndex().skip(axis).range(cut, kOpenHigh)),
              slice_view(x, SliceIndex().skip(axis).range(0, cut))},
             axis);
  return true;
}

void check_roll(const args::roll& a) {
  if (!a.axis || a.axis->empty()) return;
  user_check(a.axis->size() == a.shifts.size(), ErrorKind::InvalidArgument,
             "shifts {} and axis {} must have as many numbers.", to_string(a.shifts),
             to_string(*a.axis));
  for (int64_t axis : *a.axis) static_cast<void>(normalise_axis(axis, a.x.rank()));
}

const OpDef roll_op = {
    .schema = "roll(Tensor x, int[] shifts, int[]? axis = None) -> Tensor",
    .brief =
        "The elements shifted by `shifts` along the axes; those that leave at the end come in at the "
        "start. Without axes the tensor is rolled as a flat list.",
    .infer = [](const args::roll& a) -> Metas {
      check_roll(a);
      return infer::like(a.x);
    },
    .decompose = [](const args::roll& a) -> Made {
      check_roll(a);
      const bool flat = !a.axis || a.axis->empty();
      Tensor y = flat ? reshape(a.x, {a.x.numel()}) : a.x;
      bool moved = false;
      for (size_t i = 0; i < a.shifts.size(); ++i)
        moved |= roll_axis(y, a.shifts[i], flat ? 0 : normalise_axis((*a.axis)[i], a.x.rank()));
      if (!moved) return assign(a.x);
      return flat ? reshape(y, a.x.dims()) : y;
    },
    .vjp = [](const vjp::roll& v) -> Grads {
      SmallVector<int64_t, 6> back;
      for (int64_t shift : v.shifts) back.push_back((Dim(0) - Dim::from_word(shift)).word());
      return roll(v.grad, back, v.axis);
    },
    .traits = Trait::Linear | Trait::Moves,
    .numpy = "np.roll(x, shifts if axis else sum(shifts), tuple(axis) if axis else None)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), IntVector{1})
              .add(t({3, 4}), IntVector{-1, 6}, IntVector{0, -1})
              .add(t({5}), IntVector{5}, IntVector{0})
              .add(t({0, 3}), IntVector{1}, IntVector{0})
              .add(t({}), IntVector{2});
        },
    .python = "oar Tensor",
};

const OpDef rot90_op = {
    .schema = "rot90(Tensor x, int k = 1, int[] axes = [0, 1]) -> Tensor",
    .brief =
        "x turned by k times 90 degrees in the plane of two axes, from the first towards the second.",
    .decompose = [](const args::rot90& a) -> Made {
      user_check(a.axes.size() == 2, ErrorKind::InvalidArgument, "axes {} must name two axes.",
                 to_string(a.axes));
      const int64_t first = normalise_axis(a.axes[0], a.x.rank(), "axes");
      const int64_t second = normalise_axis(a.axes[1], a.x.rank(), "axes");
      user_check(first != second, ErrorKind::InvalidArgument, "axes {} name one axis twice.",
                 to_string(a.axes));
      switch (((a.k % 4) + 4) % 4) {
        case 0:
          return assign(a.x);
        case 1:
          return swapaxes(flip(a.x, {second}), first, second);
        case 2:
          return flip(a.x, {first, second});
        default:
          return swapaxes(flip(a.x, {first}), first, second);
      }
    },
    .traits = Trait::Linear,
    .numpy = "np.rot90(x, k, axes)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}))
              .add(t({2, 3, 2}), 3, IntVector{-1, 1})
              .add(t({2, 3}), 2)
              .add(t({2, 3}), -4)
              .add(t({0, 3}));
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(flip, &flip_op, &roll_op, &rot90_op)

}  // namespace oar
