// Attention of bfloat16 with its products on tiles. Scores, weights' sums and gradients add up in
// float; weights are rounded to bfloat16 where they are multiplied.
#include "oar/backend/cpu/attention/attention.h"
#include "oar/backend/cpu/gemm/gemm_tiles.h"

namespace oar::cpu {
namespace {

using Half = bfloat16;
using Buffer = Scratch<uint16_t, 64>;
using Floats = Scratch<float, 64>;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
int64_t whole_tiles(int64_t n) { return round_up(n, kTileRows); }
int64_t whole_steps(int64_t n) { return round_up(n, kTileDepth); }

TileFactor packed(const uint16_t* data, int64_t depth) {
  return {data, tile_steps(depth) * kTileSize, kTileSize, 2 * kTileDepth};
}
// Rows of a left factor as they are, `pitch` elements apart.
TileFactor plain_rows(const uint16_t* data, int64_t pitch) {
  return {data, kTileRows * pitch, kTileDepth, 2 * pitch};
}
// A right factor with pairs of rows interleaved; such lines are `pitch` elements apart.
TileFactor paired_rows(const uint16_t* data, int64_t pitch) {
  return {data, 2 * kTileRows, kTileDepth / 2 * pitch, 2 * pitch};
}

// Rows of a tensor laid out as the query, with zeros up to whole tiles and steps.
class HalfRows {
 public:
  HalfRows(const Attention<Half>& of, const oar_tensor& t, int64_t b, int64_t key_head,
           int64_t first, int64_t count)
      : pitch_(whole_steps(t.shape[3])), data_(whole_steps(count) * pitch_) {
    std::fill_n(data_.data(), whole_steps(count) * pitch_, uint16_t{0});
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = first + r;
      const Half* from = static_cast<const Half*>(t.data) +
                         of.offset(t, b, row % of.queries, of.head(key_head, row));
      std::copy_n(reinterpret_cast<const uint16_t*>(from), t.shape[3], data_.data() + r * pitch_);
    }
  }
  const uint16_t* row(int64_t r) const { return data_.data() + r * pitch_; }
  TileFactor from(int64_t r) const { return plain_rows(row(r), pitch_); }
  int64_t pitch() const { return pitch_; }

 private:
  int64_t pitch_;
  Buffer data_;
};

// The rows [first, first + count) of one head of keys.
class ForwardTask {
 public:
  ForwardTask(const TileTable& table, const Attention<Half>& of, int64_t b, int64_t key_head,
              int64_t first, int64_t count)
      : table_(table),
        of_(of),
        b_(b),
        key_head_(key_head),
        first_(first),
        count_(count),
        pitch_(whole_steps(of.block)),
        query_(of, *of.query, b, key_head, first, count),
        scores_(kQueryRows * pitch_),
        weights_(kQueryRows * pitch_),
        sums_(whole_tiles(count), of.value_width, whole_tiles(of.value_width)) {}

  void run(Half* out, float* lse) {
    const Tiles tiles(table_);
    const Buffer key(packed_size(of_.block, of_.width)),
        value(packed_size(of_.value_width, of_.block));
    const int64_t last = std::min(of_.last_seen(first_, count_), of_.keys - 1);
    for (int64_t k = 0; k <= last; k += of_.block) {
      const int64_t keys = std::min(of_.block, of_.keys - k);
      const auto from_key = of_.key_matrix(*of_.key, b_, key_head_, k);
      const auto from_value = of_.key_matrix(*of_.value, b_, key_head_, k);
      pack_right(table_, from_key.data, from_key.row, true, keys, of_.width, key.data());
      pack_right(table_, from_value.data, from_value.row, false, of_.value_width, keys,
                 value.data());
      for (int64_t r = 0; r < count_; r += kQueryRows) {
        const int64_t rows = std::min(kQueryRows, count_ - r);
        if (k <= of_.last_seen(first_ + r, rows)) block(r, rows, k, keys, key, value);
      }
    }
    for (int64_t r = 0; r < count_; ++r) {
      const int64_t row = first_ + r, head = of_.head(key_head_, row), i = row % of_.queries;
      lse[(b_ * of_.heads + head) * of_.queries + i] =
          sums_.finish(r, out + ((b_ * of_.queries + i) * of_.heads + head) * of_.value_width);
    }
  }

 private:
  void block(int64_t r, int64_t rows, int64_t k, int64_t keys, const Buffer& key,
             const Buffer& value) {
    tile_block(table_, rows, keys, of_.width, query_.from(r), packed(key.data(), of_.width),
               scores_.data(), pitch_, false);
    const int64_t wide = whole_steps(keys);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = first_ + r + i, n = of_.seen(row, k, keys);
      float* s = scores_.data() + i * pitch_;
      rows_.scale(s, n, of_.scale);
      of_.add_mask(b_, key_head_, row, k, s, n);
      sums_.weigh(r + i, s, n);
      of_.drop(b_, key_head_, row, k, s, n);
      std::fill(s + n, s + wide, 0.0F);
      table_.narrow(s, wide, weights_.data() + i * pitch_);
    }
    tile_block(table_, rows, of_.value_width, keys, plain_rows(weights_.data(), pitch_),
               packed(value.data(), keys), sums_.row(r), whole_tiles(of_.value_width), true);
  }

  const TileTable& table_;
  const RowTable<float>& rows_ = row_table<float>();
  const Attention<Half>& of_;
  int64_t b_, key_head_, first_, count_, pitch_;
  HalfRows query_;
  Floats scores_;
  Buffer weights_;
  RunningSums<float> sums_;
};

struct GradOperands {
  const oar_tensor *out, *grad;
  const float *lse, *grad_lse;  // [batch, heads, queries]
  Half *to_query, *to_key, *to_value;
};

// Everything of one head of keys. Gradients of keys and values are summed transposed, since the weights
// are a right factor as they are.
class BackwardTask {
 public:
  BackwardTask(const TileTable& table, const Attention<Half>& of, const GradOperands& with,
               int64_t b, int64_t key_head)
      : table_(table),
        of_(of),
        with_(with),
        b_(b),
        key_head_(key_head),
        pitch_(whole_steps(of.block)),
        query_(of, *of.query, b, key_head, 0, of.rows()),
        grad_(of, *with.grad, b, key_head, 0, of.rows()),
        query_turned_(packed_size(of.width, of.rows())),
        grad_turned_(packed_size(of.value_width, of.rows())),
        key_(packed_size(of.width, of.block)),
        key_turned_(packed_size(of.block, of.width)),
        value_turned_(packed_size(of.block, of.value_width)),
        slope_rows_(kQueryRows * pitch_),
        slope_pairs_(kQueryRows * pitch_),
        weight_pairs_(kQueryRows * pitch_),
        of_rows_(static_cast<size_t>(of.rows())),
        level_(of.rows()),
        weights_(kQueryRows * pitch_),
        slopes_(kQueryRows * pitch_),
        to_query_(whole_tiles(of.rows()) * whole_tiles(of.width)),
        to_key_(whole_tiles(of.width) * pitch_),
        to_value_(whole_tiles(of.value_width) * pitch_) {}

  void run() {
    const Tiles tiles(table_);
    prepare();
    for (int64_t k = 0; k < of_.keys; k += of_.block) {
      const int64_t keys = std::min(of_.block, of_.keys - k);
      const auto key = of_.key_matrix(*of_.key, b_, key_head_, k);
      const auto value = of_.key_matrix(*of_.value, b_, key_head_, k);
      pack_right(table_, key.data, key.row, false, of_.width, keys, key_.data());
      pack_right(table_, key.data, key.row, true, keys, of_.width, key_turned_.data());
      pack_right(table_, value.data, value.row, true, keys, of_.value_width, value_turned_.data());
      std::fill_n(to_key_.data(), whole_tiles(of_.width) * pitch_, 0.0F);
      std::fill_n(to_value_.data(), whole_tiles(of_.value_width) * pitch_, 0.0F);
      for (int64_t r = 0; r < of_.rows(); r += kQueryRows) {
        const int64_t rows = std::min(kQueryRows, of_.rows() - r);
        if (k <= of_.last_seen(r, rows)) block(r, rows, k, keys);
      }
      store_keys(to_key_.data(), with_.to_key, of_.width, of_.scale, k, keys);
      store_keys(to_value_.data(), with_.to_value, of_.value_width, 1, k, keys);
    }
    store_queries();
  }

 private:
  void prepare() {
    const int64_t rows = of_.rows(), width = of_.value_width;
    const auto halves = [](const uint16_t* from) { return reinterpret_cast<const Half*>(from); };
    pack_left(table_, halves(query_.row(0)), query_.pitch(), false, of_.width, rows,
              query_turned_.data());
    pack_left(table_, halves(grad_.row(0)), grad_.pitch(), false, width, rows, grad_turned_.data());
    const Scratch<float> out(2 * width);
    for (int64_t r = 0; r < rows; ++r) {
      of_.gather_rows(*with_.out, b_, key_head_, r, 1, 1, out.data());
      of_.gather_rows(*with_.grad, b_, key_head_, r, 1, 1, out.data() + width);
      const int64_t at = (b_ * of_.heads + of_.head(key_head_, r)) * of_.queries + r % of_.queries;
      float dot = 0;
      for (int64_t i = 0; i < width; ++i) dot += out[width + i] * out[i];
      level_[r] = dot - with_.grad_lse[at];
      of_rows_[static_cast<size_t>(r)] = row_weights(of_, b_, key_head_, r, with_.lse[at]);
    }
    std::fill_n(to_query_.data(), whole_tiles(rows) * whole_tiles(of_.width), 0.0F);
  }

  void block(int64_t r, int64_t rows, int64_t k, int64_t keys) {
    const int64_t width = of_.width, value_width = of_.value_width;
    tile_block(table_, rows, keys, width, query_.from(r), packed(key_turned_.data(), width),
               weights_.data(), pitch_, false);
    tile_block(table_, rows, keys, value_width, grad_.from(r),
               packed(value_turned_.data(), value_width), slopes_.data(), pitch_, false);
    for (int64_t i = 0; i < whole_steps(rows); ++i) weigh(r, i, rows, k, keys);
    for (int64_t i = 0; i < whole_steps(rows); i += 2) {
      const auto pair = [&](const Floats& from, const Buffer& to) {
        const float* even = from.data() + i * pitch_;
        table_.narrow_pair(even, even + pitch_, whole_steps(keys), to.data() + i * pitch_);
      };
      pair(weights_, weight_pairs_);
      pair(slopes_, slope_pairs_);
    }
    const int64_t depth = of_.rows();
    tile_block(table_, value_width, keys, rows, turned(grad_turned_, r, depth),
               paired_rows(weight_pairs_.data(), 2 * pitch_), to_value_.data(), pitch_, true);
    tile_block(table_, width, keys, rows, turned(query_turned_, r, depth),
               paired_rows(slope_pairs_.data(), 2 * pitch_), to_key_.data(), pitch_, true);
    tile_block(table_, rows, width, keys, plain_rows(slope_rows_.data(), pitch_),
               packed(key_.data(), keys), to_query_.data() + r * whole_tiles(width),
               whole_tiles(width), true);
  }
  // Queries from r on, a multiple of the steps, as the depth of a left factor.
  static TileFactor turned(const Buffer& from, int64_t r, int64_t depth) {
    TileFactor all = packed(from.data(), depth);
    all.data += r / kTileDepth * kTileSize;
    return all;
  }

  // Row i of a block that starts at query r: from scores and the weights' gradients to weights and the
  // scores' gradients; zeros after its keys, and in rows after the last.
  void weigh(int64_t r, int64_t i, int64_t rows, int64_t k, int64_t keys) {
    float *s = weights_.data() + i * pitch_, *slopes = slopes_.data() + i * pitch_;
    const int64_t row = r + i, wide = whole_steps(keys);
    const int64_t n = i >= rows ? 0 : of_.seen(row, k, keys);
    if (n > 0) {
      rows_.scale(s, n, of_.scale);
      of_.add_mask(b_, key_head_, row, k, s, n);
      of_.drop(b_, key_head_, row, k, slopes, n);
      const RowWeights<float>& of_row = of_rows_[static_cast<size_t>(row)];
      rows_.attention_grad(s, slopes, n, of_row.shift, level_[row]);
      if (of_row.share != 1) {
        rows_.scale(s, n, of_row.share);
        rows_.scale(slopes, n, of_row.all_hidden ? 0.0F : of_row.share);
      }
      of_.drop(b_, key_head_, row, k, s, n);
    }
    std::fill(s + n, s + wide, 0.0F);
    std::fill(slopes + n, slopes + wide, 0.0F);
    table_.narrow(slopes, wide, slope_rows_.data() + i * pitch_);
  }

  void store_keys(const float* from, Half* to, int64_t width, float factor, int64_t first,
                  int64_t keys) const {
    const Floats lines(keys * width);
    transpose_into(from, pitch_, width, keys, lines.data(), width);
    for (int64_t k = 0; k < keys; ++k) {
      const float* line = lines.data() + k * width;
      fill_groups(to + ((b_ * of_.keys + first + k) * of_.key_heads + key_head_) * width, width,
                  [=](int64_t i) { return line[i] * factor; });
    }
  }
  void store_queries() const {
    const int64_t width = of_.width;
    const float scale = of_.scale;
    for (int64_t r = 0; r < of_.rows(); ++r) {
      const float* line = to_query_.data() + r * whole_tiles(width);
      const int64_t at = (b_ * of_.queries + r % of_.queries) * of_.heads + of_.head(key_head_, r);
      fill_groups(with_.to_query + at * width, width, [=](int64_t i) { return line[i] * scale; });
    }
  }

  const TileTable& table_;
  const RowTable<float>& rows_ = row_table<float>();
  const Attention<Half>& of_;
  const GradOperands& with_;
  int64_t b_, key_head_, pitch_;
  HalfRows query_, grad_;
  Buffer query_turned_, grad_turned_, key_, key_turned_, value_turned_, slope_rows_, slope_pairs_,
      weight_pairs_;
  std::vector<RowWeights<float>> of_rows_;
  Floats level_, weights_, slopes_, to_query_, to_key_, to_value_;
};

// Null if tiles do not fit this call: it is small, or its rows are not dense.
const TileTable* table_for(const KernelCall& call) {
  if (call.dtype() != DType::BFloat16) return nullptr;
  const oar_tensor &q = call.in(0), &k = call.in(1), &v = call.in(2);
  const int64_t group = k.shape[2] == 0 ? 0 : q.shape[2] / k.shape[2];
  const bool small = group * q.shape[1] < kTileRows || k.shape[1] < kTileRows;
  const bool dense = q.strides[3] == 1 && k.strides[3] == 1 && v.strides[3] == 1;
  if (small || !dense || q.shape[3] == 0 || v.shape[3] == 0 || q.shape[0] == 0) return nullptr;
  return tile_table();
}

}  // namespace

bool attention_on_tiles(KernelCall& call) {
  const TileTable* table = table_for(call);
  if (table == nullptr) return false;
  Attention<Half> of(call, 5);
  of.block = round_up(of.block, kTileDepth);
  auto* out = static_cast<Half*>(call.out(0).data);
  auto* lse = static_cast<float*>(call.out(1).data);
  const int64_t rows = of.rows(), chunk = chunk_of(of), chunks = (rows + chunk - 1) / chunk;
  parallel_for(0, of.batch * of.key_heads * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t pair = task / chunks, first = task % chunks * chunk;
      ForwardTask(*table, of, pair / of.key_heads, pair % of.key_heads, first,
                  std::min(chunk, rows - first))
          .run(out, lse);
    }
  });
  return true;
}

bool attention_grad_on_tiles(KernelCall& call) {
  const TileTable* table = table_for(call);
  if (table == nullptr || call.in(7).strides[3] != 1) return false;
  Attention<Half> of(call, 9);
  of.block = round_up(of.block, kTileDepth);
  const Converted<float> lse(&call.in(6)), grad_lse(&call.in(8));
  const GradOperands with{&call.in(5),
                          &call.in(7),
                          lse.data(),
                          grad_lse.data(),
                          static_cast<Half*>(call.out(0).data),
                          static_cast<Half*>(call.out(1).data),
                          static_cast<Half*>(call.out(2).data)};
  parallel_for(0, of.batch * of.key_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair)
      BackwardTask(*table, of, with, pair / of.key_heads, pair % of.key_heads).run();
  });
  return true;
}

}  // namespace oar::cpu
