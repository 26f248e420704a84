// Tensors split into parts.
#include "oar/ops/gen/split.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

// Sizes as the user passed them, with -1 resolved from the rest.
Shape checked_sections(Dim size, Ints sections, int64_t axis) {
  Shape sizes{as_dims(sections)};
  Dim total = 0;
  int open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == Dim(-1)) {
      user_check(open < 0, ErrorKind::InvalidArgument,
                 "sections {} leave two sizes open; only one may be -1.", to_string(sections));
      open = static_cast<int>(i);
      continue;
    }
    user_check(sizes[i].is_symbolic() || sizes[i].word() >= 0, ErrorKind::InvalidArgument,
               "sections {} have the negative size {}.", to_string(sections), sizes[i].str());
    total = total + sizes[i];
  }
  const bool fits = open < 0 ? same(total, size) : !known_less(size, total);
  user_check(
      fits, ErrorKind::InvalidArgument,
      "sections {} add up to {}; axis {} of x has size {}.\nhint: One section may be -1 for what "
      "is left.",
      to_string(sections), total.str(), axis, size.str());
  if (open >= 0) sizes[static_cast<size_t>(open)] = size - total;
  return sizes;
}

Tensor range_of(const Tensor& x, int64_t axis, Dim start, Dim stop) {
  return slice_view(x, SliceIndex().skip(axis).range(start, stop));
}

Made sections_of(const Tensor& x, const Shape& sizes, int64_t axis) {
  Made parts;
  Dim start = 0;
  for (Dim size : sizes) {
    parts.push_back(range_of(x, axis, start, start + size));
    start = start + size;
  }
  return parts;
}

const OpDef split_sections_op = {
    .schema = "split_sections(Tensor(a) x, int[] sections, int axis = 0) -> Tensor(a)[]",
    .brief = "Pieces of the given sizes along an axis; one size may be -1. Views.",
    .decompose = [](const args::split_sections& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      return sections_of(a.x, checked_sections(a.x.dim(axis), a.sections, axis), axis);
    },
    .traits = Trait::Linear,
    .numpy =
        "np.split(x, np.cumsum([s if s >= 0 else x.shape[axis] + sum(-t for t in sections if t >= 0) "
        "for s in sections])[:-1], axis)",
    .samples =
        [] {
          return Samples()
              .add(t({6, 2}), IntVector{1, 2, 3})
              .add(t({2, 5}), IntVector{2, -1}, 1)
              .add(t({4}), IntVector{4})
              .add(t({0, 3}), IntVector{0, 0});
        },
};

constexpr int64_t kMostParts = 1 << 20;  // each is a tensor; more is a mistake

void check_parts(int64_t count, const char* argument) {
  user_check(count > 0 && count <= kMostParts, ErrorKind::InvalidArgument,
             "{} must be from 1 to {}, not {}.", argument, kMostParts, count);
}

// `count` parts of one size.
Made equal_parts(const Tensor& x, int64_t count, int64_t axis, const char* argument) {
  const Dim size = x.dim(axis);
  check_parts(count, argument);
  user_check(
      same(floor_mod(size, count), 0), ErrorKind::InvalidArgument,
      "axis {} of x has size {}, which {} equal parts do not fill.\nhint: Give the sizes as a "
      "list, or use tensor_split.",
      axis, size.str(), count);
  return sections_of(x, Shape(static_cast<size_t>(count), floor_div(size, count)), axis);
}

const OpDef split_op = {
    .schema = "split(Tensor(a) x, int[] num_or_sections, int axis = 0) -> Tensor(a)[]",
    .brief =
        "Equal parts along an axis, given their number; or, given a list, pieces of those sizes. Views.",
    .decompose = [](const args::split& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      if (a.num_or_sections.size() == 1)
        return equal_parts(a.x, Dim::from_word(a.num_or_sections[0]).value(), axis,
                           "num_or_sections");
      return sections_of(a.x, checked_sections(a.x.dim(axis), a.num_or_sections, axis), axis);
    },
    .traits = Trait::Linear,
    .numpy =
        "np.split(x, num_or_sections[0], axis) if len(num_or_sections) == 1 else "
        "np.split(x, np.cumsum(num_or_sections)[:-1], axis)",
    .samples =
        [] {
          return Samples()
              .add(t({6, 2}), IntVector{3})
              .add(t({2, 5}), IntVector{2, 3}, -1)
              .add(t({0, 3}), IntVector{2});
        },
    .onnx = "Split",
};

const OpDef chunk_op = {
    .schema = "chunk(Tensor(a) x, int chunks, int axis = 0) -> Tensor(a)[]",
    .brief = "Equal parts along an axis. Views.",
    .decompose = [](const args::chunk& a) -> Made {
      return equal_parts(a.x, a.chunks, normalise_axis(a.axis, a.x.rank()), "chunks");
    },
    .traits = Trait::Linear,
    .numpy = "np.split(x, chunks, axis)",
    .samples = [] { return Samples().add(t({6, 2}), 3).add(t({2, 4}), 2, -1).add(t({0, 3}), 2); },
    .python = "oar Tensor",
};

const OpDef tensor_split_at_op = {
    .schema = "tensor_split_at(Tensor(a) x, int[] indices, int axis = 0) -> Tensor(a)[]",
    .brief = "x cut before each index: x[:i], x[i:j], …, x[k:]. Views.",
    .decompose = [](const args::tensor_split_at& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      Made parts;
      Dim start = 0;
      for (size_t i = 0; i <= a.indices.size(); ++i) {
        const Dim stop = i < a.indices.size() ? Dim::from_word(a.indices[i]) : Dim(kOpenHigh);
        parts.push_back(range_of(a.x, axis, start, stop));
        start = stop;
      }
      return parts;
    },
    .traits = Trait::Linear,
    .numpy = "np.array_split(x, indices, axis)",
    .samples =
        [] {
          return Samples()
              .add(t({6, 2}), IntVector{2, 5})
              .add(t({2, 5}), IntVector{3}, -1)
              .add(t({4}), IntVector{2, 9});
        },
};

const OpDef tensor_split_op = {
    .schema = "tensor_split(Tensor(a) x, int[] num_or_indices, int axis = 0) -> Tensor(a)[]",
    .brief =
        "Nearly equal parts along an axis, given their number; or, given several indices, x cut in "
        "front of each. Views.",
    .decompose = [](const args::tensor_split& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      if (a.num_or_indices.size() != 1) return tensor_split_at(a.x, a.num_or_indices, axis);
      const int64_t count = Dim::from_word(a.num_or_indices[0]).value();
      check_parts(count, "num_or_indices");
      // The first (size mod count) parts are one longer: part i is the i-th rounding up.
      Shape sizes;
      for (int64_t i = 0; i < count; ++i)
        sizes.push_back(floor_div(a.x.dim(axis) + (count - 1 - i), count));
      return sections_of(a.x, sizes, axis);
    },
    .traits = Trait::Linear,
    .numpy =
        "np.array_split(x, num_or_indices[0] if len(num_or_indices) == 1 else num_or_indices, axis)",
    .samples =
        [] {
          return Samples()
              .add(t({7, 2}), IntVector{3})
              .add(t({2, 5}), IntVector{1, 3}, 1)
              .add(t({2}), IntVector{4});
        },
};

Made slices_along(const Tensor& x, int64_t axis) {
  Made parts;
  const int64_t count = specialised(x.dim(axis));
  user_check(count <= kMostParts, ErrorKind::InvalidArgument,
             "axis {} of a tensor of shape {} has more than {} slices.\nhint: Use split for longer "
             "pieces.",
             axis, to_string(x.dims()), kMostParts);
  for (int64_t i = 0; i < count; ++i) parts.push_back(slice_view(x, SliceIndex().skip(axis).at(i)));
  return parts;
}

const OpDef unbind_op = {
    .schema = "unbind(Tensor(a) input, int axis = 0) -> Tensor(a)[]",
    .brief = "The slices along an axis, without that axis. Views.",
    .decompose = [](const args::unbind& a) -> Made {
      return slices_along(a.input, normalise_axis(a.axis, a.input.rank()));
    },
    .traits = Trait::Linear,
    .numpy = "[np.take(input, i, axis) for i in range(input.shape[axis])]",
    .samples =
        [] { return Samples().add(t({3, 2})).add(t({2, 3, 2}), -1).add(t({2, 0})).add(t({3})); },
    .python = "oar Tensor",
};

const OpDef unstack_op = {
    .schema = "unstack(Tensor(a) x, int axis = 0, int? num = None) -> Tensor(a)[]",
    .brief = "The slices along an axis, without that axis: the reverse of stack. Views.",
    .decompose = [](const args::unstack& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      user_check(!a.num || same(a.x.dim(axis), *a.num), ErrorKind::InvalidArgument,
                 "num is {}; axis {} of x has size {}.", a.num.value_or(0), axis,
                 a.x.dim(axis).str());
      return slices_along(a.x, axis);
    },
    .traits = Trait::Linear,
    .numpy = "[np.take(x, i, axis) for i in range(x.shape[axis])]",
    .samples = [] { return Samples().add(t({3, 2})).add(t({2, 3}), 1, 3); },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(split, &split_sections_op, &split_op, &chunk_op, &tensor_split_at_op, &tensor_split_op,
           &unbind_op, &unstack_op)

}  // namespace oar
