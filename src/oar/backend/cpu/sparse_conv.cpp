// Convolution of sparse images: the rules, and the products that follow them.
#include <algorithm>
#include <bit>
#include <vector>

#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/sparse/positions.h"

namespace oar::cpu {
namespace {

// Numbers from 0 on for keys that are not negative, in the order in which they are first added.
class KeyTable {
 public:
  explicit KeyTable(size_t expected)
      : slots_(std::bit_ceil(2 * expected + 16), Slot{-1, -1}), mask_(slots_.size() - 1) {}

  int64_t find(int64_t key) const {
    const Slot& slot = slots_[place(key)];
    return slot.key == key ? slot.number : -1;
  }
  int64_t add(int64_t key) {
    if (2 * keys.size() >= slots_.size()) grow();
    Slot& slot = slots_[place(key)];
    if (slot.key != key) {
      slot = {key, static_cast<int64_t>(keys.size())};
      keys.push_back(key);
    }
    return slot.number;
  }
  std::vector<int64_t> keys;

 private:
  struct Slot {
    int64_t key, number;
  };
  size_t place(int64_t key) const {
    size_t at = static_cast<size_t>(static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u >> 20) & mask_;
    while (slots_[at].key >= 0 && slots_[at].key != key) at = (at + 1) & mask_;
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2, Slot{-1, -1});
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old)
      if (slot.key >= 0) slots_[place(slot.key)] = slot;
  }
  std::vector<Slot> slots_;
  size_t mask_;
};

struct Window {
  Window(const KernelCall& call)
      : in(call.arg(1).as_ints()),
        kernel(call.arg(2).as_ints()),
        dilation(call.arg(5).as_ints()),
        subm(call.arg(6).as_bool()),
        axes(in.size()) {
    int64_t image = 1;
    for (size_t i = 0; i < axes; ++i) {
      user_check(in[i] >= 0 && in[i] < (int64_t{1} << 40), ErrorKind::InvalidArgument,
                 "axis {} of size {} is negative or too large.", i, in[i]);
      stride.push_back(subm ? 1 : call.arg(3).as_ints()[i]);
      padding.push_back(subm ? dilation[i] * (kernel[i] / 2) : call.arg(4).as_ints()[i]);
      const int64_t reach = dilation[i] * (kernel[i] - 1) + 1, padded = in[i] + 2 * padding[i];
      user_check(
          subm || padded >= reach, ErrorKind::InvalidArgument,
          "a kernel that reaches over {} elements does not fit axis {} of size {} with padding {}.",
          reach, i, in[i], padding[i]);
      out.push_back(subm ? in[i] : (padded - reach) / stride[i] + 1);
      user_check(!__builtin_mul_overflow(image, out[i], &image) &&
                     !__builtin_mul_overflow(taps, kernel[i], &taps),
                 ErrorKind::InvalidArgument, "the images or the kernel are too large.");
    }
    elements = image;
  }
  Ints in, kernel, dilation;
  bool subm;
  size_t axes;
  SmallVector<int64_t, 3> stride, padding, out;
  int64_t taps = 1, elements;
};

// The position among all elements of the result that an element reaches through a tap; -1 outside.
int64_t reached(const Window& w, const int64_t* indices, int64_t n, int64_t k, const int64_t* tap) {
  int64_t position = indices[k];
  for (size_t i = 0; i < w.axes; ++i) {
    const int64_t shifted =
        indices[static_cast<int64_t>(i + 1) * n + k] + w.padding[i] - tap[i] * w.dilation[i];
    if (shifted < 0 || shifted % w.stride[i] != 0) return -1;
    const int64_t at = shifted / w.stride[i];
    if (at >= w.out[i]) return -1;
    position = position * w.out[i] + at;
  }
  return position;
}

void check_coordinates(const Window& w, const int64_t* indices, int64_t n) {
  for (size_t i = 0; i < w.axes; ++i)
    check_positions(indices + static_cast<int64_t>(i + 1) * n, n, w.in[i], "indices");
  const int64_t most = INT64_MAX / std::max<int64_t>(w.elements, 1) - 1;
  check_positions(indices, n, most, "indices");
  user_check(w.taps <= (int64_t{1} << 31) / std::max<int64_t>(n, 1), ErrorKind::InvalidArgument,
             "{} taps of the kernel for {} elements are too many.", w.taps, n);
}

void conv_rules(KernelCall& call) {
  const Flat<int64_t> flat(call.in(0));
  const int64_t *indices = flat.data(), n = call.in(0).shape[1], rows = call.in(0).shape[0];
  const Window w(call);
  check_coordinates(w, indices, n);
  KeyTable results(static_cast<size_t>(n));
  SmallVector<int64_t, 3> tap(w.axes, 0);
  const SmallVector<int64_t, 3> centre = [&] {
    SmallVector<int64_t, 3> c;
    for (size_t i = 0; i < w.axes; ++i) c.push_back(w.kernel[i] / 2);
    return c;
  }();
  std::vector<int64_t> first;  // with each place of the result, if it has those of the input
  for (int64_t k = 0; w.subm && k < n; ++k)
    if (results.add(reached(w, indices, n, k, centre.data())) == static_cast<int64_t>(first.size()))
      first.push_back(k);
  std::vector<int64_t> inputs, outputs, taps;
  for (int64_t number = 0; number < w.taps; ++number) {
    for (int64_t k = 0; k < n; ++k) {
      const int64_t key = reached(w, indices, n, k, tap.data());
      if (key < 0) continue;
      const int64_t at = w.subm ? results.find(key) : results.add(key);
      if (at < 0) continue;
      inputs.push_back(k);
      outputs.push_back(w.subm ? first[static_cast<size_t>(at)] : at);
      taps.push_back(number);
    }
    for (size_t i = w.axes; i > 0; --i) {
      if (++tap[i - 1] < w.kernel[i - 1]) break;
      tap[i - 1] = 0;
    }
  }
  const auto found = w.subm ? n : static_cast<int64_t>(results.keys.size());
  const int64_t shape[] = {rows, found}, count = static_cast<int64_t>(inputs.size());
  auto* out = static_cast<int64_t*>(call.allocate(0, Ints(shape, 2)).data);
  if (w.subm) {
    std::copy_n(indices, rows * n, out);
  } else {
    std::vector<int64_t> sorted = results.keys, rank(sorted.size());
    std::sort(sorted.begin(), sorted.end());
    for (int64_t k = 0; k < found; ++k) {
      int64_t rest = sorted[static_cast<size_t>(k)];
      rank[static_cast<size_t>(results.find(rest))] = k;
      for (size_t i = w.axes; i-- > 0;) {
        out[static_cast<int64_t>(i + 1) * found + k] = rest % w.out[i];
        rest /= w.out[i];
      }
      out[k] = rest;
    }
    for (int64_t& at : outputs) at = rank[static_cast<size_t>(at)];
  }
  const std::vector<int64_t>* lists[] = {&inputs, &outputs, &taps};
  for (int i = 0; i < 3; ++i)
    std::copy_n(lists[i]->data(), count,
                static_cast<int64_t*>(call.allocate(i + 1, Ints(&count, 1)).data));
}

// The rules of a call, checked.
class Rules {
 public:
  Rules(const KernelCall& call, int64_t x_rows, int64_t y_rows, int64_t matrices)
      : inputs_(call.in(2)), outputs_(call.in(3)), taps_(call.in(4)), count_(call.in(2).numel) {
    check_positions(inputs_.data(), count_, x_rows, "inputs");
    check_positions(outputs_.data(), count_, y_rows, "outputs");
    check_positions(taps_.data(), count_, matrices, "taps");
  }
  // body(tap, inputs, outputs, count) for blocks of rules with one tap: large ones if taps are in order.
  template <class F>
  void each_block(F&& body) const {
    for (int64_t first = 0; first < count_;) {
      const int64_t tap = taps_.data()[first];
      int64_t last = first + 1;
      while (last < count_ && last - first < kRows && taps_.data()[last] == tap) ++last;
      body(tap, inputs_.data() + first, outputs_.data() + first, last - first);
      first = last;
    }
  }
  static constexpr int64_t kRows = 512;  // a block stays in the cache

 private:
  Flat<int64_t> inputs_, outputs_, taps_;
  int64_t count_;
};

template <class T>
void gather_rows(const T* from, const int64_t* rows, int64_t count, int64_t width, T* to) {
  for (int64_t k = 0; k < count; ++k) std::copy_n(from + rows[k] * width, width, to + k * width);
}

void rule_matmul(KernelCall& call) {
  const oar_tensor &in = call.in(0), &matrices = call.in(1), &result = call.out();
  const int64_t from = in.shape[1], to = matrices.shape[2];
  const Rules rules(call, in.shape[0], result.shape[0], matrices.shape[0]);
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> x(in), weight(matrices);
    const Result<T> out(result);
    std::fill_n(out.data(), result.numel, T(0));
    Scratch<T> rows(Rules::kRows * from), sums(Rules::kRows * to);
    rules.each_block(
        [&](int64_t tap, const int64_t* inputs, const int64_t* outputs, int64_t count) {
          gather_rows(x.data(), inputs, count, from, rows.data());
          gemm<T>(count, to, from, {rows.data(), from, 1}, {weight.data() + tap * from * to, to, 1},
                  {sums.data(), to, 1});
          for (int64_t k = 0; k < count; ++k) {
            T* sum = out.data() + outputs[k] * to;
            for (int64_t j = 0; j < to; ++j) sum[j] += sums[k * to + j];
          }
        });
    out.finish();
  });
}

void rule_outer(KernelCall& call) {
  const oar_tensor &left = call.in(0), &right = call.in(1), &result = call.out();
  const int64_t from = left.shape[1], to = right.shape[1];
  const Rules rules(call, left.shape[0], right.shape[0], result.shape[0]);
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Flat<T> x(left), y(right);
    const Result<T> out(result);
    std::fill_n(out.data(), result.numel, T(0));
    Scratch<T> a(Rules::kRows * from), b(Rules::kRows * to);
    rules.each_block(
        [&](int64_t tap, const int64_t* inputs, const int64_t* outputs, int64_t count) {
          gather_rows(x.data(), inputs, count, from, a.data());
          gather_rows(y.data(), outputs, count, to, b.data());
          gemm<T>(from, to, count, {a.data(), 1, from}, {b.data(), to, 1},
                  {out.data() + tap * from * to, to, 1}, /*accumulate=*/true);
        });
    out.finish();
  });
}

}  // namespace

KernelList sparse_conv_kernels() {
  static const oar_kernel list[] = {
      {"conv_rules", 1, "cpu:generic", nullptr, kernel_entry<conv_rules>},
      {"rule_matmul", 1, "cpu:gemm", nullptr, kernel_entry<rule_matmul>},
      {"rule_outer", 1, "cpu:gemm", nullptr, training_entry<rule_outer>},
  };
  return list;
}

}  // namespace oar::cpu
