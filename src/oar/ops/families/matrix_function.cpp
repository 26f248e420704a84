// Functions of matrices.
#include "oar/ops/gen/matrix_function.h"

#include "oar/ops/core/registry.h"
#include "oar/ops/families/matrix_rules.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

using namespace matrices;

const OpDef matrix_exp_op = {
    .schema = "matrix_exp(Tensor x) -> Tensor",
    .brief = "The exponential of square matrices: the sum of x^k / k!.",
    .infer = [](const args::matrix_exp& a) -> Metas {
      check_square(a.x, "x");
      return infer::like(a.x);
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 20); },
    .vjp = [](const vjp::matrix_exp& v) -> Grads {
      // The upper right block of exp([[x^H, g], [0, x^H]]) is the derivative of exp at x^H along g.
      const Tensor turned_x = adjoint(v.x);
      const Dim n = v.x.dim(-1);
      const Tensor above = concat({turned_x, v.grad}, -1);
      const Tensor below = concat({zeros_like(turned_x), turned_x}, -1);
      return slice(matrix_exp(concat({above, below}, -2)), {-2, -1}, {0, n.word()},
                   {n.word(), (n + n).word()});
    },
    .saves = "x",
    .shard = "...ij -> ...ij ; i whole, j whole # powers of the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f: f(f, np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape), np.broadcast_to("
        "np.eye(x.shape[-1], dtype=x.dtype), x.shape), 1))(lambda f, s, p, k: s if k > 80 else f(f, s + "
        "p @ x / k, p @ x / k, k + 1))",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 4}))
              .add(uniform_in(-0.1, 0.1, {2, 2}))
              .add(full_rank({1, 1}))
              .add(full_rank({9, 9}))
              .add(full_rank({0, 3, 3}))
              .add(full_rank({2, 0, 0}));
        },
};

}  // namespace

OAR_FAMILY(matrix_function, &matrix_exp_op)

}  // namespace oar
