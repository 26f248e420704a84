// Attention, block by block: no matrix of scores is ever whole, so memory grows with the lengths, not
// with their product. 16-bit floats compute in float32.
#include "oar/backend/cpu/attention/attention.h"

#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/gemm/pack.h"
#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/rows/row_buffer.h"

namespace oar::cpu {
namespace {

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
        scores_(std::min(kQueryRows, count) * of.block),
        sums_(count, of.value_width, of.value_width) {}

  void run(T* out, C* lse) {
    of_.gather_rows(*of_.query, b_, key_head_, first_, count_, of_.scale, query_.data());
    // With few rows gemm does better with the operands as they are.
    const bool packs = count_ > kQueryRows / 2 || !std::is_same_v<T, C>;
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
      for (int64_t r = 0; r < count_; r += kQueryRows)
        if (k <= of_.last_seen(first_ + r, std::min(kQueryRows, count_ - r)))
          block(r, std::min(kQueryRows, count_ - r), k, keys, turned, straight);
    }
    for (int64_t r = 0; r < count_; ++r) {
      const int64_t row = first_ + r, head = of_.head(key_head_, row), i = row % of_.queries;
      lse[(b_ * of_.heads + head) * of_.queries + i] =
          sums_.finish(r, out + ((b_ * of_.queries + i) * of_.heads + head) * of_.value_width);
    }
  }

 private:
  void block(int64_t r, int64_t rows, int64_t k, int64_t keys, Matrix<const C> turned,
             Matrix<const C> straight) {
    gemm<C>(rows, keys, of_.width, {query_.data() + r * of_.width, of_.width, 1}, turned,
            {scores_.data(), keys, 1});
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = first_ + r + i, n = of_.seen(row, k, keys);
      C* s = scores_.data() + i * keys;
      of_.add_mask(b_, key_head_, row, k, s, n);
      sums_.weigh(r + i, s, n);
      of_.drop(b_, key_head_, row, k, s, n);
      std::fill(s + n, s + keys, C(0));
    }
    gemm<C>(rows, of_.value_width, keys, {scores_.data(), keys, 1}, straight,
            {sums_.row(r), of_.value_width, 1}, true);
  }

  const Attention<T>& of_;
  int64_t b_, key_head_, first_, count_;
  Scratch<C, 64> query_, scores_;
  RunningSums<C> sums_;
};

// One query, as when text is generated word by word: every key is read once for all heads
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
        scores_(rows_ * of.block),
        sums_(rows_, of.value_width, of.value_width) {}

  void run(T* out, C* lse) {
    for (int64_t h = 0; h < heads_; ++h)
      of_.gather_rows(*of_.query, b_, first_ + h, 0, of_.group, of_.scale,
                      query_.data() + h * of_.group * of_.width);
    const int64_t end = of_.causal ? std::min<int64_t>(of_.keys, 1) : of_.keys;
    for (int64_t k = 0; k < end; k += of_.block) block(k, std::min(of_.block, end - k));
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t at = b_ * of_.heads + first_ * of_.group + r;
      lse[at] = sums_.finish(r, out + at * of_.value_width);
    }
  }

 private:
  void block(int64_t first_key, int64_t keys) {
    const RowBuffer<T> key(heads_ * of_.width), value(heads_ * of_.value_width);
    const int64_t group = of_.group;
    for (int64_t k = 0; k < keys; ++k) {
      const C* row = key.read(at(*of_.key, first_key + k));
      for (int64_t g = 0; g < group; ++g)
        table_.head_scores(query_.data() + g * of_.width, group * of_.width, row, of_.width, heads_,
                           of_.width, scores_.data() + g * keys + k, group * keys);
    }
    for (int64_t r = 0; r < rows_; ++r) {
      C* s = scores_.data() + r * keys;
      of_.add_mask(b_, first_ + r / group, r % group, first_key, s, keys);
      sums_.weigh(r, s, keys);
      of_.drop(b_, first_ + r / group, r % group, first_key, s, keys);
    }
    for (int64_t k = 0; k < keys; ++k) {
      const C* row = value.read(at(*of_.value, first_key + k));
      for (int64_t g = 0; g < group; ++g)
        table_.head_sums(scores_.data() + g * keys + k, group * keys, row, of_.value_width, heads_,
                         of_.value_width, sums_.row(g), group * of_.value_width);
    }
  }
  const T* at(const oar_tensor& t, int64_t key) const {
    return static_cast<const T*>(t.data) + of_.offset(t, b_, key, first_);
  }

  const Attention<T>& of_;
  const RowTable<C>& table_ = row_table<C>();
  int64_t b_, first_, heads_, rows_;
  Scratch<C, 64> query_, scores_;
  RunningSums<C> sums_;
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
  const int64_t pairs = of.batch * of.key_heads, rows = of.rows();
  if (pairs == 0 || rows == 0) return;
  if (reads_in_order(of)) return decode(of, out, lse);
  const int64_t chunk = chunk_of(of);
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
  if (attention_on_tiles(call)) return;
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    forward(Attention<T>(call, 5), static_cast<T*>(call.out(0).data),
            static_cast<compute_t<T>*>(call.out(1).data));
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
      {"attention_grad", 1, "cpu:blocks", wants_mask_grad, training_entry<attention_grad>},
  };
  return list;
}

}  // namespace oar::cpu
