#include "oar/ops/core/profile.h"

#include <atomic>

#include "oar/ops/core/watch.h"

namespace oar {
namespace {

std::atomic<bool> g_shapes{true};
std::atomic<decltype(ProfileOptions::flops)> g_flops{nullptr};

const char* operands_of(Args args) {
  std::string text;
  for_each_tensor(args,
                  [&](const Tensor& t) { text += (text.empty() ? "" : ", ") + t.describe(); });
  return timeline::kept(text);
}

void stop_this_thread() {
  t_profiled = false;
  if (!watching()) t_layers.on &= ~uint32_t{kProfile};
}

}  // namespace

Outputs profile_layer(const Op& op, Args args) {
  if (!timeline::is_running()) {  // it was stopped by another thread
    stop_this_thread();
    return proceed(op, args, below(kProfile));
  }
  ProfiledCall timed(op, args);
  Outputs outputs = proceed(op, args, below(kProfile));
  timed.note_results(args, {outputs.data(), outputs.size()});
  return outputs;
}

ProfiledCall::ProfiledCall(const Op& op, Args args)
    : span_(timeline::Kind::Op, op.name().c_str()), op_(op) {
  ++timeline::depth();
  if (g_shapes.load(std::memory_order_relaxed)) span_.event.operands = operands_of(args);
}

void ProfiledCall::note_results(Args args, TensorList results) {
  if (const auto flops = g_flops.load(std::memory_order_relaxed))
    span_.event.flops = flops(op_, args, results);
}

// A device's kernels of different ops may have the same name.
ProfiledKernel::ProfiledKernel(const Op& op, const oar_kernel& kernel)
    : span_(timeline::Kind::Kernel, timeline::kept(format("{} ({})", op.name(), kernel.name))) {}

void install_profile_layer() { install_layer(kProfile, profile_layer); }

void profile_this_thread() {
  if (!timeline::is_running()) return;
  t_profiled = true;
  t_layers.on |= kProfile;
}

void start_profile(const ProfileOptions& options) {
  g_shapes = options.shapes;
  g_flops = options.flops;
  timeline::start(options.memory, options.most_events);
  profile_this_thread();
}

timeline::Recording stop_profile() {
  stop_this_thread();
  return timeline::stop();
}

}  // namespace oar
