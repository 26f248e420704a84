// Attention and its derivative, block by block: no matrix of scores is ever whole, so memory grows
// with the lengths, not with their product. 16-bit floats compute in float32.
#include <cmath>

#include "oar/backend/cpu/axis.h"
#include "oar/backend/cpu/gemm.h"
#include "oar/backend/cpu/pack.h"
#include "oar/backend/cpu/row_buffer.h"
#include "oar/backend/cpu/row_table.h"
#include "oar/backend/cpu/vector_math.h"

namespace oar::cpu {
namespace {

constexpr int64_t kRows = 64;  // queries that meet a block of keys together

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
    // So many keys that a block of them is read in place by gemm and stays in the first caches.
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
      for (int64_t i = 0; i < n; ++i)
        s[i] = from[i * step] ? s[i] : -std::numeric_limits<C>::infinity();
      return;
    }
    visit<kFloats>(mask.dtype, [&](auto tag) {
      using M = typename decltype(tag)::type;
      if (step == sizeof(M)) {
        const auto* m = reinterpret_cast<const M*>(from);
        fill_groups(s, n, [=](int64_t i) { return s[i] + static_cast<C>(m[i]); });
      } else {
        for (int64_t i = 0; i < n; ++i)
          s[i] += static_cast<C>(*reinterpret_cast<const M*>(from + i * step));
      }
    });
  }
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

// Keys or values of a block as the products read them: turned, or row behind row.
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

// ---- forward ---------------------------------------------------------------------------------

// The rows [first, first + count) of one head of keys.
template <class T>
class ForwardTask {
 public:
  using C = compute_t<T>;
  ForwardTask(const Attention<T>& of, int64_t b, int64_t key_head, int64_t first, int64_t count)
      : of_(of),
        b_(b),
        key_head_(key_head),
        first_(first),
        count_(count),
        query_(count * of.width),
        sums_(count * of.value_width),
        high_(count),
        total_(count),
        scores_(std::min(kRows, count) * of.block) {}

  void run(T* out, C* lse) {
    of_.gather_rows(*of_.query, b_, key_head_, first_, count_, of_.scale, query_.data());
    std::fill_n(sums_.data(), count_ * of_.value_width, C(0));
    std::fill_n(high_.data(), count_, -std::numeric_limits<C>::infinity());
    std::fill_n(total_.data(), count_, C(0));
    // With few rows gemm does better with the operands as they are.
    const bool packs = count_ > kRows / 2 || !std::is_same_v<T, C>;
    const Scratch<C> key(packs ? of_.width * of_.block : 0);
    const Scratch<C> value(packs ? of_.value_width * of_.block : 0);
    const int64_t end = of_.last_seen(first_, count_) + 1;
    for (int64_t k = 0; k < std::min(end, of_.keys); k += of_.block) {
      const int64_t keys = std::min(of_.block, of_.keys - k);
      const Matrix<const T> from_key = of_.key_matrix(*of_.key, b_, key_head_, k);
      const Matrix<const T> from_value = of_.key_matrix(*of_.value, b_, key_head_, k);
      Matrix<const C> turned{key.data(), keys, 1}, straight{value.data(), of_.value_width, 1};
      if (packs) {
        pack_turned(from_key, keys, of_.width, key.data());
        pack_straight(from_value, keys, of_.value_width, value.data());
      } else if constexpr (std::is_same_v<T, C>) {
        turned = from_key.transposed();
        straight = from_value;
      }
      for (int64_t r = 0; r < count_; r += kRows)
        if (k <= of_.last_seen(first_ + r, std::min(kRows, count_ - r)))
          block(r, std::min(kRows, count_ - r), k, keys, turned, straight);
    }
    finish(out, lse);
  }

 private:
  void block(int64_t r, int64_t rows, int64_t k, int64_t keys, Matrix<const C> turned,
             Matrix<const C> straight) {
    gemm<C>(rows, keys, of_.width, {query_.data() + r * of_.width, of_.width, 1}, turned,
            {scores_.data(), keys, 1});
    for (int64_t i = 0; i < rows; ++i) weigh(r + i, k, scores_.data() + i * keys, keys);
    gemm<C>(rows, of_.value_width, keys, {scores_.data(), keys, 1}, straight,
            {sums_.data() + r * of_.value_width, of_.value_width, 1}, true);
  }

  // Turns a row of scores into weights relative to the largest score so far.
  void weigh(int64_t r, int64_t k, C* s, int64_t keys) {
    const int64_t row = first_ + r, n = of_.seen(row, k, keys);
    of_.add_mask(b_, key_head_, row, k, s, n);
    const C high = std::max(high_[r], table_.max(s, n));
    std::fill(s + n, s + keys, C(0));
    if (high == kNothing) {  // nothing to see so far, or nothing but NaN
      total_[r] += table_.exp_sum(s, s, n, C(0));
      return;
    }
    if (high_[r] != high && high_[r] != kNothing) {
      const C shrink = exp_of(high_[r] - high);
      total_[r] *= shrink;
      table_.scale(sums_.data() + r * of_.value_width, of_.value_width, shrink);
    }
    total_[r] += table_.exp_sum(s, s, n, high);
    high_[r] = high;
    of_.drop(b_, key_head_, row, k, s, n);
  }

  void finish(T* out, C* lse) {
    const int64_t width = of_.value_width;
    for (int64_t r = 0; r < count_; ++r) {
      const int64_t row = first_ + r, head = of_.head(key_head_, row), i = row % of_.queries;
      const C factor = total_[r] == 0 ? C(0) : 1 / total_[r];
      const C* sums = sums_.data() + r * width;
      fill_groups(out + ((b_ * of_.queries + i) * of_.heads + head) * width, width,
                  [=](int64_t j) { return sums[j] * factor; });
      lse[(b_ * of_.heads + head) * of_.queries + i] = high_[r] + std::log(total_[r]);
    }
  }

  static constexpr C kNothing = -std::numeric_limits<C>::infinity();
  const Attention<T>& of_;
  const RowTable<C>& table_ = row_table<C>();
  int64_t b_, key_head_, first_, count_;
  Scratch<C, 64> query_, sums_, high_, total_, scores_;
};

// One query, as when text is made word by word: every key is read once and met by the heads
// together, in the order of memory. Heads [first, first + heads) of keys.
template <class T>
class DecodeTask {
 public:
  using C = compute_t<T>;
  DecodeTask(const Attention<T>& of, int64_t b, int64_t first, int64_t heads)
      : of_(of),
        b_(b),
        first_(first),
        heads_(heads),
        rows_(heads * of.group),
        query_(rows_ * of.width),
        sums_(rows_ * of.value_width),
        high_(rows_),
        total_(rows_),
        scores_(rows_ * of.block) {}

  void run(T* out, C* lse) {
    for (int64_t h = 0; h < heads_; ++h)
      of_.gather_rows(*of_.query, b_, first_ + h, 0, of_.group, of_.scale,
                      query_.data() + h * of_.group * of_.width);
    std::fill_n(sums_.data(), rows_ * of_.value_width, C(0));
    std::fill_n(high_.data(), rows_, kNothing);
    std::fill_n(total_.data(), rows_, C(0));
    const int64_t end = of_.causal ? std::min<int64_t>(of_.keys, 1) : of_.keys;
    for (int64_t k = 0; k < end; k += of_.block) block(k, std::min(of_.block, end - k));
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t head = first_ * of_.group + r;
      const C factor = total_[r] == 0 ? C(0) : 1 / total_[r];
      const C* sums = sums_.data() + r * of_.value_width;
      fill_groups(out + (b_ * of_.heads + head) * of_.value_width, of_.value_width,
                  [=](int64_t j) { return sums[j] * factor; });
      lse[b_ * of_.heads + head] = high_[r] + std::log(total_[r]);
    }
  }

 private:
  void block(int64_t first_key, int64_t keys) {
    const RowBuffer<T> key(heads_ * of_.width), value(heads_ * of_.value_width);
    for (int64_t k = 0; k < keys; ++k) {
      const C* row = key.read(at(*of_.key, first_key + k));
      for (int64_t g = 0; g < of_.group; ++g)
        table_.head_scores(query_.data() + g * of_.width, of_.group * of_.width, row, of_.width,
                           heads_, of_.width, scores_.data() + g * keys + k, of_.group * keys);
    }
    for (int64_t r = 0; r < rows_; ++r) weigh(r, first_key, scores_.data() + r * keys, keys);
    for (int64_t k = 0; k < keys; ++k) {
      const C* row = value.read(at(*of_.value, first_key + k));
      for (int64_t g = 0; g < of_.group; ++g)
        table_.head_sums(scores_.data() + g * keys + k, of_.group * keys, row, of_.value_width,
                         heads_, of_.value_width, sums_.data() + g * of_.value_width,
                         of_.group * of_.value_width);
    }
  }
  const T* at(const oar_tensor& t, int64_t key) const {
    return static_cast<const T*>(t.data) + of_.offset(t, b_, key, first_);
  }

  void weigh(int64_t r, int64_t first_key, C* s, int64_t n) {
    const int64_t key_head = first_ + r / of_.group, row = r % of_.group;
    of_.add_mask(b_, key_head, row, first_key, s, n);
    const C high = std::max(high_[r], table_.max(s, n));
    if (high != high_[r] && high_[r] != kNothing) {
      const C shrink = exp_of(high_[r] - high);
      total_[r] *= shrink;
      table_.scale(sums_.data() + r * of_.value_width, of_.value_width, shrink);
    }
    total_[r] += table_.exp_sum(s, s, n, high == kNothing ? C(0) : high);
    high_[r] = high;
    of_.drop(b_, key_head, row, first_key, s, n);
  }

  static constexpr C kNothing = -std::numeric_limits<C>::infinity();
  const Attention<T>& of_;
  const RowTable<C>& table_ = row_table<C>();
  int64_t b_, first_, heads_, rows_;
  Scratch<C, 64> query_, sums_, high_, total_, scores_;
};

template <class T>
bool reads_in_order(const Attention<T>& of) {
  const auto dense = [](const oar_tensor& t) {
    return t.strides[3] == 1 && t.strides[2] == t.shape[3];
  };
  return of.queries == 1 && dense(*of.key) && dense(*of.value);
}

template <class T>
void decode(const Attention<T>& of, T* out, compute_t<T>* lse) {
  const int64_t most = std::max<int64_t>(1, 2 * num_threads() / of.batch);
  const int64_t share = (of.key_heads + most - 1) / most;
  const int64_t parts = (of.key_heads + share - 1) / share;
  const int64_t work = share * of.keys * (of.width + of.value_width);
  parallel_for(0, of.batch * parts, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t first = task % parts * share;
                   DecodeTask<T>(of, task / parts, first, std::min(share, of.key_heads - first))
                       .run(out, lse);
                 }
               });
}

template <class T>
void forward(const Attention<T>& of, T* out, compute_t<T>* lse) {
  // Long enough that packing the keys is worth it, short enough that all threads have some.
  constexpr int64_t kMost = 512;
  const int64_t pairs = of.batch * of.key_heads, rows = of.rows();
  if (pairs == 0 || rows == 0) return;
  if (reads_in_order(of)) return decode(of, out, lse);
  int64_t chunk = std::min(kMost, rows);
  while (chunk > kRows && pairs * ((rows + chunk - 1) / chunk) < 2 * num_threads())
    chunk = (chunk / 2 + kRows - 1) / kRows * kRows;
  const int64_t chunks = (rows + chunk - 1) / chunk;
  const auto one = [&](int64_t task) {
    const int64_t pair = task / chunks, first = task % chunks * chunk;
    ForwardTask<T>(of, pair / of.key_heads, pair % of.key_heads, first,
                   std::min(chunk, rows - first))
        .run(out, lse);
  };
  const int64_t work = chunk * of.keys * (of.width + of.value_width);
  parallel_for(0, pairs * chunks, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) one(task);
               });
}

void attention(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    forward(Attention<T>(call, 5), static_cast<T*>(call.out(0).data),
            static_cast<compute_t<T>*>(call.out(1).data));
  });
}

// ---- derivative ------------------------------------------------------------------------------

template <class T>
struct GradOperands {
  using C = compute_t<T>;
  const oar_tensor *out, *grad;
  const C *lse, *grad_lse;  // [batch, heads, queries]
  T *to_query, *to_key, *to_value;
};

// Everything of one head of keys.
template <class T>
class BackwardTask {
 public:
  using C = compute_t<T>;
  BackwardTask(const Attention<T>& of, const GradOperands<T>& with, int64_t b, int64_t key_head)
      : of_(of),
        with_(with),
        b_(b),
        key_head_(key_head),
        query_(of.rows() * of.width),
        grad_(of.rows() * of.value_width),
        to_query_(of.rows() * of.width),
        lse_(of.rows()),
        level_(of.rows()),
        weights_(kRows * of.block),
        slopes_(kRows * of.block),
        key_(of.width * of.block),
        key_turned_(of.width * of.block),
        value_turned_(of.value_width * of.block),
        to_key_(of.width * of.block),
        to_value_(of.value_width * of.block) {}

  void run() {
    prepare();
    for (int64_t k = 0; k < of_.keys; k += of_.block) {
      const int64_t keys = std::min(of_.block, of_.keys - k);
      const Matrix<const T> key = of_.key_matrix(*of_.key, b_, key_head_, k);
      pack_straight(key, keys, of_.width, key_.data());
      pack_turned(key, keys, of_.width, key_turned_.data());
      pack_turned(of_.key_matrix(*of_.value, b_, key_head_, k), keys, of_.value_width,
                  value_turned_.data());
      std::fill_n(to_key_.data(), keys * of_.width, C(0));
      std::fill_n(to_value_.data(), keys * of_.value_width, C(0));
      for (int64_t r = 0; r < of_.rows(); r += kRows) {
        const int64_t rows = std::min(kRows, of_.rows() - r);
        if (k <= of_.last_seen(r, rows)) block(r, rows, k, keys);
      }
      store_keys(to_key_.data(), with_.to_key, of_.width, k, keys);
      store_keys(to_value_.data(), with_.to_value, of_.value_width, k, keys);
    }
    store_queries();
  }

 private:
  void prepare() {
    const int64_t rows = of_.rows(), width = of_.value_width;
    of_.gather_rows(*of_.query, b_, key_head_, 0, rows, of_.scale, query_.data());
    of_.gather_rows(*with_.grad, b_, key_head_, 0, rows, C(1), grad_.data());
    const Scratch<C> out(width);
    for (int64_t r = 0; r < rows; ++r) {
      of_.gather_rows(*with_.out, b_, key_head_, r, 1, C(1), out.data());
      const int64_t at = (b_ * of_.heads + of_.head(key_head_, r)) * of_.queries + r % of_.queries;
      C dot = 0;
      for (int64_t i = 0; i < width; ++i) dot += grad_[r * width + i] * out[i];
      level_[r] = dot - with_.grad_lse[at];
      lse_[r] = with_.lse[at];
    }
    std::fill_n(to_query_.data(), rows * of_.width, C(0));
  }

  void block(int64_t r, int64_t rows, int64_t k, int64_t keys) {
    const int64_t width = of_.width, value_width = of_.value_width;
    C *weights = weights_.data(), *slopes = slopes_.data();
    const C *query = query_.data() + r * width, *grad = grad_.data() + r * value_width;
    gemm<C>(rows, keys, width, {query, width, 1}, {key_turned_.data(), keys, 1},
            {weights, keys, 1});
    gemm<C>(rows, keys, value_width, {grad, value_width, 1}, {value_turned_.data(), keys, 1},
            {slopes, keys, 1});
    for (int64_t i = 0; i < rows; ++i) weigh(r + i, k, weights + i * keys, slopes + i * keys, keys);
    gemm<C>(keys, value_width, rows, {weights, 1, keys}, {grad, value_width, 1},
            {to_value_.data(), value_width, 1}, true);
    gemm<C>(keys, width, rows, {slopes, 1, keys}, {query, width, 1}, {to_key_.data(), width, 1},
            true);
    gemm<C>(rows, width, keys, {slopes, keys, 1}, {key_.data(), width, 1},
            {to_query_.data() + r * width, width, 1}, true);
  }

  // From scores and the weights' gradients to weights and the scores' gradients.
  void weigh(int64_t row, int64_t k, C* s, C* slopes, int64_t keys) {
    const bool blind = lse_[row] == -std::numeric_limits<C>::infinity();
    const int64_t n = blind ? 0 : of_.seen(row, k, keys);
    of_.add_mask(b_, key_head_, row, k, s, n);
    of_.drop(b_, key_head_, row, k, slopes, n);
    table_.attention_grad(s, slopes, n, lse_[row], level_[row]);
    of_.drop(b_, key_head_, row, k, s, n);
    std::fill(s + n, s + keys, C(0));
    std::fill(slopes + n, slopes + keys, C(0));
  }

  void store_keys(const C* from, T* to, int64_t width, int64_t first, int64_t keys) const {
    for (int64_t k = 0; k < keys; ++k) {
      const C* line = from + k * width;
      fill_groups(to + ((b_ * of_.keys + first + k) * of_.key_heads + key_head_) * width, width,
                  [=](int64_t i) { return line[i]; });
    }
  }
  void store_queries() const {
    const int64_t width = of_.width;
    const C scale = of_.scale;
    for (int64_t r = 0; r < of_.rows(); ++r) {
      const C* line = to_query_.data() + r * width;
      const int64_t at = (b_ * of_.queries + r % of_.queries) * of_.heads + of_.head(key_head_, r);
      fill_groups(with_.to_query + at * width, width, [=](int64_t i) { return line[i] * scale; });
    }
  }

  const Attention<T>& of_;
  const GradOperands<T>& with_;
  const RowTable<C>& table_ = row_table<C>();
  int64_t b_, key_head_;
  Scratch<C, 64> query_, grad_, to_query_, lse_, level_, weights_, slopes_, key_, key_turned_,
      value_turned_, to_key_, to_value_;
};

void attention_grad(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Attention<T> of(call, 9);
    const Converted<C> lse(&call.in(6)), grad_lse(&call.in(8));
    const GradOperands<T> with{&call.in(5),
                               &call.in(7),
                               lse.data(),
                               grad_lse.data(),
                               static_cast<T*>(call.out(0).data),
                               static_cast<T*>(call.out(1).data),
                               static_cast<T*>(call.out(2).data)};
    const int64_t work = of.rows() * of.keys * (of.width + of.value_width);
    parallel_for(0, of.batch * of.key_heads,
                 std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t pair = begin; pair < end; ++pair)
                     BackwardTask<T>(of, with, pair / of.key_heads, pair % of.key_heads).run();
                 });
  });
}

const char* wants_mask_grad(const oar_kernel_call* call) {
  return static_cast<const KernelCall*>(call)->arg(12).as_bool()
             ? "the gradient of the mask needs all scores"
             : nullptr;
}

}  // namespace

KernelList attention_kernels() {
  static const oar_kernel list[] = {
      {"attention", 1, "cpu:blocks", nullptr, kernel_entry<attention>},
      {"attention_grad", 1, "cpu:blocks", wants_mask_grad, kernel_entry<attention_grad>},
  };
  return list;
}

}  // namespace oar::cpu
