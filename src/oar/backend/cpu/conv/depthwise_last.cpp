#include "oar/backend/cpu/conv/depthwise_last.h"

#include "oar/backend/cpu/loops/compact.h"
#include "oar/backend/cpu/rows/channel_table.h"
#include "oar/base/parallel.h"

namespace oar::cpu {

// Arguments: x, grad, weight_shape, stride, padding, dilation, groups, channels_last.
const char* refuse_depthwise_weight_grad(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  const oar_tensor &x = call.in(0), &grad = call.in(1), &out = call.out();
  if (call.dtype() != DType::Float32 && call.dtype() != DType::Float64) return "not wide floats";
  if (x.ndim != 4 || !call.arg(7).as_bool()) return "the channels are not last";
  if (call.arg(6).as_int() != x.shape[3] || out.shape[0] != x.shape[3] || x.shape[3] == 1)
    return "channels share kernels";
  if (!is_contiguous(x) || !is_contiguous(grad) || !is_contiguous(out)) return "not dense";
  return nullptr;
}

namespace {

DepthwiseShape shape_of(const KernelCall& call) {
  const oar_tensor &x = call.in(0), &grad = call.in(1), &out = call.out();
  const Ints stride = call.arg(3).as_ints(), padding = call.arg(4).as_ints();
  const Ints dilation = call.arg(5).as_ints();
  return {x.shape[1],
          x.shape[2],
          grad.shape[1],
          grad.shape[2],
          out.shape[2],
          out.shape[3],
          x.shape[3],
          {stride[0], stride[1]},
          {padding[0], padding[2]},
          {dilation[0], dilation[1]}};
}

}  // namespace

// Images are cut into parts by their number alone; each part has its own sums.
void depthwise_weight_grad_last(KernelCall& call) {
  const DepthwiseShape s = shape_of(call);
  const int64_t batch = call.in(0).shape[0], taps = s.kernel_height * s.kernel_width;
  const int64_t size = taps * s.channels, parts = std::clamp<int64_t>(batch, 1, 16);
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      const Scratch<T> sums(parts * size);
      std::fill_n(sums.data(), parts * size, T(0));
      const auto *x = static_cast<const T*>(call.in(0).data),
                 *grad = static_cast<const T*>(call.in(1).data);
      parallel_chunks(parts, [&](int64_t part) {
        for (int64_t n = part * batch / parts; n < (part + 1) * batch / parts; ++n)
          channel_table<T>().depthwise_weight_grad(
              s, x + n * s.height * s.width * s.channels,
              grad + n * s.out_height * s.out_width * s.channels, sums.data() + part * size);
      });
      auto* out = static_cast<T*>(call.out().data);
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t c = 0; c < s.channels; ++c) {
          T sum = 0;
          for (int64_t part = 0; part < parts; ++part)
            sum += sums[part * size + tap * s.channels + c];
          out[c * taps + tap] = sum;
        }
    }
  });
}

}  // namespace oar::cpu
