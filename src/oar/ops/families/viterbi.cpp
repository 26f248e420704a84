// The most probable sequence of labels.
#include "oar/ops/gen/viterbi.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

const OpDef viterbi_decode_op = {
    .schema =
        "viterbi_decode(Tensor potentials, Tensor transition_params, Tensor lengths, bool include_bos_eos_tag = True) -> "
        "(Tensor scores, Tensor path)",
    .brief =
        "For each sequence the labels with the largest sum of their scores and of the transitions between them, and that "
        "sum. With include_bos_eos_tag the last row of the transitions starts a sequence and the last but one ends it.",
    .infer = [](const args::viterbi_decode& a) -> Metas {
      const Dims p = a.potentials.dims(), m = a.transition_params.dims();
      user_check(p.size() == 3, ErrorKind::InvalidArgument,
                 "potentials has shape {}; it must be [batch, length, labels].", to_string(p));
      user_check(m.size() == 2 && same(m[0], p[2]) && same(m[1], p[2]), ErrorKind::InvalidArgument,
                 "transition_params has shape {}; with {} labels it must be [{}, {}].",
                 to_string(m), p[2].str(), p[2].str(), p[2].str());
      user_check(!known_less(p[2], Dim(a.include_bos_eos_tag ? 2 : 1)), ErrorKind::InvalidArgument,
                 "there are {} labels, but there must be at least {}.", p[2].str(),
                 a.include_bos_eos_tag ? 2 : 1);
      user_check(is_integral(a.lengths.dtype()), ErrorKind::InvalidType,
                 "lengths has dtype {}; it must be an integer type.", name_of(a.lengths.dtype()));
      user_check(a.lengths.rank() == 1 && assume_same(a.lengths.dim(0), p[0]),
                 ErrorKind::InvalidArgument, "lengths has shape {} for {} sequences.",
                 to_string(a.lengths.dims()), p[0].str());
      const Dim longest = a.lengths.is_dense() ? p[1] : Dim::symbol("longest", p[1].hint());
      return {TensorMeta{a.potentials.dtype(), {p[0]}},
              TensorMeta{DType::Int64, {p[0], longest}, true}};
    },
    .shard = "whole: the longest sequence decides the size of all",
    .traits = Trait::DataDependent | Trait::NoGrad | Trait::Promote,
    .dtypes = "float",
    .promotes = "potentials transition_params",
    .numpy =
        "(lambda best: (np.array([max(b)[0] if b else 0 for b in best]), np.array([[*max(b)[1], *[0] * (max(lengths, "
        "default=0) - len(max(b)[1]))] for b in best], 'int64').reshape(len(best), max(lengths, default=0))))([[(sum(p[k, "
        "y] for k, y in enumerate(path)) + sum(transition_params[a, b] for a, b in zip(path, path[1:])) + ("
        "transition_params[-1, path[0]] + transition_params[-2, path[-1]] if include_bos_eos_tag else 0), path) for path "
        "in __import__('itertools').product(range(p.shape[1]), repeat=int(n))] for p, n in zip(potentials.astype("
        "'float64'), lengths)])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 4, 3}), t({3, 3}), fixed_values({3, 4}, {2}, DType::Int64))
              .add(t({3, 3, 2}), t({2, 2}), fixed_values({1, 2, 1}, {3}, DType::Int64), false)
              .add(t({0, 3, 2}), t({2, 2}), fixed_values({}, {0}, DType::Int64));
        },
    .python = "oar.text",
};

}  // namespace

OAR_FAMILY(viterbi, &viterbi_decode_op)

}  // namespace oar
