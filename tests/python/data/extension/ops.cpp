// Ops that test_cpp_extension.py compiles: Oar's own records, and Paddle's way of writing them.
#include <algorithm>
#include <cmath>

#include "oar/extension/extension.h"
#include "oar/ops/core/infer.h"
#include "paddle/extension.h"

// ---- Oar's records

namespace {

oar::OpDef soft_square() {
  using namespace oar;
  return {
      .schema = "ext_soft_square(Tensor x) -> Tensor",
      .brief = "x * x / (1 + x * x).",
      .infer = infer::same_as_first,
      .decompose = [](const Args& a) -> Made {
        const Tensor square = a[0].as_tensor() * a[0].as_tensor();
        return square / (square + 1);
      },
      .vjp = [](const VjpCall& v) -> Grads {
        const Tensor& x = v.args[0].as_tensor();
        const Tensor below = x * x + 1;
        return v.cotangents[0] * x * 2 / (below * below);
      },
      .saves = "x",
      .shard = "... -> ...",
      .traits = Trait::Elementwise | Trait::FloatMath,
      .dtypes = "float",
  };
}

void soft_square_cpu(oar::KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  for (int64_t i = 0; i < out.numel; ++i) {
    int64_t rest = i, from = 0, to = 0;
    for (int a = out.ndim - 1; a >= 0; --a) {
      from += rest % out.shape[a] * x.strides[a];
      to += rest % out.shape[a] * out.strides[a];
      rest /= out.shape[a];
    }
    const float v = static_cast<const float*>(x.data)[from];
    static_cast<float*>(out.data)[to] = v * v / (1 + v * v);
  }
}

const char* only_float32(const oar::KernelCall& call) {
  return call.dtype() == oar::DType::Float32 ? nullptr : "the kernel is for float32";
}

oar::OpDef cube() {
  using namespace oar;
  return {.schema = "ext_cube(Tensor x, float scale = 1.0) -> Tensor",
          .decompose = [](const Args& a) -> Made {
            const Tensor& x = a[0].as_tensor();
            return x * x * x * a[1].as_double();
          }};
}

}  // namespace

OAR_EXTENSION_OP(soft_square, soft_square_cpu, only_float32);
OAR_EXTENSION_OP(cube);

// ---- An op with first and second derivative

std::vector<std::vector<int64_t>> LikeTheFirst(const std::vector<int64_t>& first,
                                               const std::vector<int64_t>&) {
  return {first};
}

std::vector<paddle::Tensor> TanhForward(const paddle::Tensor& x) {
  PD_CHECK(x.is_cpu(), "x must be a CPU tensor.");
  auto out = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_TYPES(x.type(), "ext_tanh", ([&] {
                               for (int64_t i = 0; i < x.numel(); ++i)
                                 out.data<data_t>()[i] = std::tanh(x.data<data_t>()[i]);
                             }));
  return {out};
}
std::vector<paddle::Tensor> TanhBackward(const paddle::Tensor& out,
                                         const paddle::Tensor& grad_out) {
  return {grad_out * (1.0 - out * out)};
}
std::vector<paddle::Tensor> TanhDoubleBackward(const paddle::Tensor& out,
                                               const paddle::Tensor& grad_out,
                                               const paddle::Tensor& ddx) {
  return {ddx * grad_out * out * -2.0, ddx * (1.0 - out * out)};
}
std::vector<std::vector<int64_t>> TanhDoubleShape(const std::vector<int64_t>& out,
                                                  const std::vector<int64_t>& grad_out,
                                                  const std::vector<int64_t>&) {
  return {out, grad_out};
}
std::vector<paddle::DataType> TanhDoubleType(const paddle::DataType& out,
                                             const paddle::DataType& grad_out,
                                             const paddle::DataType&) {
  return {out, grad_out};
}

PD_BUILD_OP(ext_tanh).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(TanhForward));
PD_BUILD_GRAD_OP(ext_tanh)
    .Inputs({"Out", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(TanhBackward))
    .SetInferShapeFn(PD_INFER_SHAPE(LikeTheFirst));
PD_BUILD_DOUBLE_GRAD_OP(ext_tanh)
    .Inputs({"Out", paddle::Grad("Out"), paddle::Grad(paddle::Grad("X"))})
    .Outputs({paddle::New("Out"), paddle::Grad(paddle::Grad("Out"))})
    .SetKernelFn(PD_KERNEL(TanhDoubleBackward))
    .SetInferShapeFn(PD_INFER_SHAPE(TanhDoubleShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(TanhDoubleType));

// ---- Attributes, optional and listed inputs, several outputs

std::vector<paddle::Tensor> AffineForward(const paddle::Tensor& x,
                                          const paddle::optional<paddle::Tensor>& shift,
                                          float scale, const std::vector<int64_t>& powers,
                                          std::string mode, bool twice) {
  PD_CHECK(mode == "plain", "mode is '", mode, "'; only 'plain' is known, with ", powers.size(),
           " powers.");
  auto out = x * scale;
  if (shift) out = out + shift.get();
  for (const int64_t p : powers) out = out + x.pow(static_cast<double>(p));
  return {twice ? out * 2 : out};
}
std::vector<std::vector<int64_t>> AffineShape(const std::vector<int64_t>& x,
                                              const paddle::optional<std::vector<int64_t>>&) {
  return {x};
}
std::vector<paddle::DataType> AffineType(const paddle::DataType& x,
                                         const paddle::optional<paddle::DataType>&) {
  return {x};
}
PD_BUILD_OP(ext_affine)
    .Inputs({"X", paddle::Optional("Shift")})
    .Outputs({"Out"})
    .Attrs({"scale: float", "powers: std::vector<int64_t>", "mode: std::string", "twice: bool"})
    .SetKernelFn(PD_KERNEL(AffineForward))
    .SetInferShapeFn(PD_INFER_SHAPE(AffineShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(AffineType));

std::vector<paddle::Tensor> PileForward(const std::vector<paddle::Tensor>& xs, int64_t repeat) {
  std::vector<int64_t> shape = xs[0].shape();
  shape.insert(shape.begin(), static_cast<int64_t>(xs.size()) * repeat);
  auto out = paddle::empty(shape, xs[0].dtype(), xs[0].place());
  float* to = out.mutable_data<float>(xs[0].place());
  for (int64_t r = 0; r < repeat; ++r)
    for (const paddle::Tensor& x : xs) to = std::copy_n(x.data<float>(), x.size(), to);
  return {out};
}
std::vector<paddle::Tensor> PileBackward(const std::vector<paddle::Tensor>& xs,
                                         const paddle::Tensor& grad, int64_t repeat) {
  std::vector<paddle::Tensor> grads;
  for (size_t k = 0; k < xs.size(); ++k) {
    auto sum = paddle::zeros(xs[k].shape(), xs[k].dtype());
    for (int64_t r = 0; r < repeat; ++r)
      for (int64_t i = 0; i < xs[k].size(); ++i)
        sum.data<float>()[i] +=
            grad.data<float>()[(r * static_cast<int64_t>(xs.size()) + static_cast<int64_t>(k)) *
                                   xs[k].size() +
                               i];
    grads.push_back(sum);
  }
  return grads;
}
std::vector<std::vector<int64_t>> PileShape(const std::vector<std::vector<int64_t>>& xs,
                                            int64_t repeat) {
  std::vector<int64_t> shape = xs[0];
  shape.insert(shape.begin(), static_cast<int64_t>(xs.size()) * repeat);
  return {shape};
}
std::vector<paddle::DataType> PileType(const std::vector<paddle::DataType>& xs) { return {xs[0]}; }
PD_BUILD_OP(ext_pile)
    .Inputs({paddle::Vec("X")})
    .Outputs({"Out"})
    .Attrs({"repeat: int64_t"})
    .SetKernelFn(PD_KERNEL(PileForward))
    .SetInferShapeFn(PD_INFER_SHAPE(PileShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(PileType));
PD_BUILD_GRAD_OP(ext_pile)
    .Inputs({paddle::Vec("X"), paddle::Grad("Out")})
    .Outputs({paddle::Grad(paddle::Vec("X"))})
    .Attrs({"repeat: int64_t"})
    .SetKernelFn(PD_KERNEL(PileBackward));

// ---- In place

void ClampForward(paddle::Tensor& x, float low) {
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = std::max(x.data<float>()[i], low);
}
std::vector<paddle::Tensor> ClampBackward(const paddle::Tensor& out, const paddle::Tensor& grad,
                                          float low) {
  auto made = paddle::empty_like(out);
  for (int64_t i = 0; i < out.size(); ++i)
    made.data<float>()[i] = out.data<float>()[i] > low ? grad.data<float>()[i] : 0;
  return {made};
}
PD_BUILD_OP(ext_clamp)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"low: float"})
    .SetInplaceMap({{"X", "Out"}})
    .SetKernelFn(PD_KERNEL(ClampForward));
PD_BUILD_GRAD_OP(ext_clamp)
    .Inputs({"Out", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .Attrs({"low: float"})
    .SetKernelFn(PD_KERNEL(ClampBackward))
    .SetInferShapeFn(PD_INFER_SHAPE(LikeTheFirst));

// ---- Without inference: two operands, eager only. And what disagrees with its inference.

std::vector<paddle::Tensor> SmallerForward(const paddle::Tensor& x, const paddle::Tensor& y) {
  return {x.data<float>()[0] < y.data<float>()[0] ? x : y};
}
PD_BUILD_OP(ext_smaller).Inputs({"X", "Y"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(SmallerForward));

std::vector<paddle::Tensor> WrongForward(const paddle::Tensor& x) {
  return {paddle::zeros({x.numel() + 1}, x.dtype())};
}
PD_BUILD_OP(ext_wrong).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(WrongForward));
