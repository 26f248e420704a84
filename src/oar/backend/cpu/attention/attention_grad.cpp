// The derivative of attention, block by block as the op itself: weights are recomputed from the
// scores and the saved logarithm.
#include "oar/backend/cpu/attention/attention.h"

namespace oar::cpu {
namespace {

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
        rows_(static_cast<size_t>(of.rows())),
        level_(of.rows()),
        weights_(kQueryRows * of.block),
        slopes_(kQueryRows * of.block),
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
      for (int64_t r = 0; r < of_.rows(); r += kQueryRows) {
        const int64_t rows = std::min(kQueryRows, of_.rows() - r);
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
      rows_[static_cast<size_t>(r)] = row_weights(of_, b_, key_head_, r, with_.lse[at]);
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
    const RowWeights<C>& of_row = rows_[static_cast<size_t>(row)];
    const int64_t n = of_.seen(row, k, keys);
    of_.add_mask(b_, key_head_, row, k, s, n);
    of_.drop(b_, key_head_, row, k, slopes, n);
    table_.attention_grad(s, slopes, n, of_row.shift, level_[row]);
    if (of_row.share != 1) {
      table_.scale(s, n, of_row.share);
      table_.scale(slopes, n, of_row.all_hidden ? C(0) : of_row.share);
    }
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
  Scratch<C, 64> query_, grad_, to_query_;
  std::vector<RowWeights<C>> rows_;
  Scratch<C, 64> level_, weights_, slopes_, key_, key_turned_, value_turned_, to_key_, to_value_;
};

}  // namespace

void attention_grad(KernelCall& call) {
  if (attention_grad_on_tiles(call)) return;
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

}  // namespace oar::cpu
