// Transforms of the lines of a contiguous tensor along one axis. Complex numbers are pairs of T. Results are multiplied by `factor`.
#pragma once

#include "oar/backend/cpu/fft/columns.h"

namespace oar::cpu::fft {

// out may be in.
template <class T>
void complex_to_complex(const T* in, T* out, const Lines& lines, bool inverse, T factor);

// From n real numbers to n / 2 + 1 complex ones, or to all n.
template <class T>
void real_to_complex(const T* in, const Lines& from, T* out, const Lines& to, bool inverse,
                     T factor);

// From n / 2 + 1 complex numbers to n real ones.
template <class T>
void complex_to_real(const T* in, const Lines& from, T* out, const Lines& to, bool inverse,
                     T factor);

}  // namespace oar::cpu::fft
