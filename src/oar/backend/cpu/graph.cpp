// Graphs: rows of a segment reduced to one, neighbours drawn at random, and nodes numbered anew.
#include <cmath>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/random/random_stream.h"

namespace oar::cpu {
namespace {

enum class Pool { Sum, Mean, Max, Min };

Pool pool_of(std::string_view name) {
  if (name == "sum") return Pool::Sum;
  if (name == "mean") return Pool::Mean;
  return name == "max" ? Pool::Max : Pool::Min;
}

// Rows in the order of their segments, equal ones in their own order; and where each segment begins.
struct Segments {
  std::vector<int64_t> rows, starts;

  // size: how many segments there are, or -1.
  Segments(const int64_t* ids, int64_t n, int64_t size) : rows(static_cast<size_t>(n)) {
    int64_t last = std::max<int64_t>(size, 0) - 1;
    for (int64_t i = 0; i < n; ++i) {
      user_check(ids[i] >= 0 && ids[i] < std::numeric_limits<int32_t>::max(),
                 ErrorKind::InvalidArgument,
                 "segment_ids holds {}; segments are numbered from 0 in 31 bits.", ids[i]);
      user_check(size < 0 || ids[i] < size, ErrorKind::OutOfRange,
                 "row {} belongs to row {} of the result, which has {} rows.", i, ids[i], size);
      last = std::max(last, ids[i]);
    }
    starts.assign(static_cast<size_t>(last + 2), 0);
    for (int64_t i = 0; i < n; ++i) ++starts[static_cast<size_t>(ids[i] + 1)];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<int64_t> next = starts;
    for (int64_t i = 0; i < n; ++i)
      rows[static_cast<size_t>(next[static_cast<size_t>(ids[i])]++)] = i;
  }
  int64_t count() const { return static_cast<int64_t>(starts.size()) - 1; }
};

template <class T>
void pool_segment(Pool how, const T* x, int64_t width, const int64_t* rows, int64_t count, T* out) {
  std::fill(out, out + width, T(0));
  if (count == 0) return;
  std::copy_n(x + rows[0] * width, width, out);
  for (int64_t r = 1; r < count; ++r) {
    const T* row = x + rows[r] * width;
    for (int64_t k = 0; k < width; ++k) {
      if (how == Pool::Max)
        out[k] = row[k] > out[k] || row[k] != row[k] ? row[k] : out[k];
      else if (how == Pool::Min)
        out[k] = row[k] < out[k] || row[k] != row[k] ? row[k] : out[k];
      else
        out[k] += row[k];
    }
  }
  if (how != Pool::Mean) return;
  for (int64_t k = 0; k < width; ++k) {
    if constexpr (std::is_integral_v<T>) {
      const T whole = out[k] / count;
      out[k] = whole - (out[k] % count < 0);
    } else {
      out[k] /= static_cast<T>(count);
    }
  }
}

// allocated(count) returns the result; it is called once the number of segments is known.
template <class Out>
void pool_segments(const KernelCall& call, int64_t size, Pool how, Out&& allocated) {
  const oar_tensor& x = call.in(0);
  const Copied<int64_t> ids(call.in(1));
  const Segments segments(ids.data(), x.shape[0], size);
  int64_t width = 1;
  for (int i = 1; i < x.ndim; ++i) width *= x.shape[i];
  visit_wide<kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> from(x);
    const Result<T> out(allocated(segments.count()));
    parallel_for(0, segments.count(), std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t s = begin; s < end; ++s) {
                     const int64_t first = segments.starts[static_cast<size_t>(s)],
                                   last = segments.starts[static_cast<size_t>(s + 1)];
                     pool_segment(how, from.data(), width, segments.rows.data() + first,
                                  last - first, out.data() + s * width);
                   }
                 });
    out.finish();
  });
}

void segment_rows(KernelCall& call) {
  pool_segments(call, call.arg(2).as_int(), pool_of(call.arg(3).as_string()),
                [&](int64_t) -> const oar_tensor& { return call.out(); });
}

void segment_pool(KernelCall& call) {
  const oar_tensor& x = call.in(0);
  pool_segments(call, -1, pool_of(call.arg(2).as_string()),
                [&](int64_t count) -> const oar_tensor& {
                  SmallVector<int64_t, 6> shape(x.shape, x.shape + x.ndim);
                  shape[0] = count;
                  return call.allocate(0, Ints(shape.data(), shape.size()));
                });
}

void reindex_nodes(KernelCall& call) {
  const Copied<int64_t> x(call.in(0)), neighbors(call.in(1)), counts(call.in(2));
  const int64_t nodes = call.in(0).numel, edges = call.in(1).numel, given = call.in(2).numel;
  user_check(
      nodes == 0 ? given == 0 : given % nodes == 0, ErrorKind::InvalidArgument,
      "count has {} numbers for {} nodes; there must be one for each node and type of edges.",
      given, nodes);
  std::unordered_map<int64_t, int64_t> number;
  number.reserve(static_cast<size_t>(nodes + edges));
  std::vector<int64_t> order;
  const auto numbered = [&](int64_t node) {
    const auto [at, fresh] = number.try_emplace(node, static_cast<int64_t>(order.size()));
    if (fresh) order.push_back(node);
    return at->second;
  };
  for (int64_t i = 0; i < nodes; ++i) numbered(x.data()[i]);
  const Result<int64_t> src(call.out(0)), dst(call.out(1));
  for (int64_t i = 0; i < edges; ++i) src.data()[i] = numbered(neighbors.data()[i]);
  int64_t filled = 0;
  for (int64_t i = 0; i < given; ++i) {
    const int64_t count = counts.data()[i];
    user_check(count >= 0 && count <= edges - filled, ErrorKind::InvalidArgument,
               "count[{}] is {}, but {} of the {} neighbors are left.", i, count, edges - filled,
               edges);
    std::fill_n(dst.data() + filled, count, number[x.data()[i % nodes]]);
    filled += count;
  }
  user_check(filled == edges, ErrorKind::InvalidArgument,
             "count says that there are {} neighbors, but there are {}.", filled, edges);
  const auto found = static_cast<int64_t>(order.size());
  const Result<int64_t> out(call.allocate(2, Ints(&found, 1)));
  std::ranges::copy(order, out.data());
  for (const Result<int64_t>* result : {&src, &dst, &out}) result->finish();
}

// The edges of one node, [begin, end), and where its results and its random numbers begin.
struct Neighbourhood {
  int64_t begin, end, out, block;
  int64_t size() const { return end - begin; }
};

// `wanted` of them, each as probable: the start of a shuffle.
void draw_evenly(const Neighbourhood& n, int64_t wanted, const Stream& stream, int64_t* out) {
  std::vector<int64_t> edges(static_cast<size_t>(n.size()));
  std::iota(edges.begin(), edges.end(), n.begin);
  stream.blocks(n.block, n.block + wanted, [&](int64_t b, const Block& bits) {
    const int64_t i = b - n.block;
    const auto left = static_cast<uint64_t>(n.size() - i);
    const auto partner = static_cast<int64_t>(joined(bits[0], bits[1]) % left);
    std::swap(edges[static_cast<size_t>(i)], edges[static_cast<size_t>(i + partner)]);
    out[i] = edges[static_cast<size_t>(i)];
  });
}

// The ones with the largest log(u) / weight, the smallest of them first.
void draw_weighted(const Neighbourhood& n, int64_t wanted, const double* weights,
                   const Stream& stream, int64_t* out) {
  using Keyed = std::pair<double, int64_t>;
  std::priority_queue<Keyed, std::vector<Keyed>, std::greater<>> best;
  stream.blocks(n.block, n.block + n.size(), [&](int64_t b, const Block& bits) {
    const int64_t edge = n.begin + b - n.block;
    const double u = 1 - unit_double(bits[0], bits[1]);  // not 0
    best.emplace(std::log(u) / std::max(weights[edge], 0.0), edge);
    if (static_cast<int64_t>(best.size()) > wanted) best.pop();
  });
  for (; !best.empty(); best.pop()) *out++ = best.top().second;
}

void sample_edges(KernelCall& call) {
  const Copied<int64_t> starts(call.in(0)), nodes(call.in(1));
  const int64_t known = call.in(0).numel - 1, count = call.in(1).numel;
  const oar_tensor* given = optional_in(call, 2);
  const int64_t size = call.arg(3).as_int();
  auto* counts = static_cast<int32_t*>(call.out(1).data);
  std::vector<Neighbourhood> all;
  int64_t total = 0, blocks = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t node = nodes.data()[i];
    user_check(node >= 0 && node < known, ErrorKind::OutOfRange,
               "input_nodes holds {}; colptr has {} nodes.", node, std::max<int64_t>(known, 0));
    const int64_t begin = starts.data()[node], end = starts.data()[node + 1];
    user_check(begin >= 0 && end >= begin && (!given || end <= given->numel),
               ErrorKind::InvalidArgument,
               "colptr says that the edges of node {} are {} to {}; they must rise from 0{}.", node,
               begin, end, given ? " to the number of weights" : "");
    const bool draws = size >= 0 && end - begin > size;
    all.push_back({begin, end, total, blocks});
    counts[i] = static_cast<int32_t>(draws ? size : end - begin);
    total += counts[i];
    blocks += draws ? (given ? end - begin : size) : 0;
  }
  const Stream stream = take(call, static_cast<uint64_t>(blocks) * 4);
  auto* out = static_cast<int64_t*>(call.allocate(0, Ints(&total, 1)).data);
  const Copied<double> weights(given ? *given : call.in(0));
  parallel_for(0, count, 64, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Neighbourhood& n = all[static_cast<size_t>(i)];
      if (counts[i] == n.size())
        std::iota(out + n.out, out + n.out + counts[i], n.begin);
      else if (given)
        draw_weighted(n, counts[i], weights.data(), stream, out + n.out);
      else
        draw_evenly(n, counts[i], stream, out + n.out);
    }
  });
}

}  // namespace

KernelList graph_kernels() {
  static const oar_kernel list[] = {
      {"segment_rows", 1, "cpu:generic", nullptr, kernel_entry<segment_rows>},
      {"segment_pool", 1, "cpu:generic", nullptr, kernel_entry<segment_pool>},
      {"reindex_nodes", 1, "cpu:generic", nullptr, kernel_entry<reindex_nodes>},
      {"sample_edges", 1, "cpu:generic", nullptr, kernel_entry<sample_edges>},
  };
  return list;
}

}  // namespace oar::cpu
