#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

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

  const Lines lines_;
  int64_t count_, start_[kLanes] = {};
  bool side_by_side_;
};

template <class T>
T* words(Packet<T>* packets) {
  return reinterpret_cast<T*>(packets);
}

// Two real lines that are the parts of one complex line: each gets the rounding errors of both, and what is NaN or overflows in
// one would be NaN in the other. So the second one is brought to the magnitude of the first, by powers of two, which are exact.
template <class T>
class Pair {
 public:
  using Vector = typename Packet<T>::Vector;

  void see(const Vector& one, const Vector& two) {
    one_ = larger(one_, one);
    two_ = larger(two_, two);
    invalid_ += one * T(0) + two * T(0);
  }
  // Can the lines of all lanes be parts of one? Not if one is NaN or so large or small that it may overflow or lose digits, or both
  // are too different.
  bool balance(int64_t n) {
    constexpr T kFar = static_cast<T>(int64_t{1} << 60);
    const T most = std::numeric_limits<T>::max() / static_cast<T>(8 * n),
            least = std::numeric_limits<T>::min();
    const Vector first = power_of(one_), second = power_of(two_), ones = Vector{} + T(1);
    const auto zero = (one_ == 0) | (two_ == 0);
    up_ = zero ? ones : first / second;
    down_ = zero ? ones : second / first;
    const auto good =
        (invalid_ == 0) & (one_ <= most) & (two_ <= most) &
        (zero | ((one_ >= least) & (two_ >= least) & (up_ <= kFar) & (down_ <= kFar)));
    bool all = true;
    for (int lane = 0; lane < Packet<T>::kLanes; ++lane) all &= good[lane] != 0;
    return all;
  }
  const Vector& up() const { return up_; }
  const Vector& down() const { return down_; }

 private:
  static Vector larger(const Vector& a, const Vector& b) {
    const Vector size = b < 0 ? -b : b;
    return size > a ? size : a;
  }
  // The powers of two that are not larger, of normal numbers.
  static Vector power_of(const Vector& v) {
    using Bits = decltype(v == v);
    using Word = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    const T infinity = std::numeric_limits<T>::infinity();
    return reinterpret_cast<Vector>(reinterpret_cast<const Bits&>(v) &
                                    std::bit_cast<Word>(infinity));
  }
  Vector one_ = {}, two_ = {}, invalid_ = {}, up_ = {}, down_ = {};
};

}  // namespace

template <class T>
Columns<T>::Columns(const Passes<T>& passes, T factor)
    : passes_(passes),
      factor_(factor),
      bytes_(static_cast<int64_t>(sizeof(P)) * (2 * passes.rows() + 2 * passes.size() + 1)) {
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
  if (inverse || factor_ != 1)
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
  Pair<T> pair;
  if (right > 0) {
    for (int64_t row = 0; row < n; ++row) pair.see(a_[row].re, a_[row].im);
    if (!pair.balance(n)) {
      real_lines(in, from, out, to, first, left, conj);
      return real_lines(in, from, out, to, first + left, right, conj);
    }
    for (int64_t row = 0; row < n; ++row) a_[row].im *= pair.up();
  }
  P *made = passes_.run(a_, b_, 1), *other = made == a_ ? b_ : a_;
  const T share = factor_ / 2;
  for (int64_t k = 0; k < half; ++k) {
    const P z = made[k], mirror = made[k == 0 ? 0 : n - k].conj();
    const P one = share * (z + mirror), moved = share * (z - mirror).times_minus_i();
    const P two = {moved.re * pair.down(), moved.im * pair.down()};
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
void Columns<T>::even_lines(const T* in, T* out, const Lines& to, int64_t first, int64_t count,
                            const T* roots, bool conj) {
  const int64_t m = passes_.size();
  Exchange<T>({to.outer, m, 1}, first, count).template load<2>(in, words(a_), m);
  const P* made = passes_.run(a_, b_, 1);
  const T share = factor_ / 2, sign = conj ? T(-1) : T(1);
  const auto put = [&](int64_t k, const P& p) { c_[k] = {p.re, sign * p.im}; };
  const typename P::Vector zero{};
  put(0, {factor_ * (made[0].re + made[0].im), zero});
  put(m, {factor_ * (made[0].re - made[0].im), zero});
  for (int64_t k = 1; k <= m - k; ++k) {
    const P z = share * made[k], mirror = share * made[m - k].conj();
    const P even = z + mirror,
            odd = (z - mirror).times_minus_i().times(roots[2 * k], roots[2 * k + 1]);
    put(m - k, (even - odd).conj());
    put(k, even + odd);
  }
  for (int64_t k = m + 1; k < to.length; ++k) c_[k] = c_[2 * m - k].conj();
  Exchange<T>(to, first, count).template store<2>(words(c_), out, to.length);
}

template <class T>
void Columns<T>::hermitian_lines(const T* in, const Lines& from, T* out, const Lines& to,
                                 int64_t first, int64_t count, bool conj) {
  const int64_t n = to.length, half = n / 2 + 1;
  const int64_t left = std::min(count, kLanes), right = count - left;
  Exchange<T>(from, first, left).template load<2>(in, words(b_), half);
  Exchange<T>(from, first + left, right).template load<2>(in, words(c_), half);
  Pair<T> pair;
  if (right > 0) {
    for (int64_t k = 0; k < half; ++k) {
      pair.see(b_[k].re, c_[k].re);
      pair.see(b_[k].im, c_[k].im);
    }
    if (!pair.balance(2 * n)) {
      hermitian_lines(in, from, out, to, first, left, conj);
      return hermitian_lines(in, from, out, to, first + left, right, conj);
    }
    for (int64_t k = 0; k < half; ++k) c_[k] = {c_[k].re * pair.up(), c_[k].im * pair.up()};
  }
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
  if (right > 0) {
    for (int64_t row = 0; row < n; ++row) made[row].im *= pair.down();
    Exchange<T>(to, first + left, right).template store<1>(words(made) + kLanes, out, n);
  }
}

template class Columns<float>;
template class Columns<double>;

}  // namespace oar::cpu::fft
