#include "oar/ops/core/watch.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "oar/ops/core/profile.h"

namespace oar {
namespace {

thread_local std::shared_ptr<const Watcher> t_watcher;

// A call that is only written down returns nothing to look at.
bool have_content(const Outputs& results) {
  return std::all_of(results.begin(), results.end(), [](const Tensor& t) {
    return !t.defined() || (t.kind() != Kind::Symbolic && t.kind() != Kind::Meta);
  });
}

Outputs watch_layer(const Op& op, Args args) {
  const WatchedCall call;
  Outputs results = profiling() ? profile_layer(op, args) : proceed(op, args, below(kProfile));
  if (call.is_outermost() && have_content(results))
    call.returned(
        {.name = op.name(), .op = &op, .args = args, .results = {results.data(), results.size()}});
  return results;
}

}  // namespace

void WatchedCall::returned(const WatchedReturn& call) const {
  // The watcher may end the watch.
  if (const std::shared_ptr<const Watcher> watcher = t_watcher) (*watcher)(call);
}

void watch_this_thread(Watcher watcher) {
  t_watcher = watcher ? std::make_shared<const Watcher>(std::move(watcher)) : nullptr;
  t_watch.on = t_watcher != nullptr;
  if (t_watch.on)
    t_layers.on |= kProfile;
  else if (!profiling())
    t_layers.on &= ~uint32_t{kProfile};
}

void install_watch_layer() { wrap_layer(kProfile, profile_layer, watch_layer); }

}  // namespace oar
