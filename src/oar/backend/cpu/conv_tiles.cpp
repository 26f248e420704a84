// An image with its padding is one long line per channel, and a place of the kernel is a distance on it:
// result q is the sum over places t of weight(t) · line(q + distance(t)). Results at the line's ends of
// rows mean nothing and are left out. With a stride, every stride-th pixel makes a line of its own.
#include "oar/backend/cpu/conv_tiles.h"

#include "oar/backend/cpu/compact.h"
#include "oar/backend/cpu/conv_shape.h"
#include "oar/backend/cpu/gemm_tiles.h"
#include "oar/backend/cpu/loops.h"
#include "oar/backend/cpu/scratch.h"

namespace oar::cpu {
namespace {

using Half = bfloat16;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Segment {
  int64_t from, count, to;  // places on the line, and of the first in the result
};

// The lines of one image and group. Few channels meet the columns of the kernel while lines are made
// (`folds`): then each column of the kernel has channels of its own.
class Lines {
 public:
  // `spread`: so far apart are the pixels, with zeros between them.
  Lines(const ConvShape& s, const int64_t (&spread)[3])
      : s_(s), spread_{spread[0], spread[1], spread[2]} {
    const int64_t apart = ceil_div(s.channels, kTileDepth) * s.x.kernel;
    folds_ = s.x.kernel > 1 && ceil_div(s.channels * s.x.kernel, kTileDepth) < apart;
    const auto places = [](const ConvAxis& a) {
      return a.out + (a.kernel - 1) * a.dilation / a.stride;
    };
    z_ = places(s.z), y_ = places(s.y), x_ = folds_ ? s.x.out : places(s.x);
  }
  int64_t channels() const { return folds_ ? s_.channels * s_.x.kernel : s_.channels; }
  int64_t blocks() const { return ceil_div(channels(), kTileDepth); }
  int64_t phases() const { return s_.z.stride * s_.y.stride * x_phases(); }
  int64_t length() const { return z_ * y_ * x_ + 2 * kTileRows; }  // tiles read past the end
  int64_t results() const { return ((s_.z.out - 1) * y_ + s_.y.out - 1) * x_ + s_.x.out; }
  // Places of the kernel that are distances on a line.
  int64_t taps() const { return folds_ ? s_.z.kernel * s_.y.kernel : s_.taps(); }
  int64_t phase(int64_t tap) const {
    const Tap t = at(tap);
    return (t.z * s_.z.dilation % s_.z.stride * s_.y.stride + t.y * s_.y.dilation % s_.y.stride) *
               x_phases() +
           (folds_ ? 0 : t.x * s_.x.dilation % s_.x.stride);
  }
  int64_t distance(int64_t tap) const {
    const Tap t = at(tap);
    return (t.z * s_.z.dilation / s_.z.stride * y_ + t.y * s_.y.dilation / s_.y.stride) * x_ +
           (folds_ ? 0 : t.x * s_.x.dilation / s_.x.stride);
  }
  // The place of the kernel that a tap and a line's channel stand for is the sum of both parts.
  int64_t place_of_tap(int64_t tap) const { return folds_ ? tap * s_.x.kernel : tap; }
  int64_t place_of_channel(int64_t channel) const { return folds_ ? channel % s_.x.kernel : 0; }
  int64_t image_channel(int64_t channel) const { return folds_ ? channel / s_.x.kernel : channel; }

  // One channel's line; room for length().
  void fill(const uint16_t* image, int64_t channel, int64_t phase, uint16_t* to) const {
    const int64_t px = phase % x_phases(), py = phase / x_phases() % s_.y.stride;
    const int64_t pz = phase / x_phases() / s_.y.stride;
    const uint16_t* plane = image + image_channel(channel) * s_.plane();
    const int64_t shift = folds_ ? place_of_channel(channel) * s_.x.dilation : px;
    for (int64_t z = 0; z < z_; ++z)
      for (int64_t y = 0; y < y_; ++y, to += x_) {
        const int64_t iz = pixel(s_.z, spread_[0], z * s_.z.stride + pz);
        const int64_t iy = pixel(s_.y, spread_[1], y * s_.y.stride + py);
        if (iz < 0 || iy < 0)
          std::fill_n(to, x_, uint16_t{0});
        else
          fill_row(plane + (iz * s_.y.size + iy) * s_.x.size, shift - s_.x.before, to);
      }
    std::fill_n(to, 2 * kTileRows, uint16_t{0});
  }

  // A channel of the result put on a line; `to` is zeros.
  void place_results(const uint16_t* from, uint16_t* to) const {
    for (int64_t z = 0; z < s_.z.out; ++z)
      for (int64_t y = 0; y < s_.y.out; ++y, from += s_.x.out)
        std::copy_n(from, s_.x.out, to + (z * y_ + y) * x_);
  }
  // The results among places [first, first + count); at most one per row of the result.
  int64_t segments(int64_t first, int64_t count, Segment* to) const {
    int64_t made = 0;
    const int64_t last = std::min(first + count, results());
    for (int64_t q = first; q < last;) {
      const int64_t x = q % x_, y = q / x_ % y_, z = q / x_ / y_;
      const int64_t row_end = q - x + x_;
      if (x < s_.x.out && y < s_.y.out)
        to[made++] = {q - first, std::min(last, q - x + s_.x.out) - q,
                      (z * s_.y.out + y) * s_.x.out + x};
      q = row_end;
    }
    return made;
  }

 private:
  int64_t x_phases() const { return folds_ ? 1 : s_.x.stride; }
  Tap at(int64_t tap) const { return {s_, folds_ ? tap * s_.x.kernel : tap}; }
  // The pixel at a place of the padded, spread axis; negative where there is none.
  static int64_t pixel(const ConvAxis& axis, int64_t spread, int64_t place) {
    const int64_t p = place - axis.before;
    return p >= 0 && p % spread == 0 && p / spread < axis.size ? p / spread : -1;
  }
  // to[i] = row[i * stride + offset] where there is such a pixel, else 0.
  void fill_row(const uint16_t* row, int64_t offset, uint16_t* to) const {
    const int64_t stride = s_.x.stride, spread = spread_[2], size = s_.x.size;
    if (stride == 1 && spread == 1) {
      const int64_t begin = std::clamp<int64_t>(-offset, 0, x_);
      const int64_t end = std::clamp<int64_t>(size - offset, begin, x_);
      std::fill(to, to + begin, uint16_t{0});
      std::copy(row + begin + offset, row + end + offset, to + begin);
      std::fill(to + end, to + x_, uint16_t{0});
      return;
    }
    std::fill_n(to, x_, uint16_t{0});
    // One of both is 1. Pixel p lies at place (p * spread - offset) / stride.
    const int64_t first = std::max<int64_t>(0, ceil_div(offset, spread));
    if (stride == 1) {
      for (int64_t p = first; p < size && p * spread - offset < x_; ++p)
        to[p * spread - offset] = row[p];
    } else {
      const int64_t begin = std::max<int64_t>(0, ceil_div(-offset, stride));
      const int64_t end = std::min(x_, ceil_div(size - offset, stride));
      for (int64_t i = begin; i < end; ++i) to[i] = row[i * stride + offset];
    }
  }

  const ConvShape& s_;
  int64_t spread_[3];
  bool folds_;
  int64_t z_, y_, x_;
};

// Lines of two channels alternating, as a right factor reads them: [phase][block][16 pairs][places][2].
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

// How a kernel lies in memory: the distances of results, channels and places.
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
                     false});
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
  // The gradient on the line, zeros where there is no result, with the places as the depth.
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

// Without an edge to look at, all pixels are one row.
ConvShape flattened(ConvShape s) {
  if (!s.is_pointwise()) return s;
  s.x.size = s.x.out = s.plane();
  s.z = s.y = {};
  return s;
}

// Of a pointwise convolution, each image is a matrix [channels, pixels].
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

// Operands that meet each other: image, kernel and result of the convolution, whatever the call makes.
const char* refuse(const KernelCall& call, const oar_tensor& x, const oar_tensor& weight,
                   const oar_tensor& out) {
  if (call.dtype() != DType::BFloat16) return "tiles are for bfloat16";
  if (call.arg(7).as_bool()) return "the channels are last";
  if (x.numel == 0 || weight.numel == 0 || out.numel == 0) return "there is nothing to do";
  if (static_cast<double>(out.numel) * static_cast<double>(weight.numel / weight.shape[0]) <
      kLeastWork)
    return "the convolution is small";
  const int64_t groups = call.arg(6).as_int();
  if (groups > 1 && std::min(weight.shape[0] / groups, weight.shape[1]) < kLeastChannels)
    return "so few channels fill no tile";
  if (!is_contiguous(x) || !is_contiguous(weight) || !is_contiguous(out))
    return "an operand is not dense";
  return tile_table() == nullptr ? "there are no tiles" : nullptr;
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

// A convolution of the gradient, with zeros between its pixels, and the kernel turned around.
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
