// The kernels of the family `collective`: one request each, waited for.
#include <cstring>

#include "oar/backend/cpu/loops/compact.h"
#include "oar/base/error.h"
#include "oar/device/added_kernels.h"
#include "oar/device/device.h"
#include "oar/distributed/groups.h"
#include "oar/tensor/dtype.h"

namespace oar::distributed {
namespace {

size_t bytes_of(const oar_tensor& t) {
  return static_cast<size_t>(byte_count(t.numel, static_cast<DType>(t.dtype)));
}

// Where a call takes its operand from: itself if it is contiguous.
class Packed {
 public:
  explicit Packed(const oar_tensor& t) : memory_{t.data, bytes_of(t)} {
    if (memory_.bytes == 0 || cpu::is_contiguous(t)) return;
    copy_.resize(memory_.bytes);
    memory_.data = copy_.data();
    const cpu::FlatTensor flat(t, memory_.data, static_cast<DType>(t.dtype));
    cpu::copy_elements(flat.get(), t);
  }
  const Memory& memory() const { return memory_; }

 private:
  Memory memory_;
  std::vector<std::byte> copy_;
};

std::string text_of(const oar_tensor& t) {
  std::string text = name_of(static_cast<DType>(t.dtype));
  text += '[';
  for (int i = 0; i < t.ndim; ++i) text += (i > 0 ? ", " : "") + std::to_string(t.shape[i]);
  return text + "]";
}

std::string_view string_of(const Value& v) { return {v.string, static_cast<size_t>(v.count)}; }

std::vector<Memory> rows_of(const Memory& whole, const oar_value& counts, int64_t rows) {
  std::vector<Memory> parts;
  auto* data = static_cast<std::byte*>(whole.data);
  const size_t row = rows > 0 ? whole.bytes / static_cast<size_t>(rows) : 0;
  for (int i = 0; i < counts.count; ++i) {
    const size_t bytes = row * static_cast<size_t>(counts.integers[i]);
    parts.push_back({data, bytes});
    data += bytes;
  }
  return parts;
}

// The group of a call; null for a process that stands alone.
std::shared_ptr<ProcessGroup> group_of(int64_t number, int64_t ranks) {
  std::shared_ptr<ProcessGroup> group = find_group(number);
  user_check(
      group != nullptr || ranks == 1, ErrorKind::InvalidArgument,
      "there is no group {} of {} processes here.\nhint: Call init_parallel_env() first, or new_group().",
      number, ranks);
  user_check(
      !group || group->size() == ranks, ErrorKind::InvalidArgument,
      "ranks is {}, but group {} has {} processes.\nhint: A program that was captured for another number of "
      "processes must be captured again.",
      ranks, number, group ? group->size() : 1);
  return group;
}

// What a process keeps for itself is as long where it goes as where it comes from.
void check_own_rows(const oar_value& sent, const oar_value& received, int rank) {
  user_check(
      sent.integers[rank] == received.integers[rank], ErrorKind::InvalidArgument,
      "all_to_all_rows: this process sends itself {} rows (in_rows[{}]) but expects {} (out_rows[{}]).",
      sent.integers[rank], rank, received.integers[rank], rank);
}

// The parameters of an op, by their places: -1 if it has none.
struct Layout {
  Collective what;
  int group, ranks, op, root;
};

void run_collective(KernelCall& call, const Layout& layout) {
  const Packed x(call.in(0));
  oar_tensor& out = call.out();
  Request request;
  request.what = layout.what;
  request.dtype = call.dtype();
  request.shape = text_of(call.in(0));
  if (layout.op >= 0)
    request.op = reduce_op_of(string_of(call.arg(layout.op)), name_of(layout.what));
  if (layout.root >= 0) request.peer = static_cast<int>(call.arg(layout.root).integer);
  const Memory result{out.data, bytes_of(out)};
  const int64_t number = call.arg(layout.group).integer;
  const bool by_rows = layout.ranks < 0;
  const int64_t ranks = by_rows ? call.arg(1).count : call.arg(layout.ranks).integer;
  const std::shared_ptr<ProcessGroup> group = group_of(number, ranks);
  if (by_rows) check_own_rows(call.arg(1), call.arg(2), group ? group->rank() : 0);
  const bool in_place =
      layout.what == Collective::AllReduce || layout.what == Collective::Broadcast;
  if (in_place || !group) {
    const size_t bytes = std::min(result.bytes, x.memory().bytes);
    if (bytes > 0 && result.data != x.memory().data)
      std::memcpy(result.data, x.memory().data, bytes);
    if (!group) return;
    request.out = {result};
  } else if (by_rows) {
    request.in = rows_of(x.memory(), call.arg(1), call.in(0).shape[0]);
    request.out = rows_of(result, call.arg(2), out.shape[0]);
  } else {
    request.in = {x.memory()};
    request.out = {result};
  }
  const bool is_root = layout.root < 0 || group->rank() == request.peer;
  if (!is_root && (layout.what == Collective::Reduce || layout.what == Collective::Gather) &&
      result.bytes > 0)
    std::memset(result.data, 0, result.bytes);
  group->start(std::move(request))->wait();
}

// Copies the part of this process, and no other.
void own_part(KernelCall& call) {
  const int64_t ranks = call.arg(2).integer;
  const std::shared_ptr<ProcessGroup> group = group_of(call.arg(1).integer, ranks);
  oar_tensor part = call.in(0);
  const size_t bytes = bytes_of(call.out());
  if (bytes == 0) return;
  const int64_t skipped = group ? group->rank() * part.strides[0] : 0;
  part.data = static_cast<std::byte*>(part.data) + skipped * static_cast<int64_t>(size_of(call.dtype()));
  part.ndim -= 1;
  part.shape += 1;
  part.strides += 1;
  part.numel /= ranks;
  const Packed packed(part);
  std::memcpy(call.out().data, packed.memory().data, bytes);
}

template <Collective kWhat, int kGroup, int kRanks, int kOp, int kRoot>
void collective(KernelCall& call) {
  run_collective(call, {kWhat, kGroup, kRanks, kOp, kRoot});
}

}  // namespace

void install_collectives() {
  const auto add = [](const char* op, int32_t (*run)(oar_kernel_call*)) {
    devices::add_kernel({op, "cpu:group", nullptr, run});
  };
  // The places of the parameters: group, ranks, op, root.
  add("all_reduce", kernel_entry<collective<Collective::AllReduce, 2, 3, 1, -1>>);
  add("broadcast_from", kernel_entry<collective<Collective::Broadcast, 2, 3, -1, 1>>);
  add("reduce_to", kernel_entry<collective<Collective::Reduce, 3, 4, 2, 1>>);
  add("all_gather", kernel_entry<collective<Collective::AllGather, 1, 2, -1, -1>>);
  add("own_part", kernel_entry<own_part>);
  add("reduce_scatter", kernel_entry<collective<Collective::ReduceScatter, 2, 3, 1, -1>>);
  add("all_to_all", kernel_entry<collective<Collective::AllToAll, 1, 2, -1, -1>>);
  add("all_to_all_rows", kernel_entry<collective<Collective::AllToAll, 3, -1, -1, -1>>);
  add("gather_to", kernel_entry<collective<Collective::Gather, 2, 3, -1, 1>>);
  add("scatter_from", kernel_entry<collective<Collective::Scatter, 2, 3, -1, 1>>);
}

}  // namespace oar::distributed
