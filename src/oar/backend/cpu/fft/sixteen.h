// Many contiguous lines of sixteen numbers, a length of which a call for each line or group would take longer than the work.
#pragma once

#include <cstdint>

namespace oar::cpu::fft {

// out may be in. Real and imaginary parts change places if `inverse`; the result is multiplied by `factor`.
template <class T>
void complex_sixteen(const T* in, T* out, int64_t lines, bool inverse, T factor);
// Sixteen real numbers of each line become nine complex ones, or their conjugates.
template <class T>
void real_sixteen(const T* in, T* out, int64_t lines, bool conj, T factor);

}  // namespace oar::cpu::fft
