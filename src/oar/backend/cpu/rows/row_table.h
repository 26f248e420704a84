// Loops over rows of numbers, compiled for several instruction sets. Which one runs is chosen once.
#pragma once

// In a deployed library: what only training calls is null, and doubles run in the base set alone.
#if defined(OAR_DEPLOY)
#define OAR_TRAINING_LOOP(function) nullptr
#define OAR_AVX512_DOUBLES(table) \
  {                               \
  }
#else
#define OAR_TRAINING_LOOP(function) function
#define OAR_AVX512_DOUBLES(table) table
#endif

namespace oar::cpu {

// The number of lanes does not depend on the width of the vectors, so results do not depend on the machine.
template <class T>
struct RowTable {
  // The largest element that is a number; -infinity for none.
  T (*max)(const T* x, long n);
  // out[i] = exp(x[i] - shift), and their sum. `out` may be x, or null if only the sum is needed.
  T (*exp_sum)(const T* x, T* out, long n, T shift);
  void (*scale)(T* x, long n, T factor);
  T (*sum)(const T* x, long n);
  T (*dot)(const T* x, const T* y, long n);
  // out = (x - high) - log_total.
  void (*log_softmax)(const T* x, T* out, long n, T high, T log_total);
  // (grad - total) * out and grad - exp(out) * total.
  void (*softmax_grad)(const T* out, const T* grad, T* to, long n, T total);
  void (*log_softmax_grad)(const T* out, const T* grad, T* to, long n, T total);

  // The sum of (x - mean)².
  T (*spread)(const T* x, long n, T mean);
  // out = (x - mean) * inv, times weight, plus bias, if they are not null. As in the ones below,
  // `stream` bypasses the caches; the caller issues a fence before others read.
  void (*normalise)(const T* x, T* out, long n, T mean, T inv, const T* weight, const T* bias,
                    bool stream);
  // g = grad, times weight if it is not null: the sums of g and of g * (x - mean).
  void (*norm_sums)(const T* grad, const T* weight, const T* x, long n, T mean, T* level, T* slope);
  // to = inv * (g - level - (x - mean) * slope).
  void (*norm_grad)(const T* grad, const T* weight, const T* x, T* to, long n, T mean, T inv,
                    T level, T slope, bool stream);
  // (x - mean) * scale + shift and grad * of_grad + (x - mean) * of_x + of_one: one channel.
  void (*affine)(const T* x, T* out, long n, T mean, T scale, T shift, bool stream);
  void (*affine_grad)(const T* grad, const T* x, T* to, long n, T mean, T of_grad, T of_x, T of_one,
                      bool stream);
  // weight += grad * (x - mean) * inv, bias += grad.
  void (*norm_affine)(const T* grad, const T* x, long n, T mean, T inv, T* weight, T* bias);
  // p[i] = exp(p[i] - lse), then dp[i] = p[i] * (dp[i] - delta): a row of attention's derivative.
  void (*attention_grad)(T* p, T* dp, long n, T lse, T delta);
  // One key for several heads: scores[h * score_step] = query[h] · key[h], and sums[h] += weight of h
  // times value[h], each with the heads a step apart.
  void (*head_scores)(const T* query, long query_step, const T* key, long key_step, long heads,
                      long width, T* scores, long score_step);
  void (*head_sums)(const T* weights, long weight_step, const T* value, long value_step, long heads,
                    long width, T* sums, long sum_step);

  // Cells of recurrent layers, one row of a batch. Gates are `n` apart: those of the input in x,
  // those of the state before in h.
  void (*tanh_cell)(const T* x, const T* h, T* state, long n);
  void (*gru_cell)(const T* x, const T* h, const T* before, T* state, long n);
  void (*lstm_cell)(const T* x, const T* h, const T* before, T* cell, T* hidden, long n);
  // Their derivatives. `grad` is the gradient of the state and becomes the part of that of the previous
  // state that bypasses the gates; to_x and to_h are the gradients of the gates. For lstm it is
  // the same with the cell, and `hidden` becomes the state before projection.
  void (*tanh_grad)(const T* x, const T* h, const T* grad, T* to, long n);
  void (*gru_grad)(const T* x, const T* h, const T* before, T* grad, T* to_x, T* to_h, long n);
  void (*lstm_grad)(const T* x, const T* h, const T* before, const T* cell, const T* of_hidden,
                    T* grad, T* to, T* hidden, long n);
};

extern const RowTable<float> kBaseRowsFloat;
extern const RowTable<double> kBaseRowsDouble;
extern const RowTable<float> kAvx512RowsFloat;  // empty without AVX-512
extern const RowTable<double> kAvx512RowsDouble;

// The one for this machine.
template <class T>
const RowTable<T>& row_table();

}  // namespace oar::cpu
