#include "oar/compiler/fusion/loop.h"

#include <algorithm>
#include <cstring>

#include "oar/compiler/fusion/worth.h"
#include "oar/ops/gen/copy.h"
#include "oar/runtime/layout.h"

namespace oar::fusion {

int64_t FusedLoop::rows() const {
  int64_t count = 1;
  for (size_t d = 0; d + folded < domain.size(); ++d) count *= domain[d].value();
  return count;
}

bool are_good_rows(const Shape& shape, size_t folded) {
  constexpr int64_t kLongest = 64 << 10, kFew = 4, kShort = 4 << 10;
  int64_t length = 1, rows = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    (d + folded < shape.size() ? rows : length) *= shape[d].value();
  return length <= kLongest && (rows >= kFew || length <= kShort);
}

bool FusedLoop::is_worth() const {
  return totals_fit() && (folded == 0 || are_good_rows(domain, folded));
}

bool FusedLoop::totals_fit() const {
  constexpr int64_t kMostBytes = 256 << 10, kLeastJoined = 16, kShortestRun = 64, kWidestRun = 1024;
  int64_t bytes = 0;
  for (const TotalOutput& total : totals) {
    const int64_t size = made[total.output].numel().value();
    bytes += size * static_cast<int64_t>(size_of(kernel.outputs[total.output].dtype));
    if (total.count < kLeastJoined) return false;
    // The last axes that are all joined, or all kept.
    int64_t run = 1;
    std::optional<bool> joined;
    for (size_t d = domain.size(); d-- > 0;) {
      if (domain[d] == Dim(1)) continue;
      const bool is_joined = places[total.output][d] == 0;
      if (joined && *joined != is_joined) break;
      joined = is_joined;
      run *= domain[d].value();
    }
    const bool too_wide = joined && !*joined && run > kWidestRun;
    if ((run < kShortestRun || too_wide) && !fuses_all()) return false;
  }
  return bytes <= kMostBytes;
}

std::optional<std::vector<int64_t>> FusedLoop::over_domain(const Shape& shape, Ints strides) const {
  const size_t rank = domain.size(), outer = rank - folded;
  std::vector<int64_t> made(rank, 0);
  if (shape.numel() == Dim(1)) return made;
  if (shape.size() != rank && shape.size() != outer) return std::nullopt;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool single = shape[d] == Dim(1) && d >= outer;
    if (!single && shape[d] != domain[d]) return std::nullopt;
    if (shape[d] != Dim(1)) made[d] = strides[d];
  }
  return made;
}

std::optional<FusedLoop::Spread> FusedLoop::spread(size_t source, const Tensor& input) const {
  Tensor layout = input;
  int64_t offset = 0;
  for (const Instruction& view : sources[source].views) {
    Frame frame = view.attributes.clone();
    frame.set_tensor(0, layout);
    const std::optional<ViewSpec> spec = view.op->def().view(frame.args());
    if (!spec) return std::nullopt;
    offset += spec->offset;
    layout = layout_of(*spec, layout);
  }
  std::optional<std::vector<int64_t>> strides = over_domain(layout.shape(), layout.strides());
  if (!strides) return std::nullopt;
  return Spread{std::move(*strides), offset};
}

bool is_one_number(const Tensor& t) {
  constexpr int64_t kMostLookedAt = 64 << 10;
  if (!t.is_dense() || !t.device().is_cpu() || is_packed(t.dtype()) || t->numel == 0 ||
      t->numel > kMostLookedAt)
    return false;
  if (t->numel == 1) return true;
  const Tensor dense = t.is_contiguous() ? t : assign(t);
  const size_t bytes = size_of(t.dtype());
  const auto* const first = static_cast<const char*>(dense->data);
  return std::memcmp(first, first + bytes, bytes * static_cast<size_t>(t->numel - 1)) == 0;
}

}  // namespace oar::fusion
