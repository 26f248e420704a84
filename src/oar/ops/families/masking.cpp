// Choices by conditions and masks.
#include "oar/ops/gen/masking.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

const OpDef where_op = {
    .schema = "where(Tensor condition, Tensor x, Tensor y) -> Tensor",
    .brief = "x where the condition holds, else y.",
    .infer = [](const args::where& a) -> Metas {
      user_check(
          is_bool(a.condition.dtype()), ErrorKind::InvalidType,
          "condition has dtype {}; it must be bool.\nhint: Compare it, for example condition != 0.",
          name_of(a.condition.dtype()));
      return infer::like(a.x);
    },
    .scalar = "condition ? x : y",
    .vjp = [](const vjp::where& v) -> Grads {
      return {Tensor(), v.needs(1) ? zero_unless(v.condition, v.grad) : Tensor(),
              v.needs(2) ? zero_where(v.condition, v.grad) : Tensor()};
    },
    .saves = "condition",
    .shard = "..., ..., ... -> ...",
    .traits = Trait::Elementwise | Trait::Promote,
    .promotes = "x y",
    .numpy = "np.where(condition, x, y)",
    .samples =
        [] {
          return Samples()
              .add(bools({4, 7}), t({4, 7}), t({4, 7}))
              .add(bools({2, 1, 5}), t({3, 1}), t({}))
              .add(bools({}), t({3}), t({3}))
              .add(bools({5}), t({}), t({5}))
              .add(bools({}), t({}), t({}))
              .add(bools({0, 3}), t({3}), t({0, 3}));
        },
    .python = "oar Tensor",
    .onnx = "Where",
};

void check_mask(const Tensor& mask) {
  user_check(is_bool(mask.dtype()), ErrorKind::InvalidType, "mask has dtype {}; it must be bool.",
             name_of(mask.dtype()));
}

const OpDef masked_fill_op = {
    .schema = "masked_fill(Tensor x, Tensor mask, Tensor value) -> Tensor",
    .brief = "x with `value` where the mask holds. Shapes are broadcast; x keeps its dtype.",
    .decompose = [](const args::masked_fill& a) -> Made {
      check_mask(a.mask);
      return where(a.mask, a.value.dtype() == a.x.dtype() ? a.value : cast(a.value, a.x.dtype()),
                   a.x);
    },
    .traits = Trait::Broadcast | Trait::HasInplace,
    .numpy = "np.where(mask, value.astype(x.dtype), x)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), bools({3, 4}), t({}))
              .add(t({3, 4}), bools({4}), t({}))
              .add(t({1, 4}), bools({3, 1}), t({}))
              .add(t({0, 2}), bools({2}), t({}));
        },
    .python = "oar Tensor",
};

const OpDef masked_select_op = {
    .schema = "masked_select(Tensor x, Tensor mask) -> Tensor",
    .brief = "The elements of x where the mask holds, as a vector. Shapes are broadcast.",
    .infer = [](const args::masked_select& a) -> Metas {
      check_mask(a.mask);
      const Dim all = broadcast_shapes(a.x.shape(), a.mask.shape()).numel();
      const Dim count = a.mask.is_dense() ? all : Dim::symbol("selected", all.hint());
      return TensorMeta{a.x.dtype(), Shape{count}, true};
    },
    .decompose = [](const args::masked_select& a) -> Made {
      check_mask(a.mask);
      const Shape shape = broadcast_shapes(a.x.shape(), a.mask.shape());
      const Tensor flat = reshape(broadcast_to(a.x, shape), {shape.numel()});
      const Tensor mask = reshape(broadcast_to(a.mask, shape), {shape.numel()});
      return index_take(flat, {slice_view(nonzero(mask), SliceIndex().all().at(0))});
    },
    .vjp = [](const vjp::masked_select& v) -> Grads {
      const Shape shape = broadcast_shapes(v.x.shape(), v.mask.shape());
      const Tensor spread =
          index_put(blank(shape, v.grad.dtype()), {broadcast_to(v.mask, shape)}, v.grad);
      return {sum_to(spread, v.x.dims()), Tensor()};
    },
    .saves = "x:shape mask",
    .shard = "whole: how many there are depends on every element",
    .traits = Trait::DataDependent,
    .numpy =
        "np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape))[np.broadcast_to(mask, "
        "np.broadcast_shapes(x.shape, mask.shape))]",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), bools({3, 4}))
              .add(t({3, 4}), bools({4}))
              .add(t({5}), bools({5}))
              .add(t({0, 2}), bools({0, 2}))
              .add(t({}), bools({}));
        },
    .python = "oar Tensor",
};

const OpDef masked_scatter_op = {
    .schema = "masked_scatter(Tensor x, Tensor mask, Tensor value) -> Tensor",
    .brief = "x with the elements of `value`, in order, where the mask holds.",
    .decompose = [](const args::masked_scatter& a) -> Made {
      check_mask(a.mask);
      const Tensor mask = broadcast_to(a.mask, a.x.dims());
      const Dim count = nonzero(mask).dim(0);
      // While sizes are inferred the mask has no content yet; the run then checks the count.
      user_check(!count.is_known() || !known_less(a.value.numel(), count),
                 ErrorKind::InvalidArgument, "value has {} elements for the {} places of the mask.",
                 a.value.numel().str(), count.str());
      const Tensor flat = reshape(a.value, {a.value.numel()});
      return index_put(a.x, {mask}, slice_view(flat, SliceIndex().range(0, count)));
    },
    .shard = "whole: which value an element takes depends on the mask before it",
    .traits = Trait::DataDependent | Trait::HasInplace,
    .numpy =
        "(lambda out, m: (out.__setitem__(m, value.ravel()[:m.sum()]), out)[1])(x.copy(), np.broadcast_to(mask, x.shape))",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), bools({3, 4}), t({12}))
              .add(t({2, 3}), bools({3}), t({3, 2}))
              .add(t({0}), bools({0}), t({2}));
        },
    .python = "oar Tensor",
};

const OpDef nonzero_op = {
    .schema = "nonzero(Tensor x) -> Tensor",
    .brief =
        "The positions of the elements that are not zero: one row per element, one column per axis.",
    .infer = [](const args::nonzero& a) -> Metas {
      // The kernel computes the number; only a program needs a symbol for it.
      const Dim count = a.x.is_dense() ? a.x.numel() : Dim::symbol("nonzero", a.x.numel().hint());
      return TensorMeta{DType::Int64, Shape{count, a.x.rank()}, true};
    },
    .shard = "whole: how many there are depends on every element",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .numpy = "np.argwhere(x)",
    .samples =
        [] {
          return Samples()
              .add(bools({3, 4}))
              .add(ints(0, 2, {2, 2, 3}))
              .add(t({5}))
              .add(bools({}))
              .add(t({0, 3}));
        },
};

const OpDef multiplex_op = {
    .schema = "multiplex(Tensor[] inputs, Tensor index) -> Tensor",
    .brief = "Row i of the result is row i of the tensor that index[i] names.",
    .decompose = [](const args::multiplex& a) -> Made {
      user_check(a.inputs.size() >= 2 && a.inputs[0].rank() >= 2, ErrorKind::InvalidArgument,
                 "inputs must be at least two tensors with at least two axes.");
      user_check(is_integral(a.index.dtype()), ErrorKind::InvalidType,
                 "index has dtype {}; it must be an integer type.", name_of(a.index.dtype()));
      const Dim rows = a.index.numel();
      user_check(!known_less(a.inputs[0].dim(0), rows), ErrorKind::InvalidArgument,
                 "index names {} rows and the tensors of shape {} have fewer.", rows.str(),
                 to_string(a.inputs[0].dims()));
      const Tensor all = stack(a.inputs, 0);
      const Tensor which = reshape(a.index, {rows});
      const Tensor row = cumsum_along(ones_like(which, DType::Int64), 0, /*exclusive=*/true);
      return index_take(all, {which, row});
    },
    .numpy = "np.stack([inputs[int(k)][i] for i, k in enumerate(index.ravel())])",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({4, 3}), t({4, 3}), t({4, 3})}, ints(0, 3, {4, 1}, DType::Int32))
              .add(Specs{t({2, 2, 2}), t({2, 2, 2})}, ints(0, 2, {2}));
        },
    .python = "oar",
};

}  // namespace

OAR_FAMILY(masking, &where_op, &masked_fill_op, &masked_select_op, &masked_scatter_op, &nonzero_op,
           &multiplex_op)

}  // namespace oar
