// Transforms of n rows of packets: as many transforms at once as a row has lanes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "oar/backend/cpu/fft/packet.h"

namespace oar::cpu::fft {

template <class T>
class Passes {
 public:
  explicit Passes(int64_t n);

  int64_t size() const { return n_; }
  // Rows that each of the two buffers of `run` has: n, or more if n has a large prime factor.
  int64_t rows() const { return inner_ ? inner_->rows() : n_; }
  size_t bytes() const;

  // The forward transform, without a factor, of the n rows in `a`, each of `width` packets. Both buffers are overwritten; returns
  // the one that holds the result.
  Packet<T>* run(Packet<T>* a, Packet<T>* b, int64_t width) const;
  // The same of rows of pairs in memory, `stride` pairs apart.
  Packet<T>* run_from(const T* in, int64_t stride, bool inverse, Packet<T>* a, Packet<T>* b,
                      int64_t width) const;
  // From rows of kLanes pairs to such rows, multiplied by `factor`. out may be in.
  void run_columns(const T* in, T* out, int64_t stride, bool inverse, T factor, Packet<T>* a,
                   Packet<T>* b) const;

 private:
  // Where the pairs are that the first step reads or the last one writes.
  struct Pairs {
    const T* in;
    T* out;
    int64_t stride;  // of a row, in words
    T factor;
  };
  // One step of Stockham's algorithm: y[q + s (radix p + k)] = w^(p k) * sum over j of x[q + s (p + m j)] e^(-2 pi i j k / radix),
  // where w = e^(-2 pi i / (radix m)).
  using Step = void (*)(const Packet<T>* x, Packet<T>* y, int64_t m, int64_t s, const T* roots,
                        int64_t radix, const Pairs& pairs);
  struct Pass {
    Step step;
    // Steps that read or write pairs, forward and inverse, or null if this radix does not have them.
    Step from_pairs[2], to_pairs[2];
    int64_t radix, m;
    size_t roots;  // where they start in roots_
  };
  template <int R>
  static Pass pass_of(bool last);
  template <class Source, class Sink, int R, bool kLast>
  static void step_as(const Packet<T>* x, Packet<T>* y, int64_t m, int64_t s, const T* roots,
                      int64_t radix, const Pairs& pairs);
  static void step_any(const Packet<T>* x, Packet<T>* y, int64_t m, int64_t s, const T* roots,
                       int64_t radix, const Pairs& pairs);
  void add_pass(int64_t radix, int64_t m);
  // The passes first ... last - 1; exchanges the buffers so that `a` has the result.
  void run_passes(size_t first, size_t last, Packet<T>*& a, Packet<T>*& b, int64_t& s) const;
  void prepare_chirp();
  Packet<T>* run_chirp(Packet<T>* a, Packet<T>* b, int64_t width) const;

  int64_t n_;
  std::vector<Pass> passes_;
  std::vector<T> roots_;
  // Bluestein: a transform of any length as a convolution, of a length that has small factors.
  std::unique_ptr<Passes> inner_;
  std::vector<T> chirp_, spectrum_;
};

extern template class Passes<float>;
extern template class Passes<double>;

// The largest prime that has a pass of its own.
inline constexpr int64_t kLargestRadix = 61;
bool has_large_prime(int64_t n);
// A length of at least n with small factors, a multiple of the lanes of a packet if n is long enough.
int64_t convenient_length(int64_t n);

// e^(-i pi k² / n) for k < n, and the transform of its conjugate over `length` elements, divided by `length`: as pairs.
template <class T>
void chirp_of(int64_t n, int64_t length, std::vector<T>& chirp, std::vector<T>& spectrum);

}  // namespace oar::cpu::fft
