// What attention and its derivative share: sizes, masks, and blocks of keys as products read them.
#pragma once

#include <cmath>

#include "oar/backend/cpu/axis.h"
#include "oar/backend/cpu/gemm.h"
#include "oar/backend/cpu/groups.h"
#include "oar/backend/cpu/pack.h"
#include "oar/backend/cpu/row_table.h"
#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu {

inline constexpr int64_t kQueryRows = 64;  // queries that share a block of keys

// The score of a masked key: next to any other its weight is 0, but if all are masked they have equal
// weight. An infinity would give NaN.
template <class C>
inline constexpr C kHidden = C(-1e30);

// A mask as [batch, heads, queries, keys], with stride 0 where it is broadcast.
struct ScoreMask {
  explicit ScoreMask(const oar_tensor* t) {
    if (!t) return;
    data = static_cast<const char*>(t->data);
    dtype = static_cast<DType>(t->dtype);
    const auto bytes = static_cast<int64_t>(size_of(dtype));
    for (int i = 0; i < t->ndim; ++i)
      if (t->shape[i] != 1) stride[4 - t->ndim + i] = t->strides[i] * bytes;
  }
  const char* row(int64_t batch, int64_t head, int64_t query, int64_t key) const {
    return data + batch * stride[0] + head * stride[1] + query * stride[2] + key * stride[3];
  }
  const char* data = nullptr;
  DType dtype = DType::Bool;
  int64_t stride[4] = {};
};

// Sizes, and operands by their strides. Queries that share a head of keys are rows of one matrix:
// row r is query r % queries of the head's r / queries-th sharer.
template <class T>
struct Attention {
  using C = compute_t<T>;
  explicit Attention(const KernelCall& call, int scale_at)
      : mask(optional_in(call, 3)),
        keep(optional_in(call, 4)),
        scale(static_cast<C>(call.arg(scale_at).as_double())),
        causal(call.arg(scale_at + 2).as_bool()) {
    const oar_tensor &q = call.in(0), &k = call.in(1), &v = call.in(2);
    query = &q, key = &k, value = &v;
    batch = q.shape[0], queries = q.shape[1], heads = q.shape[2], width = q.shape[3];
    keys = k.shape[1], key_heads = k.shape[2], value_width = v.shape[3];
    group = key_heads ? heads / key_heads : 0;
    const double dropout = call.arg(scale_at + 1).as_double();
    kept = static_cast<C>(dropout < 1 ? 1 / (1 - dropout) : 1);
    // As many keys as gemm can read in place and the first caches can hold.
    const int64_t room = (48 << 10) / static_cast<int64_t>(sizeof(C));
    const int64_t widest = std::max<int64_t>({width, value_width, 1});
    block = std::clamp<int64_t>(room / widest / 48 * 48, 48, 384);
  }
  int64_t rows() const { return group * queries; }
  int64_t head(int64_t key_head, int64_t row) const { return key_head * group + row / queries; }
  // The last key that some row of [first, first + count) may see.
  int64_t last_seen(int64_t first, int64_t count) const {
    if (!causal) return keys - 1;
    const bool one_head = first / queries == (first + count - 1) / queries;
    return one_head ? (first + count - 1) % queries : queries - 1;
  }
  // How many keys of a block the row may see.
  int64_t seen(int64_t row, int64_t first_key, int64_t count) const {
    return causal ? std::clamp<int64_t>(row % queries - first_key + 1, 0, count) : count;
  }
  // An element's distance from the start of a [batch, length, heads, width] tensor.
  static int64_t offset(const oar_tensor& t, int64_t b, int64_t i, int64_t h) {
    return b * t.strides[0] + i * t.strides[1] + h * t.strides[2];
  }
  Matrix<const T> key_matrix(const oar_tensor& t, int64_t b, int64_t key_head,
                             int64_t first) const {
    return {static_cast<const T*>(t.data) + offset(t, b, first, key_head), t.strides[1],
            t.strides[3]};
  }

  // Rows [first, first + count) of a tensor laid out as the query, times a factor.
  void gather_rows(const oar_tensor& t, int64_t b, int64_t key_head, int64_t first, int64_t count,
                   C factor, C* to) const {
    const int64_t n = t.shape[3], step = t.strides[3];
    for (int64_t r = first; r < first + count; ++r, to += n) {
      const T* from = static_cast<const T*>(t.data) + offset(t, b, r % queries, head(key_head, r));
      if (step == 1)
        fill_groups(to, n, [=](int64_t i) { return static_cast<C>(from[i]) * factor; });
      else
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(from[i * step]) * factor;
    }
  }

  void add_mask(int64_t b, int64_t key_head, int64_t row, int64_t first_key, C* s,
                int64_t n) const {
    if (!mask.data) return;
    const char* from = mask.row(b, head(key_head, row), row % queries, first_key);
    const int64_t step = mask.stride[3];
    if (mask.dtype == DType::Bool) {
      for (int64_t i = 0; i < n; ++i) s[i] = from[i * step] ? s[i] : kHidden<C>;
      return;
    }
    visit<kFloats>(mask.dtype, [&](auto tag) {
      using M = typename decltype(tag)::type;
      if (step == sizeof(M)) {
        const auto* m = reinterpret_cast<const M*>(from);
        fill_groups(s, n, [=](int64_t i) { return seen_score(s[i] + static_cast<C>(m[i])); });
      } else {
        for (int64_t i = 0; i < n; ++i)
          s[i] = seen_score(s[i] + static_cast<C>(*reinterpret_cast<const M*>(from + i * step)));
      }
    });
  }
  static C seen_score(C s) { return s < kHidden<C> ? kHidden<C> : s; }
  void drop(int64_t b, int64_t key_head, int64_t row, int64_t first_key, C* s, int64_t n) const {
    if (!keep.data) return;
    const char* from = keep.row(b, head(key_head, row), row % queries, first_key);
    const int64_t step = keep.stride[3];
    for (int64_t i = 0; i < n; ++i) s[i] *= from[i * step] ? kept : C(0);
  }

  ScoreMask mask, keep;
  C scale, kept;
  bool causal;
  const oar_tensor *query, *key, *value;
  int64_t batch, queries, heads, width, keys, key_heads, value_width, group, block;
};

// Keys or values of a block as the products read them: transposed, or row after row.
template <class T, class C>
void pack_turned(Matrix<const T> from, int64_t keys, int64_t width, C* to) {
  pack_strided(from.data, from.row, from.column, keys, width, to, keys);
}
template <class T, class C>
void pack_straight(Matrix<const T> from, int64_t keys, int64_t width, C* to) {
  if (from.column != 1)
    return pack_strided(from.data, from.column, from.row, width, keys, to, width);
  for (int64_t k = 0; k < keys; ++k) {
    const T* line = from.data + k * from.row;
    if constexpr (std::is_same_v<T, C>)
      std::copy_n(line, width, to + k * width);
    else
      fill_groups(to + k * width, width, [=](int64_t i) { return static_cast<C>(line[i]); });
  }
}

// Sums of weighted values whose weights are relative to the largest score so far.
template <class C>
class RunningSums {
 public:
  // Rows of sums are `pitch` apart.
  RunningSums(int64_t rows, int64_t width, int64_t pitch)
      : width_(width), pitch_(pitch), sums_(rows * pitch), high_(rows), total_(rows) {
    std::fill_n(sums_.data(), rows * pitch, C(0));
    std::fill_n(high_.data(), rows, kNothing);
    std::fill_n(total_.data(), rows, C(0));
  }
  C* row(int64_t r) const { return sums_.data() + r * pitch_; }

  // Turns more scores of row r into weights.
  void weigh(int64_t r, C* s, int64_t n) const {
    const C high = std::max(high_[r], table_.max(s, n));
    if (high != high_[r] && high_[r] != kNothing) {
      const C shrink = functions::exp(high_[r] - high);
      total_[r] *= shrink;
      table_.scale(row(r), width_, shrink);
    }
    // Hidden keys become zeros in exp; NaN stays NaN.
    total_[r] += table_.exp_sum(s, s, n, high == kNothing ? C(0) : high);
    high_[r] = high;
  }

  // The weighted mean; returns the logarithm of the sum of all weights, -inf if all keys are hidden.
  template <class T>
  C finish(int64_t r, T* out) const {
    const C factor = total_[r] == 0 ? C(0) : 1 / total_[r];
    const C* from = row(r);
    fill_groups(out, width_, [=](int64_t j) { return from[j] * factor; });
    return high_[r] <= kHidden<C> ? kNothing : high_[r] + std::log(total_[r]);
  }

 private:
  static constexpr C kNothing = -std::numeric_limits<C>::infinity();
  const RowTable<C>& table_ = row_table<C>();
  int64_t width_, pitch_;
  Scratch<C, 64> sums_, high_, total_;
};

// The divisor of the weights of one row in the derivative: exp(score - shift) / total.
template <class C>
struct RowWeights {
  C shift, share = 1;  // 1 / total
  bool all_hidden = false;
};

// Most rows use their logarithm. If it is so large that its rounding matters, as with a mask of -1e9 all along
// the row, the row is summed again.
template <class T, class C>
RowWeights<C> row_weights(const Attention<T>& of, int64_t b, int64_t key_head, int64_t row, C lse) {
  const int64_t n = of.seen(row, 0, of.keys);
  if (std::abs(lse) < C(1024) || n == 0) return {lse};
  const Scratch<C> query(of.width), key(of.width * n), scores(n);
  of.gather_rows(*of.query, b, key_head, row, 1, of.scale, query.data());
  pack_turned(of.key_matrix(*of.key, b, key_head, 0), n, of.width, key.data());
  gemm<C>(1, n, of.width, {query.data(), of.width, 1}, {key.data(), n, 1}, {scores.data(), n, 1});
  of.add_mask(b, key_head, row, 0, scores.data(), n);
  const RowTable<C>& table = row_table<C>();
  const C high = table.max(scores.data(), n);
  return {high, 1 / table.exp_sum(scores.data(), scores.data(), n, high), high <= kHidden<C>};
}

// Rows of one task: enough that packing the keys pays, few enough that all threads
// have some.
template <class T>
int64_t chunk_of(const Attention<T>& of) {
  constexpr int64_t kMost = 512;
  const int64_t pairs = of.batch * of.key_heads, rows = of.rows();
  int64_t chunk = std::min(kMost, rows);
  while (chunk > kQueryRows && pairs * ((rows + chunk - 1) / chunk) < 2 * num_threads())
    chunk = (chunk / 2 + kQueryRows - 1) / kQueryRows * kQueryRows;
  return chunk;
}

void attention_grad(KernelCall& call);

// bfloat16 with the products on tiles; false if the machine has none or the call does not fit.
bool attention_on_tiles(KernelCall& call);
bool attention_grad_on_tiles(KernelCall& call);

}  // namespace oar::cpu
