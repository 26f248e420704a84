#include "oar/autograd/sharded.h"

#include "oar/autograd/record.h"
#include "oar/ops/gen/copy.h"

namespace oar {
namespace {

// A gradient is partial nowhere: what is partial is a sum, of which each process has the whole gradient.
Placement of_gradient(Placement placement) {
  for (MeshAxisPlacement& a : placement.axes)
    if (a.kind == MeshAxisPlacement::Partial) a.kind = MeshAxisPlacement::Replicate;
  return placement;
}

void check_can_be_cut(const Tensor& x) {
  user_check(
      (x.is_dense() || x.kind() == Kind::Symbolic || is_sharded(x)) && !is_packed(x.dtype()) &&
          !x->scales,
      ErrorKind::Unsupported,
      "{} cannot be laid out over processes.\nhint: Pass a dense tensor of a dtype of whole bytes, without scales.",
      x.describe());
}

// Memory of its own: a piece may be part of the memory that it was moved from.
Tensor own_copy(const Tensor& t) {
  const LayersOff above(kAboveSharding);
  return assign(t);
}

Tensor moved(const Tensor& x, int64_t mesh, const Placement& placement) {
  if (mesh != kAlone)
    return make_sharded(own_copy(moved_piece(x, mesh, placement)), x.dims(), mesh, placement);
  return own_copy(is_sharded(x) ? moved_piece(x, sharded(x).mesh, replicated_on(sharded(x).mesh))
                                : x);
}

}  // namespace

Tensor lay_out(const Tensor& x, int64_t mesh, const Placement& placement) {
  check_can_be_cut(x);
  const int64_t from = is_sharded(x) ? sharded(x).mesh : kAlone;
  const Placement before = is_sharded(x) ? of_gradient(sharded(x).placement) : Placement();
  return custom_function(
      {&x, 1}, [&](TensorList in) { return std::vector{moved(in[0], mesh, placement)}; },
      [from, before](TensorList grads) { return std::vector{lay_out(grads[0], from, before)}; },
      "reshard")[0];
}

Tensor from_pieces(const Tensor& x, int64_t mesh, const Placement& placement, Dims whole) {
  check_can_be_cut(x);
  const Shape wanted = local_shape(whole, mesh, placement);
  user_check(
      !is_sharded(x) && x.shape() == wanted, ErrorKind::InvalidArgument,
      "the piece of this process is {}, but of a tensor of shape {} it holds {} ({}).\nhint: The first processes along "
      "an axis of the mesh hold pieces of one size, rounded up; the last ones hold the rest.",
      x.describe(), to_string(whole), wanted.str(), placement.str());
  return custom_function(
      {&x, 1},
      [&](TensorList in) {
        return std::vector{make_sharded(own_copy(in[0]), whole, mesh, placement)};
      },
      [mesh, before = of_gradient(placement)](TensorList grads) {
        return std::vector{piece_here(lay_out(grads[0], mesh, before))};
      },
      "dtensor_from_local")[0];
}

Tensor placed_like(const Tensor& t, Tensor gradient) {
  if (!gradient.defined() || (!is_sharded(t) && !is_sharded(gradient))) return gradient;
  if (!is_sharded(t)) return t.is_dense() ? lay_out(gradient, kAlone, {}) : gradient;
  const Placement wanted = of_gradient(sharded(t).placement);
  const bool there = is_sharded(gradient) && sharded(gradient).mesh == sharded(t).mesh &&
                     sharded(gradient).placement == wanted;
  if (there || gradient.kind() == Kind::SelectedRows) return gradient;
  return lay_out(gradient, sharded(t).mesh, wanted);
}

Tensor piece_here(const Tensor& x) {
  if (!is_sharded(x)) return x;
  return custom_function(
      {&x, 1}, [](TensorList in) { return std::vector{own_copy(sharded(in[0]).local)}; },
      [mesh = sharded(x).mesh, before = of_gradient(sharded(x).placement), whole = x.shape()](
          TensorList grads) { return std::vector{from_pieces(grads[0], mesh, before, whole)}; },
      "dtensor_to_local")[0];
}

}  // namespace oar
