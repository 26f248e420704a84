// Convolution and its two derivatives as products of matrices. Columns are created panel by panel while a
// product packs its operand, so that they never exist as a whole.
#include <optional>

#include "oar/backend/cpu/conv/channels.h"
#include "oar/backend/cpu/conv/conv_narrow.h"
#include "oar/backend/cpu/conv/conv_shape.h"
#include "oar/backend/cpu/conv/conv_tiles.h"
#include "oar/backend/cpu/conv/depthwise.h"
#include "oar/backend/cpu/conv/depthwise_last.h"
#include "oar/backend/cpu/gemm/pack.h"

namespace oar::cpu {
namespace {

// out (out_channels x pixels) = weight (out_channels x depth) · columns of the image, or added to out.
template <class T>
void times_columns(const ConvShape& s, const T* weight, const T* image, T* out, bool add) {
  const Matrix<const T> a{weight, s.depth(), 1};
  const Matrix<T> c{out, s.pixels(), 1};
  if (s.is_pointwise())
    return gemm<T>(s.out_channels, s.pixels(), s.depth(), a, {image, s.pixels(), 1}, c, add);
  if constexpr (std::is_floating_point_v<T>) {
    gemm_panels<T>(
        s.out_channels, s.pixels(), s.depth(), a,
        [&](const Panels<T>& panels) {
          T line[kMaxPanelColumns];
          std::fill(line + panels.columns, line + panels.padded(), T(0));
          for (int64_t r = 0; r < panels.rows; ++r) {
            const int64_t row = panels.first_row + r;
            im2col_row(s, image + row / s.taps() * s.plane(), Tap(s, row % s.taps()),
                       panels.first_column, panels.columns, line);
            panels.store_row(r, line);
          }
        },
        c, add);
  } else {
    Scratch<T> columns(s.depth() * s.pixels());
    im2col(s, image, columns.data());
    gemm<T>(s.out_channels, s.pixels(), s.depth(), a, {columns.data(), s.pixels(), 1}, c, add);
  }
}

// No bias if it is null.
template <class T>
void forward(const ConvShape& s, const T* x, const T* weight, const T* bias, T* out) {
  if (is_depthwise(s)) return depthwise_forward(s, x, weight, bias, out);
  if constexpr (std::is_floating_point_v<T>)
    if (is_narrow(s)) return narrow_forward(s, x, weight, bias, out);
  for_each_group(s, [&](int64_t n, int64_t g) {
    const int64_t index = n * s.groups + g;
    T* to = out + index * s.out_channels * s.pixels();
    if (bias)
      for (int64_t o = 0; o < s.out_channels; ++o)
        std::fill_n(to + o * s.pixels(), s.pixels(), bias[g * s.out_channels + o]);
    times_columns(s, weight + g * s.out_channels * s.depth(), x + index * s.channels * s.plane(),
                  to, bias != nullptr);
  });
}

// weight[g][o][c][taps] as [g][c][o][taps backwards]: the kernel of the gradient.
template <class T>
void turn_kernel(const ConvShape& s, const T* weight, T* turned) {
  for (int64_t g = 0; g < s.groups; ++g)
    for (int64_t o = 0; o < s.out_channels; ++o)
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* from = weight + ((g * s.out_channels + o) * s.channels + c) * s.taps();
        T* to = turned + ((g * s.channels + c) * s.out_channels + o) * s.taps();
        std::reverse_copy(from, from + s.taps(), to);
      }
}

template <class T>
void input_gradient(const ConvShape& s, const T* weight, const T* grad, T* out) {
  const bool turns = !s.has_steps() && (!is_depthwise(s) || s.out_channels == 1);
  if (is_depthwise(s) && !turns) return depthwise_input_gradient(s, weight, grad, out);
  if (turns) {
    Scratch<T> turned(s.groups * s.out_channels * s.depth());
    turn_kernel(s, weight, turned.data());
    return forward<T>(reversed(s), grad, turned.data(), nullptr, out);
  }
  for_each_group(s, [&](int64_t n, int64_t g) {
    const int64_t index = n * s.groups + g;
    Scratch<T> columns(s.depth() * s.pixels());
    gemm<T>(s.depth(), s.pixels(), s.out_channels,
            {weight + g * s.out_channels * s.depth(), 1, s.depth()},
            {grad + index * s.out_channels * s.pixels(), s.pixels(), 1},
            {columns.data(), s.pixels(), 1});
    T* image = out + index * s.channels * s.plane();
    parallel_for(0, s.channels,
                 std::max<int64_t>(1, kGrain / std::max<int64_t>(1, s.taps() * s.pixels())),
                 [&](int64_t begin, int64_t end) { col2im(s, columns.data(), begin, end, image); });
  });
}

// A part of the transposed columns: rows are pixels, columns are positions of the kernel.
template <class T>
void pack_transposed_columns(const ConvShape& s, const T* image, const Panels<T>& panels) {
  constexpr int64_t kLines = 16, kRows = kMaxPanelRows;
  T lines[kLines * kRows];
  for (int64_t column = 0; column < panels.padded(); column += panels.width) {
    const int64_t width = panels.width_at(column);
    for (int64_t j = 0; j < width; j += kLines) {
      const int64_t count = std::min(kLines, width - j);
      for (int64_t l = 0; l < count; ++l) {
        T* line = lines + l * kRows;
        const int64_t place = column + j + l;
        if (place >= panels.columns) {
          std::fill(line, line + panels.rows, T(0));
          continue;
        }
        const int64_t row = panels.first_column + place;
        im2col_row(s, image + row / s.taps() * s.plane(), Tap(s, row % s.taps()), panels.first_row,
                   panels.rows, line);
      }
      transpose_into(lines, kRows, count, panels.rows, panels.panel(column) + j, width);
    }
  }
}

// out (out_channels x depth) += grad (out_channels x pixels) · columns transposed.
template <class T>
void add_weight_gradient(const ConvShape& s, const T* image, const T* grad, T* out) {
  const Matrix<const T> a{grad, s.pixels(), 1};
  const Matrix<T> c{out, s.depth(), 1};
  if (s.is_pointwise())
    return gemm<T>(s.out_channels, s.depth(), s.pixels(), a, {image, 1, s.pixels()}, c, true);
  if constexpr (std::is_floating_point_v<T>) {
    gemm_panels<T>(
        s.out_channels, s.depth(), s.pixels(), a,
        [&](const Panels<T>& panels) { pack_transposed_columns(s, image, panels); }, c, true);
  } else {
    Scratch<T> columns(s.depth() * s.pixels());
    im2col(s, image, columns.data());
    gemm<T>(s.out_channels, s.depth(), s.pixels(), a, {columns.data(), 1, s.pixels()}, c, true);
  }
}

// The batch is cut into parts that depend on the sizes only; their sums are added in order.
template <class T>
void weight_gradient(const ConvShape& s, const T* x, const T* grad, T* out) {
  if (is_depthwise(s)) return depthwise_weight_gradient(s, x, grad, out);
  const int64_t size = s.groups * s.out_channels * s.depth();
  const int64_t parts = size > (1 << 18) ? 1 : std::clamp<int64_t>(s.batch, 1, 8);
  Scratch<T> partial(parts * size);
  std::fill(partial.data(), partial.data() + parts * size, T(0));
  const auto part = [&](int64_t index) {
    const int64_t p = index / s.groups, g = index % s.groups;
    for (int64_t n = p * s.batch / parts; n < (p + 1) * s.batch / parts; ++n)
      add_weight_gradient(s, x + (n * s.groups + g) * s.channels * s.plane(),
                          grad + (n * s.groups + g) * s.out_channels * s.pixels(),
                          partial.data() + p * size + g * s.out_channels * s.depth());
  };
  if (parts * s.groups == 1)
    part(0);
  else
    parallel_chunks(parts * s.groups, part);
  parallel_for(0, size, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T sum = partial[i];
      for (int64_t p = 1; p < parts; ++p) sum = plus(sum, partial[p * size + i]);
      out[i] = sum;
    }
  });
}

// Runs f(left, right, out) with compact operands in the type of sums.
template <class F>
void with_operands(const oar_tensor& left, const oar_tensor& right, const oar_tensor& out, F f) {
  if (out.numel == 0) return;
  visit_wide<kNumbers>(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> a(left), b(right);
    const Result<T> result(out);
    f(tag, a.data(), b.data(), result.data());
    result.finish();
  });
}

void conv(KernelCall& call) {
  const bool last = call.arg(7).as_bool();
  const ChannelsFirst x(call.in(0), last), out(call.out(), last);
  const ConvShape s = conv_shape(call, 3, x.get(), call.in(1), out.get());
  with_operands(x.get(), call.in(1), out.get(), [&](auto tag, auto* image, auto* weight, auto* to) {
    std::optional<Compact<typename decltype(tag)::type>> bias;
    if (call.has(2)) bias.emplace(call.in(2));
    forward(s, image, weight, bias ? bias->data() : nullptr, to);
  });
}

void conv_input_grad(KernelCall& call) {
  const bool last = call.arg(7).as_bool();
  const ChannelsFirst grad(call.in(1), last), out(call.out(), last);
  const ConvShape s = conv_shape(call, 3, out.get(), call.in(0), grad.get());
  with_operands(call.in(0), grad.get(), out.get(),
                [&](auto, auto* weight, auto* g, auto* to) { input_gradient(s, weight, g, to); });
}

void conv_weight_grad(KernelCall& call) {
  const bool last = call.arg(7).as_bool();
  const ChannelsFirst x(call.in(0), last), grad(call.in(1), last);
  const ConvShape s = conv_shape(call, 3, x.get(), call.out(), grad.get());
  with_operands(x.get(), grad.get(), call.out(),
                [&](auto, auto* image, auto* g, auto* to) { weight_gradient(s, image, g, to); });
}

const char* real_floats(const oar_kernel_call* call) {
  return is_floating(static_cast<const KernelCall*>(call)->dtype())
             ? nullptr
             : "integers and complex numbers have their columns written out";
}

}  // namespace

KernelList conv_kernels() {
  static const oar_kernel list[] = {
      {"conv", 1, "cpu:tiles", tiles_refuse_conv, kernel_entry<conv_on_tiles>},
      {"conv", 1, "cpu:gemm", real_floats, kernel_entry<conv>},
      {"conv", 1, "cpu:generic", nullptr, kernel_entry<conv>},
      {"conv_input_grad", 1, "cpu:tiles", tiles_refuse_conv_input_grad,
       kernel_entry<conv_input_grad_on_tiles>},
      {"conv_input_grad", 1, "cpu:gemm", real_floats, kernel_entry<conv_input_grad>},
      {"conv_input_grad", 1, "cpu:generic", nullptr, kernel_entry<conv_input_grad>},
      {"conv_weight_grad", 1, "cpu:tiles", tiles_refuse_conv_weight_grad,
       training_entry<conv_weight_grad_on_tiles>},
      {"conv_weight_grad", 1, "cpu:channels", refuse_depthwise_weight_grad,
       training_entry<depthwise_weight_grad_last>},
      {"conv_weight_grad", 1, "cpu:gemm", real_floats, training_entry<conv_weight_grad>},
      {"conv_weight_grad", 1, "cpu:generic", nullptr, training_entry<conv_weight_grad>},
  };
  return list;
}

}  // namespace oar::cpu
