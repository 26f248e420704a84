// Windows of images as columns of a matrix, and back: for nn.functional.unfold and fold.
#include "oar/ops/gen/im2col.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/window.h"
#include "oar/ops/families/window_batch.h"

namespace oar {
namespace {

struct Windows {
  Ints kernel, stride;
  Ints padding;  // top, left, bottom, right
  Ints dilation;
};

// Positions of the window along height and width.
std::array<Dim, 2> places(const Windows& w, Dim height, Dim width) {
  check_windows(w.kernel, 2, "kernel_sizes");
  check_windows(w.stride, 2, "strides");
  check_windows(w.dilation, 2, "dilations");
  user_check(w.padding.size() == 4, ErrorKind::InvalidArgument, "paddings {} must have 4 numbers.",
             to_string(w.padding));
  check_padding(as_dims(w.padding), 2);
  for (const int64_t word : w.padding)
    user_check(!Dim::from_word(word).is_symbolic(), ErrorKind::Unsupported,
               "paddings must be numbers, not open sizes.\nhint: Pad the images before.");
  return {window_count(height, w.kernel[0], w.stride[0], w.padding[0] + w.padding[2], w.dilation[0],
                       false, 0, 2),
          window_count(width, w.kernel[1], w.stride[1], w.padding[1] + w.padding[3], w.dilation[1],
                       false, 1, 2)};
}

// [n, c, h, w] and [n, (c window), places].
void plan_columns(ShardPlan& plan, PlanTensor& image, PlanTensor& columns, Ints kernel) {
  plan.pass(image, 0, columns, 0);
  const int channels = plan.add(image.shape[1]);
  plan.put(image, 1, channels);
  plan.put(columns, 1, channels, kernel[0] * kernel[1]);
}

const OpDef im2col_op = {
    .schema =
        "im2col(Tensor x, int[] kernel_sizes, int[] strides, int[] paddings, int[] dilations) -> Tensor",
    .brief =
        "Images [n, c, h, w] as [n, c * kernel height * kernel width, windows]: column i holds the pixels of window i. "
        "paddings is [top, left, bottom, right].",
    .infer = [](const args::im2col& a) -> Metas {
      user_check(a.x.rank() == 4, ErrorKind::InvalidArgument,
                 "x must have 4 axes (batch, channels, height, width), but its shape is {}.",
                 to_string(a.x.dims()));
      const auto [rows, columns] =
          places({a.kernel_sizes, a.strides, a.paddings, a.dilations}, a.x.dim(2), a.x.dim(3));
      return TensorMeta{
          a.x.dtype(),
          Shape{a.x.dim(0), a.x.dim(1) * (a.kernel_sizes[0] * a.kernel_sizes[1]), rows * columns}};
    },
    .vjp = [](const vjp::im2col& v) -> Grads {
      return col2im(v.grad, v.x.dims().subspan(2), v.kernel_sizes, v.strides, v.paddings,
                    v.dilations);
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::im2col a(c.args);
      return unfold_batch(
          im2col(fold_batch(c, 0), a.kernel_sizes, a.strides, a.paddings, a.dilations), c.size);
    },
    .plan =
        [](const PlanCall& c) {
          const args::im2col a(c.args);
          plan_columns(c.plan, c.plan.operands[0], c.plan.results[0], a.kernel_sizes);
        },
    .traits = Trait::Linear,
    .numpy =
        "(lambda k, s, p, d: np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (p[0], p[2]), (p[1], "
        "p[3]))), (d[0] * (k[0] - 1) + 1, d[1] * (k[1] - 1) + 1), (2, 3))[:, :, ::s[0], ::s[1], ::d[0], ::d[1]]"
        ".transpose(0, 1, 4, 5, 2, 3))(kernel_sizes, strides, paddings, dilations)"
        ".reshape(x.shape[0], x.shape[1] * kernel_sizes[0] * kernel_sizes[1], -1 if x.shape[0] else int(np.prod([(n + "
        "a + b - d * (k - 1) - 1) // s + 1 for n, a, b, d, k, s in zip(x.shape[2:], paddings[:2], paddings[2:], "
        "dilations, kernel_sizes, strides)])))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 4, 5}), IntVector{2, 3}, IntVector{1, 1}, IntVector{0, 0, 0, 0},
                   IntVector{1, 1})
              .add(t({1, 2, 5, 4}), IntVector{2, 2}, IntVector{2, 1}, IntVector{1, 0, 2, 1},
                   IntVector{1, 2})
              .add(t({0, 2, 3, 3}), IntVector{2, 2}, IntVector{1, 1}, IntVector{0, 0, 0, 0},
                   IntVector{1, 1});
        },
};

const OpDef col2im_op = {
    .schema =
        "col2im(Tensor x, shape output_sizes, int[] kernel_sizes, int[] strides, int[] paddings, int[] dilations) -> "
        "Tensor",
    .brief =
        "The reverse of im2col: images of output_sizes to whose pixels the windows, columns of [n, c * kernel height * "
        "kernel width, windows], are added.",
    .infer = [](const args::col2im& a) -> Metas {
      user_check(a.x.rank() == 3, ErrorKind::InvalidArgument,
                 "x must have 3 axes (batch, channels of a window, windows), but its shape is {}.",
                 to_string(a.x.dims()));
      user_check(a.output_sizes.size() == 2, ErrorKind::InvalidArgument,
                 "output_sizes {} must have two numbers.", to_string(a.output_sizes));
      const auto [rows, columns] = places({a.kernel_sizes, a.strides, a.paddings, a.dilations},
                                          a.output_sizes[0], a.output_sizes[1]);
      const Dim taps = a.kernel_sizes[0] * a.kernel_sizes[1];
      user_check(
          same(rows * columns, a.x.dim(2)) && same(floor_mod(a.x.dim(1), taps), 0),
          ErrorKind::InvalidArgument,
          "x has shape {}; an image of {} has {} windows, each with a multiple of {} numbers.",
          to_string(a.x.dims()), to_string(a.output_sizes), (rows * columns).str(), taps.str());
      return TensorMeta{a.x.dtype(), Shape{a.x.dim(0), floor_div(a.x.dim(1), taps),
                                           a.output_sizes[0], a.output_sizes[1]}};
    },
    .vjp = [](const vjp::col2im& v) -> Grads {
      return im2col(v.grad, v.kernel_sizes, v.strides, v.paddings, v.dilations);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::col2im a(c.args);
      return unfold_batch(col2im(fold_batch(c, 0), a.output_sizes, a.kernel_sizes, a.strides,
                                 a.paddings, a.dilations),
                          c.size);
    },
    .plan =
        [](const PlanCall& c) {
          const args::col2im a(c.args);
          plan_columns(c.plan, c.plan.results[0], c.plan.operands[0], a.kernel_sizes);
        },
    .traits = Trait::Linear,
    .dtypes = "int float complex",
    .numpy =
        "(lambda k, s, p, d, o: (lambda c, z, h: ([z.__setitem__(at, z[at] + c[:, :, i, j]) for i in range(k[0]) for j "
        "in range(k[1]) for at in [(slice(None), slice(None), slice(i * d[0], i * d[0] + s[0] * h[0], s[0]), slice(j * "
        "d[1], j * d[1] + s[1] * h[1], s[1]))]], z[:, :, p[0]:p[0] + o[0], p[1]:p[1] + o[1]])[1])(x.reshape(x.shape[0], "
        "x.shape[1] // (k[0] * k[1]), k[0], k[1], *[(n + a + b - e * (m - 1) - 1) // t + 1 for n, a, b, e, m, t in "
        "zip(o, p[:2], p[2:], d, k, s)]), np.zeros((x.shape[0], x.shape[1] // (k[0] * k[1]), o[0] + p[0] + p[2] + s[0], "
        "o[1] + p[1] + p[3] + s[1]), x.dtype), [(n + a + b - e * (m - 1) - 1) // t + 1 for n, a, b, e, m, t in zip(o, "
        "p[:2], p[2:], d, k, s)]))(kernel_sizes, strides, paddings, dilations, output_sizes)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 12, 9}), IntVector{4, 5}, IntVector{2, 3}, IntVector{1, 1},
                   IntVector{0, 0, 0, 0}, IntVector{1, 1})
              .add(t({1, 8, 12}), IntVector{5, 4}, IntVector{2, 2}, IntVector{2, 1},
                   IntVector{1, 0, 2, 1}, IntVector{1, 2})
              .add(t({0, 4, 4}), IntVector{3, 3}, IntVector{2, 2}, IntVector{1, 1},
                   IntVector{0, 0, 0, 0}, IntVector{1, 1});
        },
};

}  // namespace

OAR_FAMILY(im2col, &im2col_op, &col2im_op)

}  // namespace oar
