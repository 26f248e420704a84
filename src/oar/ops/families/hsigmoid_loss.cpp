// The loss of a tree of classes.
#include "oar/ops/gen/hsigmoid_loss.h"

#include <bit>
#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/label_samples.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/embedding.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// The inner nodes of a complete binary tree on the path to a class, and which side the path takes.
// Leaves are numbered from num_classes on, as in a heap, so that the bits of a number are the path.
struct Path {
  Tensor node, side, valid;  // [batch, steps]
};

Path heap_path(const Tensor& label, int64_t num_classes) {
  const auto steps =
      static_cast<int>(std::bit_width(static_cast<uint64_t>(2 * num_classes - 1))) - 1;
  const Tensor leaf = label + Tensor::scalar(num_classes, DType::Int64, true);
  std::vector<Tensor> nodes, sides;
  for (int i = 0; i < steps; ++i) {
    const Tensor power = Tensor::scalar(int64_t{1} << i, DType::Int64, true);
    const Tensor reached = floor_divide(leaf, power);
    nodes.push_back(floor_divide(reached, literal(2)) - 1);
    sides.push_back(remainder(reached, literal(2)));
  }
  const Tensor node = concat(nodes, 1);
  return {node, concat(sides, 1), greater_equal(node, literal(0))};
}

const OpDef hsigmoid_loss_op = {
    .schema =
        "hsigmoid_loss(Tensor input, Tensor label, int num_classes, Tensor weight, Tensor? bias = "
        "None, Tensor? path_table = None, Tensor? path_code = None, bool is_sparse = False) -> "
        "Tensor",
    .brief =
        "The negative log-probability of a class that is reached by yes-or-no decisions from the "
        "root of a binary tree: a complete one, or paths given as nodes and codes, padded by -1. A path "
        "that is shorter than the longest possible one costs log 2 for each step that it lacks.",
    .decompose = [](const args::hsigmoid_loss& a) -> Made {
      user_check(a.num_classes >= 2 && a.num_classes <= INT32_MAX, ErrorKind::InvalidArgument,
                 "num_classes is {}; there must be 2 at least, and {} at most.", a.num_classes,
                 INT32_MAX);
      user_check(
          a.input.rank() == 2 && a.weight.rank() == 2 && same(a.input.dim(1), a.weight.dim(1)),
          ErrorKind::InvalidArgument,
          "input has shape {} and weight {}; they must be [batch, size] and [nodes, size].",
          to_string(a.input.dims()), to_string(a.weight.dims()));
      user_check(a.path_table.defined() == a.path_code.defined(), ErrorKind::InvalidArgument,
                 "path_table and path_code belong together; only one of them was passed.");
      Path path;
      if (a.path_table.defined()) {
        const Tensor table = cast(a.path_table, DType::Int64);
        // A path ends at its first negative node.
        const Tensor ended = cumsum(cast(less_than(table, literal(0)), DType::Int64), 1);
        path = {table, cast(a.path_code, DType::Int64), equal(ended, literal(0))};
      } else {
        path = heap_path(reshape(cast(a.label, DType::Int64), {a.input.dim(0), Dim(1)}),
                         a.num_classes);
      }
      const Tensor node = where(path.valid, path.node, literal(0));
      const Tensor input = widened(a.input);
      const Tensor rows = embedding_lookup(node, widened(a.weight), -1, a.is_sparse);
      Tensor score = sum(rows * unsqueeze(input, {1}), IntArgs{2});
      if (a.bias.defined()) score = score + take(reshape(widened(a.bias), {Dim(-1)}), node);
      const Tensor side = cast(path.side, score.dtype());
      // Steps after the end of a path have a score of 0, as in Paddle, which costs log 2.
      const Tensor loss =
          where(path.valid, -log_sigmoid(-score) - side * score, literal(std::numbers::ln2));
      return narrowed(sum(loss, IntArgs{1}, std::nullopt, true), a.input.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "np.array([[sum(np.logaddexp(0, s) - c * s for n, c in path for s in [input[i] @ weight[n] + "
        "(0 if bias is None else bias.reshape(-1)[n])]) + (((2 * num_classes - 1).bit_length() - 1 if "
        "path_table is None else path_table.shape[1]) - len(path)) * np.log(2)] for i in "
        "range(len(input)) for path in [[(int(n), int(c)) for n, c in "
        "__import__('itertools').takewhile(lambda q: q[0] >= 0, zip(path_table[i], path_code[i]))] if "
        "path_table is not None else [((k >> (j + 1)) - 1, (k >> j) & 1) for k in "
        "[int(label.reshape(-1)[i]) + num_classes] for j in range(k.bit_length() - 1)]]])",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(0, 5, {4, 1}), 5, t({4, 3}))
              .add(t({4, 3}), ints(0, 6, {4}), 6, t({5, 3}), t({5, 1}))
              .add(t({2, 3}), ints(0, 3, {2}), 3, t({4, 3}), t({4}), given({0, 2, 3, -1}, {2, 2}),
                   given({1, 0, 1, -1}, {2, 2}));
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(hsigmoid_loss, &hsigmoid_loss_op)

}  // namespace oar
