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
std::array<LayerFunction, kLayerCount> g_layers{};

// Everything from here on sees operands of one shape and dtype.
constexpr uint32_t kBeforePrepare = kProfile | kAutocast | kQuantised;

// Tensors of these kinds are taken apart before all other layers: the calls on their parts pass through those.
constexpr uint32_t kTakenApart = kSparseCoo | kSparseCsr;

constexpr uint32_t lowest_bit(uint32_t key) { return key & (~key + 1); }

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::Distributed:
      return "distributed";
    default:
      return "wrapped";
  }
}

// The layer of a kind is not installed.
[[noreturn, gnu::cold]] void refuse_kind(const Op& op, Args args, uint32_t flag) {
  for (size_t i = 0; i < args.size(); ++i)
    for_each_tensor(args.subspan(i, 1), [&](const Tensor& t) {
      if (!t.has(flag)) return;
      const OpScope scope(op.name().c_str());
      fail(ErrorKind::Unsupported,
           "{} is a {} tensor, {}, and {} takes no such tensors here.\nhint: Pass a dense tensor.",
           op.schema().parameters[i].name, kind_name(t.kind()), t.describe(), op.name());
    });
  fail(ErrorKind::Internal, "no layer is installed for flag {}", flag);
}

}  // namespace

void install_layer(uint32_t flag, LayerFunction layer) {
  LayerFunction& slot = g_layers[static_cast<size_t>(std::countr_zero(flag))];
  internal_check(!slot || !layer, "two layers are installed for flag {}", flag);
  slot = layer;
}

void wrap_layer(uint32_t flag, LayerFunction inner, LayerFunction outer) {
  LayerFunction& slot = g_layers[static_cast<size_t>(std::countr_zero(flag))];
  internal_check(slot == inner, "the layer of flag {} is not the one that is wrapped", flag);
  slot = outer;
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
  const uint32_t apart = key & kTakenApart;
  const uint32_t first = lowest_bit(apart ? apart : key);  // the outermost layer
  if (!(first & (kBeforePrepare | kTakenApart)) && op.prepares()) {
    Frame frame;
    if (prepare(op, args, frame)) return proceed(op, frame.args(), allowed & ~kBeforePrepare);
  }
  if (key == 0) return run_op(op, args);
  const LayerFunction layer = g_layers[static_cast<size_t>(std::countr_zero(first))];
  if (!layer) [[unlikely]]
    refuse_kind(op, args, first);
  return layer(op, args);
}

}  // namespace oar
