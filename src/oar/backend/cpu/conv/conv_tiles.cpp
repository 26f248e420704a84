// Convolutions as products on tiles of lines (conv_lines.h).
#include "oar/backend/cpu/conv/conv_tiles.h"

#include "oar/backend/cpu/conv/conv_lines.h"
#include "oar/backend/cpu/gemm/gemm_tiles.h"
#include "oar/backend/cpu/loops/compact.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/scratch.h"

namespace oar::cpu {
namespace {

using Half = bfloat16;

// Lines of two interleaved channels, as a right factor reads them: [phase][block][16 pairs][places][2].
void fill_pairs(const Lines& lines, const uint16_t* image, uint16_t* to) {
  const int64_t pairs = lines.blocks() * kTileRows, length = lines.length();
  const int64_t grain = std::max<int64_t>(1, 16384 / length);
  parallel_for(0, lines.phases() * pairs, grain, [&](int64_t begin, int64_t end) {
    const Scratch<uint16_t> even(length), odd(length);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % pairs * 2, phase = i / pairs;
      auto* out = reinterpret_cast<uint32_t*>(to) + i * length;
      const auto line = [&](int64_t c, const Scratch<uint16_t>& buffer) {
        if (c < lines.channels())
          lines.fill(image, c, phase, buffer.data());
        else
          std::fill_n(buffer.data(), length, uint16_t{0});
      };
      if (channel >= lines.channels()) {
        std::fill_n(out, length, uint32_t{0});
        continue;
      }
      line(channel, even);
      line(channel + 1, odd);
      for (int64_t q = 0; q < length; ++q) out[q] = even[q] | static_cast<uint32_t>(odd[q]) << 16;
    }
  });
}

// The layout of a kernel in memory: the distances of results, channels and positions.
struct KernelStrides {
  int64_t row, channel, place;
};

// The kernel as tiles of a left factor: [16 rows][tap][block of channels].
void pack_weights(const Lines& lines, const uint16_t* weight, KernelStrides strides, int64_t rows,
                  uint16_t* to) {
  const int64_t blocks = lines.blocks(), steps = lines.taps() * blocks;
  std::fill_n(to, tiles_across(rows) * steps * kTileSize, uint16_t{0});
  const Scratch<int64_t> channel_at(lines.channels());
  for (int64_t c = 0; c < lines.channels(); ++c)
    channel_at[c] =
        lines.image_channel(c) * strides.channel + lines.place_of_channel(c) * strides.place;
  const int64_t grain = std::max<int64_t>(1, 8192 / (steps * kTileDepth));
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t tap = 0; tap < lines.taps(); ++tap) {
          const uint16_t* from = weight + r * strides.row + lines.place_of_tap(tap) * strides.place;
          uint16_t* line = to + (r / kTileRows * steps + tap * blocks + block) * kTileSize +
                           r % kTileRows * kTileDepth;
          const int64_t first = block * kTileDepth;
          const int64_t count = std::min(kTileDepth, lines.channels() - first);
          for (int64_t c = 0; c < count; ++c) line[c] = from[channel_at[first + c]];
        }
  });
}

class Forward {
 public:
  Forward(const TileTable& table, const ConvShape& s, const Lines& lines)
      : table_(table),
        s_(s),
        lines_(lines),
        steps_(lines.taps() * lines.blocks()),
        at_(2 * steps_) {
    const int64_t block = kTileRows * lines.length() * 2;
    for (int64_t i = 0; i < steps_; ++i) {
      const int64_t tap = i / lines.blocks(), c = i % lines.blocks();
      at_[i] = i * kTileSize;
      at_[steps_ + i] = (lines.phase(tap) * lines.blocks() + c) * block + lines.distance(tap) * 2;
    }
  }
  // One image and group. `bias` may be null.
  void run(const uint16_t* pairs, const uint16_t* weights, const float* bias, uint16_t* out) const {
    const int64_t wide = ceil_div(lines_.results(), kPanel);
    const int64_t tall = ceil_div(s_.out_channels, kPanel);
    // The larger factor is read once.
    const bool by_rows = s_.out_channels * steps_ * kTileDepth >
                         lines_.blocks() * kTileDepth * lines_.phases() * lines_.length();
    const int64_t outer = by_rows ? tall : wide, inner = by_rows ? wide : tall;
    parallel_for(0, outer, 1, [&](int64_t begin, int64_t end) {
      const Tiles tiles(table_);
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < inner; ++j)
          panel(by_rows ? i : j, by_rows ? j : i, pairs, weights, bias, out);
    });
  }

 private:
  static constexpr int64_t kPanel = 2 * kTileRows;

  void panel(int64_t i, int64_t j, const uint16_t* pairs, const uint16_t* weights,
             const float* bias, uint16_t* out) const {
    alignas(64) float sums[kPanel * kPanel];
    const int64_t rows = std::min(kPanel, s_.out_channels - i * kPanel);
    const int64_t places = std::min(kPanel, lines_.results() - j * kPanel);
    const uint16_t* left = weights + i * 2 * steps_ * kTileSize;
    const uint16_t* right = pairs + j * kPanel * 2;
    table_.multiply({{left, rows > kTileRows ? left + steps_ * kTileSize : nullptr},
                     {right, places > kTileRows ? right + kTileRows * 2 : nullptr},
                     2 * kTileDepth,
                     lines_.length() * 4,
                     at_.data(),
                     at_.data() + steps_,
                     steps_,
                     sums,
                     kPanel,
                     false,
                     rows});
    Segment segments[kPanel];
    const int64_t count = lines_.segments(j * kPanel, places, segments);
    for (int64_t r = 0; r < rows; ++r) {
      float* line = sums + r * kPanel;
      const int64_t row = i * kPanel + r;
      if (bias)
        for (int64_t q = 0; q < kPanel; ++q) line[q] += bias[row];
      for (int64_t k = 0; k < count; ++k)
        table_.narrow(line + segments[k].from, segments[k].count,
                      out + row * s_.pixels() + segments[k].to);
    }
  }

  const TileTable& table_;
  const ConvShape& s_;
  const Lines& lines_;
  int64_t steps_;
  Scratch<int64_t> at_;
};

// Groups of the kernel are `group` apart.
void forward(const TileTable& table, const ConvShape& s, const int64_t (&spread)[3],
             const uint16_t* x, const uint16_t* weight, KernelStrides strides, int64_t group,
             const float* bias, uint16_t* out) {
  const Lines lines(s, spread);
  const Forward product(table, s, lines);
  const int64_t each = packed_size(s.out_channels, kTileDepth) * lines.taps() * lines.blocks();
  const Scratch<uint16_t> weights(s.groups * each);
  for (int64_t g = 0; g < s.groups; ++g)
    pack_weights(lines, weight + g * group, strides, s.out_channels, weights.data() + g * each);
  for_each_group(s, [&](int64_t n, int64_t g) {
    const int64_t index = n * s.groups + g;
    const Scratch<uint16_t> pairs(lines.phases() * lines.blocks() * kTileDepth * lines.length());
    fill_pairs(lines, x + index * s.channels * s.plane(), pairs.data());
    product.run(pairs.data(), weights.data() + g * each, bias ? bias + g * s.out_channels : nullptr,
                out + index * s.out_channels * s.pixels());
  });
}

// Sums over the pixels, in float: [tap][channels][out_channels] of one group.
void add_weight_gradient(const TileTable& table, const ConvShape& s, const Lines& lines,
                         const uint16_t* x, const uint16_t* grad, float* sums, bool accumulate) {
  const int64_t length = lines.length(), results = lines.results();
  const int64_t rows = tiles_across(lines.channels()) * kTileRows;
  const int64_t columns = tiles_across(s.out_channels) * kTileRows;
  const Scratch<uint16_t> image(lines.phases() * rows * length);
  parallel_for(0, lines.phases() * rows, std::max<int64_t>(1, 16384 / length),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   uint16_t* to = image.data() + i * length;
                   if (i % rows < lines.channels())
                     lines.fill(x, i % rows, i / rows, to);
                   else
                     std::fill_n(to, length, uint16_t{0});
                 }
               });
  // The gradient on the line, zeros where there is no result, with the positions as the depth.
  const Scratch<uint16_t> right(packed_size(s.out_channels, results));
  const int64_t each = tile_steps(results) * kTileSize;
  parallel_for(0, columns / kTileRows, 1, [&](int64_t begin, int64_t end) {
    const int64_t pitch = tile_steps(results) * kTileDepth;
    const Scratch<uint16_t> flat(kTileRows * pitch);
    for (int64_t tile = begin; tile < end; ++tile) {
      std::fill_n(flat.data(), kTileRows * pitch, uint16_t{0});
      const int64_t count = std::min(kTileRows, s.out_channels - tile * kTileRows);
      for (int64_t r = 0; r < count; ++r)
        lines.place_results(grad + (tile * kTileRows + r) * s.pixels(), flat.data() + r * pitch);
      pack_right(table, reinterpret_cast<const Half*>(flat.data()), pitch, true, count, results,
                 right.data() + tile * each);
    }
  });
  const int64_t across = ceil_div(rows, 2 * kTileRows);
  parallel_for(0, lines.taps() * across, 1, [&](int64_t begin, int64_t end) {
    const Tiles tiles(table);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t tap = i / across, first = i % across * 2 * kTileRows;
      const uint16_t* from =
          image.data() + (lines.phase(tap) * rows + first) * length + lines.distance(tap);
      tile_block(table, std::min(2 * kTileRows, rows - first), columns, results,
                 {from, kTileRows * length, kTileDepth, 2 * length},
                 {right.data(), each, kTileSize, 2 * kTileDepth},
                 sums + (tap * rows + first) * columns, columns, accumulate);
    }
  });
}

// From [tap][channels][out_channels] to [out_channels][channels][places].
void store_weights(const Lines& lines, const ConvShape& s, const float* sums, int64_t rows,
                   int64_t columns, uint16_t* to) {
  parallel_for(0, columns / kTileRows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile)
      for (int64_t c = 0; c < lines.channels(); ++c)
        for (int64_t tap = 0; tap < lines.taps(); ++tap) {
          const int64_t first = tile * kTileRows;
          const float* from = sums + (tap * rows + c) * columns + first;
          uint16_t* at = to + first * s.depth() + lines.image_channel(c) * s.taps() +
                         lines.place_of_channel(c) + lines.place_of_tap(tap);
          const int64_t count = std::min(kTileRows, s.out_channels - first);
          for (int64_t o = 0; o < count; ++o) at[o * s.depth()] = Half(from[o]).bits;
        }
  });
}

void weight_gradient(const TileTable& table, const ConvShape& s, const uint16_t* x,
                     const uint16_t* grad, uint16_t* out) {
  const Lines lines(s, {1, 1, 1});
  const int64_t rows = tiles_across(lines.channels()) * kTileRows;
  const int64_t columns = tiles_across(s.out_channels) * kTileRows;
  const Scratch<float> sums(lines.taps() * rows * columns);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t n = 0; n < s.batch; ++n)
      add_weight_gradient(table, s, lines, x + (n * s.groups + g) * s.channels * s.plane(),
                          grad + (n * s.groups + g) * s.out_channels * s.pixels(), sums.data(),
                          n > 0);
    store_weights(lines, s, sums.data(), rows, columns, out + g * s.out_channels * s.depth());
  }
}

// ---- Calls

// Without edges, all pixels are one row.
ConvShape flattened(ConvShape s) {
  if (!s.is_pointwise()) return s;
  s.x.size = s.x.out = s.plane();
  s.z = s.y = {};
  return s;
}

// For a pointwise convolution, each image is a matrix [channels, pixels].
void multiply_images(const ConvShape& s, int64_t rows, int64_t depth, Matrix<const Half> weight,
                     const oar_tensor& x, const oar_tensor& out) {
  for_each_group(s, [&](int64_t n, int64_t g) {
    const int64_t index = n * s.groups + g;
    const Half* from = static_cast<const Half*>(x.data) + index * depth * s.pixels();
    Half* to = static_cast<Half*>(out.data) + index * rows * s.pixels();
    gemm<Half>(rows, s.pixels(), depth,
               {weight.data + g * s.out_channels * s.channels, weight.row, weight.column},
               {from, s.pixels(), 1}, {to, s.pixels(), 1});
  });
}

const uint16_t* halves(const oar_tensor& t) { return static_cast<const uint16_t*>(t.data); }
uint16_t* halves_to(const oar_tensor& t) { return static_cast<uint16_t*>(t.data); }

// Multiply-adds, and channels of a group, below which tiles do not pay.
constexpr double kLeastWork = 1 << 18;
constexpr int64_t kLeastChannels = 8;

// The operands: image, kernel and result of the convolution, whichever of them the call computes.
const char* refuse(const KernelCall& call, const oar_tensor& x, const oar_tensor& weight,
                   const oar_tensor& out) {
  if (call.dtype() != DType::BFloat16) return "tiles are for bfloat16";
  if (call.arg(7).as_bool()) return "the channels are last";
  if (x.numel == 0 || weight.numel == 0 || out.numel == 0) return "there is nothing to do";
  const int64_t window = weight.numel / weight.shape[0];
  if (static_cast<double>(out.numel) * static_cast<double>(window) < kLeastWork)
    return "the convolution is small";
  const int64_t groups = call.arg(6).as_int();
  if (groups > 1 && std::min(weight.shape[0] / groups, weight.shape[1]) < kLeastChannels)
    return "so few channels fill no tile";
  if (!is_contiguous(x) || !is_contiguous(weight) || !is_contiguous(out))
    return "an operand is not dense";
  return tile_table() == nullptr ? "this machine has no tiles" : nullptr;
}

}  // namespace

const char* tiles_refuse_conv(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  return refuse(call, call.in(0), call.in(1), call.out());
}
const char* tiles_refuse_conv_input_grad(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  if (call.out().shape[1] < kLeastChannels) return "so few channels fill no tile";
  return refuse(call, call.out(), call.in(0), call.in(1));
}
const char* tiles_refuse_conv_weight_grad(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  return refuse(call, call.in(0), call.out(), call.in(1));
}

void conv_on_tiles(KernelCall& call) {
  const ConvShape s = flattened(conv_shape(call, 3, call.in(0), call.in(1), call.out()));
  const oar_tensor* given = call.has(2) ? &call.in(2) : nullptr;
  if (s.is_pointwise() && !given)
    return multiply_images(s, s.out_channels, s.channels,
                           {static_cast<const Half*>(call.in(1).data), s.channels, 1}, call.in(0),
                           call.out());
  const Scratch<float> bias(given ? given->numel : 0);
  for (int64_t i = 0; given && i < given->numel; ++i)
    bias[i] = static_cast<const Half*>(given->data)[i * given->strides[0]];
  forward(*tile_table(), s, {1, 1, 1}, halves(call.in(0)), halves(call.in(1)),
          {s.depth(), s.taps(), 1}, s.out_channels * s.depth(), given ? bias.data() : nullptr,
          halves_to(call.out()));
}

// A convolution of the gradient, with zeros between its pixels, and the kernel flipped.
void conv_input_grad_on_tiles(KernelCall& call) {
  const ConvShape s = flattened(conv_shape(call, 3, call.out(), call.in(0), call.in(1)));
  if (s.is_pointwise())
    return multiply_images(s, s.channels, s.out_channels,
                           {static_cast<const Half*>(call.in(0).data), 1, s.channels}, call.in(1),
                           call.out());
  ConvShape r = reversed(s);
  r.z.stride = r.y.stride = r.x.stride = 1;
  forward(*tile_table(), r, {s.z.stride, s.y.stride, s.x.stride}, halves(call.in(1)),
          halves(call.in(0)) + s.taps() - 1, {s.taps(), s.depth(), -1}, s.out_channels * s.depth(),
          nullptr, halves_to(call.out()));
}

void conv_weight_grad_on_tiles(KernelCall& call) {
  const ConvShape s = flattened(conv_shape(call, 3, call.in(0), call.out(), call.in(1)));
  weight_gradient(*tile_table(), s, halves(call.in(0)), halves(call.in(1)), halves_to(call.out()));
}

}  // namespace oar::cpu
