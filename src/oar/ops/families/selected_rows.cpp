// Selected rows: a tall matrix of which only some rows are held, such as an embedding's gradient. Rows
// may repeat; they are then summed.
#include "oar/ops/families/selected_rows.h"

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/infer.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/selected_rows.h"

namespace oar {
namespace {

bool is_selected(const Tensor& t) { return t.kind() == Kind::SelectedRows; }

void check_rows(const Tensor& x) {
  user_check(x.rank() >= 1, ErrorKind::InvalidArgument, "x is 0-d and has no rows.");
}

// A dense tensor is the case of all rows, so these ops accept every tensor.
const OpDef selected_rows_to_dense_op = {
    .schema = "selected_rows_to_dense(Tensor x) -> Tensor",
    .brief = "The whole matrix, with rows that repeat summed and zeros elsewhere.",
    .decompose = [](const args::selected_rows_to_dense& a) -> Made {
      if (!is_selected(a.x)) return a.x;
      const SelectedRows& rows = selected_rows(a.x);
      return index_put(zeros(a.x.dims(), a.x.dtype()), {rows.rows}, rows.values, true);
    },
    .traits = Trait::SelectedRows,
    .numpy = "x",
    .samples = samples::unary,
};

const OpDef selected_rows_values_op = {
    .schema = "selected_rows_values(Tensor x) -> Tensor",
    .brief = "The rows that are held, one below the other.",
    .decompose = [](const args::selected_rows_values& a) -> Made {
      return is_selected(a.x) ? selected_rows(a.x).values : a.x;
    },
    .traits = Trait::SelectedRows,
    .numpy = "x",
    .samples = [] { return Samples().add(t({4, 3})).add(t({0, 3})); },
};

const OpDef selected_rows_rows_op = {
    .schema = "selected_rows_rows(Tensor x) -> Tensor",
    .brief = "The numbers of the rows that are held.",
    .infer = [](const args::selected_rows_rows& a) -> Metas {
      check_rows(a.x);
      return TensorMeta{DType::Int64, Shape{a.x.dim(0)}};
    },
    .decompose = [](const args::selected_rows_rows& a) -> Made {
      check_rows(a.x);
      if (is_selected(a.x)) return selected_rows(a.x).rows;
      return range(Scalar(0), Scalar(a.x.dim(0).value()), Scalar(1), DType::Int64);
    },
    .traits = Trait::SelectedRows | Trait::NoGrad,
    .numpy = "np.arange(x.shape[0])",
    .samples = [] { return Samples().add(t({4, 3})).add(t({0, 3})); },
};

Tensor joined(const Tensor& a, const Tensor& b) {
  const SelectedRows &x = selected_rows(a), &y = selected_rows(b);
  return make_selected_rows(concat({x.rows, y.rows}), concat({x.values, y.values}), a.dims());
}

Tensor dense(const Tensor& t) { return is_selected(t) ? selected_rows_to_dense(t) : t; }

// The call with dense tensors. One that is written becomes dense itself.
Outputs run_densely(const Op& op, Args args) {
  Frame frame(args);
  for (size_t i = 0; i < args.size(); ++i) {
    const bool written = op.schema().parameters[i].written;
    const auto ready = [&](const Tensor& t) {
      if (!t.defined() || !is_selected(t)) return t;
      if (!written) return dense(t);
      t->become(*dense(t).impl());
      return t;
    };
    if (args[i].is_tensor()) frame.set_tensor(i, ready(args[i].as_tensor()));
    if (args[i].is_tensors()) {
      std::vector<Tensor> list;
      for (const Tensor& t : args[i].as_tensors()) list.push_back(ready(t));
      frame.set_tensors(i, std::move(list));
    }
  }
  return proceed(op, frame.args(), below(kSelectedRows));
}

Outputs selected_rows_layer(const Op& op, Args args) {
  if (op.has(Trait::SelectedRows)) return proceed(op, args, below(kSelectedRows));
  static const Op& add_op = get_op("add");
  const bool adds = &op == &add_op || &op == add_op.inplace();
  if (!adds || !is_selected(args[0].as_tensor()) || !is_selected(args[1].as_tensor()))
    return run_densely(op, args);
  Outputs outputs;
  outputs.push_back(joined(args[0].as_tensor(), args[1].as_tensor()));
  if (&op == &add_op) return outputs;
  const Tensor& x = args[0].as_tensor();
  x->become(*outputs[0].impl());
  outputs[0] = x;
  return outputs;
}

}  // namespace

void install_selected_rows_layer() { install_layer(kSelectedRows, selected_rows_layer); }

OAR_FAMILY(selected_rows, &selected_rows_to_dense_op, &selected_rows_values_op,
           &selected_rows_rows_op)

}  // namespace oar
