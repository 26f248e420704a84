// Elements repeated.
#include "oar/ops/gen/repeat.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/shape.h"

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
    .traits = Trait::Linear | Trait::Moves,
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

}  // namespace

OAR_FAMILY(repeat, &tile_op, &repeat_interleave_op, &repeat_positions_op, &repeat_interleave_by_op)

}  // namespace oar
