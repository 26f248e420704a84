#include <algorithm>

#include "oar/backend/cpu/fft/columns.h"
#include "oar/tensor/allocator.h"

namespace oar::cpu::fft {
namespace {

// Some lines, at most one for each lane, and the lanes of packets.
template <class T>
class Exchange {
 public:
  Exchange(const Lines& lines, int64_t first, int64_t count) : lines_(lines), count_(count) {
    for (int64_t lane = 0; lane < count; ++lane) start_[lane] = lines.offset(first + lane);
    side_by_side_ = count == kLanes && start_[kLanes - 1] - start_[0] == kLanes - 1;
  }
  bool side_by_side() const { return side_by_side_; }
  int64_t start() const { return start_[0]; }

  // Numbers of so many parts: 2 of complex lines, 1 of real ones. Part i of lane l of a row is at i * kLanes + l of `to`.
  template <int kParts>
  void load(const T* in, T* to, int64_t n) const {
    int64_t row = 0;
    if (whole_lines()) {
      constexpr int64_t kBlock = kLanes / kParts;
      for (; row + kBlock <= n; row += kBlock)
        transpose_words(in + kParts * (start_[0] + row), kParts * lines_.length, to + row * kRow,
                        kRow / kParts);
    } else if (side_by_side_) {
      for (; row < n; ++row) {
        const T* from = in + kParts * (start_[0] + row * lines_.inner);
        for (int part = 0; part < kParts; ++part)
          for (int64_t lane = 0; lane < kLanes; ++lane)
            to[row * kRow + part * kLanes + lane] = from[kParts * lane + part];
      }
    }
    for (; row < n; ++row)
      for (int part = 0; part < kParts; ++part) {
        T* lanes = to + row * kRow + part * kLanes;
        for (int64_t lane = 0; lane < kLanes; ++lane)
          lanes[lane] =
              lane < count_ ? in[kParts * (start_[lane] + row * lines_.inner) + part] : T(0);
      }
  }
  template <int kParts>
  void store(const T* from, T* out, int64_t n) const {
    int64_t row = 0;
    if (whole_lines()) {
      constexpr int64_t kBlock = kLanes / kParts;
      for (; row + kBlock <= n; row += kBlock)
        transpose_words(from + row * kRow, kRow / kParts, out + kParts * (start_[0] + row),
                        kParts * lines_.length);
    } else if (side_by_side_) {
      for (; row < n; ++row) {
        T* to = out + kParts * (start_[0] + row * lines_.inner);
        for (int64_t lane = 0; lane < kLanes; ++lane)
          for (int part = 0; part < kParts; ++part)
            to[kParts * lane + part] = from[row * kRow + part * kLanes + lane];
      }
    }
    for (; row < n; ++row)
      for (int part = 0; part < kParts; ++part)
        for (int64_t lane = 0; lane < count_; ++lane)
          out[kParts * (start_[lane] + row * lines_.inner) + part] =
              from[row * kRow + part * kLanes + lane];
  }

 private:
  static constexpr int64_t kLanes = Packet<T>::kLanes, kRow = 2 * kLanes;
  bool whole_lines() const { return count_ == kLanes && lines_.inner == 1; }

  const Lines& lines_;
  int64_t count_, start_[kLanes] = {};
  bool side_by_side_;
};

template <class T>
T* words(Packet<T>* packets) {
  return reinterpret_cast<T*>(packets);
}

}  // namespace

template <class T>
Columns<T>::Columns(const Passes<T>& passes, T factor)
    : passes_(passes),
      factor_(factor),
      bytes_(static_cast<int64_t>(sizeof(P)) * (2 * passes.rows() + passes.size() / 2 + 1)) {
  a_ = static_cast<P*>(cpu_allocator::allocate(static_cast<size_t>(bytes_)));
  b_ = a_ + passes.rows();
  c_ = b_ + passes.rows();
}
template <class T>
Columns<T>::~Columns() {
  cpu_allocator::free(a_, static_cast<size_t>(bytes_));
}

template <class T>
void Columns<T>::complex_lines(const T* in, T* out, const Lines& lines, int64_t first,
                               int64_t count, bool inverse) {
  const int64_t n = lines.length;
  const Exchange<T> exchange(lines, first, count);
  if (exchange.side_by_side() && n > 1) {
    const int64_t start = exchange.start();
    return passes_.run_columns(in + 2 * start, out + 2 * start, lines.inner, inverse, factor_, a_,
                               b_);
  }
  exchange.template load<2>(in, words(a_), n);
  if (inverse)
    for (int64_t row = 0; row < n; ++row) a_[row] = a_[row].swapped();
  P* made = passes_.run(a_, b_, 1);
  for (int64_t row = 0; row < n; ++row)
    made[row] = factor_ * (inverse ? made[row].swapped() : made[row]);
  exchange.template store<2>(words(made), out, n);
}

template <class T>
void Columns<T>::real_lines(const T* in, const Lines& from, T* out, const Lines& to, int64_t first,
                            int64_t count, bool conj) {
  const int64_t n = from.length, half = n / 2 + 1;
  const int64_t left = std::min(count, kLanes), right = count - left;
  Exchange<T>(from, first, left).template load<1>(in, words(a_), n);
  Exchange<T>(from, first + left, right).template load<1>(in, words(a_) + kLanes, n);
  P *made = passes_.run(a_, b_, 1), *other = made == a_ ? b_ : a_;
  const T share = factor_ / 2;
  for (int64_t k = 0; k < half; ++k) {
    const P z = made[k], mirror = made[k == 0 ? 0 : n - k].conj();
    const P one = share * (z + mirror), two = share * (z - mirror).times_minus_i();
    other[k] = conj ? one.conj() : one;
    made[k] = conj ? two.conj() : two;
  }
  for (int64_t k = half; k < to.length; ++k) {
    other[k] = other[n - k].conj();
    made[k] = made[n - k].conj();
  }
  Exchange<T>(to, first, left).template store<2>(words(other), out, to.length);
  if (right > 0)
    Exchange<T>(to, first + left, right).template store<2>(words(made), out, to.length);
}

template <class T>
void Columns<T>::hermitian_lines(const T* in, const Lines& from, T* out, const Lines& to,
                                 int64_t first, int64_t count, bool conj) {
  const int64_t n = to.length, half = n / 2 + 1;
  const int64_t left = std::min(count, kLanes), right = count - left;
  Exchange<T>(from, first, left).template load<2>(in, words(b_), half);
  Exchange<T>(from, first + left, right).template load<2>(in, words(c_), half);
  // The sum of one line and i times the other, parts exchanged for the inverse transform.
  for (int64_t k = 0; k < half; ++k) {
    P one = b_[k], two = c_[k];
    if (conj) one = one.conj(), two = two.conj();
    const bool alone = k == 0 || 2 * k == n;
    if (alone) one.im = two.im = typename P::Vector{};
    a_[k] = (one + two.times_i()).swapped();
    if (!alone) a_[n - k] = (one.conj() + two.conj().times_i()).swapped();
  }
  P* made = passes_.run(a_, b_, 1);
  for (int64_t row = 0; row < n; ++row) made[row] = factor_ * made[row].swapped();
  Exchange<T>(to, first, left).template store<1>(words(made), out, n);
  if (right > 0)
    Exchange<T>(to, first + left, right).template store<1>(words(made) + kLanes, out, n);
}

template class Columns<float>;
template class Columns<double>;

}  // namespace oar::cpu::fft
