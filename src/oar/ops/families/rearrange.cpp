// Repeating, turning and cutting off: tile, repeat_interleave, swapaxes, rot90, tril, triu.
#include "oar/ops/gen/rearrange.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

const OpDef tile_op = {
    .schema = "tile(Tensor x, shape repeat_times) -> Tensor",
    .brief =
        "x laid out side by side, repeat_times[i] times along axis i; missing axes or numbers are 1 at "
        "the front.",
    .decompose = [](const args::tile& a) -> Made {
      const size_t rank = std::max(a.repeat_times.size(), static_cast<size_t>(a.x.rank()));
      Shape apart, spread, joined;
      for (size_t i = 0; i < rank; ++i) {
        const size_t short_x = rank - static_cast<size_t>(a.x.rank()),
                     short_r = rank - a.repeat_times.size();
        const Dim size = i < short_x ? Dim(1) : a.x.dims()[i - short_x];
        const Dim times = i < short_r ? Dim(1) : a.repeat_times[i - short_r];
        user_check(times.is_symbolic() || times.word() >= 0, ErrorKind::InvalidArgument,
                   "repeat_times {} has a negative number.", to_string(a.repeat_times));
        for (Dim d : {Dim(1), size}) apart.push_back(d);
        for (Dim d : {times, size}) spread.push_back(d);
        joined.push_back(times * size);
      }
      return reshape(assign(broadcast_to(reshape(a.x, apart), spread)), joined);
    },
    .traits = Trait::Linear,
    .numpy = "np.tile(x, repeat_times)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), IntVector{2, 1})
              .add(t({3}), IntVector{2, 2})
              .add(t({2, 1, 2}), IntVector{3})
              .add(t({}), IntVector{2})
              .add(t({2}), IntVector{1})
              .add(t({0, 2}), IntVector{2, 2})
              .add(t({2}), IntVector{0});
        },
    .python = "oar Tensor",
    .onnx = "Tile",
};

const OpDef repeat_interleave_op = {
    .schema = "repeat_interleave(Tensor x, int repeats, int? axis = None) -> Tensor",
    .brief = "Each slice along an axis `repeats` times in a row; without an axis, each element.",
    .decompose = [](const args::repeat_interleave& a) -> Made {
      const Dim repeats = Dim::from_word(a.repeats);
      user_check(repeats.is_symbolic() || a.repeats >= 0, ErrorKind::InvalidArgument,
                 "repeats must not be negative, but is {}.", a.repeats);
      const Tensor x = a.axis ? a.x : reshape(a.x, {a.x.numel()});
      const int64_t axis = normalise_axis(a.axis.value_or(0), x.rank());
      Shape spread = x.shape(), joined = x.shape();
      spread.insert(spread.begin() + axis + 1, repeats);
      joined[static_cast<size_t>(axis)] = joined[static_cast<size_t>(axis)] * repeats;
      return reshape(assign(broadcast_to(unsqueeze(x, {axis + 1}), spread)), joined);
    },
    .traits = Trait::Linear,
    .numpy = "np.repeat(x, repeats, axis)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), 2)
              .add(t({2, 3}), 3, -1)
              .add(t({}), 2)
              .add(t({0, 2}), 2, 1)
              .add(t({2}), 0, 0);
        },
};

const OpDef repeat_positions_op = {
    .schema = "repeat_positions(Tensor repeats) -> Tensor",
    .brief = "The index i repeats[i] times, for each i in order.",
    .infer = [](const args::repeat_positions& a) -> Metas {
      user_check(a.repeats.rank() == 1, ErrorKind::InvalidArgument,
                 "repeats must be a vector; it has shape {}.", to_string(a.repeats.dims()));
      const Dim count =
          a.repeats.is_dense() ? Dim(0) : Dim::symbol("repeats", a.repeats.dim(0).hint());
      return TensorMeta{DType::Int64, Shape{count}, true};
    },
    .shard = "whole: how many there are depends on every element",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .dtypes = "int",
    .numpy = "np.repeat(np.arange(len(repeats)), repeats)",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 4, {5}))
              .add(ints(0, 4, {0}))
              .add(ints(0, 3, {4}, DType::Int32));
        },
};

const OpDef repeat_interleave_by_op = {
    .schema = "repeat_interleave_by(Tensor x, Tensor repeats, int? axis = None) -> Tensor",
    .brief = "Slice i along an axis repeats[i] times in a row.",
    .decompose = [](const args::repeat_interleave_by& a) -> Made {
      const Tensor x = a.axis ? a.x : reshape(a.x, {a.x.numel()});
      const int64_t axis = normalise_axis(a.axis.value_or(0), x.rank());
      const Tensor repeats = a.repeats.rank() == 1 && a.repeats.dim(0) == Dim(1)
                                 ? broadcast_to(a.repeats, {x.dim(axis)})
                                 : a.repeats;
      user_check(repeats.rank() == 1 && same(repeats.dim(0), x.dim(axis)),
                 ErrorKind::InvalidArgument,
                 "repeats has shape {}; axis {} of x has size {}, and each slice needs its number.",
                 to_string(a.repeats.dims()), axis, x.dim(axis).str());
      return index_select(x, repeat_positions(repeats), axis);
    },
    .traits = Trait::DataDependent,
    .numpy = "np.repeat(x, repeats, axis)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 2}), ints(0, 3, {4}), 0)
              .add(t({2, 3}), ints(0, 3, {3}), -1)
              .add(t({2, 2}), ints(0, 3, {4}));
        },
};

// The order of axes with two of them exchanged.
SmallVector<int64_t, 6> exchanged(const Tensor& x, int64_t first, int64_t second) {
  SmallVector<int64_t, 6> perm;
  for (int64_t i = 0; i < x.rank(); ++i)
    perm.push_back(i == first ? second : i == second ? first : i);
  return perm;
}

const OpDef swapaxes_op = {
    .schema = "swapaxes(Tensor(a) x, int axis0, int axis1) -> Tensor(a)",
    .brief = "Two axes exchanged. A view.",
    .decompose = [](const args::swapaxes& a) -> Made {
      return transpose(a.x, exchanged(a.x, normalise_axis(a.axis0, a.x.rank(), "axis0"),
                                      normalise_axis(a.axis1, a.x.rank(), "axis1")));
    },
    .traits = Trait::Linear,
    .numpy = "np.swapaxes(x, axis0, axis1).copy()",
    .samples =
        [] { return Samples().add(t({2, 3, 4}), 0, -1).add(t({2, 3}), 1, 1).add(t({0, 2}), 0, 1); },
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
      const auto perm = exchanged(a.x, first, second);
      switch (((a.k % 4) + 4) % 4) {
        case 0:
          return assign(a.x);
        case 1:
          return transpose(flip(a.x, {second}), perm);
        case 2:
          return flip(a.x, {first, second});
        default:
          return transpose(flip(a.x, {first}), perm);
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

Metas infer_triangle(const Tensor& x) {
  user_check(x.rank() >= 2, ErrorKind::InvalidArgument,
             "a triangle needs a tensor of rank 2 or more; x has shape {}.", to_string(x.dims()));
  return infer::like(x);
}
Samples triangles() {
  return Samples()
      .add(t({3, 4}))
      .add(t({4, 3}), 1)
      .add(t({2, 3, 3}), -1)
      .add(t({0, 3}))
      .add(t({2, 2}), 9)
      .add(t({2, 2}), -9);
}

// The diagonal of the whole, seen from a piece of some rows or columns.
void shifted_diagonal(const PieceCall& piece) {
  const auto& axes = piece.plan.operands[0].axes;
  const int64_t diagonal = piece.frame[1].as_int();
  if (axes[axes.size() - 2].factor == static_cast<int>(piece.factor))
    piece.frame.set(1, diagonal + piece.start.value());
  if (axes.back().factor == static_cast<int>(piece.factor))
    piece.frame.set(1, diagonal - piece.start.value());
}

const OpDef tril_op = {
    .schema = "tril(Tensor x, int diagonal = 0) -> Tensor",
    .brief = "The elements on and below a diagonal of the last two axes; zero above.",
    .infer = [](const args::tril& a) { return infer_triangle(a.x); },
    .vjp = [](const vjp::tril& v) -> Grads { return tril(v.grad, v.diagonal); },
    .shard = "...ij -> ...ij",
    .localise = shifted_diagonal,
    .traits = Trait::Linear | Trait::HasInplace,
    .numpy = "np.tril(x, diagonal)",
    .samples = triangles,
    .python = "oar Tensor",
};

const OpDef triu_op = {
    .schema = "triu(Tensor x, int diagonal = 0) -> Tensor",
    .brief = "The elements on and above a diagonal of the last two axes; zero below.",
    .infer = [](const args::triu& a) { return infer_triangle(a.x); },
    .vjp = [](const vjp::triu& v) -> Grads { return triu(v.grad, v.diagonal); },
    .shard = "...ij -> ...ij",
    .localise = shifted_diagonal,
    .traits = Trait::Linear | Trait::HasInplace,
    .numpy = "np.triu(x, diagonal)",
    .samples = triangles,
    .python = "oar Tensor",
};

const OpDef bitcast_op = {
    .schema = "bitcast(Tensor x, dtype dtype) -> Tensor",
    .brief =
        "The bytes of x read as another dtype. Where the elements' sizes differ, the last axis grows or shrinks.",
    .infer = [](const args::bitcast& a) -> Metas {
      const auto from = static_cast<int64_t>(size_of(a.x.dtype())),
                 to = static_cast<int64_t>(size_of(a.dtype));
      Shape shape = a.x.shape();
      if (from == to) return TensorMeta{a.dtype, shape};
      user_check(a.x.rank() > 0, ErrorKind::InvalidArgument,
                 "x is 0-d, and {} is not as wide as {}.", name_of(a.dtype), name_of(a.x.dtype()));
      const Dim bytes = shape.back() * from;
      user_check(
          same(floor_mod(bytes, to), 0), ErrorKind::InvalidArgument,
          "the last axis of x, of size {}, has {} bytes, which do not make whole elements of {}.",
          shape.back().str(), bytes.str(), name_of(a.dtype));
      shape.back() = floor_div(bytes, to);
      return TensorMeta{a.dtype, shape};
    },
    .plan =
        [](const PlanCall& c) {
          const auto last = static_cast<int64_t>(c.plan.operands[0].axes.size()) - 1;
          const bool resized =
              last >= 0 && !(c.plan.operands[0].shape.back() == c.plan.results[0].shape.back());
          sharding::keep_axes(c.plan, resized ? Ints(&last, 1) : Ints());
        },
    .traits = Trait::NoGrad,
    .numpy =
        "np.ascontiguousarray(x).view(dtype).reshape(x.shape[:-1] + (-1,) if x.size and x.ndim else x.shape[:-1] + "
        "tuple(n * x.dtype.itemsize // np.dtype(dtype).itemsize for n in x.shape[-1:]))",
    .samples =
        [] {
          return Samples()
              .add(of_dtype(t({2, 4}), DType::Float64), DType::Int64)
              .add(of_dtype(t({3, 2}), DType::Float64), DType::UInt8)
              .add(ints(0, 9, {2, 8}), DType::Int16)
              .add(of_dtype(t({}), DType::Float64), DType::Int64)
              .add(of_dtype(t({0, 4}), DType::Float64), DType::Int32);
        },
};

}  // namespace

OAR_FAMILY(rearrange, &tile_op, &repeat_interleave_op, &repeat_positions_op,
           &repeat_interleave_by_op, &swapaxes_op, &rot90_op, &tril_op, &triu_op, &bitcast_op)

}  // namespace oar
