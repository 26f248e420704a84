#include "oar/compiler/fusion/nest.h"

#include <algorithm>
#include <memory>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/base/parallel.h"
#include "oar/compiler/fusion/totals.h"

namespace oar::fusion {
namespace {

// Joins axes that lie behind one another in all ports; none are left for a loop over one element.
std::vector<Nest::Axis> joined(const std::vector<Nest::Axis>& axes) {
  std::vector<Nest::Axis> made;
  for (const Nest::Axis& axis : axes) {
    if (axis.size == 1) continue;
    bool follows = !made.empty();
    for (size_t p = 0; follows && p < axis.strides.size(); ++p)
      follows = made.back().strides[p] == axis.strides[p] * axis.size;
    if (follows)
      made.back() = {made.back().size * axis.size, axis.strides};
    else
      made.push_back(axis);
  }
  return made;
}

// A thread takes at least this much work, counted in flops.
constexpr double kGrain = 64 << 10;

double flops_of_element(const Kernel& kernel) {
  double sum = 1;
  for (const Step& step : kernel.steps)
    if (!step.of_row) sum += step.kind == StepKind::Apply ? flops_of(step.fn) : 1;
  return sum;
}

}  // namespace

std::optional<Nest> Nest::of(const FusedLoop& loop, TensorList inputs) {
  Nest made;
  made.kernel = loop.kernel;
  const size_t rank = loop.domain.size(), ins = loop.sources.size(), outs = loop.made.size();
  std::vector<Axis> axes(rank);
  for (size_t d = 0; d < rank; ++d)
    axes[d] = {loop.domain[d].value(), std::vector<int64_t>(ins + outs)};
  for (size_t p = 0; p < ins; ++p) {
    const Tensor& input = inputs[loop.sources[p].input];
    const std::optional<FusedLoop::Spread> spread = loop.spread(p, input);
    if (!spread) return std::nullopt;
    const auto bytes = static_cast<int64_t>(size_of(input.dtype()));
    made.offsets.push_back(spread->offset * bytes);
    for (size_t d = 0; d < rank; ++d) axes[d].strides[p] = spread->strides[d] * bytes;
  }
  for (size_t k = 0; k < outs; ++k) {
    const auto bytes = static_cast<int64_t>(size_of(made.kernel.outputs[k].dtype));
    for (size_t d = 0; d < rank; ++d) axes[d].strides[ins + k] = loop.places[k][d] * bytes;
  }
  made.totals = loop.totals;
  for (const TotalOutput& total : loop.totals)
    made.total_sizes.push_back(loop.made[total.output].numel().value());
  made.whole_rows = made.kernel.folds();
  made.row = {1, std::vector<int64_t>(ins + outs, 0)};
  const auto border = axes.end() - static_cast<std::ptrdiff_t>(loop.folded);
  std::vector<Axis> outer = joined({axes.begin(), loop.folded > 0 ? border : axes.end()});
  if (loop.folded > 0) {
    const std::vector<Axis> inner = joined({border, axes.end()});
    if (inner.size() > 1) return std::nullopt;
    if (!inner.empty()) made.row = inner[0];
  } else if (!outer.empty()) {
    made.row = std::move(outer.back());
    outer.pop_back();
  }
  made.outer = std::move(outer);
  for (size_t p = 0; p < ins + outs; ++p) {
    Port& port = p < ins ? made.kernel.inputs[p] : made.kernel.outputs[p - ins];
    const auto bytes = static_cast<int64_t>(size_of(port.dtype));
    if (p >= ins && port.lie == Lie::Single) continue;  // a number per row
    port.lie = made.row.strides[p] == 0       ? Lie::Single
               : made.row.strides[p] == bytes ? Lie::Dense
                                              : Lie::Strided;
    if (p >= ins && !port.is_total()) port.lie = Lie::Dense;
  }
  // A total that has one number for a row gets the row's fold.
  for (size_t k = 0; k < outs; ++k)
    if (const Port& port = made.kernel.outputs[k]; port.is_total() && port.lie == Lie::Single) {
      const uint16_t each = made.kernel.results[k];
      made.kernel.steps.push_back({.kind = StepKind::Fold,
                                   .fn = port.joins,
                                   .type = made.kernel.steps[each].type,
                                   .operands = {each, 0, 0}});
      made.kernel.results[k] = static_cast<uint16_t>(made.kernel.steps.size() - 1);
    }
  made.kernel.place_steps();
  const std::vector<bool> kept = kept_steps(made.kernel);
  made.kept = static_cast<size_t>(std::count(kept.begin(), kept.end(), true));
  return made;
}

bool Nest::jumps() const {
  constexpr int64_t kFewElements = 1024, kNear = 4;
  if (rows() * row.size <= kFewElements) return false;
  for (size_t p = 0; p < kernel.inputs.size(); ++p) {
    const auto bytes = static_cast<int64_t>(size_of(kernel.inputs[p].dtype));
    if (row.strides[p] < 0 || row.strides[p] > kNear * bytes) return true;
  }
  return false;
}

int64_t Nest::rows() const {
  int64_t count = 1;
  for (const Axis& axis : outer) count *= axis.size;
  return count;
}

// Rows from number `row` on that lie along the last outer axis, elements [from, from + length) of each.
void Nest::run_part(Code code, const Ports& ports, int64_t row, int64_t count, int64_t from,
                    int64_t length, char* room) const {
  Ports at(ports);
  for (size_t p = 0; p < at.size(); ++p) at[p] += from * this->row.strides[p];
  for (size_t a = outer.size(); a-- > 0; row /= outer[a].size)
    for (size_t p = 0; p < at.size(); ++p) at[p] += row % outer[a].size * outer[a].strides[p];
  const std::vector<int64_t>& across = outer.empty() ? this->row.strides : outer.back().strides;
  code(at.data(), across.data(), this->row.strides.data(), count, length, room);
}

void Nest::run_rows(Code code, const Ports& ports, int64_t begin, int64_t end) const {
  const size_t bytes = kept * 8 * static_cast<size_t>(row.size);
  const std::unique_ptr<char[]> room(bytes > 0 ? new char[bytes] : nullptr);
  const int64_t together = outer.empty() ? 1 : outer.back().size;
  while (begin < end) {
    const int64_t count = std::min(end - begin, together - begin % together);
    run_part(code, ports, begin, count, 0, row.size, room.get());
    begin += count;
  }
}

// Elements [begin, end) of all rows, one row after another.
void Nest::run_elements(Code code, const Ports& ports, int64_t begin, int64_t end) const {
  while (begin < end) {
    const int64_t r = begin / row.size, from = begin % row.size;
    const int64_t whole = from == 0 ? (end - begin) / row.size : 0;
    if (whole > 0) {
      run_rows(code, ports, r, r + whole);
      begin += whole * row.size;
      continue;
    }
    const int64_t length = std::min(end - begin, row.size - from);
    run_part(code, ports, r, 1, from, length, nullptr);
    begin += length;
  }
}

// Results too large for the caches go around them. Those of rows that are read several times do not: the code waits for these reads
// anyway, and a buffer would cost more than it saves.
bool Nest::is_streamed() const {
  const int64_t elements = rows() * row.size;
  return !kernel.folds() &&
         std::all_of(kernel.outputs.begin(), kernel.outputs.end(), [&](const Port& port) {
           return elements * static_cast<int64_t>(size_of(port.dtype)) >= cpu::kStreamedFrom;
         });
}

// A block at a time is computed in a buffer, where the places of the results are as far from its start as from their own.
void Nest::run_streamed(Code code, const Ports& ports, int64_t begin, int64_t end) const {
  constexpr int64_t kBlock = 2048;
  constexpr int64_t kRoom = 8 * kBlock;
  const size_t ins = kernel.inputs.size(), outs = kernel.outputs.size();
  const std::unique_ptr<char[]> buffer(new char[outs * static_cast<size_t>(kRoom)]);
  Ports redirected(ports);
  while (begin < end) {
    const int64_t stop = std::min(end, (begin / kBlock + 1) * kBlock);
    const auto bytes_of = [&](size_t k) {
      return static_cast<int64_t>(size_of(kernel.outputs[k].dtype));
    };
    for (size_t k = 0; k < outs; ++k)
      redirected[ins + k] = buffer.get() + static_cast<int64_t>(k) * kRoom - begin * bytes_of(k);
    run_elements(code, redirected, begin, stop);
    for (size_t k = 0; k < outs; ++k)
      cpu::stream_bytes(ports[ins + k] + begin * bytes_of(k),
                        redirected[ins + k] + begin * bytes_of(k), (stop - begin) * bytes_of(k));
    begin = stop;
  }
  cpu::stream_fence();
}

// Units are rows where these are whole, else elements.
void Nest::run_units(Code code, const Ports& ports, int64_t begin, int64_t end) const {
  if (whole_rows)
    run_rows(code, ports, begin, end);
  else
    run_elements(code, ports, begin, end);
}

void Nest::run(Code code, Ports ports) const {
  for (size_t p = 0; p < offsets.size(); ++p) ports[p] += offsets[p];
  if (!totals.empty()) return run_totals(code, ports);
  const double flops = flops_of_element(kernel);
  const int64_t count = rows();
  const bool streamed = is_streamed();
  const double unit_flops = whole_rows ? flops * static_cast<double>(row.size) : flops;
  const auto grain =
      std::max<int64_t>(whole_rows ? 1 : 1024, static_cast<int64_t>(kGrain / unit_flops));
  parallel_for(0, whole_rows ? count : count * row.size, grain, [&](int64_t begin, int64_t end) {
    if (streamed)
      run_streamed(code, ports, begin, end);
    else
      run_units(code, ports, begin, end);
  });
}

// The elements are cut into pieces by their number alone, so that sums are the same on any number of threads. A piece has buffers for
// its totals. It is computed block by block, and the totals of a block are added to those of the piece: long sums of small numbers
// keep their last bits.
void Nest::run_totals(Code code, const Ports& ports) const {
  constexpr int64_t kMostPieces = 32, kBlock = 32 << 10, kPieceRows = 16;
  const int64_t row_size = std::max<int64_t>(row.size, 1), elements = rows() * row_size;
  TotalBuffers whole(totals, total_sizes, kernel);
  const int64_t unit = whole_rows ? row_size : 1, units = elements / unit;
  const auto flops = static_cast<double>(elements) * flops_of_element(kernel);
  const int64_t most =
      std::min({kMostPieces, units, elements / (kPieceRows * whole.largest()) + 1});
  const int64_t pieces = std::clamp<int64_t>(static_cast<int64_t>(flops / (4 * kGrain)), 1, most);
  const int64_t piece = (units + pieces - 1) / pieces;
  const int64_t block = std::max<int64_t>(1, std::max(kBlock, 64 * whole.largest()) / unit);
  std::vector<TotalBuffers> parts(static_cast<size_t>(pieces), whole);
  parallel_for(0, pieces, 1, [&](int64_t first, int64_t last) {
    TotalBuffers of_block(whole);
    Ports at(ports);
    of_block.redirect(at, kernel.inputs.size());
    for (int64_t p = first; p < last; ++p)
      for (int64_t begin = p * piece; begin < std::min(units, (p + 1) * piece); begin += block) {
        of_block.clear();
        const int64_t end = std::min({begin + block, units, (p + 1) * piece});
        run_units(code, at, begin, end);
        parts[static_cast<size_t>(p)].join(of_block);
      }
  });
  for (const TotalBuffers& part : parts) whole.join(part);
  whole.finish(ports, kernel.inputs.size());
}

}  // namespace oar::fusion
