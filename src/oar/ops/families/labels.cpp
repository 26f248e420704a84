// Class indices: as vectors, smoothed, and as parts of a table.
#include "oar/ops/gen/labels.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

const OpDef one_hot_op = {
    .schema = "one_hot(Tensor x, int num_classes) -> Tensor",
    .brief = "A new last axis of num_classes elements: 1 at the place that x names, else 0.",
    .infer = [](const args::one_hot& a) -> Metas {
      const Dim classes = Dim::from_word(a.num_classes);
      user_check(classes.is_symbolic() || a.num_classes > 0, ErrorKind::InvalidArgument,
                 "num_classes must be positive, not {}.", a.num_classes);
      Shape shape = a.x.shape();
      shape.push_back(classes);
      return TensorMeta{DType::Float32, shape};
    },
    .batch = [](const BatchCall& c) -> Made {
      return one_hot(with_batch(c, 0), args::one_hot(c.args).num_classes);
    },
    .plan =
        [](const PlanCall& c) {
          PlanTensor &x = c.plan.operands[0], &out = c.plan.results[0];
          for (size_t i = 0; i < x.axes.size(); ++i) c.plan.pass(x, i, out, i);
          c.plan.put(out, x.axes.size(), c.plan.add(out.shape[x.axes.size()]));
          c.plan.factors.back().positions = 0;
        },
    .localise =
        [](const PieceCall& piece) {
          const PlanTensor& out = piece.plan.results[0];
          piece.frame.set(1, sharding::local_size(piece, out, out.axes.size() - 1).word());
        },
    .traits = Trait::NoGrad,
    .dtypes = "int",
    .numpy = "np.eye(num_classes, dtype='float32')[x]",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 5, {3, 2}), 5)
              .add(ints(0, 3, {}, DType::Int32), 3)
              .add(ints(0, 3, {0, 2}), 4);
        },
    .python = "oar.nn.functional",
    .onnx = "OneHot",
};

const OpDef label_smooth_op = {
    .schema =
        "label_smooth(Tensor label, Tensor? prior_dist = None, float epsilon = 0.1) -> Tensor",
    .brief =
        "(1 - epsilon) * label + epsilon * prior_dist, or epsilon spread evenly over the last axis.",
    .decompose = [](const args::label_smooth& a) -> Made {
      user_check(a.epsilon >= 0 && a.epsilon <= 1, ErrorKind::InvalidArgument,
                 "epsilon is {}; it must be between 0 and 1.", a.epsilon);
      user_check(a.label.rank() > 0, ErrorKind::InvalidArgument,
                 "label is 0-d; it needs an axis of classes.");
      const Tensor kept = widened(a.label) * (1 - a.epsilon);
      const Dim classes = a.label.dim(-1);
      const Tensor many = count_of(Dims(&classes, 1), kept.dtype());
      return narrowed(a.prior_dist.defined()
                          ? kept + widened(without_tape(a.prior_dist)) * a.epsilon
                          : (kept * many + a.epsilon) / many,
                      a.label.dtype());
    },
    .dtypes = "float",
    .numpy =
        "(1 - epsilon) * label + epsilon * (1 / label.shape[-1] if prior_dist is None else "
        "prior_dist)",
    .samples =
        [] {
          return Samples()
              .add(positive({4, 3}))
              .add(positive({4, 3}), fixed(positive({1, 3})), 0.3);
        },
    .python = "oar.nn.functional",
};

const OpDef shard_index_op = {
    .schema =
        "shard_index(Tensor input, int index_num, int nshards, int shard_id, int ignore_value = -1) -> Tensor",
    .brief =
        "For indices below index_num, split evenly between nshards: their number within shard_id, or ignore_value where "
        "another one holds them.",
    .infer = [](const args::shard_index& a) -> Metas {
      user_check(a.index_num > 0 && a.nshards > 0, ErrorKind::InvalidArgument,
                 "index_num {} and nshards {} must be positive.", a.index_num, a.nshards);
      user_check(a.shard_id >= 0 && a.shard_id < a.nshards, ErrorKind::InvalidArgument,
                 "shard_id is {}; it must be one of 0 to {}.", a.shard_id, a.nshards - 1);
      return infer::like(a.input);
    },
    .decompose = [](const args::shard_index& a) -> Made {
      const int64_t size = (a.index_num - 1) / a.nshards + 1;
      const auto number = [&](int64_t n) { return full({}, Scalar(n), a.input.dtype()); };
      const Tensor own = a.input - number((Dim(size) * Dim(a.shard_id)).value());
      const Tensor here = logical_and(greater_equal(own, number(0)), less_than(own, number(size)));
      return where(here, own, number(a.ignore_value));
    },
    .scalar =
        "size = (index_num - 1) // nshards + 1; own = input - size * shard_id; own >= 0 && "
        "own < size ? own : ignore_value",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::NoGrad,
    .dtypes = "int",
    .numpy =
        "np.where(input // -(-index_num // nshards) == shard_id, input % -(-index_num // nshards), "
        "np.array(ignore_value).astype(input.dtype))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 20, {4, 1}), 20, 2, 0)
              .add(ints(0, 7, {5}, DType::Int32), 7, 3, 2, 9)
              .add(ints(0, 7, {0}), 7, 3, 1);
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(labels, &one_hot_op, &label_smooth_op, &shard_index_op)

}  // namespace oar
