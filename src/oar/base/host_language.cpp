#include "oar/base/host_language.h"

#include <atomic>

namespace oar {
namespace {
constexpr HostLanguage kNone;
constinit std::atomic<const HostLanguage*> g_language{&kNone};
}  // namespace

void install_host_language(const HostLanguage* language) {
  g_language.store(language ? language : &kNone, std::memory_order_release);
}

const HostLanguage& host_language() { return *g_language.load(std::memory_order_acquire); }

}  // namespace oar
