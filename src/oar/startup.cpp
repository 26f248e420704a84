// What must be in place before the first op call, in order. The library's one constructor: a C++
// program that only links Oar may call ops in its first line.
#include "oar/autograd/layers.h"
#include "oar/backend/null/null.h"
#include "oar/base/crash_handler.h"
#include "oar/base/flags.h"
#include "oar/compiler/capture/layers.h"
#include "oar/compiler/fusion/code.h"
#include "oar/compiler/region_runs.h"
#include "oar/distributed/groups.h"
#include "oar/ops/core/autocast.h"
#include "oar/ops/core/profile.h"
#include "oar/ops/core/watch.h"
#include "oar/ops/families/quantisation.h"
#include "oar/ops/families/selected_rows.h"
#include "oar/ops/families/sparse.h"
#include "oar/ops/sharding/bind.h"
#include "oar/ops/sharding/sharded.h"
#include "oar/runtime/start.h"

namespace oar {
namespace {

__attribute__((constructor)) void start() {
  start_runtime();
  null::register_device();
  install_profile_layer();
  install_watch_layer();
  install_autocast_layer();
  install_quantised_layer();
  install_autograd_layers();
  install_selected_rows_layer();
  install_sparse_layer();
  install_distribution_layer();
  install_planning_layer();
  install_regions();
  fusion::install_kernel();
  install_capture_layers();  // wraps autograd's
  distributed::install_collectives();
  if (flag<bool>("crash_handler")) install_crash_handler();
}

}  // namespace
}  // namespace oar
