// Products of matrices. One primitive, matmul_core; the others call it.
#include "oar/ops/gen/matmul.h"

#include <algorithm>
#include <array>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/work.h"
#include "oar/ops/families/activated.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/rows.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

Tensor swap_last_two(const Tensor& x) {
  SmallVector<int64_t, 6> perm;
  for (int64_t i = 0; i < x.rank(); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, perm);
}

Shape batch_of(const Tensor& t) {
  Shape batch;
  for (int i = 0; i + 2 < t.rank(); ++i) batch.push_back(t.dims()[static_cast<size_t>(i)]);
  return batch;
}

// The sizes of a product as NumPy sees it: a vector is a row on the left and a column on the right.
struct ProductShape {
  Shape batch;
  Dim m = 1, n = 1;
  bool has_row = false, has_column = false;

  Shape full() const {
    Shape shape = batch;
    shape.push_back(m);
    shape.push_back(n);
    return shape;
  }
  Shape result() const {
    Shape shape = batch;
    if (has_row) shape.push_back(m);
    if (has_column) shape.push_back(n);
    return shape;
  }
};

ProductShape product_shape(const Tensor& x, const Tensor& y, bool transpose_x, bool transpose_y) {
  user_check(
      x.rank() > 0 && y.rank() > 0, ErrorKind::InvalidArgument,
      "x has shape {} and y {}; a product needs at least one axis on both sides.\nhint: Multiply "
      "by a 0-d tensor with x * y.",
      to_string(x.dims()), to_string(y.dims()));
  ProductShape p;
  p.has_row = x.rank() > 1;
  p.has_column = y.rank() > 1;
  const Dim x_sum = p.has_row && transpose_x ? x.dim(-2) : x.dim(-1);
  const Dim y_sum = p.has_column && !transpose_y ? y.dim(-2) : y.dim(-1);
  user_check(
      same(x_sum, y_sum), ErrorKind::InvalidArgument,
      "the sizes that are summed differ: x of shape {}{} has {}, y of shape {}{} has {}.\nhint: "
      "The last axis of x must match the last but one of y; transpose_x and transpose_y turn "
      "them.",
      to_string(x.dims()), transpose_x ? " (transposed)" : "", x_sum.str(), to_string(y.dims()),
      transpose_y ? " (transposed)" : "", y_sum.str());
  if (p.has_row) p.m = transpose_x ? x.dim(-1) : x.dim(-2);
  if (p.has_column) p.n = transpose_y ? y.dim(-2) : y.dim(-1);
  if (x.rank() > 2 || y.rank() > 2) p.batch = broadcast_shapes(batch_of(x), batch_of(y));
  return p;
}

Tensor with_batch(const Tensor& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.dim(-2));
  shape.push_back(x.dim(-1));
  return shape == x.shape() ? x : broadcast_to(x, shape);
}

Tensor as_rows(const Tensor& x) { return reshape(x, {batch_of(x).numel() * x.dim(-2), x.dim(-1)}); }

// Multiply-adds of `summed` products for each element of the result.
Cost product_cost(const CostCall& c, double summed) {
  return Cost::of_products(2 * elements(c.results[0]) * summed);
}

template <class A>
double summed_size(const A& a) {
  return extent(a.x, a.transpose_x && a.x.rank() > 1 ? -2 : -1);
}

// A left factor whose rows are not dense, by a flag or by its strides: by experiment, a library cuts the long sums of such
// products by threads.
bool is_turned(const Tensor& x, bool flag) {
  return x.rank() > 1 && (flag || x->strides[x.rank() - 1] != 1);
}

const OpDef matmul_core_op = {
    .schema = "matmul_core(Tensor x, Tensor y) -> Tensor",
    .brief = "The product of matrices in the last two axes; the axes in front are equal.",
    .infer = [](const args::matmul_core& a) -> Metas {
      user_check(a.x.rank() == a.y.rank() && a.x.rank() >= 2 && same(batch_of(a.x), batch_of(a.y)),
                 ErrorKind::InvalidArgument,
                 "x of shape {} and y of shape {} must have the same rank and the same leading "
                 "axes.\nhint: matmul broadcasts them.",
                 to_string(a.x.dims()), to_string(a.y.dims()));
      return TensorMeta{a.x.dtype(), product_shape(a.x, a.y, false, false).result()};
    },
    .cost = [](const CostCall& c) { return product_cost(c, extent(c.args[0].as_tensor(), -1)); },
    .vjp = [](const vjp::matmul_core& v) -> Grads {
      return {v.needs(0) ? matmul_core(v.grad, swap_last_two(conjugate(v.y))) : Tensor(),
              v.needs(1) ? matmul_core(swap_last_two(conjugate(v.x)), v.grad) : Tensor()};
    },
    .saves = "x>y y>x",
    .batch = [](const BatchCall& c) -> Made {
      const Tensor &x = c.args[0].as_tensor(), &y = c.args[1].as_tensor();
      if (!c.batched[1] && y.rank() == 2)  // one product over the rows of all
        return reshape(matmul_core(as_rows(x), y), {x.dim(0), x.dim(1), y.dim(1)});
      return matmul_core(with_batch(c, 0), with_batch(c, 1));
    },
    .shard = "...ik, ...kj -> ...ij",
    .linear_in = "x y",
    .cuts_sums = [](const args::matmul_core& a) { return is_turned(a.x, false); },
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = "np.matmul(x, y)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), t({4, 5}))
              .add(t({2, 3, 4}), t({2, 4, 2}))
              .add(t({2, 0}), t({0, 3}))
              .add(t({0, 2, 3}), t({0, 3, 1}));
        },
    .onnx = "MatMul",
};

Tensor left_matrix(const Tensor& x) { return x.rank() == 1 ? reshape(x, {1, x.dim(0)}) : x; }

Tensor right_matrix(const Tensor& y) { return y.rank() == 1 ? reshape(y, {y.dim(0), 1}) : y; }

// Gradient of a factor whose batch was broadcast, and which may have been a vector.
Tensor fit(const Tensor& grad, const Tensor& factor, const Shape& as_matrix) {
  const Tensor summed = sum_to(grad, as_matrix);
  return factor.rank() == 1 ? reshape(summed, factor.dims()) : summed;
}

// The gradients of both factors of a product; an undefined one where none is needed.
Grads product_gradients(const Tensor& left, const Tensor& right, bool transpose_x, bool transpose_y,
                        const Tensor& out_grad, bool needs_left, bool needs_right) {
  const ProductShape p = product_shape(left, right, transpose_x, transpose_y);
  const bool tx = transpose_x && p.has_row, ty = transpose_y && p.has_column;
  const Tensor x = left_matrix(left), y = right_matrix(right);
  const Tensor grad = p.has_row && p.has_column ? out_grad : reshape(out_grad, p.full());
  Grads grads{Tensor(), Tensor()};
  if (needs_left) {
    const Tensor other = conjugate(y);
    grads[0] =
        fit(tx ? matmul(other, grad, ty, true) : matmul(grad, other, false, !ty), left, x.shape());
  }
  if (!needs_right) return grads;
  Tensor other = conjugate(x), rows = grad;
  if (y.rank() == 2 && x.rank() > 2 && !tx) {  // one product over all rows, not a sum of many
    other = as_rows(other);
    rows = as_rows(rows);
  }
  grads[1] =
      fit(ty ? matmul(rows, other, true, tx) : matmul(other, rows, !tx, false), right, y.shape());
  return grads;
}

// The factors of a product. Its axes are the last ones of `out`, which may be larger where more is added to it.
void plan_product(ShardPlan& plan, PlanTensor& x, PlanTensor& y, PlanTensor& out, bool transpose_x,
                  bool transpose_y) {
  const size_t rows = x.axes.size(), columns = y.axes.size(), rank = out.axes.size();
  const bool has_row = rows > 1, has_column = columns > 1;
  const auto place = [](PlanTensor& t, bool last) { return t.axes.size() - (last ? 1 : 2); };
  const int inner = plan.add(x.shape[has_row ? place(x, !transpose_x) : 0], Join::Sum);
  plan.put(x, has_row ? place(x, !transpose_x) : 0, inner);
  plan.put(y, has_column ? place(y, transpose_y) : 0, inner);
  const auto pass = [&](PlanTensor& from, size_t axis, size_t to) {
    const int factor = plan.add(out.shape[to]);
    plan.put(from, axis, factor);
    plan.put(out, to, factor);
  };
  if (has_row) pass(x, place(x, transpose_x), rank - 1 - has_column);
  if (has_column) pass(y, place(y, !transpose_y), rank - 1);
  const size_t batches = rank - has_row - has_column;
  for (size_t i = 0; i < batches; ++i) {
    const int factor = plan.add(out.shape[i]);
    const size_t from_end = batches - i + 2;
    plan.put(out, i, factor);
    if (from_end <= rows) plan.put(x, rows - from_end, factor);
    if (from_end <= columns) plan.put(y, columns - from_end, factor);
  }
}

// Activations other than relu take as long inside the product as alone, and round differently.
constexpr std::array<EpilogueStep, 4> kProductSteps = {
    EpilogueStep::Bias, EpilogueStep::Factor, EpilogueStep::Residual, EpilogueStep::Activation};

const OpDef matmul_op = {
    .schema =
        "matmul(Tensor x, Tensor y, bool transpose_x = False, bool transpose_y = False) -> Tensor",
    .brief =
        "The matrix product. Leading axes are batches and broadcast; a vector is a row on the left "
        "and a column on the right, and its axis is dropped from the result.",
    .infer = [](const args::matmul& a) -> Metas {
      return TensorMeta{a.x.dtype(),
                        product_shape(a.x, a.y, a.transpose_x, a.transpose_y).result()};
    },
    .decompose = [](const args::matmul& a) -> Made {
      const ProductShape p = product_shape(a.x, a.y, a.transpose_x, a.transpose_y);
      Tensor x = left_matrix(a.x), y = right_matrix(a.y);
      if (a.transpose_x && p.has_row) x = swap_last_two(x);
      if (a.transpose_y && p.has_column) y = swap_last_two(y);
      const Tensor out = y.rank() == 2 && x.rank() > 2
                             ? matmul_core(as_rows(x), y)
                             : matmul_core(with_batch(x, p.batch), with_batch(y, p.batch));
      const Shape shape = p.result();
      return out.shape() == shape ? out : reshape(out, shape);
    },
    .cost = [](const CostCall& c) { return product_cost(c, summed_size(args::matmul(c.args))); },
    .vjp = [](const vjp::matmul& v) -> Grads {
      return product_gradients(v.x, v.y, v.transpose_x, v.transpose_y, v.grad, v.needs(0),
                               v.needs(1));
    },
    .saves = "x>y y>x",
    .plan =
        [](const PlanCall& c) {
          const args::matmul a(c.args);
          plan_product(c.plan, c.plan.operands[0], c.plan.operands[1], c.plan.results[0],
                       a.transpose_x, a.transpose_y);
        },
    .epilogue = {.steps = kProductSteps,
                 .fused = "matmul_fused",
                 .activations = kOnlyRelu,
                 .accepts = [](const args::matmul& a) { return a.y.rank() >= 2; }},
    .cuts_sums = [](const args::matmul& a) { return is_turned(a.x, a.transpose_x); },
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "np.matmul(np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x, "
        "np.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), t({4, 5}))
              .add(t({4, 3}), t({5, 4}), true, true)
              .add(t({4}), t({4}))
              .add(t({4}), t({4, 2}))
              .add(t({3, 4}), t({4}))
              .add(t({2, 3, 4}), t({4, 2}))
              .add(t({3}), t({2, 4, 3}), false, true)
              .add(t({2, 4, 3}), t({4}), true)
              .add(t({2, 1, 3, 2}), t({4, 2, 3}))
              .add(t({2, 2, 3}), t({4, 2}), true, true)
              .add(t({0, 3}), t({3, 2}))
              .add(t({2, 0}), t({0, 3}))
              .add(t({17, 9}), t({9, 19}));
        },
    .python = "oar Tensor",
    .onnx = "MatMul",
};

// The shape of the product alone.
Shape linear_product(const Tensor& x, const Tensor& weight) {
  user_check(weight.rank() >= 1, ErrorKind::InvalidArgument,
             "weight must be [in_features, out_features], but it is 0-d.");
  const Dim features = weight.dim(weight.rank() == 1 ? 0 : -2);
  user_check(x.rank() >= 1 && same(x.dim(-1), features), ErrorKind::InvalidArgument,
             "weight of shape {} takes {} features, but the last axis of x (shape {}) has another "
             "size.\nhint: weight is [in_features, out_features].",
             to_string(weight.dims()), features.str(), to_string(x.dims()));
  return product_shape(x, weight, false, false).result();
}

bool has_matrix_and_row(const Tensor& weight, const Tensor& bias) {
  return weight.rank() == 2 &&
         (!bias.defined() || (bias.rank() == 1 && same(bias.dim(0), weight.dim(1))));
}

Shape linear_shape(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_parameter(x, weight, "weight");
  check_parameter(x, bias, "bias");
  if (has_matrix_and_row(weight, bias) && x.rank() >= 1 && same(x.dim(-1), weight.dim(0))) {
    Shape out = x.shape();
    out.back() = weight.dim(1);
    return out;
  }
  const Shape out = linear_product(x, weight);
  return bias.defined() ? broadcast_shapes(out, bias.shape()) : out;
}

// Gradients of a weight with one axis or more than two, or of a bias with more axes than the product.
Grads linear_gradients(const vjp::linear& v) {
  const Tensor grad = sum_to(v.grad, linear_product(v.x, v.weight));
  Grads grads = product_gradients(v.x, v.weight, false, false, grad, v.needs(0), v.needs(1));
  grads.push_back(v.needs(2) && v.bias.defined() ? sum_to(v.grad, v.bias.dims()) : Tensor());
  return grads;
}

const OpDef linear_op = {
    .schema = "linear(Tensor x, Tensor weight, Tensor? bias = None) -> Tensor",
    .brief =
        "x @ weight + bias. The weight is [in_features, out_features]; a vector gives one number for each row of x, and "
        "more axes give a batch of products. The bias broadcasts.",
    .infer = [](const args::linear& a) -> Metas {
      return TensorMeta{a.x.dtype(), linear_shape(a.x, a.weight, a.bias)};
    },
    .decompose = [](const args::linear& a) -> Made {
      linear_shape(a.x, a.weight, a.bias);
      const Tensor out = matmul(a.x, a.weight);
      return a.bias.defined() ? add(out, a.bias) : out;
    },
    .cost = [](const CostCall& c) { return product_cost(c, extent(c.args[0].as_tensor(), -1)); },
    .vjp = [](const vjp::linear& v) -> Grads {
      if (!has_matrix_and_row(v.weight, v.bias)) return linear_gradients(v);
      Grads grads{Tensor(), Tensor(), Tensor()};
      if (v.needs(0)) grads[0] = matmul(v.grad, conjugate(v.weight), false, true);
      if (v.needs(1))
        grads[1] = matmul(last_axis_rows(conjugate(v.x)), last_axis_rows(v.grad), true, false);
      if (v.needs(2) && v.bias.defined()) grads[2] = sum_to(v.grad, v.bias.dims());
      return grads;
    },
    .saves = "x>weight weight>x bias:shape",
    .plan =
        [](const PlanCall& c) {
          PlanTensor& out = c.plan.results[0];
          plan_product(c.plan, c.plan.operands[0], c.plan.operands[1], out, false, false);
          PlanTensor* bias = c.plan.operand(2);
          if (!bias) return;
          const size_t missing = out.axes.size() - bias->axes.size();
          for (size_t i = 0; i < bias->axes.size(); ++i)
            if (const int factor = out.axes[missing + i].factor; factor >= 0)
              c.plan.put(*bias, i, factor);
        },
    .localise =
        [](const PieceCall& piece) {
          // Partial products: only the first has the bias. One with more axes than the product gives the others their shape.
          const auto& axes = piece.plan.operands[1].axes;
          const size_t inner = axes.size() == 1 ? 0 : axes.size() - 2;
          const bool partial = axes[inner].factor == static_cast<int>(piece.factor);
          const Value bias = piece.frame[2];
          if (!partial || piece.start == Dim(0) || !bias.is_tensor()) return;
          if (has_matrix_and_row(piece.frame[1].as_tensor(), bias.as_tensor()))
            piece.frame.set(2, Value());
          else
            piece.frame.set_tensor(2, zeros_like(bias.as_tensor()));
        },
    .epilogue = {.steps = kProductSteps,
                 .fused = "matmul_fused",
                 .sets = "from_bias",
                 .activations = kOnlyRelu,
                 .accepts =
                     [](const args::linear& a) {
                       return has_matrix_and_row(a.weight, a.bias) &&
                              (!a.bias.defined() || a.bias.dtype() == a.x.dtype());
                     }},
    .cuts_sums = [](const args::linear& a) { return is_turned(a.x, false); },
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = "np.matmul(x, weight) + (0 if bias is None else bias)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), t({4, 5}), t({5}))
              .add(t({2, 3, 4}), t({4, 2}))
              .add(t({4}), t({4, 3}), t({3}))
              .add(t({0, 4}), t({4, 2}), t({2}))
              .add(t({2, 3}), t({3, 4}), t({1}))
              .add(t({2, 3, 4}), t({4}), t({3}))  // a vector
              .add(t({4}), t({4}), t({2, 3}))
              .add(t({3, 4}), t({2, 4, 5}), t({3, 1}))  // a batch of matrices
              .add(t({2, 1, 3, 2}), t({4, 2, 3}), t({}))
              .add(t({1, 4}), t({4, 2}), t({3, 2, 2}));  // a bias with more axes
        },
    .python = "oar.nn.functional",
    .onnx = "Gemm",
};

// A product fused with the calls that follow it. Only programs call it, so it has no derivative of its own.
const OpDef matmul_fused_op = {
    .schema =
        "matmul_fused(Tensor x, Tensor y, Tensor? bias, Tensor? residual, bool transpose_x = False, bool transpose_y = False, float scale = 1.0, str activation = '', bool from_bias = False) -> Tensor",
    .brief =
        "matmul, then the sum with a bias of the last axis, a factor, the sum with residual and an activation, of "
        "which each may be missing. from_bias: the sums start from the bias, as those of linear do.",
    .infer = [](const args::matmul_fused& a) -> Metas {
      const ProductShape p = product_shape(a.x, a.y, a.transpose_x, a.transpose_y);
      const Shape out = p.result();
      user_check(
          !a.bias.defined() || (p.has_column && a.bias.rank() == 1 && same(a.bias.dim(0), p.n)),
          ErrorKind::InvalidArgument,
          "bias has shape {}, but it must have one number for each column of a result of "
          "shape {}.",
          a.bias.defined() ? to_string(a.bias.dims()) : "", out.str());
      user_check(!a.from_bias || (a.y.rank() == 2 && !a.transpose_x && !a.transpose_y),
                 ErrorKind::InvalidArgument,
                 "from_bias is for a y of two axes and nothing transposed.");
      user_check(!a.residual.defined() || same(a.residual.shape(), out), ErrorKind::InvalidArgument,
                 "residual has shape {}, but the product has shape {}.",
                 a.residual.defined() ? to_string(a.residual.dims()) : "", out.str());
      return TensorMeta{a.x.dtype(), out};
    },
    .decompose = [](const args::matmul_fused& a) -> Made {
      Tensor out =
          a.from_bias ? linear(a.x, a.y, a.bias) : matmul(a.x, a.y, a.transpose_x, a.transpose_y);
      if (a.bias.defined() && !a.from_bias) out = out + a.bias;
      if (a.scale != 1) out = out * a.scale;
      if (a.residual.defined()) out = out + a.residual;
      return activated(out, a.activation);
    },
    .cost =
        [](const CostCall& c) { return product_cost(c, summed_size(args::matmul_fused(c.args))); },
    .cuts_sums = [](const args::matmul_fused& a) { return is_turned(a.x, a.transpose_x); },
    .traits = Trait::Promote,
    .dtypes = "float",
    .amp = Amp::Low,
    .numpy =
        "(lambda z: {'': z, 'relu': np.maximum(z, 0), 'hardswish': z * np.clip(z + 3, 0, 6) / 6, 'silu': z / (1 + "
        "np.exp(-z)), 'sigmoid': 1 / (1 + np.exp(-z)), 'tanh': np.tanh(z)}[activation])("
        "(np.matmul(np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x, np.swapaxes(y, -1, -2) "
        "if transpose_y and y.ndim > 1 else y) + (0 if bias is None else bias)) * scale + (0 if residual is None else "
        "residual))",
    .samples =
        [] {
          Samples samples;
          for (const char* activation : kActivations)
            samples.add(t({3, 4}), t({4, 5}), t({5}), t({3, 5}), false, false, 1.0, activation,
                        *activation == 's');
          return samples
              .add(t({2, 3, 4}), t({5, 4}), t({5}), std::nullopt, false, true, 0.5, "relu")
              .add(t({2, 4, 3}), t({2, 4, 5}), std::nullopt, t({2, 3, 5}), true, false, -2.0,
                   "tanh")
              .add(t({4}), t({4, 2}), t({2}), std::nullopt, false, false, 1.0, "sigmoid")
              .add(t({0, 4}), t({4, 2}), t({2}), std::nullopt, false, false, 1.0, "silu");
        },
};

const OpDef mm_op = {
    .schema = "mm(Tensor input, Tensor mat2) -> Tensor",
    .brief = "The matrix product, without transposition.",
    .decompose = [](const args::mm& a) -> Made { return matmul(a.input, a.mat2); },
    .dtypes = "int float complex",
    .numpy = "np.matmul(input, mat2)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), t({3, 4}))
              .add(t({2, 2, 3}), t({2, 3, 1}))
              .add(t({0, 3}), t({3, 2}));
        },
    .python = "oar Tensor",
};

void check_rank(const Tensor& x, int rank, const char* name) {
  user_check(x.rank() == rank, ErrorKind::InvalidArgument,
             "{} must have {} axes, but its shape is {}.\nhint: matmul takes any rank.", name, rank,
             to_string(x.dims()));
}

const OpDef bmm_op = {
    .schema = "bmm(Tensor x, Tensor y) -> Tensor",
    .brief = "The products of two equally long lists of matrices.",
    .decompose = [](const args::bmm& a) -> Made {
      check_rank(a.x, 3, "x");
      check_rank(a.y, 3, "y");
      user_check(
          same(a.x.dim(0), a.y.dim(0)), ErrorKind::InvalidArgument,
          "x of shape {} holds {} matrices and y of shape {} holds {}.\nhint: matmul broadcasts "
          "a single one.",
          to_string(a.x.dims()), a.x.dim(0).str(), to_string(a.y.dims()), a.y.dim(0).str());
      return matmul(a.x, a.y);
    },
    .dtypes = "int float complex",
    .numpy = "np.matmul(x, y)",
    .samples =
        [] { return Samples().add(t({2, 3, 4}), t({2, 4, 2})).add(t({0, 2, 3}), t({0, 3, 2})); },
    .python = "oar Tensor",
};

const OpDef mv_op = {
    .schema = "mv(Tensor x, Tensor vec) -> Tensor",
    .brief = "A matrix times a vector.",
    .decompose = [](const args::mv& a) -> Made {
      check_rank(a.x, 2, "x");
      check_rank(a.vec, 1, "vec");
      return matmul(a.x, a.vec);
    },
    .dtypes = "int float complex",
    .numpy = "np.matmul(x, vec)",
    .samples =
        [] {
          return Samples().add(t({3, 4}), t({4})).add(t({0, 3}), t({3})).add(t({2, 0}), t({0}));
        },
    .python = "oar Tensor",
};

Tensor scaled(const Tensor& x, double factor) { return factor == 1.0 ? x : x * factor; }

const OpDef addmm_op = {
    .schema =
        "addmm(Tensor input, Tensor x, Tensor y, float beta = 1.0, float alpha = 1.0) -> Tensor",
    .brief = "beta * input + alpha * (x @ y), with input broadcast to the product's shape.",
    .decompose = [](const args::addmm& a) -> Made {
      check_rank(a.x, 2, "x");
      check_rank(a.y, 2, "y");
      const Tensor product = matmul(a.x, a.y);
      user_check(a.input.rank() <= 2 &&
                     same(broadcast_shapes(a.input.shape(), product.shape()), product.shape()),
                 ErrorKind::InvalidArgument,
                 "input of shape {} does not broadcast to the shape {} of the product.",
                 to_string(a.input.dims()), to_string(product.dims()));
      return scaled(a.input, a.beta) + scaled(product, a.alpha);
    },
    .traits = Trait::Promote | Trait::HasInplace,
    .dtypes = "float complex",
    .numpy = "(beta * input + alpha * (x @ y)).astype(np.result_type(input, x, y))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 4}), t({2, 3}), t({3, 4}))
              .add(t({4}), t({2, 3}), t({3, 4}), 2.0, 3.0)
              .add(t({2, 1}), t({2, 0}), t({0, 4}), 2.0);
        },
    .python = "oar Tensor",
    .onnx = "Gemm",
};

}  // namespace

OAR_FAMILY(matmul, &matmul_core_op, &matmul_op, &linear_op, &matmul_fused_op, &mm_op, &bmm_op,
           &mv_op, &addmm_op)

}  // namespace oar
