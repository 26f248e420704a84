// Padding. `paddings` lists (before, after) for each axis; a negative number crops.
#include "oar/ops/gen/pad.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/flip.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

void check_paddings(const Tensor& x, Ints paddings) {
  user_check(
      static_cast<int>(paddings.size()) == 2 * x.rank(), ErrorKind::InvalidArgument,
      "paddings {} has {} numbers; x has shape {} and needs {}: one before and one after each axis.",
      to_string(paddings), paddings.size(), to_string(x.dims()), 2 * x.rank());
}

Shape padded_shape(const Tensor& x, Ints paddings) {
  check_paddings(x, paddings);
  Shape shape;
  for (size_t i = 0; i < static_cast<size_t>(x.rank()); ++i) {
    const Dim before = Dim::from_word(paddings[2 * i]), after = Dim::from_word(paddings[2 * i + 1]);
    const auto cut = [](Dim d) { return d.is_known() && d.word() < 0 ? d : Dim(0); };
    const Dim size = x.dims()[i] + before + after, kept = x.dims()[i] + cut(before) + cut(after);
    user_check(kept.is_symbolic() || kept.word() >= 0, ErrorKind::InvalidArgument,
               "paddings {} cut off more of axis {} than x of shape {} has.", to_string(paddings),
               i, to_string(x.dims()));
    shape.push_back(size);
  }
  return shape;
}

SmallVector<int64_t, 12> behind_batch(Ints paddings) {
  SmallVector<int64_t, 12> shifted{0, 0};
  for (int64_t p : paddings) shifted.push_back(p);
  return shifted;
}

// Axes without padding on either side.
void unpadded_axes(const PlanCall& c) {
  const Ints paddings = c.args[1].as_ints();
  SmallVector<int64_t, 6> padded;
  for (size_t i = 0; i < paddings.size(); ++i)
    if (paddings[i] != 0) padded.push_back(static_cast<int64_t>(i / 2));
  sharding::keep_axes(c.plan, Ints(padded.data(), padded.size()));
}

const OpDef pad_constant_op = {
    .schema = "pad_constant(Tensor x, int[] paddings, Scalar value = 0.0) -> Tensor",
    .brief =
        "x with elements of one value put around it, paddings[2 i] before and paddings[2 i + 1] after "
        "axis i; negative numbers cut off.",
    .infer = [](const args::pad_constant& a) -> Metas {
      return TensorMeta{a.x.dtype(), padded_shape(a.x, a.paddings)};
    },
    .vjp = [](const vjp::pad_constant& v) -> Grads {
      SmallVector<int64_t, 12> back;
      for (int64_t p : v.paddings) back.push_back((Dim(0) - Dim::from_word(p)).word());
      return pad_constant(v.grad, back);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::pad_constant a(c.args);
      return pad_constant(a.x, behind_batch(a.paddings), a.value);
    },
    .plan = unpadded_axes,
    .numpy =
        "(lambda y, p: np.pad(y, [(max(b, 0), max(a, 0)) for b, a in p], constant_values=value) if p else y)("
        "x[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, b, a in zip(x.shape, paddings[::2], paddings[1::2]))], "
        "list(zip(paddings[::2], paddings[1::2])))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), IntVector{1, 0, 0, 2})
              .add(t({3}), IntVector{2, 1}, 1.5)
              .add(t({4, 3}), IntVector{-1, 1, 1, -2}, 2)
              .add(t({}), IntVector{})
              .add(t({0, 2}), IntVector{1, 1, 0, 0}, 1.0);
        },
};

Tensor part(const Tensor& x, int64_t axis, Dim start, Dim stop) {
  return slice_view(x, SliceIndex().skip(axis).range(start, stop));
}

// The elements before (or after) x along one axis.
Tensor border(const Tensor& x, int64_t axis, Dim size, bool before, std::string_view mode) {
  const Dim n = x.dim(axis);
  if (mode == "circular")
    return before ? part(x, axis, n - size, kOpenHigh) : part(x, axis, 0, size);
  if (mode == "reflect") {
    const Tensor inner = before ? part(x, axis, 1, size + 1) : part(x, axis, n - 1 - size, n - 1);
    return flip(inner, {axis});
  }
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = size;
  return broadcast_to(before ? part(x, axis, 0, 1) : part(x, axis, n - 1, kOpenHigh), shape);
}

// Each mode needs elements to continue with.
void check_edges(Dims sizes, Ints paddings, std::string_view mode) {
  user_check(mode == "reflect" || mode == "replicate" || mode == "circular",
             ErrorKind::InvalidArgument, "mode is '{}'; it can be reflect, replicate or circular.",
             mode);
  const auto cut = [](Dim d) { return d.is_known() && d.word() < 0 ? d : Dim(0); };
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Dim before = Dim::from_word(paddings[2 * i]), after = Dim::from_word(paddings[2 * i + 1]);
    const Dim kept = sizes[i] + cut(before) + cut(after);
    for (Dim d : {before, after})
      user_check((d.is_known() && d.word() <= 0) ||
                     (mode == "replicate" ? !same(kept, 0)
                                          : !known_less(mode == "reflect" ? kept - 1 : kept, d)),
                 ErrorKind::InvalidArgument,
                 "mode '{}' cannot add {} elements to axis {} of size {}.", mode, d.str(), i,
                 sizes[i].str());
  }
}

Tensor padded_along(const Tensor& whole, int64_t axis, Dim before, Dim after,
                    std::string_view mode) {
  const auto cut = [](Dim d) { return d.is_known() && d.word() < 0 ? -d.word() : 0; };
  const Tensor x = cut(before) || cut(after)
                       ? part(whole, axis, cut(before), whole.dim(axis) - cut(after))
                       : whole;
  const auto adds = [](Dim d) { return d.is_symbolic() || d.word() > 0; };
  std::vector<Tensor> pieces;
  if (adds(before)) pieces.push_back(border(x, axis, before, true, mode));
  pieces.push_back(x);
  if (adds(after)) pieces.push_back(border(x, axis, after, false, mode));
  return pieces.size() == 1 ? x : concat(pieces, axis);
}

const OpDef pad_edges_op = {
    .schema = "pad_edges(Tensor x, int[] paddings, str mode) -> Tensor",
    .brief =
        "x continued beyond its edges: mode 'reflect' mirrors it, 'replicate' repeats the last element, "
        "'circular' starts again from the other side.",
    .infer = [](const args::pad_edges& a) -> Metas {
      check_paddings(a.x, a.paddings);
      check_edges(a.x.dims(), a.paddings, a.mode);
      return TensorMeta{a.x.dtype(), padded_shape(a.x, a.paddings)};
    },
    .decompose = [](const args::pad_edges& a) -> Made {
      Tensor y = a.x;
      for (int64_t axis = 0; axis < a.x.rank(); ++axis)
        y = padded_along(y, axis, Dim::from_word(a.paddings[static_cast<size_t>(2 * axis)]),
                         Dim::from_word(a.paddings[static_cast<size_t>(2 * axis + 1)]), a.mode);
      return y.is_same(a.x) ? assign(y) : y;
    },
    .vjp = [](const vjp::pad_edges& v) -> Grads {
      return pad_edges_grad(v.grad, v.paddings, v.mode);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::pad_edges a(c.args);
      return pad_edges(a.x, behind_batch(a.paddings), a.mode);
    },
    .plan = unpadded_axes,
    .traits = Trait::Linear,
    .numpy =
        "(lambda y, p: np.pad(y, [(max(b, 0), max(a, 0)) for b, a in p], {'reflect': 'reflect', 'replicate': 'edge', "
        "'circular': 'wrap'}[mode]) if p else y)(x[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, b, a in zip(x.shape, "
        "paddings[::2], paddings[1::2]))], list(zip(paddings[::2], paddings[1::2])))",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), IntVector{1, 2, 0, 3}, "reflect")
              .add(t({3, 2}), IntVector{0, 1, 2, 2}, "replicate")
              .add(t({2, 4}), IntVector{0, 0, 3, 1}, "circular")
              .add(t({5, 3}), IntVector{-1, 3, 0, -1}, "reflect")
              .add(t({2, 2, 3, 2}), IntVector{0, 0, 0, 0, 1, 2, 0, 1}, "circular")
              .add(t({}), IntVector{}, "replicate")
              .add(t({0, 2}), IntVector{0, 0, 1, 1}, "replicate")
              .add(t({2}), IntVector{0, 0}, "reflect");
        },
};

const OpDef pad_edges_grad_op = {
    .schema = "pad_edges_grad(Tensor grad, int[] paddings, str mode) -> Tensor",
    .brief = "The reverse of pad_edges: each element is added to the one that it continued.",
    .infer = [](const args::pad_edges_grad& a) -> Metas {
      check_paddings(a.grad, a.paddings);
      Shape shape;
      for (size_t i = 0; i < static_cast<size_t>(a.grad.rank()); ++i)
        shape.push_back(a.grad.dims()[i] - Dim::from_word(a.paddings[2 * i]) -
                        Dim::from_word(a.paddings[2 * i + 1]));
      check_edges(shape, a.paddings, a.mode);
      return TensorMeta{a.grad.dtype(), shape};
    },
    .vjp = [](const vjp::pad_edges_grad& v) -> Grads {
      return pad_edges(v.call.cotangents[0], v.paddings, v.mode);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::pad_edges_grad a(c.args);
      return pad_edges_grad(a.grad, behind_batch(a.paddings), a.mode);
    },
    .plan = unpadded_axes,
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "grad if not paddings else (lambda s: (lambda z: (np.add.at(z, np.pad(np.arange(z.size).reshape(s), list(zip(paddings[::2], "
        "paddings[1::2])), {'reflect': 'reflect', 'replicate': 'edge', 'circular': 'wrap'}[mode]), grad), "
        "z.reshape(s))[1])(np.zeros(int(np.prod(s)), grad.dtype)))([n - a - b for n, a, b in zip(grad.shape, "
        "paddings[::2], paddings[1::2])])",
    .samples =
        [] {
          return Samples()
              .add(t({6, 7}), IntVector{1, 2, 0, 3}, "reflect")
              .add(t({4, 6}), IntVector{0, 1, 2, 2}, "replicate")
              .add(t({2, 8}), IntVector{0, 0, 3, 1}, "circular")
              .add(t({}), IntVector{}, "replicate");
        },
};

}  // namespace

OAR_FAMILY(pad, &pad_constant_op, &pad_edges_op, &pad_edges_grad_op)

}  // namespace oar
