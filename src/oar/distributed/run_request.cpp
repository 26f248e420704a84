#include "oar/distributed/run_request.h"

#include <cstring>
#include <numeric>

#include "oar/base/error.h"
#include "oar/distributed/combine.h"

namespace oar::distributed {
namespace {

size_t total(const std::vector<Memory>& parts) {
  return std::accumulate(parts.begin(), parts.end(), size_t{0},
                         [](size_t sum, const Memory& m) { return sum + m.bytes; });
}

// The parts as one piece of memory: itself, or a copy.
class Joined {
 public:
  explicit Joined(const std::vector<Memory>& parts) : parts_(parts), bytes_(total(parts)) {
    if (!is_one()) copy_.resize(bytes_);
  }
  void* data() { return is_one() ? (parts_.empty() ? nullptr : parts_[0].data) : copy_.data(); }
  size_t bytes() const { return bytes_; }
  void read() {
    if (!is_one()) move(true);
  }
  void write() {
    if (!is_one()) move(false);
  }

 private:
  bool is_one() const { return parts_.size() <= 1; }
  void move(bool reads) {
    size_t offset = 0;
    for (const Memory& m : parts_) {
      if (m.bytes > 0 && reads) std::memcpy(copy_.data() + offset, m.data, m.bytes);
      if (m.bytes > 0 && !reads) std::memcpy(m.data, copy_.data() + offset, m.bytes);
      offset += m.bytes;
    }
  }

  const std::vector<Memory>& parts_;
  size_t bytes_;
  std::vector<std::byte> copy_;
};

ReduceKind kind_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Max:
      return ReduceKind::Max;
    case ReduceOp::Min:
      return ReduceKind::Min;
    case ReduceOp::Prod:
      return ReduceKind::Prod;
    default:
      return ReduceKind::Sum;
  }
}

bool reduces(Collective what) {
  return what == Collective::Reduce || what == Collective::AllReduce ||
         what == Collective::ReduceScatter;
}

std::vector<size_t> sizes_of(const std::vector<Memory>& parts, int size) {
  std::vector<size_t> sizes;
  if (parts.size() == 1)
    return std::vector<size_t>(static_cast<size_t>(size),
                               parts[0].bytes / static_cast<size_t>(size));
  for (const Memory& m : parts) sizes.push_back(m.bytes);
  return sizes;
}

void copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

struct Run {
  Backend& backend;
  const Request& request;
  int rank, size;
  Milliseconds timeout;

  bool is_root() const { return rank == request.peer; }
  Reduction reduction() const {
    return reduction_of(kind_of(request.op), request.dtype, name_of(request.what));
  }
  void average(void* data, size_t count) const {
    if (request.op == ReduceOp::Avg) divide(data, count, request.dtype, size);
  }

  void broadcast() const {
    const Memory& out = request.out[0];
    if (out.bytes > 0) backend.broadcast(out.data, out.bytes, request.peer, timeout);
  }

  void all_reduce() const {
    const Memory& out = request.out[0];
    if (out.bytes == 0) return;
    const Reduction how = reduction();
    const size_t count = out.bytes / how.element_size;
    backend.all_reduce(out.data, count, how, timeout);
    average(out.data, count);
  }

  void reduce() const {
    const Memory &in = request.in[0], &out = request.out[0];
    if (in.bytes == 0) return;
    const Reduction how = reduction();
    const size_t count = in.bytes / how.element_size;
    // Others keep what they have.
    std::vector<std::byte> result(in.bytes);
    backend.reduce(in.data, result.data(), count, how, request.peer, timeout);
    if (!is_root()) return;
    average(result.data(), count);
    copy(out.data, result.data(), in.bytes);
  }

  void all_gather() const {
    Joined out(request.out);
    const Memory& in = request.in[0];
    if (in.bytes == 0) return;
    backend.all_gather(in.data, out.data(), in.bytes, timeout);
    out.write();
  }

  void reduce_scatter() const {
    const Memory& out = request.out[0];
    if (out.bytes == 0) return;
    const Reduction how = reduction();
    const size_t count = out.bytes / how.element_size;
    // The engine works in its input.
    std::vector<std::byte> scratch(out.bytes * static_cast<size_t>(size));
    size_t offset = 0;
    for (const Memory& m : request.in) {
      copy(scratch.data() + offset, m.data, m.bytes);
      offset += m.bytes;
    }
    backend.reduce_scatter(scratch.data(), out.data, count, how, timeout);
    average(out.data, count);
  }

  void all_to_all() const {
    Joined in(request.in), out(request.out);
    in.read();
    backend.all_to_all(in.data(), sizes_of(request.in, size), out.data(),
                       sizes_of(request.out, size), timeout);
    out.write();
  }

  void gather() const {
    Joined out(request.out);
    const Memory& in = request.in[0];
    if (in.bytes == 0) return;
    backend.gather(in.data, is_root() ? out.data() : nullptr, in.bytes, request.peer, timeout);
    if (is_root()) out.write();
  }

  void scatter() const {
    Joined in(request.in);
    const Memory& out = request.out[0];
    if (out.bytes == 0) return;
    if (is_root()) in.read();
    backend.scatter(is_root() ? in.data() : nullptr, out.data, out.bytes, request.peer, timeout);
  }
};

[[noreturn]] void refuse(const Request& request, size_t in, size_t out, int size) {
  fail(
      ErrorKind::InvalidArgument,
      "[{}] the input has {} bytes and the output {}, which does not fit {} processes.\nhint: All "
      "pieces must have the same shape and dtype on all processes, and the whole {} times the size "
      "of a piece.",
      name_of(request.what), in, out, size, size);
}

}  // namespace

void check_request(const Request& request, int size) {
  const size_t in = total(request.in), out = total(request.out), ranks = static_cast<size_t>(size);
  const auto fits = [&](bool ok) {
    if (!ok) refuse(request, in, out, size);
  };
  const auto pieces_fit = [&](const std::vector<Memory>& parts) {
    fits(parts.size() == ranks || parts.size() == 1);
  };
  if (reduces(request.what)) {
    reduction_of(kind_of(request.op), request.dtype, name_of(request.what));
    user_check(
        request.op != ReduceOp::Avg || is_floating(request.dtype) || is_complex(request.dtype),
        ErrorKind::InvalidType,
        "[{}] the average of {} is not one itself.\nhint: Sum, then divide; or cast to float32 first.",
        name_of(request.what), oar::name_of(request.dtype));
  }
  switch (request.what) {
    case Collective::AllGather:
      pieces_fit(request.out);
      fits(out == in * ranks);
      break;
    case Collective::Gather:
      if (!request.out.empty()) pieces_fit(request.out), fits(out == in * ranks);
      break;
    case Collective::ReduceScatter:
      pieces_fit(request.in);
      fits(in == out * ranks);
      break;
    case Collective::Scatter:
      if (!request.in.empty()) pieces_fit(request.in), fits(in == out * ranks);
      break;
    case Collective::AllToAll:
      for (const auto* parts : {&request.in, &request.out}) {
        pieces_fit(*parts);
        fits(parts->size() == ranks || total(*parts) % ranks == 0);
      }
      break;
    case Collective::Reduce:
      fits(in == out);
      break;
    default:
      break;
  }
}

void run_request(Backend& backend, const Request& request, int rank, int size,
                 Milliseconds timeout) {
  const Run run{backend, request, rank, size, timeout};
  switch (request.what) {
    case Collective::Broadcast:
      return run.broadcast();
    case Collective::Reduce:
      return run.reduce();
    case Collective::AllReduce:
      return run.all_reduce();
    case Collective::AllGather:
      return run.all_gather();
    case Collective::ReduceScatter:
      return run.reduce_scatter();
    case Collective::AllToAll:
      return run.all_to_all();
    case Collective::Gather:
      return run.gather();
    case Collective::Scatter:
      return run.scatter();
    case Collective::Barrier:
      return backend.barrier(timeout);
    default:
      fail(ErrorKind::Internal, "{} is a message", name_of(request.what));
  }
}

void run_alone(const Request& request) {
  if (request.in.empty() || request.out.empty()) return;
  const size_t bytes = std::min(total(request.in), total(request.out));
  copy(request.out[0].data, request.in[0].data, bytes);
}

std::string describe(const Request& request) {
  return request.shape.empty() ? name_of(request.what)
                               : format("{} of {}", name_of(request.what), request.shape);
}

std::string describe_for_check(const Request& request) {
  std::string text = name_of(request.what);
  if (reduces(request.what)) text += format(" ({})", name_of(request.op));
  const bool has_root = request.what == Collective::Broadcast ||
                        request.what == Collective::Reduce || request.what == Collective::Gather ||
                        request.what == Collective::Scatter;
  if (has_root) text += format(" with root {}", request.peer);
  // The pieces of an exchange may differ.
  if (request.what != Collective::AllToAll && !request.shape.empty())
    text += format(" of {}", request.shape);
  return text;
}

}  // namespace oar::distributed
