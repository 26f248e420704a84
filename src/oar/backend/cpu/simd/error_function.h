// The error function and its inverse.
#pragma once

#include "oar/backend/cpu/simd/logarithms.h"

namespace oar::cpu::functions {
namespace {

// Beyond 1 as 1 - e^p(|x|), p a polynomial.
OAR_SIMD_INLINE float erf(float x) {
  const float size = magnitude(x), z = x * x;
  const float near[] = {0.1283791659f,   -0.3761262714f,    0.1128360017f, -0.02685444424f,
                        0.005189534593f, -0.0008020834299f, 7.88909551e-5f};
  const float far[] = {0.000131734911f, -1.129308106f,    -0.6337628768f,   -0.1078279725f,
                       0.02483317726f,  -0.004065716841f, 0.0004136472867f, -1.939662508e-5f};
  const float tail = 1 - normal_exp(polynomial(size > 4.0f ? 4.0f : size, far));
  return size < 1 ? fma(x, polynomial(z, near), x) : with_sign(tail, x);
}
OAR_SIMD_INLINE double erf(double x) { return __builtin_erf(x); }

// Of w = -log(1 - x^2), which is small in the middle and grows slowly towards the ends.
OAR_SIMD_INLINE float erfinv(float x) {
  const float size = magnitude(x);
  const float w = -joined(logarithm_of_normal((1 - size) * (1 + size)));
  const float middle[] = {0.8862269189f,     0.2320138798f,   0.0115482792f,   -0.002333436945f,
                          -0.0001284558084f, 4.517934692e-5f, 3.757692465e-6f, -1.928519602e-6f,
                          2.155677835e-7f,   -8.532991629e-9f};
  const float ends[] = {2.832976924f,     1.001673753f,     0.009438589764f,
                        -0.007617744177f, 0.005740376138f,  -0.003689556903f,
                        0.001352576592f,  0.0001169031576f, -0.0002079661974f};
  const float near = polynomial(w, middle), far = polynomial(square_root(w) - 3, ends);
  const float made = x * (w < 5 ? near : far);
  const float edge = size == 1 ? with_sign(kInfinity<float>, x) : kNan<float>;
  return size < 1 ? made : edge;
}

}  // namespace
}  // namespace oar::cpu::functions
