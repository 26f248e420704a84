#include "oar/ops/core/dispatcher.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

#include "oar/base/flags.h"
#include "oar/base/log.h"
#include "oar/ops/core/run.h"

namespace oar {
namespace {

constexpr int kLayerCount = 16;
std::array<Layer, kLayerCount> g_layers{};

// Everything from here on sees operands of one shape and dtype.
constexpr uint32_t kBeforePrepare = kProfile | kAutocast;

}  // namespace

void install_layer(uint32_t flag, Layer layer) {
  g_layers[static_cast<size_t>(std::countr_zero(flag))] = layer;
}

bool tracing_dispatch() { return tracing(Trace::Dispatch); }

Outputs dispatch(const Op& op, Args args) {
  const uint32_t key = dispatch_key(args);
  if (key == 0) [[likely]] {
    if (op.prepares()) {
      Frame frame;
      if (prepare(op, args, frame)) return run_op(op, frame.args());
    }
    return run_op(op, args);
  }
  return proceed(op, args, kDispatchMask);
}

Outputs proceed(const Op& op, Args args, uint32_t allowed) {
  const uint32_t key = dispatch_key(args) & allowed;
  const uint32_t first = key & (~key + 1);  // lowest bit: the outermost layer
  if (!(first & kBeforePrepare) && op.prepares()) {
    Frame frame;
    if (prepare(op, args, frame)) return proceed(op, frame.args(), allowed & ~kBeforePrepare);
  }
  if (key == 0) return run_op(op, args);
  const Layer layer = g_layers[static_cast<size_t>(std::countr_zero(first))];
  internal_check(layer != nullptr, "no layer is installed for flag {}", first);
  return layer(op, args);
}

}  // namespace oar
