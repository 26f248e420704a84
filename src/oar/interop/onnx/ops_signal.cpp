// Fourier transforms, windows, random numbers.
#include <numbers>

#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

// The last axis holds one real part, or a real and an imaginary part.
Tensor as_complex_numbers(const Tensor& x) {
  if (x.dim(-1) == Dim(2)) return as_complex(x);
  const Tensor real = squeeze(x, IntArgs({-1}));
  return complex(real, zeros_like(real));
}
// An axis cut or filled with zeros to a length.
Tensor of_length(const Tensor& x, int64_t axis, Dim length) {
  const Dim size = x.dim(axis);
  if (size == length) return x;
  const int64_t have = size.value(), want = length.value();
  if (want < have) return slice(x, {axis}, {0}, {want});
  std::vector<int64_t> pads(2 * static_cast<size_t>(x.rank()));
  pads.at(2 * static_cast<size_t>(axis) + 1) = want - have;
  return pad_constant(x, pads, 0.0);
}
Tensor first_half(const Tensor& x, int64_t axis) {
  return slice(x, {axis}, {0}, {x.dim(axis).value() / 2 + 1});
}

Values dft(const Call& c) {
  Tensor x = c.tensor(0);
  const int64_t rank = x.rank();
  int64_t axis = c.opset >= 20 ? (c.has(2) ? c.integers(2).at(0) : -2) : c.integer("axis", 1);
  axis = axis < 0 ? axis + rank : axis;
  const bool inverse = c.flag("inverse"), onesided = c.flag("onesided");
  if (c.has(1) && !(inverse && onesided)) x = of_length(x, axis, c.sizes(1).at(0));
  const DType dtype = x.dtype();
  Tensor z = as_complex_numbers(dtype == DType::Float16 ? cast(x, DType::Float32) : x);
  if (inverse && onesided) {
    const int64_t length = c.has(1) ? c.integers(1).at(0) : 2 * (x.dim(axis).value() - 1);
    return {unsqueeze(fft_c2r(z, {axis}, "backward", false, length), {-1})};
  }
  Tensor made = fft_c2c(z, {axis}, "backward", !inverse);
  if (onesided) made = first_half(made, axis);
  return {as_real(made)};
}

// [batch, steps, 1 or 2] as [batch, frames, bins, 2].
Values stft(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t hop = c.integers(1).at(0);
  const int64_t length = c.has(3) ? c.integers(3).at(0) : c.tensor(2).dim(0).value();
  const bool onesided = c.flag("onesided", true);
  const Tensor parts = unfold(x, 1, length, hop);  // [batch, frames, parts, length]
  Tensor frames = transpose(parts, {0, 1, 3, 2});
  if (c.has(2)) {
    Tensor window = c.tensor(2);
    const int64_t own = window.dim(0).value();
    if (own < length)
      window = pad_constant(window, {(length - own) / 2, length - own - (length - own) / 2}, 0.0);
    frames = frames * reshape(window, {1, 1, length, 1});
  }
  Tensor made = fft_c2c(as_complex_numbers(frames), {2}, "backward", true);
  if (onesided) made = first_half(made, 2);
  return {as_real(made)};
}

// a - b cos(2 pi i / n) + c cos(4 pi i / n)
Values window(const Call& c, double a, double b, double d) {
  const int64_t size = c.integers(0).at(0);
  if (size < 0 || size > int64_t{1} << 30) c.refuse("its size is impossible");
  const double n = static_cast<double>(size) - (c.flag("periodic", true) ? 0 : 1);
  std::vector<double> made;
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / n;
    made.push_back(a - b * std::cos(angle) + d * std::cos(2 * angle));
  }
  const DType dtype = dtype_of(c.integer("output_datatype", 1));
  return {Tensor::from_vector(made, Shape{size}, dtype)};
}
Values hann(const Call& c) { return window(c, 0.5, 0.5, 0); }
Values hamming(const Call& c) { return window(c, 25.0 / 46, 21.0 / 46, 0); }
Values blackman(const Call& c) { return window(c, 0.42, 0.5, 0.08); }

// Triangles over the bins of a spectrum, their corners evenly spaced in mel.
Values mel_weights(const Call& c) {
  const int64_t mels = c.integers(0).at(0), length = c.integers(1).at(0);
  const double rate = c.numbers(2).at(0), low = c.numbers(3).at(0), high = c.numbers(4).at(0);
  if (mels < 1 || length < 1 || mels > 1 << 20 || length > 1 << 24)
    c.refuse("its sizes are impossible");
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(mels + 2);
  std::vector<int64_t> corner;
  for (int64_t i = 0; i < mels + 2; ++i) {
    const double hertz =
        700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    corner.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  const int64_t bins = length / 2 + 1;
  std::vector<double> made(static_cast<size_t>(bins * mels));
  const auto put = [&](int64_t bin, int64_t m, double weight) {
    if (bin >= 0 && bin < bins) made[static_cast<size_t>(bin * mels + m)] = weight;
  };
  for (int64_t m = 0; m < mels; ++m) {
    const auto at = static_cast<size_t>(m);
    const int64_t first = corner[at], top = corner[at + 1], last = corner[at + 2];
    if (top == first) put(top, m, 1);
    for (int64_t i = first; i <= top && top > first; ++i)
      put(i, m, static_cast<double>(i - first) / static_cast<double>(top - first));
    for (int64_t i = top; i < last; ++i)
      put(i, m, static_cast<double>(last - i) / static_cast<double>(last - top));
  }
  return {Tensor::from_vector(made, Shape{bins, mels}, dtype_of(c.integer("output_datatype", 1)))};
}

// ---- random numbers ----------------------------------------------------------------------------

int64_t seed_of(const Call& c) {
  const auto seed = static_cast<int64_t>(c.number("seed", 0));
  return c.given("seed") ? seed * 2654435761 % 2147483647 + 1 : 0;
}
Tensor drawn(const Call& c, const Shape& shape, DType dtype, bool normal) {
  const Tensor made =
      normal
          ? gaussian(shape, c.number("mean", 0), c.number("scale", 1), seed_of(c), DType::Float32)
          : uniform(shape, DType::Float32, c.number("low", 0), c.number("high", 1), seed_of(c));
  return cast(made, dtype);
}
template <bool normal>
Values random_of_shape(const Call& c) {
  Shape shape;
  for (const int64_t d : c.list("shape")) shape.push_back(d);
  return {drawn(c, shape, dtype_of(c.integer("dtype", 1)), normal)};
}
template <bool normal>
Values random_like(const Call& c) {
  const Tensor& x = c.tensor(0);
  const DType dtype = c.given("dtype") ? dtype_of(c.integer("dtype", 1)) : x.dtype();
  return {drawn(c, x.shape(), dtype, normal)};
}
Values bernoulli_of(const Call& c) {
  const Tensor& x = c.tensor(0);
  const DType dtype = c.given("dtype") ? dtype_of(c.integer("dtype", 1)) : x.dtype();
  return {cast(bernoulli(cast(x, DType::Float32)), dtype)};
}
Values multinomial_of(const Call& c) {
  const Tensor weights = softmax(cast(c.tensor(0), DType::Float32), 1);
  return {cast(multinomial(weights, c.integer("sample_size", 1), true),
               dtype_of(c.integer("dtype", 6)))};
}

constexpr Converter kConverters[] = {
    {"DFT", dft},
    {"STFT", stft},
    {"HannWindow", hann},
    {"HammingWindow", hamming},
    {"BlackmanWindow", blackman},
    {"MelWeightMatrix", mel_weights},
    {"RandomNormal", random_of_shape<true>},
    {"RandomUniform", random_of_shape<false>},
    {"RandomNormalLike", random_like<true>},
    {"RandomUniformLike", random_like<false>},
    {"Bernoulli", bernoulli_of},
    {"Multinomial", multinomial_of},
};

}  // namespace

std::span<const Converter> signal_converters() { return kConverters; }

}  // namespace oar::onnx
