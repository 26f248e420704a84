#include "oar/media/weighted_rows.h"

#include <algorithm>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace oar::media {
namespace {

constexpr int kBits = 22;
constexpr int32_t kHalf = 1 << (kBits - 1);
constexpr int kLowBits = 12;

uint8_t rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

void weigh_columns_plainly(const uint8_t* in, int64_t channels, std::span<const int32_t> weights,
                           uint8_t* out) {
  for (int64_t c = 0; c < channels; ++c) {
    int32_t sum = kHalf;
    for (size_t k = 0; k < weights.size(); ++k)
      sum += weights[k] * in[static_cast<int64_t>(k) * channels + c];
    out[c] = rounded(sum);
  }
}

#if defined(__AVX2__)

// Bytes of taps 0 and 1 in the low lane, of taps 2 and 3 in the high one; each channel's two side by side, as 16 bits.
__m256i pairs_of_three() {
  return _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                          -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
}

// One pixel of three channels. Reads 16 bytes for each four taps.
void weigh_three(const uint8_t* in, const int16_t* halves, size_t taps, uint8_t* out) {
  const __m256i order = pairs_of_three();
  __m256i high = _mm256_setzero_si256(), low = _mm256_setzero_si256();
  for (size_t k = 0; k < taps; k += 4, in += 12, halves += 8) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    const __m256i pairs = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), order);
    // High and low parts of taps 0 and 1, then of taps 2 and 3: four 32-bit words.
    const __m256i words =
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
    const __m256i wide = _mm256_permute4x64_epi64(words, 0b01'00'01'00);
    const __m256i select_high = _mm256_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2);
    const __m256i select_low = _mm256_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3);
    high = _mm256_add_epi32(
        high, _mm256_madd_epi16(pairs, _mm256_permutevar8x32_epi32(wide, select_high)));
    low = _mm256_add_epi32(low,
                           _mm256_madd_epi16(pairs, _mm256_permutevar8x32_epi32(wide, select_low)));
  }
  const __m256i both = _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(kHalf)), kBits);
  const __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(sum, sum), sum);
  const auto pixel = static_cast<uint32_t>(_mm_cvtsi128_si32(bytes));
  out[0] = static_cast<uint8_t>(pixel);
  out[1] = static_cast<uint8_t>(pixel >> 8);
  out[2] = static_cast<uint8_t>(pixel >> 16);
}

// Sixteen bytes of a new row.
void weigh_sixteen(const uint8_t* in, int64_t row, const int16_t* halves, size_t taps,
                   uint8_t* out) {
  __m256i high_a = _mm256_setzero_si256(), low_a = high_a, high_b = high_a, low_b = high_a;
  for (size_t k = 0; k < taps; k += 2, halves += 4) {
    const uint8_t* first = in + static_cast<int64_t>(k) * row;
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first));
    // The weight of a tap beyond the last is zero; its row may not exist.
    const __m128i b =
        k + 1 < taps ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + row)) : a;
    const __m256i pairs_a = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
    const __m256i pairs_b = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
    int32_t words[2];
    __builtin_memcpy(words, halves, sizeof words);
    const __m256i high = _mm256_set1_epi32(words[0]), low = _mm256_set1_epi32(words[1]);
    high_a = _mm256_add_epi32(high_a, _mm256_madd_epi16(pairs_a, high));
    low_a = _mm256_add_epi32(low_a, _mm256_madd_epi16(pairs_a, low));
    high_b = _mm256_add_epi32(high_b, _mm256_madd_epi16(pairs_b, high));
    low_b = _mm256_add_epi32(low_b, _mm256_madd_epi16(pairs_b, low));
  }
  const __m256i half = _mm256_set1_epi32(kHalf);
  const auto sum_of = [&](__m256i high, __m256i low) {
    const __m256i sum =
        _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), _mm256_add_epi32(low, half));
    return _mm256_srai_epi32(sum, kBits);
  };
  const __m256i words =  // 0-3, 8-11 | 4-7, 12-15
      _mm256_packs_epi32(sum_of(high_a, low_a), sum_of(high_b, low_b));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0b11'01'10'00);
  const __m128i bytes =
      _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
}

#endif

void weigh_row_plainly(const uint8_t* in, int64_t row, std::span<const int32_t> weights,
                       int64_t from, uint8_t* out) {
  for (int64_t x = from; x < row; ++x) {
    int32_t sum = kHalf;
    for (size_t k = 0; k < weights.size(); ++k)
      sum += weights[k] * in[static_cast<int64_t>(k) * row + x];
    out[x] = rounded(sum);
  }
}

}  // namespace

AxisWeights::AxisWeights(int64_t size, int64_t most_taps)
    : most_taps_(most_taps),
      stride_(static_cast<size_t>(most_taps + 3) / 4 * 4),
      first_(static_cast<size_t>(size)),
      count_(static_cast<size_t>(size)),
      weights_(static_cast<size_t>(size) * stride_),
      halves_(static_cast<size_t>(size) * stride_ * 2) {}

void AxisWeights::set(int64_t position, int64_t first, std::span<const double> weights) {
  const auto i = static_cast<size_t>(position);
  first_[i] = first;
  count_[i] = static_cast<int64_t>(weights.size());
  for (size_t k = 0; k < weights.size(); ++k) {
    const double scaled = weights[k] * (1 << kBits);
    const auto weight = static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    weights_[i * stride_ + k] = weight;
    int16_t* pair = halves_.data() + i * stride_ * 2 + k / 2 * 4 + k % 2;
    pair[0] = static_cast<int16_t>(weight >> kLowBits);
    pair[2] = static_cast<int16_t>(weight & ((1 << kLowBits) - 1));
  }
}

int64_t AxisWeights::first_used() const { return *std::min_element(first_.begin(), first_.end()); }

int64_t AxisWeights::last_used() const {
  int64_t last = 0;
  for (size_t i = 0; i < first_.size(); ++i) last = std::max(last, first_[i] + count_[i]);
  return last;
}

void weigh_columns(const uint8_t* in, const ImageSize& size, int64_t rows, const AxisWeights& axis,
                   uint8_t* out) {
  const int64_t channels = size.channels;
  [[maybe_unused]] const uint8_t* end = in + rows * size.row();
  for (int64_t y = 0; y < rows; ++y, in += size.row()) {
    for (int64_t x = 0; x < axis.size(); ++x, out += channels) {
      const uint8_t* first = in + axis.first(x) * channels;
      const std::span<const int32_t> weights = axis.weights(x);
#if defined(__AVX2__)
      const auto bytes_read = static_cast<int64_t>((weights.size() + 3) / 4 * 12 + 4);
      if (channels == 3 && bytes_read <= end - first) {
        weigh_three(first, axis.halves(x), weights.size(), out);
        continue;
      }
#endif
      weigh_columns_plainly(first, channels, weights, out);
    }
  }
}

void weigh_rows(const uint8_t* in, int64_t row, int64_t first_row, const AxisWeights& axis,
                uint8_t* out) {
  for (int64_t y = 0; y < axis.size(); ++y, out += row) {
    const uint8_t* first = in + (axis.first(y) - first_row) * row;
    const std::span<const int32_t> weights = axis.weights(y);
    int64_t done = 0;
#if defined(__AVX2__)
    for (; done + 16 <= row; done += 16)
      weigh_sixteen(first + done, row, axis.halves(y), weights.size(), out + done);
#endif
    weigh_row_plainly(first, row, weights, done, out);
  }
}

}  // namespace oar::media
