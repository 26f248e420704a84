// Windows of images as columns, and columns added back to images.
#include "oar/backend/cpu/conv/im2col.h"

#include "oar/backend/cpu/loops/copy.h"

namespace oar::cpu {
namespace {

// Arguments from `first` on: kernel_sizes, strides, paddings [top, left, bottom, right], dilations.
ConvShape columns_shape(const KernelCall& call, int first, const oar_tensor& image) {
  const Ints kernel = call.arg(first).as_ints(), stride = call.arg(first + 1).as_ints(),
             padding = call.arg(first + 2).as_ints(), dilation = call.arg(first + 3).as_ints();
  ConvShape s{};
  s.batch = image.shape[0];
  s.groups = 1;
  s.channels = image.shape[1];
  const auto axis = [&](size_t i) {
    ConvAxis a{.size = image.shape[2 + i],
               .kernel = kernel[i],
               .stride = stride[i],
               .dilation = dilation[i],
               .before = padding[i]};
    a.out = (a.size + padding[i] + padding[i + 2] - a.dilation * (a.kernel - 1) - 1) / a.stride + 1;
    return a;
  };
  s.y = axis(0);
  s.x = axis(1);
  return s;
}

void unfold_images(KernelCall& call) {
  if (call.out().numel == 0) return;
  const ConvShape s = columns_shape(call, 1, call.in(0));
  const Packed x(call.in(0));
  visit_width(call.in(0), [&](auto word) {
    using Word = decltype(word);
    auto* out = static_cast<Word*>(call.out().data);
    parallel_for(0, s.batch * s.depth(), std::max<int64_t>(1, kGrain / s.pixels()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     im2col_row(s, x.data<Word>() + row / s.taps() * s.plane(),
                                Tap(s, row % s.taps()), 0, s.pixels(), out + row * s.pixels());
                   }
                 });
  });
}

void fold_images(KernelCall& call) {
  if (call.out().numel == 0) return;
  const ConvShape s = columns_shape(call, 2, call.out());
  visit_wide<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> columns(call.in(0));
    const Result<T> out(call.out());
    const int64_t work = std::max<int64_t>(1, s.taps() * s.pixels());
    parallel_for(
        0, s.batch * s.channels, std::max<int64_t>(1, kGrain / work),
        [&](int64_t begin, int64_t end) { col2im(s, columns.data(), begin, end, out.data()); });
    out.finish();
  });
}

}  // namespace

KernelList im2col_kernels() {
  static const oar_kernel list[] = {
      {"im2col", 1, "cpu:generic", nullptr, kernel_entry<unfold_images>},
      {"col2im", 1, "cpu:generic", nullptr, kernel_entry<fold_images>},
  };
  return list;
}

}  // namespace oar::cpu
