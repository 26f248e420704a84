// What a machine can do, compared with what Oar does: products and convolutions by oneDNN called directly on the
// same inputs and outputs, reorders included on both sides, and kernels that only move memory by plain
// loops with the same traffic. Processor time of one thread, the least of rounds taken in turns.
//
//   oar_roofline            the table; a ratio is the other's time by Oar's, above 1 Oar is faster
//   oar_roofline layouts    convolutions of ResNet-50 by oneDNN alone, by the layout of their images
#include <omp.h>
#include <time.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "oar/base/parallel.h"
#include "oar/oar.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/conv.h"

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Dims = memory::dims;
using Call = std::function<void()>;
constexpr auto kFloat = memory::data_type::f32;

double seconds_of(const Call& call) {
  const auto now = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  call();
  return now() - start;
}

// The least time of each, over rounds in which all have their turn.
std::vector<double> race(const std::vector<Call>& calls) {
  constexpr double kSeconds = 0.3;
  std::vector<double> best(calls.size(), 1e9);
  double spent = 0;
  for (int round = 0; round < 4 || spent < kSeconds; ++round)
    for (size_t i = 0; i < calls.size(); ++i) {
      const double s = seconds_of(calls[i]);
      best[i] = std::min(best[i], s);
      spent += std::max(s, 1e-5);
    }
  return best;
}

void row(const char* name, const Call& ours, const Call& theirs) {
  const auto best = race({ours, theirs});
  std::printf("%-34s oar %9.1f us   direct %9.1f us   %.2f\n", name, best[0] * 1e6, best[1] * 1e6,
              best[1] / best[0]);
  std::fflush(stdout);
}

const dnnl::engine& engine() {
  static const dnnl::engine one(dnnl::engine::kind::cpu, 0);
  return one;
}
dnnl::stream& stream() {
  static dnnl::stream one(engine());
  return one;
}

oar::Tensor tensor(const Dims& shape) {
  return oar::randn(oar::Shape(std::vector<oar::Dim>(shape.begin(), shape.end())));
}

// ---- Products

void product(int64_t m, int64_t n, int64_t k, bool turned) {
  const oar::Tensor x = tensor({m, k}), y = turned ? tensor({n, k}) : tensor({k, n});
  const memory::desc a({m, k}, kFloat, Tag::ab), b({k, n}, kFloat, turned ? Tag::ba : Tag::ab),
      c({m, n}, kFloat, Tag::ab);
  const dnnl::matmul::primitive_desc desc(engine(), a, b, c);
  const dnnl::matmul run(desc);
  const memory left(a, engine(), x.data<float>()), right(b, engine(), y.data<float>()),
      out(c, engine());
  char name[64];
  std::snprintf(name, sizeof name, "matmul %dx%dx%d%s", static_cast<int>(m), static_cast<int>(n),
                static_cast<int>(k), turned ? ", y turned" : "");
  row(
      name, [&] { oar::matmul(x, y, false, turned); },
      [&] {
        run.execute(stream(),
                    {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, out}});
      });
}

// ---- Convolutions

struct Conv {
  const char* name;
  int64_t batch, channels, size, out_channels, kernel, stride;
  int64_t padding() const { return kernel / 2; }
  int64_t out_size() const { return (size + 2 * padding() - kernel) / stride + 1; }
  Dims image() const { return {batch, channels, size, size}; }
  Dims weight() const { return {out_channels, channels, kernel, kernel}; }
  Dims result() const { return {batch, out_channels, out_size(), out_size()}; }
};

// A convolution forward whose operands come and go in some layout; what it likes better is reordered.
class Direct {
 public:
  Direct(const Conv& c, Tag images, Tag inside, bool keeps_weight)
      : keeps_weight_(keeps_weight),
        x_({c.image(), kFloat, images}, engine()),
        w_({c.weight(), kFloat, Tag::oihw}, engine()),
        y_({c.result(), kFloat, images}, engine()) {
    const auto any = [](const Dims& shape, Tag tag) { return memory::desc(shape, kFloat, tag); };
    const Dims strides{c.stride, c.stride}, padding{c.padding(), c.padding()};
    desc_ = dnnl::convolution_forward::primitive_desc(
        engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        any(c.image(), inside), any(c.weight(), Tag::any), any(c.result(), inside), strides,
        padding, padding);
    run_ = dnnl::convolution_forward(desc_);
    inner_x_ = in_layout(desc_.src_desc(), x_);
    inner_w_ = in_layout(desc_.weights_desc(), w_);
    inner_y_ = in_layout(desc_.dst_desc(), y_);
    fill(x_), fill(w_);
    to_x_ = Reorder(x_, inner_x_);
    to_w_ = Reorder(w_, inner_w_);
    from_y_ = Reorder(inner_y_, y_);
    to_w_();
  }
  // Without reorders: as if neighbours spoke the same layout.
  void only_convolve() {
    run_.execute(
        stream(),
        {{DNNL_ARG_SRC, inner_x_}, {DNNL_ARG_WEIGHTS, inner_w_}, {DNNL_ARG_DST, inner_y_}});
  }
  void run() {
    to_x_();
    if (!keeps_weight_) to_w_();
    only_convolve();
    from_y_();
  }

 private:
  static memory in_layout(const memory::desc& wanted, const memory& plain) {
    return wanted == plain.get_desc() ? plain : memory(wanted, engine());
  }
  // Made once; empty where nothing has to move.
  struct Reorder {
    Reorder() = default;
    Reorder(const memory& from, const memory& to)
        : moves(from.get_data_handle() != to.get_data_handle()), from(from), to(to) {
      if (moves) run = dnnl::reorder(from, to);
    }
    void operator()() {
      if (moves) run.execute(stream(), from, to);
    }
    bool moves = false;
    memory from, to;
    dnnl::reorder run;
  };
  static void fill(const memory& m) {
    auto* values = static_cast<float*>(m.get_data_handle());
    for (size_t i = 0; i < m.get_desc().get_size() / sizeof(float); ++i)
      values[i] = static_cast<float>(i % 17) / 17 - 0.5F;
  }
  bool keeps_weight_;
  memory x_, w_, y_, inner_x_, inner_w_, inner_y_;
  Reorder to_x_, to_w_, from_y_;
  dnnl::convolution_forward::primitive_desc desc_;
  dnnl::convolution_forward run_;
};

const Conv kConvs[] = {
    {"7x7 3>64 /2", 4, 3, 224, 64, 7, 2},
    {"1x1 64>256", 4, 64, 56, 256, 1, 1},
    {"3x3 64>64", 4, 64, 56, 64, 3, 1},
    {"3x3 128>128 /2", 4, 128, 56, 128, 3, 2},
    {"1x1 512>128", 4, 512, 28, 128, 1, 1},
    {"3x3 256>256", 4, 256, 14, 256, 3, 1},
    {"1x1 1024>2048 /2", 4, 1024, 14, 2048, 1, 2},
    {"3x3 512>512", 4, 512, 7, 512, 3, 1},
};

void convolution(const Conv& c) {
  const oar::Tensor x = tensor(c.image()), w = tensor(c.weight());
  const int64_t p = c.padding();
  Direct direct(c, Tag::nchw, Tag::any, false);
  row((std::string("conv ") + c.name).c_str(),
      [&] { oar::conv(x, w, {}, {c.stride, c.stride}, {p, p, p, p}, {1, 1}, 1); },
      [&] { direct.run(); });
}

// Times by layout, relative to blocks without any reorder.
void layouts() {
  std::printf("%-18s %10s %10s %10s %10s %10s %10s\n", "", "blocked us", "reordered", "+ weight",
              "nchw", "nhwc", "+ weight");
  for (const Conv& c : kConvs) {
    Direct blocked(c, Tag::nchw, Tag::any, true), all(c, Tag::nchw, Tag::any, false);
    Direct plain(c, Tag::nchw, Tag::nchw, true);
    Direct last(c, Tag::nhwc, Tag::nhwc, true), last_all(c, Tag::nhwc, Tag::nhwc, false);
    const auto best =
        race({[&] { blocked.only_convolve(); }, [&] { blocked.run(); }, [&] { all.run(); },
              [&] { plain.run(); }, [&] { last.run(); }, [&] { last_all.run(); }});
    std::printf("%-18s %10.0f", c.name, best[0] * 1e6);
    for (size_t i = 1; i < best.size(); ++i) std::printf(" %10.2f", best[i] / best[0]);
    std::printf("\n");
    std::fflush(stdout);
  }
}

// ---- Memory

using Loop = void (*)(const float*, const float*, float*, size_t);

__attribute__((optimize("O3"))) void add_loop(const float* x, const float* y, float* out,
                                              size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = x[i] + y[i];
}
__attribute__((optimize("O3"))) void relu_loop(const float* x, const float*, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
void copy_loop(const float* x, const float*, float* out, size_t n) {
  std::memcpy(out, x, n * sizeof(float));
}
__attribute__((optimize("O3"))) void sum_loop(const float* x, const float*, float* out, size_t n) {
  constexpr size_t kLanes = 64;
  float sums[kLanes] = {};
  for (size_t i = 0; i + kLanes <= n; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l) sums[l] += x[i + l];
  for (size_t l = 1; l < kLanes; ++l) sums[0] += sums[l];
  *out = sums[0];
}

void memory_bound(int64_t count, const char* size) {
  const oar::Tensor x = tensor({count}), y = tensor({count});
  oar::Tensor out = tensor({count});
  const auto compare = [&](const char* name, const Call& ours, Loop loop) {
    row((std::string(name) + size).c_str(), ours, [&] {
      loop(x.data<float>(), y.data<float>(), out.data<float>(), static_cast<size_t>(count));
    });
  };
  compare("add, ", [&] { oar::add(x, y); }, add_loop);
  compare("relu, ", [&] { oar::relu(x); }, relu_loop);
  compare("copy, ", [&] { oar::assign(x); }, copy_loop);
  compare("sum, ", [&] { oar::sum(x); }, sum_loop);
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  oar::set_num_threads(1);
  oar::matmul(tensor({256, 256}), tensor({256, 256}));  // settles what oneDNN may use
  if (argc > 1 && std::strcmp(argv[1], "layouts") == 0) {
    layouts();
    return 0;
  }
  for (const int64_t n : {256, 512, 1024, 2048}) product(n, n, n, false);
  product(1024, 4096, 1024, false);
  product(1024, 1024, 4096, true);
  for (const Conv& c : kConvs) convolution(c);
  memory_bound(int64_t{1} << 14, "64 KiB");
  memory_bound(int64_t{1} << 23, "32 MiB");
  return 0;
}
