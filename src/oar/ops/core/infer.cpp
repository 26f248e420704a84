#include "oar/ops/core/infer.h"

#include <algorithm>

#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

const Tensor& first_tensor(const Args& args) {
  for (const Value& v : args) {
    if (v.is_tensor()) return v.as_tensor();
    if (v.is_tensors() && v.count > 0) return v.as_tensors()[0];
  }
  fail(ErrorKind::InvalidArgument, "the call has no tensor.");
}

}  // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const Dim da = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim db = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    Dim& d = out[rank - 1 - i];
    // A known 1 is broadcast; a symbolic size beside a known one must equal it.
    if (da == Dim(1))
      d = db;
    else if (db == Dim(1))
      d = da;
    else if (same(da, db))
      d = da.is_known() ? da : db;
    else if (da.is_symbolic() && same(da, Dim(1)))
      d = db;
    else if (db.is_symbolic() && same(db, Dim(1)))
      d = da;
    else
      fail(
          ErrorKind::InvalidArgument,
          "the shapes {} and {} do not broadcast: sizes {} and {} differ at axis -{} and neither is "
          "1.\nhint: Reshape or transpose one of them so that the sizes line up from the right.",
          a.str(), b.str(), da.str(), db.str(), i + 1);
  }
  return out;
}

SmallVector<int64_t, 6> normalise_axes(std::optional<Ints> axes, int rank, const char* argument) {
  SmallVector<int64_t, 6> out;
  if (!axes || axes->empty()) {
    for (int i = 0; i < rank; ++i) out.push_back(i);
    return out;
  }
  for (int64_t axis : *axes) {
    // A 0-d tensor may be reduced over axis 0 or -1, as NumPy once did and Paddle does.
    if (rank == 0 && (axis == 0 || axis == -1)) continue;
    out.push_back(normalise_axis(axis, rank, argument));
  }
  std::sort(out.begin(), out.end());
  for (size_t i = 1; i < out.size(); ++i)
    user_check(out[i] != out[i - 1], ErrorKind::InvalidArgument, "{} names axis {} twice.",
               argument, out[i]);
  return out;
}

Shape reduced_shape(const Shape& shape, Ints axes, bool keepdim) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!reduced)
      out.push_back(shape[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

SmallVector<int64_t, 6> expand_ints(Ints given, size_t count, const char* argument) {
  user_check(given.size() == 1 || given.size() == count, ErrorKind::InvalidArgument,
             "{} has {} numbers; pass one or {}.", argument, given.size(), count);
  SmallVector<int64_t, 6> out;
  for (size_t i = 0; i < count; ++i) out.push_back(given.size() == 1 ? given[0] : given[i]);
  return out;
}

Shape resolve_reshape(const Shape& from, Dims wanted) {
  Shape out;
  int unknown = -1;
  Dim known = 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Dim d = wanted[i];
    if (d == Dim(-1)) {
      user_check(unknown < 0, ErrorKind::InvalidArgument,
                 "the shape {} has more than one -1; only one size may be -1.", to_string(wanted));
      unknown = static_cast<int>(i);
      out.push_back(1);
      continue;
    }
    user_check(d.is_symbolic() || d.word() >= 0, ErrorKind::InvalidArgument,
               "the shape {} has the negative size {}.", to_string(wanted), d.str());
    // 0 copies the size at the same position, unless the tensor is empty and 0 can be meant.
    if (d == Dim(0) && !same(from.numel(), Dim(0))) {
      user_check(i < from.size(), ErrorKind::InvalidArgument,
                 "the shape {} copies size {} of a tensor of shape {}, which has none.",
                 to_string(wanted), i, from.str());
      d = from[i];
    }
    out.push_back(d);
    known = known * d;
  }
  const Dim total = from.numel();
  if (unknown >= 0) {
    user_check(!(known == Dim(0)), ErrorKind::InvalidArgument,
               "the size -1 in {} is undetermined: the others multiply to 0.", to_string(wanted));
    out[static_cast<size_t>(unknown)] = floor_div(total, known);
    known = known * out[static_cast<size_t>(unknown)];
  }
  user_check(assume_same(known, total), ErrorKind::InvalidArgument,
             "a tensor of shape {} has {} elements and cannot take the shape {}.\nhint: The sizes "
             "must multiply to {}; one of them may be -1.",
             from.str(), total.str(), to_string(wanted), total.str());
  return out;
}

namespace infer {

Metas same_as_first(const Args& args) { return like(first_tensor(args)); }

Metas bool_like_first(const Args& args) {
  return TensorMeta{DType::Bool, first_tensor(args).shape(), false};
}

Metas real_like_first(const Args& args) {
  const Tensor& x = first_tensor(args);
  return TensorMeta{real_type_of(x.dtype()), x.shape(), false};
}

void check_shape(const Tensor& t, const char* argument, const Shape& wanted) {
  user_check(!t.defined() || same(t.shape(), wanted), ErrorKind::InvalidArgument,
             "{} has shape {}; it must be {}.", argument, to_string(t.dims()), wanted.str());
}

void check_dtype(const Tensor& t, const char* argument, DType wanted) {
  user_check(!t.defined() || t.dtype() == wanted, ErrorKind::InvalidType,
             "{} has dtype {}; it must be {}.\nhint: Cast it with {}.astype('{}').", argument,
             name_of(t.dtype()), name_of(wanted), argument, name_of(wanted));
}

void check_type(const Tensor& t, const char* argument, const TensorMeta& wanted) {
  check_shape(t, argument, wanted.shape);
  check_dtype(t, argument, wanted.dtype);
}

}  // namespace infer
}  // namespace oar
