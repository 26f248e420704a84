// The one constructor of the runtime library; see startup.cpp for that of the full one.
#include "oar/runtime/start.h"

namespace oar {
namespace {

__attribute__((constructor)) void start() { start_runtime(); }

}  // namespace
}  // namespace oar
